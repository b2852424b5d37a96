// The events (ir/derived/events.h) of a run. Cost: O(nodes + ranks x families).
#pragma once

#include "cost/cost.h"
#include "ir/derived/events.h"
#include "ir/study.h"

namespace armilla {

EventTable list_events(const Run& run, const CostModel& cost);

}  // namespace armilla
