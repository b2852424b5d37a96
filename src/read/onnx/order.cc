#include "read/onnx/order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "read/onnx/dims.h"

namespace armilla {
namespace {

using Producers = std::unordered_map<std::string_view, std::uint32_t>;

// Calls `each` for every name that the node needs, those inside its subgraphs included.
template <class Each>
void for_each_use(const WireNode& node, const Each& each) {
  for (const std::string_view input : node.inputs) each(input);
  for (const WireAttribute& attribute : node.attributes) {
    if (attribute.graph == nullptr) continue;
    for (const WireNode& inner : attribute.graph->nodes) for_each_use(inner, each);
    for (const WireValueInfo& output : attribute.graph->outputs) each(output.name);
  }
}

// The specification (SSA) allows one producer per name.
Producers producers_of(const std::vector<WireNode>& nodes, const std::string& where) {
  Producers producers;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    for (const std::string_view output : nodes[i].outputs) {
      if (output.empty()) continue;
      const auto [other, is_new] = producers.try_emplace(output, i);
      if (!is_new)
        throw Error(where, fmt::format("tensor '{}' is produced twice: by {} and by {}", readable(output),
                                       describe(nodes[other->second], other->second), describe(nodes[i], i)));
    }
  }
  return producers;
}

[[noreturn]] void report_cycle(const std::vector<WireNode>& nodes,
                               const std::vector<std::vector<std::uint32_t>>& needs,
                               const std::vector<std::uint32_t>& waiting, const std::string& where) {
  // Every node that is left waits for another one that is left: following them must come back.
  auto at = static_cast<std::uint32_t>(
      std::find_if(waiting.begin(), waiting.end(), [](std::uint32_t n) { return n > 0; }) - waiting.begin());
  std::vector<std::uint32_t> path;
  std::vector<std::uint32_t> position(nodes.size(), UINT32_MAX);
  while (position[at] == UINT32_MAX) {
    position[at] = static_cast<std::uint32_t>(path.size());
    path.push_back(at);
    at = *std::find_if(needs[at].begin(), needs[at].end(), [&](std::uint32_t n) { return waiting[n] > 0; });
  }
  path.erase(path.begin(), path.begin() + position[at]);
  path.push_back(at);
  std::reverse(path.begin(), path.end());  // in the direction of the data
  constexpr std::size_t kShown = 8;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < path.size() && i < kShown; ++i)
    names.push_back(describe(nodes[path[i]], path[i]));
  throw Error(where,
              fmt::format("the graph has a cycle: {}{}", fmt::join(names, " -> "),
                          path.size() > kShown ? fmt::format(" -> ... ({} nodes)", path.size() - 1) : ""));
}

}  // namespace

std::string describe(const WireNode& node, std::size_t index) {
  return node.name.empty()
             ? fmt::format("node {} ({})", index, readable(node.type))
             : fmt::format("node {} '{}' ({})", index, readable(node.name), readable(node.type));
}

std::vector<std::uint32_t> order_nodes(const std::vector<WireNode>& nodes, const std::string& where) {
  const Producers producers = producers_of(nodes, where);
  const auto count = static_cast<std::uint32_t>(nodes.size());
  std::vector<std::vector<std::uint32_t>> needs(count);
  bool sorted = true;
  // Names that nothing here produces are inputs, initializers or those of an outer graph.
  for (std::uint32_t i = 0; i < count; ++i) {
    for_each_use(nodes[i], [&](std::string_view name) {
      const auto producer = producers.find(name);
      if (producer == producers.end()) return;
      needs[i].push_back(producer->second);
      sorted = sorted && producer->second < i;
    });
  }
  std::vector<std::uint32_t> order;
  order.reserve(count);
  // Nearly all files are in order: they keep it.
  if (sorted) {
    order.resize(count);
    std::iota(order.begin(), order.end(), 0U);
    return order;
  }
  std::vector<std::vector<std::uint32_t>> users(count);
  std::vector<std::uint32_t> waiting(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    waiting[i] = static_cast<std::uint32_t>(needs[i].size());
    for (const std::uint32_t producer : needs[i]) users[producer].push_back(i);
  }
  // Kahn's algorithm, smallest index first: nodes stay as close to the file's order as they can.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::uint32_t user : users[order.back()]) {
      if (--waiting[user] == 0) ready.push(user);
    }
  }
  if (order.size() < count) report_cycle(nodes, needs, waiting, where);
  return order;
}

}  // namespace armilla
