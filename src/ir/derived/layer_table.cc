#include "ir/derived/layer_table.h"

#include <iterator>
#include <utility>

#include "base/checked.h"

namespace armilla {
namespace {

// Biases of several experts are a table, too: exporters and our own builders name biases so.
bool is_trainable_matrix(const Parameter& parameter) {
  return parameter.trainable && parameter.shape.size() >= 2 && !parameter.name.ends_with(".bias");
}

bool looks_up(const Operator& op) {
  return !op.weight_is_operand && (op.type.starts_with("Gather") || op.type.find("Embed") != op.type.npos);
}

bool multiplies_activations(const Operator& op) {
  return op.forward.kind == WorkKind::matrix && !op.forward.gemms.empty() && !op.weight_is_operand;
}

// The layer's operators from the first to the last product of activations: the core of attention, with the
// softmax of one that is not fused. None: both at the layer's end.
std::pair<std::uint32_t, std::uint32_t> core_of(const Model& model, const Layer& layer) {
  std::pair<std::uint32_t, std::uint32_t> core = {layer.end, layer.end};
  // A model without weights is one layer.
  if (!model.operators[layer.anchor].weight_is_operand) return core;
  for (std::uint32_t i = layer.anchor + 1; i < layer.end; ++i) {
    if (!multiplies_activations(model.operators[i])) continue;
    if (core.first == layer.end) core.first = i;
    core.second = i + 1;
  }
  return core;
}

// Divides the layers into look-ups in tables of weights, products of activations and what is left of each
// layer, without the sums.
std::vector<LayerRow> split_layers(const Model& model) {
  std::vector<bool> known(model.parameters.size());  // used by an operator before
  std::vector<LayerRow> rows;
  for (const Layer& layer : model.layers) {
    LayerRow rest;
    rest.name = layer.name;
    std::vector<LayerRow> after;
    const auto [core, core_end] = core_of(model, layer);
    std::size_t core_row = 0;  // in `after`
    for (std::uint32_t i = layer.first; i < layer.end; ++i) {
      const Operator& op = model.operators[i];
      bool has_table = false;
      for (const std::uint32_t p : op.parameters) {
        has_table = has_table || (!known[p] && is_trainable_matrix(model.parameters[p]));
        known[p] = true;
      }
      if (looks_up(op) && has_table) {
        LayerRow& row = (i < layer.anchor ? rows : after).emplace_back();
        row.name = op.name;
        row.looks_up = true;
        row.operators = {i};
      } else if (i >= core && i < core_end) {
        if (i == core) {
          core_row = after.size();
          after.emplace_back().name = op.name;
          after.back().multiplies_activations = true;
        }
        after[core_row].operators.push_back(i);
      } else if (i == layer.anchor) {
        rest.operators.insert(rest.operators.begin(), i);
      } else {
        rest.operators.push_back(i);
      }
    }
    if (!rest.operators.empty()) {
      // A model without matrix products is one layer, named after its first operator, which may look up.
      if (rest.operators.front() != layer.anchor) rest.name = model.operators[rest.operators.front()].name;
      rows.push_back(std::move(rest));
    }
    std::move(after.begin(), after.end(), std::back_inserter(rows));
  }
  return rows;
}

// Fills in what the row's operators have and do; `taken` are the parameters of the rows before.
void complete(LayerRow& row, const Model& model, std::vector<bool>& taken) {
  const Operator& anchor = model.operators[row.operators.front()];
  row.operator_type = anchor.type;
  if (!anchor.outputs.empty()) {
    const Tensor& output = model.tensors[anchor.outputs[0]];
    row.dtype = output.dtype;
    row.output_shape = output.shape;
  }
  const auto add = [&](Bytes& sum, Bytes more) { sum = Bytes(checked_add(sum.value, more.value, row.name)); };
  for (const std::uint32_t i : row.operators) {
    const Operator& op = model.operators[i];
    for (const Gemm& gemm : op.forward.gemms)
      row.forward_macs = checked_add(row.forward_macs, gemm.macs(), row.name);
    row.forward_flops = Flops(checked_add(row.forward_flops.value, op.forward.flops.value, row.name));
    add(row.forward_bytes, op.forward.bytes);
    for (const std::uint32_t p : op.parameters) {
      const Parameter& parameter = model.parameters[p];
      if (taken[p]) continue;
      taken[p] = true;
      (is_trainable_matrix(parameter) ? row.matrices : row.other_parameters).push_back(p);
      if (!parameter.trainable) continue;
      const Bytes bytes = size_of(parameter.elements, parameter.dtype, row.name);
      row.parameters = checked_add(row.parameters, parameter.elements, row.name);
      add(row.parameter_bytes, bytes);
      if (&op != &anchor || !is_trainable_matrix(parameter)) continue;
      row.dtype = parameter.dtype;
      row.weights = checked_add(row.weights, parameter.elements, row.name);
      add(row.weight_bytes, bytes);
    }
  }
}

}  // namespace

std::vector<LayerRow> layer_rows(const Model& model) {
  std::vector<LayerRow> rows = split_layers(model);
  std::vector<bool> taken(model.parameters.size());
  for (LayerRow& row : rows) complete(row, model, taken);
  return rows;
}

LayerTable layer_table(const Model& model) {
  LayerTable table;
  table.model = model.name;
  table.source = model.source;
  table.batch = model.batch;
  table.operators = static_cast<std::int64_t>(model.operators.size());
  for (const std::uint32_t t : model.inputs) table.inputs.push_back(model.tensors[t]);
  for (const std::uint32_t t : model.outputs) table.outputs.push_back(model.tensors[t]);
  table.totals = totals(model);
  table.unknown = model.unknown;
  table.notes = model.notes;
  table.layers = layer_rows(model);
  return table;
}

LayerTime total_time(const LayerTable& table) {
  LayerTime sum;
  for (const LayerTime& time : table.times) {
    sum.forward += time.forward;
    sum.input_gradient += time.input_gradient;
    sum.weight_gradient += time.weight_gradient;
    sum.forward_cycles += time.forward_cycles;
    sum.input_gradient_cycles += time.input_gradient_cycles;
    sum.weight_gradient_cycles += time.weight_gradient_cycles;
  }
  return sum;
}

}  // namespace armilla
