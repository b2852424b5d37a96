// Which initializers are parameters: see the roles in read/onnx_ops.h.
//
// The file does not say what training changes, so the operator that an initializer reaches decides. Beyond
// its reach: a registered buffer that enters as a weight would (a sinusoidal position table in an Add) counts
// as trained; a learned scalar in element-wise arithmetic (a temperature) does not.
#pragma once

#include "read/onnx_graph.h"

namespace armilla {

// Whether `source`, entering an operator in `role`, is a parameter (trained, or a buffer for role 'v').
bool is_parameter(OnnxGraph& graph, const OnnxSource& source, char role);

// The same as its way through a static operator continues; nullopt when it ends there.
std::optional<OnnxSource> pass_on(OnnxGraph& graph, const OnnxSource& source, char role);

}  // namespace armilla
