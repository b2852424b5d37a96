#include "read/onnx/flatten/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/units_text.h"
#include "read/onnx/node_view.h"

namespace armilla {
namespace {

constexpr std::string_view kUnrollHint =
    "unroll the loop at export (torch.jit.trace does), or replace it by a single operator";
// A loop whose shapes change is written out trip by trip up to here.
constexpr std::int64_t kMostUnrolled = 4096;

// Whether a loop hands its carried value on to the next iteration as it came.
// Exporters hand constants through a loop as carried values, often behind an Identity. The bound on steps
// keeps a cycle of Identities from being followed forever.
bool stays_the_same(const WireGraph& body, std::size_t input, std::size_t output) {
  std::string_view name = body.outputs[output].name;
  for (std::size_t step = 0; step <= body.nodes.size(); ++step) {
    if (name == body.inputs[input].name) return true;
    const auto maker = std::find_if(body.nodes.begin(), body.nodes.end(), [&](const WireNode& node) {
      return node.type == "Identity" && node.inputs.size() == 1 && node.outputs.size() == 1 &&
             node.outputs[0] == name;
    });
    if (maker == body.nodes.end()) return false;
    name = maker->inputs[0];
  }
  return false;
}

std::string early_stop_note(std::string_view name, std::int64_t iterations) {
  return iterations == 1
             ? fmt::format("'{}' may stop early; its one iteration is counted", name)
             : fmt::format("'{}' may stop early; all of its {} iterations are counted", name, iterations);
}

}  // namespace

void OnnxLoops::check_carried(const OnnxNode& node, std::uint32_t before, std::uint32_t after) const {
  if (flat_.same_type(before, after)) return;
  const OnnxValue& from = graph_.values[before];
  const OnnxValue& to = graph_.values[after];
  const auto text = [](const OnnxValue& value) {
    return value.shape ? to_text(*value.shape) : fmt::format("a {}", name_of(value.kind));
  };
  if (from.kind == ValueKind::sequence && to.kind == ValueKind::sequence)
    throw Error(node.where,
                fmt::format("its carried sequence '{}' grows or shrinks in every iteration", from.name),
                std::string(kUnrollHint));
  throw Error(node.where,
              fmt::format("its carried '{}' changes its shape from {} to {} in every iteration", from.name,
                          text(from), text(to)),
              std::string(kUnrollHint));
}

// A trip count in the graph, else the first dimension of a stacked output's recorded shape.
std::optional<std::int64_t> OnnxLoops::most_trips(const OnnxNode& node, const WireNode& wire,
                                                  const OnnxScope& scope) {
  std::optional<std::int64_t> trips = graph_.number(node.inputs[0]);
  const std::optional<std::int64_t> condition = graph_.number(node.inputs[1]);
  if ((trips && *trips < 1) || (condition && *condition == 0)) return 0;
  const std::size_t carried = node.inputs.size() - 2;
  for (std::size_t i = carried; !trips && i < wire.outputs.size(); ++i) {
    // The file may record what comes out of all iterations together.
    const auto info = scope.infos.find(wire.outputs[i]);
    if (info == scope.infos.end()) continue;
    const std::optional<Shape> said = flat_.dims().resolve(*info->second);
    if (!said || said->empty()) continue;
    trips = said->front();
    graph_.notes.push_back(fmt::format("'{}' depends on data; by the shape of '{}' in the file it runs {}",
                                       node.name, readable(wire.outputs[i]), typed_count(*trips, "time")));
  }
  if (node.inputs[0] != kNoValue && !trips) {
    const bool given =
        std::find(graph_.inputs.begin(), graph_.inputs.end(), node.inputs[0]) != graph_.inputs.end();
    throw Error(node.where, "its trip count depends on data",
                given ? fmt::format("give it, for example --dim {}=16", graph_.values[node.inputs[0]].name)
                      : std::string(kUnrollHint));
  }
  // Exporters write 2^63 - 1 for "as long as the condition holds".
  constexpr std::int64_t kMost = 1 << 30;
  return trips && *trips <= kMost ? trips : std::nullopt;
}

// Carried values come out as they are, all others stacked along a new dimension of `trips`.
void OnnxLoops::hand_out(const OnnxNode& node, const WireNode& wire, OnnxScope& scope,
                         const std::vector<std::uint32_t>& results, const Stacking& stacking) {
  std::vector<std::uint32_t> pieces;
  std::vector<std::uint32_t> stacked;
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    std::uint32_t value = results[i];
    const bool stacks = i >= stacking.first;
    if (stacks || (stacking.batch && stacking.runs)) {
      if (!graph_.values[value].shape)
        throw Error(node.where, "stacks values that are not tensors", std::string(kUnrollHint));
      pieces.push_back(value);
      value = flat_.like(value, readable(wire.outputs[i]));
      Shape shape = *graph_.values[value].shape;
      const std::size_t which = i - stacking.first;
      if (stacks) {
        const std::size_t axis =
            OnnxNodeView(graph_, node)
                .axis(which < stacking.axes.size() ? stacking.axes[which] : 0, shape.size() + 1);
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), stacking.trips);
      }
      if (stacking.batch) shape.insert(shape.begin(), *stacking.batch);
      flat_.set_type(node, value, {graph_.values[value].element_type, shape});
      graph_.values[value].is_static = !stacking.runs;  // empty
      stacked.push_back(value);
    }
    if (!wire.outputs[i].empty()) scope.define(wire.outputs[i], value, node.where);
  }
  // One operator at the border copies the pieces of all trips into the stacked tensors.
  if (!stacked.empty() && stacking.runs) flat_.border(node, "end", pieces, stacked, stacking.repeat);
}

