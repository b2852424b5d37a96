#include "study/sweep/sweep_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/size_list.h"
#include "base/units_text.h"
#include "read/file_format.h"
#include "read/study.h"

namespace armilla {
namespace {

constexpr std::size_t kMostRuns = 1'000'000;
constexpr std::string_view kStudy = "study";

std::string path_from(const std::string& folder, const std::string& path) {
  return path.starts_with('/') ? path : folder + path;
}

std::string key_of(const Override& setting) {
  return setting.setting.substr(0, setting.setting.find('='));
}

// As one would write it: "{ranks: 8, tensor: 2}".
std::string shown(const Config& value) {
  if (value.is_scalar()) return value.text();
  std::vector<std::string> parts;
  if (value.is_list()) {
    for (const Config& item : value.items()) parts.push_back(shown(item));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (!value.is_map()) return value.yaml();
  for (const auto& [key, item] : value.entries()) parts.push_back(fmt::format("{}: {}", key, shown(item)));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

// "1..64": powers of two, and the end.
bool is_range(const Config& value) {
  return value.is_scalar() && value.text().find("..") != std::string::npos;
}

}  // namespace

SweepFile::SweepFile(const std::string& path, std::vector<Override> settings)
    : path_(path), settings_(std::move(settings)) {
  const Config file = Config::read(path);
  if (!file.is_map()) {
    throw Error(file.where(), "is not a sweep: it has no keys",
                "a sweep has 'study' and 'vary' (docs/formats/sweep.md)");
  }
  if (!file.has(kStudy) && file.has("model") && file.has("machine")) {
    throw Error(file.where(), "is a study, and not a sweep of one",
                "put it under 'study' and what is to vary under 'vary' (docs/formats/sweep.md)");
  }
  const auto axes = file.find("vary");
  // Where studies vary, each run has its own.
  if (file.has(kStudy) || !axes || !axes->is_map() || !axes->has(kStudy)) {
    const Config study = file.at(kStudy);
    inline_ = study.is_map();
    study_name_ = inline_ ? path : path_from(study.folder(), study.text());
  } else {
    inline_ = false;
    study_name_ = path;
  }
  if (const auto runs = file.find("runs")) {
    const std::vector<Config> items = runs->items();
    if (items.empty()) throw Error(runs->where(), "the list is empty", "give at least one run");
    for (const Config& run : items) read_run(run);
  }
  if (axes) {
    for (const auto& [key, values] : axes->entries()) read_axis(key, values);
  }
  file.reject_unknown_keys();
  if (keys_.empty()) {
    throw Error(file.where(), "has nothing to vary",
                "'vary' lists values of keys, 'runs' single runs (docs/formats/sweep.md)");
  }
  check_settings();
  if (list_.empty()) list_.emplace_back();
  size_ = list_.size();
  for (const Axis& axis : grid_) {
    size_ *= axis.values.size();
    if (size_ > kMostRuns) {
      throw Error(file.where(), fmt::format("is a sweep of more than {} runs", with_separators(kMostRuns)),
                  "leave values out; 'armilla search' finds the best plan of large spaces");
    }
  }
  // A study that is not there is no matter of the single run.
  const bool varied = std::find(keys_.begin(), keys_.end(), kStudy) != keys_.end();
  if (inline_ || varied) return;
  const Config named = Config::read(study_name_);
  if (named.is_map() && named.has(kStudy)) throw wrong_kind(study_name_, FileKind::sweep, "a study");
}

void SweepFile::add_key(const std::string& key) {
  if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) keys_.push_back(key);
}

void SweepFile::read_axis(const std::string& key, const Config& values) {
  if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) {
    throw Error(values.where(), fmt::format("'{}' is set by 'runs', too", key),
                "give its values in one of them");
  }
  Axis axis{key, {}};
  if (is_range(values)) {
    for (const std::string& number : numbers_of_range(values.text(), values.where()))
      axis.values.push_back({number, number, values.where()});
  } else {
    if (!values.is_list()) {
      throw Error(values.where(), "is a single value, and nothing that varies",
                  "give a list, such as [1, 2, 4], or a range of powers of two, such as 1..8");
    }
    for (const Config& value : values.items())
      axis.values.push_back({shown(value), value.yaml(), value.where()});
  }
  if (axis.values.empty()) throw Error(values.where(), "the list is empty", "give at least one value");
  add_key(key);
  grid_.push_back(std::move(axis));
}

void SweepFile::read_run(const Config& run) {
  std::vector<Setting>& settings = list_.emplace_back();
  for (const auto& [key, value] : run.entries()) {
    settings.emplace_back(key, Value{shown(value), value.yaml(), value.where()});
    add_key(key);
  }
}

void SweepFile::check_settings() const {
  for (const Override& setting : settings_) {
    const std::string key = key_of(setting);
    if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) continue;
    throw Error(setting.where.empty() ? "--set " + setting.setting : setting.where,
                fmt::format("'{}' varies in {}", key, path_), "take it out of one of them");
  }
}

