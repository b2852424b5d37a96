// Why a search has no plan that is legal: what of the things that the user fixed stands in the way.
#pragma once

#include "ir/search.h"
#include "study/search.h"
#include "study/search/space.h"

namespace armilla {

// In this order: what a run says of all that the user gave, where nothing that the search varies by itself
// has to do with it; what all plans are refused for that are right in all else; the keys that the user has
// fixed for which other values would do; what stands in the way of plans whose degrees are right, else of
// most. The hint of the first two names such keys, too, where there are any. Of the result the axes and
// refusals are looked at. Cost: for each key that is fixed the study is read again once for each value of the
// space, and at most 5,000 of its plans are looked at.
Refusal why_none(const SearchRequest& request, const SearchSpace& space, const SearchResult& result);

}  // namespace armilla
