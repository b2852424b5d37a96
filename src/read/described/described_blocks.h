// The parts that transformer blocks are made of, one function per concern. Each takes and returns the
// activations it reads and writes; operators are named "BLOCK.SCOPE.NAME".
#pragma once

#include <cstdint>
#include <string_view>

#include "read/described/described_builder.h"
#include "read/described/model_description.h"

namespace armilla {

// Projections, positions, attention core and output projection, without its bias. Keys and values are made of
// `memory`, which is `x` itself in self-attention. Sources: Vaswani et al. 2017; Ainslie et al. 2023 (grouped
// queries); Dao et al. 2022 (flash attention: the backward pass computes the scores once more); DeepSeek-AI
// 2024, section 2.1.1 (latent attention). Under a causal mask the flash kernel skips half of the scores,
// which papers count in full (Narayanan et al. 2021, appendix).
TensorId add_attention(DescribedBuilder& builder, const ModelDescription& description, std::string_view scope,
                       TensorId x, TensorId memory, bool causal);

// The table of relative positions, as its own operator before the core (Raffel et al. 2020, section 2.1); all
// layers of a stack share it.
struct RelativeBias {
  ParameterId table;
};
TensorId add_biased_attention(DescribedBuilder& builder, const ModelDescription& description,
                              std::string_view scope, TensorId x, bool causal, const RelativeBias& bias);

// Two products (three in one when gated) around the activation, without the last bias; scope "mlp".
TensorId add_mlp(DescribedBuilder& builder, const ModelDescription& description, TensorId x);

// Router, top-k, exchange of tokens, experts, exchange back, shared experts; scope "mlp" (Shazeer et al.
// 2017; Fedus et al. 2022; Dai et al. 2024 for shared experts). Loads are even here: a plan skews them. The
// router's auxiliary loss is not modelled.
TensorId add_experts(DescribedBuilder& builder, const ModelDescription& description, TensorId x);

// Projection, causal convolution, scan, gate and output projection; scope "ssm". With heads Mamba-2 (Dao and
// Gu 2024), else Mamba (Gu and Dao 2023). NOT modelled: the exchange of states under context parallelism.
TensorId add_state_space(DescribedBuilder& builder, const ModelDescription& description, TensorId x);

// Of a hybrid: what layer `index` is.
char layer_letter(const ModelDescription& description, std::int64_t index);
// Whether layer `index` has experts in place of the MLP.
bool has_experts(const ModelDescription& description, std::int64_t index);

}  // namespace armilla
