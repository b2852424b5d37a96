// A located view of a YAML (or JSON, which is YAML) document: typed values, every error with file:line:column
// and key.
//
// The caller reads the keys it knows and then calls `reject_unknown_keys`: a key nobody asked for is an Error
// with "did you mean". Numbers with a dimension need their unit (base/units_text.h). Anchors and aliases
// work; what a document may hold is bounded (base/yaml/yaml_tree.h). A Config is a small handle: copies and
// the children of one document share it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace armilla {

struct YamlValue;

// "key.path=value" (lists by index or by the items' `name`: "dims.0.size=8", "dims[0].size=8",
// "dims.rail.size=8"); the value is YAML.
struct Override {
  Override(std::string setting_, std::string where_ = {}, std::string file_ = {})
      : setting(std::move(setting_)), where(std::move(where_)), file(std::move(file_)) {}
  Override(const char* setting_) : setting(setting_) {}

  std::string setting;
  std::string where;  // what errors call it ("--ranks 12"); empty: "--set SETTING"
  std::string file;   // that it stands in, where it stands in one: relative paths are relative to its folder
};

// Keys above others first, so that what is set below a key stays, whatever the order it was given in.
void sort_upper_first(std::vector<Override>& overrides);

// What users write for a key, and the key: {"tp", "tensor"}.
struct OtherName {
  std::string_view typed, key;
};

// A document and what messages call it.
struct NamedText {
  std::string name, text;
};
// What the single value at a key path stands for, where an override goes on below it: "dgx-h100" under
// "machine" for the description of that machine; or, without a name, the key under which it stands in the
// long form of what it is the short form of ("name" of a model). `folder` is Config::folder of the value.
// Nothing: it has no keys.
using Expand = std::function<std::optional<NamedText>(const std::string& path, const std::string& value,
                                                      const std::string& folder)>;

class Config {
 public:
  // `name` is what error messages call the file. Throws Error on a syntax error or an override that goes
  // through a scalar which `expand` knows nothing of.
  static Config parse(std::string_view text, const std::string& name,
                      const std::vector<Override>& overrides = {}, const Expand& expand = {});
  // A text that its author knows as JSON: what is wrong with it is said in that word.
  static Config parse_json(std::string_view text, const std::string& name);
  static Config read(const std::string& path, const std::vector<Override>& overrides = {},
                     const Expand& expand = {});
  // The whole document that this value belongs to with more overrides over its own, as a document of its own
  // in which no key has been asked for: cheaper than to parse it again. May be called by several threads.
  Config with(const std::vector<Override>& overrides, const Expand& expand = {}) const;

  std::string where() const;        // "study.yaml:3:5: machine.dims.0", "--set machine.dims.0=x"
  const std::string& file() const;  // the name given to `parse`
  // The file that the value stands in; nothing for an override that stands in none. And its folder ("" or
  // with the final slash), which relative paths in the value are relative to.
  const std::string& stands_in() const;
  std::string folder() const;
  // Whether an override set this value; whether one set some value below it.
  bool is_override() const;
  bool has_overrides() const;

  bool is_map() const;
  bool is_list() const;
  bool is_scalar() const;

  bool has(std::string_view key) const;
  // The value under `key`; an Error when it is missing, or when this is no mapping.
  Config at(std::string_view key) const;
  std::optional<Config> find(std::string_view key) const;
  // What an override's path of keys names below this value ("dims.0.size", "dims[rail].size"): values that
  // two paths name are the same value. The last key need not be there; nothing where others are missing.
  struct Place {
    const YamlValue* in = nullptr;
    std::string key;
    bool operator==(const Place&) const = default;
  };
  std::optional<Place> place_of(std::string_view path) const;
  std::vector<Config> items() const;      // of a list
  std::vector<std::string> keys() const;  // of a mapping, in file order
  // Of a mapping whose keys are the user's own names, in file order; all count as asked for.
  std::vector<std::pair<std::string, Config>> entries() const;
  // Throws for the first key that neither `at`, `find` nor `has` was asked for. `meant` has other words for
  // keys, of this mapping or of others ("tp" for "tensor"); the hint then names the key.
  void reject_unknown_keys(std::span<const OtherName> meant = {}) const;

  std::string text() const;                         // any scalar, as written
  std::string text_at(std::string_view key) const;  // that under `key`, or none where it is missing
  std::string yaml() const;                         // any value, in one line that reads back as the same
  bool boolean() const;                             // true or false
  std::int64_t count(std::int64_t lowest = 1, std::int64_t highest = INT64_MAX) const;
  double fraction() const;  // 0 to 1, or a percentage
  Time time() const;
  Bytes bytes() const;
  Bandwidth bandwidth() const;
  FlopRate flop_rate() const;
  Frequency frequency() const;
  // One of `choices`, as its index.
  std::size_t choice(const std::vector<std::string_view>& choices) const;

 private:
  struct Document;  // file name, tree and, per mapping, the keys that were asked for
  Config(const YamlValue& value, std::string path, std::shared_ptr<Document> document);
  static Config over(std::shared_ptr<Document> document, const std::vector<Override>& overrides,
                     const Expand& expand);
  Config child(const YamlValue& value, std::string_view key) const;
  std::string where_at(int line, int column, const std::string& path) const;
  [[noreturn]] void expected(std::string_view what) const;

  const YamlValue* value_;
  std::string path_;
  std::shared_ptr<Document> document_;
};

}  // namespace armilla
