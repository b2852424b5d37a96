// Chakra execution traces written as JSON.
//
// Two forms: what chakra_jsonizer writes, protobuf's JSON objects one after the other (metadata first, then
// nodes; 64-bit numbers may be strings, enumerations names or numbers, zero defaults are left out); and the
// single object of Chakra's C++ feeder (wrapper node), {"workload_graph": [{Id, Name, NodeType, runtime,
// data_deps, ...}]}, whose remaining keys become attributes. Keys that neither has are refused.
// Cost: O(bytes), one object in memory at a time (the whole file for the second form).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/formats/chakra.h"

namespace armilla {

bool is_chakra_json(std::span<const char> beginning);

// Throws Error with line and column for what is no JSON, and the line of the object for what is no trace.
ChakraTrace read_chakra_json(std::string_view text, const std::string& name);

}  // namespace armilla
