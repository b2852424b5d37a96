// What came of a search (ir/search.h): a table for the terminal, JSON with schema armilla.search/1, CSV with
// a line for every plan that was simulated, and a scatter plot of time over memory (SVG).
// docs/formats/search_json.md.
#pragma once

#include <string>

#include "ir/search.h"
#include "ir/study.h"
#include "write/text_table.h"

namespace armilla {

std::string write_search_text(const SearchResult& result, const TextStyle& style);
// `best`: the whole run of the best plan; null where nothing fits.
std::string write_search_json(const SearchResult& result, const Run* best);
std::string write_search_csv(const SearchResult& result);
std::string write_search_svg(const SearchResult& result);

}  // namespace armilla
