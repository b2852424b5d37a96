#include "trace/surgery.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

// A trace whose equal names have equal numbers: a reader may keep a name several times
// (ChakraTrace::strings).
struct NamedTrace {
  explicit NamedTrace(const ChakraTrace& named) : trace(named), name(named.size()) {
    std::unordered_map<std::string_view, std::uint32_t> number;
    for (std::size_t node = 0; node < name.size(); ++node)
      name[node] = number.try_emplace(trace.name_of_node(node), trace.name[node]).first->second;
  }
  std::size_t size() const { return trace.size(); }

  const ChakraTrace& trace;
  std::vector<std::uint32_t> name;  // per node
};

// The smallest length after which names and types repeat, from the first node to the last (Knuth, Morris and
// Pratt's failure function); the whole length when they do not.
std::size_t period(const NamedTrace& trace) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return trace.name[a] == trace.name[b] && trace.trace.type[a] == trace.trace.type[b];
  };
  const std::size_t n = trace.size();
  // border[i]: the longest proper prefix of the first i nodes that is also their suffix. The whole is
  // periodic if the rest divides it.
  std::vector<std::size_t> border(n + 1, 0);
  for (std::size_t i = 1, length = 0; i < n; ++i) {
    while (length > 0 && !same(i, length)) length = border[length];
    if (same(i, length)) ++length;
    border[i + 1] = length;
  }
  const std::size_t shortest = n - border[n];
  return n % shortest == 0 ? shortest : n;
}

// How many nodes of two parts of a trace pair up, by name and type, in whatever order.
std::size_t in_common(const NamedTrace& trace, std::size_t begin, std::size_t end, std::size_t other_begin,
                      std::size_t other_end) {
  const auto key = [&](std::size_t node) {
    return trace.name[node] * std::uint64_t{16} + static_cast<std::uint64_t>(trace.trace.type[node]);
  };
  std::unordered_map<std::uint64_t, std::size_t> left;
  for (std::size_t node = begin; node < end; ++node) ++left[key(node)];
  std::size_t common = 0;
  for (std::size_t node = other_begin; node < other_end; ++node) {
    const auto found = left.find(key(node));
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++common;
  }
  return common;
}

// Whether these nodes cut the trace into parts of nearly the same nodes: a run's first and last iterations
// often have a few more or less. What follows the last of three or more may differ altogether.
bool cuts_evenly(const NamedTrace& trace, const std::vector<std::size_t>& begins) {
  // The end stands in the list as well, so there is one part less than entries.
  const std::size_t parts = begins.size() - 1;
  if (parts < 2) return false;
  for (std::size_t part = 1; part < (parts > 2 ? parts - 1 : parts); ++part) {
    const std::size_t longer = std::max(begins[1] - begins[0], begins[part + 1] - begins[part]);
    // Nine tenths of the longer part, in whatever order: schedulers reorder nodes from one iteration to the
    // next.
    if (in_common(trace, begins[0], begins[1], begins[part], begins[part + 1]) * 10 < longer * 9)
      return false;
  }
  return true;
}

std::vector<std::size_t> begins_with(const ChakraTrace& trace, std::string_view name) {
  std::vector<std::size_t> begins;
  for (std::size_t node = 0; node < trace.size(); ++node)
    if (trace.name_of_node(node) == name) begins.push_back(node);
  if (!begins.empty()) begins.push_back(trace.size());
  return begins;
}

// Where the iterations begin, and the end. What comes before the first marker belongs to none.
std::vector<std::size_t> iterations(const ChakraTrace& trace, const std::string& marker) {
  if (trace.size() == 0) return {};
  if (!marker.empty()) {
    std::vector<std::size_t> begins = begins_with(trace, marker);
    if (begins.empty()) throw Error(trace.source, fmt::format("no node is called '{}'", marker));
    return begins;
  }
  // Without a marker: exact repetition first; then a name among the first that cuts the trace into like
  // parts.
  std::vector<std::size_t> begins;
  const NamedTrace named(trace);
  const std::size_t length = period(named);
  for (std::size_t node = 0; node < trace.size(); node += length) begins.push_back(node);
  begins.push_back(trace.size());
  if (length < trace.size()) return begins;
  // Not the same order each time, or something before or after: one of the first nodes may still recur.
  constexpr std::size_t kCandidates = 64;
  for (std::size_t node = 0; node < std::min(trace.size(), kCandidates); ++node) {
    std::vector<std::size_t> candidate = begins_with(trace, trace.name_of_node(node));
    if (candidate[0] == node && cuts_evenly(named, candidate)) return candidate;
  }
  return begins;
}

// A copy keeps strings, version and metadata, which the kept nodes refer to.
ChakraTrace empty_like(const ChakraTrace& trace) {
  ChakraTrace result = trace;
  result.id.clear();
  result.name.clear();
  result.type.clear();
  result.start_micros.clear();
  result.duration_micros.clear();
  result.data_dependence.clear();
  result.control_dependence.clear();
  result.first_data_dependence.assign(1, 0);
  result.first_control_dependence.assign(1, 0);
  result.first_attribute.assign(1, 0);
  result.attribute.clear();
  result.inputs.clear();
  result.outputs.clear();
  return result;
}

// Keeps those dependences of the last node for which `wanted` holds.
template <class Wanted>
void filter_last(std::vector<std::uint32_t>& first, std::vector<std::uint64_t>& dependences,
                 Wanted&& wanted) {
  const auto begin = dependences.begin() + static_cast<std::ptrdiff_t>(first[first.size() - 2]);
  dependences.erase(std::remove_if(begin, dependences.end(), [&](std::uint64_t id) { return !wanted(id); }),
                    dependences.end());
  first.back() = static_cast<std::uint32_t>(dependences.size());
}

