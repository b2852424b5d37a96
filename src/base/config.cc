#include "base/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/units_text.h"

namespace armilla {

struct Config::Shared {
  std::string file;
  std::map<std::string, std::set<std::string, std::less<>>> asked;  // key path of a mapping -> keys asked for
};

namespace {

void refuse_duplicate_keys(const YAML::Node& node, const std::string& file) {
  if (node.IsMap()) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const YAML::Mark mark = entry.first.Mark();
      const std::string where = fmt::format("{}:{}:{}", file, mark.line + 1, mark.column + 1);
      if (!entry.first.IsScalar()) throw Error(where, "a key must be a plain word");
      if (!seen.insert(entry.first.Scalar()).second)
        throw Error(where, fmt::format("key '{:.60}' is given twice", entry.first.Scalar()));
      refuse_duplicate_keys(entry.second, file);
    }
  } else if (node.IsSequence()) {
    for (const auto& item : node) refuse_duplicate_keys(item, file);
  }
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> keys;
  std::size_t begin = 0;
  for (std::size_t dot; (dot = path.find('.', begin)) != std::string::npos; begin = dot + 1)
    keys.push_back(path.substr(begin, dot - begin));
  keys.push_back(path.substr(begin));
  return keys;
}

// Sets one "key.path=value" in the tree, making mappings on the way where nothing stands yet.
void apply_override(YAML::Node& root, const std::string& text) {
  const std::string where = "--set " + text;
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(where, "expected key=value", "for example --set plan.micro_batches=4");
  YAML::Node value;
  try {
    value = YAML::Load(text.substr(equals + 1));
  } catch (const YAML::Exception& e) {
    throw Error(where, fmt::format("the value is not valid YAML: {}", e.msg));
  }
  if (value.IsNull()) throw Error(where, "the value is empty");
  YAML::Node node = root;  // a handle: reset() re-seats it, operator= would overwrite the tree
  const std::vector<std::string> keys = split_path(text.substr(0, equals));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool last = i + 1 == keys.size();
    if (keys[i].empty()) throw Error(where, "the key path has an empty part");
    if (node.IsSequence()) {
      const std::int64_t index = parse_count(keys[i], where);
      if (index < 0 || index >= static_cast<std::int64_t>(node.size()))
        throw Error(where, fmt::format("the list has no item {}", index),
                    fmt::format("it has {} items, from 0", node.size()));
      if (last)
        node[static_cast<std::size_t>(index)] = value;
      else
        node.reset(node[static_cast<std::size_t>(index)]);
    } else if (node.IsMap() || node.IsNull() || !node.IsDefined()) {
      if (last) {
        node[keys[i]] = value;
        break;
      }
      YAML::Node next = node[keys[i]];
      if (!next.IsDefined() || next.IsNull()) node[keys[i]] = YAML::Node(YAML::NodeType::Map);
      node.reset(node[keys[i]]);
    } else {
      throw Error(where, fmt::format("'{}' holds a single value, no keys", keys[i - 1]));
    }
  }
}

}  // namespace

Config::Config(YAML::Node node, std::string path, std::shared_ptr<Shared> shared)
    : node_(std::move(node)), path_(std::move(path)), shared_(std::move(shared)) {}

Config Config::parse(std::string_view text, const std::string& name,
                     const std::vector<std::string>& overrides) {
  YAML::Node root;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1)
      throw Error(name, "holds more than one YAML document", "keep one, without '---' between parts");
    if (!documents.empty()) root = documents.front();
    refuse_duplicate_keys(root, name);
  } catch (const YAML::Exception& e) {
    const std::string where =
        e.mark.is_null() ? name : fmt::format("{}:{}:{}", name, e.mark.line + 1, e.mark.column + 1);
    throw Error(where, fmt::format("not valid YAML: {}", e.msg));
  }
  for (const std::string& override_text : overrides) apply_override(root, override_text);
  auto shared = std::make_shared<Shared>();
  shared->file = name;
  return Config(root, "", std::move(shared));
}

