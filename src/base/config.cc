#include "base/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "base/yaml/yaml_tree.h"

namespace armilla {

// Values are views into one document, which they own together; the keys that were asked for are kept beside
// it, so that unknown ones can be told at the end.
struct Config::Document {
  std::string file;
  YamlValue root;
  std::map<const YamlValue*, std::set<std::string, std::less<>>> asked;  // mapping -> keys asked for
};

namespace {

using Kind = YamlValue::Kind;

// "dims[0].size" is "dims.0.size".
std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> keys;
  const auto add = [&](std::string key) {
    const std::size_t open = key.find('[');
    if (open == std::string::npos || open == 0 || key.back() != ']') return keys.push_back(std::move(key));
    keys.push_back(key.substr(0, open));
    keys.push_back(key.substr(open + 1, key.size() - open - 2));
  };
  std::size_t begin = 0;
  for (std::size_t dot; (dot = path.find('.', begin)) != std::string::npos; begin = dot + 1)
    add(path.substr(begin, dot - begin));
  add(path.substr(begin));
  return keys;
}

void set_origin(YamlValue& value, const std::string& origin) {
  value.origin = origin;
  for (YamlValue& item : value.items) set_origin(item, origin);
}

void set_file(YamlValue& value, const std::string& file) {
  value.file = file;
  for (YamlValue& item : value.items) set_file(item, file);
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string yaml_of(const YamlValue& value) {
  if (value.kind == Kind::null) return "null";
  if (value.kind == Kind::scalar) return in_quotes(value.scalar);
  const bool map = value.kind == Kind::map;
  std::string text;
  for (const YamlValue& item : value.items)
    text += (text.empty() ? "" : ", ") + (map ? in_quotes(item.key) + ": " : "") + yaml_of(item);
  return (map ? "{" : "[") + text + (map ? "}" : "]");
}

bool has_origin(const YamlValue& value) {
  return !value.origin.empty() || std::any_of(value.items.begin(), value.items.end(), has_origin);
}

std::string folder_of(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return folder.empty() || folder.ends_with('/') ? folder : folder + "/";
}

// The document that a single value stands for in its place.
void expand_value(YamlValue& value, const std::string& path, const std::string& file, const Expand& expand) {
  const bool of_single_values =
      value.kind == Kind::list && !value.items.empty() &&
      std::ranges::all_of(value.items, [](const YamlValue& item) { return item.kind == Kind::scalar; });
  if (!expand || (value.kind != Kind::scalar && !of_single_values)) return;
  std::string name = value.scalar;
  // A list of names is as good as one with commas.
  for (const YamlValue& item : value.items) name += (name.empty() ? "" : ",") + item.scalar;
  const std::string folder = folder_of(value.origin.empty() && value.file.empty() ? file : value.file);
  std::optional<NamedText> text;
  // An expander knows the key's path only; the place in a file or flag is added here.
  try {
    text = expand(path, name, folder);
  } catch (const Error& e) {
    if (e.where != path) throw;
    throw Error(value.origin.empty() ? fmt::format("{}: {}", file, path) : value.origin, e.message, e.hint);
  }
  if (!text) return;
  if (text->name.empty()) {
    YamlValue whole = value;
    whole.kind = Kind::map;
    whole.scalar.clear();
    value.key = text->text;
    whole.items.assign(1, std::move(value));
    value = std::move(whole);
    return;
  }
  YamlValue tree = parse_yaml(text->text, text->name);
  // Paths inside of the expanded document are relative to its own file.
  set_file(tree, text->name);
  tree.key = std::move(value.key);
  tree.key_line = value.key_line;
  tree.key_column = value.key_column;
  value = std::move(tree);
}

template <class Value>
Value* item_called(Value& list, const std::string& name) {
  for (Value& item : list.items) {
    const YamlValue* const own = item.find("name");
    if (own != nullptr && own->kind == Kind::scalar && own->scalar == name) return &item;
  }
  return nullptr;
}

// The item that `key` names in a list, or the value under it in a mapping, made where there is none yet.
YamlValue& descend(YamlValue& value, const std::string& key, const std::string& parent,
                   const std::string& where) {
  if (value.kind == Kind::scalar) {
    throw Error(where, parent.empty() ? "the file holds a single value, no keys"
                                      : fmt::format("'{}' holds a single value, no keys", parent));
  }
  // Items of a list go by their `name`, else by their index.
  if (value.kind == Kind::list) {
    if (YamlValue* const item = item_called(value, key)) return *item;
    if (key.find_first_not_of("0123456789") != std::string::npos) {
      std::vector<std::string> names;
      for (const YamlValue& item : value.items) {
        const YamlValue* const name = item.find("name");
        names.push_back(name != nullptr ? name->scalar : fmt::format("{}", names.size()));
      }
      throw Error(where, fmt::format("the list has no item '{:.60}'", key), suggest(key, names));
    }
    const std::int64_t index = parse_count(key, where);
    if (index < 0 || index >= static_cast<std::int64_t>(value.items.size())) {
      throw Error(
          where, fmt::format("the list has no item {}", index),
          value.items.empty() ? "it is empty" : fmt::format("its items are 0 to {}", value.items.size() - 1));
    }
    return value.items[static_cast<std::size_t>(index)];
  }
  // An empty value becomes a mapping: a setting may add keys where the file has none.
  value.kind = Kind::map;
  for (YamlValue& item : value.items) {
    if (item.key == key) return item;
  }
  YamlValue& added = value.items.emplace_back();
  added.key = key;
  added.origin = where;
  return added;
}

// Sets one "key.path=value" in the tree, making mappings on the way where nothing stands yet.
void apply_override(YamlValue& root, const Override& override, const std::string& file,
                    const Expand& expand) {
  const std::string& text = override.setting;
  constexpr std::size_t kMostParts = 64;
  const std::string where = override.where.empty() ? fmt::format("--set {:.100}", text) : override.where;
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(where, "expected key=value", "for example --set plan.micro_batches=4");
  YamlValue value;
  try {
    value = parse_yaml(std::string_view(text).substr(equals + 1), where);
  } catch (const Error& e) {
    throw Error(where, e.message, e.hint);  // a line and column in a flag say nothing
  }
  if (value.kind == Kind::null) throw Error(where, "the value is empty");
  const std::vector<std::string> keys = split_path(text.substr(0, equals));
  if (keys.size() > kMostParts) throw Error(where, fmt::format("the key has more than {} parts", kMostParts));
  YamlValue* node = &root;
  std::string parent, path;
  for (const std::string& key : keys) {
    if (key.empty()) throw Error(where, "the key path has an empty part");
    // A name on the way (machine: dgx-a100) gives way to the document that it names, so that a key inside can
    // be set.
    expand_value(*node, path, file, expand);
    node = &descend(*node, key, parent, where);
    parent = key;
    path += (path.empty() ? "" : ".") + key;
  }
  value.key = node->key;
  value.key_line = node->key_line;
  value.key_column = node->key_column;
  set_origin(value, where);
  set_file(value, override.file);
  *node = std::move(value);
}

}  // namespace

void sort_upper_first(std::vector<Override>& overrides) {
  const auto depth = [](const Override& override) {
    const std::string_view key = std::string_view(override.setting).substr(0, override.setting.find('='));
    return std::ranges::count(key, '.') + std::ranges::count(key, '[');
  };
  std::ranges::stable_sort(overrides, {}, depth);
}

Config::Config(const YamlValue& value, std::string path, std::shared_ptr<Document> document)
    : value_(&value), path_(std::move(path)), document_(std::move(document)) {}

Config Config::parse(std::string_view text, const std::string& name, const std::vector<Override>& overrides,
                     const Expand& expand) {
  auto document = std::make_shared<Document>();
  document->file = name;
  document->root = parse_yaml(text, name);
  return over(std::move(document), overrides, expand);
}

Config Config::parse_json(std::string_view text, const std::string& name) {
  auto document = std::make_shared<Document>();
  document->file = name;
  document->root = parse_yaml(text, name, "JSON");
  return over(std::move(document), {}, {});
}

Config Config::with(const std::vector<Override>& overrides, const Expand& expand) const {
  auto document = std::make_shared<Document>();
  document->file = document_->file;
  document->root = document_->root;
  return over(std::move(document), overrides, expand);
}

Config Config::over(std::shared_ptr<Document> document, const std::vector<Override>& overrides,
                    const Expand& expand) {
  for (const Override& override : overrides) apply_override(document->root, override, document->file, expand);
  const YamlValue& root = document->root;
  return Config(root, "", std::move(document));
}

Config Config::read(const std::string& path, const std::vector<Override>& overrides, const Expand& expand) {
  const MappedFile file(path);
  return parse({file.bytes().data(), file.bytes().size()}, path, overrides, expand);
}

std::string Config::where_at(int line, int column, const std::string& path) const {
  std::string text = value_->file.empty() ? document_->file : value_->file;
  if (!value_->origin.empty()) {
    text = value_->origin;
    // A flag says enough by itself; so does a setting of this very key.
    if (!text.starts_with("--set ") || text.starts_with(fmt::format("--set {}=", path))) return text;
  } else if (line > 0) {
    text += fmt::format(":{}:{}", line, column);
  }
  if (!path.empty()) text += ": " + path;
  return text;
}

std::string Config::where() const {
  return where_at(value_->line, value_->column, path_);
}

const std::string& Config::file() const {
  return document_->file;
}

const std::string& Config::stands_in() const {
  return value_->origin.empty() && value_->file.empty() ? document_->file : value_->file;
}
std::string Config::folder() const {
  return folder_of(stands_in());
}

bool Config::is_override() const {
  return !value_->origin.empty();
}
bool Config::has_overrides() const {
  return std::any_of(value_->items.begin(), value_->items.end(), has_origin);
}

bool Config::is_map() const {
  return value_->kind == Kind::map;
}
bool Config::is_list() const {
  return value_->kind == Kind::list;
}
bool Config::is_scalar() const {
  return value_->kind == Kind::scalar;
}

void Config::expected(std::string_view what) const {
  throw Error(where(), fmt::format("expected {}", what));
}

Config Config::child(const YamlValue& value, std::string_view key) const {
  return Config(value, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key), document_);
}

