#include "sim/plan/effort.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"
#include "sim/astra/astra_plan.h"
#include "sim/link_loads.h"

namespace armilla {
namespace {

// The mean of all members, who may send differently: summed over them it is right.
MemberTraffic traffic_per_member(const CustomCollective& custom, Bytes call) {
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

// Of `ranks`; `traffic_of(rank, call)` is what one member sends. Throws Error for more than `most` in all.
template <class Ranks, class TrafficOf>
Effort sum_up(const Graph& graph, std::span<const Issued> issued, const Ranks& ranks, double most,
              const TrafficOf& traffic_of) {
  Effort effort;
  effort.messages.resize(graph.collectives.size());
  for (const std::int64_t rank : ranks) {
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
  if (effort.all_messages <= most) return effort;
  throw Error("simulation",
              fmt::format("the run would take about {} messages, the limit is {}",
                          count_text(effort.all_messages, 1e6), count_text(most, 1e15)),
              "choose other algorithms, fewer chunks or fewer ranks, or raise the limit with --max-messages");
}

}  // namespace

Effort effort_of(const Graph& graph, std::span<const Issued> issued, const RankClasses& classes,
                 CollectivePlanner& planner, double most_messages) {
  // Groups of one shape send alike: of ten thousand of them one is planned.
  std::map<std::pair<std::uint32_t, std::uint32_t>, MemberTraffic> known;  // by call and shape
  return sum_up(graph, issued, classes.real, most_messages, [&](std::int64_t rank, std::uint32_t id) {
    const CollectiveCall& call = graph.collectives[id];
    const std::int32_t group = graph.families[call.family].group_of[static_cast<std::size_t>(rank)];
    const std::uint32_t shape = planner.layout(graph, call.family, group).shape;
    const auto [found, fresh] = known.try_emplace({id, shape});
    if (fresh) {
      found->second = call.custom >= 0 ? traffic_per_member(
                                             graph.custom[static_cast<std::size_t>(call.custom)], call.bytes)
                                       : traffic_per_member(planner, call, shape);
    }
    return found->second;
  });
}

Effort effort_of(const Graph& graph, std::span<const Issued> issued, const SystemLayer& system,
                 std::int64_t ranks, double most_messages) {
  // Each of them takes some 130 bytes while its collective is under way: 4 GB at most.
  constexpr double kMaxStreams = 1 << 25;
  AstraPlanner planner(system);
  std::vector<MemberTraffic> traffic;
  for (const CollectiveCall& call : graph.collectives) {
    const GroupFamily& family = graph.families[call.family];
    const auto members = static_cast<std::int64_t>(family.groups.empty() ? 0 : family.groups.front().size());
    traffic.emplace_back();
    if (members == 0) continue;
    const AstraPlanner::ChunkSizes sizes = planner.chunk_sizes(call, members);
    const double chunks = std::ceil(static_cast<double>(sizes.total) / static_cast<double>(sizes.chunk));
    if (call.custom < 0 && chunks * static_cast<double>(members) > kMaxStreams) {
      throw Error("simulation",
                  fmt::format("{:.2g} chunks of a collective among {} ranks would be under way at once",
                              chunks, members),
                  "choose fewer preferred-dataset-splits");
    }
    // The first stands for all.
    planner.for_each_chunk(graph, call, members, [&](const std::vector<AstraPhase>& phases) {
      for (const AstraPhase& phase : phases) {
        // Phases of Armilla's own schedules have no count: two is what the shortest of them send, so that the
        // limit refuses nothing that fits into it.
        traffic.back().messages += chunks * std::max(phase.sends, 2);
        traffic.back().bytes += chunks * std::max(static_cast<double>(phase.each) * phase.sends,
                                                  static_cast<double>(phase.bytes));
      }
      return false;
    });
  }
  return sum_up(graph, issued, std::views::iota(std::int64_t{0}, ranks), most_messages,
                [&](std::int64_t, std::uint32_t id) { return traffic[id]; });
}

}  // namespace armilla
