// Uneven loads of experts: how many tokens each expert-parallel position gets, and the all-to-all that brings
// them there. Loads are relative to the mean and add up to the number of positions, up to rounding; none is
// less than kLeastLoad. A token goes to different experts, so of its k copies no more than the E / p experts
// of a position get one each: no load is above p min(k, E / p) / k, and what is beyond goes to the others in
// proportion. Normal numbers are drawn by counter (splitmix64, Box-Muller), the same everywhere.
// Not modelled: loads that change from layer to layer or from step to step.
// Cost: O(positions), the collective O(positions^2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/custom_collective.h"
#include "ir/model.h"
#include "ir/plan.h"
#include "lower/shard_share.h"

namespace armilla {

inline constexpr double kLeastLoad = 0.01;
// The pairs of an uneven all-to-all are listed one by one.
inline constexpr std::int64_t kMostUnevenExperts = 512;

// Where none is given: the exponent of Zipf's own law, and a deviation of a fifth of the mean.
double default_skew(ExpertLoad load);

// Plan::expert_capacity, where there is one.
Share capacity_share(const Plan& plan);
// One per expert-parallel position; all 1 where loads are even. Facts without experts set no limit.
std::vector<Share> expert_loads(const Plan& plan, const ModelFacts& facts);

// Every position holds tokens of `bytes` in all. To the experts, position j gets its load's share of each;
// back, position i returns to each what it got from it.
CustomCollective uneven_all_to_all(const std::vector<Share>& loads, Bytes bytes, bool to_experts);

}  // namespace armilla
