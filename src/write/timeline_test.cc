#include "write/timeline.h"

#include <gmock/gmock.h>

#include <map>

#include "write/example_run.h"

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
