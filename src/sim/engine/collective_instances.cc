#include "sim/engine/collective_instances.h"

#include "sim/engine/rank_walker.h"

namespace armilla {

CollectiveInstances::CollectiveInstances(const Graph& graph, const RankClasses& classes, RankWalker& walker)
    : graph_(graph), classes_(classes), walker_(walker) {
  for (const FoldedFamily& family : classes.families) {
    of_group_.emplace_back(family.groups.size());
    issued_.emplace_back(family.groups.empty() ? 0 : classes.real.size());
  }
}

CollectiveInstances::Issued CollectiveInstances::issue(std::int32_t rank, std::uint32_t node,
                                                       std::uint32_t call, std::uint64_t sequence) {
  const auto r = static_cast<std::size_t>(rank);
  const std::uint32_t f = graph_.collectives[call].family;
  const FoldedFamily& family = classes_.families[f];
  const auto group = static_cast<std::uint32_t>(family.group_of[r]);
  // The n-th collective that a rank issues in a group is the n-th of each of its members, whatever their
  // nodes are called: MPI's rule, by which calls need no names.
  const std::uint32_t number = issued_[f][r]++;
  std::vector<std::uint32_t>& instances = of_group_[f][group];
  Issued issued{0, static_cast<std::uint32_t>(family.member_of[r]), number == instances.size()};
  if (issued.fresh) instances.push_back(open(call, group, number));
  issued.id = instances[number];
  issued.last = --instances_[issued.id]->members_missing == 0;
  CollectiveIssue& issue = instances_[issued.id]->issues[issued.member];
  issue.node = node;
  issue.sequence = sequence;
  return issued;
}

std::uint32_t CollectiveInstances::open(std::uint32_t call, std::uint32_t group, std::uint32_t number) {
  std::unique_ptr<CollectiveInstance> instance;
  if (spare_.empty()) {
    instance = std::make_unique<CollectiveInstance>();
  } else {
    instance = std::move(spare_.back());
    spare_.pop_back();
  }
  // A closed instance leaves its memory behind, that of its members above all.
  std::vector<CollectiveIssue> issues = std::move(instance->issues);
  *instance = {};
  instance->call = call;
  instance->family = graph_.collectives[call].family;
  instance->group = group;
  instance->number = number;
  instance->members = &classes_.families[instance->family].groups[group];
  issues.assign(instance->members->size(), {});
  instance->members_missing = instance->members_left = static_cast<std::int64_t>(issues.size());
  instance->issues = std::move(issues);
  instances_.push_back(std::move(instance));
  return static_cast<std::uint32_t>(instances_.size() - 1);
}

void CollectiveInstances::start(std::uint32_t id, std::uint32_t member) {
  CollectiveIssue& issue = instances_[id]->issues[member];
  if (issue.started) return;
  issue.started = true;
  walker_.collective_started((*instances_[id]->members)[member], issue.node);
}

void CollectiveInstances::finish_chunk(std::uint32_t id, std::uint32_t member) {
  CollectiveInstance& instance = *instances_[id];
  CollectiveIssue& issue = instance.issues[member];
  if (--issue.chunks_left > 0) return;
  start(id, member);  // where nothing had to be sent
  const std::int32_t rank = (*instance.members)[member];
  // What is told may issue the group's next, and open an instance: nothing of this one is touched behind
  // here.
  const std::uint32_t node = issue.node;
  if (--instance.members_left == 0) spare_.push_back(std::move(instances_[id]));
  walker_.collective_finished(rank, node);
}

std::int32_t CollectiveInstances::missing_member(std::int32_t rank, std::uint32_t node) const {
  // Looked for once, when a run has come to a standstill.
  for (const std::unique_ptr<CollectiveInstance>& instance : instances_) {
    if (!instance) continue;
    const std::vector<std::int32_t>& members = *instance->members;
    const auto member = static_cast<std::size_t>(
        classes_.families[instance->family].member_of[static_cast<std::size_t>(rank)]);
    if (member >= members.size() || members[member] != rank) continue;
    const CollectiveIssue& mine = instance->issues[member];
    if (mine.chunks_left <= 0 || mine.node != node) continue;
    for (std::size_t other = 0; other < instance->issues.size(); ++other) {
      if (instance->issues[other].chunks_left < 0) return members[other];
    }
  }
  return -1;
}

void CollectiveInstances::add_state(StateDigest& state) const {
  for (std::size_t family = 0; family < issued_.size(); ++family) {
    for (std::size_t rank = 0; rank < issued_[family].size(); ++rank) {
      const std::int32_t group = classes_.families[family].group_of[rank];
      if (group >= 0)
        state.add('i', family, rank,
                  of_group_[family][static_cast<std::size_t>(group)].size() - issued_[family][rank]);
    }
  }
  // Instances close nearly in the order in which they were opened: those in front need not be looked at
  // again.
  while (closed_ < instances_.size() && !instances_[closed_]) ++closed_;
  for (std::size_t id = closed_; id < instances_.size(); ++id) {
    if (!instances_[id]) continue;
    const CollectiveInstance& instance = *instances_[id];
    const Digest which = describe(instance);
    state.add('j', which.low, which.high, instance.call, instance.members_left, instance.chunks);
    for (std::size_t member = 0; member < instance.issues.size(); ++member) {
      const CollectiveIssue& issue = instance.issues[member];
      if (issue.chunks_left < 0) continue;
      const std::int32_t rank = (*instance.members)[member];
      state.add('k', which.low, which.high, member, walker_.states().place(rank, issue.node),
                walker_.states().age(rank, issue.sequence), issue.chunks_left, issue.started);
    }
  }
}

}  // namespace armilla
