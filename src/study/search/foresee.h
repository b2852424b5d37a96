// How long a search takes, where its plans are played packet by packet or flit by flit.
#pragma once

#include <cstdint>
#include <span>

#include "study/patience.h"
#include "study/search.h"
#include "study/search/plan_room.h"

namespace armilla {

// A plan of the space.
struct PlanPlace {
  std::size_t base = 0;
  std::int64_t point = 0;
};

// `open`: plans that may be simulated, in that order; beside them so many are known. Cost: a few plans are
// made ready to be played, on networks that play bytes alone; with brute force all are prepared.
ForeseenRuns foresee_plans(const SearchRequest& request, PlanRoom& plans, std::span<const PlanPlace> open,
                           std::int64_t known, std::int64_t at_once);

}  // namespace armilla
