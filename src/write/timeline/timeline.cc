#include "write/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/units_text.h"
#include "ir/derived/metrics.h"
#include "ir/derived/rank_ranges.h"
#include "ir/derived/stage_table.h"
#include "write/report.h"

namespace armilla {
namespace {

constexpr std::uint32_t kNoSlice = UINT32_MAX;

struct Place {
  std::size_t track = 0;
  std::uint32_t slice = kNoSlice;
};

// Collectives are recorded per program and node, not per rank: all ranks of a class show the same record.
std::uint64_t key_of(std::uint32_t program, std::uint32_t node) {
  return std::uint64_t{program} << 32 | node;
}

using Records = std::unordered_map<std::uint64_t, const CollectiveRecord*>;

Records index_records(const Run& run) {
  Records records;
  for (const CollectiveRecord& record : run.result.collectives)
    records.emplace(key_of(record.program, record.node), &record);
  return records;
}

// What all processes of a timeline share.
struct Context {
  const Run& run;
  const TimelineSelection& selection;
  Records records;
  Peers peers;
};

// Builds the process of one rank from what its class did.
class ProcessBuilder {
 public:
  ProcessBuilder(const Context& context, const RankClass& ranks, std::int32_t rank)
      : context_(context),
        run_(context.run),
        ranks_(ranks),
        program_(run_.graph.programs[ranks.program]),
        places_(program_.size()) {
    process_.rank = rank;
    process_.name = fmt::format("{} (rank {}{})", program_.role, rank,
                                ranks.ranks > 1 ? fmt::format(", one of {} alike", ranks.ranks) : "");
  }

  TraceProcess build(std::uint64_t& next_flow) {
    // Tracks appear in the viewer in this order.
    add_computes();
    add_collectives();
    add_others();
    add_chunks();
    add_flows(next_flow);
    add_memory();
    return std::move(process_);
  }

 private:
  TraceSlice slice_of(std::uint32_t node, Time start, Time end) const {
    TraceSlice slice;
    slice.start = start;
    slice.end = end;
    slice.name = run_.graph.names[program_.name[node]];
    slice.category = name_of(program_.phase[node]);
    if (const std::int32_t layer = program_.layer[node]; layer >= 0) {
      slice.layer = run_.graph.layers[static_cast<std::size_t>(layer)];
      slice.arguments.push_back({"layer", slice.layer});
    }
    slice.arguments.push_back({"phase", name_of(program_.phase[node])});
    return slice;
  }

  // Spreads slices, which come in order of their start, over as few lanes as keep them apart. Returns where
  // each went.
  std::vector<Place> add_lanes(const std::string& name, std::vector<TraceSlice> slices) {
    std::vector<Place> places;
    const std::size_t first = process_.tracks.size();
    for (TraceSlice& slice : slices) {
      std::size_t track = first;
      while (track < process_.tracks.size() && process_.tracks[track].slices.back().end > slice.start)
        ++track;
      if (track == process_.tracks.size()) {
        const std::size_t lane = track - first + 1;
        process_.tracks.push_back({lane == 1 ? name : fmt::format("{} ({})", name, lane), {}});
      }
      std::vector<TraceSlice>& lane = process_.tracks[track].slices;
      places.push_back({track, static_cast<std::uint32_t>(lane.size())});
      lane.push_back(std::move(slice));
    }
    return places;
  }

  // Slices that only reach into the window are shown whole.
  bool is_shown(Time start, Time end) const {
    return end >= context_.selection.from && start <= context_.selection.until;
  }

  // Lanes are filled in order of start.
  void add_nodes(const std::string& name, std::vector<Interval> intervals,
                 void (ProcessBuilder::*describe)(std::uint32_t, TraceSlice&) const) {
    std::erase_if(intervals,
                  [&](const Interval& interval) { return !is_shown(interval.start, interval.end); });
    std::stable_sort(intervals.begin(), intervals.end(),
                     [](const Interval& a, const Interval& b) { return a.start < b.start; });
    std::vector<TraceSlice> slices;
    slices.reserve(intervals.size());
    for (const Interval& interval : intervals) {
      slices.push_back(slice_of(interval.node, interval.start, interval.end));
      (this->*describe)(interval.node, slices.back());
    }
    const std::vector<Place> places = add_lanes(name, std::move(slices));
    for (std::size_t i = 0; i < intervals.size(); ++i) places_[intervals[i].node] = places[i];
  }

  void add_computes() { add_nodes("compute", ranks_.computes, &ProcessBuilder::describe_compute); }
  void add_collectives() {
    add_nodes("collectives", ranks_.collectives, &ProcessBuilder::describe_collective);
  }

