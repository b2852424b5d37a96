// The links of machines (ir/interconnect.h) drawn: as DOT for Graphviz, and as SVG, devices below, switches
// above them by how far they are from the devices. Parallel links are one line with their number.
#pragma once

#include <string>

#include "ir/interconnect.h"

namespace armilla {

std::string write_interconnect_dot(const Interconnect& graph);
std::string write_interconnect_svg(const Interconnect& graph);

}  // namespace armilla