Config Config::read(const std::string& path, const std::vector<std::string>& overrides) {
  const MappedFile file(path);
  const std::span<const char> bytes = file.bytes();
  if (std::find(bytes.begin(), bytes.end(), '\0') != bytes.end())
    throw Error(path, "is a binary file, not YAML");
  constexpr std::size_t kLargest = 64 << 20;
  if (bytes.size() > kLargest)
    throw Error(path, "is too large to be a configuration file", "the limit is 64 MiB");
  return parse({bytes.data(), bytes.size()}, path, overrides);
}

std::string Config::where() const {
  const YAML::Mark mark = node_.Mark();
  std::string text = shared_->file;
  if (!mark.is_null()) text += fmt::format(":{}:{}", mark.line + 1, mark.column + 1);
  if (!path_.empty()) text += ": " + path_;
  return text;
}

void Config::expected(std::string_view what) const {
  throw Error(where(), fmt::format("expected {}", what));
}

void Config::remember(std::string_view key) const {
  shared_->asked[path_].emplace(key);
}

Config Config::child(const YAML::Node& node, std::string_view key) const {
  return Config(node, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key), shared_);
}

bool Config::has(std::string_view key) const {
  return find(key).has_value();
}

std::optional<Config> Config::find(std::string_view key) const {
  if (!node_.IsMap() && !node_.IsNull()) expected(fmt::format("a mapping with the key '{}'", key));
  remember(key);
  if (!node_.IsMap()) return std::nullopt;
  const YAML::Node value = node_[std::string(key)];
  if (!value.IsDefined()) return std::nullopt;
  return child(value, key);
}

Config Config::at(std::string_view key) const {
  std::optional<Config> value = find(key);
  if (!value) throw Error(where(), fmt::format("the key '{}' is missing", key));
  return *std::move(value);
}

std::vector<Config> Config::items() const {
  if (!node_.IsSequence()) expected("a list");
  std::vector<Config> all;
  for (std::size_t i = 0; i < node_.size(); ++i) all.push_back(child(node_[i], fmt::format("{}", i)));
  return all;
}

std::vector<std::string> Config::keys() const {
  if (!node_.IsMap()) expected("a mapping");
  std::vector<std::string> all;
  for (const auto& entry : node_) all.push_back(entry.first.Scalar());
  return all;
}

void Config::reject_unknown_keys() const {
  if (!node_.IsMap()) {
    if (node_.IsNull()) return;
    expected("a mapping");
  }
  const auto& asked = shared_->asked[path_];
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (asked.contains(key)) continue;
    throw Error(child(entry.first, key).where(), fmt::format("unknown key '{:.60}'", key),
                suggest(key, std::vector<std::string>(asked.begin(), asked.end())));
  }
}

std::string Config::text() const {
  if (!node_.IsScalar()) expected("a single value");
  return node_.Scalar();
}

bool Config::boolean() const {
  const std::string value = text();
  if (value != "true" && value != "false") expected(fmt::format("true or false, not '{:.60}'", value));
  return value == "true";
}

std::int64_t Config::count(std::int64_t lowest, std::int64_t highest) const {
  const std::int64_t value = parse_count(text(), where());
  if (value < lowest)
    throw Error(where(), fmt::format("{} is too small", value),
                fmt::format("the lowest value is {}", lowest));
  if (value > highest)
    throw Error(where(), fmt::format("{} is too large", value),
                fmt::format("the highest value is {}", highest));
  return value;
}

double Config::fraction() const {
  return parse_fraction(text(), where());
}
Time Config::time() const {
  return parse_time(text(), where());
}
Bytes Config::bytes() const {
  return parse_bytes(text(), where());
}
Bandwidth Config::bandwidth() const {
  return parse_bandwidth(text(), where());
}
FlopRate Config::flop_rate() const {
  return parse_flop_rate(text(), where());
}
Frequency Config::frequency() const {
  return parse_frequency(text(), where());
}

std::size_t Config::choice(const std::vector<std::string_view>& choices) const {
  const std::string value = text();
  const auto found = std::find(choices.begin(), choices.end(), value);
  if (found == choices.end())
    throw Error(where(), fmt::format("unknown value '{:.60}'", value),
                suggest(value, std::span<const std::string_view>(choices)));
  return static_cast<std::size_t>(found - choices.begin());
}

}  // namespace armilla
