#include "lower/shard/shard_conversion.h"

#include <algorithm>

#include "base/checked.h"

namespace armilla {
namespace {

// Weight gradients of products need the input with all its tokens; other operators do with their own.
bool needs_gathered_input(const Model& model, const Operator& op) {
  return op.weight_is_operand && std::any_of(op.parameters.begin(), op.parameters.end(),
                                             [&](std::uint32_t p) { return model.parameters[p].trainable; });
}

void set_collectives(const Model& model, const Layout& layout, DType floats, std::int64_t degree,
                     GroupAxis axis, Entry& entry) {
  // `whole` is the tensor after the gather, which is how collectives count bytes here; all-to-alls count what
  // one rank holds.
  const bool sequence = layout.degrees.sequence_parallel;
  const Bytes whole = whole_bytes(model, layout, entry.tensor, floats);
  const CollectiveStep gather{CollectiveKind::all_gather, axis, whole};
  const CollectiveStep scatter{CollectiveKind::reduce_scatter, axis, whole};
  const CollectiveStep swap{CollectiveKind::all_to_all, axis, Bytes(ceil_divide(whole.value, degree))};
  switch (entry.conversion) {
    case Conversion::none:
      break;
    case Conversion::enter:
      if (sequence) entry.forward = gather;
      entry.backward = sequence ? scatter : CollectiveStep{CollectiveKind::all_reduce, axis, whole};
      // Tokens gathered for experts stay (Megatron-Core's dispatcher lies outside of the expert products).
      if (sequence && entry.last_product != UINT32_MAX && axis == GroupAxis::tensor &&
          layout.degrees.gathers_again)
        entry.again = gather;
      break;
    case Conversion::divide:
      if (sequence) entry.forward = swap;
      entry.backward = sequence ? swap : gather;
      break;
    case Conversion::collect_features:
      entry.forward = sequence ? swap : gather;
      if (sequence) entry.backward = swap;
      break;
    case Conversion::collect_all:
      entry.forward = gather;
      entry.backward = scatter;
      break;
    case Conversion::copy:
      // Every rank goes on with its own part of the gradient, which is the same on all.
      entry.forward = gather;
      break;
  }
  entry.layers = std::max<std::int64_t>(entry.layers, 1);
  // Nothing that needs an input gradient reads the tensor: no backward collective then.
  if (entry.first_gradient == UINT32_MAX) entry.backward.reset();
}

}  // namespace

Bytes whole_bytes(const Model& model, const Layout& layout, std::uint32_t tensor, DType floats) {
  const Tensor& whole = model.tensors[tensor];
  const Share share = token_share(layout.tensors[tensor].expert, true, layout.degrees);
  const std::int64_t elements = scaled(element_count(whole.shape, whole.name), share);
  return size_of(elements, whole.dtype == layout.base ? floats : whole.dtype, whole.name);
}

Conversion conversion(const Model& model, const Layout& layout, const Operator& op, std::uint32_t input) {
  const Placement& from = layout.tensors[input];
  // Inputs of the model and ids are on every rank, views move nothing, and exchanges between experts have
  // their own collectives.
  if (from.home == Home::replicated || !is_floating(model.tensors[input].dtype) || op.is_view ||
      op.exchange != Exchange::none || is_divided_loss(model, op, layout))
    return Conversion::none;
  const bool divided = from.home == Home::divided;
  if (divided && gathers_logits(op, layout.degrees)) return Conversion::copy;
  switch (op.split) {
    case Split::column:
      if (divided) return Conversion::collect_all;
      break;
    case Split::row:
      // A row product takes exactly the features that a column product left.
      if (divided || tensor_degree(op, layout.degrees) == 1) return Conversion::none;
      return Conversion::divide;
    case Split::features:
    case Split::heads:
      if (divided) return Conversion::none;
      break;
    // Norms, residuals and routers see all features of a token.
    case Split::tokens:
    case Split::vocabulary:
      return divided ? Conversion::collect_features : Conversion::none;
  }
  return tensor_degree(op, layout.degrees) > 1 ? Conversion::enter : Conversion::none;
}

// Linear layers that a product stands for and that enter a divided region one by one: keys and values are
// two results of one product here, gate and up two halves of one, of which the activation makes one.
std::int64_t layers_of(const Model& model, const Layout& layout, const Operator& op, Conversion how) {
  if (!layout.degrees.exchanges_by_layer || how != Conversion::enter || !op.weight_is_operand) return 0;
  const auto results = static_cast<std::int64_t>(op.outputs.size());
  if (results != 1) return results;
  const auto elements = [&](std::uint32_t tensor) {
    return element_count(model.tensors[tensor].shape, model.tensors[tensor].name);
  };
  const std::uint32_t result = op.outputs.front();
  const bool is_halved = std::ranges::any_of(model.operators, [&](const Operator& reader) {
    return reader.inputs == std::vector{result} && reader.forward.kernel == Kernel::activation &&
           elements(reader.outputs.front()) * 2 == elements(result);
  });
  return is_halved ? 2 : 1;
}

std::vector<Entry> entries(const Model& model, const Layout& layout, std::uint32_t first, std::uint32_t end,
                           DType floats) {
  std::vector<Entry> found;
  struct Group {
    std::int64_t degree;
    GroupAxis axis;
  };
  std::vector<Group> groups;
  for (std::uint32_t i = first; i < end; ++i) {
    const Operator& op = model.operators[i];
    for (const std::uint32_t input : op.inputs) {
      const Conversion how = conversion(model, layout, op, input);
      if (how == Conversion::none) continue;
      const std::uint32_t tensor = layout.owner[input];
      // Products that read the same tensor (queries and keys/values) share one collective.
      auto entry = std::find_if(found.begin(), found.end(), [&](const Entry& known) {
        return known.tensor == tensor && known.conversion == how;
      });
      if (entry == found.end()) {
        const bool expert = op.expert || layout.tensors[input].expert;
        groups.push_back({expert ? layout.degrees.expert_tensor : layout.degrees.tensor,
                          expert ? GroupAxis::expert_tensor : GroupAxis::tensor});
        found.push_back({tensor, how, i, UINT32_MAX, UINT32_MAX, {}, {}, {}, 0});
        entry = found.end() - 1;
      }
      entry->layers += layers_of(model, layout, op, how);
      if (entry->first_gradient == UINT32_MAX && op.needs_input_gradient) entry->first_gradient = i;
      // Operators come in forward order, so this ends as the last product, the first one of the backward
      // pass.
      if (needs_gathered_input(model, op)) entry->last_product = i;
    }
  }
  for (std::size_t e = 0; e < found.size(); ++e)
    set_collectives(model, layout, floats, groups[e].degree, groups[e].axis, found[e]);
  return found;
}

bool keeps_gathered(const Entry& entry) {
  return entry.conversion == Conversion::collect_all || entry.conversion == Conversion::copy ||
         (entry.conversion == Conversion::enter && entry.forward && !entry.again);
}

Exit exit_of(const Model& model, const Layout& layout, const Operator& op, DType floats) {
  Exit exit;
  const std::int64_t degree = tensor_degree(op, layout.degrees);
  const GroupAxis axis = op.expert ? GroupAxis::expert_tensor : GroupAxis::tensor;
  for (const std::uint32_t output : op.outputs) {
    // The user of the model gets logits whole, though no operator asks for them.
    if (layout.result[output] && layout.tensors[output].home == Home::divided)
      exit.forward = {CollectiveKind::all_gather, axis, whole_bytes(model, layout, output, floats)};
  }
  const bool partial = op.split == Split::row || is_table(op);
  if (!partial || degree == 1 || op.is_view) return exit;
  // One collective for all of an operator's partial sums.
  Bytes whole;
  for (const std::uint32_t output : op.outputs) {
    if (layout.tensors[output].home == Home::tokens && is_floating(model.tensors[output].dtype))
      whole += whole_bytes(model, layout, output, floats);
  }
  if (whole.value == 0) return exit;
  const bool sequence = layout.degrees.sequence_parallel;
  exit.forward = {sequence ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, axis, whole};
  if (sequence) exit.backward = {CollectiveKind::all_gather, axis, whole};
  return exit;
}

}  // namespace armilla
