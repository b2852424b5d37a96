// The walk that makes an OnnxGraph of a WireModel (flatten_onnx): one pass over the nodes in topological
// order that resolves names, infers shapes, folds constants and descends into functions and subgraphs.
//
// The shape of a node's outputs comes from, in this order: our own rule, the file's value_info, the largest
// that a rule can tell. A rule goes before the file because value_info outlives edits of the model (a changed
// batch); where the two differ, a note says so, and where a largest size is taken, too.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/onnx/dims.h"
#include "read/onnx/graph.h"
#include "read/onnx/node_view.h"
#include "read/onnx/operators/ops.h"
#include "read/onnx/wire.h"

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
  void run_flex_attention(OnnxNode node, const WireNode& wire, Scope& scope, const Frame& frame);

  // Sequences and optionals (read/onnx/flatten/sequence.cc). False when the operator deals with tensors
  // alone.
  bool run_container(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame);
  void run_sequence_map(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame);
  std::vector<std::uint32_t> run_body(const OnnxNode& node, const WireGraph& body,
                                      const std::vector<std::uint32_t>& arguments, std::int64_t repeat,
                                      const Scope& scope, const Frame& frame);
  // What the outputs hold, each.
  std::vector<std::vector<std::uint32_t>> map_alike(const OnnxNode& node, const WireGraph& body,
                                                    std::int64_t length, const Scope& scope,
                                                    const Frame& frame);
  std::vector<std::vector<std::uint32_t>> map_each(const OnnxNode& node, const WireGraph& body,
                                                   std::size_t length, const Scope& scope,
                                                   const Frame& frame);
  std::uint32_t taken_out(const OnnxNode& node, const WireNode& wire, const Scope& scope, OnnxNode& flat);
  std::uint32_t put_together(const OnnxNode& node, OnnxNode& flat);
  std::uint32_t split_to_sequence(const OnnxNode& node, OnnxNode& flat);
  std::uint32_t concat_from_sequence(const OnnxNode& node, const WireNode& wire, const Scope& scope,
                                     OnnxNode& flat);
  // Numbers given for an input by name (read/onnx/dims.h).
  void take_given_values(std::uint32_t value, const WireValueInfo& input);
  std::uint32_t container(ValueKind kind, std::int32_t element_type);
  void fill(std::uint32_t container, std::vector<std::uint32_t> items);
  std::uint32_t constant_scalar(std::int32_t element_type, std::optional<std::int64_t> value);
  // Outputs of a subgraph whose inputs are bound to values; nodes are appended to the flat graph.
  std::vector<std::uint32_t> run_graph(const WireGraph& graph, const std::vector<std::uint32_t>& inputs,
                                       const Scope& scope, const Frame& frame);
  std::vector<std::uint32_t> run_branch(const OnnxNode& node, const WireGraph& graph, const Scope& scope,
                                        const Frame& frame);
  const WireGraph& subgraph(const OnnxNode& node, std::string_view attribute) const;
  // The operator at a loop's border: what goes in from outside, and what comes out for the other side.
  void border(const OnnxNode& node, std::string_view what, const std::vector<std::uint32_t>& inputs,
              const std::vector<std::uint32_t>& outputs, std::int64_t repeat);
  // Everything that a trial run leaves behind, to take it back.
  struct Mark {
    std::size_t nodes, notes;
    std::int64_t folded_nodes, contradictions, bounds;
  };
  Mark mark() const;
  void take_back(const Mark& mark);
  // The trip count of a Loop, at most; nullopt when only its condition ends it.
  std::optional<std::int64_t> most_trips(const OnnxNode& node, const WireNode& wire, const Scope& scope);
  // The body once, for all trips; false when its shapes change from trip to trip.
  bool run_loop_once(const OnnxNode& node, const WireNode& wire, const WireGraph& body,
                     std::optional<std::int64_t> trips, Scope& scope, const Frame& frame);
  void unroll_loop(const OnnxNode& node, const WireNode& wire, const WireGraph& body, std::int64_t trips,
                   Scope& scope, const Frame& frame);
  double flops_since(std::size_t first_node);
  bool fits_file(const WireNode& wire, const Scope& scope, const std::vector<std::uint32_t>& values) const;
  // Defines the outputs of a loop: the carried values as they are, the ones behind them stacked.
  struct Stacking {
    std::size_t first;  // output that is stacked
    std::int64_t trips;
    std::int64_t repeat;  // of the loop itself
    std::vector<std::int64_t> axes;
    std::optional<std::int64_t> batch;  // of a Scan of operator set 8, in front
    bool runs = true;
  };
  void hand_out(const OnnxNode& node, const WireNode& wire, Scope& scope,
                const std::vector<std::uint32_t>& results, const Stacking& stacking);
  bool same_type(std::uint32_t a, std::uint32_t b) const;
  void check_carried(const OnnxNode& node, std::uint32_t before, std::uint32_t after) const;

  void add_initializers(const WireGraph& graph, Scope& scope, const std::string& prefix);
  void add_infos(const WireGraph& graph, Scope& scope);
  std::uint32_t new_value(std::string name);
  std::uint32_t like(std::uint32_t value, const std::string& name);   // another value of the same type
  std::uint32_t alias(std::uint32_t value, const std::string& name);  // the same value by another name
  void define(Scope& scope, std::string_view name, std::uint32_t value, const std::string& where);
  std::uint32_t lookup(const Scope& scope, std::string_view name, const std::string& where) const;
  std::string unique_name(const std::string& wanted);

  // Gives every output its type.
  void infer(const OnnxNode& node, const OnnxOp* op, const WireNode& wire, const Scope& scope);
  std::string hint_for_shape(const OnnxNode& node);
  // Types of all outputs; empty with `reason` set when something that decides them is not known.
  std::vector<OnnxType> infer_by_rule(const OnnxNode& node, const OnnxOp* op, std::string& reason);
  // What the file records of an output; nullopt unless all of it is known.
  std::optional<OnnxType> recorded(const OnnxNode& node, std::string_view output, const Scope& scope) const;
  void compare_with_file(std::string_view output, const Scope& scope, const OnnxType& type);
  void note_bound(std::string_view output, const Scope& scope, const OnnxType& type);
  void set_type(const OnnxNode& node, std::uint32_t value, OnnxType type);
  // Gives a value the type that the file declares, without a shape where that is not known.
  void declare(std::uint32_t value, const WireValueInfo& info);
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
  std::int64_t bounds_ = 0;
  std::string first_bound_;
};

// Domain and type (and overload) by which a node names a function.
std::string function_key(std::string_view domain, std::string_view name, std::string_view overload);
// Operators whose output is new in every pass, whatever their inputs.
bool is_random(std::string_view type);
// "ai.onnx" is another name of the standard domain, "".
std::string_view plain_domain(std::string_view domain);

}  // namespace armilla