ChakraTrace kept(const ChakraTrace& trace, std::size_t begin, std::size_t end) {
  const std::unordered_set<std::uint64_t> ids(trace.id.begin() + static_cast<std::ptrdiff_t>(begin),
                                              trace.id.begin() + static_cast<std::ptrdiff_t>(end));
  const auto is_kept = [&](std::uint64_t id) { return ids.contains(id); };
  ChakraTrace result = empty_like(trace);
  for (std::size_t node = begin; node < end; ++node) {
    result.copy_node(trace, node);
    filter_last(result.first_data_dependence, result.data_dependence, is_kept);
    // What came before the kept iterations is done: dependences on it are cut.
    filter_last(result.first_control_dependence, result.control_dependence, is_kept);
  }
  return result;
}

// Whom nobody waits for.
std::vector<std::uint64_t> leaves(const ChakraTrace& trace, std::size_t begin) {
  // Of the last part only: earlier ones' leaves have successors since.
  std::unordered_set<std::uint64_t> awaited(trace.data_dependence.begin(), trace.data_dependence.end());
  awaited.insert(trace.control_dependence.begin(), trace.control_dependence.end());
  std::vector<std::uint64_t> result;
  for (std::size_t node = begin; node < trace.size(); ++node)
    if (!awaited.contains(trace.id[node]) && trace.type[node] != ChakraNodeType::metadata)
      result.push_back(trace.id[node]);
  return result;
}

bool is_root(const ChakraTrace& trace, std::size_t node) {
  return trace.data_dependences(node).empty() && trace.control_dependences(node).empty() &&
         trace.type[node] != ChakraNodeType::metadata;
}

// Ids go on behind the largest.
void append(ChakraTrace& whole, const ChakraTrace& part, std::size_t begin_of_last) {
  std::uint64_t offset = 0;
  for (const std::uint64_t id : whole.id) offset = std::max(offset, id + 1);
  if (!part.id.empty() &&
      *std::max_element(part.id.begin(), part.id.end()) > UINT64_MAX / 2 - std::min(offset, UINT64_MAX / 2))
    throw Error(part.source, "its ids are too large to be continued");
  std::vector<std::uint64_t> last = leaves(whole, begin_of_last);
  std::size_t roots = 0;
  for (std::size_t node = 0; node < part.size(); ++node) roots += is_root(part, node) ? 1 : 0;
  // One node between many leaves and many roots keeps the number of dependences linear.
  if (last.size() > 8 && roots > 8) {
    whole.add_node(offset, ChakraNodeType::compute, "COMP_NODE_merge");
    for (const std::uint64_t id : last) whole.add_data_dependence(id);
    whole.add_integer("is_cpu_op", ChakraValueKind::boolean, 0);
    last = {offset++};
  }
  for (std::size_t node = 0; node < part.size(); ++node) {
    const std::size_t copy = whole.copy_node(part, node);
    whole.id[copy] += offset;
    for (std::uint64_t i = whole.first_data_dependence[copy]; i < whole.data_dependence.size(); ++i)
      whole.data_dependence[i] += offset;
    for (std::uint64_t i = whole.first_control_dependence[copy]; i < whole.control_dependence.size(); ++i)
      whole.control_dependence[i] += offset;
    if (is_root(part, node))
      for (const std::uint64_t id : last) whole.add_data_dependence(id);
  }
}

}  // namespace

std::int64_t count_iterations(std::span<const ChakraTrace> ranks, const std::string& marker) {
  std::int64_t count = -1;
  for (const ChakraTrace& trace : ranks) {
    const auto own = static_cast<std::int64_t>(iterations(trace, marker).size()) - 1;
    if (own < 1) throw Error(trace.source, "has no nodes and so no iterations");
    if (count >= 0 && own != count)
      throw Error(trace.source,
                  fmt::format("has {}, but {} has {}", typed_count(own, "iteration"), ranks[0].source, count),
                  "name the node that begins each iteration with --iteration-marker");
    count = own;
  }
  return count;
}

std::vector<ChakraTrace> keep_iterations(std::span<const ChakraTrace> ranks, std::int64_t first,
                                         std::int64_t last, const std::string& marker) {
  const std::int64_t count = count_iterations(ranks, marker);
  if (first < 1 || last < first || last > count)
    throw Error("--keep-iterations", fmt::format("{}:{} of {}", first, last, counted(count, "iteration")),
                count == 1 && marker.empty()
                    ? "the names of the nodes do not repeat; --iteration-marker names the "
                      "node that begins each iteration"
                    : "they are counted from 1");
  std::vector<ChakraTrace> result;
  for (const ChakraTrace& trace : ranks) {
    const std::vector<std::size_t> begins = iterations(trace, marker);
    result.push_back(
        kept(trace, begins[static_cast<std::size_t>(first - 1)], begins[static_cast<std::size_t>(last)]));
  }
  return result;
}

ChakraTrace merge_traces(std::span<const ChakraTrace* const> parts) {
  ChakraTrace whole = *parts[0];
  std::size_t begin = 0;
  for (const ChakraTrace* part : parts.subspan(1)) {
    if (part->size() == 0) continue;
    const std::size_t end = whole.size();
    append(whole, *part, begin);
    begin = end;
  }
  return whole;
}

}  // namespace armilla
