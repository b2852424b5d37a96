// Whether a machine and a study say what a search goes by: prices, powers, how long the training is.
#pragma once

#include "study/search.h"
#include "study/search/space.h"

namespace armilla {

bool goes_by(const SearchRequest& request, SearchObjective objective);

// Throws Error for what is missing. `first`: the machine that the others are compared with.
void check_figures(const SearchRequest& request, const SearchBase& base, const Machine& first);

}  // namespace armilla
