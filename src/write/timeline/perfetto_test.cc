// Decodes traces with raw field numbers from Perfetto's .proto files, apart from the writer's own.
#include "write/timeline/perfetto.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

struct DecodedEvent {
  std::uint64_t timestamp = 0, track = 0, name = 0, category = 0;
  int type = 0;
  std::int64_t value = 0;
  std::vector<std::uint64_t> flows;
  std::map<std::string, std::string> annotations;
};

struct DecodedTrack {
  std::string name;
  std::uint64_t parent = 0;
  int pid = 0, ordering = 0, rank = -1;
  bool counts = false;
};

using Strings = std::map<std::uint64_t, std::string>;

struct Decoded {
  Strings categories, names, keys, values;
  std::map<std::uint64_t, DecodedTrack> tracks;
  std::vector<DecodedEvent> events;
  std::vector<std::uint32_t> flags;  // of the packets
  std::set<std::uint32_t> sequences;

  std::string path(std::uint64_t uuid) const {
    const DecodedTrack& track = tracks.at(uuid);
    return track.parent == 0 ? track.name : path(track.parent) + "/" + track.name;
  }
};

void decode_string(protozero::pbf_reader entry, Strings& strings) {
  std::uint64_t iid = 0;
  std::string text;
  while (entry.next()) {
    if (entry.tag() == 1) {
      iid = entry.get_uint64();
    } else {
      EXPECT_EQ(entry.tag(), 2u);
      text = entry.get_string();
    }
  }
  EXPECT_NE(iid, 0u);
  EXPECT_TRUE(strings.emplace(iid, text).second) << "two strings called " << iid;
}

void decode_interned(protozero::pbf_reader data, Decoded& trace) {
  while (data.next()) {
    switch (data.tag()) {
      case 1:
        decode_string(data.get_message(), trace.categories);
        break;
      case 2:
        decode_string(data.get_message(), trace.names);
        break;
      case 3:
        decode_string(data.get_message(), trace.keys);
        break;
      case 29:
        decode_string(data.get_message(), trace.values);
        break;
      default:
        FAIL() << "interned data field " << data.tag();
    }
  }
}

void decode_track(protozero::pbf_reader message, Decoded& trace) {
  DecodedTrack track;
  std::uint64_t uuid = 0;
  while (message.next()) {
    switch (message.tag()) {
      case 1:
        uuid = message.get_uint64();
        break;
      case 2:
        track.name = message.get_string();
        break;
      case 3: {
        protozero::pbf_reader process = message.get_message();
        ASSERT_TRUE(process.next(1));
        track.pid = process.get_int32();
        ASSERT_TRUE(process.next(6));
        EXPECT_EQ(process.get_string(), track.name);
        break;
      }
      case 5:
        track.parent = message.get_uint64();
        break;
      case 8: {
        protozero::pbf_reader counter = message.get_message();
        ASSERT_TRUE(counter.next(3));
        EXPECT_EQ(counter.get_enum(), 3) << "bytes";
        track.counts = true;
        break;
      }
      case 11:
        track.ordering = message.get_enum();
        break;
      case 12:
        track.rank = message.get_int32();
        break;
      default:
        FAIL() << "track field " << message.tag();
    }
  }
  EXPECT_NE(uuid, 0u);
  EXPECT_TRUE(track.parent == 0 || trace.tracks.count(track.parent)) << "child before parent";
  EXPECT_TRUE(trace.tracks.emplace(uuid, track).second);
}

void decode_annotation(protozero::pbf_reader message, const Decoded& trace, DecodedEvent& event) {
  std::string key, value;
  while (message.next()) {
    switch (message.tag()) {
      case 1:
        key = trace.keys.at(message.get_uint64());
        break;
      case 4:
        value = std::to_string(message.get_int64());
        break;
      case 5:
        value = std::to_string(message.get_double());
        break;
      case 17:
        value = trace.values.at(message.get_uint64());
        break;
      default:
        FAIL() << "annotation field " << message.tag();
    }
  }
  event.annotations[key] = value;
}

