// What RunMemory (sim/run_memory.h) keeps, and jobs that are ready to be played with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "ir/graph.h"
#include "ir/issued.h"
#include "ir/study.h"
#include "network/network.h"
#include "sim/collective_plan.h"
#include "sim/engine/native_run.h"
#include "sim/engine/remote_memory.h"
#include "sim/fold/known_folds.h"
#include "sim/memo/lone_plays.h"
#include "sim/plan/senders.h"
#include "sim/run_memory.h"

namespace armilla {

struct RunMemory::Parts {
  Parts(const Study& study, const KeptAtMost& most)
      : planner(study.machine, study.collectives, promises_of(study.network)),
        folds(most.structures, most.ranks) {}

  CollectivePlanner planner;
  KnownPlays plays;  // by shapes of groups as the planner numbers them
  KnownFolds folds;
};

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

  NativePlay play(std::span<const CostModel* const> costs, const SimulationOptions& options) const {
    return {graph, issued, study, peers, costs, classes, kept.planner, options, shared, kept.plays};
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
