#include "read/trace/chakra_schema.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/error.h"

namespace armilla {
namespace {

using Type = WireReader::Type;

struct Field {
  std::uint32_t tag;
  Type type;
  std::string_view content;  // of Type::bytes
  std::uint64_t number = 0;  // of Type::varint
};

// Schemas are told by which fields there are and how they are encoded, since old files do not name theirs.
// The fields of a message, or whether it is none.
struct Fields {
  std::vector<Field> list;
  bool valid = true;

  const Field* find(std::uint32_t tag) const {
    const auto found = std::find_if(list.begin(), list.end(), [&](const Field& f) { return f.tag == tag; });
    return found == list.end() ? nullptr : &*found;
  }
  bool has(std::uint32_t tag, Type type) const {
    const Field* field = find(tag);
    return field != nullptr && field->type == type;
  }
};

Fields fields_of(std::string_view message, const WireSource& source) {
  Fields fields;
  try {
    WireReader in(message, source);
    while (in.next()) {
      Field& field = fields.list.emplace_back(Field{in.tag(), in.type(), {}});
      if (in.type() == Type::bytes) field.content = in.bytes();
      if (in.type() == Type::varint) field.number = std::bit_cast<std::uint64_t>(in.number());
    }
  } catch (const Error&) {
    fields.valid = false;
  }
  return fields;
}

// The last byte of a varint has its highest bit clear.
bool is_packed_numbers(std::string_view content) {
  return content.empty() || static_cast<unsigned char>(content.back()) < 128;
}

// AttributeProto's value fields before v0.0.4: field and wire type by AttributeProto.type.
struct OldValue {
  std::uint32_t field;
  Type type;
  ChakraValueKind kind;
  bool list;
};
using Kind = ChakraValueKind;
constexpr std::array<OldValue, 6> kValues002 = {{{4, Type::fixed32, Kind::real32, false},
                                                 {5, Type::varint, Kind::int64, false},
                                                 {6, Type::bytes, Kind::string, false},
                                                 {7, Type::fixed32, Kind::real32, true},
                                                 {8, Type::varint, Kind::int64, true},
                                                 {9, Type::bytes, Kind::string, true}}};
constexpr std::array<OldValue, 8> kValues003 = {{{4, Type::varint, Kind::boolean, false},
                                                 {5, Type::fixed32, Kind::real32, false},
                                                 {6, Type::varint, Kind::int64, false},
                                                 {7, Type::bytes, Kind::string, false},
                                                 {8, Type::varint, Kind::boolean, true},
                                                 {9, Type::fixed32, Kind::real32, true},
                                                 {10, Type::varint, Kind::int64, true},
                                                 {11, Type::bytes, Kind::string, true}}};
constexpr std::array<OldValue, 10> kValues003Unsigned = {{{4, Type::varint, Kind::boolean, false},
                                                          {5, Type::fixed32, Kind::real32, false},
                                                          {6, Type::varint, Kind::uint64, false},
                                                          {7, Type::varint, Kind::int64, false},
                                                          {8, Type::bytes, Kind::string, false},
                                                          {9, Type::varint, Kind::boolean, true},
                                                          {10, Type::fixed32, Kind::real32, true},
                                                          {11, Type::varint, Kind::uint64, true},
                                                          {12, Type::varint, Kind::int64, true},
                                                          {13, Type::bytes, Kind::string, true}}};
std::span<const OldValue> old_values(ChakraSchema schema) {
  if (schema == ChakraSchema::v0_0_2) return kValues002;
  if (schema == ChakraSchema::v0_0_3) return kValues003;
  return kValues003Unsigned;
}

// Whether the message is an attribute whose value stands where its type says.
bool is_old_attribute(std::string_view message, ChakraSchema schema, const WireSource& source) {
  const Fields fields = fields_of(message, source);
  if (!fields.valid || !fields.has(1, Type::bytes) || !fields.has(2, Type::varint)) return false;
  const std::uint64_t type = fields.find(2)->number;
  const std::span<const OldValue> values = old_values(schema);
  if (type >= values.size()) return false;
  return std::all_of(fields.list.begin(), fields.list.end(), [&](const Field& field) {
    if (field.tag <= 3) return field.type == (field.tag == 2 ? Type::varint : Type::bytes);
    const OldValue& value = values[type];
    return field.tag == value.field && field.type == value.type;
  });
}

bool is_current_attribute(std::string_view message, const WireSource& source) {
  const Fields fields = fields_of(message, source);
  return fields.valid && (message.empty() || fields.has(1, Type::bytes)) &&
         (fields.find(2) == nullptr || fields.has(2, Type::bytes));
}

// v0.0.1: every attribute is a field of the node, all numbers but the name.
bool fits_0_0_1(const Fields& node) {
  return node.has(1, Type::varint) && node.has(2, Type::bytes) &&
         std::all_of(node.list.begin(), node.list.end(), [](const Field& field) {
           return field.tag <= 20 && field.type == (field.tag == 2 ? Type::bytes : Type::varint);
         });
}

// v0.0.2 and v0.0.3: parents in field 4, inputs and outputs in 5 to 10, attributes in 11.
bool fits_old_attributes(const Fields& node, ChakraSchema schema, const WireSource& source) {
  return node.has(1, Type::varint) && node.has(2, Type::bytes) && node.has(3, Type::varint) &&
         std::all_of(node.list.begin(), node.list.end(), [&](const Field& field) {
           if (field.tag == 11)
             return field.type == Type::bytes && is_old_attribute(field.content, schema, source);
           const bool text = field.tag == 2 || (field.tag >= 5 && field.tag <= 10);
           return field.tag <= 10 && field.type == (text ? Type::bytes : Type::varint);
         });
}

// v0.0.4 and later: lists may be packed, inputs and outputs are messages, attributes stand in 10.
bool fits_current(const Fields& node, const WireSource& source) {
  return std::all_of(node.list.begin(), node.list.end(), [&](const Field& field) {
    switch (field.tag) {
      case 2:
        return field.type == Type::bytes;
      case 4:
      case 5:
        return field.type == Type::varint || (field.type == Type::bytes && is_packed_numbers(field.content));
      case 8:
      case 9:
        return field.type == Type::bytes && fields_of(field.content, source).valid;
      case 10:
        return field.type == Type::bytes && is_current_attribute(field.content, source);
      default:
        return field.tag > 10 || field.type == Type::varint;
    }
  });
}

// Node types before METADATA_NODE was put in front count one less.
std::uint64_t current_type(std::uint64_t type, ChakraSchema schema) {
  return schema <= ChakraSchema::v0_0_2 && type > 0 ? type + 1 : type;
}

// What speaks for a schema that the fields allow: names that tell the type, and proto2's explicit zeros and
// unpacked lists.
int plausibility(const Fields& node, ChakraSchema schema) {
  int points = 0;
  if (const Field* name = node.find(2)) {
    const Field* type = node.find(3);
    const std::uint64_t number = current_type(type != nullptr ? type->number : 0, schema);
    if (number <= static_cast<std::uint64_t>(ChakraNodeType::collective) &&
        name->content.starts_with(name_of(static_cast<ChakraNodeType>(number))))
      points += 2;
  }
  if (schema != ChakraSchema::current) return points;
  for (const Field& field : node.list) {
    if ((field.tag == 4 || field.tag == 5) && field.type == Type::varint) --points;
    if ((field.tag == 1 || field.tag == 3) && field.number == 0) --points;
    if (field.tag > 10) --points;
  }
  return points;
}

bool is_metadata(const Fields& record, const WireSource& source) {
  if (!record.valid) return false;
  if (record.has(1, Type::bytes)) return true;
  return std::all_of(record.list.begin(), record.list.end(), [&](const Field& field) {
    return field.tag == 2 && field.type == Type::bytes && is_current_attribute(field.content, source);
  });
}

// Earlier schemas have attributes in the metadata's field 1, the current one its version as text.
ChakraSchema schema_of_metadata(const Fields& record, const WireSource& source) {
  if (!record.has(1, Type::bytes)) return ChakraSchema::current;
  const std::string_view content = record.find(1)->content;
  if (is_old_attribute(content, ChakraSchema::v0_0_3_unsigned, source)) return ChakraSchema::v0_0_3_unsigned;
  const bool attribute = content.starts_with('\n') && is_current_attribute(content, source);
  return attribute ? ChakraSchema::v0_0_4_attributes : ChakraSchema::current;
}

constexpr std::string_view kRuntime = "runtime";
constexpr std::string_view kCommType = "comm_type";

// Appends to the last node of a trace.
class OldNodeParser {
 public:
  OldNodeParser(ChakraSchema schema, const WireSource& source, ChakraTrace& trace)
      : schema_(schema), source_(source), trace_(trace) {}