void OnnxLoops::run_loop(const OnnxNode& node, const WireNode& wire, OnnxScope& scope,
                         const OnnxFrame& frame) {
  const WireGraph& body = subgraph(node, "body");
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  if (body.inputs.size() != node.inputs.size() || node.inputs.size() < 2 ||
      body.outputs.size() + 1 < node.inputs.size() || wire.outputs.size() + 1 > body.outputs.size())
    throw Error(node.where, "its body does not take and give what the loop does");
  for (std::size_t i = 2; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) throw Error(node.where, fmt::format("its input {} is missing", i));
  }
  const std::optional<std::int64_t> trips = most_trips(node, wire, scope);
  // First as one body that repeats: cheap, and enough for most loops. Where shapes change from trip to trip,
  // or depend on the iteration, each trip is written out, up to a limit.
  const bool can_unroll = trips && *trips > 0 && *trips <= kMostUnrolled;
  const OnnxFlatGraph::Mark before = flat_.mark();
  try {
    if (run_loop_once(node, wire, body, trips, scope, frame)) return;
  } catch (const Error&) {
    // What depends on the iteration may be known when every one is looked at on its own.
    if (!can_unroll) throw;
  }
  flat_.take_back(before);
  unroll_loop(node, wire, body, *trips, scope, frame);
}

