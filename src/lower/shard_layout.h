// Where the tensors and parameters of a model live under tensor, sequence, context and expert parallelism,
// and which part of each a rank holds.
//
//   replicated  every rank makes it itself (the model's inputs, masks and positions derived from them alone)
//   tokens      whole on every tensor rank; with sequence parallelism divided by tokens (Korthikanti et al.
//               2022, section 4.2.2)
//   divided     by features or heads over the tensor ranks (Shoeybi et al. 2019, section 3)
// On top of that context parallelism divides the tokens of every sequence. Tensors between Exchange::dispatch
// and combine are tokens on their experts' ranks: as many as without expert parallelism where loads are even,
// Degrees::load times that where they are not, Degrees::capacity times that where experts have a capacity;
// expert-tensor ranks hold different tokens until these are gathered (Megatron-Core, token_dispatcher.py).
// Not modelled: sums of gradients among copies of key-value heads, where there are fewer than tensor ranks.
// Cost: O(operators).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/plan.h"
#include "lower/shard_share.h"

namespace armilla {

struct Degrees {
  std::int64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1;
  bool sequence_parallel = false;   // only with tensor > 1
  bool gathers_again = true;        // what products read, for their weight gradients
  bool exchanges_by_layer = false;  // TensorMethod::modules
  bool all_to_all_context = false;
  bool loss_parallel = true;  // Plan::loss_parallel
  bool embedding_parallel = true, head_parallel = true;
  bool fuses_experts = false;  // Plan::fused_experts, where they can be
  bool folds_passes = false;   // is_foldable's are part of their neighbours' kernels
  Share sequence;              // of a sequence's tokens, by context parallelism
  Share load;                  // tokens of this expert position, relative to the mean
  Share capacity;              // rows of every expert, relative to the mean (Plan::expert_capacity)
};

enum class Home : std::uint8_t { replicated, tokens, divided };

struct Placement {
  Home home = Home::replicated;
  bool expert = false;     // between dispatch and combine
  Share features;          // divided: this rank's part of every token
  std::int64_t heads = 0;  // divided by heads: how many of them are here; 0: not known
};

struct Layout {
  Degrees degrees;
  DType base = DType::fp32;  // the model's own type; tensors of other types keep them whatever the plan's is
  std::vector<Placement> tensors;
  std::vector<std::uint32_t> owner;  // the tensor whose memory a view shares; itself for all others
  std::vector<bool> derived;         // by something trainable: it has a gradient and crosses stages
  std::vector<bool> positional;      // made of parameters alone (position biases)
  std::vector<bool> result;          // of the model, for its user: read by no operator
};

// Passes of experts (shard_work.h) that a compiler makes part of the products before them.
inline constexpr std::string_view kClampGate = "ClampGate", kAddExpertBias = "AddExpertBias";
bool is_foldable(const Operator& op);

Layout lay_out(const Model& model, const Degrees& degrees);

// Whether it looks tokens up in a table that tensor parallelism may divide.
bool is_table(const Operator& op);
std::int64_t tensor_degree(const Operator& op, const Degrees& degrees);
// Part of its weights' outputs, inputs, heads or rows that an operator's tensor rank works on.
Share split_share(const Model& model, const Operator& op, const Layout& layout);
// Tokens that a rank holds; `gathered`: after sequence parallelism's all-gather.
Share token_share(bool expert, bool gathered, const Degrees& degrees);
// The cross entropy that gathers the logits which tensor parallelism divides.
bool gathers_logits(const Operator& op, const Degrees& degrees);
// The cross entropy over logits that are divided by vocabulary.
bool is_divided_loss(const Model& model, const Operator& op, const Layout& layout);

Share tensor_share(const Layout& layout, std::uint32_t tensor, bool gathered);
Bytes local_bytes(const Model& model, const Layout& layout, std::uint32_t tensor, bool gathered,
                  DType floats);
std::int64_t local_elements(const Model& model, const Layout& layout, const Operator& op,
                            const Parameter& parameter);

// The type activations are kept in: the plan's precision, bf16 where that is fp8 or narrower.
DType activation_dtype(const Plan& plan);

}  // namespace armilla
