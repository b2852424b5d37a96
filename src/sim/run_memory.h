// What runs of one study have in common, kept from one to the next: how collectives are planned
// (sim/collective_plan.h), what lone ones did (sim/memo/lone_plays.h), and which ranks of jobs of one
// structure fare alike (sim/fold/known_folds.h). All of it follows from the study's machine, collectives,
// network and what-if, so that a run results in the same with what earlier ones left and without.
//
// One run at a time may use it: who has several threads has several of these. It forgets what it knows before
// a run when that has become too much (KeptAtMost). After a run that threw Error it is not to be used
// again, for what was being made then is half made.
#pragma once

#include <cstddef>
#include <memory>

#include "cost/cost.h"
#include "ir/graph.h"
#include "ir/result.h"
#include "ir/study.h"
#include "sim/simulate.h"

namespace armilla {

// Some tens of MB, for each thread of a search.
struct KeptAtMost {
  // Of chunks, each with its phases; schedules, which are larger, are fewer.
  std::size_t plans = std::size_t{1} << 14;
  // Distinct messages and moments of lone collectives: some 10 MB.
  std::size_t remembered = std::size_t{1} << 18;
  // Of jobs whose ranks were folded, and their ranks, times one more than their families of groups. The last
  // one is kept, however large, unless none is to be.
  std::size_t structures = 16, ranks = std::size_t{1} << 22;
};

class RunMemory {
 public:
  // The study must outlive it and stay what it is; all runs are of it. Throws Error as simulate does for
  // algorithms that do not fit.
  explicit RunMemory(const Study& study, const KeptAtMost& most = {});
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  const Study& study() const { return study_; }

  // For sim: what the next run uses (sim/run/kept_parts.h). What the last one knew of its groups
  // is forgotten.
  struct Parts;
  Parts& begin_run();

 private:
  const Study& study_;
  KeptAtMost most_;
  std::unique_ptr<Parts> parts_;
};

// As `simulate` does with the memory's study, of which `graph` is a job. Warnings of algorithms that were
// replaced may be those of earlier runs.
Result simulate(const Graph& graph, const CostModel& cost, const SimulationOptions& options,
                RunMemory& memory);

}  // namespace armilla