  void node(std::string_view message) {
    const Fields fields = checked_fields(message);
    const auto required = [&](std::uint32_t tag, std::string_view name) -> const Field& {
      const Field* field = fields.find(tag);
      if (field == nullptr) source_.fail(message.data(), fmt::format("a node without {}", name));
      return *field;
    };
    const std::uint64_t id = required(1, "id").number;
    const std::string_view name = required(2, "name").content;
    const Field* type = fields.find(3);
    trace_.add_node(id, node_type(type != nullptr ? type->number : 0, id, name, message), name);
    bool first_input = true, first_output = true;
    for (const Field& field : fields.list) {
      if (field.tag == 4) {
        if (field.type != Type::varint) source_.fail(message.data(), "a node's parent is not a number");
        trace_.add_data_dependence(field.number);
      } else if (schema_ == ChakraSchema::v0_0_1) {
        number_field(field, message);
      } else if (field.tag >= 5 && field.tag <= 7) {
        io(field, 5, trace_.inputs.back(), first_input);
      } else if (field.tag >= 8 && field.tag <= 10) {
        io(field, 8, trace_.outputs.back(), first_output);
      } else if (field.tag == 11) {
        attribute(field.content);
      }
    }
    if (!dimensions_.empty()) involved_dimensions();
  }