bool OnnxLoops::run_loop_once(const OnnxNode& node, const WireNode& wire, const WireGraph& body,
                              std::optional<std::int64_t> trips, OnnxScope& scope, const OnnxFrame& frame) {
  const bool never = trips == 0;
  const std::int64_t repeat = never ? 1 : trips.value_or(1);
  // A loop that never runs is looked at once all the same, for the types of its outputs.
  const OnnxFrame inner{frame.opsets, frame.arguments, flat_.unique_name(node.name),
                        checked_multiply(frame.repeat, repeat, node.where), frame.depth + 1};
  const OnnxFlatGraph::Mark before = flat_.mark();
  const std::uint32_t iteration = flat_.constant_scalar(onnx_type::kInt64, std::nullopt);
  graph_.values[iteration].name = readable(body.inputs[0].name);
  const std::vector<std::uint32_t> given(node.inputs.begin() + 2, node.inputs.end());
  std::vector<std::uint32_t> inside = {iteration};
  std::vector<std::uint32_t> outside;
  std::vector<std::uint32_t> begun = {iteration};
  for (std::size_t i = 0; i < given.size(); ++i) {
    // A constant that every iteration hands on, such as a weight, is the same one inside.
    if (graph_.values[given[i]].is_static && stays_the_same(body, i + 2, i + 1)) {
      inside.push_back(given[i]);
      continue;
    }
    outside.push_back(given[i]);
    inside.push_back(flat_.like(given[i], readable(body.inputs[i + 2].name)));
    begun.push_back(inside.back());
  }
  flat_.border(node, "begin", outside, begun, frame.repeat);
  std::vector<std::uint32_t> arguments = inside;
  // While the body runs, the condition is true.
  arguments.insert(arguments.begin() + 1, flat_.constant_scalar(onnx_type::kBool, 1));
  const std::size_t first = graph_.nodes.size();
  std::vector<std::uint32_t> results = runner_.run_graph(body, arguments, scope, inner);
  const std::optional<std::int64_t> goes_on = graph_.number(results[0]);
  results.erase(results.begin());
  // Zero trips: the carried values come out as they went in, and stacked outputs are empty.
  if (never) {
    flat_.take_back(before);
    for (std::size_t i = 0; i < given.size(); ++i) results[i] = given[i];
    hand_out(node, wire, scope, results, {given.size(), 0, frame.repeat, {}, {}, false});
    return true;
  }
  bool changes = false;
  for (std::size_t i = 0; i < given.size(); ++i)
    changes = changes || !flat_.same_type(inside[i + 1], results[i]);
  // The body itself says that it does not go on: one trip, whatever the count; its nodes lose their
  // repetition.
  if (goes_on && *goes_on == 0) {
    trips = 1;
    changes = false;
    for (std::size_t i = first; i < graph_.nodes.size(); ++i)
      graph_.nodes[i].repeat = graph_.nodes[i].repeat / inner.repeat * frame.repeat;
  } else if (!trips) {
    throw Error(node.where, "runs until a condition on data holds, so its trip count is not known",
                std::string(kUnrollHint));
  } else if (!goes_on && !changes) {
    graph_.notes.push_back(early_stop_note(node.name, *trips));
  }
  if (changes) {
    if (*trips > kMostUnrolled) {
      for (std::size_t i = 0; i < given.size(); ++i) check_carried(node, inside[i + 1], results[i]);
    }
    return false;
  }
  hand_out(node, wire, scope, results, {given.size(), *trips, frame.repeat, {}, {}, true});
  return true;
}

// Every trip with its own iteration number, so that what depends on it is folded.
void OnnxLoops::unroll_loop(const OnnxNode& node, const WireNode& wire, const WireGraph& body,
                            std::int64_t trips, OnnxScope& scope, const OnnxFrame& frame) {
  std::vector<std::uint32_t> carried(node.inputs.begin() + 2, node.inputs.end());
  std::vector<std::vector<std::uint32_t>> pieces(wire.outputs.size());
  std::int64_t ran = 0;
  bool may_stop = false;
  while (ran < trips) {
    const OnnxFrame inner{frame.opsets, frame.arguments,
                          flat_.unique_name(fmt::format("{}/{}", node.name, ran)), frame.repeat,
                          frame.depth + 1};
    std::vector<std::uint32_t> arguments = {flat_.constant_scalar(onnx_type::kInt64, ran),
                                            flat_.constant_scalar(onnx_type::kBool, 1)};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const std::vector<std::uint32_t> results = runner_.run_graph(body, arguments, scope, inner);
    const std::optional<std::int64_t> goes_on = graph_.number(results[0]);
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = results[i + 1];
    for (std::size_t i = carried.size(); i < pieces.size(); ++i) pieces[i].push_back(results[i + 1]);
    ++ran;
    may_stop = may_stop || !goes_on;
    if (goes_on && *goes_on == 0) break;
  }
  if (may_stop) graph_.notes.push_back(early_stop_note(node.name, ran));
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    if (wire.outputs[i].empty()) continue;
    std::uint32_t value = i < carried.size() ? carried[i] : kNoValue;
    // Stacked outputs need one shape for all trips.
    if (value == kNoValue) {
      for (const std::uint32_t piece : pieces[i]) {
        if (graph_.values[piece].kind != ValueKind::tensor || !flat_.same_type(pieces[i][0], piece))
          throw Error(node.where,
                      fmt::format("stacks values of different shapes in '{}'", readable(wire.outputs[i])));
      }
      value = flat_.new_value(readable(wire.outputs[i]));
      Shape shape = *graph_.values[pieces[i][0]].shape;
      shape.insert(shape.begin(), ran);
      flat_.set_type(node, value, {graph_.values[pieces[i][0]].element_type, shape});
      flat_.border(node, "end", pieces[i], {value}, frame.repeat);
    }
    scope.define(wire.outputs[i], value, node.where);
  }
}

