// How long a communication of a plan takes at least, whatever else goes on: for time_bound.h.
//
// A collective: what the library adds to its schedule (CollectivePlanner::overhead), which nothing can hide,
// and what the busiest of its links needs for the bytes that its algorithm sends over it; in groups of more
// than kFew ranks, but of tokens in grids, what the links need for any algorithm (sim/plan/link_limit.h). The
// latter two only where links carry one message at a time (network `analytical`). Of a family of groups, the
// least of all that lie differently on the machine. A message between neighbouring stages: the latencies of
// its way and its bytes over the slowest link of it, which is what it takes alone; the least of all such
// pairs. Nothing is known (0) of other networks, and of schedules of their own. Cost: O(ranks) per axis of a
// plan that places its ranks otherwise; then some table look-ups.
//
// `Known::about`: how long a collective takes about, alone on its links (CollectivePlanner::describe_chunks);
// that proves nothing, and tells which plans may be good.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/study.h"
#include "lower/sharded_model.h"
#include "sim/collective_plan.h"
#include "sim/link_loads.h"

namespace armilla {

class LeastCommunication {
 public:
  enum class Known : std::uint8_t { at_least, about };

  // The plan of `study` must be resolved; all plans that are asked about have as many ranks and the
  // same machine.
  explicit LeastCommunication(const Study& study);
  LeastCommunication(const LeastCommunication&) = delete;
  LeastCommunication& operator=(const LeastCommunication&) = delete;

  // What is known of plans whose ranks stand alike.
  struct Place {
    Plan plan;  // one of them
    std::map<GroupAxis, std::vector<const GroupLayout*>> layouts;
    std::optional<std::vector<std::pair<Time, double>>> ways;  // of messages: latencies, and the slowest link
  };
  Place& place(const Plan& plan);

  Time of_collective(Place& place, const PassStep& step, Known known);
  // What the links of an axis' groups need for calls of one kind with so many bytes together.
  Time on_links(Place& place, GroupAxis axis, CollectiveKind kind, Bytes bytes);
  // From one stage's rank to that of the next or the one before.
  Time of_message(Place& place, Bytes bytes);

 private:
  static constexpr std::size_t kFew = 64;

  const std::vector<const GroupLayout*>& layouts_of(Place& place, GroupAxis axis);
  Time on_links(const CollectiveCall& call, const GroupLayout& layout);
  void find_ways(Place& place) const;

  Machine machine_;
  CollectiveOptions options_;
  bool shares_links_, knows_messages_;
  CollectivePlanner planner_;
  LinkLoads loads_;
  // By where ranks are, seen from the first; addresses stay.
  std::map<std::vector<std::int64_t>, GroupLayout> layouts_;
  std::map<std::string, Place> places_;
  std::map<std::tuple<const GroupLayout*, CollectiveKind, std::int64_t, ExpertRouting, Known>, Time> known_;
  std::map<std::tuple<const GroupLayout*, CollectiveKind, std::int64_t>, Time> known_on_links_;
};

// All of a plan that decides which ranks are in its groups.
std::string place_of_ranks(const Plan& plan);

}  // namespace armilla
