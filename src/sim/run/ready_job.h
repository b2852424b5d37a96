// Jobs that are ready to be played with what runs of their study have left (sim/run_memory.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "cost/cost.h"
#include "ir/graph.h"
#include "ir/issued.h"
#include "ir/study.h"
#include "sim/engine/remote_memory.h"
#include "sim/plan/rank_classes.h"
#include "sim/plan/senders.h"
#include "sim/run/kept_parts.h"
#include "sim/run/shortened_run.h"
#include "sim/run_memory.h"
#include "sim/simulate.h"

namespace armilla {

// A job of the memory's study, of which is known which ranks fare alike and which dimensions several senders
// use. The graph and the memory must outlive it, and nobody else uses the memory meanwhile.
struct ReadyJob {
  ReadyJob(const Graph& job, const SimulationOptions& options, RunMemory& memory)
      : graph(job),
        study(memory.study()),
        kept(memory.begin_run()),
        issued(issued_by(job)),
        peers(job),
        classes(fold(options)),
        shared(shared_dimensions({graph, issued, study, peers}, classes, kept.planner)) {}
  ReadyJob(const ReadyJob&) = delete;
  ReadyJob& operator=(const ReadyJob&) = delete;

  ShortenedPlay play(std::span<const CostModel* const> costs, const SimulationOptions& options) const {
    return {{graph, issued, study, peers, costs, classes, kept.planner, options, shared}, kept.plays};
  }

  const Graph& graph;
  const Study& study;
  RunMemory::Parts& kept;
  const std::vector<Issued> issued;
  const Peers peers;
  std::optional<RankClasses> each_by_itself;  // where ranks are not to be folded
  const RankClasses& classes;
  const std::uint32_t shared;  // dimensions, by senders

 private:
  const RankClasses& fold(const SimulationOptions& options) {
    options.progress->begin("looking for ranks that fare alike");
    if (!options.fold) return each_by_itself.emplace(unfolded(graph));
    return kept.folds.classes_of({graph, issued, study, peers, shares_memory(options.remote_memory)},
                                 kept.planner);
  }
};

}  // namespace armilla
