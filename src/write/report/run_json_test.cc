#include "write/report/run_json.h"

#include <gmock/gmock.h>

#include "write/format/json_text.h"
#include "write/report/documented_keys_testing.h"
#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void expect_no_nulls(const Json& value, const std::string& path) {
  for (const auto& [key, child] : value.items()) {
    if (child.is_structured()) expect_no_nulls(child, path + "." + key);
    EXPECT_FALSE(child.is_null()) << path << "." << key;
  }
}

TEST(RunJson, HasTheFixedNames) {
  const Json document = Json::parse(write_run_json(example_run()));
  EXPECT_EQ(document["schema"], "armilla.run/1");
  EXPECT_EQ(document["iteration_time_s"], 10.7e-6);
  EXPECT_EQ(document["ranks"], 4);
  EXPECT_EQ(document["memory"]["peak_bytes"], 3712);
  // Per rank, two products of fc1 (512 flops each, it has no input gradient) and three of fc2 (256 each).
  EXPECT_EQ(document["metrics"]["model_flops"], 4 * (2 * 512 + 3 * 256));
  EXPECT_DOUBLE_EQ(document["metrics"]["mfu"], 7168 / (10.7e-6 * 4e9));
  ASSERT_EQ(document["collectives"].size(), 1u);
  EXPECT_EQ(document["collectives"][0], Json::parse(R"({"kind": "all-reduce",
                            "algorithm": "reduce-scatter direct, all-reduce ring, all-gather direct",
                            "group_size": 4, "axis": "world", "count": 2, "bytes": 832, "time_s": 7.9e-6,
                            "queued_s": 5.996e-7, "bus_bandwidth_bytes_per_s": 157974683.54430377,
                            "link_share": 0.3449367088607595,
                            "per_rank": {"ranks": 4, "calls": 2.0, "bytes": 832, "time_s": 5.9e-6,
                                         "most_time_s": 5.9e-6, "queued_s": 5.996e-7,
                                         "bus_bandwidth_bytes_per_s": 211525423.72881356,
                                         "link_share": 0.461864406779661}})"));
}

TEST(RunJson, RolesShareOutTheIteration) {
  const Json document = Json::parse(write_run_json(example_run()));
  EXPECT_EQ(document["roles"],
            Json::parse(R"([{"role": "data-parallel rank", "representative_rank": 0, "ranks": 4,
                                                "finish_s": 1.07e-5, "compute_s": 7e-6,
                                                "communication_s": 5.9996e-6,
                                                "exposed_communication_s": 3.5e-6, "idle_s": 2e-7,
                                                "host_waits_s": 0}])"));
}

TEST(RunJson, NamesPartsOnlyWhereTheyAreComputedAgain) {
  Plan plan;
  EXPECT_EQ(plan_json(plan)["recompute_modules"], Json::array());
  plan.recompute = Recompute::full;
  EXPECT_EQ(plan_json(plan)["recompute_modules"], Json::array());
  plan.recompute = Recompute::selective;
  EXPECT_EQ(plan_json(plan)["recompute_modules"], Json::array({"core_attn"}));
}

