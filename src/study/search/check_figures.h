// Whether a machine and a study say what a search goes by: prices, powers, how long the training is.
#pragma once

#include "study/search.h"
#include "study/search/space.h"

namespace armilla {

bool goes_by(const SearchRequest& request, SearchObjective objective);

// Throws Error for numbers of the request that say nothing.
void check_request(const SearchRequest& request);
// Throws Error for what is missing.
void check_figures(const SearchRequest& request, const SearchSpace& space);

}  // namespace armilla
