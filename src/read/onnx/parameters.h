// Which constants are parameters: by the operator that each reaches and its position there (the roles of
// read/onnx/operators/ops.h), by what happened to it on the way (read/onnx/sources.h) and, in element-wise
// arithmetic, by what surrounds it (read/onnx/frozen.h).
//
// The file does not say what training changes. Beyond the reach of this: a learned single number in
// element-wise arithmetic does not count, a fixed filter of a convolution does.
#pragma once

#include "read/onnx/frozen.h"
#include "read/onnx/graph.h"
#include "read/onnx/node_view.h"
#include "read/onnx/uses.h"

namespace armilla {

enum class OnnxKind : std::uint8_t { nothing, buffer, trained };

class OnnxParameters {
 public:
  explicit OnnxParameters(OnnxGraph& graph);

  // What `source` is to the operator whose input `input` it is part of.
  OnnxKind kind(std::uint32_t node, std::size_t input, const OnnxSource& source);

 private:
  OnnxKind by_role(std::uint32_t node, std::size_t input, const OnnxSource& source, char role);
  bool in_arithmetic(std::uint32_t node, std::size_t input, const OnnxSource& source) const;
  bool is_filler(const OnnxNode& node, const OnnxSource& source) const;
  bool is_affine(const OnnxNode& node, std::size_t input, int depth) const;
  bool has_no_affine(std::uint32_t node);

  OnnxGraph& graph_;
  OnnxUses uses_;
  OnnxFrozen frozen_;
};

// A weight whose tensor holds several integers in each byte (com.microsoft's MatMulNBits).
struct OnnxPacked {
  DType dtype = DType::unknown;
  Shape shape;  // of the matrix it stands for
};
std::optional<OnnxPacked> packed_weight(const OnnxNodeView& node, std::size_t input);

}  // namespace armilla
