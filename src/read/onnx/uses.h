// Who makes and who takes each activation of a flat graph, seen through operators that do not change what it
// is: those that move, reshape or retype its elements, and arithmetic with a single constant number.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "read/onnx/graph.h"

namespace armilla {

struct OnnxUse {
  std::uint32_t node = 0;
  std::uint32_t input = 0;
};

class OnnxUses {
 public:
  explicit OnnxUses(const OnnxGraph& graph);

  const OnnxNode& node(std::uint32_t index) const { return graph_.nodes[index]; }
  const OnnxValue& value(std::uint32_t index) const { return graph_.values[index]; }
  bool is_static(const OnnxNode& node, std::size_t input) const;
  // A tensor of more than one element that is static.
  bool is_constant_tensor(const OnnxNode& node, std::size_t input) const;

  // Whether the node hands what enters at `input` on as it is.
  bool passes(const OnnxNode& node, std::size_t input) const;

  // The nodes that take `value`, or what passes it on; at most kMostVisited.
  std::vector<OnnxUse> uses(std::uint32_t value) const;
  // The only one of them; nullopt where there are more, or none.
  std::optional<OnnxUse> only_use(std::uint32_t value) const;
  bool is_output(std::uint32_t value) const { return is_output_[value]; }

  // The node that `value` comes from; nullptr for what comes from outside or from several nodes.
  const OnnxNode* maker(std::uint32_t value) const;
  // `value` and what lies behind it towards the graph's inputs, through the nodes and inputs `enter` agrees
  // to.
  std::vector<std::uint32_t> behind(std::uint32_t value,
                                    const std::function<bool(const OnnxNode&, std::size_t)>& enter) const;
  // The node whose output `value` is; nullptr for what comes from outside.
  const OnnxNode* made_by(std::uint32_t value) const;

 private:
  const OnnxGraph& graph_;
  std::vector<std::uint32_t> maker_;  // by value
  std::vector<std::vector<OnnxUse>> takers_;
  std::vector<bool> is_output_;
};

}  // namespace armilla
