// Goodput of a long job whose nodes fail: which share of the wall-clock time trains, and how often to write
// checkpoints.
//
// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006,
// section 3: failures come as a Poisson process of mean time M = mtbf_of_node / nodes; tau of training, then
// a checkpoint of d; after a failure a restart of R, then from the last checkpoint again. Expected wall-clock
// time for tau of training, failures during checkpoint and restart included (equation 20):
//   T(tau) = M e^(R / M) (e^((tau + d) / M) - 1)
// goodput = tau / T(tau). The optimum solves e^((tau + d) / M) (1 - tau / M) = 1; it is solved numerically.
// Young 1974: tau = sqrt(2 d M) for small d / M. Checkpoints are written between iterations: tau is at least
// one of them.
// Not modelled: failures that come together, spares that run out, asynchronous checkpoints, slow nodes that
// do not fail.
#pragma once

#include <cstdint>
#include <string>

#include "ir/what_if.h"

namespace armilla {

struct Goodput {
  double mtbf = 0;              // of the job, seconds
  double interval = 0;          // of training between checkpoints, seconds, as used
  double optimal_interval = 0;  // seconds
  double iterations = 0;        // in an interval
  double share = 1;             // of the wall-clock time that trains
  double failures_per_day = 0;
  double iteration = 0;  // effective, seconds: simulated iteration / share
};

// `iteration` in seconds. Throws Error for checkpoints within an iteration, and (at `where`) where no
// progress can be expected.
Goodput goodput(const Failures& failures, std::int64_t ranks, double iteration, const std::string& where);

}  // namespace armilla
