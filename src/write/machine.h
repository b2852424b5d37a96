// The links of machines drawn: as DOT for Graphviz, and as SVG. Devices that are joined to each other stand
// in rows, columns and circles by the machine's dimensions, others in a row; switches above them by how far
// they are from the devices. Parallel links are one line with their number.
#pragma once

#include <string>

#include "ir/machine.h"

namespace armilla {

std::string write_interconnect_dot(const Machine& machine);
std::string write_interconnect_svg(const Machine& machine);

}  // namespace armilla
