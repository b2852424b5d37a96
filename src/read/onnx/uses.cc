#include "read/onnx/uses.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

namespace armilla {
namespace {

// Walks stop here: what decides is near.
constexpr std::size_t kMostVisited = 512;

// Operators that hand elements on as they are, in another place, shape or type.
constexpr std::array<std::string_view, 15> kMovers = {
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Split",    "Slice",
    "Expand",  "Tile",    "Cast",    "CastLike",  "Dropout",  "Gather",    "GatherND",
};

bool is_mover(const OnnxNode& node) {
  return node.domain.empty() && std::find(kMovers.begin(), kMovers.end(), node.type) != kMovers.end();
}

}  // namespace

OnnxUses::OnnxUses(const OnnxGraph& graph)
    : graph_(graph),
      maker_(graph.values.size(), UINT32_MAX),
      takers_(graph.values.size()),
      is_output_(graph.values.size()) {
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const OnnxNode& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue) takers_[node.inputs[i]].push_back({n, i});
    }
    for (const std::uint32_t output : node.outputs) {
      if (output != kNoValue) maker_[output] = n;
    }
  }
  for (const std::uint32_t output : graph.outputs) is_output_[output] = true;
}

bool OnnxUses::is_static(const OnnxNode& node, std::size_t input) const {
  return input < node.inputs.size() && node.inputs[input] != kNoValue &&
         graph_.values[node.inputs[input]].is_static;
}

bool OnnxUses::is_constant_tensor(const OnnxNode& node, std::size_t input) const {
  if (!is_static(node, input)) return false;
  const OnnxValue& value = graph_.values[node.inputs[input]];
  return value.shape && element_count(*value.shape, value.name) > 1;
}

// Arithmetic with a single constant number (scaling, masks' factors) does not change what a tensor is.
bool OnnxUses::passes(const OnnxNode& node, std::size_t input) const {
  if (is_mover(node)) return input == 0;
  if (!node.domain.empty()) return false;
  if (node.type == "Concat" || node.type == "Neg") return true;
  const bool arithmetic =
      node.type == "Mul" || node.type == "Div" || node.type == "Add" || node.type == "Sub";
  if (!arithmetic || node.inputs.size() != 2) return false;
  return is_static(node, 1 - input) && !is_constant_tensor(node, 1 - input);
}

std::vector<OnnxUse> OnnxUses::uses(std::uint32_t value) const {
  std::vector<OnnxUse> found;
  std::vector<std::uint32_t> open = {value};
  std::unordered_set<std::uint32_t> seen = {value};
  while (!open.empty() && seen.size() < kMostVisited) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const OnnxUse& use : takers_[at]) {
      const OnnxNode& taker = graph_.nodes[use.node];
      if (!passes(taker, use.input)) {
        found.push_back(use);
        continue;
      }
      for (const std::uint32_t output : taker.outputs) {
        if (output != kNoValue && seen.insert(output).second) open.push_back(output);
      }
    }
  }
  return found;
}

std::optional<OnnxUse> OnnxUses::only_use(std::uint32_t value) const {
  const std::vector<OnnxUse> all = uses(value);
  return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
}

// The operator behind all that only passes on. Where several activations are joined there is no one maker.
const OnnxNode* OnnxUses::maker(std::uint32_t value) const {
  for (std::size_t step = 0; step < kMostVisited; ++step) {
    const OnnxNode* node = made_by(value);
    if (node == nullptr) return nullptr;
    std::size_t input = 0;
    while (input < node->inputs.size() && (is_static(*node, input) || !passes(*node, input))) ++input;
    if (input == node->inputs.size()) return node;
    if (node->type == "Concat" && node->inputs.size() > 1) return nullptr;
    value = node->inputs[input];
  }
  return nullptr;
}

const OnnxNode* OnnxUses::made_by(std::uint32_t value) const {
  return maker_[value] == UINT32_MAX ? nullptr : &graph_.nodes[maker_[value]];
}

// All values that this one comes from, as far as `enter` lets the walk go.
std::vector<std::uint32_t> OnnxUses::behind(
    std::uint32_t value, const std::function<bool(const OnnxNode&, std::size_t)>& enter) const {
  std::vector<std::uint32_t> found = {value};
  std::unordered_set<std::uint32_t> seen = {value};
  for (std::size_t next = 0; next < found.size() && found.size() < kMostVisited; ++next) {
    const OnnxNode* node = made_by(found[next]);
    for (std::size_t i = 0; node != nullptr && i < node->inputs.size(); ++i) {
      const std::uint32_t input = node->inputs[i];
      if (input == kNoValue || is_static(*node, i) || !enter(*node, i)) continue;
      if (seen.insert(input).second) found.push_back(input);
    }
  }
  return found;
}

}  // namespace armilla