void decode_event(protozero::pbf_reader message, std::uint64_t timestamp, Decoded& trace) {
  DecodedEvent event;
  event.timestamp = timestamp;
  while (message.next()) {
    switch (message.tag()) {
      case 3:
        event.category = message.get_uint64();
        break;
      case 4:
        decode_annotation(message.get_message(), trace, event);
        break;
      case 9:
        event.type = message.get_enum();
        break;
      case 10:
        event.name = message.get_uint64();
        break;
      case 11:
        event.track = message.get_uint64();
        break;
      case 30:
        event.value = message.get_int64();
        break;
      case 47:
        event.flows.push_back(message.get_fixed64());
        break;
      default:
        FAIL() << "event field " << message.tag();
    }
  }
  trace.events.push_back(event);
}

Decoded decode(const std::string& bytes) {
  Decoded trace;
  protozero::pbf_reader file(bytes);
  while (file.next(1)) {
    protozero::pbf_reader packet = file.get_message();
    std::uint64_t timestamp = 0;
    std::uint32_t flags = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          timestamp = packet.get_uint64();
          break;
        case 10:
          trace.sequences.insert(packet.get_uint32());
          break;
        case 11:
          decode_event(packet.get_message(), timestamp, trace);
          break;
        case 12:
          decode_interned(packet.get_message(), trace);
          break;
        case 13:
          flags = packet.get_uint32();
          break;
        case 60:
          decode_track(packet.get_message(), trace);
          break;
        default:
          ADD_FAILURE() << "packet field " << packet.tag();
          packet.skip();
      }
    }
    trace.flags.push_back(flags);
  }
  return trace;
}

// Begins and ends pair up per track, time never runs backwards, and every id has been defined.
void expect_well_formed(const Decoded& trace) {
  std::map<std::uint64_t, int> open;
  std::map<std::uint64_t, int> flow_ends;
  std::uint64_t now = 0;
  for (const DecodedEvent& event : trace.events) {
    EXPECT_GE(event.timestamp, now);
    now = event.timestamp;
    EXPECT_TRUE(trace.tracks.count(event.track));
    EXPECT_EQ(event.type == 4, trace.tracks.at(event.track).counts);
    if (event.type == 4) continue;
    if (event.type == 2) {
      EXPECT_EQ(--open[event.track], 0) << "an end without a begin on " << trace.path(event.track);
      continue;
    }
    EXPECT_EQ(event.type, 1);
    EXPECT_EQ(++open[event.track], 1) << "overlapping slices on " << trace.path(event.track);
    EXPECT_TRUE(trace.names.count(event.name));
    EXPECT_TRUE(trace.categories.count(event.category));
    for (const std::uint64_t flow : event.flows) ++flow_ends[flow];
  }
  for (const auto& [track, count] : open) EXPECT_EQ(count, 0) << trace.path(track);
  for (const auto& [flow, ends] : flow_ends) EXPECT_EQ(ends, 2) << "flow " << flow;
}

TEST(Perfetto, TracksFormATreePerRankRole) {
  const Decoded trace = decode(write_perfetto(example_run()));
  std::vector<std::string> paths;
  for (const auto& [uuid, track] : trace.tracks) paths.push_back(trace.path(uuid));
  const std::string role = "data-parallel rank (rank 0, one of 4 alike)";
  EXPECT_THAT(paths, ElementsAre(role, role + "/compute", role + "/collectives", role + "/collectives (2)",
                                 role + "/chunks on nvlink", role + "/chunks on nvlink (2)",
                                 role + "/chunks on rail"));
  EXPECT_EQ(trace.tracks.at(1).pid, 1);
  EXPECT_EQ(trace.tracks.at(1).ordering, 3);
  EXPECT_EQ(trace.tracks.at(4).rank, 2);
}

TEST(Perfetto, CountersTellBytes) {
  armilla::Run run = example_run();
  run.roles = {
      {"data-parallel rank", 0, 1, run.memory, {}, {{0, false, Bytes(448), {}, run.memory.gradients}}}};
  const Decoded trace = decode(write_perfetto(run));
  expect_well_formed(trace);
  std::vector<std::int64_t> values;
  for (const DecodedEvent& event : trace.events) {
    if (event.type != 4) continue;
    EXPECT_EQ(trace.tracks.at(event.track).name, "memory");
    values.push_back(event.value);
  }
  ASSERT_FALSE(values.empty());
  EXPECT_EQ(values.back(), run.memory.peak().value - run.memory.temporary.value);
}

