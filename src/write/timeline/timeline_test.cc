#include "write/timeline.h"

#include <gmock/gmock.h>

#include <map>

#include "base/error_testing.h"
#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> track_names(const TraceProcess& process) {
  std::vector<std::string> names;
  for (const TraceTrack& track : process.tracks) names.push_back(track.name);
  return names;
}

TEST(Timeline, HasOneProcessPerRecordedClassAndATrackPerLane) {
  armilla::Run run = example_run();
  RankClass unrecorded;
  unrecorded.representative = 3;
  run.result.classes.push_back(unrecorded);
  const Timeline timeline = make_timeline(run);
  ASSERT_EQ(timeline.processes.size(), 1u);
  EXPECT_EQ(timeline.processes[0].name, "data-parallel rank (rank 0, one of 4 alike)");
  EXPECT_THAT(track_names(timeline.processes[0]),
              ElementsAre("compute", "collectives", "collectives (2)", "chunks on nvlink",
                          "chunks on nvlink (2)", "chunks on rail"));
}

TEST(Timeline, SaysWhatIf) {
  armilla::Run run = example_run();
  run.study.what_if.ranks = {{{3, 3}, 1.2, "a"}};
  run.study.what_if.jitter = {0.05, 3};
  run.ideal = microseconds(10);
  const Timeline timeline = make_timeline(run);
  ASSERT_EQ(timeline.processes.size(), 2u);
  const TraceProcess& process = timeline.processes[0];
  EXPECT_EQ(process.name, "what if");
  EXPECT_EQ(process.rank, 4);
  EXPECT_THAT(track_names(process), ElementsAre("settings", "settings (2)", "without"));
  EXPECT_EQ(process.tracks[0].slices[0].name, "rank 3 takes 1.2 times as long to compute");
  EXPECT_EQ(process.tracks[0].slices[0].end, run.result.iteration);
  const TraceSlice& without = process.tracks[2].slices[0];
  EXPECT_EQ(without.name, "10.00 us without");
  EXPECT_EQ(without.end, microseconds(10));
  EXPECT_EQ(std::get<std::string_view>(without.arguments[0].value),
            "the iteration takes 10.70 us, 700.0 ns (7.0 %) longer than the 10.00 us without");
}

// A rank of a role whose memory is known: 832 bytes all the time, 100 more while its first node computes.
armilla::Run run_with_memory() {
  armilla::Run run = example_run();
  RoleMemory memory;
  memory.use.weights = Bytes(832);
  memory.use.activations = Bytes(100);
  const std::uint32_t node = run.result.classes[0].computes.front().node;
  memory.over_time = {{node, false, Bytes(100), Bytes(0), Bytes(0)},
                      {node, true, Bytes(0), Bytes(0), Bytes(0)}};
  run.roles = {memory};
  return run;
}

TEST(Timeline, ACounterTellsTheMemory) {
  const armilla::Run run = run_with_memory();
  const Interval& first = run.result.classes[0].computes.front();
  const auto samples = [&](const TimelineSelection& selection) {
    std::vector<std::pair<Time, std::int64_t>> result;
    const Timeline timeline = make_timeline(run, selection);
    EXPECT_EQ(timeline.processes.at(0).counters.at(0).name, "memory");
    for (const TraceCounter::Sample& sample : timeline.processes[0].counters[0].samples)
      result.emplace_back(sample.at, sample.value);
    return result;
  };
  EXPECT_THAT(samples({}), ElementsAre(std::pair(first.start, 932), std::pair(first.end, 832)));
  TimelineSelection window;
  window.from = first.start + picoseconds(1);
  window.until = first.end - picoseconds(1);
  EXPECT_THAT(samples(window), ElementsAre(std::pair(window.from, 932)));
  window.from = window.until = first.end + picoseconds(1);
  EXPECT_THAT(samples(window), ElementsAre(std::pair(window.from, 832)));
  EXPECT_THAT(make_timeline(example_run()).processes[0].counters, IsEmpty());
}