  void metadata(std::string_view message) {
    for (const Field& field : checked_fields(message).list) {
      if (field.tag == 1) trace_.metadata.push_back(parsed(field.content));
    }
  }

 private:
  // Like fields_of, but a damaged message is an Error.
  Fields checked_fields(std::string_view message) const {
    Fields fields;
    WireReader in(message, source_);
    while (in.next()) {
      Field& field = fields.list.emplace_back(Field{in.tag(), in.type(), {}});
      if (in.type() == Type::bytes) {
        field.content = in.bytes();
      } else if (in.type() == Type::varint) {
        field.number = std::bit_cast<std::uint64_t>(in.number());
      } else if (in.type() == Type::fixed32) {
        field.number = in.fixed<std::uint32_t>();
      }
    }
    return fields;
  }

  ChakraNodeType node_type(std::uint64_t type, std::uint64_t id, std::string_view name,
                           std::string_view message) const {
    const std::uint64_t current = current_type(type, schema_);
    if (type > static_cast<std::uint64_t>(ChakraNodeType::collective) ||
        current > static_cast<std::uint64_t>(ChakraNodeType::collective))
      throw Error(
          fmt::format("{}: byte {}: node {} '{}'", source_.name, message.data() - source_.begin, id, name),
          fmt::format("unknown node type {} of schema {}", type, name_of(schema_)));
    return static_cast<ChakraNodeType>(current);
  }

