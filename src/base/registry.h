// Tables of components. Each family (networks, cost models, collective algorithms, formats ...) is one
// explicit array of records; `armilla list`, --help, docs/reference and "did you mean" are all read from that
// array.
//
// A component's parameters arrive as text ("systolic:rows=128,dataflow=ws" or a study file's mapping) and are
// checked against its parameter table: unknown names, missing units and values out of range are Errors.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace armilla {

enum class ParameterType {
  count,
  number,
  fraction,
  time,
  bytes,
  bandwidth,
  flop_rate,
  frequency,
  boolean,
  choice
};

struct ParameterInfo {
  std::string_view name;
  ParameterType type;
  std::string_view default_value;  // as a user would write it; empty: the component decides, see help
  std::string_view help;
  std::string_view choices = {};  // for ParameterType::choice, separated by '|'
};

std::string_view name_of(ParameterType type);  // "count", "time", ...

// Values of one component's parameters, defaults filled in, all checked against the table.
class ParameterValues {
 public:
  struct Given {
    std::string value;
    std::string where;  // for errors
  };

  // Throws Error for unknown names and bad values. `component` begins messages that have no better location.
  ParameterValues(std::string_view component, std::span<const ParameterInfo> table,
                  const std::map<std::string, Given>& given = {});

  bool is_set(std::string_view name) const;  // false: neither given nor with a default
  std::int64_t count(std::string_view name) const;
  double number(std::string_view name) const;  // above 0
  double fraction(std::string_view name) const;
  Time time(std::string_view name) const;
  Bytes bytes(std::string_view name) const;
  Bandwidth bandwidth(std::string_view name) const;
  FlopRate flop_rate(std::string_view name) const;
  Frequency frequency(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::string& choice(std::string_view name) const;
  const std::string& text(std::string_view name) const;  // as given
  std::string where(std::string_view name) const;

 private:
  std::string component_;
  std::map<std::string, Given, std::less<>> values_;
};

// A component chosen by a user: its name and the parameters that were given.
struct ComponentChoice {
  std::string name;
  std::map<std::string, ParameterValues::Given> parameters;
  std::string where;
};

// "systolic:rows=128,dataflow=ws"; `where` is the flag or key it came from.
ComponentChoice parse_component(std::string_view text, const std::string& where);

// Throws the Error for a name that `known` does not contain.
[[noreturn]] void unknown_component(std::string_view family, const std::string& name,
                                    const std::string& where, const std::vector<std::string_view>& known);

// The record called `name` in a table whose records have a member `name`.
template <class Record>
const Record& find_component(std::string_view family, std::span<const Record> table, const std::string& name,
                             const std::string& where) {
  std::vector<std::string_view> known;
  for (const Record& record : table) {
    if (record.name == name) return record;
    known.push_back(record.name);
  }
  unknown_component(family, name, where, known);
}

}  // namespace armilla
