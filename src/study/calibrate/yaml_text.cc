#include <algorithm>

#include "study/calibrate.h"

namespace armilla {
namespace {

bool is_plain(const std::string& text) {
  const auto belongs = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-' || c == '%';
  };
  return !text.empty() && text.front() != '-' && text.front() != '%' &&
         std::all_of(text.begin(), text.end(), belongs);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + '"';
}

void append(const Config& value, std::size_t indent, std::string& text);

// What follows "key:" or "-".
void append_below(const Config& value, std::size_t indent, std::string& text) {
  if (value.is_scalar()) {
    text += ' ' + (is_plain(value.text()) ? value.text() : quoted(value.text())) + '\n';
  } else if (value.is_map() || value.is_list()) {
    const bool empty = value.is_map() ? value.keys().empty() : value.items().empty();
    if (empty) {
      text += value.is_map() ? " {}\n" : " []\n";
    } else {
      text += '\n';
      append(value, indent + 2, text);
    }
  } else {
    text += '\n';
  }
}

void append(const Config& value, std::size_t indent, std::string& text) {
  if (value.is_map()) {
    for (const std::string& key : value.keys()) {
      text += std::string(indent, ' ') + (is_plain(key) ? key : quoted(key)) + ':';
      append_below(value.at(key), indent, text);
    }
    return;
  }
  for (const Config& item : value.items()) {
    text += std::string(indent, ' ') + '-';
    append_below(item, indent, text);
  }
}

}  // namespace

std::string yaml_text(const Config& value) {
  std::string text;
  append(value, 0, text);
  return text;
}

}  // namespace armilla
