#include "read/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "read/file_format.h"
#include "read/files/gzip.h"
#include "read/files/wire_reader.h"
#include "read/trace/chakra_json.h"
#include "read/trace/chakra_schema.h"

namespace armilla {
namespace {

using Type = WireReader::Type;

constexpr const char* kDamaged = "the file is damaged, was cut short, or is not a Chakra trace";
// Enough to tell the schemas apart.
constexpr std::size_t kInspectedRecords = 1024;
// For reserving memory only, which tiny records must not multiply.
constexpr std::size_t kUsualNodeBytes = 12;
constexpr std::size_t kMaxStrings = UINT32_MAX - 1;

std::uint64_t zigzag(std::uint64_t value) {
  return (value >> 1) ^ (~(value & 1) + 1);
}

// The record that starts at `at`, which moves behind it.
std::string_view next_record(const char*& at, const char* end, const WireSource& source) {
  const char* start = at;
  std::uint64_t size = 0;
  try {
    size = protozero::decode_varint(&at, end);
  } catch (const protozero::exception&) {
    source.fail(start, "no record starts here: its length is cut short or has more than 64 bits");
  }
  const auto left = static_cast<std::uint64_t>(end - at);
  if (size > left)
    source.fail(start, fmt::format("a record of {} bytes starts here, but only {} are left", size, left));
  const std::string_view record(at, static_cast<std::size_t>(size));
  at += size;
  return record;
}

// Parses the current schema.
class Parser {
 public:
  Parser(const WireSource& source, ChakraTrace& trace) : source_(source), trace_(trace) {}

  void metadata(std::string_view message, std::uint32_t attribute_field) {
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() == attribute_field) {
        trace_.metadata.push_back(attribute(in.bytes(), 0));
      } else if (in.tag() == 1) {
        trace_.version = in.bytes();
      }
    }
  }

