// Which schema a Chakra file follows, and the nodes of the superseded ones.
//
// Files do not say: what rules a schema out are wire types of fields (proto2's v0.0.1 has numbers where later
// ones have strings), layouts of attributes, and missing required fields; among those left, node names such
// as COMP_NODE_fc1 must fit the node types. Mapped to the current schema: node types and collective types by
// name; `parent` becomes data dependences; v0.0.1's fields become attributes of the same names (the
// communicator's id: pg_name); `simulated_run_time` and the attribute `runtime` become duration_micros with
// the number kept, as Chakra's own tools did when they renamed it.
#pragma once

#include <span>
#include <string_view>

#include "ir/formats/chakra.h"
#include "read/encoding/wire_reader.h"

namespace armilla {

enum class ChakraSchema : std::uint8_t {
  v0_0_1,
  v0_0_2,
  v0_0_3,
  v0_0_3_unsigned,    // with UINT attributes and, sometimes, metadata
  v0_0_4_attributes,  // current, but metadata has its attributes as field 1
  current
};
std::string_view name_of(ChakraSchema schema);  // "v0.0.1"

struct DetectedSchema {
  ChakraSchema schema = ChakraSchema::current;
  bool has_metadata = false;  // the first record is GlobalMetadata
};
// From the first records of a file; damaged ones count as the current schema.
DetectedSchema detect_schema(std::span<const std::string_view> records, const WireSource& source);

// Appends a node of a schema before v0.0.4.
void parse_old_node(std::string_view message, ChakraSchema schema, const WireSource& source,
                    ChakraTrace& trace);
void parse_old_metadata(std::string_view message, const WireSource& source, ChakraTrace& trace);

}  // namespace armilla
