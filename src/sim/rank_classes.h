// Which ranks must behave identically and are therefore simulated once.
//
// So far there are two cases, all ranks for themselves or all as one. They are one when every rank runs the
// same program without messages or remote memory of its own, every collective spans the whole machine, and
// every phase of every collective is symmetric and stays symmetric on the network (see fold_ranks). Colour
// refinement over graph and machine will put finer classes in this place.
#pragma once

#include <cstdint>

#include "network/network.h"
#include "sim/collective_plan.h"

namespace armilla {

struct RankClasses {
  std::int64_t ranks = 0;
  Fold fold = Fold::none;

  std::int32_t simulated() const { return fold == Fold::all ? 1 : static_cast<std::int32_t>(ranks); }
  std::int32_t class_of(std::int32_t rank) const { return fold == Fold::all ? 0 : rank; }
  std::int64_t size() const { return fold == Fold::all ? ranks : 1; }
};

RankClasses fold_ranks(const Graph& graph, const Machine& machine, CollectivePlanner& planner,
                       const NetworkPromises& promises);

}  // namespace armilla
