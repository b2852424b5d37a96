#include "write/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace armilla {
namespace {

constexpr std::int64_t kNanosecond = 1000;

// ASTRA-sim 2's cycle is a nanosecond.
std::int64_t cycles(Time time) {
  return time.value / kNanosecond;
}

std::uint32_t class_index(const Result& result, std::int32_t rank) {
  return result.class_of.empty() ? 0 : result.class_of[static_cast<std::size_t>(rank)];
}

// "Exposed communication" there is wall time minus this sum, also where computations overlap each other.
// Durations of the GPU's computations, whatever else runs beside them.
Time gpu_time(const Program& program, const RankClass& ranks, bool replay_only) {
  Time sum;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    const bool counts = replay_only ? program.lane[node] != Lane::host : program.lane[node] == Lane::device;
    if (program.kind[node] == NodeKind::delay && counts)
      sum = later(sum, std::min(Time(static_cast<std::int64_t>(program.payload[node])), kEndOfTime));
  }
  // Work that a cost model prices has its times in the result alone.
  const bool priced =
      std::find(program.kind.begin(), program.kind.end(), NodeKind::compute) != program.kind.end();
  return priced ? ranks.compute : sum;
}

class FinishLines {
 public:
  FinishLines(const Graph& graph, const Result& result, const Astra2Lines& lines)
      : graph_(graph), result_(result), lines_(lines) {
    for (const RankClass& ranks : result.classes) {
      const Program& program = graph.programs[ranks.program];
      gpu_.push_back(gpu_time(program, ranks, lines.replay_only));
      computes_.push_back(std::ranges::count(program.lane, Lane::device) > 0);
      communicates_.push_back(std::ranges::count_if(program.kind, [](NodeKind kind) {
                                return kind == NodeKind::collective || kind == NodeKind::send ||
                                       kind == NodeKind::receive;
                              }) > 0);
    }
  }

  // The lines, their order and when they are left out are those of ASTRA-sim's Statistics.
  std::string of(std::int32_t rank) const {
    const std::uint32_t index = class_index(result_, rank);
    const RankClass& ranks = result_.classes[index];
    const std::int64_t wall = cycles(ranks.finish);
    std::string text =
        fmt::format("[workload] [info] sys[{}] finished, {} cycles, exposed communication {} cycles.\n", rank,
                    wall, std::max<std::int64_t>(0, wall - cycles(gpu_[index])));
    const auto add = [&](std::string_view what, std::int64_t value) {
      text += fmt::format("[statistics] [info] sys[{}], {}: {}\n", rank, what, value);
    };
    const std::int64_t compute = cycles(ranks.compute), communication = cycles(ranks.communication);
    add("Wall time", wall);
    if (computes_[index]) add("GPU time", compute);
    if (communicates_[index]) add("Comm time", communication);
    const std::int64_t overlap = compute + communication - wall;
    if (compute > 0 && communication > 0 && overlap > 0) add("Total compute-communication overlap", overlap);
    if (!lines_.utilisation.empty())
      add_utilisation(text, rank, lines_.utilisation[graph_.program_of[static_cast<std::size_t>(rank)]]);
    return text;
  }

 private:
  static void add_utilisation(std::string& text, std::int32_t rank, const Astra2Utilisation& use) {
    const auto add = [&](std::string_view what, double value, std::string_view unit) {
      text += fmt::format("[statistics] [info] sys[{}], {}: {:.3f}{}\n", rank, what, value, unit);
    };
    add("Compute bound percentage", use.compute_bound * 100, "%");
    add("Average compute utilization", use.compute * 100, "%");
    add("Average memory utilization", use.memory * 100, "%");
    add("Average operation intensity", use.operation_intensity, "");
  }

  const Graph& graph_;
  const Result& result_;
  const Astra2Lines& lines_;
  std::vector<Time> gpu_;  // per class
  std::vector<bool> computes_, communicates_;
};

// Numbers of ChakraNodeType. Metadata and what was replaced by nothing have lanes that tell them apart.
int chakra_type(const Program& program, std::uint32_t node) {
  switch (program.kind[node]) {
    case NodeKind::memory_load:
      return 2;
    case NodeKind::memory_store:
      return 3;
    case NodeKind::send:
      return 5;
    case NodeKind::receive:
      return 6;
    case NodeKind::collective:
      return 7;
    case NodeKind::compute:
    case NodeKind::delay:
      break;
  }
  switch (program.lane[node]) {
    case Lane::communication:
      return 7;
    case Lane::none:
      return 1;
    case Lane::device:
    case Lane::host:
      break;
  }
  return 4;
}

