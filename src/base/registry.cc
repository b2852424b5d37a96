#include "base/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"

namespace armilla {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

// Throws when `value` is not of the parameter's type.
void check(const ParameterInfo& info, const std::string& value, const std::string& where) {
  switch (info.type) {
    case ParameterType::count:
      if (parse_count(value, where) < 1)
        throw Error(where, fmt::format("'{:.60}' must be at least 1", value));
      return;
    case ParameterType::number:
      if (!(parse_real(value, where) > 0)) throw Error(where, fmt::format("'{:.60}' must be above 0", value));
      return;
    case ParameterType::fraction:
      parse_fraction(value, where);
      return;
    case ParameterType::time:
      parse_time(value, where);
      return;
    case ParameterType::bytes:
      parse_bytes(value, where);
      return;
    case ParameterType::bandwidth:
      parse_bandwidth(value, where);
      return;
    case ParameterType::flop_rate:
      parse_flop_rate(value, where);
      return;
    case ParameterType::frequency:
      parse_frequency(value, where);
      return;
    case ParameterType::boolean:
      if (value != "true" && value != "false")
        throw Error(where, fmt::format("'{:.60}' is neither true nor false", value));
      return;
    case ParameterType::choice: {
      const std::vector<std::string_view> choices = split(info.choices, '|');
      if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
        throw Error(where, fmt::format("unknown value '{:.60}'", value),
                    suggest(value, std::span<const std::string_view>(choices)));
      }
      return;
    }
  }
}

}  // namespace

std::string_view name_of(ParameterType type) {
  switch (type) {
    case ParameterType::count:
      return "count";
    case ParameterType::number:
      return "number";
    case ParameterType::fraction:
      return "fraction";
    case ParameterType::time:
      return "time";
    case ParameterType::bytes:
      return "bytes";
    case ParameterType::bandwidth:
      return "bandwidth";
    case ParameterType::flop_rate:
      return "compute rate";
    case ParameterType::frequency:
      return "frequency";
    case ParameterType::boolean:
      return "boolean";
    case ParameterType::choice:
      return "choice";
  }
  return "?";
}

ParameterValues::ParameterValues(std::string_view component, std::span<const ParameterInfo> table,
                                 const std::map<std::string, Given>& given)
    : component_(component) {
  std::vector<std::string_view> known;
  for (const ParameterInfo& info : table) {
    known.push_back(info.name);
    const auto found = given.find(std::string(info.name));
    if (found != given.end()) {
      check(info, found->second.value, found->second.where);
      values_.emplace(info.name, found->second);
    } else if (!info.default_value.empty()) {
      // Defaults stand in the source; they are not checked here.
      values_.emplace(info.name, Given{std::string(info.default_value),
                                       fmt::format("default of {}.{}", component, info.name)});
    }
  }
  // After the values, so that a wrong value is told before a misspelt name.
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(value.where, fmt::format("'{}' has no parameter '{:.60}'", component, name),
                  suggest(name, std::span<const std::string_view>(known)));
    }
  }
}

bool ParameterValues::is_set(std::string_view name) const {
  return values_.find(name) != values_.end();
}

const std::string& ParameterValues::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw Error(component_, fmt::format("the parameter '{}' must be given", name));
  return found->second.value;
}

std::string ParameterValues::where(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? component_ : found->second.where;
}

std::int64_t ParameterValues::count(std::string_view name) const {
  return parse_count(text(name), where(name));
}
double ParameterValues::number(std::string_view name) const {
  return parse_real(text(name), where(name));
}
double ParameterValues::fraction(std::string_view name) const {
  return parse_fraction(text(name), where(name));
}
Time ParameterValues::time(std::string_view name) const {
  return parse_time(text(name), where(name));
}
Bytes ParameterValues::bytes(std::string_view name) const {
  return parse_bytes(text(name), where(name));
}
Bandwidth ParameterValues::bandwidth(std::string_view name) const {
  return parse_bandwidth(text(name), where(name));
}
FlopRate ParameterValues::flop_rate(std::string_view name) const {
  return parse_flop_rate(text(name), where(name));
}
Frequency ParameterValues::frequency(std::string_view name) const {
  return parse_frequency(text(name), where(name));
}
bool ParameterValues::boolean(std::string_view name) const {
  return text(name) == "true";
}
const std::string& ParameterValues::choice(std::string_view name) const {
  return text(name);
}

ComponentChoice parse_component(std::string_view text, const std::string& where) {
  ComponentChoice choice;
  choice.where = where;
  // The first colon ends the name; values may contain others.
  const auto colon = text.find(':');
  choice.name = std::string(text.substr(0, colon));
  if (choice.name.empty()) throw Error(where, "the name is empty");
  if (colon == std::string_view::npos) return choice;
  for (const std::string_view part : split(text.substr(colon + 1), ',')) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw Error(where, fmt::format("'{:.60}' is not name=value", part),
                  "write NAME:parameter=value,parameter=value");
    }
    const std::string name(part.substr(0, equals));
    const std::string place = fmt::format("{}: {}", where, name);
    if (!choice.parameters.emplace(name, ParameterValues::Given{std::string(part.substr(equals + 1)), place})
             .second) {
      throw Error(place, "is given twice");
    }
  }
  return choice;
}

void unknown_component(std::string_view family, const std::string& name, const std::string& where,
                       const std::vector<std::string_view>& known) {
  const std::string problem = fmt::format("unknown {} '{:.60}'", family, name);
  const std::string begin = name.substr(0, name.find(','));
  if (name.find('=') != std::string::npos && std::ranges::find(known, begin) != known.end())
    throw Error(
        where, problem,
        fmt::format("parameters come behind a colon: {}:{:.60}", begin, name.substr(begin.size() + 1)));
  throw Error(where, problem, suggest(name, std::span<const std::string_view>(known)));
}

}  // namespace armilla