  // v0.0.1 has a field per attribute.
  void number_field(const Field& field, std::string_view message) {
    struct Named {
      std::string_view name;
      Kind kind;
    };
    constexpr std::array<Named, 16> kNames = {{{"tensor_loc", Kind::uint32},
                                               {"tensor_size", Kind::uint64},
                                               {"", Kind::none},  // the run time
                                               {"input_tensor_loc", Kind::uint32},
                                               {"input_tensor_size", Kind::uint64},
                                               {"output_tensor_loc", Kind::uint32},
                                               {"output_tensor_size", Kind::uint64},
                                               {"num_ops", Kind::uint64},
                                               {kCommType, Kind::int64},
                                               {"", Kind::none},  // the involved dimensions
                                               {"", Kind::none},  // the communicator
                                               {"comm_src", Kind::uint32},
                                               {"comm_dst", Kind::uint32},
                                               {"comm_size", Kind::uint32},
                                               {"comm_tag", Kind::uint32},
                                               {"comm_priority", Kind::uint32}}};
    if (field.tag < 5 || field.tag > 20) return;
    if (field.type != Type::varint)
      source_.fail(message.data(), fmt::format("field {} of a node is not a number, as schema {} wants it",
                                               field.tag, name_of(schema_)));
    const auto number = std::bit_cast<std::int64_t>(field.number);
    if (field.tag == 7) {
      trace_.duration_micros.back() = field.number;
    } else if (field.tag == 14) {
      dimensions_.push_back(field.number != 0);
    } else if (field.tag == 15) {
      trace_.add_text("pg_name", fmt::format("{}", field.number));
    } else if (field.tag == 13) {
      if (field.number != 0) trace_.add_integer(kCommType, Kind::int64, comm_type(field.number, message));
    } else {
      const Named& named = kNames[field.tag - 5];
      trace_.add_integer(named.name, named.kind, number);
    }
  }

  // v0.0.1 repeats a field where later schemas have one list.
  void involved_dimensions() {
    trace_.add_booleans("involved_dim", {});
    ChakraAttribute& list = trace_.attribute.back();
    list.count = static_cast<std::uint32_t>(dimensions_.size());
    trace_.list_values.insert(trace_.list_values.end(), dimensions_.begin(), dimensions_.end());
  }

  // Inputs and outputs are three fields each; a message is made for them when the first is met.
  void io(const Field& field, std::uint32_t first_tag, std::uint32_t& index, bool& first) {
    if (first) {
      trace_.ios.emplace_back();
      index = static_cast<std::uint32_t>(trace_.ios.size() - 1);
    }
    first = false;
    ChakraIo& found = trace_.ios[index];
    (field.tag == first_tag       ? found.values
     : field.tag == first_tag + 1 ? found.shapes
                                  : found.types) = trace_.strings.add(field.content);
  }

  // Earlier schemas have the collectives in another order; v0.0.1 counts from 1.
  std::int64_t comm_type(std::uint64_t old, std::string_view message) const {
    using C = ChakraCollective;
    constexpr std::array kOrder = {C::all_reduce, C::all_to_all, C::all_gather, C::reduce_scatter,
                                   C::broadcast};
    const std::uint64_t first = schema_ == ChakraSchema::v0_0_1 ? 1 : 0;
    if (old < first || old - first >= kOrder.size())
      source_.fail(message.data(),
                   fmt::format("unknown collective type {} of schema {}", old, name_of(schema_)));
    return static_cast<std::int64_t>(kOrder[static_cast<std::size_t>(old - first)]);
  }

  // The run time is an attribute there and a field of the node since.
  void attribute(std::string_view message) {
    ChakraAttribute found = parsed(message);
    const std::string_view name = trace_.strings.at(found.name);
    const bool number = found.kind() == Kind::int64 || found.kind() == Kind::uint64;
    if (name == kRuntime && number && !found.is_list()) {
      if (found.kind() == Kind::int64 && std::bit_cast<std::int64_t>(found.value) < 0)
        source_.fail(message.data(), "a negative run time");
      trace_.duration_micros.back() = found.value;
      return;
    }
    if (name == kCommType && number && !found.is_list())
      found.value = std::bit_cast<std::uint64_t>(comm_type(found.value, message));
    trace_.attribute.push_back(found);
    trace_.first_attribute.back() = trace_.end_of(trace_.attribute);
  }

