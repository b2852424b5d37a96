// The walk that makes an OnnxGraph of a WireModel (flatten_onnx): one pass over the nodes in topological
// order that resolves names, infers shapes, folds constants and descends into functions and subgraphs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "read/onnx/dims.h"
#include "read/onnx/flatten/flat_graph.h"
#include "read/onnx/flatten/graph_runner.h"
#include "read/onnx/flatten/loop.h"
#include "read/onnx/flatten/scope.h"
#include "read/onnx/flatten/sequence.h"
#include "read/onnx/flatten/sequence_map.h"
#include "read/onnx/flatten/types.h"
#include "read/onnx/graph.h"
#include "read/onnx/wire.h"

namespace armilla {

class OnnxFlattener final : OnnxGraphRunner {
 public:
  OnnxFlattener(const WireModel& model, const std::string& file, const ModelOptions& options);
  OnnxFlattener(const OnnxFlattener&) = delete;
  OnnxFlattener& operator=(const OnnxFlattener&) = delete;

  // Once.
  OnnxGraph flatten();

 private:
  std::vector<std::uint32_t> run_graph(const WireGraph& graph, const std::vector<std::uint32_t>& inputs,
                                       const OnnxScope& scope, const OnnxFrame& frame) override;
  OnnxFlatGraph& flat_graph() override { return flat_; }

  void run_nodes(const std::vector<WireNode>& nodes, OnnxScope& scope, const OnnxFrame& frame);
  void run_node(const WireNode& wire, std::size_t index, OnnxScope& scope, const OnnxFrame& frame);
  void run_operator(OnnxNode node, const WireNode& wire, OnnxScope& scope);
  void run_constant(const OnnxNode& node, const WireNode& wire, OnnxScope& scope);
  void run_function(const OnnxNode& node, const WireNode& wire, const WireFunction& function,
                    OnnxScope& scope, const OnnxFrame& frame);
  void run_if(const OnnxNode& node, const WireNode& wire, OnnxScope& scope, const OnnxFrame& frame);
  std::vector<std::uint32_t> run_branch(const OnnxNode& node, const WireGraph& graph, const OnnxScope& scope,
                                        const OnnxFrame& frame);
  void run_flex_attention(OnnxNode node, const WireNode& wire, OnnxScope& scope, const OnnxFrame& frame);
  void add_initializers(const WireGraph& graph, OnnxScope& scope, const std::string& prefix);
  bool fold(const OnnxNode& node);

  const WireModel& model_;
  OnnxFlatGraph flat_;
  OnnxGraph& graph_;
  OnnxTypes types_;
  OnnxContainers containers_;
  OnnxLoops loops_;
  OnnxSequenceMap maps_;
  std::map<std::string, const WireFunction*, std::less<>> functions_;
  std::int64_t nodes_left_ = 0;
  std::int64_t folds_left_ = std::int64_t{1} << 24;
};

}  // namespace armilla
