#include "read/trace/chakra_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/single_precision.h"
#include "base/suggest.h"
#include "base/text.h"

namespace armilla {
namespace {

using Json = nlohmann::json;
using Kind = ChakraValueKind;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Only computed for messages, so counting lines from the beginning is cheap enough.
std::string position_in_text(std::string_view text, std::size_t at, const std::string& name) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos wraps to 0
  return fmt::format("{}:{}:{}", name, line, before.size() - line_start + 1);
}

// "ctrlDeps" and "ctrl_deps" are the same key to protobuf.
std::string snake_case(std::string_view key) {
  std::string result;
  for (const char c : key) {
    if (c >= 'A' && c <= 'Z') result += '_';
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

struct ValueKey {
  std::string_view key;  // without "_val", "_list"
  Kind kind;
};
constexpr std::array<ValueKey, 15> kValueKeys = {{{"double", Kind::real64},
                                                  {"float", Kind::real32},
                                                  {"int32", Kind::int32},
                                                  {"int64", Kind::int64},
                                                  {"uint32", Kind::uint32},
                                                  {"uint64", Kind::uint64},
                                                  {"sint32", Kind::sint32},
                                                  {"sint64", Kind::sint64},
                                                  {"fixed32", Kind::fixed32},
                                                  {"fixed64", Kind::fixed64},
                                                  {"sfixed32", Kind::sfixed32},
                                                  {"sfixed64", Kind::sfixed64},
                                                  {"bool", Kind::boolean},
                                                  {"string", Kind::string},
                                                  {"bytes", Kind::bytes}}};

// Least and most of a whole-number kind.
struct Range {
  std::int64_t low;
  std::uint64_t high;
};
Range range_of(Kind kind) {
  switch (kind) {
    case Kind::int32:
    case Kind::sint32:
    case Kind::sfixed32:
      return {INT32_MIN, INT32_MAX};
    case Kind::uint32:
    case Kind::fixed32:
      return {0, UINT32_MAX};
    case Kind::uint64:
    case Kind::fixed64:
      return {0, UINT64_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

// Both alphabets of RFC 4648; padding is not needed to know the length.
std::optional<std::string> from_base64(std::string_view text) {
  std::string result;
  unsigned bits = 0, held = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    unsigned digit = 0;
    if (c >= 'A' && c <= 'Z') {
      digit = static_cast<unsigned>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      digit = static_cast<unsigned>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0') + 52;
    } else if (c == '+' || c == '-') {
      digit = 62;
    } else if (c == '/' || c == '_') {
      digit = 63;
    } else {
      return std::nullopt;
    }
    bits = bits << 6 | digit;
    held += 6;
    if (held >= 8) result += static_cast<char>(bits >> (held -= 8) & 255);
  }
  return result;
}

// Reads one object at a time into a trace.
class ObjectReader {
 public:
  ObjectReader(ChakraTrace& trace, std::string_view text_of_file, const std::string& name)
      : trace_(trace), text_(text_of_file), name_(name) {}

  // What messages refer to: the object that starts here.
  void at(std::size_t offset) { offset_ = offset; }
  std::string where() const {
    const std::string start = position_in_text(text_, offset_, name_);
    return wrapped_ == 0 ? start : fmt::format("{}: workload_graph[{}]", start, wrapped_ - 1);
  }

  void metadata(const Json& object) {
    for (const auto& [key, value] : object.items()) {
      if (key == "version") {
        trace_.version = text(value, key);
      } else {
        attributes(value, trace_.metadata);
      }
    }
  }

  // Keys may come in any order; a node is made first and filled in.
  void node(const Json& object) {
    trace_.add_node(0, ChakraNodeType::invalid, "");
    for (const auto& [spelled, value] : object.items()) {
      const std::string key = snake_case(spelled);
      if (key == "id") {
        trace_.id.back() = number(value, Kind::uint64, key);
      } else if (key == "name") {
        trace_.name.back() = trace_.strings.add(text(value, key));
      } else if (key == "type") {
        trace_.type.back() = node_type(value, key);
      } else if (key == "ctrl_deps") {
        for (const Json& of : list(value, key)) trace_.add_control_dependence(number(of, Kind::uint64, key));
      } else if (key == "data_deps") {
        for (const Json& of : list(value, key)) trace_.add_data_dependence(number(of, Kind::uint64, key));
      } else if (key == "start_time_micros") {
        trace_.start_micros.back() = number(value, Kind::uint64, key);
      } else if (key == "duration_micros") {
        trace_.duration_micros.back() = number(value, Kind::uint64, key);
      } else if (key == "inputs") {
        trace_.inputs.back() = io(value, key);
      } else if (key == "outputs") {
        trace_.outputs.back() = io(value, key);
      } else if (key == "attr") {
        attributes(value, trace_.attribute);
        trace_.first_attribute.back() = trace_.end_of(trace_.attribute);
      } else {
        constexpr std::array<std::string_view, 10> kKeys = {
            "id",     "name",    "type", "ctrlDeps", "dataDeps", "startTimeMicros", "durationMicros",
            "inputs", "outputs", "attr"};
        throw Error(where(), fmt::format("a node has no key '{}'", spelled), suggest(spelled, kKeys));
      }
    }
  }

  // Of the feeder's form.
  // Chakra's feeder reads this form; keys that it does not know are attributes.
  void wrapped_node(const Json& object) {
    ++wrapped_;
    if (!object.is_object()) throw Error(where(), "a node of 'workload_graph' is not an object");
    trace_.add_node(0, ChakraNodeType::invalid, "");
    for (const char* key : {"Id", "NodeType"}) {
      if (!object.contains(key)) throw Error(where(), fmt::format("a node has no '{}'", key));
    }
    for (const auto& [spelled, value] : object.items()) {
      const std::string key = spelled == "ctrlDeps" || spelled == "dataDeps" ? snake_case(spelled) : spelled;
      if (key == "Id") {
        trace_.id.back() = number(value, Kind::uint64, key);
      } else if (key == "Name") {
        trace_.name.back() = trace_.strings.add(text(value, key));
      } else if (key == "NodeType") {
        trace_.type.back() = node_type(value, key);
      } else if (key == "runtime") {
        run_time(value);
      } else if (key == "data_deps") {
        for (const Json& of : list(value, key)) trace_.add_data_dependence(number(of, Kind::uint64, key));
      } else if (key == "ctrl_deps") {
        for (const Json& of : list(value, key)) trace_.add_control_dependence(number(of, Kind::uint64, key));
      } else {
        plain_attribute(key, value);
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& key, std::string_view expected) const {
    throw Error(where(), fmt::format("'{}' is not {}", key, expected));
  }

  std::string text(const Json& value, const std::string& key) const {
    if (!value.is_string()) refuse(key, "a string");
    return value.get<std::string>();
  }

  const Json& list(const Json& value, const std::string& key) const {
    if (!value.is_array()) refuse(key, "a list");
    return value;
  }

  // A whole number, or a string of one; its 64 bits.
  // protobuf's JSON writes 64-bit integers as strings, other tools as floats: all three are taken.
  std::uint64_t number(const Json& value, Kind kind, const std::string& key) const {
    const Range range = range_of(kind);
    bool fits = false;
    std::uint64_t bits = 0;
    const auto take = [&](bool negative, std::uint64_t number_bits) {
      bits = number_bits;
      fits = negative ? std::bit_cast<std::int64_t>(bits) >= range.low : bits <= range.high;
    };
    if (value.is_number_unsigned()) {
      take(false, value.get<std::uint64_t>());
    } else if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      take(number < 0, std::bit_cast<std::uint64_t>(number));
    } else if (value.is_number_float()) {
      const auto real = value.get<double>();
      if (real == std::trunc(real) && std::fabs(real) < 0x1p63)
        take(real < 0, std::bit_cast<std::uint64_t>(static_cast<std::int64_t>(real)));
    } else if (value.is_string()) {
      const auto& digits = value.get_ref<const std::string&>();
      if (const auto positive = number_from<std::uint64_t>(digits)) {
        take(false, *positive);
      } else if (const auto negative = number_from<std::int64_t>(digits)) {
        take(true, std::bit_cast<std::uint64_t>(*negative));
      }
    }
    if (!fits)
      refuse(key, kind == Kind::uint64 ? "a whole number from 0" : "a whole number in the range of its type");
    return bits;
  }

  // protobuf spells what JSON cannot.
  double real(const Json& value, const std::string& key) const {
    if (value.is_number()) return value.get<double>();
    const std::string word = value.is_string() ? value.get<std::string>() : "";
    if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (word == "Infinity") return std::numeric_limits<double>::infinity();
    if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
    const auto result = number_from<double>(word);
    if (!result) refuse(key, "a number");
    return *result;
  }

  ChakraNodeType node_type(const Json& value, const std::string& key) const {
    std::vector<std::string_view> names;
    for (std::uint8_t type = 0; type <= static_cast<std::uint8_t>(ChakraNodeType::collective); ++type)
      names.push_back(name_of(static_cast<ChakraNodeType>(type)));
    if (value.is_string()) {
      const auto& word = value.get_ref<const std::string&>();
      const auto found = std::find(names.begin(), names.end(), word);
      if (found != names.end()) return static_cast<ChakraNodeType>(found - names.begin());
      throw Error(where(), fmt::format("unknown node type '{}'", word), suggest(word, names));
    }
    const std::uint64_t type = number(value, Kind::uint64, key);
    if (type >= names.size())
      throw Error(where(), fmt::format("unknown node type {}", type),
                  "Chakra 1.0.0 has the types 0 (INVALID_NODE) to 7 (COMM_COLL_NODE)");
    return static_cast<ChakraNodeType>(type);
  }

  std::uint32_t io(const Json& value, const std::string& key) {
    if (!value.is_object()) refuse(key, "an object");
    ChakraIo found;
    for (const auto& [part, content] : value.items()) {
      std::uint32_t* index = part == "values"   ? &found.values
                             : part == "shapes" ? &found.shapes
                             : part == "types"  ? &found.types
                                                : nullptr;
      if (index == nullptr)
        throw Error(where(), fmt::format("'{}' has no key '{}'", key, part), "known: values, shapes, types");
      *index = trace_.strings.add(text(content, part));
    }
    trace_.ios.push_back(found);
    return static_cast<std::uint32_t>(trace_.ios.size() - 1);
  }

  // The 64 bits in which ChakraTrace keeps values of every kind.
  std::uint64_t value_bits(const Json& value, Kind kind, const std::string& key) {
    switch (kind) {
      case Kind::real64:
        return std::bit_cast<std::uint64_t>(real(value, key));
      case Kind::real32:
        return std::bit_cast<std::uint64_t>(single_precision(real(value, key)));
      case Kind::boolean:
        if (!value.is_boolean()) refuse(key, "true or false");
        return value.get<bool>() ? 1 : 0;
      case Kind::string:
        return trace_.strings.add(text(value, key));
      case Kind::bytes: {
        const std::optional<std::string> raw = from_base64(text(value, key));
        if (!raw) refuse(key, "base64");
        return trace_.strings.add(*raw);
      }
      default:
        return number(value, kind, key);
    }
  }

  void attributes(const Json& values, std::vector<ChakraAttribute>& into) {
    for (const Json& object : list(values, "attr")) {
      if (!object.is_object()) refuse("attr", "a list of objects");
      into.push_back(attribute(object));
    }
  }

  ChakraAttribute attribute(const Json& object) {
    ChakraAttribute found;
    for (const auto& [spelled, value] : object.items()) {
      const std::string key = snake_case(spelled);
      if (key == "name") {
        found.name = trace_.strings.add(text(value, spelled));
      } else if (key == "doc_string") {
        found.doc = trace_.strings.add(text(value, spelled));
      } else {
        set_value(found, spelled, key, value);
      }
    }
    return found;
  }

  void set_value(ChakraAttribute& found, const std::string& spelled, const std::string& key,
                 const Json& value) {
    // "int64Val" and "int64List" after snake_case: "int64_val", "int64_list".
    const bool is_list = key.ends_with("_list");
    const std::string_view stem = std::string_view(key).substr(0, key.rfind('_'));
    const auto known = std::find_if(kValueKeys.begin(), kValueKeys.end(),
                                    [&](const ValueKey& candidate) { return candidate.key == stem; });
    if (known == kValueKeys.end() || !(is_list || key.ends_with("_val"))) {
      constexpr std::array<std::string_view, 12> kKeys = {"name",      "docString", "int32Val",   "int64Val",
                                                          "uint32Val", "uint64Val", "doubleVal",  "floatVal",
                                                          "stringVal", "boolVal",   "stringList", "boolList"};
      throw Error(where(), fmt::format("an attribute has no key '{}'", spelled), suggest(spelled, kKeys));
    }
    found.field = static_cast<std::uint8_t>(static_cast<unsigned>(known->kind) + (is_list ? 1 : 0));
    if (!is_list) {
      found.value = value_bits(value, known->kind, spelled);
      return;
    }
    if (!value.is_object()) refuse(spelled, "an object with a list 'values'");
    found.value = trace_.list_values.size();
    for (const auto& [part, elements] : value.items()) {
      if (part != "values")
        throw Error(where(), fmt::format("'{}' has no key '{}'", spelled, part), "known: values");
      for (const Json& element : list(elements, part))
        trace_.list_values.push_back(value_bits(element, known->kind, spelled));
    }
    found.count = static_cast<std::uint32_t>(trace_.list_values.size() - found.value);
  }

  // Microseconds with a fraction keep it in an attribute of our own.
  void run_time(const Json& value) {
    const double micros = real(value, "runtime");
    if (!(micros >= 0) || micros > 1e18) refuse("runtime", "a time in microseconds");
    trace_.duration_micros.back() = static_cast<std::uint64_t>(micros);
    if (micros != std::trunc(micros)) trace_.add_real(kDurationNs, Kind::real64, micros * 1000);
  }

  // The kind of value follows from its JSON type.
  void plain_attribute(const std::string& key, const Json& value) {
    if (value.is_boolean()) {
      trace_.add_integer(key, Kind::boolean, value.get<bool>() ? 1 : 0);
    } else if (value.is_number_float()) {
      trace_.add_real(key, Kind::real64, value.get<double>());
    } else if (value.is_number()) {
      trace_.add_integer(key, Kind::int64, std::bit_cast<std::int64_t>(number(value, Kind::int64, key)));
    } else if (value.is_string()) {
      trace_.add_text(key, value.get<std::string>());
    } else if (value.is_array() && !value.empty() &&
               std::all_of(value.begin(), value.end(), [](const Json& e) { return e.is_boolean(); })) {
      trace_.add_booleans(key, {});
      trace_.attribute.back().count = static_cast<std::uint32_t>(value.size());
      for (const Json& element : value) trace_.list_values.push_back(element.get<bool>() ? 1 : 0);
    } else {
      refuse(key, "a number, a string or a list of booleans");
    }
  }

  ChakraTrace& trace_;
  std::string_view text_;
  const std::string& name_;
  std::size_t offset_ = 0;
  std::size_t wrapped_ = 0;  // nodes of the feeder's form so far
};

// Where the object that starts at `from` ends; the end of the text when it does not.
// Objects follow each other without a separator, so each one's end is found before it is parsed: brackets
// outside of strings.
std::size_t end_of_object(std::string_view text, std::size_t from) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return text.size();
}

// Parsed piece by piece: memory is that of one node, and errors have a position.
Json parse(std::string_view text, std::size_t from, std::size_t to, const std::string& name) {
  const std::string_view part = text.substr(from, to - from);
  try {
    return Json::parse(part.begin(), part.end());
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::min(from + (error.byte > 0 ? error.byte - 1 : 0), text.size());
    throw Error(position_in_text(text, at, name), "is not valid JSON here",
                at == text.size() ? "the file ends too early" : "");
  } catch (const Json::exception&) {  // a number beyond all range
    throw Error(position_in_text(text, from, name), "the object that starts here holds an impossible value");
  }
}

// The first object is metadata if it has nothing that only nodes have.
bool is_metadata_object(const Json& object) {
  return std::all_of(object.items().begin(), object.items().end(),
                     [](const auto& item) { return item.key() == "version" || item.key() == "attr"; });
}

}  // namespace

// A binary record of 123 bytes starts with '{', too, but no key can follow there.
bool is_chakra_json(std::span<const char> beginning) {
  std::size_t at = 0;
  const auto skip_space = [&] {
    while (at < beginning.size() && is_space(beginning[at])) ++at;
  };
  skip_space();
  if (at == beginning.size() || beginning[at] != '{') return false;
  ++at;
  skip_space();
  return at < beginning.size() && (beginning[at] == '"' || beginning[at] == '}');
}

ChakraTrace read_chakra_json(std::string_view text, const std::string& name) {
  ChakraTrace trace;
  trace.schema = "json";
  trace.has_metadata = false;
  ObjectReader reader(trace, text, name);
  bool first = true, complete = false;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    if (text[at] != '{') throw Error(position_in_text(text, at, name), "an object, '{', belongs here");
    if (complete)
      throw Error(position_in_text(text, at, name), "something follows the object with 'workload_graph'");
    const std::size_t end = end_of_object(text, at);
    const Json object = parse(text, at, end, name);
    reader.at(at);
    complete = first && object.contains("workload_graph");
    if (complete) {
      if (!object["workload_graph"].is_array()) throw Error(reader.where(), "'workload_graph' is not a list");
      for (const Json& node : object["workload_graph"]) reader.wrapped_node(node);
    } else if (first && is_metadata_object(object)) {
      trace.has_metadata = true;
      reader.metadata(object);
    } else {
      reader.node(object);
    }
    first = false;
    at = end;
  }
  return trace;
}

}  // namespace armilla
