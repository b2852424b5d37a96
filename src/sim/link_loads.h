// What a call's messages put on links: how many leave a member, what the busiest link carries, and the least
// that any algorithm would have to send over the group's links.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/custom_collective.h"
#include "ir/graph.h"
#include "sim/collective_plan.h"
#include "sim/group_layout.h"

namespace armilla {

// What a member of a group sends in a call.
struct MemberTraffic {
  double messages = 0, bytes = 0;
};

// On average over the group.
MemberTraffic traffic_per_member(CollectivePlanner& planner, const CollectiveCall& call, std::uint32_t shape);

class LinkLoads {
 public:
  // The planner must outlive it.
  explicit LinkLoads(CollectivePlanner& planner) : planner_(planner) {}

  // Least time in which the busiest link could carry all chunks of the call, from the first member's point of
  // view; 0 where there are too many messages to look at. The layout must outlive this. Remembered; the first
  // time O(messages of the call x hops).
  Time busiest(const CollectiveCall& call, const GroupLayout& layout);
  // The same of a schedule of its own, for `call` bytes; not remembered.
  Time busiest(const CustomCollective& custom, Bytes call, const GroupLayout& layout) const;
  // Least time in which the group's links could carry what any algorithm has to send (sim/plan/link_limit.h).
  Time limit(const CollectiveCall& call, const GroupLayout& layout) const;

 private:
  Time measure_busiest(const CollectiveCall& call, const GroupLayout& layout);

  CollectivePlanner& planner_;
  std::map<std::pair<const GroupLayout*, CallKey>, Time> busiest_;
};

}  // namespace armilla
