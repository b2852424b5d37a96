// The order in which one rank's nodes can run: dependences of a trace by place (ids in ascending order), what
// is wrong with them, and the order in which ready nodes with the smallest id go first.
// Cost: O(n log n + dependences) for ids or dependences out of order, else linear.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/formats/chakra.h"

namespace armilla {

// A trace's nodes in the order of their ids. The trace must outlive it.
class NodeOrder {
 public:
  // Throws Error for more than 2^32 - 2 nodes.
  explicit NodeOrder(const ChakraTrace& trace);
  NodeOrder(const NodeOrder&) = delete;
  NodeOrder& operator=(const NodeOrder&) = delete;

  std::uint32_t size() const { return static_cast<std::uint32_t>(ids_.size()); }
  bool is_order_of_file() const { return order_.empty(); }
  // Index in the trace of the node at a place.
  std::size_t node_at(std::uint32_t place) const { return order_.empty() ? place : order_[place]; }
  // The place of an id, the first of several; size() when there is none.
  std::uint32_t place_of(std::uint64_t id) const {
    if (!contiguous_) return looked_up(id);
    const std::uint64_t place = id - ids_.front();
    return place < ids_.size() ? static_cast<std::uint32_t>(place) : size();
  }
  // Places whose id the place before has, too.
  std::vector<std::uint32_t> repeated() const;
  // The ids by place; empty when each is its place.
  std::vector<std::uint64_t> shown_ids() const;

 private:
  std::uint32_t looked_up(std::uint64_t id) const;

  std::span<const std::uint64_t> ids_;  // ascending
  std::vector<std::uint32_t> order_;    // empty: as in the trace
  std::vector<std::uint64_t> sorted_;
  bool contiguous_ = false;  // each id is one more than the one before, as in most files
};

// Smallest ready place first. Shorter than the trace when nodes wait for each other in a circle; missing
// dependences and those on oneself do not count.
std::vector<std::uint32_t> issue_order(const ChakraTrace& trace, const NodeOrder& order);
// A circle among the places that `issued` lacks: each waits for the next, the last for the first.
std::vector<std::uint32_t> find_circle(const ChakraTrace& trace, const NodeOrder& order,
                                       std::span<const std::uint32_t> issued);

}  // namespace armilla
