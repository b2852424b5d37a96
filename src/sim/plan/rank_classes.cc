#include "sim/plan/rank_classes.h"

#include <algorithm>
#include <numeric>

#include "network/network.h"

namespace armilla {
namespace {

// The group classes of a family: a simulated rank's own group, in which every other member's class is found.
FoldedFamily fold_family(const GroupFamily& family, const RankClasses& classes) {
  FoldedFamily folded;
  const auto simulated = static_cast<std::size_t>(classes.simulated());
  folded.group_of.assign(simulated, -1);
  folded.member_of.assign(simulated, 0);
  for (std::size_t s = 0; s < simulated; ++s) {
    const std::int32_t group = family.group_of[static_cast<std::size_t>(classes.real[s])];
    // Groups whose members are of the same classes are one: the first simulated rank that is not in one yet
    // names it.
    if (group < 0 || folded.group_of[s] >= 0) continue;
    const auto id = static_cast<std::int32_t>(folded.groups.size());
    std::vector<std::int32_t>& made = folded.groups.emplace_back();
    for (const std::int32_t rank : family.groups[static_cast<std::size_t>(group)]) {
      const auto member = static_cast<std::size_t>(classes.simulated_rank(rank));
      // A class that has several members in the group is one member of its class.
      if (folded.group_of[member] >= 0) continue;
      folded.group_of[member] = id;
      folded.member_of[member] = static_cast<std::int32_t>(made.size());
      made.push_back(static_cast<std::int32_t>(member));
    }
  }
  return folded;
}

}  // namespace

RankClasses classes_of(const Graph& graph, std::span<const std::uint32_t> colours) {
  RankClasses classes;
  const std::size_t ranks = colours.size();
  const std::uint32_t colour_count = ranks == 0 ? 0 : *std::max_element(colours.begin(), colours.end()) + 1;
  std::vector<std::int32_t> of_colour(colour_count, -1);
  classes.simulated_of.resize(ranks);
  classes.stands_for.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::int32_t& simulated = of_colour[colours[rank]];
    if (simulated < 0) {
      simulated = classes.simulated();
      classes.real.push_back(static_cast<std::int32_t>(rank));
      classes.sizes.push_back(0);
    }
    ++classes.sizes[static_cast<std::size_t>(simulated)];
    classes.simulated_of[rank] = simulated;
    classes.stands_for[rank] = classes.real_rank(simulated);
  }
  // Where each is its own, nobody looks up representatives.
  if (classes.real.size() == ranks) classes.stands_for.clear();
  for (const GroupFamily& family : graph.families) classes.families.push_back(fold_family(family, classes));
  return classes;
}

RankClasses unfolded(const Graph& graph) {
  std::vector<std::uint32_t> colours(static_cast<std::size_t>(graph.ranks));
  std::iota(colours.begin(), colours.end(), 0U);
  return classes_of(graph, colours);
}

RankClasses with_joined_groups(const Graph& graph) {
  RankClasses classes = unfolded(graph);
  for (std::size_t f = 0; f < graph.families.size(); ++f) {
    FoldedFamily& family = classes.families[f];
    if (graph.families[f].groups.empty()) continue;
    std::vector<std::int32_t> all;
    for (const std::vector<std::int32_t>& group : graph.families[f].groups) {
      for (const std::int32_t rank : group) {
        family.group_of[static_cast<std::size_t>(rank)] = 0;
        family.member_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(all.size());
        all.push_back(rank);
      }
    }
    family.groups = {std::move(all)};
  }
  return classes;
}

RankClasses only_group(const RankClasses& classes, std::uint32_t family, std::uint32_t group_class) {
  const FoldedFamily& all = classes.families[family];
  const std::vector<std::int32_t>& members = all.groups[group_class];
  RankClasses only;
  for (const std::int32_t simulated : members) {
    only.real.push_back(classes.real_rank(simulated));
    only.sizes.push_back(classes.sizes[static_cast<std::size_t>(simulated)]);
  }
  for (const std::int32_t simulated : classes.simulated_of) {
    const auto s = static_cast<std::size_t>(simulated);
    // Ranks outside of the group are never asked for; any number serves.
    only.simulated_of.push_back(all.group_of[s] == static_cast<std::int32_t>(group_class) ? all.member_of[s]
                                                                                          : 0);
  }
  only.stands_for = classes.stands_for;
  only.links = classes.links;
  only.families.resize(classes.families.size());
  FoldedFamily& own = only.families[family];
  // Families that are not played keep their places, since calls name them by number.
  own.groups.resize(1);
  own.groups.front().resize(members.size());
  std::iota(own.groups.front().begin(), own.groups.front().end(), 0);
  own.group_of.assign(members.size(), 0);
  own.member_of = own.groups.front();
  return only;
}

RankClasses one_for_all(const Graph& graph) {
  return classes_of(graph, std::vector<std::uint32_t>(static_cast<std::size_t>(graph.ranks), 0));
}

bool may_fold(const Study& study) {
  return promises_of(study.network).over_dimensions && !(study.what_if.jitter.deviation > 0);
}

}  // namespace armilla
