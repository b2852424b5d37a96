#include "network/routing/switch_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"

namespace armilla {
namespace {

constexpr std::size_t kMostRoots = 64, kMostTrees = 64;

void add(std::vector<LinkShare>& uses, std::uint32_t link, double share) {
  const auto known = std::ranges::find(uses, link, &LinkShare::link);
  if (known == uses.end()) {
    uses.push_back({.link = link, .share = share});
    return;
  }
  known->share += share;
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

SwitchTrees::Tree SwitchTrees::grow(std::span<const std::int32_t> members, std::uint32_t root,
                                    std::uint32_t turn) const {
  Tree tree;
  tree.width = std::numeric_limits<double>::infinity();
  const std::vector<Reached> reached = search_towards(graph_, root);
  std::set<std::uint32_t> taken;  // links
  std::vector<std::uint32_t> next;
  for (const std::int32_t member : members) {
    Way way;
    bool owns = true;
    for (auto node = static_cast<std::uint32_t>(member); node != root;
         node = graph_.links[way.up.back()].to) {
      // The same link from a node on, whoever comes there.
      next_links(graph_, reached, node, root, reached[node].width, next);
      tree.parallel = std::max(tree.parallel, static_cast<std::uint32_t>(next.size()));
      const std::uint32_t link = next[turn % next.size()];
      way.up.push_back(link);
      owns = owns && taken.insert(link).second;
      if (owns) ++way.own;
      const LinkFigures &up = graph_.links[link].figures, &down = graph_.links[link ^ 1].figures;
      tree.width = std::min({tree.width, up.bandwidth.value, down.bandwidth.value});
      way.latency = later(way.latency, up.latency);
      way.back = later(way.back, down.latency);
    }
    tree.ways.emplace(member, std::move(way));
  }
  return tree;
}

std::uint32_t SwitchTrees::find(std::span<const std::int32_t> members, CollectiveKind kind) {
  const auto [found, fresh] = known_.try_emplace({std::vector(members.begin(), members.end()), kind}, 0);
  if (!fresh) return found->second;
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
  found->second = static_cast<std::uint32_t>(trees_.size());
  Trees& trees = trees_.emplace_back(Trees{kind, {}});
  double width = 0;
  for (const std::uint32_t root : best) {
    std::uint32_t turns = 1;
    for (std::uint32_t turn = 0; turn < turns && trees.all.size() < kMostTrees; ++turn) {
      trees.all.push_back(grow(members, root, turn));
      turns = trees.all.back().parallel;
      width += trees.all.back().width;
    }
  }
  for (Tree& tree : trees.all) tree.share = std::floor(tree.width / width / kShareUnit) * kShareUnit;
  return found->second;
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
  Branch branch;
  for (const Tree& tree : trees.all) {
    const Way& way = tree.ways.at(up ? source : destination);
    branch.latency = std::max(branch.latency, up ? way.latency : way.back);
    const std::span<const std::uint32_t> links = std::span(way.up).first(whole ? way.up.size() : way.own);
    const Way* const of_source = !up && copies ? &tree.ways.at(source) : nullptr;
    for (const std::uint32_t link : links) {
      if (of_source != nullptr && std::ranges::find(of_source->up, link) != of_source->up.end()) continue;
      add(branch.links, up ? link : link ^ 1, tree.share);
    }
  }
  // Of all trees.
  for (LinkShare& use : branch.links) {
    if (std::abs(use.share - 1) < static_cast<double>(kMostTrees) * kShareUnit) use.share = 1;
  }
  return branch;
}

std::uint32_t SwitchTrees::link_of_member(std::uint32_t number, Leg leg, std::int32_t source,
                                          std::int32_t destination) const {
  const std::map<std::int32_t, Way>& ways = trees_[number].all.front().ways;
  return leg == Leg::to_switch ? ways.at(source).up.front() : ways.at(destination).up.front() ^ 1;
}

}  // namespace armilla
