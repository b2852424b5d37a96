#include "network/routing/switch_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/error.h"

namespace armilla {
namespace {

constexpr std::size_t kMostTrees = SwitchTrees::kMostRoots;

std::uint32_t node_of(std::int32_t member) {
  return static_cast<std::uint32_t>(member);
}

// A multiple of kShareUnit; of running sums, whose differences then add up to the last one exactly.
double rounded(double share) {
  return std::round(share / kShareUnit) * kShareUnit;
}

}  // namespace

// Candidates come by their distance from the first member, which is the least that a tree can be deep: once
// there are roots less deep than that, no better one comes. Beyond kMostRoots alike none is looked for.
std::vector<std::uint32_t> SwitchTrees::roots(std::span<const std::int32_t> members) const {
  const auto nodes = static_cast<std::uint32_t>(graph_.graph.nodes.size());
  const auto first = static_cast<std::uint32_t>(members.front());
  const std::vector<Reached> from_first = search_towards(graph_, first);
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (graph_.graph.nodes[node].kind == NetworkNodeKind::switched && from_first[node].distance > 0)
      candidates.push_back(node);
  }
  std::ranges::stable_sort(candidates, {}, [&](std::uint32_t node) { return from_first[node].distance; });
  std::vector<std::uint32_t> best;
  std::pair<std::int64_t, std::int64_t> least;  // links to the farthest, and to all
  for (const std::uint32_t candidate : candidates) {
    if (best.size() == kMostRoots || (!best.empty() && from_first[candidate].distance > least.first)) break;
    const std::vector<Reached> reached = search_towards(graph_, candidate);
    std::pair<std::int64_t, std::int64_t> links;
    const bool leads_to_all = std::ranges::all_of(members, [&](std::int32_t member) {
      const std::int32_t distance = reached[static_cast<std::size_t>(member)].distance;
      links.first = std::max<std::int64_t>(links.first, distance);
      links.second += distance;
      return distance > 0;
    });
    if (!leads_to_all || (!best.empty() && links > least)) continue;
    if (best.empty() || links < least) best.clear();
    least = links;
    best.push_back(candidate);
  }
  return best;
}

// Where ways part on the way to the root, each tree takes one next node, the same one whoever comes there,
// and all links to it. What is a tree's choice at one distance from the root is told apart from that at
// another: so all ways are taken, of very many some, other ones for each root.
void SwitchTrees::grow(std::span<const std::int32_t> members, std::uint32_t root, std::size_t most,
                       std::vector<Tree>& trees) {
  constexpr std::size_t kVeryMany = 1 << 20;
  const std::vector<Reached> reached = search_towards(graph_, root);
  // Per node, the next ones and the number of what leads there.
  std::unordered_map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> ways;
  std::vector<std::uint32_t> waiting, next;
  for (const std::int32_t member : members) waiting.push_back(node_of(member));
  std::vector<std::size_t> choices;  // by distance
  while (!waiting.empty()) {
    const std::uint32_t node = waiting.back();
    waiting.pop_back();
    if (node == root || ways.contains(node)) continue;
    next_links(graph_, reached, node, root, reached[node].width, next);
    // In the order of nodes, so that sums from several nodes meet.
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_node;
    for (const std::uint32_t link : next) by_node[graph_.links[link].to].push_back(link);
    auto& from_here = ways[node];
    for (const auto& [to, links] : by_node) {
      const auto [known, fresh] =
          parallel_known_.try_emplace(links, static_cast<std::uint32_t>(parallel_.size()));
      if (fresh) {
        Parallel& parallel = parallel_.emplace_back(Parallel{links, {}, {}});
        for (const std::uint32_t link : links) {
          parallel.latency = std::max(parallel.latency, graph_.links[link].figures.latency);
          parallel.back = std::max(parallel.back, graph_.links[link ^ 1].figures.latency);
        }
      }
      from_here.emplace_back(to, known->second);
      waiting.push_back(to);
    }
    const auto distance = static_cast<std::size_t>(reached[node].distance);
    if (choices.size() <= distance) choices.resize(distance + 1, 1);
    choices[distance] = std::max(choices[distance], from_here.size());
  }
  std::size_t turns = 1;
  for (const std::size_t choice : choices) turns = std::min(kVeryMany, turns * choice);
  const std::size_t first = turns > most ? trees.size() : 0;
  for (std::size_t i = 0; i < std::min(turns, most); ++i) {
    const std::size_t turn = (first + i) % turns;
    std::vector<Hop>& hops = trees.emplace_back().hops;
    std::unordered_map<std::uint32_t, std::uint32_t> places;  // of hops, by the node that they leave
    for (const std::int32_t member : members)
      places.emplace(node_of(member), static_cast<std::uint32_t>(places.size()));
    hops.resize(places.size());
    std::vector<bool> known(hops.size());
    for (const std::int32_t member : members) {
      std::uint32_t node = node_of(member), place = places.at(node);
      while (!known[place]) {
        known[place] = true;
        std::size_t digit = turn;
        for (std::int32_t nearer = 0; nearer < reached[node].distance; ++nearer)
          digit /= choices[static_cast<std::size_t>(nearer)];
        const auto& from_here = ways.at(node);
        const auto& [to, parallel] =
            from_here[digit % choices[static_cast<std::size_t>(reached[node].distance)] % from_here.size()];
        hops[place] = {Hop::kRoot, parallel, member};
        if (to == root) break;
        const auto [behind, fresh] = places.try_emplace(to, static_cast<std::uint32_t>(hops.size()));
        hops[place].next = behind->second;
        if (fresh) {
          hops.emplace_back();
          known.push_back(false);
        }
        node = to;
        place = behind->second;
      }
    }
  }
}

