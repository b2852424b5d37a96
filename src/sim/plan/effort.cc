#include "sim/plan/effort.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "sim/astra/astra_plan.h"

namespace armilla {
namespace {

void refuse_messages(double messages, const SimulationOptions& options) {
  if (messages <= options.max_messages) return;
  throw Error("simulation",
              fmt::format("the run would take about {:.2g} messages, the limit is {:.2g}", messages,
                          options.max_messages),
              "choose other algorithms, fewer chunks or fewer ranks, or raise the limit with --max-messages");
}

// How often a program issues each call, and how many messages of its own it sends.
struct Traffic {
  std::vector<std::pair<std::uint32_t, std::int64_t>> calls;
  std::int64_t sends = 0;
};

Traffic traffic_of(const Program& program) {
  std::map<std::uint32_t, std::int64_t> calls;
  Traffic traffic;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.kind[node] == NodeKind::collective)
      ++calls[static_cast<std::uint32_t>(program.payload[node])];
    if (program.kind[node] == NodeKind::send) ++traffic.sends;
  }
  traffic.calls.assign(calls.begin(), calls.end());
  return traffic;
}

double messages_per_member(const CustomCollective& custom) {
  double sends = 0;
  for (const CustomProgram& member : custom.members) {
    sends += static_cast<double>(std::ranges::count_if(
        member.nodes, [](const CustomNode& node) { return node.kind == CustomNode::Kind::send; }));
  }
  return custom.members.empty() ? 0 : sends / static_cast<double>(custom.members.size());
}

}  // namespace

Effort refuse_endless_runs(const Graph& graph, CollectivePlanner& planner, const RankClasses& classes,
                           const SimulationOptions& options) {
  std::vector<Traffic> traffic;
  for (const Program& program : graph.programs) traffic.push_back(traffic_of(program));
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> known;  // by call and shape, of one member
  Effort effort;
  effort.messages.resize(graph.collectives.size());
  double& total = effort.all_messages;
  for (const std::int32_t rank : classes.real) {
    const std::uint32_t program = graph.program_of[static_cast<std::size_t>(rank)];
    const Traffic& own = traffic[program];
    effort.nodes += graph.programs[program].size();
    total += static_cast<double>(own.sends);
    for (const auto& [id, times] : own.calls) {
      const CollectiveCall& call = graph.collectives[id];
      const std::int32_t group = graph.families[call.family].group_of[static_cast<std::size_t>(rank)];
      const std::uint32_t shape = planner.layout(graph, call.family, group).shape;
      const auto [found, fresh] = known.try_emplace({id, shape});
      if (fresh) {
        found->second = call.custom >= 0
                            ? messages_per_member(graph.custom[static_cast<std::size_t>(call.custom)])
                            : planner.messages_per_member(call, shape);
        effort.messages[id] = found->second;
      }
      total += found->second * static_cast<double>(times);
    }
  }
  refuse_messages(total, options);
  return effort;
}

Effort refuse_endless_astra_runs(const Graph& graph, const SystemLayer& system, std::int64_t ranks,
                                 const SimulationOptions& options) {
  constexpr double kMaxStreams = 1 << 25;
  AstraPlanner planner(system);
  Effort effort;
  std::vector<double>& messages = effort.messages;
  for (const CollectiveCall& call : graph.collectives) {
    const GroupFamily& family = graph.families[call.family];
    const auto members = static_cast<std::int64_t>(family.groups.empty() ? 0 : family.groups.front().size());
    messages.push_back(0);
    if (members == 0) continue;
    const AstraPlanner::ChunkSizes sizes = planner.chunk_sizes(call, members);
    const double chunks = std::ceil(static_cast<double>(sizes.total) / static_cast<double>(sizes.chunk));
    if (call.custom < 0 && chunks * static_cast<double>(members) > kMaxStreams) {
      throw Error("simulation",
                  fmt::format("{:.2g} chunks of a collective among {} ranks would be under way at once",
                              chunks, members),
                  "choose fewer preferred-dataset-splits");
    }
    std::int64_t remaining = sizes.total;
    const std::uint32_t mask = members == graph.ranks ? UINT32_MAX : family.dimension_mask;
    for (const AstraPhase& phase : planner.next_chunk(call, mask, members, sizes.chunk, remaining))
      messages.back() += chunks * std::max(phase.sends, 2);
  }
  std::vector<double> of_program;
  for (const Program& program : graph.programs) {
    double total = 0;
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] == NodeKind::collective) total += messages[program.payload[node]];
    }
    of_program.push_back(total);
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t program = graph.program_of[static_cast<std::size_t>(rank)];
    effort.all_messages += of_program[program];
    effort.nodes += graph.programs[program].size();
  }
  refuse_messages(effort.all_messages, options);
  return effort;
}

}  // namespace armilla
