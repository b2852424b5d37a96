// For the work rules of operators that are matrix products: products of sizes, and the sum of several.
#pragma once

#include <vector>

#include "read/onnx/operators/work_rules.h"

namespace armilla::onnx_work {

std::int64_t times(std::int64_t a, std::int64_t b, const OnnxNodeView& node);

// Two flops per multiply-accumulate and `extra` on top; all inputs and outputs move once. A product of
// nothing (an empty dimension) is dropped.
void finish(const OnnxNodeView& node, OnnxWork& result, const std::vector<Gemm>& gemms, std::int64_t extra,
            DType dtype);

DType dtype_of_input(const OnnxNodeView& node, std::size_t input);

// Flops of a bias that is input `input`, if there is one.
std::int64_t bias(const OnnxNodeView& node, std::size_t input);
// Whether a Gemm multiplies its third input by 0, as exporters do that have no bias to give.
bool leaves_out_bias(const OnnxNodeView& node);

}  // namespace armilla::onnx_work
