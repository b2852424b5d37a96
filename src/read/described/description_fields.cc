#include "read/described/description_fields.h"

#include <fmt/format.h>

#include "base/error.h"

namespace armilla {

std::optional<Config> DescriptionFields::find(std::string_view key) const {
  // Remembered whether found or not: what was never asked for is what the reader does not know.
  asked_.emplace(key);
  std::optional<Config> value = config_.find(key);
  // `null` is none of the three and counts as absent.
  if (value && !value->is_scalar() && !value->is_list() && !value->is_map()) return std::nullopt;
  return value;
}

void DescriptionFields::count(std::int64_t& field, std::string_view name, std::string_view key,
                              std::int64_t lowest, std::int64_t highest, bool required) {
  const std::optional<Config> value = find(key);
  if (!value) {
    if (required) throw Error(config_.where(), fmt::format("the key '{}' is missing", key));
    return;
  }
  field = value->count(lowest, highest);
  // The place goes under the field's own name, so that an error found later, in terms of the description,
  // still points at the key that was read.
  description_.places.emplace(name, value->where());
}

void DescriptionFields::flag(bool& field, std::string_view name, std::string_view key) {
  const std::optional<Config> value = find(key);
  if (!value) return;
  field = value->boolean();
  description_.places.emplace(name, value->where());
}

void DescriptionFields::counts(std::vector<std::int64_t>& field, std::string_view name, std::string_view key,
                               std::int64_t highest, std::size_t most) {
  const Config value = config_.at(key);
  const std::vector<Config> items = value.items();
  if (items.empty()) throw Error(value.where(), "the list is empty");
  if (items.size() > most)
    throw Error(value.where(), fmt::format("the list has {} entries", items.size()),
                fmt::format("at most {} are possible", most));
  field.clear();
  for (const Config& item : items) field.push_back(item.count(1, highest));
  description_.places.emplace(name, value.where());
}

}  // namespace armilla
