// The neighbours of a search's best plan, and what of their communication is exposed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "study/search/search_testing.h"

namespace armilla {
namespace {

class ExplainTest : public SearchFixture {};

TEST_F(ExplainTest, KnowsTheNeighboursOfTheBest) {
  SearchRequest search = request(
      "gpt",
      "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 16\n  tensor: [1, 2]\n"
      "  pipeline: [1, 3]\n  micro_batch: 1\n  recompute: none\n  zero: [0, 1]\n  virtual_stages: 1\n");
  search.explain = true;
  const SearchResult result = search_plans(search);
  ASSERT_EQ(result.neighbours.size(), 3u);
  EXPECT_EQ(result.neighbours[0].key, "plan.tensor");
  EXPECT_GE(result.neighbours[0].outcome->iteration, result.ranking[0].iteration);
  EXPECT_EQ(result.neighbours[1].value, "3");
  EXPECT_FALSE(result.neighbours[1].outcome.has_value());
  EXPECT_THAT(result.neighbours[1].refusal, testing::HasSubstr("8"));
}

// A model without attention has nothing that is recomputed selectively.
TEST_F(ExplainTest, TellsOfValuesThatMakeOnePlan) {
  SearchRequest search = request(
      "tables",
      "machine: dgx-a100\nplan:\n  ranks: 2\n  global_batch: 65536\n  tensor: 1\n  pipeline: 1\n  expert: 1\n"
      "  micro_batch: 32768\n  recompute: [none, selective, full]\n  zero: 0\n  virtual_stages: 1\n");
  search.objective = SearchObjective::memory;
  search.explain = true;
  const SearchResult result = search_plans(search);
  ASSERT_EQ(result.neighbours.size(), 2u);
  EXPECT_EQ(result.neighbours[0].value, "none");
  EXPECT_TRUE(result.neighbours[0].outcome.has_value());
  EXPECT_EQ(result.neighbours[1].value, "selective");
  EXPECT_FALSE(result.neighbours[1].outcome.has_value());
  EXPECT_EQ(result.neighbours[1].refusal, "the same plan as with none");
}

// Within limits they would be better than the best.
TEST_F(ExplainTest, MarksNeighboursBeyondALimit) {
  SearchRequest search = fast_or_small();
  const SearchResult all = search_plans(search);
  ASSERT_EQ(all.ranking.size(), 2u);
  const PlanOutcome &fast = all.ranking[0], &small = all.ranking[1];
  ASSERT_LT(small.memory.needed(), fast.memory.needed());
  search.explain = true;
  search.memory_share = (static_cast<double>(small.memory.needed().value) + 1) /
                        static_cast<double>(small.memory.capacity.value);
  const SearchResult tight = search_plans(search);
  ASSERT_EQ(tight.neighbours.size(), 1u);
  EXPECT_EQ(tight.neighbours[0].outcome->iteration, fast.iteration);
  EXPECT_EQ(tight.neighbours[0].broken->limit, "memory");
  EXPECT_THAT(tight.neighbours[0].broken->how, testing::HasSubstr("that it may take"));
  EXPECT_EQ(what_matters_most(tight), nullptr);
  search.memory_share = 1;
  search.objective = SearchObjective::memory;
  search.deadline = fast.iteration;
  const SearchResult late = search_plans(search);
  ASSERT_EQ(late.neighbours.size(), 1u);
  EXPECT_EQ(late.neighbours[0].broken->limit, "deadline");
}

void expect_kinds_add_up(const PlanOutcome& plan) {
  Time sum;
  for (const auto& [kind, time] : plan.exposed_by_kind) sum += time;
  EXPECT_EQ(sum, plan.exposed_communication);
}

// At the edge of a torus ranks of one stage wait for longer than in its middle.
TEST_F(ExplainTest, ExposedTimesAreOfTheRanksThatAreShown) {
  SearchRequest search = request(
      "wide",
      "machine: tpu-v5e\nplan:\n  ranks: 16\n  global_batch: 16\n  tensor: [1, 2]\n  pipeline: [1, 2]\n"
      "  micro_batch: 1\n  recompute: none\n  zero: 0\n  virtual_stages: 1\n  sequence_parallel: false\n");
  search.explain = true;
  const SearchResult result = search_plans(search);
  std::vector<PlanOutcome> plans(result.ranking.begin(), result.ranking.begin() + 2);
  for (const Neighbour& neighbour : result.neighbours) {
    if (neighbour.outcome) plans.push_back(*neighbour.outcome);
  }
  ASSERT_EQ(plans.size(), 4u);
  for (const PlanOutcome& plan : plans) expect_kinds_add_up(plan);
  EXPECT_GT(plans.front().exposed_communication, Time(0));
}

TEST_F(ExplainTest, ExplainsMachinesAndWhatIsExposed) {
  SearchRequest search =
      request("gpt",
              "machine: [dgx-a100, ethernet-rack]\nplan:\n  ranks: [4, 8]\n  global_batch: 16\n"
              "  tensor: [1, 2]\n  pipeline: [1, 2]\n  micro_batch: [1, 2]\n  recompute: none\n"
              "  zero: 0\n  virtual_stages: 1\n");
  search.explain = true;
  const SearchResult result = search_plans(search);
  std::set<std::string> keys;
  expect_kinds_add_up(result.ranking[0]);
  expect_kinds_add_up(result.ranking[1]);
  for (const Neighbour& neighbour : result.neighbours) {
    keys.insert(neighbour.key);
    if (neighbour.outcome) expect_kinds_add_up(*neighbour.outcome);
  }
  EXPECT_TRUE(keys.contains("machine") && keys.contains("plan.ranks") && keys.contains("plan.tensor"));
  ASSERT_NE(what_matters_most(result), nullptr);
}

// More replicas than samples are refused; with another degree the same ranks are legal.
TEST_F(ExplainTest, ExplainsOtherRanksWithWhatTheyNeed) {
  SearchRequest search = request(
      "gpt",
      "machine: dgx-a100\nplan:\n  ranks: [4, 8]\n  global_batch: 4\n  tensor: [1, 2]\n  pipeline: 1\n"
      "  micro_batch: 1\n  recompute: none\n  zero: 0\n  virtual_stages: 1\n  sequence_parallel: false\n");
  search.explain = true;
  const SearchResult result = search_plans(search);
  ASSERT_EQ(result.ranking.front().plan.tensor, 1);
  const auto ranks = std::ranges::find(result.neighbours, "plan.ranks", &Neighbour::key);
  ASSERT_NE(ranks, result.neighbours.end());
  EXPECT_EQ(ranks->value, "8");
  EXPECT_EQ(ranks->needs, "plan.tensor");
  EXPECT_EQ(ranks->needed_value, "2");
  ASSERT_TRUE(ranks->outcome.has_value());
  EXPECT_EQ(ranks->outcome->plan.data(), 4);
}

TEST_F(ExplainTest, ExplainsANeighbourWithWhatItNeeds) {
  SearchRequest search =
      request("moe",
              "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 16\n  tensor: [1, 2]\n  expert: 4\n"
              "  expert_tensor: 1\n  pipeline: 1\n  micro_batch: 1\n  recompute: none\n  zero: 0\n"
              "  sequence_parallel: [false, true]\n");
  search.explain = true;
  const SearchResult result = search_plans(search);
  ASSERT_EQ(result.ranking.front().plan.tensor, 1);
  const auto tensor = std::ranges::find(result.neighbours, "plan.tensor", &Neighbour::key);
  ASSERT_NE(tensor, result.neighbours.end());
  EXPECT_EQ(tensor->needs, "plan.sequence_parallel");
  EXPECT_EQ(tensor->needed_value, "true");
  EXPECT_THAT(tensor->refusal, testing::HasSubstr("needs"));
  ASSERT_TRUE(tensor->outcome.has_value());
  EXPECT_TRUE(tensor->outcome->plan.sequence_parallel);
  EXPECT_EQ(tensor->outcome->plan.tensor, 2);
}

// Of all changes of one other key that make a neighbour legal, the best by what the search goes by.
TEST_F(ExplainTest, NamesTheBestOfTheSecondKnobs) {
  std::size_t with_second = 0;
  for (const SearchObjective objective :
       {SearchObjective::time, SearchObjective::memory, SearchObjective::throughput}) {
    SearchRequest search = request(
        "wide",
        "machine: dgx-a100\nplan:\n  ranks: 16\n  global_batch: 16\n  tensor: [1, 2, 4, 8]\n"
        "  pipeline: [1, 2, 4, 8]\n  micro_batch: [1, 2, 4]\n  zero: [0, 1]\n  virtual_stages: [1, 2]\n"
        "  recompute: none\n  sequence_parallel: [false, true]\n");
    search.objective = objective;
    search.explain = search.brute_force = true;
    const SearchResult result = search_plans(search);
    const PlanOutcome& best = result.ranking.front();
    for (const Neighbour& neighbour : result.neighbours) {
      if (!neighbour.outcome || neighbour.needs.empty()) continue;
      ++with_second;
      const auto changed = static_cast<std::size_t>(
          std::ranges::find(result.axes, neighbour.key, &SearchAxis::key) - result.axes.begin());
      const auto is_beside = [&](const PlanOutcome& plan) {
        int others = 0;
        for (std::size_t axis = 0; axis < result.axes.size(); ++axis)
          others += axis != changed && plan.values[axis] != best.values[axis] ? 1 : 0;
        return plan.values[changed] == neighbour.value && others == 1;
      };
      double least = std::numeric_limits<double>::infinity();
      for (const PlanOutcome& plan : result.simulated) {
        if (is_beside(plan)) least = std::min(least, score_of(objective, plan.figures()));
      }
      EXPECT_EQ(score_of(objective, neighbour.outcome->figures()), least)
          << name_of(objective) << " " << neighbour.key << " " << neighbour.value << " with "
          << neighbour.needs << " " << neighbour.needed_value;
    }
  }
  EXPECT_GT(with_second, 3u);
}

}  // namespace
}  // namespace armilla
