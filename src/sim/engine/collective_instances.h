// Which collective an issue belongs to: the k-th that a rank issues in a group is the k-th of every other
// member (validate_graph has checked that they agree). An instance lives from its first issue until the last
// member is through. Cost: O(1) per issue and O(members) per instance.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "sim/collective_plan.h"
#include "sim/fold/rank_classes.h"

namespace armilla {

struct Rehearsal;  // sim/memo/rehearsal.h

// What a member did with an instance.
struct CollectiveIssue {
  std::uint32_t node = 0;
  std::uint64_t sequence = 0;     // how many collectives the rank had issued before
  std::int32_t chunks_left = -1;  // -1: not issued
  std::int32_t priority = 0;
  bool started = false;
};

// A group class (sim/fold/rank_classes.h), with the layouts of its members' own groups.
struct CollectiveGroup {
  const FoldedFamily* family = nullptr;
  const GroupClass* ranks = nullptr;
  std::vector<std::int32_t> real;  // per member
  std::vector<const GroupLayout*> layouts;
  std::vector<std::uint32_t> instances;                // in order
  std::map<const Rehearsal*, std::int64_t> evaluated;  // how often
};

// A collective among one group class. With a custom schedule it has one chunk without phases.
struct CollectiveInstance {
  std::uint32_t call = 0;
  std::uint32_t family = 0;
  std::uint32_t number = 0;  // among those of its group
  CollectiveGroup* group = nullptr;
  std::vector<CollectiveIssue> issues;  // per member
  std::int64_t members_left = 0;        // that are not through
  std::int32_t chunks = 1;
  std::uint32_t first_run = UINT32_MAX;  // of the runner's `chunks`, UINT32_MAX: not made
  bool is_custom = false;
  std::uint32_t custom = 0;              // of the custom runner
  const Rehearsal* rehearsal = nullptr;  // stands for it if all members issue it together
  std::uint32_t gathered = 0;            // of them, in this round
};

class CollectiveInstances {
 public:
  CollectiveInstances(const Graph& graph, const RankClasses& classes, CollectivePlanner& planner);

  // The instance that the rank's next issue of `call` belongs to; `fresh` says whether it is its first issue.
  struct Issued {
    std::uint32_t id = 0;
    bool fresh = false;
  };
  Issued issue(std::int32_t rank, std::uint32_t node, std::uint32_t call);

  std::span<const std::vector<CollectiveGroup>> groups() const { return groups_; }  // [family][group class]
  CollectiveInstance& operator[](std::uint32_t id) { return *instances_[id]; }
  const CollectiveInstance& operator[](std::uint32_t id) const { return *instances_[id]; }
  bool is_open(std::uint32_t id) const { return instances_[id] != nullptr; }
  // A member is through; closes the instance behind the last.
  void leave(std::uint32_t id) {
    if (--instances_[id]->members_left == 0) close(id);
  }

  std::uint32_t member_of(std::uint32_t family, std::int32_t rank) const {
    return static_cast<std::uint32_t>(classes_.families[family].member_of[static_cast<std::size_t>(rank)]);
  }
  // Of those who have not issued what the rank waits in, or -1.
  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const;

 private:
  std::uint32_t open(std::uint32_t call, CollectiveGroup& group);
  void close(std::uint32_t id);

  const Graph& graph_;
  const RankClasses& classes_;
  CollectivePlanner& planner_;
  // Ids are never used twice, so that stale references are recognised.
  std::vector<std::unique_ptr<CollectiveInstance>> instances_;
  std::vector<std::unique_ptr<CollectiveInstance>> spare_;
  std::vector<std::vector<CollectiveGroup>> groups_;          // [family][group class]
  std::vector<std::vector<std::uint32_t>> issued_in_family_;  // [family][simulated rank], how many
  std::vector<std::uint64_t> issued_;                         // per simulated rank
};

}  // namespace armilla
