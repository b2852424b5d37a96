#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/checked.h"
#include "read/described/described_blocks.h"

namespace armilla {
namespace {

struct Qkv {
  TensorId q, k, v;
};

struct Core {
  std::int64_t score_dim, value_dim;  // per head
  bool causal;
  std::optional<TensorId> bias;
};

Qkv project(DescribedBuilder& b, const ModelDescription& d, const std::string& scope, TensorId x,
            TensorId memory) {
  const std::int64_t q_size = d.heads * d.head_dim, kv_size = d.kv_heads * d.head_dim;
  const std::string q = scope + ".q", k = scope + ".k", v = scope + ".v";
  ProductOptions options{Split::column, d.heads, d.qkv_bias, nullptr};
  // Equal numbers of heads: one product makes all three. Grouped queries take two, because tensor parallelism
  // divides queries and keys by different numbers of heads; so does attention to another sequence.
  if (x == memory && d.kv_heads == d.heads) {
    const auto all = b.products(scope + ".qkv", x, {q, k, v}, {q_size, kv_size, kv_size}, options);
    return {all[0], all[1], all[2]};
  }
  const TensorId queries = b.product(q, x, q_size, options);
  options.ways = d.kv_heads;
  const auto rest = b.products(scope + ".kv", memory, {k, v}, {kv_size, kv_size}, options);
  return {queries, rest[0], rest[1]};
}

// Turns queries and keys in place of adding positions.
void rotate(DescribedBuilder& b, const ModelDescription& d, const std::string& scope, std::int64_t rotated,
            Qkv& qkv) {
  const TensorId q = b.tensor(scope + ".q.rotated", b.shape_of(qkv.q));
  const TensorId k = b.tensor(scope + ".k.rotated", b.shape_of(qkv.k));
  // Three flops per rotated element, two products and one addition. Values never turn.
  const std::int64_t heads = (b.elements_of(q) + b.elements_of(k)) / d.head_dim;
  Operator& op = b.add(scope + ".rotary", "RotaryEmbedding", {qkv.q, qkv.k}, {q, k});
  op.forward.kind = WorkKind::vector;
  op.forward.flops = Flops(checked_multiply(heads, 3 * rotated, op.name));
  op.forward.kernel = Kernel::rotary;
  op.split = Split::heads;
  op.ways = d.heads;
  op.saves = Saves::nothing;
  qkv.q = q;
  qkv.k = k;
}

Qkv project_latent(DescribedBuilder& b, const ModelDescription& d, const std::string& scope, TensorId x) {
  const LatentAttention& latent = *d.latent;
  const std::int64_t q_size = d.heads * d.head_dim;
  const ProductOptions column{Split::column, d.heads, false, nullptr};
  // The products into the ranks are small and stay whole on every tensor-parallel rank, as in Megatron-Core.
  TensorId q = x;
  // Queries may have a latent of their own; DeepSeek-V2-Lite, for one, does without.
  if (latent.query_rank > 0) {
    q = b.product(scope + ".q_down", x, latent.query_rank, {Split::tokens, 0, d.qkv_bias, nullptr});
    const PartScope part(b, Part::mla_up_proj);
    q = b.product(scope + ".q_up", b.norm(scope + ".q_norm", q), q_size, column);
  } else {
    const PartScope part(b, Part::mla_up_proj);
    q = b.product(scope + ".q", x, q_size, column);
  }
  const std::string rope = scope + ".k_rope", down = scope + ".kv_down", up = scope + ".kv_up";
  // One product makes the compressed keys and values and the shared rotated key, as Megatron-Core's
  // linear_kv_down_proj and transformers' kv_a_proj_with_mqa.
  const auto compressed =
      b.products(down, x, {scope + ".kv", rope}, {latent.key_value_rank, latent.rope_head_dim},
                 {Split::tokens, 0, d.qkv_bias, nullptr});
  const PartScope part(b, Part::mla_up_proj);
  const TensorId normed = b.norm(scope + ".kv_norm", compressed[0]);
  const auto kv = b.products(up, normed, {scope + ".k_nope", scope + ".v"},
                             {d.heads * latent.nope_head_dim, d.heads * latent.value_head_dim}, column);
  // The rotated part of the keys is one head that all heads share; the kernel copies it to each.
  Qkv qkv{b.tensor(scope + ".q.rotated", b.shape_of(q)), b.tensor(scope + ".k.rotated", b.shape_of(q)),
          kv[1]};
  // Heads of queries, each turned in its last rope_head_dim elements, and one head of keys per token.
  const std::int64_t turned =
      b.elements_of(qkv.q) / d.head_dim + b.elements_of(compressed[1]) / latent.rope_head_dim;
  Operator& op = b.add(scope + ".rotary", "RotaryEmbedding", {q, kv[0], compressed[1]}, {qkv.q, qkv.k});
  op.forward.kind = WorkKind::vector;
  op.forward.flops = Flops(checked_multiply(turned, 3 * latent.rope_head_dim, op.name));
  op.forward.kernel = Kernel::rotary;
  op.split = Split::heads;
  op.ways = d.heads;
  op.saves = Saves::nothing;
  return qkv;
}

// How many keys a query sees on average, and how many papers count for it.
std::pair<std::int64_t, std::int64_t> visible_keys(const ModelDescription& d, std::int64_t keys,
                                                   bool causal) {
  if (!causal) return {keys, keys};
  if (d.window == 0 || d.window >= keys) return {(keys + 1) / 2, keys};
  // The first `window` queries see fewer.
  return {d.window - d.window * (d.window - 1) / 2 / keys, d.window};
}

Kernel attention_kernel(AttentionKernel attention) {
  if (attention == AttentionKernel::flash_2) return Kernel::flash_2;
  return attention == AttentionKernel::flash_triton ? Kernel::flash_triton : Kernel::attention;
}

TensorId flash_core(DescribedBuilder& b, const ModelDescription& d, const std::string& scope, const Qkv& qkv,
                    const Core& core) {
  const std::int64_t queries = b.shape_of(qkv.q)[1], keys = b.shape_of(qkv.k)[1];
  // Keys are the columns of the first product (scores) and the inner size of the second (weighted sum).
  const auto [seen, counted] = visible_keys(d, keys, core.causal);
  const TensorId y = b.tensor(scope + ".core", {b.batch(), queries, d.heads * core.value_dim});
  std::vector<TensorId> inputs = {qkv.q, qkv.k, qkv.v};
  if (core.bias) inputs.push_back(*core.bias);
  Operator& op = b.add(scope + ".core", "FlashAttention", std::move(inputs), {y});
  const std::int64_t count = checked_multiply(b.batch(), d.heads, op.name);
  b.set_matrix_work(op, {{queries, counted, core.score_dim, count, false},
                         {queries, core.value_dim, counted, count, false}});
  // Papers count the whole square of scores, the kernel skips the blocks that a mask hides. Utilisation is
  // formed with either, so both numbers are kept.
  if (seen != counted) op.full_flops = op.forward.flops;
  b.set_matrix_work(
      op, {{queries, seen, core.score_dim, count, false}, {queries, core.value_dim, seen, count, false}});
  op.forward.kernel = attention_kernel(d.attention);
  // The backward kernel computes the scores once more from queries and keys: the first product's part of the
  // two.
  op.repeated_forward =
      static_cast<double>(core.score_dim) / static_cast<double>(core.score_dim + core.value_dim);
  op.split = Split::heads;
  op.ways = d.heads;
  op.core_attention = true;
  return y;
}

Operator& mark_core(Operator& op, const ModelDescription& d, Saves saves) {
  op.split = Split::heads;
  op.ways = d.heads;
  op.core_attention = true;
  op.saves = saves;
  return op;
}

// A product with all keys, of which a mask hides some and papers count `counted`.
void set_masked_work(DescribedBuilder& b, const ModelDescription& d, Operator& op, std::int64_t keys,
                     bool causal, const std::function<Gemm(std::int64_t keys)>& product) {
  const auto [seen, counted] = visible_keys(d, keys, causal);
  const auto flops_of = [&](std::int64_t columns) {
    b.set_matrix_work(op, {product(columns)});
    return op.forward.flops;
  };
  if (seen != keys) op.masked_flops = flops_of(seen);
  if (counted != keys) op.full_flops = flops_of(counted);
  // Last, since it leaves the operator with the work that is executed: all keys, masked or not.
  flops_of(keys);
}

TensorId unfused_core(DescribedBuilder& b, const ModelDescription& d, const std::string& scope,
                      const Qkv& qkv, const Core& core) {
  const std::int64_t queries = b.shape_of(qkv.q)[1], keys = b.shape_of(qkv.k)[1];
  const Shape shape = {b.batch(), d.heads, queries, keys};
  const std::int64_t count = checked_multiply(b.batch(), d.heads, scope);
  const TensorId scores = b.tensor(scope + ".scores", shape);
  // The scores' operands and every array of queries x keys behind them are kept for the backward pass: the
  // memory, quadratic in the sequence, that flash attention avoids (Korthikanti et al. 2022, section 4.1).
  Operator& product = b.add(scope + ".scores", "MatMul", {qkv.q, qkv.k}, {scores});
  set_masked_work(b, d, product, keys, core.causal, [&](std::int64_t seen) {
    return Gemm{queries, seen, core.score_dim, count, false};
  });
  mark_core(product, d, Saves::inputs);

  std::vector<TensorId> inputs = {scores};
  if (core.bias) inputs.push_back(*core.bias);
  TensorId weights = b.tensor(scope + ".softmax", shape);
  const std::int64_t elements = b.elements_of(weights);
  Operator& softmax = b.add(scope + ".softmax", "Softmax", std::move(inputs), {weights});
  softmax.forward.kind = WorkKind::vector;
  softmax.forward.flops = Flops(checked_multiply(elements, 5, softmax.name));
  mark_core(softmax, d, Saves::output);

  if (d.dropout) {
    const TensorId dropped = b.tensor(scope + ".dropout", shape);
    const TensorId mask = b.tensor(scope + ".dropout.mask", shape, DType::boolean);
    Operator& dropout = b.add(scope + ".dropout", "Dropout", {weights}, {dropped, mask});
    dropout.forward.kind = WorkKind::vector;
    dropout.forward.flops = Flops(elements);
    mark_core(dropout, d, Saves::mask);
    weights = dropped;
  }
  const TensorId y = b.tensor(scope + ".context", {b.batch(), queries, d.heads * core.value_dim});
  Operator& context = b.add(scope + ".context", "MatMul", {weights, qkv.v}, {y});
  set_masked_work(b, d, context, keys, core.causal, [&](std::int64_t seen) {
    return Gemm{queries, core.value_dim, seen, count, false};
  });
  mark_core(context, d, Saves::inputs);
  return y;
}

TensorId attend(DescribedBuilder& b, const ModelDescription& d, const std::string& scope, TensorId x,
                TensorId memory, bool causal, const RelativeBias* relative) {
  const PartScope part(b, Part::attention);
  Qkv qkv = d.latent ? project_latent(b, d, scope, x) : project(b, d, scope, x, memory);
  Core core{d.head_dim, d.latent ? d.latent->value_head_dim : d.head_dim, causal, std::nullopt};
  // Latent attention has its norms and its rotation inside its projections.
  if (!d.latent) {
    if (d.qk_norm) {
      qkv.q = b.norm(scope + ".q_norm", qkv.q, Split::heads, d.head_dim);
      qkv.k = b.norm(scope + ".k_norm", qkv.k, Split::heads, d.head_dim);
    }
    if (d.positions == Positions::rotary) rotate(b, d, scope, d.head_dim, qkv);
  }
  if (relative != nullptr) {
    const std::int64_t length = b.shape_of(qkv.q)[1];
    // No inputs: the bias depends on positions alone and is one for all samples of the batch.
    const TensorId bias = b.tensor(scope + ".position_bias", {1, d.heads, length, length});
    Operator& op = b.add(scope + ".position_bias", "Gather", {}, {bias}, {relative->table});
    op.needs_input_gradient = false;
    // Beside the core, not in it: selective recompute repeats scores and softmax, not the look-up of
    // positions.
    mark_core(op, d, Saves::nothing).core_attention = false;
    core.bias = bias;
  }
  const TensorId y = d.attention != AttentionKernel::unfused ? flash_core(b, d, scope, qkv, core)
                                                             : unfused_core(b, d, scope, qkv, core);
  return b.product(scope + ".output", y, d.hidden, {Split::row, d.heads, false, nullptr});
}

}  // namespace

TensorId add_attention(DescribedBuilder& builder, const ModelDescription& description, std::string_view scope,
                       TensorId x, TensorId memory, bool causal) {
  return attend(builder, description, std::string(scope), x, memory, causal, nullptr);
}

TensorId add_biased_attention(DescribedBuilder& builder, const ModelDescription& description,
                              std::string_view scope, TensorId x, bool causal, const RelativeBias& bias) {
  return attend(builder, description, std::string(scope), x, x, causal, &bias);
}

}  // namespace armilla
