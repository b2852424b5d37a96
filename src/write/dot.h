// ChakraTrace -> a drawing of its nodes and dependences in Graphviz' language, as chakra_visualizer makes it:
// records labelled with the nodes' names, arrows from what is waited for; data dependences with a normal
// head, control dependences with a tee. Without positions: `dot` lays it out. Dangling dependences draw a
// node without a record, as there. Cost: O(trace).
#pragma once

#include <string>

#include "ir/formats/chakra.h"

namespace armilla {

std::string write_dot(const ChakraTrace& trace);

}  // namespace armilla