// Links that all trees cross alike, as members' own, carry the same whatever each tree gets: they are let
// be as wide as they like.
void SwitchTrees::share_out(std::vector<Tree>& trees) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kFull = 1e-9;  // of a link's bandwidth
  std::vector<double> room, growth(graph_.links.size()), rates(trees.size()), widths(trees.size());
  for (const DirectedLink& link : graph_.links) room.push_back(link.figures.bandwidth.value);
  const auto for_each_use = [&](const Tree& tree, const auto& visit) {
    for (const Hop& hop : tree.hops) {
      for (const bool up : {true, false}) {
        double sum = 0;
        for (const std::uint32_t link : parallel_[hop.parallel].links)
          sum += graph_.links[up ? link : link ^ 1].figures.bandwidth.value;
        for (const std::uint32_t link : parallel_[hop.parallel].links) {
          const std::uint32_t used = up ? link : link ^ 1;
          visit(used, graph_.links[used].figures.bandwidth.value / sum);
        }
      }
    }
  };
  std::vector<std::pair<std::size_t, double>> users(graph_.links.size());  // trees, and the first one's part
  std::vector<bool> unlike(graph_.links.size());
  for (const Tree& tree : trees) {
    for_each_use(tree, [&](std::uint32_t link, double part) {
      auto& [count, first] = users[link];
      if (++count == 1) first = part;
      if (part != first) unlike[link] = true;
    });
  }
  for (std::size_t link = 0; link < room.size(); ++link) {
    if (users[link].first == trees.size() && !unlike[link]) room[link] = kInfinity;
  }
  std::vector<std::size_t> growing(trees.size());
  std::iota(growing.begin(), growing.end(), std::size_t{0});
  for (const std::size_t t : growing) {
    widths[t] = kInfinity;
    for_each_use(trees[t], [&](std::uint32_t link, double part) {
      widths[t] = std::min(widths[t], room[link] / part);
    });
  }
  // Trees that are all the same.
  if (std::ranges::find(widths, kInfinity) != widths.end()) {
    std::ranges::fill(rates, 1.0);
    growing.clear();
  }
  while (!growing.empty()) {
    std::ranges::fill(growth, 0.0);
    for (const std::size_t t : growing)
      for_each_use(trees[t], [&](std::uint32_t link, double part) { growth[link] += widths[t] * part; });
    double step = kInfinity;
    std::size_t first_full = 0;
    for (std::size_t link = 0; link < growth.size(); ++link) {
      if (growth[link] <= 0 || room[link] / growth[link] >= step) continue;
      step = room[link] / growth[link];
      first_full = link;
    }
    for (std::size_t link = 0; link < growth.size(); ++link) room[link] -= step * growth[link];
    for (const std::size_t t : growing) rates[t] += step * widths[t];
    room[first_full] = 0;
    std::erase_if(growing, [&](std::size_t t) {
      bool is_full = false;
      for_each_use(trees[t], [&](std::uint32_t link, double) {
        is_full = is_full || room[link] <= kFull * graph_.links[link].figures.bandwidth.value;
      });
      return is_full;
    });
  }
  const double all = std::accumulate(rates.begin(), rates.end(), 0.0);
  double sum = 0, before = 0;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    sum += rates[t];
    const double until = t + 1 == trees.size() ? 1 : rounded(sum / all);
    trees[t].share = until - before;
    before = until;
  }
}

