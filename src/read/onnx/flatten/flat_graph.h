// The graph that comes out of flattening, while it grows. Its values have types that are checked where they
// are set; names of nodes are unique; and what values refer to - stored tensors and items of sequences -
// stays within a budget, so that a small file cannot grow without end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/onnx/dims.h"
#include "read/onnx/graph.h"
#include "read/onnx/operators/ops.h"
#include "read/onnx/wire.h"

namespace armilla {

class OnnxFlatGraph {
 public:
  // Tensors in a sequence, at most.
  static constexpr std::int64_t kMostItems = 65536;

  OnnxFlatGraph(OnnxDimensions dims, const std::string& file);
  OnnxFlatGraph(const OnnxFlatGraph&) = delete;
  OnnxFlatGraph& operator=(const OnnxFlatGraph&) = delete;

  OnnxGraph& graph() { return graph_; }
  const OnnxDimensions& dims() const { return dims_; }

  std::uint32_t new_value(std::string name);
  // Of the same type and shape, but neither constant nor static.
  std::uint32_t like(std::uint32_t value, const std::string& name);
  std::uint32_t alias(std::uint32_t value, const std::string& name);  // the same value by another name
  std::uint32_t container(ValueKind kind, std::int32_t element_type);
  void fill(std::uint32_t container, std::vector<std::uint32_t> items);
  std::uint32_t constant_scalar(std::int32_t element_type, std::optional<std::int64_t> value);
  // Throws Error, of the node, for element types that Armilla does not know and sizes that overflow.
  void set_type(const OnnxNode& node, std::uint32_t value, OnnxType type);
  // Gives a value the type that the file declares, without a shape where that is not known.
  void declare(std::uint32_t value, const WireValueInfo& info);
  // Numbers given for an input by name (read/onnx/dims.h).
  void take_given(std::uint32_t value, const WireValueInfo& input);
  bool same_type(std::uint32_t a, std::uint32_t b) const;

  std::string unique_name(const std::string& wanted);
  // The operator at a loop's border: what goes in from outside, and what comes out for the other side.
  void border(const OnnxNode& node, std::string_view what, const std::vector<std::uint32_t>& inputs,
              const std::vector<std::uint32_t>& outputs, std::int64_t repeat);
  // Arithmetic of the nodes from `first_node` on, with their repetitions.
  double flops_since(std::size_t first_node);
  void inherit_sources(const OnnxNode& node, const OnnxOp& op);

  // Everything that a trial run leaves behind, to take it back.
  struct Mark {
    std::size_t nodes, notes;
    std::int64_t folded_nodes, contradictions, bounds;
  };
  Mark mark() const;
  void take_back(const Mark& mark);

  // Counted; `text()` says which, of the first.
  template <class Text>
  void count_contradiction(const Text& text) {
    if (contradictions_++ == 0) first_contradiction_ = text();
  }
  template <class Text>
  void count_bound(const Text& text) {
    if (bounds_++ == 0) first_bound_ = text();
  }

  // With notes on all that was counted. Once.
  OnnxGraph finish();

 private:
  OnnxDimensions dims_;
  OnnxGraph graph_;
  std::unordered_map<std::string, std::int64_t> used_names_;
  std::int64_t sources_left_ = std::int64_t{1} << 24;
  std::int64_t contradictions_ = 0;
  std::string first_contradiction_;
  std::int64_t bounds_ = 0;
  std::string first_bound_;
};

}  // namespace armilla