// Of one run. One key may be written in several ways: an item of a list by its number or its name.
void SweepFile::check_places(const Config& study, const std::vector<Setting>& varied) const {
  std::vector<std::pair<std::string, std::string>> keys;  // and who sets it, if not this file
  for (const Override& setting : settings_)
    keys.emplace_back(key_of(setting), setting.where.empty() ? "--set " + setting.setting : setting.where);
  for (const auto& [key, value] : varied) {
    if (key != kStudy) keys.emplace_back(key, "");
  }
  for (std::size_t a = 0; a < keys.size(); ++a) {
    const std::optional<Config::Place> place = study.place_of(keys[a].first);
    for (std::size_t b = std::max(a + 1, settings_.size()); place && b < keys.size(); ++b) {
      if (study.place_of(keys[b].first) != place) continue;
      throw Error(keys[a].second.empty() ? path_ : keys[a].second,
                  fmt::format("'{}' is '{}', which varies{}", keys[a].first, keys[b].first,
                              keys[a].second.empty() ? ", too" : " in " + path_),
                  "take it out of one of them");
    }
  }
}

// A run's number has the number in the list first; the last key of the grid changes first.
std::vector<SweepFile::Setting> SweepFile::settings_of(std::size_t run) const {
  std::vector<Setting> settings(grid_.size());
  for (std::size_t axis = grid_.size(); axis-- > 0;) {
    const std::vector<Value>& values = grid_[axis].values;
    settings[axis] = {grid_[axis].key, values[run % values.size()]};
    run /= values.size();
  }
  settings.insert(settings.begin(), list_[run].begin(), list_[run].end());
  return settings;
}

std::vector<std::string> SweepFile::values_of(std::size_t run) const {
  std::vector<std::string> values(keys_.size());
  for (const auto& [key, value] : settings_of(run)) {
    const auto at = std::find(keys_.begin(), keys_.end(), key) - keys_.begin();
    values[static_cast<std::size_t>(at)] = value.text;
  }
  return values;
}

Config SweepFile::config_of(std::size_t run) const {
  std::string study = study_name_;
  bool from_file = !inline_;
  std::vector<Override> overrides = settings_;
  const std::vector<Setting> varied = settings_of(run);
  for (const auto& [key, value] : varied) {
    if (key != kStudy) {
      overrides.emplace_back(key + "=" + value.yaml, value.where, path_);
      continue;
    }
    const Config named = Config::parse("", "", {{"study=" + value.yaml, value.where, path_}}).at(kStudy);
    study = path_from(named.folder(), named.text());
    from_file = true;
  }
  sort_upper_first(overrides);
  if (from_file) {
    Config config = Config::read(study, overrides, expand_name);
    check_places(config, varied);
    return config;
  }
  // The study is a part of this file: its keys begin with "study." here, which no reader of a study knows.
  const std::string prefix = std::string(kStudy) + ".";
  for (Override& setting : overrides) {
    if (setting.where.empty()) setting.where = "--set " + setting.setting;
    setting.setting = prefix + setting.setting;
  }
  const auto expand = [&](const std::string& path, const std::string& value,
                          const std::string& folder) -> std::optional<NamedText> {
    if (!path.starts_with(prefix)) return std::nullopt;
    const std::string key = path.substr(prefix.size());
    try {
      return expand_name(key, value, folder);
    } catch (const Error& error) {
      if (error.where != key) throw;
      throw Error(path, error.message, error.hint);  // the place in the file is added where this is called
    }
  };
  Config config = Config::read(path_, overrides, expand).at(kStudy);
  check_places(config, varied);
  return config;
}

}  // namespace armilla
