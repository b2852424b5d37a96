#include "write/trace.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace armilla {
namespace {

using Kind = ChakraValueKind;

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 128) {
    out += static_cast<char>(value | 128);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

// Protobuf's key: field number and wire type in one varint.
void put_key(std::string& out, unsigned field, Wire wire) {
  put_varint(out, field << 3 | static_cast<unsigned>(wire));
}

void put_bytes(std::string& out, unsigned field, std::string_view content) {
  put_key(out, field, Wire::bytes);
  put_varint(out, content.size());
  out += content;
}

// As proto3 writers do: a field with its default value is left out.
void put_text(std::string& out, unsigned field, std::string_view text) {
  if (!text.empty()) put_bytes(out, field, text);
}

void put_number(std::string& out, unsigned field, std::uint64_t value) {
  if (value == 0) return;
  put_key(out, field, Wire::varint);
  put_varint(out, value);
}

template <class T>
void put_fixed(std::string& out, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof value);
}

Wire wire_of(Kind kind) {
  switch (kind) {
    case Kind::real64:
    case Kind::fixed64:
    case Kind::sfixed64:
      return Wire::fixed64;
    case Kind::real32:
    case Kind::fixed32:
    case Kind::sfixed32:
      return Wire::fixed32;
    case Kind::string:
    case Kind::bytes:
      return Wire::bytes;
    default:
      return Wire::varint;
  }
}

// sint32 and sint64 put the sign into the lowest bit, so that small negative numbers are short.
std::uint64_t zigzag(std::uint64_t value) {
  return (value << 1) ^ (~(value >> 63) + 1);
}

// A number without its key.
void put_value(std::string& out, Kind kind, std::uint64_t value) {
  switch (wire_of(kind)) {
    case Wire::fixed64:
      return put_fixed(out, value);
    case Wire::fixed32:
      if (kind == Kind::real32) return put_fixed(out, static_cast<float>(std::bit_cast<double>(value)));
      return put_fixed(out, static_cast<std::uint32_t>(value));
    default:
      return put_varint(out, kind == Kind::sint32 || kind == Kind::sint64 ? zigzag(value) : value);
  }
}

class Writer {
 public:
  explicit Writer(const ChakraTrace& trace) : trace_(trace) {}

  // A Chakra file is a sequence of messages, each with its length in front: GlobalMetadata, then Nodes.
  std::string file() {
    if (trace_.has_metadata) {
      put_text(record_, 1, trace_.version);
      for (const ChakraAttribute& attribute : trace_.metadata) put_attribute(2, attribute);
      end_record();
    }
    for (std::size_t node = 0; node < trace_.size(); ++node) {
      put_node(node);
      end_record();
    }
    return std::move(out_);
  }

 private:
  std::string_view text(std::uint64_t index) const {
    return trace_.strings.at(static_cast<std::uint32_t>(index));
  }

  void end_record() {
    put_varint(out_, record_.size());
    out_ += record_;
    record_.clear();
  }

  // Node: 1 id, 2 name, 3 type, 4 ctrl_deps, 5 data_deps, 6 start_time_micros, 7 duration_micros, 8 inputs, 9
  // outputs, 10 attr.
  void put_node(std::size_t node) {
    put_number(record_, 1, trace_.id[node]);
    put_text(record_, 2, trace_.name_of_node(node));
    put_number(record_, 3, static_cast<std::uint64_t>(trace_.type[node]));
    put_ids(4, trace_.control_dependences(node));
    put_ids(5, trace_.data_dependences(node));
    put_number(record_, 6, trace_.start_micros[node]);
    put_number(record_, 7, trace_.duration_micros[node]);
    put_io(8, trace_.inputs[node]);
    put_io(9, trace_.outputs[node]);
    for (const ChakraAttribute& attribute : trace_.attributes(node)) put_attribute(10, attribute);
  }

  // Repeated numbers are packed, which is proto3's default.
  void put_ids(unsigned field, std::span<const std::uint64_t> ids) {
    if (ids.empty()) return;
    part_.clear();
    for (const std::uint64_t id : ids) put_varint(part_, id);
    put_bytes(record_, field, part_);
  }

  // IOInfo: 1 values, 2 shapes, 3 types.
  void put_io(unsigned field, std::uint32_t index) {
    if (index == 0) return;
    const ChakraIo& io = trace_.ios[index];
    part_.clear();
    put_text(part_, 1, text(io.values));
    put_text(part_, 2, text(io.shapes));
    put_text(part_, 3, text(io.types));
    put_bytes(record_, field, part_);
  }

  // AttributeProto: 1 name, 2 doc_string, then one of its kinds: a scalar at an odd field number, its list
  // one above.
  void put_attribute(unsigned field, const ChakraAttribute& attribute) {
    part_.clear();
    put_text(part_, 1, text(attribute.name));
    put_text(part_, 2, text(attribute.doc));
    // The value is a oneof: it is written even where it is the default, as otherwise its kind would be lost.
    const Kind kind = attribute.kind();
    if (attribute.is_list()) {
      put_list(attribute);
    } else if (wire_of(kind) == Wire::bytes) {
      put_bytes(part_, attribute.field, text(attribute.value));
    } else if (attribute.field != 0) {
      put_key(part_, attribute.field, wire_of(kind));
      put_value(part_, kind, attribute.value);
    }
    put_bytes(record_, field, part_);
  }

  void put_list(const ChakraAttribute& attribute) {
    const auto values = std::span(trace_.list_values).subspan(attribute.value, attribute.count);
    const Kind kind = attribute.kind();
    list_.clear();
    if (wire_of(kind) == Wire::bytes) {
      for (const std::uint64_t value : values) put_bytes(list_, 1, text(value));
    } else if (!values.empty()) {
      packed_.clear();
      for (const std::uint64_t value : values) put_value(packed_, kind, value);
      put_bytes(list_, 1, packed_);
    }
    put_bytes(part_, attribute.field, list_);
  }

  const ChakraTrace& trace_;
  std::string out_;
  std::string record_, part_, list_, packed_;  // kept for their memory
};

}  // namespace

std::string write_chakra(const ChakraTrace& trace) {
  return Writer(trace).file();
}

std::string gzipped(std::string_view bytes) {
  // 16 added to the window's bits asks zlib for a gzip header; that has neither name nor date, so equal
  // traces give equal files.
  constexpr int kGzip = 16 + MAX_WBITS;
  constexpr std::size_t kPiece = 1 << 30;  // zlib counts in 32 bits
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("gzip", "zlib cannot be started");
  std::string packed;
  std::string piece(1 << 16, '\0');
  int state = Z_OK;
  while (state == Z_OK) {
    const auto input = static_cast<uInt>(std::min(bytes.size(), kPiece));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = input;
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = deflate(&stream, input == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    bytes.remove_prefix(input - stream.avail_in);
    packed.append(piece, 0, piece.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

}  // namespace armilla
