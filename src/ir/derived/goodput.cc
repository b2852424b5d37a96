#include "ir/derived/goodput.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/duration.h"
#include "base/error.h"

namespace armilla {
namespace {

// ln(1 - x) + x + d = 0 for x = tau / M in (0, 1), d = checkpoint / M > 0: the left side falls from d to
// minus infinity, so bisection finds the one root.
double optimal_share_of_mtbf(double d) {
  double low = 0, high = 1;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (std::log1p(-middle) + middle + d > 0 ? low : high) = middle;
  }
  return low;
}

}  // namespace

Goodput goodput(const Failures& failures, std::int64_t ranks, double iteration, const std::string& where) {
  Goodput result;
  const auto nodes = static_cast<double>(ceil_divide(ranks, failures.ranks_per_node));
  result.mtbf = failures.mtbf_of_node / nodes;
  result.failures_per_day = 86400 / result.mtbf;
  if (failures.interval > 0 && failures.interval < iteration) {
    throw Error(
        failures.interval_where,
        fmt::format("a checkpoint every {}, but an iteration takes {}", duration_text(failures.interval),
                    duration_text(iteration)),
        "a checkpoint follows a whole iteration: give a longer interval, or leave it out for the best");
  }
  // Between iterations: checkpoints that cost nothing are written after every one.
  const double best = result.mtbf * optimal_share_of_mtbf(failures.checkpoint / result.mtbf);
  result.optimal_interval = failures.checkpoint > 0 ? std::max(best, iteration) : iteration;
  result.interval = failures.interval > 0 ? failures.interval : result.optimal_interval;
  if (iteration > 0) result.iterations = result.interval / iteration;
  const double wall = result.mtbf * std::exp(failures.restart / result.mtbf) *
                      std::expm1((result.interval + failures.checkpoint) / result.mtbf);
  result.share = result.interval / wall;
  if (!std::isfinite(wall) || !(result.share > 0)) {
    throw Error(
        where,
        fmt::format("a job that fails every {} never completes {} of training, {} of checkpoint and {} "
                    "of restart",
                    duration_text(result.mtbf), duration_text(result.interval),
                    duration_text(failures.checkpoint), duration_text(failures.restart)),
        "write checkpoints more often or faster, or use nodes that last longer");
  }
  result.iteration = iteration / result.share;
  return result;
}

}  // namespace armilla