TEST(Perfetto, OneSequenceStartsWithClearedStateAndNeedsItLater) {
  const Decoded trace = decode(write_perfetto(example_run()));
  EXPECT_THAT(trace.sequences, ElementsAre(1u));
  EXPECT_EQ(trace.flags[0], 1u);
  EXPECT_EQ(std::count(trace.flags.begin() + 1, trace.flags.end(), 1u), 0);
  EXPECT_EQ(std::count(trace.flags.begin(), trace.flags.end(), 2u), 13);  // every begin
}

TEST(Perfetto, SlicesAreBalancedOrderedAndNamed) {
  const Decoded trace = decode(write_perfetto(example_run()));
  EXPECT_EQ(trace.events.size(), 26u);
  expect_well_formed(trace);
}

TEST(Perfetto, TimesAreRoundedToNanoseconds) {
  const Decoded trace = decode(write_perfetto(example_run()));
  std::vector<std::pair<std::string, std::uint64_t>> begins;
  for (const DecodedEvent& event : trace.events) {
    if (event.type == 1 && trace.path(event.track).ends_with("/compute"))
      begins.emplace_back(trace.names.at(event.name), event.timestamp);
  }
  EXPECT_THAT(begins, ElementsAre(Pair("fc1", 0), Pair("fc2", 2000), Pair("fc2 weight gradient", 3000),
                                  Pair("fc2 input gradient", 4000), Pair("fc1 weight gradient", 5000),
                                  Pair("optimizer", 10200)));
}

TEST(Perfetto, SlicesShorterThanANanosecondStayBalanced) {
  armilla::Run run = example_run();
  RankClass& ranks = run.result.classes[0];
  ranks.computes.clear();
  for (int i = 0; i < 50; ++i) ranks.computes.push_back({Time(370 * i), Time(370 * (i + 1)), 0});
  expect_well_formed(decode(write_perfetto(run)));
}

TEST(Perfetto, FlowsJoinGradientsToTheirAllReduce) {
  const Decoded trace = decode(write_perfetto(example_run()));
  std::map<std::uint64_t, std::vector<std::string>> flows;
  for (const DecodedEvent& event : trace.events) {
    for (const std::uint64_t flow : event.flows) flows[flow].push_back(trace.names.at(event.name));
  }
  EXPECT_THAT(flows, ElementsAre(Pair(1, ElementsAre("fc2 weight gradient", "bucket 0")),
                                 Pair(2, ElementsAre("fc1 weight gradient", "bucket 1"))));
}

TEST(Perfetto, AnnotationsTellWhatACollectiveMoved) {
  const Decoded trace = decode(write_perfetto(example_run()));
  const auto bucket = std::find_if(trace.events.begin(), trace.events.end(), [&](const DecodedEvent& event) {
    return event.type == 1 && trace.names.at(event.name) == "bucket 1";
  });
  ASSERT_NE(bucket, trace.events.end());
  EXPECT_EQ(trace.categories.at(bucket->category), "gradient exchange");
  EXPECT_THAT(
      bucket->annotations,
      UnorderedElementsAre(Pair("layer", "fc1"), Pair("phase", "gradient exchange"),
                           Pair("collective", "all-reduce"), Pair("bytes", "576"),
                           Pair("algorithm", "reduce-scatter direct, all-reduce ring, all-gather direct"),
                           Pair("group_size", "4"), Pair("queued_us", "0.500000"),
                           Pair("bus_bandwidth_gb_per_s", "0.288000")));
}

TEST(Perfetto, NamesAreStoredOnce) {
  armilla::Run run = example_run();
  const std::size_t before = write_perfetto(run).size();
  run.graph.programs[0].name[0] = run.graph.names.add(std::string(1000, 'x'));
  run.result.classes[0].computes.insert(run.result.classes[0].computes.begin(), {Time(0), Time(0), 0});
  EXPECT_LT(write_perfetto(run).size(), before + 1000 + 120);
}

}  // namespace
}  // namespace armilla
