#include "ir/formats/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace armilla {
namespace {

constexpr std::array<std::string_view, 8> kTypeNames = {"INVALID_NODE",   "METADATA_NODE", "MEM_LOAD_NODE",
                                                        "MEM_STORE_NODE", "COMP_NODE",     "COMM_SEND_NODE",
                                                        "COMM_RECV_NODE", "COMM_COLL_NODE"};
constexpr std::array<std::string_view, 10> kCollectiveNames = {
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};

bool is_text(ChakraValueKind kind) {
  return kind == ChakraValueKind::string || kind == ChakraValueKind::bytes;
}
bool is_real(ChakraValueKind kind) {
  return kind == ChakraValueKind::real64 || kind == ChakraValueKind::real32;
}
// Whose values beyond INT64_MAX are large, not negative.
bool is_unsigned_64(ChakraValueKind kind) {
  return kind == ChakraValueKind::uint64 || kind == ChakraValueKind::fixed64;
}

std::string described(const ChakraTrace& trace, const ChakraAttribute& attribute) {
  return fmt::format("attribute '{}'", trace.strings.at(attribute.name));
}

[[noreturn]] void refuse(const ChakraTrace& trace, std::size_t node, const ChakraAttribute& attribute,
                         std::string_view expected) {
  const bool text = is_text(attribute.kind());
  const std::string_view found = attribute.field == 0 ? "has no value"
                                 : attribute.is_list()
                                     ? (text ? "is a list of texts" : "is a list of numbers")
                                 : text ? "is text"
                                        : "is a number";
  throw Error(location(trace, node),
              fmt::format("{} {}, where {} belongs", described(trace, attribute), found, expected));
}

ChakraAttribute& begin_attribute(ChakraTrace& trace, std::string_view name, unsigned field) {
  ChakraAttribute& added = trace.attribute.emplace_back(
      ChakraAttribute{trace.strings.add(name), 0, static_cast<std::uint8_t>(field), 0, 0});
  trace.first_attribute.back() = trace.end_of(trace.attribute);
  return added;
}

unsigned field_of(ChakraValueKind kind, bool list) {
  return static_cast<unsigned>(kind) + (list ? 1 : 0);
}

// Texts are numbers in a trace's own table: a copy has to be translated.
ChakraAttribute copied(ChakraTrace& to, const ChakraTrace& from, ChakraAttribute attribute) {
  attribute.name = to.strings.add(from.strings.at(attribute.name));
  attribute.doc = to.strings.add(from.strings.at(attribute.doc));
  const auto translated = [&](std::uint64_t value) -> std::uint64_t {
    return is_text(attribute.kind()) ? to.strings.add(from.strings.at(static_cast<std::uint32_t>(value)))
                                     : value;
  };
  if (!attribute.is_list()) {
    attribute.value = translated(attribute.value);
    return attribute;
  }
  const std::size_t first = to.list_values.size();
  for (std::uint32_t i = 0; i < attribute.count; ++i)
    to.list_values.push_back(translated(from.list_values[attribute.value + i]));
  attribute.value = first;
  return attribute;
}

bool same_attribute(const ChakraTrace& a, const ChakraAttribute& x, const ChakraTrace& b,
                    const ChakraAttribute& y) {
  if (x.field != y.field || x.count != y.count || a.strings.at(x.name) != b.strings.at(y.name) ||
      a.strings.at(x.doc) != b.strings.at(y.doc))
    return false;
  const auto same = [&](std::uint64_t u, std::uint64_t v) {
    return is_text(x.kind())
               ? a.strings.at(static_cast<std::uint32_t>(u)) == b.strings.at(static_cast<std::uint32_t>(v))
               : u == v;
  };
  if (!x.is_list()) return x.field == 0 || same(x.value, y.value);
  for (std::uint32_t i = 0; i < x.count; ++i) {
    if (!same(a.list_values[x.value + i], b.list_values[y.value + i])) return false;
  }
  return true;
}

bool same_attributes(const ChakraTrace& a, std::span<const ChakraAttribute> x, const ChakraTrace& b,
                     std::span<const ChakraAttribute> y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [&](const auto& u, const auto& v) { return same_attribute(a, u, b, v); });
}

