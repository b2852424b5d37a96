// Collective algorithms on one dimension or one flat group. One table; each algorithm is one source file.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/registry.h"
#include "collective/schedule.h"
#include "ir/collective.h"

namespace armilla {

struct ScheduleRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int32_t ranks = 2;  // at least 1; one rank has an empty schedule
  Bytes bytes;             // meaning per kind in ir/collective.h
  std::int32_t root = 0;   // broadcast and reduce
  std::int32_t chunk =
      0;  // which chunk of its collective: trees alternate their root side, so that both trees are used
  bool payloads = false;  // one RankSchedule per member, with payloads, for the verifier
};

struct AlgorithmInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  std::span<const CollectiveKind> kinds;  // that it can perform
  // Complexity of a schedule's size in ranks is stated in each source.
  Schedule (*make)(const ScheduleRequest& request, const ParameterValues& values);
};
std::span<const AlgorithmInfo> collective_algorithms();

// A chosen algorithm with its parameters checked.
class Algorithm {
 public:
  // `text` as in CollectiveOptions: "ring", "direct:window=4". Throws Error.
  Algorithm(std::string_view text, const std::string& where);
  std::string_view name() const { return info_->name; }
  bool performs(CollectiveKind kind) const;
  // Throws Error when the algorithm does not perform the kind.
  Schedule schedule(const ScheduleRequest& request) const;

 private:
  const AlgorithmInfo* info_;
  ParameterValues values_;
};

}  // namespace armilla