TEST(RunJson, ListsSoManyCallsOfEveryRoleAndCountsTheOthers) {
  armilla::Run run = example_run();
  const CollectiveRecord call = run.result.collectives.front();
  run.result.collectives.assign(20'000, call);
  Json document = Json::parse(write_run_json(run));
  EXPECT_EQ(document["collective_calls"].size(), std::size_t{20'000});
  EXPECT_EQ(document["collective_calls_left_out"], 0);
  run.result.collectives.resize(20'007, call);
  document = Json::parse(write_run_json(run));
  EXPECT_EQ(document["collective_calls"].size(), std::size_t{20'000});
  EXPECT_EQ(document["collective_calls_left_out"], 7);
}

TEST(RunJson, TimesReadBackToTheSamePicosecond) {
  armilla::Run run = example_run();
  for (const std::int64_t ps : {1L, 10'700'001L, 123'456'789'012'345L}) {
    run.result.iteration = Time(ps);
    const double seconds = Json::parse(write_run_json(run))["iteration_time_s"];
    EXPECT_EQ(from_seconds(seconds), Time(ps));
  }
}

TEST(RunJson, EveryKeyIsDocumentedAndEveryDocumentedKeyExists) {
  armilla::Run run = example_run();
  run.study.network.parameters["contention"] = {"ports", ""};
  run.study.collectives.algorithms_by_kind[CollectiveKind::all_gather] = {"ring"};
  run.memory.buffer(MemoryBuffer::gradient_buckets) = Bytes(416);
  run.roles = {
      {"data-parallel rank", 0, 1, run.memory, {}, {{0, false, Bytes(448), {}, run.memory.gradients}}}};
  run.study.what_if.ranks = {{{3, 3}, 1.2, "a"}};
  run.study.what_if.links = {{1, {0, 1}, 0.5, 1, "b"}};
  run.study.what_if.jitter = {0.05, 3};
  run.study.what_if.damage = {{"leaf0-spine1", 0.5, "c"}};
  run.ideal = microseconds(10);
  run.study.training.samples = 1e6;
  run.graph.transfers = {{1, 0, Bytes(64), PeerKind::position, 0}};
  const std::uint32_t send = run.graph.programs[0].add(NodeKind::send, Phase::forward, 0, 0, 0, {});
  run.result.classes[0].others = {{microseconds(1), microseconds(2), send}};
  run.goodput = Goodput();
  run.like = LikeMeasured();
  run.study.machine.device.price = Money(1);
  std::set<std::string> emitted = keys_of(Json::parse(write_run_json(run)));
  // Several jobs have no expense of their own.
  run.jobs = {{"a", "mlp", "0-3", 4, Time(0), Time(1), Time(2)}};
  emitted.merge(keys_of(Json::parse(write_run_json(run))));
  EXPECT_EQ(emitted, documented_keys("docs/formats/run_json.md"));
}

TEST(RunJson, AnEmptyRunHasNoNumbersThatJsonLacks) {
  armilla::Run run;
  const Json document = Json::parse(write_run_json(run));
  EXPECT_EQ(document["iteration_time_s"], 0.0);
  EXPECT_THAT(document["collectives"], IsEmpty());
  expect_no_nulls(document, "");

  // A peak of zero makes the share of the peak infinite, which is not a number.
  armilla::Run no_peak = example_run();
  no_peak.peak_rate = FlopRate(0);
  EXPECT_TRUE(Json::parse(write_run_json(no_peak))["metrics"]["mfu"].is_null());
}

TEST(RunJson, KeepsTheBusiestLinksOnlyAndCountsTheOthers) {
  armilla::Run run = example_run();
  run.result.links.resize(250, run.result.links[0]);
  const Json document = Json::parse(write_run_json(run));
  EXPECT_EQ(document["links"].size(), kMostLinks);
  EXPECT_EQ(document["links_used"], 250);
}

TEST(RunJson, CollectsNotesAndWarningsOnce) {
  armilla::Run run = example_run();
  run.warnings = run.result.warnings;
  run.model.notes = run.notes;
  const Json document = Json::parse(write_run_json(run));
  EXPECT_EQ(document["notes"], Json::parse(R"(["the batch dimension of 'x' is 2",
                                              "unverified figures of device TestChip: memory_efficiency"])"));
  EXPECT_EQ(document["warnings"], Json::parse(R"(["the link rail is used in one direction only"])"));
}

TEST(RunJson, NamesThatAreNotUtf8AreReplaced) {
  armilla::Run run = example_run();
  run.model.name = "m\xff";
  EXPECT_EQ(Json::parse(write_run_json(run))["model"]["name"], "m\xef\xbf\xbd");
}

}  // namespace
}  // namespace armilla
