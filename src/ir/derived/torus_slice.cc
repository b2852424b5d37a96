#include "ir/derived/torus_slice.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace armilla {
namespace {

// The ways to write `devices` as a product of so many sides, none of which is longer than the next.
void factor(std::int64_t devices, std::size_t sides, std::vector<std::int64_t>& chosen,
            std::vector<std::vector<std::int64_t>>& all) {
  const std::int64_t least = chosen.empty() ? 1 : chosen.back();
  if (sides == 1) {
    if (devices < least) return;
    all.push_back(chosen);
    all.back().push_back(devices);
    return;
  }
  for (std::int64_t side = least; side * side <= devices; ++side) {
    if (devices % side != 0) continue;
    chosen.push_back(side);
    factor(devices / side, sides - 1, chosen, all);
    chosen.pop_back();
  }
}

// Moves sides to the front that make a block together, if there are such.
bool lead_with_block(std::vector<std::int64_t>& sides, std::int64_t block) {
  for (std::uint32_t leading = 0; leading < 1U << sides.size(); ++leading) {
    std::int64_t product = 1;
    for (std::size_t d = 0; d < sides.size(); ++d) product *= (leading >> d & 1) != 0 ? sides[d] : 1;
    if (product != block) continue;
    std::vector<std::int64_t> ordered;
    for (const std::uint32_t first : {1U, 0U}) {
      for (std::size_t d = 0; d < sides.size(); ++d) {
        if ((leading >> d & 1) == first) ordered.push_back(sides[d]);
      }
    }
    sides = ordered;
    return true;
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> slice_sides(std::int64_t devices, std::size_t sides, std::int64_t cube,
                                      std::int64_t block) {
  std::int64_t of_cube = 1;
  for (std::size_t d = 0; d < sides; ++d) of_cube *= cube;
  std::vector<std::int64_t> chosen;
  std::vector<std::vector<std::int64_t>> all;
  if (devices % of_cube == 0) {
    factor(devices / of_cube, sides, chosen, all);
    for (std::vector<std::int64_t>& some : all) {
      for (std::int64_t& side : some) side *= cube;
    }
  } else {
    factor(devices, sides, chosen, all);
    std::erase_if(all, [&](const std::vector<std::int64_t>& some) {
      return std::ranges::any_of(some, [&](std::int64_t side) { return cube % side != 0; });
    });
  }
  if (all.empty()) return {};
  std::ranges::sort(all, {}, [](const std::vector<std::int64_t>& some) {
    return std::pair(std::reduce(some.begin(), some.end()), some.front());
  });
  const auto found = std::ranges::find_if(
      all, [&](std::vector<std::int64_t>& some) { return lead_with_block(some, block); });
  std::vector<std::int64_t> best = found != all.end() ? *found : all.front();
  std::ranges::stable_partition(best, [](std::int64_t side) { return side > 1; });
  return best;
}

}  // namespace armilla