TEST(Timeline, LanesKeepConcurrentSlicesApartAndAreReused) {
  armilla::Run run = example_run();
  RankClass& ranks = run.result.classes[0];
  ranks.chunks.clear();
  for (std::uint32_t i = 0; i < 40; ++i) {
    const Time start = nanoseconds(100 * ((7 * i) % 40));
    ranks.chunks.push_back({start, start + nanoseconds(250), 3, i, 0});
  }
  const Timeline timeline = make_timeline(run);
  std::size_t slices = 0, lanes = 0;
  for (const TraceTrack& track : timeline.processes[0].tracks) {
    if (!track.name.starts_with("chunks on nvlink")) continue;
    ++lanes;
    slices += track.slices.size();
    for (std::size_t i = 1; i < track.slices.size(); ++i)
      EXPECT_LE(track.slices[i - 1].end, track.slices[i].start) << track.name;
  }
  EXPECT_EQ(slices, 40u);
  EXPECT_EQ(lanes, 3u);  // 250 ns each, one more every 100 ns
}

TEST(Timeline, FlowsLeadFromGradientsToTheirCollectives) {
  const armilla::Run run = example_run();
  const Timeline timeline = make_timeline(run);
  std::map<std::uint64_t, std::pair<std::string, std::string>> flows;
  for (const TraceTrack& track : timeline.processes[0].tracks) {
    for (const TraceSlice& slice : track.slices) {
      for (const std::uint64_t id : slice.flows_out) flows[id].first += slice.name;
      for (const std::uint64_t id : slice.flows_in) flows[id].second += slice.name;
    }
  }
  EXPECT_THAT(flows, ElementsAre(std::pair(1, std::pair("fc2 weight gradient", "bucket 0")),
                                 std::pair(2, std::pair("fc1 weight gradient", "bucket 1"))));
}

TEST(Timeline, ChosenRanksShowWhatTheirClassDid) {
  armilla::Run run = example_run();
  run.result.class_of = {0, 0, 0, 1};
  RankClass unrecorded;
  unrecorded.representative = 3;
  run.result.classes.push_back(unrecorded);
  TimelineSelection selection;
  selection.ranks = {{1, 2}, {2, 2}};
  const Timeline timeline = make_timeline(run, selection);
  ASSERT_EQ(timeline.processes.size(), 2u);
  EXPECT_EQ(timeline.processes[0].name, "data-parallel rank (rank 1, one of 4 alike)");
  EXPECT_EQ(timeline.processes[1].rank, 2);
  const Timeline usual = make_timeline(run);
  EXPECT_EQ(track_names(timeline.processes[1]), track_names(usual.processes[0]));
  selection.ranks = {{3, 3}};
  EXPECT_EQ(error_of([&] { make_timeline(run, selection); }),
            "--timeline-ranks: rank 3 was not recorded\n  hint: simulate again with this rank chosen");
  selection.ranks = {{0, 4}};
  EXPECT_EQ(error_of([&] { make_timeline(run, selection); }),
            "--timeline-ranks: there is no rank 4\n  hint: ranks are 0 to 3");
}

TEST(Timeline, AWindowKeepsWhatLiesInItEvenInPart) {
  const armilla::Run run = example_run();
  TimelineSelection selection;
  selection.from = picoseconds(6'600'000);
  selection.until = picoseconds(8'500'000);
  const Timeline timeline = make_timeline(run, selection);
  std::vector<std::string> slices;
  for (const TraceTrack& track : timeline.processes.at(0).tracks) {
    for (const TraceSlice& slice : track.slices)
      slices.push_back(track.name + ": " + std::string(slice.name));
  }
  EXPECT_THAT(slices,
              ElementsAre("collectives: bucket 0", "collectives (2): bucket 1", "chunks on nvlink: bucket 0",
                          "chunks on nvlink: bucket 1", "chunks on rail: bucket 0"));
}

TEST(Timeline, NoRecordingIsNoProcess) {
  armilla::Run run = example_run();
  run.result.classes[0].computes.clear();
  run.result.classes[0].collectives.clear();
  EXPECT_THAT(make_timeline(run).processes, IsEmpty());
}

TEST(Timeline, CollectivesWithoutARecordAndNamelessDimensionsAreShownAllTheSame) {
  armilla::Run run = example_run();
  run.result.collectives.clear();
  run.result.dimensions = {"nvlink"};
  const Timeline timeline = make_timeline(run);
  EXPECT_EQ(timeline.processes[0].tracks.back().name, "chunks on dimension 1");
  const TraceSlice& bucket = timeline.processes[0].tracks[1].slices[0];
  EXPECT_EQ(bucket.name, "bucket 0");
  EXPECT_EQ(bucket.arguments.back().key, "bytes");
}

}  // namespace
}  // namespace armilla
