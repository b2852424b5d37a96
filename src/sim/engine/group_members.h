// The groups of a run with the layouts of their members' own groups on the machine.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "sim/collective_plan.h"
#include "sim/plan/rank_classes.h"

namespace armilla {

struct GroupMembers {
  const FoldedFamily* family = nullptr;
  const std::vector<std::int32_t>* members = nullptr;  // simulated ranks
  std::vector<std::int32_t> real;                      // per member
  std::vector<const GroupLayout*> layouts;
};

// Each is made when first asked for, and stays where it is.
class GroupTable {
 public:
  GroupTable(const Graph& graph, const RankClasses& classes, CollectivePlanner& planner)
      : graph_(graph), classes_(classes), planner_(planner) {
    for (const FoldedFamily& family : classes.families) groups_.emplace_back(family.groups.size());
  }

  const GroupMembers& of(std::uint32_t family, std::uint32_t group) {
    GroupMembers& made = groups_[family][group];
    if (made.family == nullptr) fill(made, family, group);
    return made;
  }

 private:
  void fill(GroupMembers& made, std::uint32_t f, std::uint32_t group) {
    const GroupFamily& family = graph_.families[f];
    made.family = &classes_.families[f];
    made.members = &made.family->groups[group];
    for (const std::int32_t rank : *made.members) {
      const std::int32_t real = classes_.real_rank(rank);
      made.real.push_back(real);
      made.layouts.push_back(&planner_.layout(graph_, f, family.group_of[static_cast<std::size_t>(real)]));
    }
  }

  const Graph& graph_;
  const RankClasses& classes_;
  CollectivePlanner& planner_;
  std::vector<std::vector<GroupMembers>> groups_;  // [family][group class]
};

}  // namespace armilla
