#include "ir/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/checked.h"
#include "base/units_text.h"

namespace armilla {

std::string_view name_of(Split split) {
  switch (split) {
    case Split::tokens:
      return "tokens";
    case Split::column:
      return "column";
    case Split::row:
      return "row";
    case Split::features:
      return "features";
    case Split::heads:
      return "heads";
    case Split::vocabulary:
      return "vocabulary";
  }
  return "?";
}

namespace {

// A layer begins at each product with a trained weight: a convolution, a linear layer, a group of experts.
bool is_anchor(const Operator& op, const Model& model) {
  if (op.forward.kind != WorkKind::matrix || !op.weight_is_operand) return false;
  return std::any_of(op.parameters.begin(), op.parameters.end(),
                     [&](std::uint32_t p) { return model.parameters[p].trainable; });
}

// A weight matrix, as opposed to the bias beside it.
bool is_matrix(const Parameter& parameter) {
  return parameter.shape.size() >= 2;
}

void add(ModelTotals& sum, const Parameter& parameter) {
  const Bytes bytes = size_of(parameter.elements, parameter.dtype, parameter.name);
  if (parameter.trainable) {
    sum.parameters = checked_add(sum.parameters, parameter.elements, parameter.name);
    sum.parameter_bytes = Bytes(checked_add(sum.parameter_bytes.value, bytes.value, parameter.name));
  } else {
    sum.buffer_bytes = Bytes(checked_add(sum.buffer_bytes.value, bytes.value, parameter.name));
  }
}

void add(ModelTotals& sum, const Operator& op) {
  for (const Gemm& gemm : op.forward.gemms)
    sum.forward_macs = checked_add(sum.forward_macs, gemm.macs(), op.name);
  sum.forward_flops = Flops(checked_add(sum.forward_flops.value, op.forward.flops.value, op.name));
  sum.forward_bytes = Bytes(checked_add(sum.forward_bytes.value, op.forward.bytes.value, op.name));
}

template <class Index>
void check_indices(const std::vector<Index>& indices, std::size_t size, const std::string& where) {
  for (const Index index : indices) {
    if (index >= size) throw Error(where, fmt::format("refers to entry {} of {}", index, size));
  }
}

// value * to / from; `from` and `to` are positive.
// Divided first, so that large values do not overflow where the result would fit.
std::int64_t rescale(std::int64_t value, std::int64_t from, std::int64_t to, const std::string& where) {
  const std::int64_t whole = checked_multiply(value / from, to, where);
  return checked_add(whole, checked_multiply(value % from, to, where) / from, where);
}

}  // namespace

void derive_layers(Model& model) {
  model.layers.clear();
  const auto count = static_cast<std::uint32_t>(model.operators.size());
  if (count == 0) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!is_anchor(model.operators[i], model)) continue;
    if (!model.layers.empty()) model.layers.back().end = i;
    // What comes before the first anchor (an embedding, a reshape) belongs to the first layer.
    model.layers.push_back({model.operators[i].name, model.layers.empty() ? 0 : i, count, i, {}, {}});
  }
  if (model.layers.empty()) model.layers.push_back({model.operators[0].name, 0, count, 0, {}, {}});

  // A shared parameter belongs to the first layer that uses it, so that sums over layers count it once.
  std::vector<bool> taken(model.parameters.size());
  for (Layer& layer : model.layers) {
    for (std::uint32_t i = layer.first; i < layer.end; ++i) {
      for (const std::uint32_t p : model.operators[i].parameters) {
        if (taken[p]) continue;
        taken[p] = true;
        const bool weight =
            i == layer.anchor && model.parameters[p].trainable && is_matrix(model.parameters[p]);
        (weight ? layer.weights : layer.other_parameters).push_back(p);
      }
    }
  }
}

ModelTotals totals(const Model& model) {
  ModelTotals sum;
  for (const Parameter& parameter : model.parameters) add(sum, parameter);
  for (const Operator& op : model.operators) add(sum, op);
  return sum;
}

void rescale_batch(Model& model, std::int64_t batch) {
  const std::int64_t old = model.batch;
  if (batch == old) return;
  for (Operator& op : model.operators) {
    Work& work = op.forward;
    Bytes parameter_bytes;
    // What only moves data (an embedding's look-up) reads of its parameters as much as it writes.
    for (std::size_t i = 0; work.kind != WorkKind::copy && i < op.parameters.size(); ++i) {
      const Parameter& parameter = model.parameters[op.parameters[i]];
      parameter_bytes += size_of(parameter.elements, parameter.dtype, op.name);
    }
    parameter_bytes = std::min(parameter_bytes, work.bytes);
    work.flops = Flops(rescale(work.flops.value, old, batch, op.name));
    work.bytes = parameter_bytes + Bytes(rescale((work.bytes - parameter_bytes).value, old, batch, op.name));
    for (Gemm& gemm : work.gemms) {
      // Products per sample (attention scores) grow in number, those over all rows at once in height.
      std::int64_t& grows = gemm.batch_in_m ? gemm.m : gemm.count;
      grows = rescale(grows, old, batch, op.name);
    }
  }
  for (Tensor& tensor : model.tensors) {
    if (!tensor.shape.empty() && tensor.shape[0] % old == 0)
      tensor.shape[0] = rescale(tensor.shape[0], old, batch, tensor.name);
  }
  model.batch = batch;
}

