// Scaling: the best plan at every size of a machine, and what more devices are worth.
//
// Speedup is samples per second over those of the smallest size, efficiency the speedup over that of the
// devices: 1 is ideal, for strong scaling (the same global batch at every size) and weak scaling (a batch in
// proportion) alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/search.h"

namespace armilla {

struct ScalePoint {
  std::int64_t ranks = 0, global_batch = 0;
  std::optional<PlanOutcome> best;    // nothing: no plan can be run
  std::vector<SearchAxis> axes;       // of its search
  std::vector<std::string> settings;  // of it, as `armilla run --set` takes them
  std::string refusal;                // why there is none
  SearchSpaceUse space;
  std::vector<SearchEdge> edges;  // where more is worth trying
};

struct ScaleResult {
  bool weak = false;
  std::vector<ScalePoint> points;      // by rising ranks
  std::int64_t tokens_per_sample = 0;  // 0: the model does not tell what a token is
  std::vector<std::string> notes;      // what else to know of the plans
  bool complete = true;                // false: interrupted before the last size
  double elapsed_seconds = 0;

  bool has_plan() const;  // of any size
  // The smallest size that has a plan. Needs one.
  const ScalePoint& base() const;
  double speedup(const ScalePoint& point) const;
  double efficiency(const ScalePoint& point) const;
};

}  // namespace armilla
