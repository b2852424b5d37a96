#include "study/run.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "study/run/attained_links.h"
#include "study/run/chunk_note.h"

namespace armilla {
namespace {

// So many devices that no node is left in part, where only one is: the rest of them idle. Of a torus, whose
// slices are whole, of a graph of links, and of a machine that has no more, as many as are asked for.
std::int64_t with_whole_nodes(const Machine& machine, std::int64_t ranks) {
  if (!machine.graph.nodes.empty() || (!machine.elastic && ranks > rank_count(machine))) return ranks;
  std::int64_t node = 1;
  for (std::size_t d = 0; d < machine.dimensions.size(); ++d) {
    const Dimension& dimension = machine.dimensions[d];
    if (dimension.kind == DimensionKind::ring) return ranks;
    const bool grows = machine.elastic && d + 1 == machine.dimensions.size();
    if (grows || node * dimension.size > ranks) break;
    node *= dimension.size;
  }
  return ceil_divide(ranks, node) * node;
}

// All that the machine has, or the first of them.
GroupFamily first_of(std::int64_t ranks, std::int64_t members) {
  GroupFamily family = world_family(ranks);
  family.groups.front().resize(static_cast<std::size_t>(members));
  std::fill(family.group_of.begin() + members, family.group_of.end(), -1);
  if (members < ranks) family.dimension_mask = 0;
  return family;
}

}  // namespace

Run run_collective(const Study& machine, CollectiveKind kind, Bytes bytes, const SimulationOptions& options) {
  Run run;
  run.study = machine;
  Study& study = run.study;
  validate_machine(study.machine);
  attain_links(study);
  study.plan.ranks = study.request.ranks.value_or(rank_count(study.machine));
  if (study.plan.ranks > kMostRanks) {
    throw Error(study.request.ranks_where, fmt::format("{} ranks", study.plan.ranks),
                fmt::format("a collective can have at most {}", kMostRanks));
  }
  study.machine = with_ranks(study.machine, with_whole_nodes(study.machine, study.plan.ranks),
                             study.machine.elastic, study.request.ranks_where);
  // Nothing is computed, and nothing lasts long enough to fail.
  WhatIf& what_if = study.what_if;
  const auto idle = [&](bool given, std::string_view key) {
    if (given) run.notes.push_back(fmt::format("{} has no effect: a collective alone computes nothing", key));
  };
  idle(!what_if.ranks.empty(), "what_if.ranks");
  idle(what_if.jitter.deviation > 0, "what_if.jitter");
  idle(what_if.failures.mtbf_of_node > 0, "what_if.failures");
  what_if.ranks.clear();
  what_if.jitter = {};
  what_if.failures = {};
  run.workload = kind == CollectiveKind::barrier ? std::string(name_of(kind))
                                                 : fmt::format("{} of {}", name_of(kind), to_text(bytes));

  // The smallest job there is: one program of one node for all ranks.
  Graph& graph = run.graph;
  graph.ranks = rank_count(study.machine);
  graph.families.push_back(first_of(graph.ranks, study.plan.ranks));
  // A barrier moves nothing.
  const Bytes moved = kind == CollectiveKind::barrier ? Bytes() : bytes;
  graph.collectives.push_back({.kind = kind, .bytes = moved});
  Program& program = graph.programs.emplace_back();
  program.role = "rank";
  program.add(NodeKind::collective, Phase::other, graph.names.add(name_of(kind)), -1, 0, {});
  graph.program_of.assign(static_cast<std::size_t>(study.plan.ranks), 0);
  if (const std::int64_t idle_ranks = graph.ranks - study.plan.ranks; idle_ranks > 0) {
    graph.programs.emplace_back().role = "idle";
    graph.program_of.resize(static_cast<std::size_t>(graph.ranks), 1);
    run.notes.push_back(fmt::format("{} of the last {} group {} no part", counted(idle_ranks, "device"),
                                    study.machine.dimensions.front().name,
                                    idle_ranks == 1 ? "takes" : "take"));
  }

  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  run.peak_rate = cost->peak(study.plan.precision);
  run.result = simulate(graph, study, *cost, options);
  run.warnings = run.result.warnings;
  run.notes.insert(run.notes.end(), run.result.notes.begin(), run.result.notes.end());
  if (std::string note = chunk_note(run); !note.empty()) run.notes.push_back(std::move(note));
  // Those of the device say nothing of a collective alone.
  if (std::string note = unverified_note(study.machine); !note.empty()) run.notes.push_back(std::move(note));
  return run;
}

}  // namespace armilla
