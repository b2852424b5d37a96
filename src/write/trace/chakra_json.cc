#include "write/trace.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace armilla {
namespace {

using Kind = ChakraValueKind;

// By the scalar's field number: (field - 3) / 2.
constexpr std::array<std::string_view, 15> kKindNames = {
    "double",  "float",   "int32",    "int64",    "uint32", "uint64", "sint32", "sint64",
    "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",   "string", "bytes"};

std::string_view name_of(Kind kind) {
  return kKindNames[(static_cast<std::size_t>(kind) - 3) / 2];
}

// The next code point, or U+FFFD for a byte that begins none.
// UTF-8, with overlong forms, surrogates and numbers beyond U+10FFFF refused.
char32_t decode(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  const int more = first < 0x80 ? 0 : first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? 2 : 1;
  if (more == 0) return first;
  if (first < 0xc2 || first >= 0xf5) return 0xfffd;
  char32_t code = first & (0x3f >> more);
  std::size_t end = at;
  for (int i = 0; i < more; ++i, ++end) {
    if (end >= text.size() || (byte(end) & 0xc0) != 0x80) return 0xfffd;
    code = code << 6 | (byte(end) & 0x3f);
  }
  constexpr std::array<char32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
  if (code < kLeast[static_cast<std::size_t>(more)] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return 0xfffd;
  at = end;
  return code;
}

// ASCII only, as Python's json.dumps writes it; characters beyond the basic plane are two escapes.
void put_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = decode(text, at);
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    if (const std::size_t found = code < 128 ? kShort.find(static_cast<char>(code)) : kShort.npos;
        found != kShort.npos) {
      out += '\\';
      out += kLetters[found];
    } else if (code >= ' ' && code < 127) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      const auto rest = static_cast<std::uint32_t>(code - 0x10000);
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    }
  }
  out += '"';
}

void put_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  out += '"';
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += at + i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  out += '"';
}

