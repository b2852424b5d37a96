#include "trace/text.h"

#include <algorithm>

#include "base/error.h"

namespace armilla {
namespace {

struct NodeTimes {
  std::vector<Time> start, end;
};

NodeTimes times_of(const Program& program, const RankClass& ranks) {
  constexpr Time kUnknown{-1};
  NodeTimes times{std::vector<Time>(program.size(), kUnknown), std::vector<Time>(program.size(), kUnknown)};
  for (const auto* intervals : {&ranks.computes, &ranks.collectives, &ranks.others}) {
    for (const Interval& interval : *intervals) {
      if (interval.node >= program.size()) throw Error("report", "the run is of another graph");
      times.start[interval.node] = interval.start;
      times.end[interval.node] = interval.end;
    }
  }
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (times.end[node] != kUnknown) continue;
    // Nodes that take nothing need not have been recorded.
    if (program.kind[node] != NodeKind::delay || program.payload[node] != 0)
      throw Error("report", "the run did not record its intervals");
    Time end;
    for (const std::uint32_t before : program.dependences(node)) end = std::max(end, times.end[before]);
    times.start[node] = times.end[node] = end;
  }
  return times;
}

// Time 0 where nothing has to be waited for.
Time latest(const std::vector<std::uint32_t>& nodes, const NodeTimes& times) {
  Time time;
  for (const std::uint32_t node : nodes) time = std::max(time, times.end[node]);
  return time;
}

}  // namespace

TextReport text_report(const TextGraph& text, const Result& result) {
  if (result.classes.empty()) throw Error("report", "the run has no ranks");
  const NodeTimes times = times_of(text.graph.programs[0], result.classes[0]);
  TextReport report;
  for (std::size_t i = 0; i < text.compute.size(); ++i) {
    report.layers.push_back({text.graph.layers[i], text.compute[i], {}, {}});
    for (const Time time : text.compute[i]) report.compute += time;
  }
  const auto layer = [&](std::int32_t index) -> TextLayerReport& {
    return report.layers[static_cast<std::size_t>(index)];
  };
  for (const TextCollective& collective : text.collectives) {
    layer(collective.layer).communication[static_cast<std::size_t>(collective.part)] +=
        times.end[collective.done] - times.start[collective.node];
  }
  for (const TextWait& wait : text.waits) {
    const Time asked = latest(wait.asked, times);
    // At the end ASTRA-sim stops asking with the first collective that is done; otherwise the last one ends
    // the wait.
    Time finished = wait.at_end ? kEndOfTime : Time(0);
    for (const std::uint32_t index : wait.collectives) {
      const Time end = times.end[text.collectives[index].done];
      finished = wait.at_end ? std::min(finished, end) : std::max(finished, end);
    }
    if (finished > asked) layer(wait.layer).exposed[static_cast<std::size_t>(wait.part)] += finished - asked;
  }
  for (const std::vector<std::uint32_t>& end : text.pass_ends) report.pass_ends.push_back(latest(end, times));
  report.finish = result.iteration;
  report.exposed = report.finish - report.compute;
  return report;
}

}  // namespace armilla
