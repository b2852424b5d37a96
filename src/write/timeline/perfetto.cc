#include "write/timeline/perfetto.h"

#include <algorithm>
#include <map>
#include <protozero/pbf_builder.hpp>

#include "write/timeline.h"

namespace armilla {
namespace {

using Tag = protozero::pbf_tag_type;

// Field numbers are those of perfetto_trace.proto: Trace, TracePacket, TrackDescriptor, ProcessDescriptor,
// CounterDescriptor, TrackEvent, DebugAnnotation and InternedData.
enum class TraceField : Tag { packet = 1 };
enum class PacketField : Tag {
  timestamp = 8,
  sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  track_descriptor = 60
};
enum class TrackField : Tag {
  uuid = 1,
  name = 2,
  process = 3,
  parent_uuid = 5,
  counter = 8,
  child_ordering = 11,
  rank = 12
};
enum class ProcessField : Tag { pid = 1, name = 6 };
enum class CounterField : Tag { unit = 3 };
enum class EventField : Tag {
  category_iids = 3,
  annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  counter_value = 30,
  flow_ids = 47
};
enum class AnnotationField : Tag { name_iid = 1, int_value = 4, double_value = 5, string_value_iid = 17 };
enum class InternedField : Tag { categories = 1, names = 2, annotation_names = 3, annotation_strings = 29 };
enum class InternedString : Tag { iid = 1, text = 2 };

using TraceBuilder = protozero::pbf_builder<TraceField>;
using PacketBuilder = protozero::pbf_builder<PacketField>;
using TrackBuilder = protozero::pbf_builder<TrackField>;
using ProcessMessage = protozero::pbf_builder<ProcessField>;
using CounterBuilder = protozero::pbf_builder<CounterField>;
using EventBuilder = protozero::pbf_builder<EventField>;
using AnnotationBuilder = protozero::pbf_builder<AnnotationField>;
using InternedBuilder = protozero::pbf_builder<InternedField>;
using StringBuilder = protozero::pbf_builder<InternedString>;

// One sequence: strings interned once are valid for all packets after them. Its first packet says that there
// is no earlier state.
constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kIncrementalStateCleared = 1, kNeedsIncrementalState = 2;
// TrackEvent.Type: TYPE_SLICE_BEGIN, TYPE_SLICE_END and TYPE_COUNTER.
constexpr std::int32_t kSliceBegin = 1, kSliceEnd = 2, kCounter = 4;
// CounterDescriptor.UNIT_COUNT and UNIT_SIZE_BYTES, and TrackDescriptor.ChildTracksOrdering's EXPLICIT.
constexpr std::int32_t kCount = 2, kBytes = 3;
enum class Holds : std::uint8_t { slices, bytes, numbers };  // of a track
constexpr std::int32_t kExplicitOrdering = 3;

// Interned: names are written once, events refer to them by number. This makes most of the difference in size
// to JSON.
class Strings {
 public:
  void add(std::string_view text) {
    if (ids_.emplace(text, ids_.size() + 1).second) order_.push_back(text);
  }
  std::uint64_t id(std::string_view text) const { return ids_.at(text); }
  void write(InternedBuilder& data, InternedField field) const {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      StringBuilder entry(data, field);
      entry.add_uint64(InternedString::iid, i + 1);
      entry.add_string(InternedString::text, order_[i].data(), order_[i].size());
    }
  }

 private:
  std::map<std::string_view, std::uint64_t> ids_;
  std::vector<std::string_view> order_;
};

struct Event {
  std::int64_t nanoseconds = 0;
  std::uint64_t track = 0;
  std::int32_t type = kSliceEnd;
  const TraceSlice* begins = nullptr;  // of a begin
  std::int64_t value = 0;              // of a counter
};

// Trace viewers count in nanoseconds; picoseconds are rounded to the nearest.
std::int64_t in_nanoseconds(Time time) {
  return (time.value + 500) / 1000;
}

class PerfettoWriter {
 public:
  explicit PerfettoWriter(const Timeline& timeline) : timeline_(timeline), trace_(text_) {}

