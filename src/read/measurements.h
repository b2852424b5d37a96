// Tables of measurements, told apart by their columns (docs/validation.md).
#pragma once

#include <string>
#include <string_view>

#include "ir/measurement.h"

namespace armilla {

// Throws Error with file:line for a file that is no such table, a missing column, and what is no number.
MeasurementFile parse_measurements(std::string_view text, const std::string& name);
MeasurementFile read_measurements(const std::string& path);

}  // namespace armilla
