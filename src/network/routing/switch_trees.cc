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

// What begins at a node, in a list in the order of nodes, or nothing.
template <typename Hop>
const Hop* hop_from(const std::vector<Hop>& hops, std::uint32_t node) {
  const auto found = std::ranges::lower_bound(hops, node, {}, &Hop::from);
  return found != hops.end() && found->from == node ? &*found : nullptr;
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
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> ways;  // to, number of links
  std::vector<std::uint32_t> waiting, next;
  for (const std::int32_t member : members) waiting.push_back(node_of(member));
  std::vector<std::size_t> choices;  // by distance
  while (!waiting.empty()) {
    const std::uint32_t node = waiting.back();
    waiting.pop_back();
    if (node == root || ways.contains(node)) continue;
    next_links(graph_, reached, node, root, reached[node].width, next);
    // In the order of nodes, so that sums from several nodes meet.
    std::map<std::uint32_t, Parallel> by_node;
    for (const std::uint32_t link : next) by_node[graph_.links[link].to].push_back(link);
    auto& from_here = ways[node];
    for (auto& [to, links] : by_node) {
      const auto [known, fresh] =
          parallel_known_.try_emplace(links, static_cast<std::uint32_t>(parallel_.size()));
      if (fresh) parallel_.push_back(std::move(links));
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
    std::map<std::uint32_t, Hop> hops;
    for (const std::int32_t member : members) {
      std::uint32_t node = node_of(member);
      while (node != root && !hops.contains(node)) {
        std::size_t digit = turn;
        for (std::int32_t nearer = 0; nearer < reached[node].distance; ++nearer)
          digit /= choices[static_cast<std::size_t>(nearer)];
        const auto& from_here = ways.at(node);
        const auto& [to, links] =
            from_here[digit % choices[static_cast<std::size_t>(reached[node].distance)] % from_here.size()];
        hops[node] = {node, to, links, member};
        node = to;
      }
    }
    Tree& tree = trees.emplace_back();
    tree.root = root;
    for (const auto& [node, hop] : hops) tree.hops.push_back(hop);
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
        for (const std::uint32_t link : parallel_[hop.links])
          sum += graph_.links[up ? link : link ^ 1].figures.bandwidth.value;
        for (const std::uint32_t link : parallel_[hop.links]) {
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
  Trees trees{kind, {}};
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
  for (const std::uint32_t link : parallel_[hop.links]) {
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

Time SwitchTrees::latency(const Hop& hop, bool up) const {
  Time most;
  for (const std::uint32_t link : parallel_[hop.links])
    most = std::max(most, graph_.links[up ? link : link ^ 1].figures.latency);
  return most;
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
  std::vector<std::uint32_t> of_source;                   // nodes on its way
  for (const Tree& tree : trees.all) {
    of_source.clear();
    if (!up && copies) {
      for (std::uint32_t node = node_of(source); node != tree.root; node = hop_from(tree.hops, node)->to)
        of_source.push_back(node);
    }
    Time latency_of_way;
    for (const Hop* hop = hop_from(tree.hops, node_of(member)); hop != nullptr;
         hop = hop_from(tree.hops, hop->to)) {
      latency_of_way = later(latency_of_way, latency(*hop, up));
      if (!whole && hop->owner != member) continue;
      if (std::ranges::find(of_source, hop->from) != of_source.end()) continue;
      for (const LinkShare& part : split(*hop, up, tree.share)) {
        const auto [place, fresh] = places.try_emplace(part.link, branch.links.size());
        if (fresh) {
          branch.links.push_back(part);
        } else {
          branch.links[place->second].share += part.share;
        }
      }
    }
    branch.latency = std::max(branch.latency, latency_of_way);
  }
  std::erase_if(branch.links, [](const LinkShare& use) { return use.share <= 0; });
  return branch;
}

std::uint32_t SwitchTrees::link_of_member(std::uint32_t number, Leg leg, std::int32_t source,
                                          std::int32_t destination) const {
  const bool up = leg == Leg::to_switch;
  const Tree& tree = trees_[number].all.front();
  const std::uint32_t link =
      parallel_[hop_from(tree.hops, node_of(up ? source : destination))->links].front();
  return up ? link : link ^ 1;
}

}  // namespace armilla
