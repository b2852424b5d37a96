// Who waits for a node: a program's dependences the other way round (CSR), in ascending order. 4 bytes per
// node and dependence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace armilla {

class Dependents {
 public:
  // `first`: where the dependences of each node begin in `dependence`, and where the last one's end.
  Dependents(std::span<const std::uint32_t> first, std::span<const std::uint32_t> dependence)
      : first_(first.size()), node_(dependence.size()) {
    for (const std::uint32_t node : dependence) ++first_[node];
    std::exclusive_scan(first_.begin(), first_.end(), first_.begin(), std::uint32_t{0});
    // `first_` is where the next dependent of a node goes: in the end, where those of the node behind it
    // begin.
    for (std::uint32_t node = 0; node + 1 < first.size(); ++node) {
      for (std::uint32_t i = first[node]; i < first[node + 1]; ++i) node_[first_[dependence[i]]++] = node;
    }
    std::shift_right(first_.begin(), first_.end(), 1);
    first_.front() = 0;
  }

  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(node_).subspan(first_[node], first_[node + std::size_t{1}] - first_[node]);
  }

 private:
  std::vector<std::uint32_t> first_, node_;
};

}  // namespace armilla
