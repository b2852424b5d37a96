#include "read/onnx/flatten/graph_runner.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"

namespace armilla {

const WireGraph& subgraph(const OnnxNode& node, std::string_view attribute) {
  for (const auto& [name, value] : node.attributes) {
    if (name == attribute && value->graph != nullptr) return *value->graph;
  }
  throw Error(node.where, fmt::format("has no graph '{}'", attribute));
}

std::vector<std::uint32_t> OnnxGraphRunner::run_body(const OnnxNode& node, const WireGraph& body,
                                                     const std::vector<std::uint32_t>& arguments,
                                                     std::int64_t repeat, const OnnxScope& scope,
                                                     const OnnxFrame& frame) {
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  const OnnxFrame inner{frame.opsets, frame.arguments, flat_graph().unique_name(node.name),
                        checked_multiply(frame.repeat, repeat, node.where), frame.depth + 1};
  return run_graph(body, arguments, scope, inner);
}

}  // namespace armilla
