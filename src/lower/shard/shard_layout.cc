#include "lower/shard_layout.h"

#include <algorithm>

#include "base/checked.h"

namespace armilla {
namespace {

bool has_trainable(const Model& model, const Operator& op) {
  return std::any_of(op.parameters.begin(), op.parameters.end(),
                     [&](std::uint32_t p) { return model.parameters[p].trainable; });
}

// The divided input that an element-wise output continues.
const Placement* continued(const Model& model, const Operator& op, const Layout& layout,
                           std::uint32_t output) {
  // Element-wise operators keep the number of elements; any operand of another size (a mask, a scale) is not
  // what they continue.
  const std::int64_t elements = element_count(model.tensors[output].shape, model.tensors[output].name);
  for (const std::uint32_t input : op.inputs) {
    if (layout.tensors[input].home == Home::divided &&
        element_count(model.tensors[input].shape, model.tensors[input].name) == elements)
      return &layout.tensors[input];
  }
  return nullptr;
}

Placement output_placement(const Model& model, const Operator& op, const Layout& layout,
                           std::uint32_t output) {
  Placement placement;
  if (is_divided_loss(model, op, layout)) {
    // Losses of tokens are known to every rank after the reductions; probabilities stay where logits are.
    if (const Placement* logits = continued(model, op, layout, output)) placement = *logits;
    return placement;
  }
  if (gathers_logits(op, layout.degrees)) return placement;  // alike on every tensor rank
  // Experts' tokens begin at the dispatch's output and end where an operator outside of the experts makes
  // something: combine gives its output no such mark.
  placement.expert = op.expert || op.exchange == Exchange::dispatch;
  const std::int64_t degree = tensor_degree(op, layout.degrees);
  switch (op.split) {
    case Split::tokens:
    case Split::row:
    case Split::vocabulary:
      placement.home = Home::tokens;
      return placement;
    case Split::column:
    case Split::features:
    case Split::heads:
      break;
  }
  placement.home = degree > 1 ? Home::divided : Home::tokens;
  // A column product makes new features, whatever its input's division was.
  if (op.split != Split::column) {
    if (const Placement* input = continued(model, op, layout, output)) return *input;
  }
  placement.features = split_share(model, op, layout);
  if (op.ways > 0) {
    placement.heads = ceil_divide(op.ways, degree);
  } else {
    for (const std::uint32_t input : op.inputs)
      placement.heads = std::max(placement.heads, layout.tensors[input].heads);
  }
  return placement;
}

}  // namespace

bool is_table(const Operator& op) {
  return op.split == Split::vocabulary && !op.parameters.empty();
}

std::int64_t tensor_degree(const Operator& op, const Degrees& degrees) {
  if (is_table(op) && !degrees.embedding_parallel) return 1;
  if (op.parts.has(Part::logits) && !degrees.head_parallel) return 1;
  return op.expert ? degrees.expert_tensor : degrees.tensor;
}

Share split_share(const Model& model, const Operator& op, const Layout& layout) {
  const std::int64_t degree = tensor_degree(op, layout.degrees);
  if (degree == 1 || op.split == Split::tokens) return {};
  // A table is divided by its rows, the vocabulary.
  if (is_table(op)) {
    const bool table = !model.parameters[op.parameters[0]].shape.empty();
    return largest_part(table ? model.parameters[op.parameters[0]].shape[0] : 0, degree);
  }
  // Beyond `ways` parts are copies (key-value heads): the share stays one head of all.
  if (op.ways > 0) return {ceil_divide(op.ways, degree), op.ways};
  if ((op.split == Split::column || op.split == Split::row) && !op.forward.gemms.empty()) {
    const Gemm& gemm = op.forward.gemms[0];
    if (op.split == Split::row) return largest_part(gemm.k, degree);
    // A grouped convolution is divided by whole groups.
    return largest_part(gemm.count > 1 && !op.expert ? gemm.count : gemm.n, degree);
  }
  // Element-wise work has the same part as the divided tensor it reads.
  for (const std::uint32_t input : op.inputs) {
    if (layout.tensors[input].home == Home::divided) return layout.tensors[input].features;
  }
  return {1, degree};
}

Share token_share(bool expert, bool gathered, const Degrees& degrees) {
  Share share = degrees.sequence;
  if (degrees.sequence_parallel && !(gathered && !expert))
    // Sequence parallelism leaves 1 / tensor of the tokens until they are gathered. Gathered for experts they
    // are those of the expert-tensor group only, expert_tensor / tensor of them.
    share = share * Share{expert && gathered ? degrees.expert_tensor : 1, degrees.tensor};
  return expert ? share * degrees.load * degrees.capacity : share;
}

bool gathers_logits(const Operator& op, const Degrees& degrees) {
  return !degrees.loss_parallel && degrees.tensor > 1 && op.type.find("CrossEntropy") != std::string::npos;
}

bool is_divided_loss(const Model& model, const Operator& op, const Layout& layout) {
  if (op.type.find("CrossEntropy") == std::string::npos || gathers_logits(op, layout.degrees)) return false;
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::uint32_t input) {
    return layout.tensors[input].home == Home::divided && is_floating(model.tensors[input].dtype);
  });
}

