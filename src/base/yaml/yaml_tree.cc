#include "base/yaml/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"

namespace armilla {
namespace {

// Bounds for hostile documents: length, values with aliases expanded, and nesting.
constexpr std::size_t kLongestText = 1 << 20;
constexpr std::size_t kMostValues = 100'000;
constexpr std::size_t kDeepest = 64;

// Builds the tree from the parser's events. yaml-cpp's own node graph is not used: it shares aliased nodes,
// so that a walk over it may never end, and an override through one alias would change the others.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& name) : name_(name) {}

  YamlValue take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish(make(YamlValue::Kind::null, mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& text) override {
    YamlValue value = make(YamlValue::Kind::scalar, mark);
    value.scalar = text;
    finish(std::move(value), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlValue::Kind::list, mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlValue::Kind::map, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }
  // An alias is a copy, so that it can be overridden by itself. Copies count, so a few lines cannot expand to
  // billions of values.
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) throw Error(place(mark), "an alias stands inside what it refers to");
    count(found->second, mark);
    YamlValue value = found->second;
    value.line = mark.line + 1;
    value.column = mark.column + 1;
    finish(std::move(value), 0);
  }

 private:
  struct Open {
    YamlValue value;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // of a mapping: the next value belongs to `key`
    YamlValue key;
    std::set<std::string> keys;
  };

  std::string place(const YAML::Mark& mark) const {
    return fmt::format("{}:{}:{}", name_, mark.line + 1, mark.column + 1);
  }

  void count_one(const YAML::Mark& mark) {
    if (++values_ > kMostValues) {
      throw Error(place(mark), fmt::format("the document holds more than {} values", kMostValues),
                  "aliases count as often as they are used");
    }
  }
  void count(const YamlValue& value, const YAML::Mark& mark) {
    count_one(mark);
    for (const YamlValue& item : value.items) count(item, mark);
  }

  YamlValue make(YamlValue::Kind kind, const YAML::Mark& mark) {
    count_one(mark);
    YamlValue value;
    value.kind = kind;
    value.line = mark.line + 1;
    value.column = mark.column + 1;
    return value;
  }

  void open(YamlValue::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() >= kDeepest) {
      throw Error(place(mark), fmt::format("the document is nested deeper than {} levels", kDeepest));
    }
    if (expects_key()) refuse_key(place(mark));
    open_.push_back({make(kind, mark), anchor, false, {}, {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    finish(std::move(done.value), done.anchor);
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().value.kind == YamlValue::Kind::map && !open_.back().has_key;
  }

  void finish(YamlValue value, YAML::anchor_t anchor) {
    if (anchor != 0) {
      YAML::Mark mark;
      mark.line = value.line - 1;
      mark.column = value.column - 1;
      count(value, mark);
      anchored_[anchor] = value;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (expects_key()) {
      take_key(parent, std::move(value));
      return;
    }
    if (parent.has_key) {
      value.key = std::move(parent.key.scalar);
      value.key_line = parent.key.line;
      value.key_column = parent.key.column;
      parent.has_key = false;
    }
    parent.value.items.push_back(std::move(value));
  }

  [[noreturn]] static void refuse_key(const std::string& where) {
    throw Error(where, "a key must be a plain word", "a bracket that is never closed reads like one, too");
  }

  void take_key(Open& mapping, YamlValue key) {
    const std::string where = fmt::format("{}:{}:{}", name_, key.line, key.column);
    if (key.kind != YamlValue::Kind::scalar) refuse_key(where);
    if (!mapping.keys.insert(key.scalar).second)
      throw Error(where, fmt::format("key '{:.60}' is given twice", key.scalar));
    mapping.key = std::move(key);
    mapping.has_key = true;
  }

  const std::string& name_;
  YamlValue root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlValue> anchored_;
  std::size_t values_ = 0;
};

}  // namespace

const YamlValue* YamlValue::find(std::string_view wanted) const {
  if (kind != Kind::map) return nullptr;
  for (const YamlValue& item : items) {
    if (item.key == wanted) return &item;
  }
  return nullptr;
}

namespace {

struct Complaint {
  std::string_view said, hint;
};

constexpr Complaint kTab = {"the line is indented with a tab", "indent it with spaces"};

// What yaml-cpp says in the words of its grammar.
Complaint in_plain_words(std::string_view message) {
  struct Known {
    std::string_view message;
    Complaint complaint;
  };
  static constexpr std::array kKnown = {
      Known{"illegal map value",
            {"a second ': ' in one line", "put quotes around a text that contains ': '"}},
      Known{"end of sequence flow not found", {"a '[' is not closed", "is a ']' or a comma missing?"}},
      Known{"end of map flow not found", {"a '{' is not closed", "is a '}' or a comma missing?"}},
      Known{"end of map not found",
            {"the line does not go with those before it", "keys of one map are indented alike"}},
      Known{"end of sequence not found",
            {"the line does not go with those before it", "the dashes of one list are indented alike"}},
  };
  for (const Known& known : kKnown) {
    if (known.message == message) return known.complaint;
  }
  return {message, {}};
}

bool is_indented_with_tab(std::string_view text, const YAML::Mark& mark) {
  for (int line = 0; line < mark.line; ++line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::size_t indent = text.find_first_not_of(" \t");
  return text.substr(0, indent).find('\t') != std::string_view::npos;
}

}  // namespace

YamlValue parse_yaml(std::string_view text, const std::string& name, std::string_view language) {
  if (text.find('\0') != std::string_view::npos)
    throw Error(name, fmt::format("is a binary file, not {}", language));
  if (text.size() > kLongestText)
    throw Error(name, "is too large to be a configuration file", "the limit is 1 MiB");
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(name);
    if (!parser.HandleNextDocument(builder)) return {};
    TreeBuilder second(name);
    if (parser.HandleNextDocument(second))
      throw Error(
          name, "holds more than one document",
          "keep one, without '---' between parts in YAML and with nothing after the last brace in JSON");
    return builder.take();
  } catch (const YAML::Exception& e) {
    const std::string where =
        e.mark.is_null() ? name : fmt::format("{}:{}:{}", name, e.mark.line + 1, e.mark.column + 1);
    const auto [said, hint] =
        e.mark.is_null() || !is_indented_with_tab(text, e.mark) ? in_plain_words(e.msg) : kTab;
    throw Error(where, fmt::format("not valid {}: {}", language, said), std::string(hint));
  }
}

}  // namespace armilla
