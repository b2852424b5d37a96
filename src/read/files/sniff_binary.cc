#include "read/files/sniff_binary.h"

#include <array>
#include <string>

#include "read/encoding/gzip.h"
#include "read/encoding/wire_reader.h"
#include "read/onnx/wire.h"

namespace armilla {
namespace {

using Kind = FileKind;

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  Kind kind;
};
// Magic numbers at the beginning of files.
constexpr std::array kSignatures = {
    Signature{0, "PK\x03\x04", Kind::zip},
    Signature{0, "\x80\x02", Kind::pickle},
    Signature{0, "\x80\x03", Kind::pickle},
    Signature{0, "\x80\x04", Kind::pickle},
    Signature{0, "\x80\x05", Kind::pickle},
    Signature{0, "\x89HDF", Kind::hdf5},
    Signature{4, "TFL3", Kind::tflite},
    Signature{4, "ORTM", Kind::onnxruntime},
    Signature{0, "GGUF", Kind::gguf},
    Signature{0, "SQLite format 3", Kind::sqlite},
    Signature{0, "\x93NUMPY", Kind::numpy},
    Signature{0, "BZh", Kind::bzip2},
    Signature{0,
              "\xfd"
              "7zXZ",
              Kind::xz},
    Signature{0, "\x28\xb5\x2f\xfd", Kind::zstd},
    Signature{0, "\x89PNG", Kind::picture},
    Signature{0, "\xff\xd8\xff", Kind::picture},
    Signature{0, "%PDF", Kind::pdf},
    Signature{0,
              "\x7f"
              "ELF",
              Kind::elf},
};

// A little-endian length of a JSON header.
bool is_safetensors(std::string_view text) {
  constexpr std::size_t kHeader = 8;
  return text.size() > kHeader + 1 && text[6] == 0 && text[7] == 0 && text[kHeader] == '{' &&
         (text[kHeader + 1] == '"' || text[kHeader + 1] == '}' || text[kHeader + 1] == ' ');
}

const std::string kNoName;

// Whether `message` is one whole protobuf message whose fields all have `known` numbers and wire types.
template <class Known>
bool is_message(std::string_view message, const Known& known) {
  const WireSource source{message.data(), kNoName};
  try {
    WireReader reader(message, source);
    while (reader.next())
      if (!known(reader.tag(), reader.type())) return false;
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Of a ModelProto (onnx.proto3).
bool is_onnx_field(std::uint32_t tag, WireReader::Type type) {
  const bool number = tag == 1 || tag == 5;
  const bool bytes = (tag >= 2 && tag <= 8 && tag != 5) || tag == 14 || tag == 20 || tag == 25 || tag == 26;
  return number ? type == WireReader::Type::varint : bytes && type == WireReader::Type::bytes;
}

bool is_onnx(std::string_view text) {
  return looks_like_onnx({text.data(), text.size()}) && is_message(text, is_onnx_field);
}

// Of the nodes and the metadata of any schema.
bool is_chakra_field(std::uint32_t tag, WireReader::Type) {
  constexpr std::uint32_t kHighest = 31;
  return tag <= kHighest;
}

bool has_name(std::string_view message) {
  bool found = false;
  is_message(message, [&](std::uint32_t tag, WireReader::Type type) {
    found |= tag <= 2 && type == WireReader::Type::bytes;
    return true;
  });
  return found;
}

// Protobuf messages behind their lengths: Chakra files have no magic number, so their structure is all there
// is. A beginning that was cut may end within a record.
bool is_chakra(std::string_view text, bool whole) {
  constexpr int kInspected = 64;
  bool named = false;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int record = 0; at != end && record < kInspected; ++record) {
    std::uint64_t length = 0;
    try {
      length = protozero::decode_varint(&at, end);
    } catch (const protozero::exception&) {
      return !whole && named;
    }
    if (length > static_cast<std::uint64_t>(end - at)) return !whole && named;
    const std::string_view message(at, length);
    if (!is_message(message, is_chakra_field)) return false;
    named = named || has_name(message);
    at += length;
  }
  return named;
}

}  // namespace

FileKind sniff_signature(std::string_view beginning) {
  for (const Signature& signature : kSignatures) {
    if (beginning.size() >= signature.offset &&
        beginning.substr(signature.offset).starts_with(signature.bytes))
      return signature.kind;
  }
  return is_safetensors(beginning) ? Kind::safetensors : Kind::binary;
}

// ONNX first: its check is the stricter one.
FileKind sniff_protobuf(std::span<const char> bytes) {
  const std::string_view text(bytes.data(), bytes.size());
  if (is_onnx(text)) return Kind::onnx;
  if (is_chakra(text, true)) return Kind::chakra;
  return looks_like_onnx(bytes) ? Kind::onnx : Kind::binary;
}

FileKind sniff_packed(std::span<const char> bytes) {
  const std::string beginning = peek_gzip(bytes, std::size_t{1} << 16);
  if (beginning.empty() || is_gzip(beginning)) return Kind::gzip;
  const Kind inside = sniff(beginning);
  if (inside == Kind::chakra || inside == Kind::chakra_json) return inside;
  return is_chakra(beginning, false) ? Kind::chakra : Kind::gzip;
}

}  // namespace armilla
