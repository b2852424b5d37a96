// The best plan at every size: one search (study/search.h) for each.
#pragma once

#include <functional>

#include "ir/scale.h"
#include "study/search.h"
#include "study/spread.h"

namespace armilla {

struct ScaleRequest {
  // Of every size, but for the axes: those have "plan.ranks" with all sizes.
  SearchRequest search;
  std::int64_t global_batch = 0;  // of the smallest size, and, unless `weak`, of all
  bool weak = false;
};

// Sizes at which no plan can be run are part of the answer. Throws Error where there is one size alone, where
// a batch in proportion is no whole number, where no size has a plan, and as search_plans does. Stopped: the
// sizes so far.
ScaleResult scale_plans(const ScaleRequest& request);
// The same with a crew of one's own, as search_plans.
ScaleResult scale_plans(const ScaleRequest& request, Crew& crew);

}  // namespace armilla
