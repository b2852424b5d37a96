// A text workload as Chakra's own converter translates it (mlcommons/chakra, src/converter/text_converter.py,
// v1.0.0), node for node: for comparison with its users' traces.
//
// It knows seven policies and no dimensions: every collective is among all ranks. Cycles are written as
// microseconds, so that ASTRA-sim 2 takes a thousand times as long; updates are left out; NONE becomes an
// all-reduce of the size that stands beside it, usually 0; ids go on from one rank's trace to the next. The
// text is read as that converter reads it: by lines, of which none may be empty, without counting the layers,
// any unknown collective being an all-reduce.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/formats/chakra.h"

namespace armilla {

// `name` is for messages. Throws Error for what the converter refuses or stumbles over, and for more than
// 2^25 nodes in all.
std::vector<ChakraTrace> text_chakra_as_peer(std::string_view text, const std::string& name,
                                             std::int64_t ranks, std::int64_t passes);

}  // namespace armilla
