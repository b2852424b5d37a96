// Work of ONNX operators by kind; the table in read/onnx/operators/ops.cc names one of these for each
// operator.
#pragma once

#include "read/onnx/operators/ops.h"

namespace armilla::onnx_work {

// Costs nothing; the output is the input's memory.
void view(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
// Bytes only.
void copy(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);         // all of it
void copy_output(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);  // reads what it writes
void cast(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);     // a view when nothing changes
void dropout(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);  // a view outside of training
// `flops` per element of the output, or of the first input.
void per_output(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void per_input(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void variadic(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);  // one per further operand
void batch_norm(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void pool(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void optimizer(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);  // `flops` per weight
void local_response(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);

// Matrix products.
void conv(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void qlinear_conv(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void conv_transpose(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void deform_conv(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void gemm(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void matmul(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void qlinear_matmul(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void matmul_nbits(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void einsum(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void recurrent(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void attention(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void linear_attention(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void causal_convolution(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void linear_model(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);
void fourier(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);

}  // namespace armilla::onnx_work
