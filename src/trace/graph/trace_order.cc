#include "trace/graph/trace_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "base/error.h"

namespace armilla {
namespace {

// Calls `each` with the places that a place waits for, with repetitions, without itself.
template <class Each>
void for_dependences(const ChakraTrace& trace, const NodeOrder& order, std::uint32_t place, Each each) {
  const std::size_t node = order.node_at(place);
  const auto of = [&](std::uint64_t id) {
    const std::uint32_t other = order.place_of(id);
    if (other < order.size() && other != place) each(other);
  };
  for (const std::uint64_t id : trace.data_dependences(node)) of(id);
  for (const std::uint64_t id : trace.control_dependences(node)) of(id);
}

// Whether each id is one more than the one before, and none is beyond 64 bits.
// Unsigned differences wrap around, so a list that runs over 2^64 is caught by the last comparison.
bool counts_up(std::span<const std::uint64_t> ids) {
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] - ids.front() != i) return false;
  }
  return !ids.empty() && ids.back() >= ids.front();
}

}  // namespace

// Ids that count up need no table at all, which is nearly every trace: a place is then id - first. Else
// places are ranks in the sorted ids.
NodeOrder::NodeOrder(const ChakraTrace& trace) : ids_(trace.id) {
  if (trace.size() >= UINT32_MAX)
    throw Error(trace.source, fmt::format("{} nodes; at most 2^32 - 2 are possible", trace.size()));
  contiguous_ = counts_up(ids_);
  if (contiguous_) return;
  if (!std::is_sorted(ids_.begin(), ids_.end())) {
    order_.resize(trace.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return trace.id[a] < trace.id[b]; });
    sorted_.reserve(trace.size());
    for (const std::uint32_t node : order_) sorted_.push_back(trace.id[node]);
    ids_ = sorted_;
  }
  // Sorted ids without gaps or repetitions count up as well.
  contiguous_ = !ids_.empty() && ids_.back() - ids_.front() == ids_.size() - 1 && repeated().empty();
}

std::uint32_t NodeOrder::looked_up(std::uint64_t id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  return found != ids_.end() && *found == id ? static_cast<std::uint32_t>(found - ids_.begin()) : size();
}

std::vector<std::uint32_t> NodeOrder::repeated() const {
  std::vector<std::uint32_t> places;
  if (contiguous_) return places;
  for (std::size_t place = 1; place < ids_.size(); ++place) {
    if (ids_[place] == ids_[place - 1]) places.push_back(static_cast<std::uint32_t>(place));
  }
  return places;
}

// Shown only where they differ from the places.
std::vector<std::uint64_t> NodeOrder::shown_ids() const {
  if (contiguous_ && ids_.front() == 0) return {};
  return {ids_.begin(), ids_.end()};
}

// Kahn's algorithm over places with a heap: the smallest ready id first, as ASTRA-sim issues.
std::vector<std::uint32_t> issue_order(const ChakraTrace& trace, const NodeOrder& order) {
  const std::uint32_t nodes = order.size();
  std::vector<std::uint32_t> issued;
  issued.reserve(nodes);
  std::vector<std::uint32_t> waits_for(nodes, 0);
  // Counts first, then positions by prefix sums: the reverse edges in two flat arrays.
  std::vector<std::uint64_t> first(nodes + std::size_t{1}, 0);  // of the places that wait for a place
  for (std::uint32_t place = 0; place < nodes; ++place) {
    for_dependences(trace, order, place, [&](std::uint32_t other) {
      ++waits_for[place];
      ++first[other + std::size_t{1}];
    });
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> waiting(first.back());
  std::vector<std::uint64_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t place = 0; place < nodes; ++place)
    for_dependences(trace, order, place, [&](std::uint32_t other) { waiting[next[other]++] = place; });
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t place = 0; place < nodes; ++place) {
    if (waits_for[place] == 0) ready.push(place);
  }
  while (!ready.empty()) {
    const std::uint32_t place = ready.top();
    ready.pop();
    issued.push_back(place);
    for (std::uint64_t i = first[place]; i < first[place + std::size_t{1}]; ++i) {
      if (--waits_for[waiting[i]] == 0) ready.push(waiting[i]);
    }
  }
  return issued;
}

std::vector<std::uint32_t> find_circle(const ChakraTrace& trace, const NodeOrder& order,
                                       std::span<const std::uint32_t> issued) {
  std::vector<bool> done(order.size(), false);
  for (const std::uint32_t place : issued) done[place] = true;
  const auto stuck = std::find(done.begin(), done.end(), false);
  if (stuck == done.end()) return {};
  // Every place that is left waits for one that is left, so a walk along those must come back to itself.
  std::vector<std::uint32_t> path;
  std::vector<std::uint32_t> step(order.size(), UINT32_MAX);
  auto place = static_cast<std::uint32_t>(stuck - done.begin());
  while (step[place] == UINT32_MAX) {
    step[place] = static_cast<std::uint32_t>(path.size());
    path.push_back(place);
    std::uint32_t next = place;
    for_dependences(trace, order, place, [&](std::uint32_t other) {
      if (!done[other] && next == place) next = other;
    });
    place = next;
  }
  path.erase(path.begin(), path.begin() + step[place]);
  return path;
}

}  // namespace armilla