bool Config::has(std::string_view key) const {
  return find(key).has_value();
}

std::optional<Config::Place> Config::place_of(std::string_view path) const {
  const std::vector<std::string> keys = split_path(std::string(path));
  const YamlValue* value = value_;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const YamlValue* next = nullptr;
    if (value->kind == Kind::list) {
      next = item_called(*value, keys[k]);
      for (std::size_t i = 0; next == nullptr && i < value->items.size(); ++i) {
        if (keys[k] == std::to_string(i)) next = &value->items[i];
      }
    } else {
      next = value->find(keys[k]);
    }
    if (next != nullptr) {
      value = next;
    } else if (k + 1 < keys.size() || value->kind == Kind::list) {
      return std::nullopt;
    } else {
      return Place{value, keys[k]};
    }
  }
  return Place{value, ""};
}

std::optional<Config> Config::find(std::string_view key) const {
  if (!is_map() && value_->kind != Kind::null) expected(fmt::format("a mapping with the key '{}'", key));
  // Asking makes a key known, whether it is there or not.
  document_->asked[value_].emplace(key);
  const YamlValue* found = value_->find(key);
  if (found == nullptr) return std::nullopt;
  return child(*found, key);
}

Config Config::at(std::string_view key) const {
  std::optional<Config> value = find(key);
  if (value) return *std::move(value);
  const auto& asked = document_->asked[value_];
  const auto near = std::ranges::find_if(value_->items, [&](const YamlValue& item) {
    return !asked.contains(item.key) && edit_distance(item.key, key) == 1;
  });
  throw Error(where(), fmt::format("the key '{}' is missing", key),
              near == value_->items.end()
                  ? ""
                  : fmt::format("there is '{:.60}': did you mean '{}'?", near->key, key));
}

