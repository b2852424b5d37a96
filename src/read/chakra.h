// Chakra execution traces: files into ChakraTrace.
//
// A file is a row of records, each a varint length and a protobuf message: GlobalMetadata (missing in early
// files), then nodes. Every published schema is read, found from the bytes (read/trace/chakra_schema.h) and
// mapped to the current one: v0.0.1 and v0.0.2 (et_def.proto of mlcommons/chakra at ec3832c, 2719463), v0.0.3
// (9d917e3, 29de3e1), v0.0.4 to v1.0.0 (c236cfa on). So are gzip files of those, and two forms of JSON
// (read/trace/chakra_json.h). Fields that no schema knows are skipped; node types that none knows are
// refused.
//
// Cost: O(bytes) in one pass; nothing is kept but the trace (bytes per node: ir/formats/chakra.h), and of a
// mapped file no more than 4 MB are resident at a time. Any bytes are a trace or an Error with the byte's
// offset; that a file was cut short is said before anything else that is wrong with it.
#pragma once

#include <span>
#include <string>

#include "ir/formats/chakra.h"

namespace armilla {

// `name` is what messages call the file.
ChakraTrace read_chakra(std::span<const char> bytes, const std::string& name);
ChakraTrace read_chakra_file(const std::string& path);
// Likewise, into the memory of a trace that is not needed any more.
void read_chakra_file(const std::string& path, ChakraTrace& trace);

}  // namespace armilla
