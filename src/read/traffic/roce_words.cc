#include "read/traffic/roce_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "base/text.h"

namespace armilla {
namespace {

struct NamedFactor {
  std::string_view name;
  double factor;
};

// Of rates, to bits per second.
constexpr std::array kRateUnits = {
    NamedFactor{"bps", 1},         NamedFactor{"b/s", 1},         NamedFactor{"Bps", 8},
    NamedFactor{"B/s", 8},         NamedFactor{"kbps", 1e3},      NamedFactor{"kb/s", 1e3},
    NamedFactor{"Kbps", 1e3},      NamedFactor{"Kb/s", 1e3},      NamedFactor{"kBps", 8e3},
    NamedFactor{"kB/s", 8e3},      NamedFactor{"KBps", 8e3},      NamedFactor{"KB/s", 8e3},
    NamedFactor{"Kib/s", 1024},    NamedFactor{"KiB/s", 8192},    NamedFactor{"Mbps", 1e6},
    NamedFactor{"Mb/s", 1e6},      NamedFactor{"MBps", 8e6},      NamedFactor{"MB/s", 8e6},
    NamedFactor{"Mib/s", 1048576}, NamedFactor{"MiB/s", 8388608}, NamedFactor{"Gbps", 1e9},
    NamedFactor{"Gb/s", 1e9},      NamedFactor{"GBps", 8e9},      NamedFactor{"GB/s", 8e9},
    NamedFactor{"Gib/s", 0x1p30},  NamedFactor{"GiB/s", 0x1p33},  NamedFactor{"Tbps", 1e12},
    NamedFactor{"Tb/s", 1e12},     NamedFactor{"TBps", 8e12},     NamedFactor{"TB/s", 8e12},
};

// Of times, to nanoseconds.
constexpr std::array kTimeUnits = {
    NamedFactor{"s", 1e9},   NamedFactor{"ms", 1e6},   NamedFactor{"us", 1e3},   NamedFactor{"ns", 1},
    NamedFactor{"ps", 1e-3}, NamedFactor{"min", 60e9}, NamedFactor{"h", 3600e9}, NamedFactor{"", 1e9},
};

}  // namespace

std::optional<std::string_view> RoceWords::next(bool same_line) {
  while (at_ < text_.size() && kBlank.find(text_[at_]) != std::string_view::npos) {
    if (text_[at_] == '\n') {
      if (same_line) return std::nullopt;
      ++line_;
    }
    ++at_;
  }
  if (at_ == text_.size()) return std::nullopt;
  const std::size_t end = std::min(text_.find_first_of(kBlank, at_), text_.size());
  word_line_ = line_;
  return text_.substr(std::exchange(at_, end), end - at_);
}

void RoceWords::skip_line() {
  at_ = std::min(text_.find('\n', at_), text_.size());
}

std::string RoceWords::where() const {
  return fmt::format("{}:{}", name_, word_line_);
}

void RoceWords::fail(const std::string& message, const std::string& hint) const {
  throw Error(where(), message, hint);
}

std::string_view RoceWords::word(std::string_view what, bool same_line) {
  const std::optional<std::string_view> found = next(same_line);
  if (!found) {
    word_line_ = line_;
    fail(fmt::format("{} is missing", what));
  }
  return *found;
}

std::int64_t RoceWords::whole(std::string_view what, std::int64_t least, std::int64_t most, bool same_line) {
  const double value = real(what, static_cast<double>(least), static_cast<double>(most), same_line);
  if (value != std::floor(value)) fail(fmt::format("{} must be a whole number", what));
  return static_cast<std::int64_t>(value);
}

double RoceWords::real(std::string_view what, double least, double most, bool same_line) {
  const std::string_view text = word(what, same_line);
  const auto value = number_from<double>(text);
  if (!value) fail(fmt::format("{}: '{}' is not a number", what, text));
  if (!(*value >= least && *value <= most))
    fail(fmt::format("{}: {} is out of range", what, text), fmt::format("from {} to {}", least, most));
  return *value;
}

namespace {

// A number and a unit of the table, at most 9e18 times the table's smallest.
double quantity(const RoceWords& words, std::string_view what, std::string_view text,
                std::span<const NamedFactor> units, std::string_view example) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc{}) {
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    for (const NamedFactor& known : units) {
      if (known.name != unit) continue;
      value *= known.factor;
      if (value >= 0 && value < 9e18) return value;
      words.fail(fmt::format("{}: '{}' is out of range", what, text));
    }
  }
  words.fail(fmt::format("{}: '{}' is not a {}", what, text, example));
}

}  // namespace

std::int64_t RoceWords::bits_per_second(std::string_view what, bool same_line) {
  const std::string_view text = word(what, same_line);
  // A rate without a unit is in bits per second.
  if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    return static_cast<std::int64_t>(quantity(*this, what, text, std::array{NamedFactor{"", 1}}, "rate"));
  }
  return static_cast<std::int64_t>(quantity(*this, what, text, kRateUnits, "rate such as 100Gbps"));
}

std::int64_t RoceWords::duration_ns(std::string_view what, bool same_line) {
  return std::llround(quantity(*this, what, word(what, same_line), kTimeUnits, "time such as 1000ns"));
}

}  // namespace armilla
