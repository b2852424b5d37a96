// LayerTable: a model layer by layer, as `armilla layers` shows it: what each layer holds and what its
// forward pass does.
//
// A row sums all operators of its layer (ir/model.h: a weight-carrying operator with the cheap ones around
// it), but for look-ups in tables of weights (embeddings) and what a layer has from its first to its last
// product of activations (the core of attention): each of them is a row of its own. Operator, dtype and
// output shape are those of the operator the row is named after. `weights` counts the weight matrices
// alone, tables too, `parameters` everything trainable in the row (biases and norms too); a tied parameter
// counts where it is used first. Times are absent unless somebody costed the layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/model.h"

namespace armilla {

// A layer without its look-ups in tables of weights and its products of activations, or one look-up, or these
// products.
struct LayerRow {
  std::string name;
  std::string operator_type;
  bool looks_up = false;
  bool multiplies_activations = false;
  std::vector<std::uint32_t> operators;  // into Model::operators; the first one names the row
  // Parameters used first here, into Model::parameters: trainable matrices, and all others.
  std::vector<std::uint32_t> matrices, other_parameters;
  std::int64_t weights = 0;
  Bytes weight_bytes;
  std::int64_t parameters = 0;
  Bytes parameter_bytes;
  DType dtype = DType::unknown;       // of the weights; without weights, of the output
  std::optional<Shape> output_shape;  // absent where the output is no tensor (a sequence)
  std::int64_t forward_macs = 0;
  Flops forward_flops;
  Bytes forward_bytes;  // read and written
};

// What one layer costs on a device; cycles stay 0 under compute models that do not count them.
struct LayerTime {
  Time forward, input_gradient, weight_gradient;
  std::int64_t forward_cycles = 0, input_gradient_cycles = 0, weight_gradient_cycles = 0;
};

struct LayerTable {
  std::string model;
  std::string source;
  std::int64_t batch = 1;
  std::int64_t operators = 0;
  std::vector<Tensor> inputs, outputs;  // of the whole model
  std::vector<LayerRow> layers;
  ModelTotals totals;
  std::vector<UnknownOperator> unknown;
  std::vector<std::string> notes;
  std::string compute;           // which model and device the times come from
  std::vector<LayerTime> times;  // parallel to `layers`, or empty
};

std::vector<LayerRow> layer_rows(const Model& model);

// Everything but the costs.
LayerTable layer_table(const Model& model);

LayerTime total_time(const LayerTable& table);

}  // namespace armilla
