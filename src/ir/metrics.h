// Figures derived from a Run, used alike by the terminal report, the JSON and CSV writers and the studies.
//
// Bus bandwidth is nccl-tests' (PERFORMANCE.md there): bytes/time times 2(n-1)/n for all-reduce, (n-1)/n for
// reduce-scatter, all-gather and all-to-all, 1 for broadcast and reduce. MFU is Chowdhery et al. 2022 (PaLM),
// appendix B: model flops of forward and backward matrix products over iteration time x ranks x the device's
// dense peak at the plan's precision. Under hybrid plans these are three times Operator::model_flops
// (Narayanan et al. 2021, section 5.1, without its recomputation), and HFU adds what is computed forward more
// than once: recomputation, and products that ranks do not share out.
#pragma once

#include <string>
#include <vector>

#include "ir/study.h"

namespace armilla {

double bus_factor(CollectiveKind kind, std::int64_t group_size);

Time simulated_time(const Run& run);  // of all iterations that were played to find one of the steady state
double samples_per_second(const Run& run);
double tokens_per_second(const Run& run);  // 0: the model does not tell what a token is
double model_flops_utilization(const Run& run);
double hardware_flops_utilization(const Run& run);
// Of the matrix products that devices really compute, the optimizer's excepted: a causal mask leaves out
// about half of the attention scores that the others count. More than 1 only where profiled times are shorter
// than the device can be.
double executed_flops_utilization(const Run& run);
// Per iteration, all ranks; those of a large job are beyond 64 bits.
double model_flops(const Run& run);
double hardware_flops(const Run& run);

struct LayerCost {
  std::int32_t layer = 0;
  Time forward, input_gradient, weight_gradient;
  Time communication;  // of the collectives attributed to the layer
  Time compute() const { return forward + input_gradient + weight_gradient; }
};
// One per layer, in layer order: of the role that computes longest for it.
std::vector<LayerCost> layer_costs(const Run& run);
// The `count` largest by compute time.
std::vector<LayerCost> costliest_layers(const Run& run, std::size_t count);

Time idle(const RankClass& ranks, Time iteration);  // neither computing nor communicating
double utilization(const LinkUse& link, Time iteration);

}  // namespace armilla
