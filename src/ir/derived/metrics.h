// Figures derived from a Run, used alike by the terminal report, the JSON and CSV writers and the studies.
//
// Bus bandwidth is nccl-tests' (PERFORMANCE.md there): bytes/time times 2(n-1)/n for all-reduce, (n-1)/n for
// reduce-scatter, all-gather and all-to-all, 1 for broadcast and reduce.
//
// MFU is model flops over iteration time x ranks x dense peak (Chowdhery et al. 2022 (PaLM), appendix B), HFU
// the same of hardware flops. Model flops: the matrix products that the model asks for, forward and backward,
// each once, without the attention scores that a mask hides ("causal half"): what no implementation can leave
// out. Experts with a capacity below the mean (Plan::expert_capacity) drop rows, which is part of the model,
// not of an implementation (Korthikanti et al. 2022, section 6.3: model flops are those that one forward and
// backward pass need, whatever the implementation): what is dropped is in neither figure. Hardware flops: the
// products that devices compute, with all that is repeated (recomputation, scores in the backward pass of
// flash attention, products that ranks do not share out) and, where the kernel computes them, hidden scores,
// and the empty rows of experts; the optimizer's not. So MFU <= HFU <= 1. PaLM and Megatron-LM count every
// score, and every expert of a token ("full"): full_model_flops, to compare with their figures. The peak is
// that of the plan's precision, or of a faster type that products of the model are in (quantised ones).
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
// More than 1 only where profiled times are shorter than the device can be.
double hardware_flops_utilization(const Run& run);
// Per iteration, all ranks; those of a large job are beyond 64 bits.
double model_flops(const Run& run);
double full_model_flops(const Run& run);
double hardware_flops(const Run& run);
// Whether a mask hides scores, so that the two counts of model flops differ.
bool has_hidden_scores(const Model& model);
// All forward arithmetic of the model as read (one micro-batch), but for hidden scores.
Flops visible_forward_flops(const Model& model);

struct LayerCost {
  std::int32_t layer = 0;
  Time forward, input_gradient, weight_gradient;
  Time communication;  // of the collectives attributed to the layer
  Time compute() const { return forward + input_gradient + weight_gradient; }
};
// One per layer, in layer order: of the role that computes longest for it.
std::vector<LayerCost> layer_costs(const Run& run);

Time idle(const RankClass& ranks, Time iteration);  // neither computing nor communicating
double utilization(const LinkUse& link, Time iteration);

}  // namespace armilla