  // Pauses occupy nothing and are not shown.
  void add_others() {
    constexpr std::string_view kTracks[] = {"point to point", "remote memory", "host", "communication"};
    for (std::size_t track = 0; track < std::size(kTracks); ++track) {
      std::vector<Interval> chosen;
      for (const Interval& interval : ranks_.others) {
        if (track_of(interval.node) == track) chosen.push_back(interval);
      }
      add_nodes(std::string(kTracks[track]), std::move(chosen), &ProcessBuilder::describe_other);
    }
  }

  std::size_t track_of(std::uint32_t node) const {
    switch (program_.kind[node]) {
      case NodeKind::send:
      case NodeKind::receive:
        return 0;
      case NodeKind::memory_load:
      case NodeKind::memory_store:
        return 1;
      case NodeKind::compute:
      case NodeKind::delay:
      case NodeKind::collective:
        break;
    }
    const Lane lane = program_.lane[node];
    // A delay that occupies nothing is a pause of the schedule, not an activity.
    return lane == Lane::host ? 2 : lane == Lane::communication ? 3 : SIZE_MAX;
  }

  void describe_other(std::uint32_t node, TraceSlice& slice) const {
    const std::uint64_t payload = program_.payload[node];
    switch (program_.kind[node]) {
      case NodeKind::send:
      case NodeKind::receive: {
        const PointToPoint& transfer = run_.graph.transfers[payload];
        slice.arguments.push_back({"peer", std::int64_t{context_.peers.of(process_.rank, transfer)}});
        slice.arguments.push_back({"tag", std::int64_t{transfer.tag}});
        slice.arguments.push_back({"bytes", transfer.bytes.value});
        return;
      }
      case NodeKind::memory_load:
      case NodeKind::memory_store:
        slice.arguments.push_back({"bytes", static_cast<std::int64_t>(payload)});
        return;
      case NodeKind::compute:
      case NodeKind::delay:
      case NodeKind::collective:
        return;
    }
  }

  void describe_compute(std::uint32_t node, TraceSlice& slice) const {
    if (program_.kind[node] != NodeKind::compute) return;
    const Work& work = run_.graph.works[program_.payload[node]];
    slice.arguments.push_back({"flops", work.flops.value});
    slice.arguments.push_back({"bytes", work.bytes.value});
  }

  void describe_collective(std::uint32_t node, TraceSlice& slice) const {
    const CollectiveCall& call = run_.graph.collectives[program_.payload[node]];
    slice.arguments.push_back({"collective", name_of(call.kind)});
    slice.arguments.push_back({"bytes", call.bytes.value});
    const auto found = context_.records.find(key_of(ranks_.program, node));
    if (found == context_.records.end()) return;
    const CollectiveRecord& record = *found->second;
    slice.arguments.push_back({"algorithm", std::string_view(record.algorithm)});
    slice.arguments.push_back({"group_size", record.group_size});
    // The time between issue and start is spent waiting for a turn.
    slice.arguments.push_back({"queued_us", in_microseconds(record.started - record.issued)});
    const double seconds = in_seconds(record.finished - record.started);
    if (seconds > 0) {
      const double bytes = static_cast<double>(call.bytes.value) * bus_factor(call.kind, record.group_size);
      slice.arguments.push_back({"bus_bandwidth_gb_per_s", bytes / seconds * 1e-9});
    }
  }

  void add_chunks() {
    std::vector<ChunkInterval> chunks = ranks_.chunks;
    std::erase_if(chunks, [&](const ChunkInterval& chunk) { return !is_shown(chunk.start, chunk.end); });
    // Dimension by dimension: each is a track of its own.
    std::stable_sort(chunks.begin(), chunks.end(), [](const ChunkInterval& a, const ChunkInterval& b) {
      return a.dimension != b.dimension ? a.dimension < b.dimension : a.start < b.start;
    });
    for (auto begin = chunks.begin(); begin != chunks.end();) {
      const std::uint32_t dimension = begin->dimension;
      const auto end =
          std::find_if(begin, chunks.end(), [&](const auto& chunk) { return chunk.dimension != dimension; });
      std::vector<TraceSlice> slices;
      for (auto chunk = begin; chunk != end; ++chunk) {
        slices.push_back(slice_of(chunk->node, chunk->start, chunk->end));
        slices.back().category = "chunk";
        slices.back().arguments.push_back({"chunk", std::int64_t{chunk->chunk}});
      }
      add_lanes("chunks on " + dimension_name(dimension), std::move(slices));
      begin = end;
    }
  }

  std::string dimension_name(std::uint32_t dimension) const {
    const std::vector<std::string>& names = run_.result.dimensions;
    return dimension < names.size() ? names[dimension] : fmt::format("dimension {}", dimension);
  }

