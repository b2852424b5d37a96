#include "study/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "cost/cost.h"
#include "ir/derived/events.h"
#include "ir/profile.h"
#include "read/study.h"
#include "study/database/database.h"
#include "study/run.h"
#include "study/search/evaluate.h"
#include "study/search/search_testing.h"
#include "study/search/space.h"
#include "write/report.h"

namespace armilla {
namespace {

class SearchTest : public SearchFixture {};

TEST_F(SearchTest, EqualsBruteForce) {
  int number = 0;
  for (const char* const model : {"gpt", "moe"}) {
    for (const SearchObjective objective :
         {SearchObjective::time, SearchObjective::throughput, SearchObjective::cost, SearchObjective::energy,
          SearchObjective::memory}) {
      if (number++ % kCaseStep != 0) continue;
      SearchRequest search = request(model, kSmallSpace);
      search.objective = objective;
      search.top = 5;
      const SearchResult bounded = search_plans(search);
      search.brute_force = true;
      const SearchResult all = search_plans(search);
      expect_sum(bounded.space);
      expect_sum(all.space);
      EXPECT_EQ(all.space.bounded, 0);
      EXPECT_LT(bounded.space.simulated, all.space.simulated) << name_of(objective);
      EXPECT_EQ(texts(bounded.ranking), texts(all.ranking)) << model << " " << name_of(objective);
    }
  }
}

// Where cables join members in parts (collectives take longer than their links), and where iterations
// overlap, so that one of several says nothing of their average.
TEST_F(SearchTest, RefusesWhatTakesLongerThanAnyoneWaits) {
  const auto on = [&](const std::string& network) {
    SearchRequest wanted =
        request("gpt", "machine: dgx-a100\nnetwork: " + network +
                           "\nplan: {ranks: 16, global_batch: 16, micro_batch: 1, tensor: any}\n");
    wanted.top = 2;
    wanted.patience.longest = Time(1);
    return wanted;
  };
  for (const std::string network : {"packet", "flit"}) {
    try {
      search_plans(on(network));
      ADD_FAILURE() << network << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.where, "network " + network);
      EXPECT_THAT(error.message, testing::HasSubstr("at least 2 of "));
    }
    // All are, and it says how many.
    SearchRequest all = on(network);
    all.brute_force = true;
    EXPECT_THAT(error_of([&] { search_plans(all); }), testing::Not(testing::HasSubstr(" of ")));
  }
  for (const std::string network : {"flow", "analytical", "packet:fast-forward=true"})
    EXPECT_EQ(search_plans(on(network)).ranking.size(), 2U) << network;
}

TEST_F(SearchTest, EqualsBruteForceWhereBoundsKnowLess) {
  const auto one_plan = [&](const std::string& model, const std::string& rest) {
    SearchRequest search = request(model, rest);
    search.top = 1;
    const SearchResult bounded = search_plans(search);
    search.brute_force = true;
    const SearchResult all = search_plans(search);
    expect_sum(bounded.space);
    EXPECT_EQ(bounded.space.not_looked_at, 0);
    EXPECT_LT(bounded.space.simulated, all.space.simulated) << rest;
    EXPECT_EQ(texts(bounded.ranking), texts(all.ranking)) << rest;
    return bounded.ranking.at(0).plan;
  };
  // Small ones take longest to play.
  constexpr const char* kMicroBatches = kCaseStep == 1 ? "[1, 2, 4]" : "[4]";
  int number = 0;
  for (const char* const machine : {"azure-nc96", "nvl-pairs", "dgx-1"}) {
    if (number++ % kCaseStep != 0) continue;
    one_plan("wide", std::string("machine: ") + machine +
                         "\nplan:\n  ranks: 8\n  global_batch: 16\n  tensor: any\n  pipeline: [1, 2]\n"
                         "  micro_batch: " +
                         kMicroBatches + "\n  recompute: [none, full]\n  zero: [0, 1]\n");
  }
  std::set<std::string> best;
  number = 0;
  for (const char* const model : {"gpt", "wide"}) {
    if (number++ % kCaseStep != 0) continue;
    best.insert(one_plan(model,
                         "machine: dgx-h100\nplan:\n  ranks: 8\n  global_batch: 32\n  tensor: [1, 2]\n"
                         "  pipeline: [2, 4]\n  schedule: [pipedream-2bw, 1f1b]\n  micro_batch: " +
                             std::string(kMicroBatches) +
                             "\n  virtual_stages: 1\n  recompute: none\n  zero: [0, 1]\n")
                    .schedule);
  }
  EXPECT_EQ(best, std::set<std::string>{"pipedream-2bw"});
}

// Node by node, and alike until gradients are exchanged.
TEST_F(SearchTest, EqualsBruteForceWherePlansBeginAlike) {
  int number = 0;
  for (const char* const order : {"tensor-context-data-pipeline", "tensor-context-pipeline-data"}) {
    if (number++ % kCaseStep != 0) continue;
    SearchRequest search = request(
        "wide", std::string("machine: dgx-a100\nplan:\n  ranks: 16\n  global_batch: 32\n  tensor: 2\n"
                            "  pipeline: 4\n  micro_batch: 1\n  virtual_stages: [1, 2]\n  recompute: none\n"
                            "  zero: [0, 1]\n  offload: any\n  overlap: any\n  overlap_parameters: any\n"
                            "  scatter_gather: ") +
                    (kCaseStep == 1 ? "any" : "true") + "\n  order: " + order + "\n");
    search.top = 3;
    const SearchResult bounded = search_plans(search);
    search.brute_force = true;
    const SearchResult all = search_plans(search);
    expect_sum(bounded.space);
    EXPECT_LT(bounded.space.simulated, all.space.simulated / 4);
    EXPECT_EQ(texts(bounded.ranking), texts(all.ranking));
  }
}

// Gradients of tables are sparse: their bounds are lower than those of all elements.
TEST_F(SearchTest, EqualsBruteForceWhereTablesAreDealtOut) {
  SearchRequest wanted = request(
      "tables", std::string("machine: dgx-a100\nplan:\n  ranks: 16\n  global_batch: 4096\n  expert: any\n"
                            "  micro_batch: ") +
                    (kCaseStep == 1 ? "[64, 256]" : "256") +
                    "\n  zero: any\n  optimizer: sgd\n  offload: any\n");
  wanted.top = 20;
  const SearchResult found = search_plans(wanted);
  wanted.brute_force = true;
  const SearchResult all = search_plans(wanted);
  EXPECT_EQ(texts(found.ranking), texts(all.ranking));
  EXPECT_GT(all.ranking.size(), 10U);
  // Degrees that do not divide the five tables, too.
  EXPECT_THAT(texts(all.ranking), testing::Contains(testing::StartsWith("1 1 1 4 ")));
}

// Each schedule is a plan of its own where it matters on one pipeline rank, whichever is named first.
TEST_F(SearchTest, KnowsSchedulesApartWithoutAPipeline) {
  const auto found = [&](const std::string& schedules) {
    return search_plans(request("moe",
                                "machine: dgx-a100\nplan: {ranks: 8, batch: 8, micro_batch: 2, tensor: 1, "
                                "pipeline: 1, expert: 4, virtual_stages: 1, recompute: none, zero: 0, "
                                "sequence_parallel: false, schedule: [" +
                                    schedules + "]}\n"));
  };
  const SearchResult one = found("gpipe, 1f1b, combined-1f1b"), other = found("combined-1f1b, 1f1b, gpipe");
  EXPECT_EQ(one.space.points, 3);
  EXPECT_EQ(one.space.refused, 0);
  ASSERT_FALSE(one.simulated.empty());
  ASSERT_FALSE(other.simulated.empty());
  EXPECT_EQ(one.simulated.front().iteration, other.simulated.front().iteration);
  EXPECT_EQ(one.simulated.front().plan.schedule, other.simulated.front().plan.schedule);
}

// Computations that were measured to be faster than the model says, as those of a single plan may be.
TEST_F(SearchTest, EqualsBruteForceWithMeasuredTimes) {
  const std::string space =
      "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 16\n  tensor: [1, 2, 4]\n  pipeline: [1, 2]\n"
      "  recompute: [none, full]\n  zero: [0, 1]\n  sequence_parallel: false\n  micro_batch: " +
      std::string(kCaseStep == 1 ? "[1, 2]\n" : "[2]\n");
  const SearchRequest modelled = request("wide", space);
  const Study study = modelled.read({{"plan.tensor=4"},
                                     {"plan.pipeline=1"},
                                     {"plan.micro_batch=2"},
                                     {"plan.recompute=full"},
                                     {"plan.zero=0"}});
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  Profile profile;
  for (const JobEvent& event : list_events(run_study(prepare_study(study)), *cost).computations)
    profile.computations.push_back({key_of(event.name, event.phase, event.work), {event.time / 8}});
  const std::string file = (folder_ / "times.csv").string();
  std::ofstream(file) << write_profile_csv(profile);
  SearchRequest search = request("wide", space + "profile: " + file + "\n");
  search.top = 4;
  const SearchResult bounded = search_plans(search);
  search.brute_force = true;
  const SearchResult all = search_plans(search);
  expect_sum(bounded.space);
  EXPECT_EQ(texts(bounded.ranking), texts(all.ranking));
  EXPECT_EQ(all.ranking.front().plan.tensor, 4);
  EXPECT_NE(search_plans(modelled).ranking.front().plan.tensor, 4);
}

// More than twice the stages, and no multiple of them.
TEST_F(SearchTest, TakesOddNumbersOfMicroBatches) {
  for (const char* const batch : {"24", "40", "56"}) {
    const SearchResult found = search_plans(
        request("gpt", std::string("machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: ") + batch +
                           "\n  micro_batch: 1\n  tensor: 1\n  pipeline: 1\n  zero: 0\n  recompute: none\n"));
    EXPECT_GT(found.space.simulated, 0) << batch;
    EXPECT_FALSE(found.ranking.empty());
  }
}

// No replicas at all share 30 samples among 8 ranks: two do.
TEST_F(SearchTest, TriesTheBatchOfAReplicaWhereNotAllRanksShareOne) {
  const SearchResult found = search_plans(request(
      "gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 30\n  zero: 0\n  recompute: none\n"));
  EXPECT_TRUE(std::ranges::any_of(found.ranking,
                                  [](const PlanOutcome& plan) { return plan.plan.micro_batch() == 15; }));
}

TEST_F(SearchTest, FindsTheWholeFront) {
  SearchRequest search = request("gpt", kSmallSpace);
  search.front = {SearchObjective::time, SearchObjective::memory};
  search.top = 1;
  const SearchResult bounded = search_plans(search);
  search.brute_force = true;
  const SearchResult all = search_plans(search);
  EXPECT_EQ(texts(bounded.front), texts(all.front));
  EXPECT_GT(all.front.size(), 1u);
}

TEST_F(SearchTest, FindsTheFrontOfWhatIsAskedFor) {
  using enum SearchObjective;
  int number = 0;
  for (const std::vector<SearchObjective>& objectives :
       {std::vector{time, cost}, {energy, memory}, {cost, energy, memory}, {throughput, cost, energy}}) {
    if (number++ % kCaseStep != 0) continue;
    SearchRequest search = request(
        "gpt", std::string("machine: [dgx-a100, dgx-h100]\nplan:\n  ranks: [4, 8]\n  global_batch: 16\n"
                           "  zero: [0, 3]\n  recompute: [none, full]\n  micro_batch: ") +
                   (kCaseStep == 1 ? "[1, 2]\n" : "4\n"));
    search.objective = objectives.front();
    search.front = objectives;
    search.top = 1;
    const SearchResult bounded = search_plans(search);
    search.brute_force = true;
    const SearchResult all = search_plans(search);
    EXPECT_EQ(texts(bounded.front), texts(all.front));
    EXPECT_EQ(texts(bounded.ranking), texts(all.ranking));
    EXPECT_LT(bounded.space.simulated, all.space.simulated);
    // By definition: nothing is better than a plan of the front in one of them and as good in the others.
    for (const PlanOutcome& plan : all.front) {
      for (const PlanOutcome& other : all.simulated) {
        bool worse = false, better = false;
        for (const SearchObjective objective : objectives) {
          worse |= score_of(objective, other.figures()) > score_of(objective, plan.figures());
          better |= score_of(objective, other.figures()) < score_of(objective, plan.figures());
        }
        EXPECT_FALSE(better && !worse) << texts({plan})[0] << " beside " << texts({other})[0];
      }
    }
  }
}

TEST_F(SearchTest, KeepsToABudget) {
  const std::string study = kSmallSpace + "training: {tokens: 1B}\n";
  SearchRequest search = request("gpt", study);
  search.brute_force = true;
  const SearchResult all = search_plans(search);
  // An iteration reads 16 samples of 64 tokens.
  const auto cost = [&](const PlanOutcome& plan) { return plan.cost->value * std::ceil(1e9 / (16 * 64)); };
  std::vector<double> costs;
  for (const PlanOutcome& plan : all.simulated) costs.push_back(cost(plan));
  std::ranges::sort(costs);
  const double budget = 1.001 * costs[costs.size() / 2];
  const auto affordable = static_cast<std::size_t>(std::ranges::upper_bound(costs, budget) - costs.begin());
  ASSERT_LT(affordable, costs.size());
  search.brute_force = false;
  search.top = 1000;
  search.budget = Money(budget);
  const SearchResult within = search_plans(search);
  EXPECT_EQ(within.ranking.size(), affordable);
  EXPECT_GT(within.space.refusals.at("budget").plans, 0);
  for (const PlanOutcome& plan : within.ranking) EXPECT_LE(cost(plan), budget);
  expect_sum(within.space);
  // What comes nearest is the cheapest of all.
  search.budget = Money(0.5 * costs.front());
  const SearchResult none = search_plans(search);
  EXPECT_TRUE(none.ranking.empty());
  ASSERT_TRUE(none.late->training_cost().has_value());
  EXPECT_DOUBLE_EQ(none.late->training_cost()->value, costs.front());
}

TEST_F(SearchTest, RefusesToGoByWhatIsNotKnown) {
  const std::string plan = "plan:\n  ranks: 8\n  global_batch: 16\n";
  SearchRequest search = request("gpt", "machine: tpu-v5p\n" + plan);
  search.objective = SearchObjective::cost;
  EXPECT_THAT(error_of([&] { search_plans(search); }), testing::HasSubstr("has no price"));
  search.objective = SearchObjective::energy;
  EXPECT_THAT(error_of([&] { search_plans(search); }), testing::HasSubstr("does not say what it draws"));
  search = request("gpt", "machine: [dgx-h100, tpu-v4]\n" + plan);
  search.objective = SearchObjective::energy;
  EXPECT_THAT(error_of([&] { search_plans(search); }), testing::HasSubstr("host_power"));
  search = request("gpt", "machine: dgx-h100\n" + plan);
  search.budget = Money(5);
  EXPECT_THAT(error_of([&] { search_plans(search); }), testing::HasSubstr("nothing says how long that is"));
}

TEST_F(SearchTest, AnswersTheSameWithAnyNumberOfThreads) {
  SearchRequest search = request("gpt", kSmallSpace);
  const SearchResult one = search_plans(search);
  search.threads = 3;
  EXPECT_EQ(texts(search_plans(search).ranking), texts(one.ranking));
}

// Every plan of the space is simulated; none is faster than its bound, and each takes what `armilla
// run` says.
TEST_F(SearchTest, BoundsAreBelowTimes) {
  std::mt19937 random(7);
  const auto one_of = [&](std::initializer_list<std::string> choices) {
    return choices.begin()[std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(random)];
  };
  std::int64_t plans = 0;
  double tightness = 0;
  for (int round = 0; round < 32; round += kCaseStep) {
    const std::string model = one_of({"gpt", "moe", "wide"});
    const std::string study =
        "machine: " + one_of({"dgx-a100", "dgx-h100", "tpu-v4", "azure-nc96", "nvl-pairs", "dgx-1"}) +
        "\nnetwork: " +
        one_of({"analytical", "analytical:switching=store-and-forward", "analytical-unshared"}) +
        "\nplan:\n  ranks: " + one_of({"4", "8"}) +
        "\n  global_batch: 16\n  tensor: any\n  context: [1, 2]\n" +
        "  pipeline: [1, 2, 4]\n  schedule: any\n  micro_batch: [" + one_of({"1", "2", "1, 4"}) +
        "]\n  zero: [" + one_of({"0", "1", "2", "3"}) + "]\n  recompute: [" +
        one_of({"none", "selective", "full"}) + "]\n  sequence_parallel: [" + one_of({"true", "false"}) +
        "]\n  overlap_tensor: [" + one_of({"true", "false"}) + "]\n  context_method: [" +
        one_of({"ring", "all-to-all"}) + "]\n  overlap: [" + one_of({"true", "false"}) +
        "]\n  overlap_pipeline: [" + one_of({"true", "false"}) + "]\n  overlap_parameters: [" +
        one_of({"true", "false"}) +
        "]\n  offload: " + one_of({"none", "none", "optimizer", "activations", "[optimizer, activations]"}) +
        "\n" + one_of({"", "  virtual_stages: 2\n"}) +
        one_of({"", "  order: [pipeline-tensor-context-data, tensor-data-context-pipeline]\n",
                "  order: [context-data-pipeline-tensor, data-tensor-context-pipeline]\n"}) +
        one_of({"", "  host: compiled\n", "  issue_time: 3us\n"}) + one_of({"", "  step_overhead: 40us\n"});
    SearchRequest search = request(model, study);
    search.brute_force = true;
    const SearchResult result = search_plans(search);
    SCOPED_TRACE(study);
    expect_sum(result.space);
    for (const PlanOutcome& plan : result.simulated) {
      EXPECT_LE(plan.bound, plan.iteration) << texts({plan})[0];
      tightness += in_seconds(plan.bound) / in_seconds(plan.iteration);
      ++plans;
    }
    if (result.simulated.empty()) continue;
    const PlanOutcome& some = result.simulated[random() % result.simulated.size()];
    const armilla::Run run = run_study(prepare_study(search.read(settings_of(result, some))));
    EXPECT_EQ(run.result.iteration, some.iteration) << texts({some})[0];
    EXPECT_EQ(run.memory.needed(), some.memory.needed()) << texts({some})[0];
  }
  EXPECT_GT(plans, 400 / kCaseStep);
  // Bounds of nothing would pass, too. Of all cases together: few of them may have loose ones.
  EXPECT_TRUE(kCaseStep != 1 || tightness / static_cast<double>(plans) > 0.6) << tightness;
}

// Walking through a space changes one request from point to point.
TEST_F(SearchTest, VisitsThePlansThatItsNumbersStandFor) {
  const SearchSpace space(request("moe",
                                  "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 16\n  tensor: any\n"
                                  "  pipeline: any\n  expert: any\n  micro_batch: [1, 2, 16]\n"
                                  "  recompute_blocks: [0, 2]\n  stage_blocks: any\n"
                                  "  offload: any\n  overlap: any\n  order: [tensor-context-data-pipeline, "
                                  "pipeline-tensor-context-data]\n"));
  const auto fields = [](const PlanRequest& r) {
    return std::tuple(r.tensor, r.pipeline, r.context, r.micro_batch, r.balance_stages, r.plan.expert,
                      r.plan.virtual_stages, r.plan.schedule, r.plan.recompute, r.plan.recompute_blocks,
                      r.plan.stage_blocks, r.plan.zero_stage, r.plan.offload_optimizer,
                      r.plan.offload_activations, r.plan.overlap, r.plan.order);
  };
  std::int64_t visited = 0, passed_over = 0;
  const auto visit = [&](std::int64_t point, const PlanRequest& plan, std::int64_t cut_alike) {
    EXPECT_EQ(fields(plan), fields(space.request_of(0, point))) << point;
    ++visited;
    // Some are passed over, as if they could not be cut so.
    if (plan.micro_batch != 16) return Onward::next;
    passed_over += cut_alike;
    return Onward::past_cut_alike;
  };
  std::int64_t skipped = 0;
  space.for_each(0, visit, [&](std::int64_t points, const std::string&) { skipped += points; });
  EXPECT_EQ(visited + passed_over + skipped, space.points());
  EXPECT_GT(visited, 100);
  EXPECT_GT(passed_over, 0);
  EXPECT_GT(skipped, 0);
}

TEST_F(SearchTest, ReadsAxes) {
  const SearchRequest search =
      request("gpt",
              "machine: dgx-a100\nplan:\n  ranks: [8, 16]\n  tensor: any\n  pipeline: 1..6\n  data: 2\n"
              "  zero: \"0,3\"\n  offload: [optimizer]\n  order: [tensor, data, context, pipeline]\n"
              "  micro_batch: [1, 4..16, 8]\n  expert: \"1..2, 3\"\n  virtual_stages: 1\n"
              "  stage_blocks: [even, balanced, [2, 2, 2, 2]]\n");
  std::vector<std::string> axes;
  for (const SearchAxis& axis : search.axes) {
    std::string text = axis.key;
    for (const std::string& value : axis.values) text += " " + value;
    axes.push_back(text);
  }
  EXPECT_THAT(axes, testing::ElementsAre("plan.ranks 8 16", "plan.tensor any", "plan.pipeline 1 2 4 6",
                                         "plan.expert 1 2 3", "plan.micro_batch 1 4 8 16",
                                         "plan.stage_blocks even balanced [2, 2, 2, 2]", "plan.zero 0 3"));
  const SearchRequest lists =
      request("gpt",
              "machine: [dgx-a100, ./a..b.yaml]\nplan:\n  ranks: [64..256]\n  stage_blocks: [4, 4]\n"
              "  offload: [none, [optimizer, activations]]\n");
  ASSERT_EQ(lists.axes.size(), 3u);
  EXPECT_THAT(lists.axes[0].values, testing::ElementsAre("dgx-a100", "./a..b.yaml"));
  EXPECT_THAT(lists.axes[1].values, testing::ElementsAre("64", "128", "256"));
  EXPECT_THAT(lists.axes[2].values, testing::ElementsAre("none", "[optimizer, activations]"));
}

// As in a run.
TEST_F(SearchTest, ContextParallelismIsWhatAllOtherDegreesLeave) {
  const SearchResult result = search_plans(
      request("gpt",
              "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 16\n  tensor: [1, 2]\n  pipeline: 2\n"
              "  data: 2\n  micro_batch: 1\n  recompute: none\n  zero: 0\n  virtual_stages: 1\n"));
  ASSERT_FALSE(result.ranking.empty());
  for (const PlanOutcome& plan : result.ranking) {
    EXPECT_EQ(plan.plan.data(), 2);
    EXPECT_EQ(plan.plan.tensor * plan.plan.context, 2);
  }
}

// A list of parts that are computed again is one value, as a plan has it.
TEST_F(SearchTest, PartsAreOneValueUnlessListsOfThemAreListed) {
  const auto axes = [&](const std::string& parts) {
    return request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  recompute_modules: " + parts + "\n").axes;
  };
  EXPECT_TRUE(axes("[moe, layernorm]").empty());
  EXPECT_TRUE(axes("mlp").empty());
  ASSERT_EQ(axes("[[moe, layernorm], mlp]").size(), 1u);
  EXPECT_THAT(axes("[[moe, layernorm], mlp]")[0].values, testing::ElementsAre("[moe, layernorm]", "mlp"));
  ASSERT_EQ(axes("[none, mlp]").size(), 1u);
  EXPECT_THAT(axes("[none, mlp]")[0].values, testing::ElementsAre("none", "mlp"));
}

TEST_F(SearchTest, ARangeMayBeginWithNothing) {
  const SearchSpace space(request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  zero: 0..3\n"));
  const auto axis = std::ranges::find(space.axes(), "plan.zero", &SearchAxis::key);
  ASSERT_NE(axis, space.axes().end());
  EXPECT_THAT(axis->values, testing::ElementsAre("0", "1", "2", "3"));
}

TEST_F(SearchTest, ARangeOfDegreesBeginsWithOne) {
  EXPECT_THAT(error_of([&] { request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  tensor: 0..4\n"); }),
              testing::HasSubstr("the range '0..4' begins too low\n  hint: the lowest value is 1"));
}

TEST_F(SearchTest, AnyRecomputationIsEveryOne) {
  const SearchSpace space(request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  recompute: any\n"));
  const auto axis = std::ranges::find(space.axes(), "plan.recompute", &SearchAxis::key);
  ASSERT_NE(axis, space.axes().end());
  EXPECT_THAT(axis->values, testing::ElementsAre("none", "selective", "operators", "block:1", "block:2",
                                                 "block:4", "full"));
  // Each is a plan of its own, and the settings of one make it.
  const SearchRequest all =
      request("gpt",
              "machine: dgx-a100\nplan: {ranks: 2, batch: 2, micro_batch: 1, tensor: 1, "
              "pipeline: 2, virtual_stages: 1, zero: 0, sequence_parallel: false, "
              "recompute: [none, 'block:2', full]}\n");
  SearchRequest brute = all;
  brute.brute_force = true;
  const SearchResult found = search_plans(brute);
  ASSERT_EQ(found.simulated.size(), 3u);
  EXPECT_EQ(found.simulated[0].plan.recompute, Recompute::none);
  EXPECT_EQ(found.simulated[1].plan.recompute, Recompute::block);
  EXPECT_EQ(found.simulated[1].plan.recompute_blocks, 2);
  EXPECT_EQ(found.simulated[2].plan.recompute_blocks, 0);
  // All blocks of a stage are full, and none is none.
  SearchRequest named = request("gpt",
                                "machine: dgx-a100\nplan: {ranks: 2, batch: 2, micro_batch: 1, tensor: 1, "
                                "pipeline: 2, virtual_stages: 1, zero: 0, sequence_parallel: false, "
                                "recompute: [none, 'block:0', 'block:4', full]}\n");
  named.brute_force = true;
  const SearchResult once = search_plans(named);
  EXPECT_EQ(once.simulated.size(), 2u);
  EXPECT_EQ(once.space.refusals.at("equal").plans, 2);
  const Study study = all.read(settings_of(found, found.simulated[1]));
  EXPECT_EQ(study.request.plan.recompute_blocks, 2);
}

// Weights that are older than those of other schedules are tried where somebody asks for them, and said.
TEST_F(SearchTest, AnyScheduleIsOneThatFlushes) {
  const std::string text =
      "machine: dgx-a100\nplan: {ranks: 8, global_batch: 16, tensor: 1, pipeline: 4, virtual_stages: 1, "
      "micro_batch: 1, recompute: none, zero: 0, sequence_parallel: false, schedule: ";
  const SearchSpace space(request("gpt", text + "any}\n"));
  const auto axis = std::ranges::find(space.axes(), "plan.schedule", &SearchAxis::key);
  ASSERT_NE(axis, space.axes().end());
  EXPECT_THAT(axis->values, testing::Contains("gpipe"));
  EXPECT_THAT(axis->values, testing::Not(testing::Contains("pipedream-2bw")));
  EXPECT_THAT(search_plans(request("gpt", text + "[1f1b, gpipe]}\n")).notes, testing::IsEmpty());
  EXPECT_THAT(search_plans(request("gpt", text + "[1f1b, pipedream-2bw]}\n")).notes,
              testing::ElementsAre(testing::HasSubstr("pipedream-2bw never flushes")));
}

// Chunks of one rank are no other plan, nor blocks that are cut evenly anyway.
TEST_F(SearchTest, OnePlanByManyNamesIsLookedAtOnce) {
  for (const std::string machine : {"dgx-a100",
                                    "{device: a10, devices: [{ranks: 1, device: a40}], dimensions: "
                                    "[{kind: Ring, size: 8, bandwidth: 9GB/s, latency: 1us}]}"}) {
    const SearchResult result = search_plans(
        request("gpt", "machine: " + machine +
                           "\nplan: {ranks: 8, global_batch: 16, tensor: 1, pipeline: [1, 2], "
                           "virtual_stages: [1, 2], stage_blocks: [even, balanced, [4, 4]], micro_batch: 1, "
                           "recompute: none, zero: 0, sequence_parallel: false}\n"));
    std::set<std::string> plans;
    for (const PlanOutcome& plan : result.simulated)
      EXPECT_TRUE(plans.insert(text_of(plan.plan)).second) << text_of(plan.plan);
    EXPECT_EQ(std::ranges::count(result.simulated, 1, [](auto& plan) { return plan.plan.pipeline; }), 1);
  }
}

TEST_F(SearchTest, RefusesWhatIsNoSpace) {
  const auto refusal = [&](const std::string& plan) {
    return error_of([&] { search_plans(request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n" + plan)); });
  };
  EXPECT_THAT(refusal("  tensor: []\n"), testing::HasSubstr("plan.tensor: the list is empty"));
  EXPECT_THAT(refusal("  tensor: 8..2\n"), testing::HasSubstr("'8..2' is not a range"));
  EXPECT_THAT(refusal("  tensor: 1,,2\n"), testing::HasSubstr("a value is missing between the commas"));
  EXPECT_THAT(refusal("  tensor: [1, any]\n"), testing::HasSubstr("it does not stand beside others"));
  EXPECT_THAT(refusal("  tensor: [1, x]\n"), testing::HasSubstr("'x' is not a whole number"));
  EXPECT_THAT(refusal("  schedule: [1f1b, zigzag]\n"), testing::HasSubstr("zigzag"));
  EXPECT_THAT(refusal("  schedule: combined\n"), testing::HasSubstr("did you mean 'combined-1f1b'"));
  // What no plan can have is said once, and not of every plan.
  EXPECT_THAT(refusal("  expert_dispatch: one-hot\n"),
              testing::HasSubstr("plan.expert_dispatch one-hot without plan.expert_capacity"));
  EXPECT_THAT(refusal("network: torus\n"), testing::HasSubstr("unknown network 'torus'"));
  EXPECT_THAT(refusal("network: packet:cc=none,buffers=1MB\n"),
              testing::HasSubstr("'packet' has no parameter 'buffers'"));
  EXPECT_THAT(refusal("collectives: {algorithms: circle}\n"),
              testing::HasSubstr("unknown collective algorithm 'circle'"));
  for (const char* fixed : {"framework: megatron,pytorch", "precision: [bf16, fp16]", "seed: any"}) {
    EXPECT_THAT(refusal(std::string("  ") + fixed + '\n'), testing::HasSubstr("this key takes one value"))
        << fixed;
  }
  EXPECT_THAT(error_of([&] { request("gpt", "machine: any\n"); }),
              testing::HasSubstr("'any' is not a value of this key"));
}

TEST_F(SearchTest, SaysWhatIsNearestWhereNothingFits) {
  SearchRequest search = request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 8\n");
  search.memory_share = 1e-6;
  const SearchResult result = search_plans(search);
  EXPECT_TRUE(result.ranking.empty());
  ASSERT_TRUE(result.nearest.has_value());
  EXPECT_GT(result.nearest->memory.needed(), Bytes(0));
  expect_sum(result.space);
}

// A deadline and the memory may each stand in the way of other plans, or both of all.
TEST_F(SearchTest, TellsDeadlineFromMemoryWhereNothingIsLeft) {
  SearchRequest search = fast_or_small();
  const SearchResult all = search_plans(search);
  ASSERT_EQ(all.ranking.size(), 2u);
  const PlanOutcome &fast = all.ranking[0], &small = all.ranking[1];
  const double least = (static_cast<double>(small.memory.needed().value) + 1) /
                       static_cast<double>(small.memory.capacity.value);
  search.deadline = fast.iteration;
  search.memory_share = least;
  SearchResult none = search_plans(search);
  EXPECT_EQ(none.late->iteration, small.iteration);
  EXPECT_EQ(none.nearest->memory.needed(), fast.memory.needed());
  EXPECT_FALSE(none.late_bound.has_value());
  search.deadline = Time(1);
  none = search_plans(search);
  EXPECT_EQ(none.late->iteration, small.iteration);
  EXPECT_TRUE(none.late_beside_unfit);
  EXPECT_FALSE(none.nearest.has_value());
  search.memory_share = least / 2;
  none = search_plans(search);
  EXPECT_FALSE(none.late.has_value());
  EXPECT_EQ(none.nearest->memory.needed(), small.memory.needed());
  ASSERT_TRUE(none.late_bound.has_value());
  EXPECT_GT(none.late_bound->iteration, Time(1));
  EXPECT_LE(none.late_bound->iteration, fast.iteration);
  EXPECT_EQ(none.space.refusals.at("deadline").plans, 2);
}

TEST_F(SearchTest, EndsWhenToldTo) {
  SearchRequest search = request("gpt", kSmallSpace);
  search.brute_force = true;
  int asked = 0;
  search.stopped = [&] { return ++asked > 3; };
  const SearchResult result = search_plans(search);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.space.simulated, 3);
  EXPECT_EQ(result.ranking.size(), 3u);
  EXPECT_GT(result.space.not_looked_at, 0);
  expect_sum(result.space);
}

TEST_F(SearchTest, EndsWhileItLooksAtPlans) {
  SearchRequest search = request(
      "gpt", kSmallSpace + "  overlap: any\n  prefetch: any\n  overlap_tensor: any\n  offload: any\n");
  search.stopped = [] { return true; };
  const SearchResult result = search_plans(search);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.space.simulated, 0);
  // Not all of them were looked at before.
  EXPECT_GT(result.space.not_looked_at, result.space.points / 2);
  EXPECT_LT(result.space.refused, result.space.points / 2);
  EXPECT_GT(result.space.points, 2048);
  expect_sum(result.space);
}

TEST_F(SearchTest, LooksAtMachinesAndRanks) {
  SearchRequest search =
      request("gpt",
              "machine: [dgx-a100, dgx-h100]\nplan:\n  ranks: [8, 16]\n  global_batch: 32\n"
              "  zero: 1\n  tensor: 2\n  micro_batch: 1\n  recompute: none\n");
  search.brute_force = true;
  const SearchResult result = search_plans(search);
  expect_sum(result.space);
  EXPECT_EQ(result.axes[0].key, "machine");
  EXPECT_EQ(result.axes[1].key, "plan.ranks");
  std::set<std::pair<std::string, std::int64_t>> seen;
  for (const PlanOutcome& plan : result.simulated) {
    seen.emplace(plan.values[0], plan.plan.ranks);
    EXPECT_EQ(plan.values[1], std::to_string(plan.plan.ranks));
    EXPECT_EQ(plan.values[0], plan.machine);
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(SearchTest, SaysWhereMoreIsWorthTrying) {
  const auto edges = [&](const std::string& micro_batch) {
    const SearchResult found = search_plans(
        request("gpt",
                "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 8192\n  tensor: 1\n  pipeline: "
                "8\n  virtual_stages: 1\n  recompute: none\n  zero: 0\n" +
                    micro_batch));
    EXPECT_EQ(found.ranking.front().values.size(), found.axes.size());
    return found.edges;
  };
  // The default ends at 256 samples, and a whole batch fills the devices better.
  const std::vector<SearchEdge> found = edges("");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "plan.micro_batch");
  EXPECT_EQ(found[0].widen, "plan.micro_batch any");
  EXPECT_GT(std::stoi(found[0].next), std::stoi(found[0].value));
  // Whoever names values knows them.
  EXPECT_TRUE(edges("  micro_batch: [1, 2]\n").empty());
}

TEST_F(SearchTest, KnowsWhenPlansComputeUnlikeBatches) {
  const SearchResult unlike =
      search_plans(request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  tensor: [1, 4]\n"));
  EXPECT_LT(unlike.fewest_samples, unlike.most_samples);
  for (const SearchEdge& edge : unlike.edges)
    EXPECT_EQ(edge.outcome.plan.global_batch(), unlike.ranking.front().plan.global_batch());
  const SearchResult alike = search_plans(
      request("gpt", "machine: dgx-a100\nplan:\n  ranks: 8\n  tensor: [1, 4]\n  global_batch: 16\n"));
  EXPECT_EQ(alike.fewest_samples, 16);
  EXPECT_EQ(alike.most_samples, 16);
}

TEST_F(SearchTest, ImagesHaveNoSequencesToDivide) {
  const std::string text =
      "model: {name: resnet50}\nmachine: dgx-h100\nplan:\n  ranks: 8\n  global_batch: 64\n  tensor: 2\n";
  SearchRequest images = request("gpt", "");
  images.read = [text](const std::vector<Override>& settings) {
    return read_study(Config::parse(text, "study.yaml", settings, expand_name));
  };
  const SearchResult found = search_plans(images);
  EXPECT_FALSE(found.ranking.empty());
  EXPECT_FALSE(found.space.refusals.contains("plan.sequence_parallel"));
}

// As with the degree of expert parallelism, 1 and any are the plan that has none.
TEST_F(SearchTest, DegreesOfExpertsAreOneWhereThereAreNone) {
  for (const char* const degrees : {"any", "1"}) {
    const SearchResult found = search_plans(
        request("gpt", std::string("machine: dgx-a100\nplan:\n  ranks: 2\n  global_batch: 4\n  expert: any\n"
                                   "  expert_tensor: ") +
                           degrees + "\n"));
    EXPECT_FALSE(found.ranking.empty()) << degrees;
    EXPECT_EQ(found.space.refusals.count("plan.expert_tensor"), 0U) << degrees;
  }
}

}  // namespace
}  // namespace armilla
