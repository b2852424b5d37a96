// Model: operators in topological order with shapes, parameters and the forward work of each; layers above
// them.
//
// An operator's forward work is for `batch` samples. Backward work is derived (ir/backward.h). A layer is a
// weight-carrying matrix operator with the cheap operators that follow it (those before the first belong to
// it too), so layers are consecutive ranges that cover all operators. A model without any matrix operator
// with weights is one layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "ir/work.h"

namespace armilla {

struct Parameter {
  std::string name;
  DType dtype = DType::fp32;
  Shape shape;
  std::int64_t elements = 0;
  bool trainable = true;  // false: running statistics and other buffers that need memory but no gradient
};

// What an operator's backward pass reads of its forward pass; it decides which activations stay in memory.
enum class Saves : std::uint8_t { nothing, inputs, output };

struct Operator {
  std::string name;                    // unique in the model
  std::string type;                    // ONNX operator type, domain prefixed when it is not the standard one
  std::vector<std::uint32_t> inputs;   // into Model::tensors, activations only
  std::vector<std::uint32_t> outputs;  // into Model::tensors
  std::vector<std::uint32_t>
      parameters;  // into Model::parameters; a tied one appears at every operator that uses it
  Work forward;
  bool weight_is_operand =
      false;  // a matrix product's second operand is a parameter: backward splits in two products
  bool needs_input_gradient = true;  // false when nothing trainable lies before it
  bool is_view = false;              // output shares the memory of the input (Reshape, Flatten, Identity ...)
  Saves saves = Saves::inputs;
};

struct Layer {
  std::string name;
  std::uint32_t first = 0, end = 0;  // operators [first, end)
  std::uint32_t anchor = 0;          // the weight-carrying operator it is named after, or `first`
  // Parameters first used here: the anchor's weight matrices apart from its bias and the neighbours' (norms).
  std::vector<std::uint32_t> weights;
  std::vector<std::uint32_t> other_parameters;
};

// An operator type whose work is not known. Its memory traffic is counted, its arithmetic is not.
struct UnknownOperator {
  std::string type;
  std::int64_t nodes = 0;
  Bytes bytes;
};

// "Foo: 3 of 122 operators, 4.0 % of the forward bytes; its arithmetic is unknown and counted as none".
std::string describe(const UnknownOperator& unknown, std::int64_t operators, Bytes forward_bytes);

struct Model {
  std::string name;
  std::string source;  // file or zoo name
  std::int64_t batch = 1;
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> inputs;   // into tensors
  std::vector<std::uint32_t> outputs;  // into tensors
  std::vector<Parameter> parameters;   // each once, however often it is used
  std::vector<Operator> operators;
  std::vector<Layer> layers;
  std::vector<UnknownOperator> unknown;
  std::vector<std::string> notes;  // what the reader assumed, for the user to see
};

// Fills `layers` from operators and parameters.
void derive_layers(Model& model);

struct ModelTotals {
  std::int64_t parameters = 0;    // trainable
  Bytes parameter_bytes;          // of the trainable ones, in their own dtype
  Bytes buffer_bytes;             // of the others
  std::int64_t forward_macs = 0;  // multiply-accumulates of the matrix products
  Flops forward_flops;            // of everything
  Bytes forward_bytes;
};
ModelTotals totals(const Model& model);
ModelTotals totals(const Model& model, const Layer& layer);

// Rescales all work to another batch, for files whose batch is fixed: activations, arithmetic and leading
// dimensions equal to the old batch grow in proportion. Exact where `batch` is a multiple of the old one.
void rescale_batch(Model& model, std::int64_t batch);

// Throws Error for a dangling index, an operator before its producer, a layer that does not partition, or a
// size that is negative.
void validate_model(const Model& model);
std::string dump_model(const Model& model);  // stable text for tests and debugging

}  // namespace armilla