  std::string write() {
    write_strings();
    std::vector<Event> events = write_tracks();
    // Stable: at equal times a track's events stay in their order, an end before the next begin.
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.nanoseconds < b.nanoseconds; });
    for (const Event& event : events) write_event(event);
    return std::move(text_);
  }

 private:
  template <class Visit>
  void for_each_slice(Visit visit) const {
    for (const TraceProcess& process : timeline_.processes) {
      for (const TraceTrack& track : process.tracks) {
        for (const TraceSlice& slice : track.slices) visit(slice);
      }
    }
  }

  void write_strings() {
    for_each_slice([&](const TraceSlice& slice) {
      names_.add(slice.name);
      categories_.add(slice.category);
      for (const TraceArgument& argument : slice.arguments) {
        keys_.add(argument.key);
        if (const auto* value = std::get_if<std::string_view>(&argument.value)) values_.add(*value);
      }
    });
    PacketBuilder packet(trace_, TraceField::packet);
    packet.add_uint32(PacketField::sequence_id, kSequence);
    packet.add_uint32(PacketField::sequence_flags, kIncrementalStateCleared);
    InternedBuilder data(packet, PacketField::interned_data);
    categories_.write(data, InternedField::categories);
    names_.write(data, InternedField::names);
    keys_.write(data, InternedField::annotation_names);
    values_.write(data, InternedField::annotation_strings);
  }

  // Returns the events of all tracks, track by track.
  std::vector<Event> write_tracks() {
    std::vector<Event> events;
    std::uint64_t next_uuid = 1;
    for (const TraceProcess& process : timeline_.processes) {
      const std::uint64_t parent = next_uuid++;
      write_process(process, parent);
      std::int32_t position = 0;
      for (const TraceTrack& track : process.tracks) {
        // Numbers of tracks only have to be unique.
        write_track(track.name, next_uuid, parent, position++, Holds::slices);
        for (const TraceSlice& slice : track.slices) {
          events.push_back({in_nanoseconds(slice.start), next_uuid, kSliceBegin, &slice, 0});
          events.push_back({in_nanoseconds(slice.end), next_uuid, kSliceEnd, nullptr, 0});
        }
        ++next_uuid;
      }
      for (const TraceCounter& counter : process.counters) {
        write_track(counter.name, next_uuid, parent, position++,
                    counter.in_bytes ? Holds::bytes : Holds::numbers);
        for (const TraceCounter::Sample& sample : counter.samples)
          events.push_back({in_nanoseconds(sample.at), next_uuid, kCounter, nullptr, sample.value});
        ++next_uuid;
      }
    }
    return events;
  }

  void write_process(const TraceProcess& process, std::uint64_t uuid) {
    PacketBuilder packet(trace_, TraceField::packet);
    packet.add_uint32(PacketField::sequence_id, kSequence);
    TrackBuilder descriptor(packet, PacketField::track_descriptor);
    descriptor.add_uint64(TrackField::uuid, uuid);
    descriptor.add_string(TrackField::name, process.name);
    {
      // Process 0 is the idle task to trace viewers, so ranks count from 1 here.
      ProcessMessage identity(descriptor, TrackField::process);
      identity.add_int32(ProcessField::pid, process.rank + 1);
      identity.add_string(ProcessField::name, process.name);
    }
    descriptor.add_enum(TrackField::child_ordering, kExplicitOrdering);
  }

  void write_track(const std::string& name, std::uint64_t uuid, std::uint64_t parent, std::int32_t position,
                   Holds holds) {
    PacketBuilder packet(trace_, TraceField::packet);
    packet.add_uint32(PacketField::sequence_id, kSequence);
    TrackBuilder descriptor(packet, PacketField::track_descriptor);
    descriptor.add_uint64(TrackField::uuid, uuid);
    descriptor.add_string(TrackField::name, name);
    descriptor.add_uint64(TrackField::parent_uuid, parent);
    if (holds != Holds::slices)
      CounterBuilder(descriptor, TrackField::counter)
          .add_enum(CounterField::unit, holds == Holds::bytes ? kBytes : kCount);
    descriptor.add_int32(TrackField::rank, position);
  }

  void write_event(const Event& event) {
    PacketBuilder packet(trace_, TraceField::packet);
    packet.add_uint64(PacketField::timestamp, static_cast<std::uint64_t>(event.nanoseconds));
    packet.add_uint32(PacketField::sequence_id, kSequence);
    if (event.begins != nullptr) packet.add_uint32(PacketField::sequence_flags, kNeedsIncrementalState);
    EventBuilder builder(packet, PacketField::track_event);
    builder.add_enum(EventField::type, event.type);
    builder.add_uint64(EventField::track_uuid, event.track);
    if (event.begins != nullptr) describe(builder, *event.begins);
    if (event.type == kCounter) builder.add_int64(EventField::counter_value, event.value);
  }

  void describe(EventBuilder& builder, const TraceSlice& slice) const {
    builder.add_uint64(EventField::name_iid, names_.id(slice.name));
    // Flows are numbers that a viewer connects in the order of time, so the same field serves both ends.
    builder.add_uint64(EventField::category_iids, categories_.id(slice.category));
    for (const std::uint64_t flow : slice.flows_out) builder.add_fixed64(EventField::flow_ids, flow);
    for (const std::uint64_t flow : slice.flows_in) builder.add_fixed64(EventField::flow_ids, flow);
    for (const TraceArgument& argument : slice.arguments) {
      AnnotationBuilder annotation(builder, EventField::annotations);
      annotation.add_uint64(AnnotationField::name_iid, keys_.id(argument.key));
      if (const auto* text = std::get_if<std::string_view>(&argument.value)) {
        annotation.add_uint64(AnnotationField::string_value_iid, values_.id(*text));
      } else if (const auto* number = std::get_if<std::int64_t>(&argument.value)) {
        annotation.add_int64(AnnotationField::int_value, *number);
      } else {
        annotation.add_double(AnnotationField::double_value, std::get<double>(argument.value));
      }
    }
  }

  const Timeline& timeline_;
  std::string text_;
  TraceBuilder trace_;
  Strings names_, categories_, keys_, values_;
};

}  // namespace

std::string write_perfetto(const Timeline& timeline) {
  return PerfettoWriter(timeline).write();
}

std::string write_perfetto(const Run& run, const TimelineSelection& selection) {
  return write_perfetto(make_timeline(run, selection));
}

}  // namespace armilla
