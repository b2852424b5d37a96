// Symbolic dimensions: names such as "batch" or "sequence" that a file leaves for its user to fill in.
//
// A dimension of a graph input without value or name is called INPUT.AXIS ("tokens.1"). One of them may be
// the batch: a name with "batch" in it (or n, b, bs), or else the only one that leads an input and does not
// speak of a sequence or time. It defaults to ModelOptions::batch, else 1; every other one must be given.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/onnx_wire.h"
#include "read/read.h"

namespace armilla {

struct OnnxDimensions {
  std::map<std::string, std::int64_t, std::less<>> values;
  std::int64_t batch = 1;
  bool batch_is_fixed = true;  // the file's inputs have no symbolic batch dimension
  bool any_symbolic = false;   // some graph input has a symbolic dimension
  std::vector<std::string> notes;

  // nullopt when a dimension has no value here. Throws Error for a negative one.
  std::optional<Shape> resolve(const WireValueInfo& info, const std::string& file) const;
};

// The graph's inputs that are no initializers.
std::vector<const WireValueInfo*> true_inputs(const WireGraph& graph);

// Throws Error for an unknown name in the options, and for dimensions that nobody gave.
OnnxDimensions bind_dimensions(const WireModel& model, const std::string& file, const ModelOptions& options);

// For messages and the model: control characters and bytes that are no UTF-8 become '?', long names are cut.
std::string readable(std::string_view name);

}  // namespace armilla
