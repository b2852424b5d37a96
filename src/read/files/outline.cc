#include "read/outline.h"

#include <algorithm>

#include "base/text.h"

namespace armilla {
namespace {

constexpr std::size_t kLongestText = 40;

// Walks JSON (and YAML's flow style, whose words need no quotes) without building anything.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  Outline run() {
    Outline outline;
    skip_blank();
    if (at_end()) return outline;
    const char first = text_[at_];
    outline.form = first == '{'   ? Outline::Form::mapping
                   : first == '[' ? Outline::Form::list
                                  : Outline::Form::scalar;
    if (first == '{') {
      outline.complete = mapping(&outline.keys);
    } else if (first == '[') {
      ++at_;
      skip_blank();
      if (!at_end() && text_[at_] == '{') mapping(&outline.keys);
      return outline;
    }
    skip_blank();
    outline.several = outline.complete && !at_end();
    return outline;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  void skip_blank() {
    while (!at_end() && kBlank.find(text_[at_]) != kBlank.npos) ++at_;
  }

  // The text of a word or a string; leaves the cursor behind it.
  std::string word() {
    std::string result;
    if (text_[at_] == '"' || text_[at_] == '\'') {
      const char quote = text_[at_++];
      while (!at_end() && text_[at_] != quote) {
        if (text_[at_] == '\\') ++at_;
        if (!at_end()) result += text_[at_++];
      }
      if (!at_end()) ++at_;
      return result;
    }
    while (!at_end() && std::string_view(",:{}[]\n").find(text_[at_]) == std::string_view::npos)
      result += text_[at_++];
    while (!result.empty() && kBlank.find(result.back()) != kBlank.npos) result.pop_back();
    return result;
  }

  void skip_value() {
    int depth = 0;
    while (!at_end()) {
      const char c = text_[at_];
      if (c == '"') {
        word();
      } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
        return;
      } else {
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        ++at_;
      }
    }
  }

  // Whether the mapping ends within the text.
  bool mapping(std::vector<OutlineKey>* keys) {
    ++at_;
    while (true) {
      skip_blank();
      if (at_end()) return false;
      if (text_[at_] == '}') {
        ++at_;
        return true;
      }
      const std::size_t before = at_;
      OutlineKey key;
      key.name = word();
      skip_blank();
      if (!at_end() && text_[at_] == ':') {
        ++at_;
        value(key);
        keys->push_back(std::move(key));
      }
      skip_value();
      if (!at_end() && text_[at_] == ',') ++at_;
      if (at_ == before) ++at_;  // damaged: go on behind it
    }
  }

  void value(OutlineKey& key) {
    skip_blank();
    if (at_end()) return;
    key.value = text_[at_];
    if (key.value == '{' || key.value == '[') {
      const std::size_t inside = text_.find_first_not_of(kBlank, at_ + 1);
      if (inside != text_.npos) key.inside = text_[inside];
      return;
    }
    key.text = word().substr(0, kLongestText);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// "key: value" or "key:" in the first column.
bool read_line(std::string_view line, OutlineKey& key) {
  std::size_t colon = line.find(": ");
  const std::size_t tab = line.find(":\t");
  colon = std::min(colon, tab);
  if (colon == line.npos) {
    while (!line.empty() && kBlank.find(line.back()) != kBlank.npos) line.remove_suffix(1);
    if (!line.ends_with(':')) return false;
    colon = line.size() - 1;
  }
  std::string_view name = line.substr(0, colon);
  while (!name.empty() && kBlank.find(name.back()) != kBlank.npos) name.remove_suffix(1);
  if (name.size() >= 2 && (name.front() == '"' || name.front() == '\'') && name.back() == name.front())
    name = name.substr(1, name.size() - 2);
  constexpr std::size_t kLongestKey = 80;
  if (name.empty() || name.size() > kLongestKey) return false;
  key.name = name;
  std::string_view rest = line.substr(colon + 1);
  const std::size_t begin = rest.find_first_not_of(kBlank);
  if (begin == rest.npos || rest[begin] == '#') return true;
  rest.remove_prefix(begin);
  key.value = rest[0];
  if (key.value == '[' || key.value == '{') {
    const std::size_t inside = rest.find_first_not_of(kBlank, 1);
    if (inside != rest.npos) key.inside = rest[inside];
    return true;
  }
  rest = rest.substr(0, rest.find(" #"));
  while (!rest.empty() && kBlank.find(rest.back()) != kBlank.npos) rest.remove_suffix(1);
  key.text = rest.substr(0, kLongestText);
  return true;
}

}  // namespace

const OutlineKey* Outline::find(std::string_view name) const {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const OutlineKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

Outline outline_json(std::string_view text) {
  return Walker(text).run();
}

Outline outline_yaml(std::string_view text) {
  Outline outline;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find_first_not_of(kBlank);
    if (first == line.npos || line[first] == '#') continue;
    if (line.starts_with("---") || line.starts_with("%YAML")) continue;
    if (first > 0 && outline.form != Outline::Form::none) continue;  // belongs to what stands above
    if (line.starts_with("- ") || line == "-") {
      if (outline.form == Outline::Form::none) outline.form = Outline::Form::list;
      continue;
    }
    OutlineKey key;
    if (read_line(line.substr(first), key)) {
      if (outline.form == Outline::Form::none) outline.form = Outline::Form::mapping;
      outline.keys.push_back(std::move(key));
    } else if (outline.form == Outline::Form::none) {
      outline.form = Outline::Form::scalar;
      return outline;
    }
  }
  return outline;
}

}  // namespace armilla
