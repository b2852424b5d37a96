// The backward pass of an operator, derived from its forward work.
//
// Matrix product with a weight, C[m,n] = A[m,k] W[k,n]:
//   input gradient  dA[m,k] = dC[m,n] W^T[n,k]        (m, k, n)
//   weight gradient dW[k,n] = A^T[k,m] dC[m,n]        (k, n, m)
// (SCALE-Sim's and ASTRA-sim's workload generator use the same three products.) A product of two activations
// has both under "input gradient". Other operators: twice the forward arithmetic, and the traffic of reading
// the incoming gradient on top of the forward traffic; gradients of their few parameters (norm scales,
// biases) fall out of the same kernel. Kernels that repeat forward arithmetic (Operator::repeated_forward) do
// so under "input gradient". Under a mask, forward arithmetic may be less than its products': so is
// backward's.
#pragma once

#include "ir/model.h"

namespace armilla {

// WorkKind::none when the operator has no such gradient.
Work input_gradient(const Model& model, const Operator& op);
Work weight_gradient(const Model& model, const Operator& op);

// The same for an operator's share of the work, as parallelism divides it: `forward` in place of op.forward,
// `output_bytes` of its outputs. `trainable`: whether any of its parameters is.
Work input_gradient(const Operator& op, const Work& forward, Bytes output_bytes);
Work weight_gradient(const Operator& op, const Work& forward, Bytes output_bytes, bool trainable);

}  // namespace armilla
