// What each ONNX operator costs and how it treats its inputs: one table.
//
// Arithmetic: matrix products count two flops per multiply-accumulate, plus one per output element for a
// bias. Element-wise operators count every elementary step (addition, product, comparison, exponential, root)
// as one flop per element; pools one per window element. Bytes: every distinct input and output once, except
// that an operator which picks from a table (Gather, Slice, Expand) moves only what it picks. Views cost
// nothing. Not modelled: caches, fusion, layout changes, the work of shape arithmetic.
//
// Roles of the inputs decide what is a parameter (one letter per input, the last one repeats):
//   w  a weight: any floating tensor, or integers that became floating ones on the way
//   n  scale or shift of a normalisation: as w, but not ones and zeros that are there for form's sake
//   i  a weight of an integer operator: any numeric tensor
//   x  data: floating tensors of at least two elements, unless read/onnx/parameters.h knows better
//   v  a buffer: a parameter that is not trained (running statistics)
//   p  passed on unchanged: whoever consumes the result decides; in an operator with activations as x
//   q  the same, and integers are weights from here on (DequantizeLinear)
//   e  an embedding table: passed on when the operator is static, otherwise as w
//   c  configuration: shapes, axes, limits, scales, zero points, masks; never a parameter
#pragma once

#include <string_view>

#include "ir/model.h"
#include "read/onnx/operators/shape_rules.h"

namespace armilla {

struct OnnxOp;

struct OnnxWork {
  Work work;
  bool weight_is_operand = false;
  bool is_view = false;
};
using OnnxWorkRule = void (*)(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result);

struct OnnxOp {
  std::string_view domain;
  std::string_view type;
  OnnxShapeRule shape;  // nullptr: not by a rule (subgraphs, sequences)
  OnnxWorkRule work;    // nullptr: not known, as that of an operator without an entry
  std::int64_t flops;   // per element, where the work rule is element-wise
  std::string_view roles;
  Saves saves;
};

// nullptr for operators that are not in the table.
const OnnxOp* find_onnx_op(std::string_view domain, std::string_view type);

char role_of(const OnnxOp& op, std::size_t input);
// Whether it carries matrix products: never folded away, even when all its inputs are static.
bool is_matrix(const OnnxOp& op);

bool knows_work(const OnnxOp* op);
// Work of one execution. `op` may be nullptr: only the bytes are counted then.
OnnxWork work_of(const OnnxNodeView& node, const OnnxOp* op);

}  // namespace armilla
