// For tests: protobuf messages of any schema, written field by field.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace armilla {

class WireText {
 public:
  WireText& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  WireText& bytes(unsigned field, std::string_view content) {
    varint(field << 3 | 2);
    varint(content.size());
    text_ += content;
    return *this;
  }
  WireText& message(unsigned field, const WireText& content) { return bytes(field, content.text_); }
  WireText& real32(unsigned field, float value) {
    varint(field << 3 | 5);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    text_.append(raw, sizeof raw);
    return *this;
  }
  WireText& real64(unsigned field, double value) {
    varint(field << 3 | 1);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    text_.append(raw, sizeof raw);
    return *this;
  }
  WireText& varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) text_ += static_cast<char>(value | 128);
    text_ += static_cast<char>(value);
    return *this;
  }
  WireText& append(const WireText& more) {
    text_ += more.text_;
    return *this;
  }
  // As a record of a file: with its length in front.
  std::string record() const { return WireText().varint(text_.size()).text_ + text_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace armilla
