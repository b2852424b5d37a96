// What the collective library does with a call that schedules do not say, where the options leave it the
// choice (has_no_wish) and its figures are measured (CollectiveOptions::measured): what it makes of a
// barrier, over how many rings or which trees it goes between nodes, and what its protocols take beyond the
// schedule. A function of what it is given: nothing is remembered here.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/decompose.h"
#include "ir/collective.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "network/network.h"
#include "sim/collective_plan.h"
#include "sim/plan/algorithm_choices.h"

namespace armilla {

class CollectiveLibrary {
 public:
  // `choices` must outlive it.
  CollectiveLibrary(const PlannedFor& given, const AlgorithmChoices& choices)
      : given_(given), choices_(choices) {}

  // What the library makes of a call among so many members: of a barrier an all-reduce of one element. Of a
  // broadcast whose roots take turns, what all of them make together: an all-gather in which every member
  // sends as much as the broadcast sends on each link.
  CollectiveCall as_made(const CollectiveCall& call, std::int64_t members) const;
  // Flat rings that share a call, each of which leaves a node by another NIC: as many as the node with fewest
  // members has.
  std::uint32_t flat_rings(CollectiveKind kind, const GroupShape& shape) const;
  // Gives a phase of `bytes` of a call what the library's rings or trees carry from node to node.
  Crossing cross(CollectivePhase& phase, const CollectiveCall& call, Bytes bytes, const GroupShape& shape,
                 AlgorithmPicks taken) const;
  // What a plan of all bytes of a call takes beyond its schedule.
  BeyondSchedule beyond(const CollectivePlan& plan, Bytes bytes, const GroupShape& shape) const;

 private:
  // By each protocol that the phase may take; `all`: bytes of the call.
  std::vector<BeyondSchedule> ways(const PlannedPhase& phase, Bytes all, const GroupShape& shape) const;
  bool steps_hold_latency(const PlannedPhase& phase) const;
  double latency_between_nodes(const CollectivePlan& plan) const;

  PlannedFor given_;
  const AlgorithmChoices& choices_;
};

}  // namespace armilla