// Scan takes one slice of each scanned input per trip; the other inputs are states, carried as in a Loop.
void OnnxLoops::run_scan(const OnnxNode& node, const WireNode& wire, OnnxScope& scope,
                         const OnnxFrame& frame) {
  const WireGraph& body = subgraph(node, "body");
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  const OnnxNodeView view(graph_, node);
  // Until operator set 8 a batch lies in front of everything, and the lengths of its samples come first.
  const bool batched = node.opset < 9;
  std::vector<std::uint32_t> given = node.inputs;
  if (batched && !given.empty()) {
    if (given[0] != kNoValue)
      graph_.notes.push_back(
          fmt::format("'{}' may stop early; all of its iterations are counted", node.name));
    given.erase(given.begin());
  }
  const std::int64_t scanned = view.int_attribute("num_scan_inputs", 0);
  const auto total = static_cast<std::int64_t>(given.size());
  if (scanned < 1 || scanned > total || body.inputs.size() != given.size() ||
      body.outputs.size() != wire.outputs.size() ||
      body.outputs.size() + static_cast<std::size_t>(scanned) < given.size())
    throw Error(node.where, "its body does not take and give what the scan does");
  const auto states = static_cast<std::size_t>(total - scanned);
  const std::vector<std::int64_t> axes = view.ints_attribute("scan_input_axes");
  std::vector<std::uint32_t> inside;
  std::vector<std::uint32_t> outside;
  std::vector<std::uint32_t> begun;
  std::int64_t trips = 0;
  std::optional<std::int64_t> batch;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == kNoValue || !graph_.values[given[i]].shape)
      throw Error(node.where, fmt::format("its input {} is not a tensor of known shape", i));
    // Weights that stay the same are seen inside as what they are. With a batch in front (operator set 8)
    // even they have another shape inside.
    const bool constant = graph_.values[given[i]].is_static;
    if (i < states && constant && !batched && stays_the_same(body, i, i)) {
      inside.push_back(given[i]);
      continue;
    }
    inside.push_back(flat_.like(given[i], readable(body.inputs[i].name)));
    if (i >= states && constant) {
      // One slice after the other of constants, such as the weights of one layer after the other.
      graph_.values[inside.back()].is_static = true;
      graph_.values[inside.back()].sources = graph_.values[given[i]].sources;
    } else {
      outside.push_back(given[i]);
      begun.push_back(inside.back());
    }
    Shape& shape = *graph_.values[inside.back()].shape;
    if (batched) {
      if (shape.empty() || (batch && shape[0] != *batch))
        throw Error(node.where, "its inputs do not have one batch in front");
      batch = shape[0];
      shape.erase(shape.begin());
    }
    if (i < states) continue;
    const std::size_t axis = view.axis(i - states < axes.size() ? axes[i - states] : 0, shape.size());
    if (i > states && shape[axis] != trips)
      throw Error(node.where, fmt::format("scans inputs of {} and {} steps together", trips, shape[axis]));
    trips = shape[axis];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  const bool never = trips < 1 || batch == 0;
  const OnnxFlatGraph::Mark before = flat_.mark();
  flat_.border(node, "begin", outside, begun, frame.repeat);
  // Each sample of a batch runs the whole loop (operator set 8).
  const std::int64_t repeat = never ? 1 : checked_multiply(trips, batch.value_or(1), node.where);
  std::vector<std::uint32_t> results = runner_.run_body(node, body, inside, repeat, scope, frame);
  for (std::size_t i = 0; i < states; ++i) check_carried(node, inside[i], results[i]);
  if (never) {
    flat_.take_back(before);
    std::copy_n(given.begin(), states, results.begin());
  }
  hand_out(node, wire, scope, results,
           {states, trips, frame.repeat, view.ints_attribute("scan_output_axes"), batch, !never});
}

}  // namespace armilla
