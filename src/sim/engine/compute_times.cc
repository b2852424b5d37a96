#include "sim/engine/compute_times.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/splitmix.h"

namespace armilla {
namespace {

// A step of SplitMix64's generator.
std::uint64_t mixed(std::uint64_t value) {
  return splitmix(value + 0x9e3779b97f4a7c15);
}

// In (0, 1].
double uniform(std::uint64_t bits) {
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

double jitter_factor(const Jitter& jitter, std::int32_t rank, std::uint32_t node) {
  // A function of the place alone, not a stream of draws: a node has the same jitter however the run is
  // ordered, folded or cut short.
  const std::uint64_t place = std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node;
  const std::uint64_t first = mixed(mixed(jitter.seed) ^ place), second = mixed(first);
  // Box and Muller's normal deviate, of which the exponential is lognormal with a mean of 1: jitter makes
  // times differ, and not longer on the average.
  const double normal =
      std::sqrt(-2 * std::log(uniform(first))) * std::cos(2 * std::numbers::pi * uniform(second));
  const double variance = std::log1p(jitter.deviation * jitter.deviation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace

std::vector<double> time_factors(const WhatIf& what_if, std::int64_t ranks) {
  std::vector<double> factors;
  for (const SlowRanks& slow : what_if.ranks) {
    factors.resize(static_cast<std::size_t>(ranks), 1.0);
    const std::int64_t last = std::min(slow.ranks.last, ranks - 1);
    for (std::int64_t rank = std::max<std::int64_t>(slow.ranks.first, 0); rank <= last; ++rank)
      factors[static_cast<std::size_t>(rank)] *= slow.time;
  }
  return factors;
}

ComputeTimes::ComputeTimes(const Graph& graph, const Machine& machine, const WhatIf& what_if,
                           std::span<const CostModel* const> costs, const RankClasses& classes)
    : jitter_(what_if.jitter), is_plain_(what_if.ranks.empty() && !(what_if.jitter.deviation > 0)) {
  for (const CostModel* const cost : costs) {
    std::vector<Time>& times = work_times_.emplace_back();
    for (const Work& work : graph.works) times.push_back(time_of(work, *cost, *costs.front()));
  }
  const std::vector<double> factors = time_factors(what_if, graph.ranks);
  for (const std::int32_t real : classes.real) {
    const std::optional<KernelRates>& kernels = device_of(machine, real).kernels;
    ranks_.push_back({device_number(machine, real), real,
                      factors.empty() ? 1.0 : factors[static_cast<std::size_t>(real)],
                      kernels ? kernels->processors : 0});
  }
}

Time ComputeTimes::scaled(std::int32_t rank, std::uint32_t node, Time time) const {
  const Rank& of = ranks_[static_cast<std::size_t>(rank)];
  double factor = of.factor;
  if (jitter_.deviation > 0) factor *= jitter_factor(jitter_, of.real, node);
  // Most are, and a detour over floating point would round times beyond 2^53 ps.
  if (factor == 1) return time;
  const double picoseconds = static_cast<double>(time.value) * factor;
  if (!(picoseconds < static_cast<double>(kEndOfTime.value))) return kEndOfTime;
  return Time(std::llround(std::max(picoseconds, 0.0)));
}

}  // namespace armilla
