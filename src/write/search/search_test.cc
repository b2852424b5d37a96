#include "write/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "write/report/documented_keys_testing.h"
#include "write/report/example_run_testing.h"
#include "write/report/run_json.h"

namespace armilla {
namespace {

PlanOutcome outcome(std::int64_t tensor, Time iteration, Bytes memory) {
  PlanOutcome plan;
  plan.values = {std::to_string(tensor), "1f1b"};
  plan.plan.ranks = 8;
  plan.plan.tensor = tensor;
  plan.plan.batch = tensor;
  plan.machine = "dgx-a100";
  plan.iteration = iteration;
  plan.bound = nanoseconds(1);
  plan.compute = Time(iteration.value / 2);
  plan.exposed_communication = Time(iteration.value / 4);
  plan.energy = Energy(3.5);
  plan.memory.weights = memory;
  plan.memory.buffer(MemoryBuffer::context) = Bytes(7);
  plan.memory.capacity = Bytes(100);
  return plan;
}

SearchResult example_search() {
  SearchResult result;
  result.axes = {{"plan.tensor", {"1", "2", "4"}, true}, {"plan.schedule", {"1f1b"}, false}};
  result.simulated = {outcome(2, nanoseconds(1000), Bytes(60)), outcome(1, nanoseconds(1500), Bytes(50))};
  result.ranking = result.front = result.simulated;
  result.space.points = 3;
  result.space.simulated = 2;
  result.space.refused = 1;
  result.space.refusals["memory"] = {1, "needs 200 B, of 100 B"};
  result.neighbours = {{"plan.tensor", "1", result.simulated[1]},
                       {"plan.tensor", "4", {}, "does not divide <heads>"},
                       {"plan.expert_tensor", "1", result.simulated[1], "needs another", "plan.zero", "1"}};
  result.ranking[1].exposed_by_kind = {{"data", nanoseconds(375)}};
  result.neighbours[0].outcome->exposed_by_kind = {{"tensor", nanoseconds(300)}, {"data", nanoseconds(75)}};
  result.edges = {{"plan.tensor", "2", "4", outcome(4, nanoseconds(900), Bytes(70)), "--tp any"}};
  return result;
}

// All degrees are listed, and none says how many devices they make.
TEST(WriteSearch, JobsOfSeveralSizesHaveAColumnOfTheirRanks) {
  SearchResult result = example_search();
  EXPECT_EQ(write_search_text(result, false).find("ranks  "), std::string::npos);
  result.ranking[1].plan.ranks = 4;
  EXPECT_THAT(write_search_text(result, false), testing::HasSubstr("ranks  tp  dp"));
  result.axes.push_back({"plan.ranks", {"4", "8"}, true});
  for (PlanOutcome& plan : result.ranking) plan.values.push_back(std::to_string(plan.plan.ranks));
  EXPECT_THAT(write_search_text(result, false), testing::HasSubstr("tp  ranks  dp"));
}

TEST(WriteSearch, RanksPlansAndSaysWhatBecameOfTheOthers) {
  const std::string text = write_search_text(example_search(), false);
  EXPECT_THAT(text, testing::HasSubstr(
                        "Best plan: tp 2\n  1.000 us for an iteration of 8 samples, 67 B of memory\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("  tp 2 is the largest that was tried, and 4 would be better (900.0 ns, "
                                 "-10.0 %): --tp any tries more\n"));
  SearchResult unlike = example_search();
  unlike.fewest_samples = 4;
  unlike.most_samples = 8;
  EXPECT_THAT(write_search_text(unlike, false),
              testing::HasSubstr("  plans compute 4 to 8 samples in an iteration: name a global batch"));
  EXPECT_THAT(text, testing::HasSubstr("+50.0 %"));
  EXPECT_THAT(text, testing::HasSubstr(
                        "3 plans: 1 refused, 0 proven slower without a whole simulation, 2 simulated\n"));
  EXPECT_THAT(text, testing::HasSubstr("refused: does not fit (1, such as: needs 200 B, of 100 B)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("tp 4 +refused"));
  EXPECT_THAT(text, testing::ContainsRegex("etp 1 with zero 1 +1.500 us"));
  EXPECT_THAT(text, testing::ContainsRegex("the next best +1.500 us +.50.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("Of the exposed communication, by kind:\ninstead +data +tensor\n"
                                           "the next best +.375.0 ns +.0 s\n"));
  // What is legal together with another change alone is not compared where others are.
  EXPECT_THAT(text, testing::HasSubstr(
                        "tp matters most: its best other value, 1, comes to +50.0 % over the best plan"));
  const Json json = Json::parse(write_search_json(example_search(), nullptr));
  EXPECT_EQ(json["matters_most"]["key"], "plan.tensor");
  EXPECT_EQ(json["matters_most"]["needs"], nullptr);
  SearchResult together = example_search();
  std::erase_if(together.neighbours, [](const Neighbour& neighbour) { return neighbour.needs.empty(); });
  EXPECT_THAT(write_search_text(together, false),
              testing::HasSubstr("etp matters most: its best other value, 1 with zero 1, comes to +50.0 %"));
  EXPECT_EQ(Json::parse(write_search_json(together, nullptr))["matters_most"]["needs"], "plan.zero=1");
  EXPECT_EQ(json["neighbours"][0]["outcome"]["exposed_by_kind_s"]["data"], 75e-9);
  EXPECT_EQ(json["ranking"][0]["exposed_by_kind_s"], nullptr);
}

TEST(WriteSearch, MarksNeighboursThatBreakALimit) {
  SearchResult result = example_search();
  result.neighbours[0].broken = BrokenLimit{"deadline", "takes 1.500 us, and the limit is 1.200 us"};
  result.neighbours[2].broken = BrokenLimit{"memory", "needs 57 B of the 50 B that it may take"};
  const std::string text = write_search_text(result, false);
  EXPECT_THAT(text, testing::ContainsRegex("tp 1 +1.500 us, beyond the deadline +.50.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("et\\.\\.\\. 1 +1.500 us .* B, does not fit\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("matters most")));
  const Json json = Json::parse(write_search_json(result, nullptr));
  EXPECT_EQ(json["neighbours"][0]["refusal"], "takes 1.500 us, and the limit is 1.200 us");
  EXPECT_EQ(json["neighbours"][2]["refusal"], "needs 57 B of the 50 B that it may take");
  EXPECT_EQ(json["matters_most"], nullptr);
}

TEST(WriteSearch, SaysWhatIsNearestWhereNothingFits) {
  SearchResult result = example_search();
  result.ranking.clear();
  result.simulated.clear();
  result.front.clear();
  result.nearest = outcome(4, Time(0), Bytes(200));
  result.nearest_room = result.nearest->memory.capacity;
  EXPECT_THAT(write_search_text(result, false),
              testing::HasSubstr("No plan fits. The nearest needs 207 B of the device's 100 B: tp 4\n"));
  result.nearest_room = Bytes(90);
  EXPECT_THAT(write_search_text(result, false),
              testing::HasSubstr("needs 207 B of the 90 B that it may take of the device's 100 B: tp 4\n"));
  result.late_bound = LateBound{Time(2'000'000'000'000)};
  EXPECT_THAT(
      write_search_text(result, false),
      testing::HasSubstr("No plan fits, nor is one within the deadline. The smallest needs 207 B of the 90 "
                         "B that it may take\nof the device's 100 B: tp 4\nThe fastest takes at least "
                         "2.000 s\n"));
  result.late_bound.reset();
  result.late = outcome(4, Time(3'000'000'000'000), Bytes(50));
  result.late_beside_unfit = true;
  EXPECT_THAT(
      write_search_text(result, false),
      testing::HasSubstr("No plan that fits is within the deadline. The fastest takes 3.000 s: tp 4\nOf "
                         "what does not fit, the smallest needs 207 B of the 90 B"));
  result.nearest.reset();
  EXPECT_THAT(
      write_search_text(result, false),
      testing::HasSubstr("No plan is within the deadline. The fastest that fits takes 3.000 s: tp 4\n"));
  result.late_beside_unfit = false;
  EXPECT_THAT(write_search_text(result, false),
              testing::HasSubstr("No plan is within the deadline. The fastest takes 3.000 s: tp 4\n"));
  EXPECT_EQ(Json::parse(write_search_json(result, nullptr))["late"]["iteration_time_s"], 3);
  EXPECT_EQ(Json::parse(write_search_json(result, nullptr))["best"], nullptr);
  EXPECT_THAT(write_search_svg(result), testing::HasSubstr("no plan was simulated"));
}

TEST(WriteSearch, SaysWhatWasNotLookedAt) {
  SearchResult result = example_search();
  result.complete = false;
  result.space.points = 7;
  result.space.not_looked_at = 4;
  EXPECT_THAT(write_search_text(result, false), testing::HasSubstr("1 refused, "));
  EXPECT_THAT(write_search_text(result, false), testing::HasSubstr("2 simulated, 4 not looked at\n"));
  EXPECT_THAT(write_search_json(result, nullptr), testing::HasSubstr("\"not_looked_at\": 4"));
  result.ranking.clear();
  EXPECT_THAT(write_search_text(result, false),
              testing::StartsWith("No plan was found before the search was interrupted.\n"));
  result.complete = true;
  EXPECT_THAT(write_search_text(result, false), testing::StartsWith("No plan can be run.\n"));
}

TEST(WriteSearch, EveryKeyIsDocumented) {
  SearchResult result = example_search();
  result.ranking[1].exposed_by_kind.clear();  // its keys are kinds
  result.nearest = outcome(4, Time(0), Bytes(200));
  result.nearest_room = result.nearest->memory.capacity;
  const armilla::Run run = example_run();
  Json document = Json::parse(write_search_json(result, &run));
  EXPECT_EQ(document["best"], run_json(run));
  // What has a page of its own, and what has the keys of the ranking.
  document["best"] = document["nearest"] = document["late"] = document["neighbours"][0]["outcome"] =
      document["neighbours"][2]["outcome"] = document["edges"][0]["outcome"] = nullptr;
  document["front"] = Json::array();
  for (Json& plan : document["ranking"]) plan["plan"] = plan["values"] = nullptr;
  const std::set<std::string> emitted = keys_of(document);
  EXPECT_EQ(emitted, documented_keys("docs/formats/search_json.md"));
}

TEST(WriteSearch, TableOfAllPlans) {
  EXPECT_EQ(
      write_search_csv(example_search()),
      "rank,plan.tensor,plan.schedule,data,global_batch,iteration_time_s,samples_per_s,energy_j,cost_usd,"
      "compute_s,exposed_communication_s,least_time_s,memory_peak_bytes,memory_needed_bytes,"
      "training_cost_usd,on_front\n"
      "1,2,1f1b,4,8,0.000001,8000000,3.5,,0.0000005,0.00000025,0.000000001,60,67,,1\n"
      "2,1,1f1b,8,8,0.0000015,5333333.333333333,3.5,,0.00000075,0.000000375,0.000000001,50,57,,1\n");
}

TEST(WriteSearch, ShowsWhatTheSearchGoesBy) {
  SearchResult result = example_search();
  result.objective = SearchObjective::energy;
  result.front_of = {SearchObjective::energy, SearchObjective::cost};
  result.simulated[0].cost = Money(16);
  result.simulated[1].cost = Money(8);
  result.simulated[1].energy = Energy(7);
  result.ranking = result.front = result.simulated;
  // 8 samples: 3.5 J of them are an eighth of 437.5 J for a thousand.
  const std::string text = write_search_text(result, false);
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("Front")));
  result.whole_front = true;
  result.ranking.pop_back();
  EXPECT_THAT(write_search_text(result, false),
              testing::ContainsRegex("Front of energy, cost: 2 plans that no other beats in all of these\n"
                                     "tp .*USD/k samples .*\n 2 .*2000 .*0.1215 .*\n 1 .*1000 .*0.2431"));
  EXPECT_THAT(text, testing::HasSubstr("+100.0 %"));
  result.fewest_samples = 4;
  result.most_samples = 8;
  EXPECT_THAT(write_search_text(result, false), testing::Not(testing::HasSubstr("like with like")));
  result.tokens_per_sample = 1000;
  EXPECT_THAT(write_search_text(result, false), testing::HasSubstr("USD/M tokens"));
  const std::string svg = write_search_svg(result);
  EXPECT_THAT(svg, testing::HasSubstr("cost, USD per million tokens"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  result.ranking.clear();
  result.late = result.simulated[0];
  result.budget = Money(1e6);
  result.late->cost = Money(2);
  result.late->training_iterations = 1e6;
  EXPECT_THAT(write_search_text(result, false),
              testing::HasSubstr("takes 1.000 us for an iteration and costs 2.000M USD for"));
}

TEST(WriteSearch, PlotIsWellFormed) {
  SearchResult result = example_search();
  result.axes[1].values = {"1f1b", "<b>"};
  const std::string svg = write_search_svg(result);
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, testing::HasSubstr("&lt;b&gt;"));
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '<'), std::count(svg.begin(), svg.end(), '>'));
  EXPECT_THAT(svg, testing::HasSubstr(" width=\"760\""));
  result.axes[1].values = {"1f1b", std::string(200, 'x')};
  EXPECT_THAT(write_search_svg(result), testing::Not(testing::HasSubstr(" width=\"760\"")))
      << "values are written in front of the next line";
}

}  // namespace
}  // namespace armilla
