// What a search tells of its best plan beside the ranking (SearchRequest::explain): what every single knob is
// worth, and which communication is exposed; and why there is none. Each plan looked at is simulated once
// more, node by node, for the latter: O(neighbours) simulations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/search.h"
#include "study/search/evaluate.h"
#include "study/search/plan_room.h"

namespace armilla {

// Fills what comes of a neighbour: of a plan of a base, whose value on each axis is given.
using SimulateNeighbour = std::function<void(Neighbour& neighbour, std::size_t base, const PlanPrepared& plan,
                                             std::vector<std::string> values)>;

// A point of the space with one axis changed, machines and ranks among them, and with another one where the
// first alone is not legal.
std::vector<Neighbour> neighbours_of(PlanRoom& plans, std::size_t base, std::int64_t point,
                                     const SimulateNeighbour& simulate);

// Fills PlanOutcome::exposed_by_kind. Nothing on networks that play bytes, where a run takes too long.
void tell_exposed(const PlanPrepared& plan, PlanOutcome& outcome);

// Where no plan is legal, what a run says of what the user gave, all else being as it is by default: of the
// first combination if all are refused. Nothing where one is not, or where there are more than 1,000.
Refusal refusal_of_given(const SearchRequest& request, const std::vector<SearchAxis>& axes);

}  // namespace armilla
