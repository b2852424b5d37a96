#include "ir/layer_table.h"

#include "base/checked.h"

namespace armilla {
namespace {

LayerRow row_of(const Model& model, const Layer& layer) {
  const Operator& anchor = model.operators[layer.anchor];
  const ModelTotals sum = totals(model, layer);
  LayerRow row;
  row.name = layer.name;
  row.operator_type = anchor.type;
  row.parameters = sum.parameters;
  row.parameter_bytes = sum.parameter_bytes;
  row.forward_macs = sum.forward_macs;
  row.forward_flops = sum.forward_flops;
  row.forward_bytes = sum.forward_bytes;
  if (!anchor.outputs.empty()) {
    const Tensor& output = model.tensors[anchor.outputs[0]];
    row.dtype = output.dtype;
    row.output_shape = output.shape;
  }
  for (const std::uint32_t p : layer.weights) {
    const Parameter& weight = model.parameters[p];
    row.dtype = weight.dtype;
    row.weights = checked_add(row.weights, weight.elements, layer.name);
    const Bytes bytes = size_of(weight.elements, weight.dtype, layer.name);
    row.weight_bytes = Bytes(checked_add(row.weight_bytes.value, bytes.value, layer.name));
  }
  return row;
}

}  // namespace

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
  table.layers.reserve(model.layers.size());
  for (const Layer& layer : model.layers) table.layers.push_back(row_of(model, layer));
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
