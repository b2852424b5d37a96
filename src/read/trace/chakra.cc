#include "read/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/mapped_file.h"
#include "read/encoding/gzip.h"
#include "read/encoding/wire_reader.h"
#include "read/file_format.h"
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
// Pages of the file that are given back at a time.
constexpr std::size_t kReleasedBytes = 4 << 20;

// For small tables of what came before, not for attackers.
// Eight bytes at a time; attributes and names are compared after the hash.
std::size_t quick_hash(std::string_view text) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = text.size(), word = 0;
  const auto mix = [&] {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  };
  if (text.size() < sizeof word) {
    for (const char character : text) word = word << 8 | static_cast<unsigned char>(character);
    mix();
    return static_cast<std::size_t>(hash);
  }
  const char* at = text.data();
  const char* last = at + text.size() - sizeof word;  // may overlap with the word before
  for (; at < last; at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    mix();
  }
  std::memcpy(&word, last, sizeof word);
  mix();
  return static_cast<std::size_t>(hash);
}

// sint32 and sint64: the sign is in the lowest bit.
std::uint64_t zigzag(std::uint64_t value) {
  return (value >> 1) ^ (~(value & 1) + 1);
}

// The record that starts at `at`, which moves behind it.
// A Chakra file is a sequence of protobuf messages, each behind its length as a varint.
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

  // GlobalMetadata: 1 version, then attributes, whose field depends on the schema.
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

  // Node: 1 id, 2 name, 3 type, 4 ctrl_deps, 5 data_deps, 6 start_time_micros, 7 duration_micros, 8 inputs, 9
  // outputs, 10 attr. Columns are appended together at the end, so a damaged node leaves none behind.
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
          trace_.attribute.push_back(node_attribute(in.bytes(), attributes++));
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
    trace_.first_data_dependence.push_back(trace_.end_of(trace_.data_dependence));
    trace_.first_control_dependence.push_back(trace_.end_of(trace_.control_dependence));
    trace_.first_attribute.push_back(trace_.end_of(trace_.attribute));
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

  // Names of nodes repeat soon or never. A hash tells those that never do, without looking at other names,
  // which are far away by now.
  std::uint32_t node_name(std::string_view text) {
    if (text.empty()) return 0;
    const std::size_t hash = quick_hash(text);
    const auto check = static_cast<std::uint32_t>(hash >> 32);
    RecentName& recent = recent_names_[hash % recent_names_.size()];
    if (recent.name != 0 && recent.check == check && trace_.strings.at(recent.name) == text)
      return recent.name;
    check_room(text);
    recent = {check, trace_.strings.append(text)};
    return recent.name;
  }

  // The k-th attribute of one node usually has the name of the k-th of the node before.
  std::uint32_t attribute_name(std::string_view text, std::size_t position) {
    if (position >= usual_names_.size()) return intern(text);
    std::uint32_t& usual = usual_names_[position];
    if (trace_.strings.at(usual) != text) usual = intern(text);
    return usual;
  }

  // Types 8 to 10 (storage) are not part of Chakra 1.0.0.
  ChakraNodeType node_type(std::uint64_t type, std::uint64_t id, std::string_view name,
                           std::string_view message) {
    static constexpr std::array<std::string_view, 3> kStorage = {" (STORAGE_NODE)", " (BATCH_NODE)",
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

  // Attributes repeat from node to node, byte by byte; those with a list are parsed every time.
  ChakraAttribute node_attribute(std::string_view message, std::size_t position) {
    if (message.size() > RecentAttribute::kBytes) return attribute(message, position);
    RecentAttribute& recent = recent_attributes_[quick_hash(message) % recent_attributes_.size()];
    if (recent.filled && std::string_view(recent.message, recent.size) == message) return recent.parsed;
    const ChakraAttribute parsed = attribute(message, position);
    if (parsed.is_list()) return parsed;
    message.copy(recent.message, message.size());
    recent.size = static_cast<std::uint8_t>(message.size());
    recent.filled = true;
    return recent.parsed = parsed;
  }

  // AttributeProto: 1 name, 2 doc_string, 3 to 32 the value, scalars at odd numbers and their lists one
  // above.
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

  // Values of every kind are kept as 64 bits: integers sign-extended, floats as the double they equal.
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

  struct RecentName {
    std::uint32_t check = 0;  // another part of the hash
    std::uint32_t name = 0;   // into strings; 0: none
  };
  struct RecentAttribute {
    static constexpr std::size_t kBytes = 38;
    ChakraAttribute parsed;
    bool filled = false;
    std::uint8_t size = 0;
    char message[kBytes] = {};
  };

  const WireSource& source_;
  ChakraTrace& trace_;
  std::array<std::uint32_t, 16> usual_names_{};
  std::array<RecentName, 4096> recent_names_{};           // by hash
  std::array<RecentAttribute, 512> recent_attributes_{};  // by hash
};

// Room for a file `factor` times as long as what was read of it, at most `most` of each thing.
// The number of nodes is not in the file: it is estimated from the first records.
void reserve(ChakraTrace& trace, double factor, std::size_t most) {
  const auto grow = [&](auto&... columns) {
    (columns.reserve(std::min(most, static_cast<std::size_t>(static_cast<double>(columns.size()) * factor))),
     ...);
  };
  grow(trace.id, trace.name, trace.type, trace.start_micros, trace.duration_micros, trace.inputs,
       trace.outputs, trace.first_data_dependence, trace.first_control_dependence, trace.first_attribute,
       trace.data_dependence, trace.control_dependence, trace.attribute);
}

// The records of a file one after the other, each checked to be whole.
class Records {
 public:
  Records(std::span<const char> bytes, const WireSource& source, const MappedFile* file)
      : begin_(bytes.data()),
        at_(begin_),
        end_(begin_ + bytes.size()),
        released_(begin_),
        source_(source),
        file_(file) {}

  bool at_end() const { return at_ == end_; }
  std::size_t count() const { return count_; }
  std::size_t bytes_read() const { return static_cast<std::size_t>(at_ - begin_); }

  // Pages behind the reader are given back, so that a file of many gigabytes does not stay in memory beside
  // its trace.
  std::string_view next() {
    if (file_ != nullptr && static_cast<std::size_t>(at_ - released_) >= kReleasedBytes) {
      file_->release({released_, static_cast<std::size_t>(at_ - released_)});
      released_ = at_;
    }
    const std::string_view record = next_record(at_, end_, source_);
    // Only the first record may be empty: metadata without a version.
    if (record.empty() && count_ > 0) source_.fail(record.data() - 1, "a node without any field");
    ++count_;
    return record;
  }
  // A file that was cut short says so, whatever else is wrong with it.
  void check_rest() {
    while (!at_end()) next();
  }

 private:
  const char* begin_;
  const char* at_;
  const char* end_;
  const char* released_;
  const WireSource& source_;
  const MappedFile* file_;
  std::size_t count_ = 0;
};

// A copy of the reader looks ahead: the schema has to be known before the first record is parsed.
DetectedSchema schema_of(Records records, const WireSource& source) {
  std::vector<std::string_view> first;
  while (!records.at_end() && first.size() < kInspectedRecords) first.push_back(records.next());
  return detect_schema(first, source);
}

// `file`, when the bytes are its own, gives back what was read.
void read_records(std::span<const char> bytes, const std::string& name, const MappedFile* file,
                  ChakraTrace& trace) {
  const WireSource source{bytes.data(), name, kDamaged};
  const auto [schema, has_metadata] = schema_of(Records(bytes, source, nullptr), source);
  trace.schema = name_of(schema);
  trace.has_metadata = has_metadata;
  const bool old = schema < ChakraSchema::v0_0_4_attributes;
  Parser parser(source, trace);
  const auto parse = [&](std::string_view message, bool first) {
    if (first && has_metadata) {
      if (old) return parse_old_metadata(message, source, trace);
      return parser.metadata(message, schema == ChakraSchema::v0_0_4_attributes ? 1 : 2);
    }
    if (old) return parse_old_node(message, schema, source, trace);
    parser.node(message);
  };
  Records records(bytes, source, file);
  while (!records.at_end()) {
    if (records.count() == kInspectedRecords)
      reserve(trace, 1.06 * static_cast<double>(bytes.size()) / static_cast<double>(records.bytes_read()),
              bytes.size() / kUsualNodeBytes + 1);
    const bool first = records.count() == 0;
    const std::string_view message = records.next();
    try {
      parse(message, first);
    } catch (const Error&) {
      // The rest is only measured: a file that was cut short explains more than what is wrong with one
      // record.
      records.check_rest();
      throw;
    }
  }
}

void read_any(std::span<const char> bytes, const std::string& name, const MappedFile* file,
              ChakraTrace& trace) {
  if (bytes.empty())
    throw Error(name, "the file is empty", "a Chakra trace holds at least one record; was it written fully?");
  trace.clear();
  if (is_gzip(bytes)) {
    const std::string unpacked = unpack_gzip(bytes, name);
    if (is_gzip(unpacked)) throw Error(name, "is packed twice", "unpack it once with gunzip");
    read_any(unpacked, name + " (unpacked)", nullptr, trace);
  } else if (is_chakra_json(bytes)) {
    trace = read_chakra_json({bytes.data(), bytes.size()}, name);
  } else {
    read_records(bytes, name, file, trace);
  }
  trace.source = name;
}

}  // namespace

ChakraTrace read_chakra(std::span<const char> bytes, const std::string& name) {
  ChakraTrace trace;
  read_any(bytes, name, nullptr, trace);
  return trace;
}

ChakraTrace read_chakra_file(const std::string& path) {
  ChakraTrace trace;
  read_chakra_file(path, trace);
  return trace;
}

void read_chakra_file(const std::string& path, ChakraTrace& trace) {
  const MappedFile file(path);
  const FileKind kind = sniff(file.bytes());
  if (kind != FileKind::chakra && kind < FileKind::json && kind != FileKind::chakra_json &&
      kind != FileKind::gzip && kind != FileKind::onnx)
    throw wrong_kind(path, kind, file_format(FileKind::chakra).what);
  read_any(file.bytes(), path, &file, trace);
}

}  // namespace armilla