bool same_io(const ChakraTrace& a, std::uint32_t x, const ChakraTrace& b, std::uint32_t y) {
  if (x == 0 || y == 0) return x == y;
  const ChakraIo& u = a.ios[x];
  const ChakraIo& v = b.ios[y];
  return a.strings.at(u.values) == b.strings.at(v.values) &&
         a.strings.at(u.shapes) == b.strings.at(v.shapes) && a.strings.at(u.types) == b.strings.at(v.types);
}

std::uint32_t copied_io(ChakraTrace& to, const ChakraTrace& from, std::uint32_t io) {
  if (io == 0) return 0;
  const auto text = [&](std::uint32_t index) { return to.strings.add(from.strings.at(index)); };
  to.ios.push_back({text(from.ios[io].values), text(from.ios[io].shapes), text(from.ios[io].types)});
  return static_cast<std::uint32_t>(to.ios.size() - 1);
}

}  // namespace

std::string_view name_of(ChakraNodeType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::string_view name_of(ChakraCollective collective) {
  return kCollectiveNames[static_cast<std::size_t>(collective)];
}

const ChakraAttribute* ChakraTrace::find(std::size_t node, std::string_view attribute_name) const {
  // A node has few attributes: comparing their names costs less than looking one up.
  for (const ChakraAttribute& candidate : attributes(node)) {
    if (strings.at(candidate.name) == attribute_name) return &candidate;
  }
  return nullptr;
}

void ChakraTrace::clear() {
  const auto empty = [](auto&... columns) { (columns.clear(), ...); };
  empty(source, schema, version, metadata, id, name, type, start_micros, duration_micros, data_dependence,
        control_dependence, attribute, inputs, outputs, list_values);
  has_metadata = true;
  first_data_dependence.assign(1, 0);
  first_control_dependence.assign(1, 0);
  first_attribute.assign(1, 0);
  ios.assign(1, {});
  strings = StringTable();
}

void ChakraTrace::refuse_size() const {
  throw Error(source, "more dependences or attributes than 32 bits can count", "split the trace");
}

std::size_t ChakraTrace::add_node(std::uint64_t node_id, ChakraNodeType node_type, std::string_view node_name,
                                  std::uint64_t duration) {
  id.push_back(node_id);
  name.push_back(strings.add(node_name));
  type.push_back(node_type);
  start_micros.push_back(0);
  duration_micros.push_back(duration);
  first_data_dependence.push_back(end_of(data_dependence));
  first_control_dependence.push_back(end_of(control_dependence));
  first_attribute.push_back(end_of(attribute));
  inputs.push_back(0);
  outputs.push_back(0);
  return id.size() - 1;
}

void ChakraTrace::add_data_dependence(std::uint64_t of) {
  data_dependence.push_back(of);
  first_data_dependence.back() = end_of(data_dependence);
}

void ChakraTrace::add_control_dependence(std::uint64_t of) {
  control_dependence.push_back(of);
  first_control_dependence.back() = end_of(control_dependence);
}

void ChakraTrace::add_integer(std::string_view attribute_name, ChakraValueKind kind, std::int64_t value) {
  begin_attribute(*this, attribute_name, field_of(kind, false)).value = std::bit_cast<std::uint64_t>(value);
}

void ChakraTrace::add_real(std::string_view attribute_name, ChakraValueKind kind, double value) {
  begin_attribute(*this, attribute_name, field_of(kind, false)).value = std::bit_cast<std::uint64_t>(value);
}

void ChakraTrace::add_text(std::string_view attribute_name, std::string_view value) {
  const std::uint32_t text = strings.add(value);
  begin_attribute(*this, attribute_name, field_of(ChakraValueKind::string, false)).value = text;
}

void ChakraTrace::add_booleans(std::string_view attribute_name, std::span<const bool> values) {
  ChakraAttribute& list = begin_attribute(*this, attribute_name, field_of(ChakraValueKind::boolean, true));
  list.count = static_cast<std::uint32_t>(values.size());
  list.value = list_values.size();
  list_values.insert(list_values.end(), values.begin(), values.end());
}

std::size_t ChakraTrace::copy_node(const ChakraTrace& from, std::size_t node) {
  const std::size_t copy =
      add_node(from.id[node], from.type[node], from.name_of_node(node), from.duration_micros[node]);
  start_micros[copy] = from.start_micros[node];
  for (const std::uint64_t of : from.data_dependences(node)) add_data_dependence(of);
  for (const std::uint64_t of : from.control_dependences(node)) add_control_dependence(of);
  for (const ChakraAttribute& original : from.attributes(node))
    attribute.push_back(copied(*this, from, original));
  first_attribute.back() = end_of(attribute);
  inputs[copy] = copied_io(*this, from, from.inputs[node]);
  outputs[copy] = copied_io(*this, from, from.outputs[node]);
  return copy;
}

bool same_contents(const ChakraTrace& a, const ChakraTrace& b) {
  if (a.has_metadata != b.has_metadata || a.version != b.version || a.id != b.id || a.type != b.type ||
      a.start_micros != b.start_micros || a.duration_micros != b.duration_micros ||
      a.first_data_dependence != b.first_data_dependence || a.data_dependence != b.data_dependence ||
      a.first_control_dependence != b.first_control_dependence ||
      a.control_dependence != b.control_dependence || !same_attributes(a, a.metadata, b, b.metadata))
    return false;
  for (std::size_t node = 0; node < a.size(); ++node) {
    if (a.name_of_node(node) != b.name_of_node(node) ||
        !same_attributes(a, a.attributes(node), b, b.attributes(node)) ||
        !same_io(a, a.inputs[node], b, b.inputs[node]) || !same_io(a, a.outputs[node], b, b.outputs[node]))
      return false;
  }
  return true;
}

// Whole numbers may have been written as floats; they are taken where they are whole.
std::int64_t integer_value(const ChakraTrace& trace, std::size_t node, const ChakraAttribute& attribute) {
  if (attribute.field == 0 || attribute.is_list() || is_text(attribute.kind()))
    refuse(trace, node, attribute, "a whole number");
  if (is_real(attribute.kind())) {
    const auto value = std::bit_cast<double>(attribute.value);
    // 2^63 is a double, and the first that does not fit.
    if (std::trunc(value) != value || value < -0x1p63 || value >= 0x1p63)
      throw Error(location(trace, node), fmt::format("{} is {}, where a whole number of 64 bits belongs",
                                                     described(trace, attribute), value));
    return static_cast<std::int64_t>(value);
  }
  if (is_unsigned_64(attribute.kind()) && attribute.value > INT64_MAX)
    throw Error(location(trace, node),
                fmt::format("{} is {}, which is too large", described(trace, attribute), attribute.value),
                "was a negative number written as an unsigned one?");
  return std::bit_cast<std::int64_t>(attribute.value);
}

double real_value(const ChakraTrace& trace, std::size_t node, const ChakraAttribute& attribute) {
  if (attribute.field == 0 || attribute.is_list() || is_text(attribute.kind()))
    refuse(trace, node, attribute, "a number");
  if (is_unsigned_64(attribute.kind())) return static_cast<double>(attribute.value);
  if (!is_real(attribute.kind())) return static_cast<double>(std::bit_cast<std::int64_t>(attribute.value));
  const auto value = std::bit_cast<double>(attribute.value);
  if (!std::isfinite(value))
    throw Error(location(trace, node),
                fmt::format("{} is {}, which is not a number", described(trace, attribute), value));
  return value;
}

std::string_view text_value(const ChakraTrace& trace, std::size_t node, const ChakraAttribute& attribute) {
  if (attribute.is_list() || !is_text(attribute.kind())) refuse(trace, node, attribute, "text");
  return trace.strings.at(static_cast<std::uint32_t>(attribute.value));
}

std::vector<bool> boolean_values(const ChakraTrace& trace, std::size_t node,
                                 const ChakraAttribute& attribute) {
  constexpr std::string_view kExpected = "a list of booleans";
  if (!attribute.is_list() || is_text(attribute.kind()) || is_real(attribute.kind()))
    refuse(trace, node, attribute, kExpected);
  std::vector<bool> values(attribute.count);
  for (std::uint32_t i = 0; i < attribute.count; ++i) {
    const std::uint64_t value = trace.list_values[attribute.value + i];
    if (value > 1)
      throw Error(location(trace, node),
                  fmt::format("{} holds the number {}, where {} belongs", described(trace, attribute),
                              std::bit_cast<std::int64_t>(value), kExpected));
    values[i] = value == 1;
  }
  return values;
}

std::string location(const ChakraTrace& trace, std::size_t node) {
  return fmt::format("{}: node {} '{}'", trace.source, trace.id[node], trace.name_of_node(node));
}

}  // namespace armilla
