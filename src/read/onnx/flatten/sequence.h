// Sequences and optionals: operators that put tensors into them and take them out again (ONNX 11 to 27).
//
// They are followed element by element while their length is known, so what is taken out has the shape of
// what was put in. Of a sequence of unknown length only the type of its elements is known, if at all.
#pragma once

#include <cstdint>

#include "read/onnx/flatten/flat_graph.h"
#include "read/onnx/flatten/scope.h"
#include "read/onnx/flatten/types.h"

namespace armilla {

class OnnxContainers {
 public:
  OnnxContainers(OnnxFlatGraph& flat, const OnnxTypes& types)
      : flat_(flat), graph_(flat.graph()), types_(types) {}

  // False when the operator deals with tensors alone: then nothing is done.
  bool run(const OnnxNode& node, const WireNode& wire, OnnxScope& scope);

 private:
  // The value that comes out; `flat` is the node as it appears in the flat graph.
  std::uint32_t taken_out(const OnnxNode& node, const WireNode& wire, const OnnxScope& scope, OnnxNode& flat);
  std::uint32_t put_together(const OnnxNode& node, OnnxNode& flat);
  std::uint32_t split_to_sequence(const OnnxNode& node, OnnxNode& flat);
  std::uint32_t concat_from_sequence(const OnnxNode& node, const WireNode& wire, const OnnxScope& scope,
                                     OnnxNode& flat);

  OnnxFlatGraph& flat_;
  OnnxGraph& graph_;
  const OnnxTypes& types_;
};

// A value must be of the kind. Throws Error, of the node.
void need_kind(const OnnxNodeView& view, std::size_t input, ValueKind kind);

}  // namespace armilla