  void node(std::string_view message) {
    std::uint64_t id = 0, start = 0, duration = 0, type = 0;
    std::string_view name;
    std::uint32_t inputs = 0, outputs = 0;
    std::size_t attributes = 0;
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          id = unsigned_number(in);
          break;
        case 2:
          name = in.bytes();
          break;
        case 3:
          type = unsigned_number(in);
          break;
        case 4:
          in.numbers([&](std::int64_t of) { trace_.control_dependence.push_back(std::bit_cast<Bits>(of)); });
          break;
        case 5:
          in.numbers([&](std::int64_t of) { trace_.data_dependence.push_back(std::bit_cast<Bits>(of)); });
          break;
        case 6:
          start = unsigned_number(in);
          break;
        case 7:
          duration = unsigned_number(in);
          break;
        case 8:
          inputs = io(in.bytes());
          break;
        case 9:
          outputs = io(in.bytes());
          break;
        case 10:
          trace_.attribute.push_back(attribute(in.bytes(), attributes++));
          break;
        default:
          break;
      }
    }
    trace_.id.push_back(id);
    trace_.name.push_back(node_name(name));
    trace_.type.push_back(node_type(type, id, name, message));
    trace_.start_micros.push_back(start);
    trace_.duration_micros.push_back(duration);
    trace_.inputs.push_back(inputs);
    trace_.outputs.push_back(outputs);
    trace_.first_data_dependence.push_back(trace_.data_dependence.size());
    trace_.first_control_dependence.push_back(trace_.control_dependence.size());
    trace_.first_attribute.push_back(trace_.attribute.size());
  }

 private:
  using Bits = std::uint64_t;

  static std::uint64_t unsigned_number(WireReader& in) { return std::bit_cast<Bits>(in.number()); }

  void check_room(std::string_view text) const {
    if (trace_.strings.size() >= kMaxStrings)
      source_.fail(text.data(), "the file has more distinct strings than 32 bits can count");
  }

  std::uint32_t intern(std::string_view text) {
    check_room(text);
    return trace_.strings.add(text);
  }

  // Names of nodes repeat soon or never.
  std::uint32_t node_name(std::string_view text) {
    std::uint32_t& recent = recent_names_[std::hash<std::string_view>{}(text) % recent_names_.size()];
    if (trace_.strings.at(recent) == text) return recent;
    check_room(text);
    return recent = trace_.strings.append(text);
  }

  // The k-th attribute of one node usually has the name of the k-th of the node before.
  std::uint32_t attribute_name(std::string_view text, std::size_t position) {
    if (position >= usual_names_.size()) return intern(text);
    std::uint32_t& usual = usual_names_[position];
    if (trace_.strings.at(usual) != text) usual = intern(text);
    return usual;
  }

  ChakraNodeType node_type(std::uint64_t type, std::uint64_t id, std::string_view name,
                           std::string_view message) {
    constexpr std::array<std::string_view, 3> kStorage = {" (STORAGE_NODE)", " (BATCH_NODE)",
                                                          " (CHECKPOINT_NODE)"};
    if (type <= static_cast<std::uint64_t>(ChakraNodeType::collective))
      return static_cast<ChakraNodeType>(type);
    throw Error(
        fmt::format("{}: byte {}: node {} '{}'", source_.name, message.data() - source_.begin, id, name),
        fmt::format("unknown node type {}{}", type,
                    type >= 8 && type <= 10 ? kStorage[static_cast<std::size_t>(type - 8)] : ""),
        "Chakra 1.0.0 has the types 0 (INVALID_NODE) to 7 (COMM_COLL_NODE)");
  }

  std::uint32_t io(std::string_view message) {
    ChakraIo found;
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() == 1) found.values = intern(in.bytes());
      if (in.tag() == 2) found.shapes = intern(in.bytes());
      if (in.tag() == 3) found.types = intern(in.bytes());
    }
    trace_.ios.push_back(found);
    return static_cast<std::uint32_t>(trace_.ios.size() - 1);
  }

  ChakraAttribute attribute(std::string_view message, std::size_t position) {
    ChakraAttribute found;
    WireReader in(message, source_);
    while (in.next()) {
      const std::uint32_t tag = in.tag();
      if (tag == 1) {
        found.name = attribute_name(in.bytes(), position);
      } else if (tag == 2) {
        found.doc = intern(in.bytes());
      } else if (tag >= 3 && tag <= 32) {
        found.field = static_cast<std::uint8_t>(tag);
        if (found.is_list()) {
          list(in.bytes(), found);
        } else {
          found.value = scalar(in, found.kind());
        }
      }
    }
    return found;
  }

  std::uint64_t scalar(WireReader& in, ChakraValueKind kind) {
    switch (kind) {
      case ChakraValueKind::string:
      case ChakraValueKind::bytes:
        return intern(in.bytes());
      default:
        return number(in, kind);
    }
  }

  // Of any kind but text.
  static std::uint64_t number(WireReader& in, ChakraValueKind kind) {
    std::uint64_t bits = 0;
    each_number(
        in, kind, [&](std::uint64_t value) { bits = value; }, false);
    return bits;
  }

  template <class Each>
  static void each_number(WireReader& in, ChakraValueKind kind, Each each, bool packable) {
    const auto varints = [&](auto convert) {
      if (!packable) return each(convert(unsigned_number(in)));
      in.numbers([&](std::int64_t value) { each(convert(std::bit_cast<Bits>(value))); });
    };
    const auto fixed = [&](auto type, auto convert) {
      using T = decltype(type);
      if (!packable) return each(convert(in.fixed<T>()));
      in.reals<T>([&](T value) { each(convert(value)); });
    };
    const auto extend = [](std::int32_t value) { return static_cast<Bits>(std::int64_t{value}); };
    switch (kind) {
      case ChakraValueKind::real64:
      case ChakraValueKind::fixed64:
      case ChakraValueKind::sfixed64:
        return fixed(Bits{}, [](Bits value) { return value; });
      case ChakraValueKind::real32:
        return fixed(float{}, [](float value) { return std::bit_cast<Bits>(static_cast<double>(value)); });
      case ChakraValueKind::fixed32:
        return fixed(std::uint32_t{}, [](std::uint32_t value) { return Bits{value}; });
      case ChakraValueKind::sfixed32:
        return fixed(std::int32_t{}, extend);
      case ChakraValueKind::int32:
        return varints([&](Bits value) { return extend(static_cast<std::int32_t>(value)); });
      case ChakraValueKind::uint32:
        return varints([](Bits value) { return value & UINT32_MAX; });
      case ChakraValueKind::sint32:
        return varints(
            [&](Bits value) { return extend(static_cast<std::int32_t>(zigzag(value & UINT32_MAX))); });
      case ChakraValueKind::sint64:
        return varints(zigzag);
      case ChakraValueKind::boolean:
        return varints([](Bits value) { return Bits{value != 0}; });
      default:
        return varints([](Bits value) { return value; });
    }
  }

  void list(std::string_view message, ChakraAttribute& found) {
    std::vector<std::uint64_t>& values = trace_.list_values;
    const ChakraValueKind kind = found.kind();
    const bool text = kind == ChakraValueKind::string || kind == ChakraValueKind::bytes;
    found.value = values.size();
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() != 1) continue;
      if (text) {
        values.push_back(intern(in.bytes()));
      } else {
        each_number(
            in, kind, [&](std::uint64_t value) { values.push_back(value); }, true);
      }
    }
    const std::size_t count = values.size() - found.value;
    if (count > UINT32_MAX) source_.fail(message.data(), "a list of more than 2^32 values");
    found.count = static_cast<std::uint32_t>(count);
  }

  const WireSource& source_;
  ChakraTrace& trace_;
  std::array<std::uint32_t, 16> usual_names_{};
  std::array<std::uint32_t, 4096> recent_names_{};  // by hash
};

