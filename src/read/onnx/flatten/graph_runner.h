// Operators with a graph inside (loops, maps, branches) ask for it to be run here: its inputs are bound to
// values, and its nodes are appended to the flat graph.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "read/onnx/flatten/flat_graph.h"
#include "read/onnx/flatten/scope.h"

namespace armilla {

class OnnxGraphRunner {
 public:
  virtual ~OnnxGraphRunner() = default;
  // The outputs. The graph has as many inputs as are given, and sees the names of `scope`.
  virtual std::vector<std::uint32_t> run_graph(const WireGraph& graph,
                                               const std::vector<std::uint32_t>& inputs,
                                               const OnnxScope& scope, const OnnxFrame& frame) = 0;
  virtual OnnxFlatGraph& flat_graph() = 0;

  // Likewise of a graph in a node, `repeat` times for each time that the node runs. Throws Error where graphs
  // are nested too deeply.
  std::vector<std::uint32_t> run_body(const OnnxNode& node, const WireGraph& body,
                                      const std::vector<std::uint32_t>& arguments, std::int64_t repeat,
                                      const OnnxScope& scope, const OnnxFrame& frame);
};

// Throws Error where the node has no such graph.
const WireGraph& subgraph(const OnnxNode& node, std::string_view attribute);

}  // namespace armilla