std::vector<Config> Config::items() const {
  if (!is_list()) expected("a list");
  std::vector<Config> all;
  for (std::size_t i = 0; i < value_->items.size(); ++i)
    all.push_back(child(value_->items[i], fmt::format("{}", i)));
  return all;
}

std::vector<std::string> Config::keys() const {
  if (!is_map()) expected("a mapping");
  std::vector<std::string> all;
  for (const YamlValue& item : value_->items) all.push_back(item.key);
  return all;
}

std::vector<std::pair<std::string, Config>> Config::entries() const {
  if (!is_map()) expected("a mapping");
  std::vector<std::pair<std::string, Config>> all;
  for (const YamlValue& item : value_->items) {
    document_->asked[value_].emplace(item.key);
    all.emplace_back(item.key, child(item, item.key));
  }
  return all;
}

void Config::reject_unknown_keys(std::span<const OtherName> meant) const {
  if (value_->kind == Kind::null) return;
  if (!is_map()) expected("a mapping");
  const auto& asked = document_->asked[value_];
  for (const YamlValue& item : value_->items) {
    if (asked.contains(item.key)) continue;
    const Config unknown = child(item, fmt::format("{:.60}", item.key));
    std::string typed = item.key;  // "tensor-parallel", as flags write it
    std::ranges::replace(typed, '-', '_');
    const auto other = std::ranges::find(meant, std::string_view(typed), &OtherName::typed);
    throw Error(unknown.where_at(item.key_line, item.key_column, unknown.path_),
                fmt::format("unknown key '{:.60}'", item.key),
                other != meant.end()
                    ? fmt::format("did you mean '{}'?", other->key)
                    : suggest(item.key, std::vector<std::string>(asked.begin(), asked.end())));
  }
}

std::string Config::text() const {
  if (!is_scalar()) expected("a single value");
  return value_->scalar;
}

std::string Config::text_at(std::string_view key) const {
  const std::optional<Config> found = find(key);
  return found ? found->text() : std::string();
}

std::string Config::yaml() const {
  return yaml_of(*value_);
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
