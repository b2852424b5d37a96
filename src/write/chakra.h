// ChakraTrace -> a Chakra execution trace file: records of a varint length and a protobuf message, current
// schema (v0.0.4 to v1.0.0, et_def.proto of mlcommons/chakra).
//
// Byte-stable, and the bytes that protobuf itself would write: fields in order, zero defaults left out,
// numbers packed. What Chakra's tools wrote therefore survives reading and writing unchanged. A trace that
// was read from a file without metadata is written without. Cost: O(trace).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/formats/chakra.h"

namespace armilla {

std::string write_chakra(const ChakraTrace& trace);

// The bytes as a gzip file without name or date.
std::string gzipped(std::string_view bytes);

// PREFIX.<rank>.et for every rank, packed on request (Chakra's readers look at the bytes, not at the name).
// All files appear or none.
void write_chakra_files(const std::string& prefix, std::span<const ChakraTrace> ranks, bool packed = false);

}  // namespace armilla
