// Validations (ir/validation.h) as text for the terminal, JSON with schema armilla.validation/1, CSV with one
// line per row, and a scatter plot (docs/validation.md).
#pragma once

#include <string>

#include "ir/validation.h"
#include "write/text_table.h"

namespace armilla {

// `misses`: how many of the largest errors of each kind are listed.
std::string write_validation_text(const Validation& validation, std::size_t misses, const TextStyle& style);
std::string write_validation_json(const Validation& validation, std::size_t misses);
std::string write_validation_csv(const Validation& validation);
// Predicted over measured, both on logarithmic axes, a panel per kind and a colour per set.
std::string write_validation_svg(const Validation& validation);

}  // namespace armilla
