// ChakraTrace: one rank's Chakra execution trace as its file says it, for tools that read, check, change,
// draw and write traces. The simulator works on Graph (ir/graph.h), which trace/graph.h makes from
// traces.
//
// Source: mlcommons/chakra, schema/protobuf/et_def.proto (v0.0.1 to v1.0.0); older schemas are mapped to the
// current one by the reader. Nodes are a struct of arrays in file order; ids are the file's (any 64-bit
// numbers, not dense). Sizes are bytes; times are microseconds as in the format. Strings are interned.
// Memory: 61 bytes per node, 8 per dependence, 24 per attribute, 8 per distinct string beside its text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"

namespace armilla {

// Attribute of Armilla's own traces: the node's duration in nanoseconds, where whole microseconds are too
// coarse.
inline constexpr std::string_view kDurationNs = "duration_ns";
// Attributes of Armilla's own traces: the lane a node occupies where it is not its type's ("device", "host",
// "communication", "none"), and how a collective's chunks rank among those waiting ("fifo", "lifo",
// "highest").
inline constexpr std::string_view kLaneAttribute = "armilla_lane";
inline constexpr std::string_view kPreferenceAttribute = "armilla_preference";

enum class ChakraNodeType : std::uint8_t {
  invalid,
  metadata,
  memory_load,
  memory_store,
  compute,
  send,
  receive,
  collective
};
std::string_view name_of(ChakraNodeType type);  // "COMM_COLL_NODE", as in the schema

enum class ChakraCollective : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};
std::string_view name_of(ChakraCollective collective);  // "ALL_REDUCE", as in the schema

// The member of AttributeProto's oneof, by its field number: 3 double .. 31 bytes are scalars, the even
// numbers 4 .. 32 the lists of the scalar before them.
enum class ChakraValueKind : std::uint8_t {
  none = 0,
  real64 = 3,
  real32 = 5,
  int32 = 7,
  int64 = 9,
  uint32 = 11,
  uint64 = 13,
  sint32 = 15,
  sint64 = 17,
  fixed32 = 19,
  fixed64 = 21,
  sfixed32 = 23,
  sfixed64 = 25,
  boolean = 27,
  string = 29,
  bytes = 31
};

struct ChakraAttribute {
  std::uint32_t name = 0;   // into strings
  std::uint32_t doc = 0;    // into strings
  std::uint8_t field = 0;   // of the oneof, 3 .. 32; 0: no value
  std::uint32_t count = 0;  // of a list
  std::uint64_t value = 0;  // the bits of a scalar (integers sign-extended, float as double); an index into
                            // strings for string and bytes; the first index into list_values for a list
  ChakraValueKind kind() const { return static_cast<ChakraValueKind>(field - (field % 2 == 0 && field > 0)); }
  bool is_list() const { return field != 0 && field % 2 == 0; }
};

struct ChakraIo {  // IOInfo; indices into strings
  std::uint32_t values = 0, shapes = 0, types = 0;
  bool operator==(const ChakraIo&) const = default;
};

struct ChakraTrace {
  std::string source;  // file name, for messages
  std::string schema;  // "v0.0.1" .. "v0.0.4", "json": what the reader found
  bool has_metadata = true;
  std::string version;  // GlobalMetadata.version
  std::vector<ChakraAttribute> metadata;

  std::vector<std::uint64_t> id;
  std::vector<std::uint32_t> name;  // into strings
  std::vector<ChakraNodeType> type;
  std::vector<std::uint64_t> start_micros, duration_micros;
  // CSR: what belongs to node i stands from first[i] to first[i + 1].
  std::vector<std::uint32_t> first_data_dependence = {0};
  std::vector<std::uint64_t> data_dependence;  // ids
  std::vector<std::uint32_t> first_control_dependence = {0};
  std::vector<std::uint64_t> control_dependence;  // likewise
  std::vector<std::uint32_t> first_attribute = {0};
  std::vector<ChakraAttribute> attribute;
  std::vector<std::uint32_t> inputs, outputs;  // into ios
  std::vector<ChakraIo> ios = {{}};            // 0: none

  StringTable strings;
  std::vector<std::uint64_t> list_values;  // of list attributes, as in ChakraAttribute::value

  std::size_t size() const { return id.size(); }
  std::string_view name_of_node(std::size_t node) const { return strings.at(name[node]); }
  std::span<const std::uint64_t> data_dependences(std::size_t node) const {
    return std::span(data_dependence)
        .subspan(first_data_dependence[node], first_data_dependence[node + 1] - first_data_dependence[node]);
  }
  std::span<const std::uint64_t> control_dependences(std::size_t node) const {
    return std::span(control_dependence)
        .subspan(first_control_dependence[node],
                 first_control_dependence[node + 1] - first_control_dependence[node]);
  }
  std::span<const ChakraAttribute> attributes(std::size_t node) const {
    return std::span(attribute).subspan(first_attribute[node],
                                        first_attribute[node + 1] - first_attribute[node]);
  }
  // Of one of these columns, as an index. Throws Error for more entries than 32 bits can count.
  template <class Entry>
  std::uint32_t end_of(const std::vector<Entry>& column) const {
    if (column.size() > UINT32_MAX) refuse_size();
    return static_cast<std::uint32_t>(column.size());
  }
  // Back to an empty trace, which keeps the memory of its columns for the next one.
  void clear();
  // nullptr when the node has no such attribute.
  const ChakraAttribute* find(std::size_t node, std::string_view attribute_name) const;

  // Appends a node without dependences and attributes and returns its index; then add to the last node:
  std::size_t add_node(std::uint64_t node_id, ChakraNodeType node_type, std::string_view node_name,
                       std::uint64_t duration = 0);
  void add_data_dependence(std::uint64_t of);     // of the last node
  void add_control_dependence(std::uint64_t of);  // of the last node
  // Of the last node. Scalars; `kind` says how it is written.
  void add_integer(std::string_view attribute_name, ChakraValueKind kind, std::int64_t value);
  void add_real(std::string_view attribute_name, ChakraValueKind kind, double value);
  void add_text(std::string_view attribute_name, std::string_view value);
  void add_booleans(std::string_view attribute_name, std::span<const bool> values);

  // Appends a copy of a node of another trace, with its dependences and attributes; returns its index.
  std::size_t copy_node(const ChakraTrace& from, std::size_t node);

 private:
  [[noreturn]] void refuse_size() const;
};

// Whether both would be written as the same file: `source`, `schema` and the numbers of strings are ignored.
bool same_contents(const ChakraTrace& a, const ChakraTrace& b);

// The attribute's value as an integer, whatever numeric kind (or bool) it was written with. Throws Error
// (where: file, node id and name, attribute) for text, lists, fractions and what does not fit into 64 bits.
std::int64_t integer_value(const ChakraTrace& trace, std::size_t node, const ChakraAttribute& attribute);
// Likewise as a real number; NaN and infinities are refused.
double real_value(const ChakraTrace& trace, std::size_t node, const ChakraAttribute& attribute);
// Of a string or bytes.
std::string_view text_value(const ChakraTrace& trace, std::size_t node, const ChakraAttribute& attribute);
// Of a list of booleans, or of integers that are 0 or 1.
std::vector<bool> boolean_values(const ChakraTrace& trace, std::size_t node,
                                 const ChakraAttribute& attribute);
// "trace.3.et: node 17 'COMM_COLL_NODE_fc1'"
std::string location(const ChakraTrace& trace, std::size_t node);

}  // namespace armilla