bool is_foldable(const Operator& op) {
  return op.type == kClampGate || op.type == kAddExpertBias;
}

Layout lay_out(const Model& model, const Degrees& degrees) {
  Layout layout;
  layout.degrees = degrees;
  // The model's own type is what its first floating parameter has; the plan's precision replaces it
  // everywhere.
  const auto first = std::find_if(model.parameters.begin(), model.parameters.end(),
                                  [](const Parameter& p) { return is_floating(p.dtype); });
  if (first != model.parameters.end()) layout.base = first->dtype;
  layout.tensors.resize(model.tensors.size());
  layout.derived.resize(model.tensors.size());
  layout.positional.resize(model.tensors.size());
  layout.result.resize(model.tensors.size());
  // Outputs of the model that an operator reads again are not results: the reader gathers or keeps them.
  for (const std::uint32_t t : model.outputs) layout.result[t] = true;
  for (const Operator& op : model.operators) {
    for (const std::uint32_t t : op.inputs) layout.result[t] = false;
  }
  layout.owner.resize(model.tensors.size());
  for (std::uint32_t t = 0; t < layout.owner.size(); ++t) layout.owner[t] = t;
  // Operators are in topological order, so inputs are placed before what reads them. Whatever no trainable
  // parameter went into stays replicated: masks and positions are made by every rank itself.
  for (const Operator& op : model.operators) {
    const bool derived =
        has_trainable(model, op) ||
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::uint32_t t) { return layout.derived[t]; });
    if (!derived) continue;
    const bool view = op.is_view && !op.inputs.empty();
    for (const std::uint32_t output : op.outputs) {
      layout.derived[output] = true;
      layout.positional[output] = op.inputs.empty();
      layout.tensors[output] =
          view ? layout.tensors[op.inputs[0]] : output_placement(model, op, layout, output);
      if (view || (degrees.folds_passes && is_foldable(op)))
        layout.owner[output] = layout.owner[op.inputs[0]];
    }
  }
  return layout;
}

Share tensor_share(const Layout& layout, std::uint32_t tensor, bool gathered) {
  const Placement& placement = layout.tensors[tensor];
  const Degrees& degrees = layout.degrees;
  switch (placement.home) {
    case Home::replicated:
      // Context parallelism divides also what every tensor rank makes itself.
      return degrees.sequence;
    case Home::tokens:
      return token_share(placement.expert, gathered, degrees);
    case Home::divided:
      break;
  }
  return token_share(placement.expert, true, degrees) * placement.features;
}

Bytes local_bytes(const Model& model, const Layout& layout, std::uint32_t tensor, bool gathered,
                  DType floats) {
  const Tensor& whole = model.tensors[tensor];
  // Only tensors of the model's own type follow the plan's precision: ids, masks and fp32 losses stay.
  const DType dtype = whole.dtype == layout.base ? floats : whole.dtype;
  const std::int64_t elements =
      scaled(element_count(whole.shape, whole.name), tensor_share(layout, tensor, gathered));
  return size_of(elements, dtype, whole.name);
}

std::int64_t local_elements(const Model& model, const Layout& layout, const Operator& op,
                            const Parameter& parameter) {
  const Degrees& degrees = layout.degrees;
  Share share;
  // Whole tables are dealt out (DLRM), or experts by number; a parameter without either by its first
  // dimension.
  if (op.expert && degrees.expert > 1) {
    const std::int64_t experts = model.facts.experts;
    share = op.split == Split::tokens && op.ways > 0 ? largest_part(op.ways, degrees.expert)
            : experts > 0                            ? largest_part(experts, degrees.expert)
                          : largest_part(parameter.shape.empty() ? 0 : parameter.shape[0], degrees.expert);
  }
  // What is added to a row-parallel product's sum (its bias) is held whole.
  const bool vector = parameter.shape.size() < (op.expert ? 3U : 2U);
  const bool whole = vector && (op.split == Split::row || op.split == Split::vocabulary);
  if (!whole && parameter.elements > 1) share = share * split_share(model, op, layout);
  return scaled(parameter.elements, share);
}

DType activation_dtype(const Plan& plan) {
  // Activations are never kept in less than 16 bits: fp8 plans cast them on the way into a product.
  return is_floating(plan.precision) && bits_of(plan.precision) < 16 ? DType::bf16 : plan.precision;
}

}  // namespace armilla
