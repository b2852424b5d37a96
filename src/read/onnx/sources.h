// Which tensors a static value is made of, as far as they may be parameters.
//
// A static operator (all inputs constant) hands the sources of its inputs on, by the roles of
// read/onnx/operators/ops.h. What it does to them is recorded in OnnxSource: a tensor behind a root is a
// variance, one behind sine or cosine a table of angles, one that divides a scale, and a term that carries a
// variance is the mean of a norm whose affine part was computed ahead (shift - mean * scale): all of them
// frozen.
//
// Tensors that nodes make (ConstantOfShape, Range, RandomNormal, arithmetic on these, Expand of a single
// number) are sources of their own, under the name of what is made, unless their size follows that of an
// activation: no stored tensor can be of that size.
#pragma once

#include <vector>

#include "read/onnx/graph.h"
#include "read/onnx/operators/ops.h"

namespace armilla {

// Marks the outputs of a static node (origin, sized_by_data, fill) and returns their sources.
std::vector<OnnxSource> sources_through(OnnxGraph& graph, const OnnxNode& node, const OnnxOp& op);

// Whether its type and way here let it be a weight.
bool is_weight(const OnnxValue& value, const OnnxSource& source);
bool is_numeric(DType dtype);
// The one value that a tensor holds everywhere, where it is known and there is one.
std::optional<double> fill_of(OnnxGraph& graph, std::uint32_t value);

}  // namespace armilla
