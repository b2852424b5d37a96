#include "sim/astra/astra_fold.h"

#include <algorithm>

#include "sim/astra/astra_plan.h"

namespace armilla {
namespace {

bool phase_looks_alike(const AstraPhase& phase) {
  if (phase.dimension == kFlatPhase) return false;
  return phase.method == AstraMethod::ring || phase.method == AstraMethod::direct ||
         phase.method == AstraMethod::halving_doubling;
}

}  // namespace

bool can_fold(const Graph& graph, const SystemLayer& system) {
  if (graph.ranks < 2 || graph.programs.size() != 1) return false;
  // Only ASTRA-sim's own networks serve ranks that fare alike at once.
  if (!system.network.name.empty() || system.semantics == Semantics::astra2_aware || system.rendezvous ||
      system.shared_bus)
    return false;
  if (system.split_dimension >= 0) return false;
  // Its loads follow rank 0, whichever rank is the first to issue a collective.
  if (system.inter_dimension == InterDimensionOrder::themis ||
      system.inter_dimension == InterDimensionOrder::themis_flex)
    return false;
  const Program& program = graph.programs.front();
  const bool alone = std::all_of(program.kind.begin(), program.kind.end(), [](NodeKind kind) {
    return kind == NodeKind::compute || kind == NodeKind::delay || kind == NodeKind::collective;
  });
  if (!alone) return false;
  AstraPlanner planner(system);  // of its own: planning changes its counters
  for (const CollectiveCall& call : graph.collectives) {
    const GroupFamily& family = graph.families[call.family];
    const auto members = static_cast<std::int64_t>(family.groups.empty() ? 0 : family.groups.front().size());
    const bool is_communicator = members != graph.ranks && family.dimension_mask == 0;
    const bool even = std::all_of(family.groups.begin(), family.groups.end(), [&](const auto& group) {
      return static_cast<std::int64_t>(group.size()) == members && std::is_sorted(group.begin(), group.end());
    });
    // ASTRA-sim's counter of turns advances with every group's collectives: the groups fare differently then.
    if (system.inter_dimension == InterDimensionOrder::round_robin && family.groups.size() > 1) return false;
    if (call.custom >= 0 || members == 0 || is_communicator || !even) return false;
    bool alike = true;
    planner.for_each_chunk(graph, call, members, [&](const std::vector<AstraPhase>& phases) {
      return alike = std::all_of(phases.begin(), phases.end(), phase_looks_alike);
    });
    if (!alike) return false;
  }
  return true;
}

}  // namespace armilla
