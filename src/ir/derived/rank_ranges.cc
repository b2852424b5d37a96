#include "ir/derived/rank_ranges.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

std::int64_t parse_rank(std::string_view text, std::string_view range, const std::string& where) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    throw Error(where, fmt::format("'{:.60}' is neither a rank nor a range of ranks", range),
                "write ranks as 3, 0-7 or 0-7,128");
  }
  return parse_count(text, where);
}

}  // namespace

std::vector<RankRange> parse_rank_ranges(std::string_view text, const std::string& where) {
  std::vector<RankRange> ranges;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    RankRange range;
    range.first = parse_rank(part.substr(0, dash), part, where);
    range.last =
        dash == std::string_view::npos ? range.first : parse_rank(part.substr(dash + 1), part, where);
    if (range.last < range.first) {
      throw Error(where, fmt::format("the range {} runs backwards", part),
                  fmt::format("write {}-{}", range.last, range.first));
    }
    ranges.push_back(range);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return ranges;
}

void check_rank_ranges(const std::vector<RankRange>& ranges, std::int64_t ranks, const std::string& where) {
  for (const RankRange& range : ranges) {
    if (range.last < ranks) continue;
    throw Error(where, fmt::format("there is no rank {}", range.last),
                ranks == 1 ? "the only rank is 0" : fmt::format("ranks are 0 to {}", ranks - 1));
  }
}

}  // namespace armilla
