// What a search tells of its best plan beside the ranking (SearchRequest::explain): what every single knob is
// worth, and which communication is exposed. Each plan told of is simulated once more, node by node, for the
// latter: O(neighbours) simulations. For a neighbour that needs a second change as many more as may be the
// best of these by their bounds, at most 32; where every packet is played, one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/search.h"
#include "study/search/evaluate.h"
#include "study/search/plan_room.h"

namespace armilla {

// What the search tells of plans of its bases.
struct BesideBest {
  std::function<bool()> stopped;
  std::function<double(std::size_t base, const PlanPrepared& plan)> least_score;  // score_of at least
  // What comes of it; nothing where it scores more than `most`.
  std::function<std::optional<PlanOutcome>(std::size_t base, const PlanPrepared& plan, double most)> simulate;
  std::function<std::optional<BrokenLimit>(std::size_t base, const PlanOutcome& plan)> broken;
};

// A point of the space with one axis changed, machines and ranks among them; and where that alone is not
// legal, with the best of all changes of another one: of those that fit, where there are any.
std::vector<Neighbour> neighbours_of(PlanRoom& plans, std::size_t base, std::int64_t point,
                                     SearchObjective objective, const BesideBest& beside);

// Fills PlanOutcome::exposed_by_kind. Nothing on networks that play bytes, where a run takes too long, nor
// where it would be refused for the number of its messages.
void tell_exposed(const PlanPrepared& plan, PlanOutcome& outcome);

}  // namespace armilla
