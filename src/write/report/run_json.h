// A run as JSON, schema "armilla.run/1": docs/formats/run_json.md describes every key.
//
// Keys carry their unit (_s, _bytes, _bytes_per_s, _flops). Ranks appear as classes of ranks that behaved
// alike and links as the busiest kMostLinks, so that the document stays small for large machines; --csv has
// all links.
#pragma once

#include <cstddef>
#include <string>

#include "ir/study.h"
#include "write/format/json_text.h"

namespace armilla {

inline constexpr std::size_t kMostLinks = 100;

std::string write_run_json(const Run& run);

// The same for documents that hold a run, or its plan.
Json run_json(const Run& run);
Json plan_json(const Plan& plan);

}  // namespace armilla
