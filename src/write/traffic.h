// Results of traffic (ir/traffic.h) as text for the terminal and as JSON with schema armilla.traffic/1
// (docs/formats/traffic_json.md).
#pragma once

#include <string>

#include "ir/traffic.h"
#include "write/text_table.h"

namespace armilla {

std::string write_traffic_text(const TrafficResult& result, const TextStyle& style);
std::string write_traffic_json(const TrafficResult& result);

}  // namespace armilla
