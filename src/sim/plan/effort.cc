#include "sim/plan/effort.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

// The mean of all members, who may send differently: summed over them it is right.
MemberTraffic custom_traffic(const CustomCollective& custom, Bytes call) {
  MemberTraffic sent;
  const auto members = static_cast<double>(std::max<std::size_t>(custom.members.size(), 1));
  for (const CustomProgram& member : custom.members) {
    for (const CustomNode& node : member.nodes) {
      if (node.kind != CustomNode::Kind::send) continue;
      sent.messages += 1 / members;
      sent.bytes += static_cast<double>(bytes_of(node, call).value) / members;
    }
  }
  return sent;
}

// A count of messages below `many` in digits.
std::string count_text(double count, double many) {
  return count < many ? with_separators(std::llround(count)) : fmt::format("{:.2g}", count);
}

}  // namespace

Effort effort_of(const Graph& graph, std::span<const Issued> issued, std::span<const std::int32_t> ranks,
                 double most_messages, const TrafficOf& traffic_of) {
  Effort effort;
  effort.messages.resize(graph.collectives.size());
  for (const std::int32_t rank : ranks) {
    const std::uint32_t program = graph.program_of[static_cast<std::size_t>(rank)];
    // Loops at full length: what folding in time leaves out later cannot be known yet.
    effort.nodes += graph.programs[program].length();
    for (const IssuedItem& item : issued[program].items) {
      MemberTraffic sent;
      if (item.kind == NodeKind::send)
        sent = {1, static_cast<double>(graph.transfers[item.payload].bytes.value)};
      if (item.kind == NodeKind::collective) {
        sent = traffic_of(rank, static_cast<std::uint32_t>(item.payload));
        effort.messages[item.payload] = sent.messages;
      }
      effort.all_messages += sent.messages * static_cast<double>(item.count);
      effort.all_bytes += sent.bytes * static_cast<double>(item.count);
    }
  }
  if (effort.all_messages <= most_messages) return effort;
  throw Error("simulation",
              fmt::format("the run would take about {} messages, the limit is {}",
                          count_text(effort.all_messages, 1e6), count_text(most_messages, 1e15)),
              "choose other algorithms, fewer chunks or fewer ranks, or raise the limit with --max-messages");
}

Effort effort_of(const Graph& graph, std::span<const Issued> issued, const RankClasses& classes,
                 CollectivePlanner& planner, double most_messages) {
  // Groups of one shape send alike: of ten thousand of them one is planned.
  std::map<std::pair<std::uint32_t, std::uint32_t>, MemberTraffic> known;  // by call and shape
  return effort_of(graph, issued, classes.real, most_messages, [&](std::int32_t rank, std::uint32_t id) {
    const CollectiveCall& call = graph.collectives[id];
    const std::int32_t group = graph.families[call.family].group_of[static_cast<std::size_t>(rank)];
    const std::uint32_t shape = planner.layout(graph, call.family, group).shape;
    const auto [found, fresh] = known.try_emplace({id, shape});
    if (fresh) {
      found->second = call.custom >= 0
                          ? custom_traffic(graph.custom[static_cast<std::size_t>(call.custom)], call.bytes)
                          : traffic_per_member(planner, call, shape);
    }
    return found->second;
  });
}

}  // namespace armilla