std::string describe(const UnknownOperator& unknown, std::int64_t operators, Bytes forward_bytes) {
  const double share = forward_bytes.value > 0 ? static_cast<double>(unknown.bytes.value) /
                                                     static_cast<double>(forward_bytes.value)
                                               : 0;
  return fmt::format(
      "{}: {} of {}, {:.1f} % of the forward bytes; its arithmetic is unknown and "
      "counted as none",
      unknown.type, unknown.nodes, typed_count(operators, "operator"), 100 * share);
}

void validate_model(const Model& model) {
  if (model.batch < 1) throw Error(model.source, fmt::format("a batch of {}", model.batch));
  for (const Parameter& parameter : model.parameters) {
    if (element_count(parameter.shape, parameter.name) != parameter.elements)
      throw Error(parameter.name, "its element count differs from its shape");
  }
  for (const Tensor& tensor : model.tensors)
    size_of(element_count(tensor.shape, tensor.name), tensor.dtype, tensor.name);
  check_indices(model.inputs, model.tensors.size(), model.source);
  check_indices(model.outputs, model.tensors.size(), model.source);

  // Operators stand in an order in which they can run: nothing is read before it is made.
  std::vector<bool> produced(model.tensors.size());
  for (const std::uint32_t input : model.inputs) produced[input] = true;
  for (const Operator& op : model.operators) {
    check_indices(op.inputs, model.tensors.size(), op.name);
    check_indices(op.outputs, model.tensors.size(), op.name);
    check_indices(op.parameters, model.parameters.size(), op.name);
    for (const std::uint32_t input : op.inputs) {
      if (!produced[input])
        throw Error(op.name, fmt::format("consumes '{}' before it is produced", model.tensors[input].name));
    }
    for (const std::uint32_t output : op.outputs) produced[output] = true;
    if (op.forward.flops.value < 0 || op.forward.bytes.value < 0) throw Error(op.name, "has negative work");
    for (const Gemm& gemm : op.forward.gemms) {
      if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || gemm.count < 0)
        throw Error(op.name, "has a matrix product of negative size");
      checked_multiply(checked_multiply(checked_multiply(gemm.m, gemm.n, op.name), gemm.k, op.name),
                       gemm.count, op.name);
    }
  }
  // Layers are consecutive ranges, and every operator is in exactly one.
  std::uint32_t next = 0;
  for (const Layer& layer : model.layers) {
    if (layer.first != next || layer.end <= layer.first || layer.anchor < layer.first ||
        layer.anchor >= layer.end) {
      throw Error(layer.name, "the layers do not cover the operators one after the other");
    }
    next = layer.end;
    check_indices(layer.weights, model.parameters.size(), layer.name);
    check_indices(layer.other_parameters, model.parameters.size(), layer.name);
  }
  if (next != model.operators.size()) throw Error(model.source, "the layers do not cover all operators");
  // Room for what is derived later: backward passes, optimizer states, sums over micro-batches.
  constexpr std::int64_t kMost = std::int64_t{1} << 56;
  const ModelTotals sums = totals(model);
  if (sums.parameter_bytes.value > kMost || sums.forward_bytes.value > kMost ||
      sums.forward_flops.value > kMost * 8) {
    throw Error(model.source, "the model is absurdly large", "check its dimensions and the batch");
  }
}

void require_work(const Model& model) {
  if (model.operators.empty())
    throw Error(model.source, "nothing in the model depends on an input, so there is nothing to simulate",
                "'armilla layers' shows what it holds");
}

std::string dump_model(const Model& model) {
  std::string text = fmt::format("model {} batch {}\n", model.name, model.batch);
  for (const Parameter& p : model.parameters) {
    text += fmt::format("parameter {} {} {}{}\n", p.name, name_of(p.dtype), to_text(p.shape),
                        p.trainable ? "" : " buffer");
  }
  for (const Operator& op : model.operators) {
    text += fmt::format("op {} {} flops {} bytes {}", op.type, op.name, op.forward.flops.value,
                        op.forward.bytes.value);
    for (const Gemm& g : op.forward.gemms) text += fmt::format(" gemm {}x{}x{}*{}", g.m, g.n, g.k, g.count);
    for (const std::uint32_t output : op.outputs)
      text += fmt::format(" -> {} {}", model.tensors[output].name, to_text(model.tensors[output].shape));
    text += '\n';
  }
  for (const Layer& layer : model.layers) {
    text += fmt::format("layer {} [{}, {}) weights [{}] other [{}]\n", layer.name, layer.first, layer.end,
                        fmt::join(layer.weights, " "), fmt::join(layer.other_parameters, " "));
  }
  return text;
}

}  // namespace armilla
