// ChakraTrace -> what chakra_jsonizer writes: protobuf's JSON objects one after the other, not one document
// (google.protobuf.json_format of Python, two spaces of indent): metadata first, then nodes; names in camel
// case, 64-bit integers and infinities as text, bytes in base64, zero defaults left out, everything beyond
// ASCII escaped. Byte-equal for traces of the current schema; read back by read/trace/chakra_json.h. A trace
// without metadata begins with its first node, where the peer takes that node for metadata. Cost: O(trace).
#pragma once

#include <string>

#include "ir/formats/chakra.h"

namespace armilla {

std::string write_chakra_json(const ChakraTrace& trace);

}  // namespace armilla
