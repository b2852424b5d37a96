// The part of an operator's work that one rank does.
//
// Matrix products are divided dimension by dimension: m by the rank's tokens, n (column), k (row), or the
// number of products (heads, experts) by tensor and expert parallelism, each rounded up; arithmetic follows
// the products. Grouped products of experts see the tokens of all expert ranks: m x expert ranks, count /
// expert ranks. Attention under context parallelism has its queries' share of m (causal masks balanced by the
// zigzag order of Llama 3, Dubey et al. 2024, section 3.3.2), or under all-to-all its heads' share of count.
// Traffic is scaled by what the operator's tensors and parameters shrink to, each where it lives; tables that
// are looked up in count by their activations alone.
// Precision: matrix products and activations in the plan's. Where that is narrower than 16 bits, only
// products with weights outside embedding and head are computed in it (DeepSeek-AI 2024, section 3.3.1);
// activations stay bf16 and each pass over a weight also casts it: one narrow copy is written and read.
// Plan::wide_first_layers and its like keep others in bf16, too.
// Losses under Framework::pytorch move what its kernels do, fused where the host is compiled; so do norms,
// rotary positions and gated activations that are none of fused_elementwise_of(plan).
// Cost: O(tensors of the operator).
#pragma once

#include <optional>

#include "ir/model.h"
#include "ir/plan.h"
#include "lower/shard_layout.h"

namespace armilla {

struct OperatorWork {
  Work forward, input_gradient, weight_gradient;
  Bytes parameters;                  // traffic of forward that is weights
  std::int64_t weight_elements = 0;  // trainable, on this rank
  Work transposes;                   // beside the product, each way: Plan::channels_last
};

// Of windows with weights, and computed where channels have to be last: not channel by channel, nor in fp32.
bool wants_channels_last(const Operator& op, DType type);

// Whether products of the operator may be computed in a type narrower than 16 bits; `wide`: its block stays
// as it is. Embedding, head and routers keep the wider type (DeepSeek-AI 2024, section 3.3.1).
bool may_be_narrow(const Operator& op, const Block& block, const Plan& plan, bool wide);
OperatorWork shard_operator(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                            bool narrow);

// Which of fusable_parts() the operator is. LayerNorm and activations without a gate are one kernel anyway.
std::optional<Part> elementwise_part(const Model& model, const Operator& op);

// Of experts that tokens are sent to.
bool is_routed(const Operator& op);
// Whether Transformer Engine's grouped MLP can be one kernel with the model's routed experts: products of
// multiples of 256, without biases, around a gated activation.
bool can_fuse_experts(const Model& model);

// One of `pieces` equal parts along m, the weights read by each.
bool can_cut(const Work& work, std::int64_t pieces);
Work cut(const Work& work, Bytes parameters, std::int64_t pieces);
// A part of a product's results, of some of the weights that it joins.
Work columns_of(const Work& work, Share share);
// A rank's queries with one rank's keys and values. A fused kernel reads the queries and writes the result in
// every step; the traffic of separate ones is mostly scores, of which a step has its part.
Work ring_step(const Work& work, std::int64_t steps, bool fused);

// Adding a fresh weight gradient to the accumulated one.
Work accumulation(std::int64_t elements, const Plan& plan);

}  // namespace armilla