  void add_flows(std::uint64_t& next_flow) {
    for (const Interval& collective : ranks_.collectives) {
      // Arrows from what a collective waited for; those between collectives would hide everything else.
      if (places_[collective.node].slice == kNoSlice) continue;
      for (const std::uint32_t dependence : program_.dependences(collective.node)) {
        if (program_.kind[dependence] == NodeKind::collective || places_[dependence].slice == kNoSlice)
          continue;
        at(dependence).flows_out.push_back(next_flow);
        at(collective.node).flows_in.push_back(next_flow);
        ++next_flow;
      }
    }
  }

  // What is held in the window, from its beginning on.
  void add_memory() {
    const auto role = std::find_if(run_.roles.begin(), run_.roles.end(), [&](const RoleMemory& memory) {
      return memory.program == ranks_.program;
    });
    if (role == run_.roles.end()) return;
    TraceCounter counter{"memory", {}, true};
    for (const MemorySample& sample : memory_over_time(run_, ranks_, *role, SIZE_MAX)) {
      if (sample.at > context_.selection.until) break;
      const bool before = sample.at <= context_.selection.from;
      // The last sample before the window is what is held when it begins.
      if (before && !counter.samples.empty()) counter.samples.clear();
      counter.samples.push_back({std::max(sample.at, context_.selection.from), sample.held.value});
    }
    if (!counter.samples.empty()) process_.counters.push_back(std::move(counter));
  }

  TraceSlice& at(std::uint32_t node) {
    return process_.tracks[places_[node].track].slices[places_[node].slice];
  }

  const Context& context_;
  const Run& run_;
  const RankClass& ranks_;
  const Program& program_;
  std::vector<Place> places_;  // of every node's slice
  TraceProcess process_;
};

const RankClass& class_of(const Run& run, std::int64_t rank) {
  return run.result.classes[run.result.class_of[static_cast<std::size_t>(rank)]];
}

// The settings beside the iteration, and the iteration as it would be without them.
void add_what_if(const Run& run, Timeline& timeline) {
  const std::vector<std::string> settings = what_if_settings(run);
  if (settings.empty()) return;
  TraceProcess& process = timeline.processes.emplace_back();
  process.name = "what if";
  // Behind the last rank, so that no rank's process is hidden.
  process.rank = static_cast<std::int32_t>(run.result.ranks);
  const auto add = [&](const std::string& track, const std::string& name, Time end) -> TraceSlice& {
    TraceSlice slice;
    slice.end = end;
    slice.name = timeline.texts.emplace_back(name);
    slice.category = "what if";
    process.tracks.push_back({track, {std::move(slice)}});
    return process.tracks.back().slices.back();
  };
  for (std::size_t i = 0; i < settings.size(); ++i)
    add(i == 0 ? "settings" : fmt::format("settings ({})", i + 1), settings[i], run.result.iteration);
  if (!run.ideal) return;
  TraceSlice& ideal = add("without", fmt::format("{} without", to_text(*run.ideal)), *run.ideal);
  ideal.arguments.push_back({"effect", timeline.texts.emplace_back(what_if_effect(run))});
  ideal.arguments.push_back({"difference_us", in_microseconds(run.result.iteration - *run.ideal)});
}

}  // namespace

Timeline make_timeline(const Run& run, const TimelineSelection& selection) {
  Timeline timeline;
  add_what_if(run, timeline);
  const Context context{run, selection, index_records(run), Peers(run.graph)};
  std::uint64_t next_flow = 1;
  // One process for each class of ranks that behaved alike is usually what a user wants to see.
  if (selection.ranks.empty()) {
    for (const RankClass& ranks : run.result.classes) {
      if (is_recorded(ranks))
        timeline.processes.push_back(ProcessBuilder(context, ranks, ranks.representative).build(next_flow));
    }
    return timeline;
  }
  check_rank_ranges(selection.ranks, run.result.ranks, "--timeline-ranks");
  std::vector<bool> taken(static_cast<std::size_t>(run.result.ranks));
  for (const RankRange& range : selection.ranks) {
    for (std::int64_t rank = range.first; rank <= range.last; ++rank) {
      if (taken[static_cast<std::size_t>(rank)]) continue;
      taken[static_cast<std::size_t>(rank)] = true;
      const RankClass& ranks = class_of(run, rank);
      if (!is_recorded(ranks)) {
        throw Error("--timeline-ranks", fmt::format("rank {} was not recorded", rank),
                    "simulate again with this rank chosen");
      }
      timeline.processes.push_back(
          ProcessBuilder(context, ranks, static_cast<std::int32_t>(rank)).build(next_flow));
    }
  }
  return timeline;
}

}  // namespace armilla
