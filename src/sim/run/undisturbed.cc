#include "sim/undisturbed.h"

#include <algorithm>
#include <vector>

#include "network/topology.h"
#include "sim/memo/lone_groups.h"
#include "sim/plan/rank_classes.h"
#include "sim/run/ready_job.h"
#include "sim/run/shortened_run.h"

namespace armilla {
namespace {

// Whether the ranks of any group differ in their coordinate in one of these dimensions whose links are passed
// on.
bool passes_in(const GroupFamily& family, const Machine& machine, std::uint32_t dimensions) {
  const Topology topology(machine);
  for (std::uint32_t d = 0; d < topology.dimensions(); ++d) {
    if (d < 32 && (dimensions >> d & 1) == 0) continue;
    const auto spans = [&](const std::vector<std::int32_t>& group) {
      const std::int32_t here = topology.coordinate(group.front(), d);
      return std::ranges::any_of(group, [&](auto rank) { return topology.coordinate(rank, d) != here; });
    };
    if (passes_others(topology.dimension(d)) && std::ranges::any_of(family.groups, spans)) return true;
  }
  return false;
}

}  // namespace

FoldedGraph::FoldedGraph(const Graph& graph, RunMemory& memory)
    : job_(std::make_unique<const ReadyJob>(graph, SimulationOptions(), memory)) {}

FoldedGraph::~FoldedGraph() = default;

Result FoldedGraph::simulate(const CostModel& cost, bool intervals,
                             std::span<std::vector<WatchedEnd>> watched) {
  const CostModel* const costs[] = {&cost};
  const SimulationOptions options{.intervals = intervals, .collectives = false, .watched_ends = watched};
  return played(job_->play(costs, options), &ShortenedRun::recorded);
}

bool FoldedGraph::is_undisturbed(const std::set<std::string>& families, Beside beside) {
  const Study& study = job_->study;
  if (!may_fold(study)) return false;
  const Graph& graph = job_->graph;
  const RankClasses& classes = job_->classes;
  std::vector<bool> seen(graph.programs.size());
  for (const std::int32_t rank : classes.real) {
    const std::uint32_t program = graph.program_of[static_cast<std::size_t>(rank)];
    // Ranks of one program that are not of one class fare differently, and then one cannot tell of the other.
    if (seen[program]) return false;
    seen[program] = true;
  }
  // Its members then are in step, and reach what they do together at one time.
  const auto is_of_one_program = [&](std::uint32_t family) {
    return std::ranges::all_of(graph.families[family].groups, [&](const std::vector<std::int32_t>& group) {
      return std::ranges::all_of(group, [&](std::int32_t rank) {
        return graph.program_of[static_cast<std::size_t>(rank)] ==
               graph.program_of[static_cast<std::size_t>(group.front())];
      });
    });
  };
  const auto is_asked_for = [&](std::uint32_t family) {
    return families.contains(graph.families[family].name);
  };
  std::vector<Issued> some;
  if (beside == Beside::messages) {
    some = job_->issued;
    std::vector<bool> is_left_out;
    for (std::uint32_t family = 0; family < graph.families.size(); ++family)
      is_left_out.push_back(!is_asked_for(family) && is_of_one_program(family));
    for (Issued& program : some) {
      std::erase_if(program.items, [&](const IssuedItem& item) {
        return item.kind == NodeKind::collective && is_left_out[graph.collectives[item.payload].family];
      });
    }
  }
  const LoneGroups lone =
      find_lone_passes({graph, beside == Beside::messages ? some : job_->issued, study, job_->peers}, classes,
                       job_->kept.planner, families);
  if (!lone.has_lone_messages()) return false;
  // Rings serve in another way where several senders use them, be it elsewhere and at other times.
  const std::uint32_t disturbed = beside == Beside::messages ? UINT32_MAX : job_->shared;
  for (std::uint32_t family = 0; family < classes.families.size(); ++family) {
    if (!is_asked_for(family)) continue;
    if (passes_in(graph.families[family], study.machine, disturbed)) return false;
    for (std::size_t group = 0; group < classes.families[family].groups.size(); ++group) {
      if (!lone.contains(family, static_cast<std::int32_t>(group))) return false;
    }
  }
  return true;
}

}  // namespace armilla
