// Which of several ways a message that may choose takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace armilla {

// The index of the way whose worst link has the least load, times its length; of those equal, that whose next
// worst has, and so on, as all ways of a device share its own link; of those that are equal in all, the
// first. There is one at least; `links_of` a way are numbers, `load_of` a link is a double.
template <class Way, class LinksOf, class LoadOf>
std::size_t least_loaded(std::span<const Way> ways, const LinksOf& links_of, const LoadOf& load_of) {
  std::vector<double> least, loads;
  std::size_t best = 0;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const auto& links = std::invoke(links_of, ways[way]);
    loads.clear();
    for (const auto link : links) loads.push_back(load_of(link) * static_cast<double>(links.size()));
    std::ranges::sort(loads, std::greater{});
    if (way > 0 && !(loads < least)) continue;
    best = way;
    least.swap(loads);
  }
  return best;
}

}  // namespace armilla
