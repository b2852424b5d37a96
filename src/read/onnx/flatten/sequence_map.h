// SequenceMap: a graph that runs for every element of its sequences. It appears once, repeated, where all
// elements have one shape, else once for each element.
#pragma once

#include <cstdint>
#include <vector>

#include "read/onnx/flatten/flat_graph.h"
#include "read/onnx/flatten/graph_runner.h"
#include "read/onnx/flatten/scope.h"

namespace armilla {

class OnnxSequenceMap {
 public:
  explicit OnnxSequenceMap(OnnxGraphRunner& runner)
      : runner_(runner), flat_(runner.flat_graph()), graph_(flat_.graph()) {}

  void run(const OnnxNode& node, const WireNode& wire, OnnxScope& scope, const OnnxFrame& frame);

 private:
  // What the outputs hold, each.
  std::vector<std::vector<std::uint32_t>> map_alike(const OnnxNode& node, const WireGraph& body,
                                                    std::int64_t length, const OnnxScope& scope,
                                                    const OnnxFrame& frame);
  std::vector<std::vector<std::uint32_t>> map_each(const OnnxNode& node, const WireGraph& body,
                                                   std::size_t length, const OnnxScope& scope,
                                                   const OnnxFrame& frame);

  OnnxGraphRunner& runner_;
  OnnxFlatGraph& flat_;
  OnnxGraph& graph_;
};

}  // namespace armilla
