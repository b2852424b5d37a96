// Lists as sets.
#pragma once

#include <algorithm>
#include <vector>

namespace armilla {

// In order, each value once. O(n log n).
template <class T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace armilla
