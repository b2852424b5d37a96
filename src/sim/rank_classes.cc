#include "sim/rank_classes.h"

#include <algorithm>

namespace armilla {
namespace {

bool spans_machine(const GroupFamily& family, std::int64_t ranks) {
  return family.groups.size() == 1 && static_cast<std::int64_t>(family.groups[0].size()) == ranks &&
         std::is_sorted(family.groups[0].begin(), family.groups[0].end());
}

// On a Ring only neighbours keep symmetric traffic apart: longer ways cross, and who is first depends on
// event order.
bool stays_symmetric(const PlannedPhase& phase, const Machine& machine) {
  if (!phase.schedule->is_symmetric() || phase.dimension == kAllDimensions) return false;
  if (machine.dimensions[phase.dimension].kind != DimensionKind::ring) return true;
  const Schedule& schedule = *phase.schedule;
  const std::vector<Transfer>& sends = schedule.roles[0].sends;
  return schedule.addressing == Addressing::shift &&
         (std::all_of(sends.begin(), sends.end(), [](const Transfer& t) { return t.peer == 1; }) ||
          std::all_of(sends.begin(), sends.end(),
                      [&](const Transfer& t) { return t.peer == schedule.ranks - 1; }));
}

// Nodes in which a rank meets others otherwise than in a symmetric collective: messages of its own, and
// remote memory that ranks may share.
bool meets_others_alone(const Program& program) {
  return std::any_of(program.kind.begin(), program.kind.end(), [](NodeKind kind) {
    return kind == NodeKind::send || kind == NodeKind::receive || kind == NodeKind::memory_load ||
           kind == NodeKind::memory_store;
  });
}

}  // namespace

RankClasses fold_ranks(const Graph& graph, const Machine& machine, CollectivePlanner& planner,
                       const NetworkPromises& promises) {
  const RankClasses unfolded{graph.ranks, Fold::none};
  if (graph.programs.size() != 1 || graph.ranks < 2 || !promises.meets_at_ends_only) return unfolded;
  if (meets_others_alone(graph.programs.front())) return unfolded;
  for (const CollectiveCall& call : graph.collectives) {
    if (call.custom >= 0) return unfolded;
    if (!spans_machine(graph.families[call.family], graph.ranks)) return unfolded;
    const GroupLayout& layout = planner.layout(graph, call.family, 0);
    for (std::int64_t chunk = 0; chunk < planner.chunks(call); ++chunk) {
      for (const PlannedPhase& phase : planner.plan(call, layout, chunk).phases) {
        if (phase.only_root_lines || !stays_symmetric(phase, machine)) return unfolded;
      }
    }
  }
  return {graph.ranks, Fold::all};
}

}  // namespace armilla
