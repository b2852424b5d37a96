// Which collective an issue belongs to: the k-th that a rank issues in a group is the k-th of every other
// member (validate_graph has checked that they agree). An instance lives from its first issue until the last
// member is through. One table for both semantics; what they execute of an instance is a run of chunks of
// theirs, and it tells the walker when a member begins and is through. (ASTRA-sim counts over all
// communicators instead, so that uneven histories deadlock there.) Cost: O(1) per issue and O(members) per
// instance.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "event/state_digest.h"
#include "ir/graph.h"
#include "sim/plan/rank_classes.h"

namespace armilla {

class RankWalker;

// What a member did with an instance.
struct CollectiveIssue {
  std::uint32_t node = 0;
  std::uint64_t sequence = 0;     // how many collectives the rank had issued before
  std::int32_t chunks_left = -1;  // -1: not issued
  bool started = false;
};

// A collective among one group class (sim/plan/rank_classes.h).
struct CollectiveInstance {
  std::uint32_t call = 0;
  std::uint32_t family = 0;
  std::uint32_t group = 0;                             // class
  std::uint32_t number = 0;                            // among those of its group
  const std::vector<std::int32_t>* members = nullptr;  // simulated ranks
  std::vector<CollectiveIssue> issues;                 // per member
  std::int64_t members_missing = 0;                    // that have not issued it
  std::int64_t members_left = 0;                       // that are not through
  std::uint32_t first_chunk = 0;  // of the executor's; a custom collective: its number there
  std::uint32_t chunks = 0;
};

class CollectiveInstances {
 public:
  CollectiveInstances(const Graph& graph, const RankClasses& classes, RankWalker& walker);

  // The instance that the rank's next issue of `call` belongs to; `fresh` says whether it is its first issue:
  // then the executor makes its chunks. It says how many the member has to go through. `last`: whether all
  // members have issued it now.
  struct Issued {
    std::uint32_t id = 0, member = 0;
    bool fresh = false, last = false;
  };
  Issued issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence);

  CollectiveInstance& operator[](std::uint32_t id) { return *instances_[id]; }
  const CollectiveInstance& operator[](std::uint32_t id) const { return *instances_[id]; }
  // A member begins to work, unless it has.
  void start(std::uint32_t id, std::uint32_t member);
  // It is through with one of its chunks; with the last, it is through. Closes the instance behind the last
  // member. What it waited for may begin before this returns.
  void finish_chunk(std::uint32_t id, std::uint32_t member);

  // Members' issues of those under way, and how far each rank is in each of its groups, counted
  // from the latest.
  void add_state(StateDigest& state) const;
  // An instance among those of its group, counted from the latest.
  Digest describe(const CollectiveInstance& instance) const {
    return digest_of(instance.family, instance.group,
                     of_group_[instance.family][instance.group].size() - instance.number);
  }

  // Of those who have not issued what the rank waits in, or -1.
  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const;

 private:
  std::uint32_t open(std::uint32_t call, std::uint32_t group, std::uint32_t number);

  const Graph& graph_;
  const RankClasses& classes_;
  RankWalker& walker_;
  // Ids are never used twice, so that stale references are recognised.
  std::vector<std::unique_ptr<CollectiveInstance>> instances_;
  mutable std::size_t closed_ = 0;  // instances before it are closed
  std::vector<std::unique_ptr<CollectiveInstance>> spare_;
  std::vector<std::vector<std::vector<std::uint32_t>>> of_group_;  // [family][group class], in order
  std::vector<std::vector<std::uint32_t>> issued_;                 // [family][simulated rank], how many
};

}  // namespace armilla
