#include "read/onnx/frozen.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "read/onnx/constant.h"
#include "read/onnx/node_view.h"
#include "read/onnx/operators/ops.h"

namespace armilla {
namespace {

bool is_one_of(const OnnxNode& node, std::initializer_list<std::string_view> types) {
  return node.domain.empty() && std::find(types.begin(), types.end(), node.type) != types.end();
}

// What attention scores go through between their product and Softmax.
bool scores_pass(const OnnxNode& node) {
  return is_one_of(node, {"Add", "Sub", "Mul", "Div", "Where", "Min", "Max", "Clip", "Tanh"});
}

bool is_product(const OnnxNode& node) {
  return node.type == "MatMul" || node.type == "Einsum" || node.type == "Gemm" ||
         node.type == "FusedMatMul" || node.type == "TransposeMatMul";
}

// Dimensions of 1 only align tensors for broadcasting.
std::size_t long_dimensions(const Shape& shape) {
  return static_cast<std::size_t>(std::count_if(shape.begin(), shape.end(), [](auto d) { return d > 1; }));
}

// Values that let through (0, or 1 as a factor) and values that block.
// Whatever is 50 or more below the other scores vanishes in the softmax: exp(-50) is 2e-22.
bool holds_mask(const OnnxConstant& constant) {
  for (std::size_t i = 0; i < constant.size(); ++i) {
    const double value = std::abs(constant.real(i));
    if (value != 0 && value != 1 && !(value >= 50)) return false;
  }
  return true;
}

bool is_uniform(const OnnxConstant* constant) {
  if (constant == nullptr || constant->size() == 0) return false;
  for (std::size_t i = 1; i < constant->size(); ++i) {
    if (constant->real(i) != constant->real(0)) return false;
  }
  return true;
}

}  // namespace

OnnxFrozen::OnnxFrozen(OnnxGraph& graph, const OnnxUses& uses) : graph_(graph), uses_(uses) {
  find_standardisations();
}

void OnnxFrozen::find_standardisations() {
  // (x - mean), then at most two constants: a factor or divisor, and a shift. What precedes a shift as a
  // factor is an affine part that training changes.
  for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
    const OnnxNode& node = graph_.nodes[n];
    if (!is_one_of(node, {"Sub"}) || node.inputs.size() != 2 || uses_.is_static(node, 0) ||
        !uses_.is_constant_tensor(node, 1))
      continue;
    std::vector<OnnxUse> chain;  // the constants that follow
    for (std::uint32_t value = node.outputs[0]; chain.size() < 2;) {
      const auto use = uses_.only_use(value);
      if (!use) break;
      const OnnxNode& next = graph_.nodes[use->node];
      const std::uint32_t other = 1 - use->input;
      if (!is_one_of(next, {"Mul", "Div", "Add"}) || !uses_.is_constant_tensor(next, other)) break;
      // c / x is no standardisation.
      if (next.type == "Div" && other == 0) break;
      chain.push_back({use->node, other});
      value = next.outputs[0];
    }
    const std::string_view first = chain.empty() ? "" : graph_.nodes[chain[0].node].type;
    // Without a factor behind it, x - mean counts only where x is still the model's input.
    if (first == "Mul" || first == "Div" || is_raw_input(node.inputs[0])) statistics_.emplace(n, 1);
    // (x - mean) * scale + shift has its scale trained; otherwise the first factor is 1 / deviation.
    const bool scale = chain.size() == 2 && graph_.nodes[chain[1].node].type == "Add";
    if (first == "Mul" && !scale) statistics_.emplace(chain[0].node, chain[0].input);
  }
}

// Only constant arithmetic, casts and moves lie between the model's inputs and this value.
bool OnnxFrozen::is_raw_input(std::uint32_t value) const {
  const auto constant_arithmetic = [&](const OnnxNode& node, std::size_t input) {
    if (uses_.passes(node, input)) return true;
    return is_one_of(node, {"Add", "Sub", "Mul", "Div"}) && uses_.is_static(node, 1 - input);
  };
  const std::vector<std::uint32_t> all = uses_.behind(value, constant_arithmetic);
  return std::all_of(all.begin(), all.end(), [&](std::uint32_t v) {
    const OnnxNode* node = uses_.made_by(v);
    if (node == nullptr) return true;
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i] != kNoValue && !uses_.is_static(*node, i) && !constant_arithmetic(*node, i))
        return false;
    }
    return true;
  });
}

