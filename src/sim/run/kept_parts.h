// What RunMemory (sim/run_memory.h) keeps.
#pragma once

#include "ir/study.h"
#include "network/network.h"
#include "sim/collective_plan.h"
#include "sim/fold/known_folds.h"
#include "sim/memo/lone_plays.h"
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

}  // namespace armilla
