// What came of scaling (ir/scale.h): a table for the terminal, JSON with schema armilla.scale/1, CSV with a
// line for each size (docs/formats/scale_json.md), and samples per second over the ranks, beside the ideal
// (SVG).
#pragma once

#include <string>

#include "ir/scale.h"
#include "write/text_table.h"

namespace armilla {

std::string write_scale_text(const ScaleResult& result, const TextStyle& style);
std::string write_scale_json(const ScaleResult& result);
std::string write_scale_csv(const ScaleResult& result);
std::string write_scale_svg(const ScaleResult& result);

}  // namespace armilla