// A constant, or rows picked from one by position.
bool OnnxFrozen::is_table(const OnnxNode& node, std::size_t input) const {
  if (uses_.is_constant_tensor(node, input)) return true;
  if (uses_.is_static(node, input)) return false;
  const OnnxNode* maker = uses_.maker(node.inputs[input]);
  return maker != nullptr && is_one_of(*maker, {"Gather", "GatherElements", "GatherND"}) &&
         uses_.is_constant_tensor(*maker, 0);
}

// a cos + b sin with a and b parts of the same tensor: the other summand must be a product with a table whose
// other operand shares something with this one's.
bool OnnxFrozen::is_rotation(const OnnxNode& node, std::size_t table) const {
  if (node.inputs.size() != 2 || uses_.is_static(node, 1 - table)) return false;
  const auto parts = [&](std::uint32_t value) {
    return uses_.behind(value, [&](const OnnxNode& n, std::size_t i) { return uses_.passes(n, i); });
  };
  const std::vector<std::uint32_t> own = parts(node.inputs[1 - table]);
  for (const OnnxUse& use : uses_.uses(node.outputs[0])) {
    const OnnxNode& sum = graph_.nodes[use.node];
    if (!is_one_of(sum, {"Add", "Sub"}) || uses_.is_static(sum, 1 - use.input)) continue;
    const OnnxNode* other = uses_.maker(sum.inputs[1 - use.input]);
    if (other == nullptr || other == &node || !is_one_of(*other, {"Mul"})) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!is_table(*other, i) || uses_.is_static(*other, 1 - i)) continue;
      const std::vector<std::uint32_t> theirs = parts(other->inputs[1 - i]);
      const std::unordered_set<std::uint32_t> mine(own.begin(), own.end());
      if (std::any_of(theirs.begin(), theirs.end(), [&](std::uint32_t v) { return mine.contains(v); }))
        return true;
    }
  }
  return false;
}

// Everything this value comes to is a Sin or a Cos, and both occur.
bool OnnxFrozen::is_phase(std::uint32_t value) const {
  bool sine = false;
  bool cosine = false;
  for (const OnnxUse& use : uses_.uses(value)) {
    const OnnxNode& node = graph_.nodes[use.node];
    if (!is_one_of(node, {"Sin", "Cos"})) return false;
    (node.type == "Sin" ? sine : cosine) = true;
  }
  return sine && cosine;
}

// Positions and segment numbers are integers; relative ones are differences of them.
bool OnnxFrozen::is_position(std::uint32_t value) const {
  const auto all = uses_.behind(value, [&](const OnnxNode& node, std::size_t input) {
    return uses_.passes(node, input) || is_one_of(node, {"Add", "Sub", "Abs", "CumSum"});
  });
  return std::any_of(all.begin(), all.end(), [&](std::uint32_t v) {
    const DType dtype = dtype_of_onnx(graph_.values[v].element_type);
    return dtype == DType::int64 || dtype == DType::int32 || dtype == DType::boolean;
  });
}

bool OnnxFrozen::reaches_softmax(std::uint32_t value) const {
  std::vector<std::uint32_t> open = {value};
  for (std::size_t next = 0; next < open.size() && open.size() < 32; ++next) {
    for (const OnnxUse& use : uses_.uses(open[next])) {
      const OnnxNode& taker = graph_.nodes[use.node];
      if (is_one_of(taker, {"Softmax"})) return true;
      if (scores_pass(taker)) open.push_back(taker.outputs[0]);
    }
  }
  return false;
}

