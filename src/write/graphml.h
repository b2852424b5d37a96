// ChakraTrace -> GraphML, byte for byte as chakra_visualizer writes it through networkx: nodes with a
// `label`, edges with a `dependency` of "data" or "control", at most one between two nodes (a control
// dependence replaces a data dependence), dangling ends as nodes without a label. Cost: O(trace).
#pragma once

#include <string>

#include "ir/formats/chakra.h"

namespace armilla {

std::string write_graphml(const ChakraTrace& trace);

}  // namespace armilla
