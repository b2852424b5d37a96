// Where the types of a node's outputs come from, in this order: our own rule, the file's value_info, the
// largest that a rule can tell. A rule goes before the file because value_info outlives edits of the model (a
// changed batch); where the two differ it is counted, and where a largest size is taken, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/onnx/flatten/flat_graph.h"
#include "read/onnx/flatten/scope.h"

namespace armilla {

class OnnxTypes {
 public:
  explicit OnnxTypes(OnnxFlatGraph& flat) : flat_(flat), graph_(flat.graph()) {}

  // Gives every output its type.
  void infer(const OnnxNode& node, const OnnxOp* op, const WireNode& wire, const OnnxScope& scope);
  // What the file records of an output; nullopt unless all of it is known.
  std::optional<OnnxType> recorded(const OnnxNode& node, std::string_view output,
                                   const OnnxScope& scope) const;
  bool fits_file(const WireNode& wire, const OnnxScope& scope,
                 const std::vector<std::uint32_t>& values) const;

 private:
  std::string hint_for_shape(const OnnxNode& node);
  // Types of all outputs; empty with `reason` set when something that decides them is not known.
  std::vector<OnnxType> infer_by_rule(const OnnxNode& node, const OnnxOp* op, std::string& reason);
  void compare_with_file(std::string_view output, const OnnxScope& scope, const OnnxType& type);
  void note_bound(std::string_view output, const OnnxScope& scope, const OnnxType& type);

  OnnxFlatGraph& flat_;
  OnnxGraph& graph_;
};

}  // namespace armilla