// Between a product of two activations and a softmax, and as long as the last dimension of the scores.
bool OnnxFrozen::is_mask(const OnnxNode& node, std::size_t input) {
  if (!scores_pass(node) || node.outputs.empty() || node.outputs[0] == kNoValue) return false;
  const OnnxValue& constant = graph_.values[node.inputs[input]];
  const std::optional<Shape>& scores = graph_.values[node.outputs[0]].shape;
  if (!scores || !constant.shape || scores->size() < 2 || constant.shape->empty()) return false;
  if (constant.shape->back() != scores->back() || scores->back() == 1) return false;

  if (!reaches_softmax(node.outputs[0])) return false;
  const auto before = uses_.behind(node.outputs[0], [&](const OnnxNode& n, std::size_t i) {
    return uses_.passes(n, i) || scores_pass(n);
  });
  const bool of_products = std::any_of(before.begin(), before.end(), [&](std::uint32_t v) {
    const OnnxNode* maker = uses_.made_by(v);
    return maker != nullptr && is_product(*maker) && !uses_.is_static(*maker, 0) &&
           !uses_.is_static(*maker, 1);
  });
  if (!of_products) return false;

  // A generated tensor is no learned bias. A stored one is a mask by its values or, where these are not at
  // hand, by being the same for all heads.
  if (constant.origin == OnnxOrigin::generated) return true;
  const OnnxConstant* known = graph_.constant(node.inputs[input]);
  if (known != nullptr) return holds_mask(*known);
  const std::size_t rank = constant.shape->size();
  const bool heads_differ = rank >= 3 && (*constant.shape)[rank - 3] > 1;
  return scores->size() >= 3 && !heads_differ;
}

// The last steps of a detector: offsets times and plus a table of boxes, nothing trained behind them.
bool OnnxFrozen::is_box_table(const OnnxNode& node, std::size_t input) const {
  const Shape& shape = *graph_.values[node.inputs[input]].shape;
  // Boxes are centres (2 numbers) or corners (4), and a detector has more of them than this.
  constexpr std::int64_t kFewest = 8;
  const auto coordinates = [](std::int64_t last) { return last == 2 || last == 4; };
  if (shape.size() < 2 || long_dimensions(shape) != 2 || !coordinates(shape.back()) ||
      shape[shape.size() - 2] < kFewest || uses_.is_static(node, 1 - input))
    return false;
  // From the result only arithmetic leads on to the graph's outputs; behind the offsets lies a convolution.
  bool arrives = false;  // at the graph's outputs
  std::vector<std::uint32_t> open = {node.outputs[0]};
  for (std::size_t next = 0; next < open.size(); ++next) {
    if (open.size() > 64) return false;
    const std::vector<OnnxUse> uses = uses_.uses(open[next]);
    arrives = arrives || uses.empty();
    for (const OnnxUse& use : uses) {
      const OnnxNode& taker = graph_.nodes[use.node];
      if (!is_one_of(taker, {"Add", "Sub", "Mul", "Div", "Exp", "Min", "Max", "Clip", "NonMaxSuppression"}))
        return false;
      open.push_back(taker.outputs[0]);
    }
  }
  const auto before = uses_.behind(node.inputs[1 - input], [&](const OnnxNode& n, std::size_t i) {
    return uses_.passes(n, i) || is_one_of(n, {"Add", "Mul", "Exp", "Sigmoid"});
  });
  return arrives && std::any_of(before.begin(), before.end(), [&](std::uint32_t v) {
           const OnnxNode* maker = uses_.made_by(v);
           return maker != nullptr && maker->type == "Conv";
         });
}

// running = momentum * running + (1 - momentum) * batch statistics: the result has the buffer's shape and is
// handed out.
bool OnnxFrozen::is_state_update(const OnnxNode& node, std::size_t input) const {
  if (node.inputs.size() != 2 || uses_.is_static(node, 1 - input)) return false;
  const OnnxNode* maker = uses_.maker(node.inputs[1 - input]);
  return maker != nullptr && maker->type.starts_with("Reduce") && uses_.uses(node.outputs[0]).empty() &&
         graph_.values[node.outputs[0]].shape == graph_.values[node.inputs[input]].shape;
}

// Longer vectors are not decoded; shorter ones are chance.
bool OnnxFrozen::counts_up(std::uint32_t value) {
  const OnnxValue& weight = graph_.values[value];
  constexpr std::int64_t kFewest = 4;
  constexpr std::int64_t kMost = 1024;
  const std::int64_t elements = element_count(*weight.shape, weight.name);
  const OnnxConstant* known = elements < kFewest || elements > kMost ? nullptr : graph_.constant(value);
  if (known == nullptr) return false;
  for (std::size_t i = 0; i < known->size(); ++i) {
    if (known->real(i) != static_cast<double>(i)) return false;
  }
  return true;
}