struct LogEvent {
  Time at;
  std::int32_t rank = 0;
  // Within a moment of a rank: what ends, then what starts, then what ends as it starts.
  std::uint8_t order = 0;
  std::uint32_t node = 0;
  bool issue = false;
};

std::vector<LogEvent> log_events(const Result& result) {
  std::vector<LogEvent> events;
  for (std::int32_t rank = 0; rank < result.ranks; ++rank) {
    for (const NodeSpan& span : node_spans(result, rank)) {
      events.push_back({span.start, rank, 1, span.node, true});
      // By time, then rank; within a moment of a rank as LogEvent::order says.
      events.push_back(
          {span.end, rank, static_cast<std::uint8_t>(span.end > span.start ? 0 : 2), span.node, false});
    }
  }
  std::sort(events.begin(), events.end(), [](const LogEvent& a, const LogEvent& b) {
    return std::tie(a.at, a.rank, a.order, a.node) < std::tie(b.at, b.rank, b.order, b.node);
  });
  return events;
}

}  // namespace

std::string astra2_finish_lines(const Graph& graph, const Result& result, const Astra2Lines& lines) {
  const FinishLines finish(graph, result, lines);
  std::string text;
  // Empty for ranks whose class was not recorded.
  for (std::int32_t rank = 0; rank < result.ranks; ++rank) text += finish.of(rank);
  return text;
}

std::vector<NodeSpan> node_spans(const Result& result, std::int32_t rank) {
  const RankClass* ranks = &result.classes[class_index(result, rank)];
  const auto recorded = [](const RankClass& each) {
    return !each.computes.empty() || !each.collectives.empty() || !each.others.empty();
  };
  std::vector<NodeSpan> spans;
  if (!recorded(*ranks)) return spans;
  for (const auto* intervals : {&ranks->computes, &ranks->collectives, &ranks->others}) {
    for (const Interval& interval : *intervals)
      spans.push_back({interval.start, interval.end, interval.node});
  }
  std::sort(spans.begin(), spans.end(), [](const NodeSpan& a, const NodeSpan& b) {
    return std::tie(a.start, a.end, a.node) < std::tie(b.start, b.end, b.node);
  });
  return spans;
}

// A rank's finish lines follow its last event, as in the log of a run that writes them as it goes.
std::string astra2_log(const Graph& graph, const Result& result, const Astra2Lines& lines) {
  if (!lines.trace_enabled) return astra2_finish_lines(graph, result, lines);
  const FinishLines finish(graph, result, lines);
  const std::vector<LogEvent> events = log_events(result);
  std::vector<std::size_t> left(static_cast<std::size_t>(result.ranks));
  for (const LogEvent& event : events) ++left[static_cast<std::size_t>(event.rank)];
  std::string text;
  for (const LogEvent& event : events) {
    const Program& program = graph.programs[graph.program_of[static_cast<std::size_t>(event.rank)]];
    fmt::format_to(std::back_inserter(text),
                   "[workload] [debug] {},sys->id={}, tick={}, node->id={}, node->name={}, node->type={}\n",
                   event.issue ? "issue" : "callback", event.rank, cycles(event.at),
                   program.shown_id(event.node), graph.names[program.name[event.node]],
                   chakra_type(program, event.node));
    if (--left[static_cast<std::size_t>(event.rank)] == 0) text += finish.of(event.rank);
  }
  // Ranks without a recorded node have finish lines all the same.
  for (const LogEvent& event : events) left[static_cast<std::size_t>(event.rank)] = 1;
  for (std::int32_t rank = 0; rank < result.ranks; ++rank) {
    if (left[static_cast<std::size_t>(rank)] == 0) text += finish.of(rank);
  }
  return text;
}

std::string peak_memory_line(std::int32_t rank, std::uint64_t peak_bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(peak_bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("[workload] [info] sys[{}] peak memory usage: {:.2f} {}\n", rank, value, kUnits[unit]);
}

}  // namespace armilla