std::uint32_t SwitchTrees::find(std::span<const std::int32_t> members, CollectiveKind kind) {
  const std::pair key(std::vector(members.begin(), members.end()), kind);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const std::vector<std::uint32_t> best = roots(members);
  if (best.empty()) {
    throw Error(
        "network",
        fmt::format("no switch leads to all {} members of a group, from '{}' to '{}', without "
                    "passing a device: nothing can be added up for them in switches",
                    members.size(), graph_.graph.nodes[static_cast<std::size_t>(members.front())].name,
                    graph_.graph.nodes[static_cast<std::size_t>(members.back())].name),
        "name another algorithm, or one for each dimension");
  }
  Trees trees{kind, {}, {}};
  for (const std::int32_t member : members)
    trees.places.emplace(member, static_cast<std::uint32_t>(trees.places.size()));
  for (const std::uint32_t root : best) grow(members, root, kMostTrees / best.size(), trees.all);
  share_out(trees.all);
  const auto number = static_cast<std::uint32_t>(trees_.size());
  trees_.push_back(std::move(trees));
  known_.emplace(key, number);
  return number;
}

std::vector<LinkShare> SwitchTrees::split(const Hop& hop, bool up, double whole) const {
  std::vector<LinkShare> parts;
  double sum = 0;
  for (const std::uint32_t link : parallel_[hop.parallel].links) {
    parts.push_back({.link = up ? link : link ^ 1});
    sum += graph_.links[parts.back().link].figures.bandwidth.value;
  }
  double until = 0, before = 0;
  for (LinkShare& part : parts) {
    until += graph_.links[part.link].figures.bandwidth.value;
    const double here = &part == &parts.back() ? whole : rounded(whole * (until / sum));
    part.share = here - before;
    before = here;
  }
  return parts;
}

// Contributions are added up, and a sum is copied, where ways meet. What members send to be copied, or to get
// for themselves alone, takes all of its way; a copy goes back where its way leaves that of its source.
SwitchTrees::Branch SwitchTrees::branch(std::uint32_t number, Leg leg, std::int32_t source,
                                        std::int32_t destination) const {
  const Trees& trees = trees_[number];
  const bool up = leg == Leg::to_switch;
  const bool copies = trees.kind == CollectiveKind::broadcast || trees.kind == CollectiveKind::all_gather;
  const bool alone = trees.kind == CollectiveKind::reduce || trees.kind == CollectiveKind::reduce_scatter;
  const bool whole = up ? copies : alone;
  const std::int32_t member = up ? source : destination;
  Branch branch;
  std::unordered_map<std::uint32_t, std::size_t> places;  // of links in branch.links
  std::vector<std::uint32_t> of_source;                   // hops on its way
  const std::uint32_t first = trees.places.at(member);
  const std::uint32_t first_of_source = !up && copies ? trees.places.at(source) : Hop::kRoot;
  for (const Tree& tree : trees.all) {
    of_source.clear();
    for (std::uint32_t place = first_of_source; place != Hop::kRoot; place = tree.hops[place].next)
      of_source.push_back(place);
    Time latency;
    for (std::uint32_t place = first; place != Hop::kRoot; place = tree.hops[place].next) {
      const Hop& hop = tree.hops[place];
      latency = later(latency, up ? parallel_[hop.parallel].latency : parallel_[hop.parallel].back);
      if (!whole && hop.owner != member) continue;
      if (std::ranges::find(of_source, place) != of_source.end()) continue;
      for (const LinkShare& part : split(hop, up, tree.share)) {
        const auto [known, fresh] = places.try_emplace(part.link, branch.links.size());
        if (fresh) {
          branch.links.push_back(part);
        } else {
          branch.links[known->second].share += part.share;
        }
      }
    }
    branch.latency = std::max(branch.latency, latency);
  }
  std::erase_if(branch.links, [](const LinkShare& use) { return use.share <= 0; });
  return branch;
}

std::uint32_t SwitchTrees::link_of_member(std::uint32_t number, Leg leg, std::int32_t source,
                                          std::int32_t destination) const {
  const bool up = leg == Leg::to_switch;
  const Trees& trees = trees_[number];
  const Hop& hop = trees.all.front().hops[trees.places.at(up ? source : destination)];
  const std::uint32_t link = parallel_[hop.parallel].links.front();
  return up ? link : link ^ 1;
}

}  // namespace armilla