bool OnnxFrozen::is_grid(std::uint32_t node, std::uint32_t value) {
  if (!is_one_of(graph_.nodes[node], {"Add", "Sub", "Mul"})) return false;
  const OnnxConstant* known = graph_.constant(value);
  if (known == nullptr || known->size() < 2 || !known->floating || is_uniform(known)) return false;
  // A detector's anchors are at least three pairs; round numbers in a smaller matrix are chance.
  constexpr std::size_t kSmallestTable = 6;
  if (long_dimensions(known->shape) > 1 && known->size() < kSmallestTable) return false;
  // Halves are pixel centres.
  return std::all_of(known->reals.begin(), known->reals.end(),
                     [](double x) { return 2 * x == std::nearbyint(2 * x); });
}

bool OnnxFrozen::is_sinusoid(std::uint32_t value) const {
  const OnnxValue& table = graph_.values[value];
  if (table.tensor == nullptr || !table.shape || long_dimensions(*table.shape) != 2) return false;
  const auto width = static_cast<std::size_t>(table.shape->back());
  constexpr std::size_t kRows = 4;
  // Enough rows to tell; the rest of a large table is not decoded.
  if (width < 4 || width % 2 != 0) return false;
  const std::vector<double> reals = decode_beginning(*table.tensor, graph_.file, kRows * width);
  // Sines and cosines in turn, in two halves, or in halves of each half (two dimensions of an image).
  std::vector<std::size_t> steps = {1, width / 2};
  if (width % 4 == 0) steps.push_back(width / 4);
  return std::any_of(steps.begin(), steps.end(), [&](std::size_t step) {
    std::size_t rows = 0;
    // The first rows hold small angles, whose sines and cosines are far from 0 and 1 by chance. Two must fit.
    for (std::size_t at = 0; at + width <= reals.size(); at += width) {
      bool holds = true;
      for (std::size_t i = 0; i < width && holds; ++i) {
        if (i / step % 2 != 0) continue;
        const double a = reals[at + i];
        const double b = reals[at + i + step];
        holds = std::abs(a * a + b * b - 1) < 0.01;
      }
      rows += holds ? 1 : 0;
    }
    return rows >= 2;
  });
}

// Order matters: cheap and certain signs first, those that walk the graph after.
bool OnnxFrozen::is_frozen(std::uint32_t index, std::size_t input) {
  const OnnxNode& node = graph_.nodes[index];
  if (!node.domain.empty()) return false;
  const bool binary = node.inputs.size() == 2 && node.outputs.size() == 1;
  if (is_one_of(node, {"Min", "Max"})) return !uses_.is_static(node, 0) || !uses_.is_static(node, 1);
  if (is_one_of(node, {"Where"}))
    return is_uniform(graph_.constant(node.inputs[input])) || is_mask(node, input);
  if (is_one_of(node, {"ScatterND", "ScatterElements", "Scatter"}))
    return input == 0 && is_uniform(graph_.constant(node.inputs[0]));
  if (!binary || !is_one_of(node, {"Add", "Sub", "Mul", "Div"})) return false;
  // A constant divisor: training changes factors, exporters leave divisions by fixed numbers.
  if (node.type == "Div" && input == 1) return true;
  if (statistics_.contains({index, input}) || is_mask(node, input)) return true;
  if (node.type == "Mul") {
    const std::uint32_t other = node.inputs[1 - input];
    const Shape& shape = *graph_.values[node.inputs[input]].shape;
    if (is_phase(node.outputs[0])) return true;
    if (is_position(other) && reaches_softmax(node.outputs[0])) return true;
    if (long_dimensions(shape) >= 2 && is_rotation(node, input)) return true;
  }
  return is_box_table(node, input) || (node.type == "Add" && is_state_update(node, input));
}

bool OnnxFrozen::only_frozen_uses(std::uint32_t value) {
  const std::vector<OnnxUse> all = uses_.uses(value);
  return !all.empty() && !uses_.is_output(value) &&
         std::all_of(all.begin(), all.end(), [&](const OnnxUse& use) {
           const OnnxNode& node = graph_.nodes[use.node];
           if (is_one_of(node, {"Mul"}) && is_rotation(node, use.input)) return true;
           const OnnxOp* op = find_onnx_op(node.domain, node.type);
           if (op != nullptr && role_of(*op, use.input) == 'c') return true;
           return is_mask(node, use.input);
         });
}

}  // namespace armilla
