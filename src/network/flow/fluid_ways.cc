#include "network/flow/fluid_ways.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "network/routing/least_loaded.h"

namespace armilla {

std::vector<MaxMin::Use> choose_ways(std::span<const std::vector<std::uint32_t>> ways, WayChoice choice,
                                     const MaxMin& rates) {
  if (choice == WayChoice::first) ways = ways.first(1);
  if (is_adaptive(choice)) {
    const auto load = [&](std::uint32_t link) {
      return static_cast<double>(rates.flows_on(link) + 1) / rates.capacity(link);
    };
    ways = ways.subspan(least_loaded(ways, std::identity{}, load), 1);
  }
  return shares_of(ways);
}

std::vector<MaxMin::Use> shares_of(std::span<const std::vector<std::uint32_t>> ways) {
  std::vector<MaxMin::Use> uses;
  const double share = std::round(1 / (static_cast<double>(ways.size()) * kShareUnit)) * kShareUnit;
  for (const std::vector<std::uint32_t>& way : ways) {
    for (const std::uint32_t link : way) {
      const auto known = std::ranges::find(uses, link, &MaxMin::Use::link);
      if (known == uses.end()) {
        uses.push_back({.link = link, .share = share});
      } else {
        known->share += share;
        if (std::abs(known->share - 1) < 100 * kShareUnit) known->share = 1;  // of all of them
      }
    }
  }
  return uses;
}

}  // namespace armilla
