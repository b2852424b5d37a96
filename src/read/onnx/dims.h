// Symbolic dimensions: names such as "batch" or "sequence" that a file leaves for its user to fill in.
//
// A dimension of a graph input without value (or with a negative one, as some exporters write) and without a
// name is called INPUT.AXIS ("tokens.1"). One of them may be the batch: a name with "batch" in it (or n, b,
// bs), or else the only one that leads an input and does not speak of a sequence or time. It defaults to
// ModelOptions::batch, else 1; every other one must be given, and may be 0 (an empty cache). Numbers that
// shapes may depend on are given in the same way: the value of an input that is a single integer by its name
// ("trip_count"), the length of an input that is a sequence as INPUT.length.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/onnx/wire.h"
#include "read/read.h"

namespace armilla {

struct OnnxDimensions {
  std::map<std::string, std::int64_t, std::less<>> values;
  std::int64_t batch = 1;
  bool batch_is_fixed = true;  // the file's inputs have no symbolic batch dimension
  bool any_symbolic = false;   // some graph input has a symbolic dimension
  std::vector<std::string> notes;

  // nullopt when a dimension has no value here.
  std::optional<Shape> resolve(const WireValueInfo& info) const;
};

// Whether a number can be given for it by name.
bool is_single_integer(const WireValueInfo& input);

// The graph's inputs that are no initializers.
std::vector<const WireValueInfo*> true_inputs(const WireGraph& graph);

// Throws Error for an unknown name in the options, and for dimensions that nobody gave.
OnnxDimensions bind_dimensions(const WireModel& model, const std::string& file, const ModelOptions& options);

// For messages and the model: control characters and bytes that are no UTF-8 become '?', long names are cut.
std::string readable(std::string_view name);

}  // namespace armilla
