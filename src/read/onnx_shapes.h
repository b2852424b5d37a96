// libonnx: output types of one standard operator, for the operators without a rule of our own.
//
// The only file that includes onnx headers (libonnx 1.12, operator set 17). A node of a newer operator set is
// shown to libonnx as one of set 17: when it uses an input or attribute that is newer, libonnx's own check of
// the node refuses it and the shape stays unknown; it is never wrong silently. The first use costs about
// 9 ms (registration of all operator schemas), so common operators have rules (read/onnx_shape_rules.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "read/onnx_node_view.h"

namespace armilla {

struct OnnxInferred {
  std::int32_t element_type = 0;
  std::optional<Shape> shape;
  std::string type_message;  // TypeProto, for outputs that are no tensors
};

// One entry per output; empty with `reason` set when libonnx does not know.
std::vector<OnnxInferred> infer_with_libonnx(const OnnxNodeView& node, std::string& reason);

}  // namespace armilla
