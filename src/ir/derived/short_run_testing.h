// For tests: a run of 8 samples of 100 tokens a replica in 2 s.
#pragma once

#include "ir/study.h"

namespace armilla {

inline Run short_run(std::int64_t ranks) {
  Run run;
  run.model.name = "tiny";
  run.model.facts.sequence = 100;
  run.study.plan.ranks = ranks;
  run.study.plan.batch = 8;
  run.result.iteration = milliseconds(2000);
  return run;
}

}  // namespace armilla
