// Words of a text with the line that each stands on, as C++ streams split them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace armilla {

class RoceWords {
 public:
  RoceWords(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  // The next word, or none. On this line only, if told so.
  std::optional<std::string_view> next(bool same_line = false);
  void skip_line();

  // The next word as what it must be; `what` names it in errors.
  std::string_view word(std::string_view what, bool same_line = false);
  std::int64_t whole(std::string_view what, std::int64_t least, std::int64_t most, bool same_line = false);
  double real(std::string_view what, double least, double most, bool same_line = false);
  std::int64_t bits_per_second(std::string_view what,
                               bool same_line = false);  // "100Gbps", "20Mb/s", ns-3's units
  std::int64_t duration_ns(std::string_view what, bool same_line = false);  // "1000ns", "0.001ms"

  std::string where() const;  // of the word read last
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;

 private:
  std::string_view text_;
  std::string name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1, word_line_ = 1;
};

// Whether a topology of ns-3 is SimAI's, whose first line has five numbers where HPCC's has three:
// nodes, GPUs of a server, NVSwitches, other switches, links. The numbers of the NVSwitches stand before
// the others'.
bool is_simai_topology(std::string_view text);

// After a topology's links: links beyond those that its head announces. What follows may be a comment; a
// number begins another link. Where, and that they are there; empty: they are not.
std::string surplus_links(RoceWords& words, std::int64_t links);

}  // namespace armilla
