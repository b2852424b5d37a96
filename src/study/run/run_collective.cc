#include "study/run.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "study/run/attained_links.h"
#include "study/run/chunk_note.h"

namespace armilla {

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
  study.machine =
      with_ranks(study.machine, study.plan.ranks, study.machine.elastic, study.request.ranks_where);
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
  graph.ranks = study.plan.ranks;
  graph.families.push_back(world_family(graph.ranks));
  // A barrier moves nothing.
  const Bytes moved = kind == CollectiveKind::barrier ? Bytes() : bytes;
  graph.collectives.push_back({.kind = kind, .bytes = moved});
  Program& program = graph.programs.emplace_back();
  program.role = "rank";
  program.add(NodeKind::collective, Phase::other, graph.names.add(name_of(kind)), -1, 0, {});
  graph.program_of.assign(static_cast<std::size_t>(graph.ranks), 0);

  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  run.peak_rate = cost->peak(study.plan.precision);
  run.result = simulate(graph, study, *cost, options);
  run.warnings = run.result.warnings;
  run.notes.insert(run.notes.end(), run.result.notes.begin(), run.result.notes.end());
  if (std::string note = chunk_note(run); !note.empty()) run.notes.push_back(std::move(note));
  return run;
}

}  // namespace armilla
