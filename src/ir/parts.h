// Parts of a transformer layer that options name: what selective recomputation computes again, what stays in
// a wide type, what is a CUDA graph. Names are Megatron-Core's where it has one (transformer_config.py,
// recompute_modules and cuda_graph_scope, which call different parts "mlp" and "moe").
// Operators say which they are in (ir/model.h); one may be in several.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace armilla {

enum class Part : std::uint8_t {
  core_attn,    // scores, softmax and weighted sum (Operator::core_attention)
  layernorm,    // norms that are kernels of their own there: before experts, before latent attention
  mla_up_proj,  // latent attention: from the compressed queries, keys and values to heads, with rotation
  mlp,          // of a layer without experts, its norm included, which is part of the first product
  moe,          // router, exchange of tokens, routed and shared experts
  moe_act,      // activation of the routed experts
  shared_experts,
  attention,   // projections into and out of attention
  latent,      // projections of LatentMoE into the width of the experts and back
  prediction,  // layers of multi-token prediction
  logits,      // output matrix and loss, wide always
  norm,        // element by element: RMSNorm
  rotary,      // positions that turn queries and keys
  activation,  // gated ones
  // Sublayers with their norm and their residual:
  attn,
  mamba,
  mlp_layer,       // "mlp", of a layer without experts
  moe_layer,       // "moe"
  moe_router,      // norm, router and shared experts
  moe_preprocess,  // what is done to tokens before they are sent to experts
};
std::string_view name_of(Part part);

// A set of them.
class Parts {
 public:
  constexpr Parts() = default;
  constexpr Parts(std::initializer_list<Part> parts) {
    for (const Part part : parts) add(part);
  }
  constexpr void add(Part part) { bits_ |= 1U << static_cast<unsigned>(part); }
  constexpr bool has(Part part) const { return (bits_ >> static_cast<unsigned>(part) & 1U) != 0; }
  constexpr bool meets(Parts others) const { return (bits_ & others.bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const Parts&) const = default;
  constexpr std::uint32_t bits() const { return bits_; }

 private:
  std::uint32_t bits_ = 0;
};

std::vector<std::string_view> names_of(Parts parts);

// What can be computed again by itself, what can be kept wide, what one kernel or several compute, and what a
// CUDA graph can hold, in the order they are listed.
std::span<const Part> recomputable_parts();
std::span<const Part> widenable_parts();
std::span<const Part> fusable_parts();
std::span<const Part> graphable_parts();

}  // namespace armilla
