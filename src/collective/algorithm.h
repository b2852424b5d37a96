// Collective algorithms on one dimension or one flat group. One table; each algorithm is one source file that
// opens with its steps, its cost and its source. Costs are given as alpha (per message) and beta (per byte)
// for n ranks and C bytes, all ports free, as in Thakur, Rabenseifner and Gropp 2005.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "collective/schedule.h"
#include "ir/collective.h"

namespace armilla {

struct ScheduleRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int32_t ranks = 2;  // at least 1; one rank has an empty schedule
  Bytes bytes;             // meaning per kind in ir/collective.h
  std::int32_t root = 0;   // broadcast and reduce
  std::int32_t chunk = 0;  // which chunk of its collective: where one of two trees would do, they take turns
  bool payloads = false;   // one RankSchedule per member, with payloads, for the verifier
  Bytes least_block{};     // that a pipeline should cut its bytes into, as far as two blocks are left
  bool tree = false;       // in the switch: of several switches, to whom members are not all alike
};

struct AlgorithmInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  std::span<const CollectiveKind> kinds;  // that it can perform
  // Complexity of a schedule's size in ranks is stated in each source.
  Schedule (*make)(const ScheduleRequest& request, const ParameterValues& values);
  bool in_switch = false;  // its messages begin and end at the switch of a Switch
};
std::span<const AlgorithmInfo> collective_algorithms();
std::vector<std::string_view> algorithms_that_perform(CollectiveKind kind);

// Larger groups are refused: the schedules of trees and of halving-doubling grow with the number of ranks.
inline constexpr std::int32_t kMaxGroupRanks = 1 << 17;
// In a scatter-gather everyone sends to all but one.
inline constexpr std::int32_t kMaxScatterGatherRanks = 1024;
// Payloads of an all-to-all grow with the cube of the number of ranks.
inline constexpr std::int32_t kMaxPayloadRanks = 512;

// A chosen algorithm with its parameters checked.
class Algorithm {
 public:
  // `text` as in CollectiveOptions: "ring", "direct:window=4". Throws Error.
  Algorithm(std::string_view text, const std::string& where);
  std::string_view name() const { return info_->name; }
  bool performs(CollectiveKind kind) const;
  bool in_switch() const { return info_->in_switch; }
  // Throws Error when the algorithm does not perform the kind, or for numbers that make no sense.
  Schedule schedule(const ScheduleRequest& request) const;

 private:
  const AlgorithmInfo* info_;
  ParameterValues values_;
  std::string where_;
};

}  // namespace armilla
