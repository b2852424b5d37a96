// One iteration of the steady state, cut out of several that ran in a row without a flush between them
// (pipedream-2bw): its time is what one more iteration adds.
//
// The iteration is a window of that length in the middle of the run, where every rank works as it would for
// ever: warm-up and drain of a pipeline take less than an iteration each (lower/pipeline_schedule.h: at least
// p micro-batches). Intervals are cut at its bounds; a collective belongs to it when it ends in it, and may
// have begun before (a negative time). Bytes and busy times are equal shares of the run's; times of
// communication are what the last iteration adds.
// Cost: O(intervals + links).
#pragma once

#include <cstdint>

#include "ir/result.h"

namespace armilla {

// `shorter` is the same run with one iteration less. Messages and events stay those simulated.
void keep_steady_iteration(Result& result, const Result& shorter, std::int64_t iterations);

}  // namespace armilla
