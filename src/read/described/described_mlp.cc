#include "read/described/described_blocks.h"

#include "base/checked.h"

namespace armilla {
namespace {

TensorId add_shared_experts(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const PartScope part(b, Part::shared_experts), router(b, Part::moe_router);
  const std::int64_t width = d.experts.shared_feed_forward;
  const bool gated = is_gated(d.activation);
  // Shared experts see every token and take no part in the exchange: an MLP beside the routed ones.
  const TensorId up = b.product(gated ? "mlp.shared.gate_up" : "mlp.shared.fc1", x, gated ? 2 * width : width,
                                {Split::column, 0, false, nullptr, DType::bf16, gated ? 2 : 1});
  const TensorId active = b.activation("mlp.shared.activation", up, width);
  const TensorId y = b.product(gated ? "mlp.shared.down" : "mlp.shared.fc2", active, d.hidden,
                               {Split::row, 0, false, nullptr});
  if (!d.experts.shared_gate) return y;
  // Qwen2-MoE's sigmoid(W x) weighs the shared result, one number per token.
  const TensorId gate = b.product("mlp.shared.gate", x, 1, {});
  return b.elementwise({"mlp.shared.gated", "Mul", 2, Split::tokens, 0, Saves::inputs}, {y, gate},
                       b.shape_of(y));
}

TensorId add_latent_projection(DescribedBuilder& b, std::string_view name, TensorId x, std::int64_t width) {
  const PartScope part(b, Part::latent);
  return b.product(name, x, width, {});
}

}  // namespace

char layer_letter(const ModelDescription& description, std::int64_t index) {
  return description.pattern[static_cast<std::size_t>(index) % description.pattern.size()];
}

bool has_experts(const ModelDescription& description, std::int64_t index) {
  const Experts& experts = description.experts;
  if (description.family == Family::hybrid) return layer_letter(description, index) == 'E';
  // Counted from 1: with `every` 2 the layers 1, 3, 5 ... have experts, as Qwen's decoder_sparse_step counts.
  return experts.count > 0 && index >= experts.dense_first && (index + 1) % experts.every == 0;
}

TensorId add_mlp(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const PartScope part(b, Part::mlp);
  const bool gated = is_gated(d.activation);
  // Gate and up are one product of double width, as Megatron-LM fuses them.
  const TensorId up =
      b.product(gated ? "mlp.gate_up" : "mlp.fc1", x, gated ? 2 * d.feed_forward : d.feed_forward,
                {Split::column, 0, d.mlp_bias, nullptr, DType::bf16, gated ? 2 : 1});
  const TensorId active = b.activation("mlp.activation", up, d.feed_forward);
  return b.product(gated ? "mlp.down" : "mlp.fc2", active, d.hidden, {Split::row, 0, false, nullptr});
}

TensorId add_experts(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const PartScope part(b, Part::moe);
  const Experts& experts = d.experts;
  const bool gated = is_gated(d.activation);
  const Shape shape = b.shape_of(x);
  const std::int64_t tokens = b.elements_of(x) / d.hidden;
  // Scores are fp32: routers select by small differences (Fedus et al. 2022, section 2.4, compute them in
  // higher precision).
  const Parts whole = b.enter(Part::moe_router);
  const TensorId scores =
      b.product("mlp.router", x, experts.count, {Split::tokens, 0, false, nullptr, DType::fp32});

  const TensorId weights = b.tensor("mlp.topk.weights", {shape[0], shape[1], experts.active}, DType::fp32);
  const TensorId chosen = b.tensor("mlp.topk.experts", {shape[0], shape[1], experts.active}, DType::int32);
  std::vector<ParameterId> bias;
  if (experts.router_bias) bias.push_back(b.parameter("mlp.router.bias", {experts.count}));
  const std::int64_t score_count = b.elements_of(scores);
  Operator& topk = b.add("mlp.topk", "TopK", {scores}, {weights, chosen}, std::move(bias));
  topk.forward.kind = WorkKind::vector;
  topk.forward.flops = Flops(checked_multiply(score_count, 5, topk.name));
  topk.saves = Saves::output;
  b.set_parts(whole);

  // Each token is copied to `active` experts: so many rows are exchanged and computed.
  const std::int64_t rows = checked_multiply(tokens, experts.active, "mlp.dispatch");
  const std::int64_t width = experts.latent > 0 ? experts.latent : d.hidden;
  b.enter(Part::moe_preprocess);
  const TensorId seen = experts.latent > 0 ? add_latent_projection(b, "mlp.latent_down", x, width) : x;
  const TensorId sent = b.tensor("mlp.dispatch", {rows, width});
  Operator& dispatch = b.add("mlp.dispatch", "Permute", {seen, chosen}, {sent});
  dispatch.exchange = Exchange::dispatch;
  dispatch.saves = Saves::nothing;
  dispatch.forward.kernel = Kernel::permute;
  b.set_parts(whole);

  const TensorId up =
      b.expert_product(gated ? "mlp.experts.gate_up" : "mlp.experts.fc1", sent, experts.count,
                       gated ? 2 * experts.feed_forward : experts.feed_forward, Split::column, experts.bias);
  const Parts around = b.enter(Part::moe_act);
  const TensorId active = b.activation("mlp.experts.activation", up, experts.feed_forward, true);
  b.set_parts(around);
  TensorId down = b.expert_product(gated ? "mlp.experts.down" : "mlp.experts.fc2", active, experts.count,
                                   width, Split::row, false);
  if (experts.bias) {
    // Each row gets its expert's bias by the token's weight: a pass behind the product.
    const ParameterId added = b.parameter("mlp.experts.bias", {experts.count, width});
    down = b.elementwise({"mlp.experts.bias_add", "AddExpertBias", 2, Split::tokens, 0, Saves::nothing},
                         {down}, Shape(b.shape_of(down)), {added});
    b.last().expert = true;
  }

  Shape narrow = shape;
  narrow.back() = width;
  TensorId y = b.tensor("mlp.combine", narrow);
  // Brings the rows back and adds a token's `active` results up by weight: two flops per element of each.
  Operator& combine = b.add("mlp.combine", "Unpermute", {down, weights, chosen}, {y});
  combine.forward.kind = WorkKind::vector;
  combine.forward.flops =
      Flops(checked_multiply(checked_multiply(rows, width, combine.name), 2, combine.name));
  combine.exchange = Exchange::combine;
  combine.forward.kernel = Kernel::permute;
  if (experts.latent > 0) y = add_latent_projection(b, "mlp.latent_up", y, d.hidden);
  if (experts.shared_feed_forward == 0) return y;
  const TensorId shared = add_shared_experts(b, d, x);
  return b.elementwise({"mlp.shared.add", "Add", 1, Split::tokens, 0, Saves::nothing}, {y, shared}, shape);
}

}  // namespace armilla
