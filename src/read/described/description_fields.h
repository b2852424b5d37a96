// Reading the fields of a ModelDescription from a document whose keys may have other names than the fields:
// bounded numbers, and for each field the place it was read from. A value of null counts as absent. The
// bounds keep every product of a few fields within 64 bits and every model within some hundred thousand
// operators.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "read/described/model_description.h"

namespace armilla {

inline constexpr std::int64_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostHeads = 1 << 16;
inline constexpr std::int64_t kMostExperts = 1 << 16;
inline constexpr std::int64_t kMostExpertGroups = 1 << 10;
inline constexpr std::int64_t kMostWidth =
    1 << 24;  // hidden and feed-forward sizes, rows of a table of positions
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 40;

class DescriptionFields {
 public:
  DescriptionFields(const Config& config, ModelDescription& description)
      : config_(config), description_(description) {}

  std::optional<Config> find(std::string_view key) const;                     // nothing for null
  const std::set<std::string, std::less<>>& asked() const { return asked_; }  // the keys, found or not
  // Leaves the field as it is when the key is absent, which is an Error if it is `required`.
  void count(std::int64_t& field, std::string_view name, std::string_view key, std::int64_t lowest,
             std::int64_t highest, bool required = false);
  void required(std::int64_t& field, std::string_view name, std::string_view key, std::int64_t highest) {
    count(field, name, key, 1, highest, true);
  }
  void flag(bool& field, std::string_view name, std::string_view key);
  void counts(std::vector<std::int64_t>& field, std::string_view name, std::string_view key,
              std::int64_t highest, std::size_t most);

 private:
  const Config& config_;
  ModelDescription& description_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace armilla
