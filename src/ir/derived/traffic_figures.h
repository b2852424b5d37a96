// How long flows took, of those that finished: the shortest, the median, 99 % and the longest. A quantile is
// the least value that so large a share of all does not exceed.
#pragma once

#include <optional>

#include "ir/traffic.h"

namespace armilla {

struct FlowQuantiles {
  double least = 0, median = 0, p99 = 0, most = 0;
};

// Nothing where no flow finished.
std::optional<FlowQuantiles> completion_times(const FlowsResult& traffic);  // seconds
// Completion times over those of flows that are alone; nothing where a network does not know these.
std::optional<FlowQuantiles> slow_downs(const FlowsResult& traffic);
// Of one flow; 0 where it is not known.
double slow_down(const FlowResult& flow);

}  // namespace armilla
