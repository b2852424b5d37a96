// Sets of ranks as users write them: "3", "0-7", "0-7,128,256-263". Both ends belong to a range.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/what_if.h"

namespace armilla {

// In the order given. Throws Error for anything else, a range that runs backwards included.
std::vector<RankRange> parse_rank_ranges(std::string_view text, const std::string& where);

// Throws Error, naming the range, where one ends beyond the last of `ranks`.
void check_rank_ranges(const std::vector<RankRange>& ranges, std::int64_t ranks, const std::string& where);

}  // namespace armilla
