// Random tensors: noise of every pass, or the stand-ins of weights that a file does without.
#pragma once

#include <string_view>

#include "read/onnx/flatten/scope.h"
#include "read/onnx/graph.h"
#include "read/onnx/wire.h"

namespace armilla {

// Operators whose output is new in every pass, whatever their inputs.
bool is_random(std::string_view type);
// Whether the random tensor that a node of `scope` draws is the stand-in of a weight.
bool becomes_weight(const WireNode& wire, const OnnxScope& scope, const OnnxGraph& graph);

}  // namespace armilla
