#include "lower/shard/shard_recompute.h"

#include <algorithm>
#include <array>

#include "lower/shard/shard_conversion.h"

namespace armilla {
namespace {

std::int64_t width_of(const Model& model, std::uint32_t tensor) {
  const Shape& shape = model.tensors[tensor].shape;
  return shape.empty() ? 1 : std::max<std::int64_t>(shape.back(), 1);
}

// Gate and up lie side by side in what an activation makes one of.
bool feeds_gate(const Model& model, const Block& block, std::uint32_t tensor) {
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    if (op.forward.kernel != Kernel::activation || op.inputs.empty() || op.outputs.empty()) continue;
    if (op.inputs.front() == tensor && width_of(model, op.outputs.front()) < width_of(model, tensor))
      return true;
  }
  return false;
}

// Counts the weights of products in the order of the forward pass; every second one's result is kept.
class ProductCounter {
 public:
  bool keep_next() { return count_++ % 2 == 0; }

 private:
  std::int64_t count_ = 0;
};

// The share of its work that is done again.
Share keep_products(const Model& model, const Block& block, const Operator& op, ProductCounter& counter,
                    std::vector<KeptResult>& kept) {
  std::int64_t again = 0, all = 0;
  for (const std::uint32_t t : op.outputs) {
    const std::int64_t matrices = op.outputs.size() == 1 && feeds_gate(model, block, t) ? 2 : 1;
    std::int64_t keeps = 0;
    for (std::int64_t m = 0; m < matrices; ++m) keeps += counter.keep_next() ? 1 : 0;
    const std::int64_t width = width_of(model, t);
    all += width * matrices;
    again += width * (matrices - keeps);
    if (keeps > 0) kept.push_back({t, {keeps, matrices}});
  }
  return {again, std::max<std::int64_t>(all, 1)};
}

bool is_in(const Operator& op, Part part) {
  return part == Part::core_attn ? op.core_attention : op.parts.has(part);
}

}  // namespace

std::uint32_t end_of_what_is_read(const Model& model, const Block& block) {
  std::uint32_t end = block.first;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Saves saves = model.operators[i].saves;
    if (saves == Saves::inputs) end = i;
    if (saves == Saves::output || saves == Saves::mask) end = i + 1;
  }
  return end;
}

std::uint32_t end_of_checkpoint(const Model& model, const Block& block) {
  std::uint32_t end = block.first;
  while (end < block.end && !model.operators[end].parts.has(Part::logits)) ++end;
  return end;
}

std::int64_t times_repeated(const Operator& op, Parts parts) {
  std::int64_t times = 0;
  for (const Part part : recomputable_parts()) times += parts.has(part) && is_in(op, part) ? 1 : 0;
  return times;
}

bool frees_results(const Operator& op, Parts parts) {
  return std::ranges::any_of(std::array{Part::layernorm, Part::mla_up_proj, Part::moe_act},
                             [&](Part part) { return parts.has(part) && is_in(op, part); });
}

RepeatedOperators repeated_operators(const Model& model, const Block& block, const Layout& layout,
                                     DType floats, bool needed_only) {
  RepeatedOperators result;
  ProductCounter counter;
  const std::uint32_t end = end_of_what_is_read(model, block);
  constexpr Share kNone{0, 1}, kAll{1, 1};
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    const bool fused_attention = op.core_attention && op.repeated_forward > 0;
    Share again = kAll;
    std::vector<KeptResult> kept;
    if (op.weight_is_operand) again = keep_products(model, block, op, counter, kept);
    // Results of collectives are kept, so that nothing is sent twice, and so are those of fused attention.
    if (fused_attention || exit_of(model, layout, op, floats).forward) {
      again = kNone;
      kept.clear();
      for (const std::uint32_t t : op.outputs) kept.push_back({t, kAll});
    }
    // The backward pass begins behind it.
    if (i >= end) again = kNone;
    if (i < end || !needed_only) result.kept.insert(result.kept.end(), kept.begin(), kept.end());
    result.shares.push_back(again);
  }
  // Tensors that share memory are kept as the one that owns it.
  for (KeptResult& each : result.kept) each.tensor = layout.owner[each.tensor];
  std::sort(result.kept.begin(), result.kept.end(),
            [](const KeptResult& a, const KeptResult& b) { return a.tensor < b.tensor; });
  return result;
}

}  // namespace armilla
