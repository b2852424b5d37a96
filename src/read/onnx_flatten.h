// The walk that makes an OnnxGraph of a WireModel (flatten_onnx): one pass over the nodes in topological
// order that resolves names, infers shapes, folds constants and descends into functions and subgraphs.
//
// The shape of a node's outputs comes from, in this order: our own rule, the file's value_info, libonnx. A
// rule goes before the file because value_info outlives edits of the model (a changed batch); where the two
// differ, a note says so.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/onnx_dims.h"
#include "read/onnx_graph.h"
#include "read/onnx_node_view.h"
#include "read/onnx_ops.h"
#include "read/onnx_shapes.h"
#include "read/onnx_wire.h"

namespace armilla {

class OnnxFlattener {
 public:
  OnnxFlattener(const WireModel& model, const std::string& file, const ModelOptions& options);
  OnnxGraph flatten();

 private:
  // Names visible in one graph; those of the graphs around it through `parent`.
  struct Scope {
    const Scope* parent = nullptr;
    const std::vector<WireNode>* nodes = nullptr;
    std::unordered_map<std::string_view, std::uint32_t> values;
    std::unordered_map<std::string_view, const WireValueInfo*> infos;
  };
  // What a graph inherits from whoever runs it.
  struct Frame {
    const std::vector<WireOpset>* opsets;
    OnnxAttributes arguments;  // attributes of the function call
    std::string prefix;        // of names and locations
    std::int64_t repeat = 1;
    int depth = 0;
  };

  void run_nodes(const std::vector<WireNode>& nodes, Scope& scope, const Frame& frame);
  void run_node(const WireNode& wire, std::size_t index, Scope& scope, const Frame& frame);
  void run_operator(OnnxNode node, const WireNode& wire, Scope& scope);
  // Whether the random tensor that a node draws is the stand-in of a weight.
  bool becomes_weight(const WireNode& wire, const Scope& scope) const;
  void run_constant(const OnnxNode& node, const WireNode& wire, Scope& scope);
  void run_function(const OnnxNode& node, const WireNode& wire, const WireFunction& function, Scope& scope,
                    const Frame& frame);
  void run_if(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame);
  void run_loop(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame);
  void run_scan(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame);
  // Outputs of a subgraph whose inputs are bound to values; nodes are appended to the flat graph.
  std::vector<std::uint32_t> run_graph(const WireGraph& graph, const std::vector<std::uint32_t>& inputs,
                                       const Scope& scope, const Frame& frame);
  std::vector<std::uint32_t> run_branch(const OnnxNode& node, const WireGraph& graph, const Scope& scope,
                                        const Frame& frame);
  const WireGraph& subgraph(const OnnxNode& node, std::string_view attribute) const;
  // The operator at a loop's border: what goes in from outside, and what comes out for the other side.
  void border(const OnnxNode& node, std::string_view what, const std::vector<std::uint32_t>& inputs,
              const std::vector<std::uint32_t>& outputs, std::int64_t repeat);
  // The trip count of a Loop, at most; nullopt when only its condition ends it.
  std::optional<std::int64_t> most_trips(const OnnxNode& node);
  std::uint32_t scalar(const WireValueInfo& info, std::int32_t element_type);
  // Defines the outputs of a loop: the carried values as they are, the ones behind them stacked.
  struct Stacking {
    std::size_t first;  // output that is stacked
    std::int64_t trips;
    std::int64_t repeat;  // of the loop itself
    std::vector<std::int64_t> axes;
  };
  void hand_out(const OnnxNode& node, const WireNode& wire, Scope& scope,
                const std::vector<std::uint32_t>& results, const Stacking& stacking);
  void check_carried(const OnnxNode& node, std::uint32_t before, std::uint32_t after);

  void add_initializers(const WireGraph& graph, Scope& scope, const std::string& prefix);
  void add_infos(const WireGraph& graph, Scope& scope);
  std::uint32_t new_value(std::string name);
  std::uint32_t like(std::uint32_t value, const std::string& name);
  void define(Scope& scope, std::string_view name, std::uint32_t value, const std::string& where);
  std::uint32_t lookup(const Scope& scope, std::string_view name, const std::string& where) const;
  std::string unique_name(const std::string& wanted);

  std::vector<OnnxInferred> infer(const OnnxNode& node, const OnnxOp* op, const WireNode& wire,
                                  const Scope& scope);
  bool infer_by_rule(const OnnxNode& node, const OnnxOp& op, std::vector<OnnxInferred>& types,
                     std::string& reason);
  bool infer_from_file(const OnnxNode& node, const WireNode& wire, const Scope& scope,
                       std::vector<OnnxInferred>& types) const;
  void compare_with_file(const WireNode& wire, const Scope& scope, const std::vector<OnnxInferred>& types);
  void set_type(const OnnxNode& node, std::uint32_t value, OnnxInferred type);
  bool fold(const OnnxNode& node);
  void inherit_sources(const OnnxNode& node, const OnnxOp& op);
  void finish_notes();

  const WireModel& model_;
  OnnxDimensions dims_;
  OnnxGraph graph_;
  std::map<std::string, const WireFunction*, std::less<>> functions_;
  std::unordered_map<std::string, std::int64_t> used_names_;
  std::int64_t nodes_left_ = 0;
  std::int64_t sources_left_ = std::int64_t{1} << 24;
  std::int64_t folds_left_ = std::int64_t{1} << 24;
  std::int64_t contradictions_ = 0;
  std::string first_contradiction_;
};

// Domain and type (and overload) by which a node names a function.
std::string function_key(std::string_view domain, std::string_view name, std::string_view overload);
// Operators whose output is new in every pass, whatever their inputs.
bool is_random(std::string_view type);
// "ai.onnx" is another name of the standard domain, "".
std::string_view plain_domain(std::string_view domain);

}  // namespace armilla
