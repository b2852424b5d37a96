#include "ir/expert_routing.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"

namespace armilla {
namespace {

double binomial(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  double result = 1;
  for (std::int64_t i = 1; i <= k; ++i)
    result = result * static_cast<double>(n - k + i) / static_cast<double>(i);
  return result;
}

// C(all - taken, k) / C(all, k).
double chance_of_none(std::int64_t all, std::int64_t taken, std::int64_t k) {
  double chance = 1;
  for (std::int64_t i = 0; i < k; ++i) {
    if (all - taken - i <= 0) return 0;
    chance *= static_cast<double>(all - taken - i) / static_cast<double>(all - i);
  }
  return chance;
}

// That no expert in [first, end) is among a token's.
double chance_of_none(const ExpertRouting& routing, std::int64_t first, std::int64_t end) {
  const std::int64_t size = routing.experts / routing.groups;
  const std::int64_t chosen = routing.active_groups * size;
  const std::int64_t first_group = first / size, end_group = ceil_divide(end, size);
  const std::int64_t touched = end_group - first_group;
  const std::int64_t most = std::min(touched, routing.active_groups);
  // [j][o]: how many choices of j of the touched groups have o experts in the range.
  std::vector<std::vector<double>> ways(static_cast<std::size_t>(most + 1),
                                        std::vector<double>(static_cast<std::size_t>(end - first + 1)));
  ways[0][0] = 1;
  // A knapsack over the touched groups, backwards in j and o, so that each group is taken once at most.
  for (std::int64_t group = first_group; group < end_group; ++group) {
    const std::int64_t shared = std::min(end, (group + 1) * size) - std::max(first, group * size);
    for (std::int64_t j = most; j > 0; --j) {
      for (std::int64_t o = end - first; o >= shared; --o) {
        ways[static_cast<std::size_t>(j)][static_cast<std::size_t>(o)] +=
            ways[static_cast<std::size_t>(j - 1)][static_cast<std::size_t>(o - shared)];
      }
    }
  }
  const double all = binomial(routing.groups, routing.active_groups);
  double none = 0;
  for (std::int64_t j = 0; j <= most; ++j) {
    const double others = binomial(routing.groups - touched, routing.active_groups - j) / all;
    if (others <= 0) continue;
    for (std::int64_t o = 0; o <= end - first; ++o) {
      const double count = ways[static_cast<std::size_t>(j)][static_cast<std::size_t>(o)];
      if (count > 0) none += count * others * chance_of_none(chosen, o, routing.active);
    }
  }
  return none;
}

}  // namespace

// Expectations add up: of each block a token has some experts or none.
double expected_blocks(const ExpertRouting& routing, std::int64_t blocks) {
  const std::int64_t size = routing.experts / blocks;
  double expected = 0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const bool limited = routing.active_groups < routing.groups;
    expected += 1 - (limited ? chance_of_none(routing, block * size, (block + 1) * size)
                             : chance_of_none(routing.experts, size, routing.active));
  }
  return expected;
}

}  // namespace armilla
