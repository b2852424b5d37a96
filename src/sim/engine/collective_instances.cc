#include "sim/engine/collective_instances.h"

namespace armilla {

CollectiveInstances::CollectiveInstances(const Graph& graph, const RankClasses& classes,
                                         CollectivePlanner& planner)
    : graph_(graph),
      classes_(classes),
      planner_(planner),
      issued_(static_cast<std::size_t>(classes.simulated())) {
  for (const FoldedFamily& family : classes.families) {
    groups_.emplace_back(family.groups.size());
    issued_in_family_.emplace_back(family.groups.empty() ? 0 : issued_.size());
  }
}

CollectiveInstances::Issued CollectiveInstances::issue(std::int32_t rank, std::uint32_t node,
                                                       std::uint32_t call_id) {
  const CollectiveCall& call = graph_.collectives[call_id];
  const auto r = static_cast<std::size_t>(rank);
  const FoldedFamily& family = classes_.families[call.family];
  const auto number = static_cast<std::size_t>(family.group_of[r]);
  CollectiveGroup& group = groups_[call.family][number];
  group.family = &family;
  group.ranks = &family.groups[number];
  const std::uint32_t index = issued_in_family_[call.family][r]++;
  const bool fresh = index == group.instances.size();
  if (fresh) group.instances.push_back(open(call_id, group));
  const std::uint32_t id = group.instances[index];
  CollectiveInstance& instance = *instances_[id];
  CollectiveIssue& issue = instance.issues[static_cast<std::size_t>(family.member_of[r])];
  issue.node = node;
  issue.sequence = issued_[r]++;
  issue.chunks_left = instance.chunks;
  issue.priority = call.priority;
  return {id, fresh};
}

std::uint32_t CollectiveInstances::open(std::uint32_t call_id, CollectiveGroup& group) {
  const CollectiveCall& call = graph_.collectives[call_id];
  if (group.layouts.empty()) {
    const GroupFamily& family = graph_.families[call.family];
    for (const std::int32_t rank : group.ranks->members) {
      group.real.push_back(classes_.real_rank(rank));
      group.layouts.push_back(&planner_.layout(graph_, call.family,
                                               family.group_of[static_cast<std::size_t>(group.real.back())]));
    }
  }
  std::unique_ptr<CollectiveInstance> instance;
  if (spare_.empty()) {
    instance = std::make_unique<CollectiveInstance>();
  } else {
    instance = std::move(spare_.back());
    spare_.pop_back();
  }
  std::vector<CollectiveIssue> issues = std::move(instance->issues);
  *instance = {};
  issues.assign(group.layouts.size(), {});
  instance->issues = std::move(issues);
  instance->call = call_id;
  instance->family = call.family;
  instance->number = static_cast<std::uint32_t>(group.instances.size());
  instance->group = &group;
  instance->members_left = static_cast<std::int64_t>(group.layouts.size());
  instance->is_custom = call.custom >= 0;
  if (!instance->is_custom)
    instance->chunks = static_cast<std::int32_t>(planner_.chunks(call, group.layouts.front()->shape));
  instances_.push_back(std::move(instance));
  return static_cast<std::uint32_t>(instances_.size() - 1);
}

void CollectiveInstances::close(std::uint32_t id) {
  spare_.push_back(std::move(instances_[id]));
}

std::int32_t CollectiveInstances::missing_member(std::int32_t rank, std::uint32_t node) const {
  for (const std::unique_ptr<CollectiveInstance>& instance : instances_) {
    if (!instance) continue;
    const std::vector<std::int32_t>& members = instance->group->ranks->members;
    const std::uint32_t member = member_of(instance->family, rank);
    if (member >= members.size() || members[member] != rank) continue;
    const CollectiveIssue& mine = instance->issues[member];
    if (mine.chunks_left <= 0 || mine.node != node) continue;
    for (std::size_t other = 0; other < instance->issues.size(); ++other) {
      if (instance->issues[other].chunks_left < 0) return members[other];
    }
  }
  return -1;
}

}  // namespace armilla