  ChakraAttribute parsed(std::string_view message) {
    const Fields fields = checked_fields(message);
    const Field* type = fields.find(2);
    const std::span<const OldValue> values = old_values(schema_);
    if (type == nullptr || type->number >= values.size())
      source_.fail(message.data(), fmt::format("an attribute without a type of schema {}", name_of(schema_)));
    const OldValue& expected = values[static_cast<std::size_t>(type->number)];
    ChakraAttribute found;
    found.field = static_cast<std::uint8_t>(static_cast<unsigned>(expected.kind) + (expected.list ? 1 : 0));
    const std::size_t first = trace_.list_values.size();
    for (const Field& field : fields.list) {
      if (field.tag == 1) found.name = trace_.strings.add(field.content);
      if (field.tag == 3) found.doc = trace_.strings.add(field.content);
      if (field.tag != expected.field) continue;
      if (field.type != expected.type)
        source_.fail(message.data(),
                     fmt::format("field {} of an attribute has the wrong wire type", field.tag));
      const std::uint64_t value = converted(field, expected.kind);
      if (expected.list) {
        trace_.list_values.push_back(value);
      } else {
        found.value = value;
      }
    }
    if (!expected.list) return found;
    found.value = first;
    found.count = static_cast<std::uint32_t>(trace_.list_values.size() - first);
    return found;
  }

  std::uint64_t converted(const Field& field, Kind kind) {
    if (kind == Kind::string) return trace_.strings.add(field.content);
    if (kind == Kind::boolean) return field.number != 0 ? 1 : 0;
    if (kind != Kind::real32) return field.number;
    const auto real = std::bit_cast<float>(static_cast<std::uint32_t>(field.number));
    return std::bit_cast<std::uint64_t>(static_cast<double>(real));
  }

  ChakraSchema schema_;
  const WireSource& source_;
  ChakraTrace& trace_;
  std::vector<std::uint8_t> dimensions_;
};

}  // namespace

std::string_view name_of(ChakraSchema schema) {
  constexpr std::array<std::string_view, 6> kNames = {"v0.0.1", "v0.0.2", "v0.0.3",
                                                      "v0.0.3", "v0.0.4", "v0.0.4"};
  return kNames[static_cast<std::size_t>(schema)];
}

DetectedSchema detect_schema(std::span<const std::string_view> records, const WireSource& source) {
  DetectedSchema found;
  if (records.empty()) return found;
  const Fields first = fields_of(records[0], source);
  if (is_metadata(first, source)) return {schema_of_metadata(first, source), true};

  struct Candidate {
    ChakraSchema schema;
    bool possible;
    int points;
  };
  // In order of preference among equals.
  std::array<Candidate, 5> candidates = {{{ChakraSchema::current, true, 0},
                                          {ChakraSchema::v0_0_3, true, 0},
                                          {ChakraSchema::v0_0_3_unsigned, true, 0},
                                          {ChakraSchema::v0_0_2, true, 0},
                                          {ChakraSchema::v0_0_1, true, 0}}};
  for (const std::string_view record : records) {
    const Fields node = fields_of(record, source);
    if (!node.valid) break;
    for (Candidate& candidate : candidates) {
      const bool fits = candidate.schema == ChakraSchema::current ? fits_current(node, source)
                        : candidate.schema == ChakraSchema::v0_0_1
                            ? fits_0_0_1(node)
                            : fits_old_attributes(node, candidate.schema, source);
      candidate.possible &= fits;
      candidate.points += plausibility(node, candidate.schema);
    }
  }
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.possible && (best == nullptr || candidate.points > best->points)) best = &candidate;
  }
  if (best != nullptr) found.schema = best->schema;
  return found;
}

void parse_old_node(std::string_view message, ChakraSchema schema, const WireSource& source,
                    ChakraTrace& trace) {
  OldNodeParser(schema, source, trace).node(message);
}

void parse_old_metadata(std::string_view message, const WireSource& source, ChakraTrace& trace) {
  OldNodeParser(ChakraSchema::v0_0_3_unsigned, source, trace).metadata(message);
}

}  // namespace armilla