void reserve(ChakraTrace& trace, std::size_t nodes) {
  trace.id.reserve(nodes);
  trace.name.reserve(nodes);
  trace.type.reserve(nodes);
  trace.start_micros.reserve(nodes);
  trace.duration_micros.reserve(nodes);
  trace.inputs.reserve(nodes);
  trace.outputs.reserve(nodes);
  trace.first_data_dependence.reserve(nodes + 1);
  trace.first_control_dependence.reserve(nodes + 1);
  trace.first_attribute.reserve(nodes + 1);
  trace.data_dependence.reserve(nodes);
}

// Counting first is cheap next to parsing, and finds a truncated file before anything is built from it.
std::size_t count_records(const char* at, const char* end, const WireSource& source,
                          std::vector<std::string_view>& first) {
  std::size_t records = 0;
  for (; at != end; ++records) {
    const std::string_view record = next_record(at, end, source);
    if (record.empty() && records > 0) source.fail(record.data() - 1, "a node without any field");
    if (first.size() < kInspectedRecords) first.push_back(record);
  }
  return records;
}

ChakraTrace read_records(std::span<const char> bytes, const std::string& name) {
  const WireSource source{bytes.data(), name, kDamaged};
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  std::vector<std::string_view> first;
  const std::size_t records = count_records(at, end, source, first);
  const auto [schema, has_metadata] = detect_schema(first, source);
  ChakraTrace trace;
  trace.schema = name_of(schema);
  trace.has_metadata = has_metadata;
  reserve(trace, std::min(records, bytes.size() / kUsualNodeBytes + 1));
  Parser parser(source, trace);
  const bool old = schema < ChakraSchema::v0_0_4_attributes;
  if (has_metadata) {
    const std::string_view message = next_record(at, end, source);
    if (old) {
      parse_old_metadata(message, source, trace);
    } else {
      parser.metadata(message, schema == ChakraSchema::v0_0_4_attributes ? 1 : 2);
    }
  }
  while (at != end) {
    const std::string_view message = next_record(at, end, source);
    if (old) {
      parse_old_node(message, schema, source, trace);
    } else {
      parser.node(message);
    }
  }
  return trace;
}

}  // namespace

ChakraTrace read_chakra(std::span<const char> bytes, const std::string& name) {
  if (bytes.empty())
    throw Error(name, "the file is empty", "a Chakra trace holds at least one record; was it written fully?");
  ChakraTrace trace;
  if (is_gzip(bytes)) {
    const std::string unpacked = unpack_gzip(bytes, name);
    if (is_gzip(unpacked)) throw Error(name, "is packed twice", "unpack it once with gunzip");
    trace = read_chakra(unpacked, name + " (unpacked)");
  } else {
    trace = is_chakra_json(bytes) ? read_chakra_json({bytes.data(), bytes.size()}, name)
                                  : read_records(bytes, name);
  }
  trace.source = name;
  return trace;
}

ChakraTrace read_chakra_file(const std::string& path) {
  const MappedFile file(path);
  const FileKind kind = sniff(file.bytes());
  if (kind != FileKind::chakra && kind < FileKind::json && kind != FileKind::chakra_json &&
      kind != FileKind::gzip && kind != FileKind::onnx)
    throw wrong_kind(path, kind, file_format(FileKind::chakra).what);
  return read_chakra(file.bytes(), path);
}

}  // namespace armilla
