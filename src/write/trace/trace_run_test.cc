// The writers of runs on a run without a model, as traces and text workloads give it.
#include <gmock/gmock.h>

#include <algorithm>

#include "write/format/json_text.h"
#include "write/report.h"
#include "write/report/run_json.h"
#include "write/timeline.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// One of two ranks: a host operation, a send, a load from remote memory, a replayed collective and a pause.
armilla::Run trace_run() {
  armilla::Run run;
  run.workload = "llm/trace";
  run.study.machine.name = "network configuration";
  run.study.machine.device.name = "npu";
  run.study.machine.dimensions = {
      {"dim0", DimensionKind::ring, 2, gigabytes_per_second(50), nanoseconds(500)}};
  run.study.plan.ranks = 2;
  run.study.compute.name = "trace";
  run.study.network.name = "astra2-unaware";
  Graph& graph = run.graph;
  graph.ranks = 2;
  graph.program_of = {0, 0};
  graph.families = {world_family(2)};
  graph.transfers = {{1, 7, Bytes(4096)}};
  Program& program = graph.programs.emplace_back();
  program.role = "rank";
  const auto add = [&](NodeKind kind, Lane lane, const char* name, std::uint64_t payload) {
    program.add(kind, Phase::other, graph.names.add(name), -1, payload, {});
    program.lane.back() = lane;
  };
  add(NodeKind::delay, Lane::host, "launch", 1'000'000);
  add(NodeKind::send, Lane::communication, "send", 0);
  add(NodeKind::memory_load, Lane::communication, "load", 64);
  add(NodeKind::delay, Lane::communication, "broadcast", 2'000'000);
  add(NodeKind::delay, Lane::none, "pause", 1'000);
  run.result.iteration = microseconds(9);
  run.result.ranks = 2;
  run.result.class_of = {0, 0};
  RankClass& ranks = run.result.classes.emplace_back();
  ranks.ranks = 2;
  ranks.finish = microseconds(9);
  for (std::uint32_t node = 0; node < program.size(); ++node)
    ranks.others.push_back({microseconds(node), microseconds(node + 1), node});
  return run;
}

TEST(TraceRun, ReportLeavesOutWhatOnlyModelsHave) {
  EXPECT_EQ(write_run_text(trace_run(), false),
            "llm/trace on network configuration\n"
            "  machine  npu\n"
            "           dim0: Ring of 2, 50.00 GB/s and 500.0 ns per link\n"
            "  plan     2 ranks\n"
            "  models   compute trace, network astra2-unaware\n"
            "\n"
            "Time of the run  9.000 us\n"
            "\n"
            "Time of a rank  % of the run\n"
            "  role  ranks  compute    %  communication  exposed    %   idle\n"
            "  rank      2      0 s  0.0            0 s      0 s  0.0  100.0\n"
            "  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
            "  █ compute  ▓ exposed communication  ░ idle\n"
            "\n"
            "Communication of a rank  of those that take part\n"
            "  communication  ranks  calls      bytes      time  queued  bus bandwidth  of limit\n"
            "  send               2      1  4.000 KiB  1.000 us             4.096 GB/s     8.2 %\n");
}

TEST(TraceRun, JsonHasNullsForTheModel) {
  const Json document = Json::parse(write_run_json(trace_run()));
  EXPECT_EQ(document["workload"], "llm/trace");
  EXPECT_EQ(document["iteration_time_s"], 9e-6);
  for (const char* key : {"model", "plan", "memory", "metrics"}) EXPECT_TRUE(document[key].is_null()) << key;
  EXPECT_EQ(document["network"]["name"], "astra2-unaware");
}

TEST(TraceRun, OtherNodesHaveTracks) {
  const armilla::Run run = trace_run();
  const Timeline timeline = make_timeline(run);
  ASSERT_EQ(timeline.processes.size(), 1u);
  std::vector<std::string> shown;
  for (const TraceTrack& track : timeline.processes[0].tracks) {
    for (const TraceSlice& slice : track.slices) shown.push_back(track.name + ": " + std::string(slice.name));
  }
  EXPECT_THAT(shown, ElementsAre("point to point: send", "remote memory: load", "host: launch",
                                 "communication: broadcast"));
  const TraceSlice& send = timeline.processes[0].tracks[0].slices[0];
  EXPECT_EQ(std::get<std::int64_t>(send.arguments.back().value), 4096);
}

}  // namespace
}  // namespace armilla