// The fewest digits that name the number, as Python prints them.
template <class Real>
std::string shortest(Real value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const std::size_t sign = text[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(text.data() + sign, end, exponent);
  // Python switches to an exponent below 1e-4 and from 1e16 on.
  if (exponent < -4 || exponent >= 16)
    return fmt::format("{}e{}{:02}", text.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c != '.' && c != '-') digits += c;
  const std::string minus = std::signbit(value) ? "-" : "";
  if (exponent < 0) return minus + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  return minus + digits.substr(0, whole) + "." + (digits.size() > whole ? digits.substr(whole) : "0");
}

class ChakraJsonWriter {
 public:
  explicit ChakraJsonWriter(const ChakraTrace& trace) : trace_(trace) {}

  // Messages follow each other without a separator, as MessageToJson's results do in chakra_jsonizer's
  // output.
  std::string file() {
    if (trace_.has_metadata) {
      open('{');
      if (!trace_.version.empty()) put(key("version"), trace_.version);
      put_attributes(trace_.metadata);
      close('}');
    }
    for (std::size_t node = 0; node < trace_.size(); ++node) put_node(node);
    return std::move(out_);
  }

 private:
  std::string_view text(std::uint64_t index) const {
    return trace_.strings.at(static_cast<std::uint32_t>(index));
  }

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    is_first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!is_first_) new_line();
    out_ += bracket;
    is_first_ = false;
  }
  void new_line() {
    out_ += '\n';
    out_.append(2 * depth_, ' ');
  }
  // Begins an element of the list or object that is open.
  ChakraJsonWriter& element() {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    new_line();
    return *this;
  }
  ChakraJsonWriter& key(std::string_view name) {
    element();
    out_ += '"';
    out_ += name;
    out_ += "\": ";
    return *this;
  }
  static void put(ChakraJsonWriter& writer, std::string_view value) { put_json_text(writer.out_, value); }
  // protobuf's JSON has 64-bit integers as strings, because JavaScript's numbers end at 2^53.
  static void put(ChakraJsonWriter& writer, std::uint64_t value) {
    writer.out_ += fmt::format("\"{}\"", value);
  }

  void put_ids(std::string_view name, std::span<const std::uint64_t> ids) {
    if (ids.empty()) return;
    key(name).open('[');
    for (const std::uint64_t id : ids) put(element(), id);
    close(']');
  }

  void put_node(std::size_t node) {
    // Fields with their default value are left out, as in protobuf's JSON.
    open('{');
    if (trace_.id[node] != 0) put(key("id"), trace_.id[node]);
    if (!trace_.name_of_node(node).empty()) put(key("name"), trace_.name_of_node(node));
    if (trace_.type[node] != ChakraNodeType::invalid) put(key("type"), armilla::name_of(trace_.type[node]));
    put_ids("ctrlDeps", trace_.control_dependences(node));
    put_ids("dataDeps", trace_.data_dependences(node));
    if (trace_.start_micros[node] != 0) put(key("startTimeMicros"), trace_.start_micros[node]);
    if (trace_.duration_micros[node] != 0) put(key("durationMicros"), trace_.duration_micros[node]);
    put_io("inputs", trace_.inputs[node]);
    put_io("outputs", trace_.outputs[node]);
    put_attributes(trace_.attributes(node));
    close('}');
  }

  void put_io(std::string_view name, std::uint32_t index) {
    if (index == 0) return;
    const ChakraIo& io = trace_.ios[index];
    key(name).open('{');
    if (io.values != 0) put(key("values"), text(io.values));
    if (io.shapes != 0) put(key("shapes"), text(io.shapes));
    if (io.types != 0) put(key("types"), text(io.types));
    close('}');
  }

  void put_attributes(std::span<const ChakraAttribute> attributes) {
    if (attributes.empty()) return;
    key("attr").open('[');
    for (const ChakraAttribute& attribute : attributes) put_attribute(attribute);
    close(']');
  }

  void put_attribute(const ChakraAttribute& attribute) {
    element().open('{');
    if (attribute.name != 0) put(key("name"), text(attribute.name));
    if (attribute.doc != 0) put(key("docString"), text(attribute.doc));
    if (attribute.field != 0 && !attribute.is_list()) {
      key(fmt::format("{}Val", name_of(attribute.kind())));
      put_value(attribute.kind(), attribute.value);
    } else if (attribute.is_list()) {
      key(fmt::format("{}List", name_of(attribute.kind()))).open('{');
      if (attribute.count > 0) {
        key("values").open('[');
        for (std::uint32_t i = 0; i < attribute.count; ++i) {
          element();
          put_value(attribute.kind(), trace_.list_values[attribute.value + i]);
        }
        close(']');
      }
      close('}');
    }
    close('}');
  }

  void put_value(Kind kind, std::uint64_t value) {
    switch (kind) {
      case Kind::none:
        break;
      case Kind::real64:
        out_ += shortest(std::bit_cast<double>(value));
        break;
      case Kind::real32:
        out_ += shortest(static_cast<float>(std::bit_cast<double>(value)));
        break;
      case Kind::int32:
      case Kind::sint32:
      case Kind::sfixed32:
        out_ += fmt::format("{}", static_cast<std::int32_t>(value));
        break;
      case Kind::uint32:
      case Kind::fixed32:
        out_ += fmt::format("{}", static_cast<std::uint32_t>(value));
        break;
      case Kind::int64:
      case Kind::sint64:
      case Kind::sfixed64:
        out_ += fmt::format("\"{}\"", std::bit_cast<std::int64_t>(value));
        break;
      case Kind::uint64:
      case Kind::fixed64:
        put(*this, value);
        break;
      case Kind::boolean:
        out_ += value != 0 ? "true" : "false";
        break;
      case Kind::string:
        put(*this, text(value));
        break;
      case Kind::bytes:
        put_base64(out_, text(value));
        break;
    }
  }

  const ChakraTrace& trace_;
  std::string out_;
  std::size_t depth_ = 0;
  bool is_first_ = true;  // of the list or object that is open
};

}  // namespace

std::string write_chakra_json(const ChakraTrace& trace) {
  return ChakraJsonWriter(trace).file();
}

}  // namespace armilla
