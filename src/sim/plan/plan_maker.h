// Makes the plan of a chunk once it is known how it goes and which algorithms it takes: a function of the
// call, the group's shape, the chunk's bytes, its way and the picks. What plans share (schedules, orders of
// members, what cables attain) is made once and stays where it is; which plan a call takes is not known here
// (CollectivePlanner).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collective/algorithm.h"
#include "collective/decompose.h"
#include "ir/collective.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "network/network.h"
#include "sim/collective_plan.h"
#include "sim/plan/algorithm_choices.h"
#include "sim/plan/library.h"

namespace armilla {

class PlanMaker {
 public:
  // `choices` and `library` must outlive it.
  PlanMaker(const PlannedFor& given, const AlgorithmChoices& choices, const CollectiveLibrary& library)
      : given_(given), choices_(choices), library_(library) {}

  // Numbers shapes from 0; a shape stays where it is.
  std::uint32_t number(const GroupShape& shape);
  const GroupShape& shape(std::uint32_t number) const { return shapes_[number]; }

  CollectivePlan make(const CollectiveCall& call, std::uint32_t shape, Bytes bytes, const ChunkWay& way,
                      AlgorithmPicks taken);
  // The orders of dimensions that chunks take.
  std::vector<std::vector<std::uint32_t>> orders(CollectiveKind kind, const GroupShape& shape) const;
  // How a chunk of `bytes` is cut into phases.
  std::vector<CollectivePhase> phases_of(const CollectiveCall& call, Bytes bytes, const GroupShape& shape,
                                         const ChunkWay& way, AlgorithmPicks taken) const;
  bool may_go_over_all_lines(CollectiveKind kind, const GroupShape& shape) const;
  // CollectivePlanner::substitutions, of the plans made so far.
  const std::set<std::string>& substitutions() const { return substitutions_; }

 private:
  const MemberOrder* order_of(std::uint32_t shape, std::uint32_t ring);  // null where it is the group's own
  // PlannedPhase::attained.
  double attained(std::uint32_t shape, std::uint32_t dimension, CollectiveKind kind);
  const Schedule& schedule(const Algorithm& algorithm, const ScheduleRequest& request);

  using ScheduleKey =
      std::tuple<const Algorithm*, CollectiveKind, std::int32_t, std::int64_t, std::int32_t, std::int32_t>;

  PlannedFor given_;
  const AlgorithmChoices& choices_;
  const CollectiveLibrary& library_;
  std::map<GroupShape, std::uint32_t> shape_numbers_;
  std::deque<GroupShape> shapes_;
  std::map<std::uint32_t, std::vector<MemberOrder>> member_orders_;  // of rings, by shape
  std::map<std::tuple<std::uint32_t, std::uint32_t, CollectiveKind>, double>
      attained_;  // by shape, dimension and kind
  std::map<ScheduleKey, Schedule> schedules_;
  std::set<std::string> substitutions_;
};

}  // namespace armilla
