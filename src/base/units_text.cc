#include "base/units_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "base/amount.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/suggest.h"

namespace armilla {
namespace {

struct Unit {
  std::string_view name;
  double scale;  // in the base unit of the quantity
};

constexpr double kKibi = 1024.0, kMebi = kKibi * 1024, kGibi = kMebi * 1024, kTebi = kGibi * 1024,
                 kPebi = kTebi * 1024;

// Both micro signs: U+00B5 and the Greek letter U+03BC.
constexpr Unit kTimeUnits[] = {{"ps", 1},   {"ns", 1e3}, {"us", 1e6},    {"\u00b5s", 1e6}, {"\u03bcs", 1e6},
                               {"ms", 1e9}, {"s", 1e12}, {"min", 60e12}, {"h", 3600e12}};
// A year has 365.25 days.
constexpr Unit kDurationUnits[] = {{"s", 1},           {"ms", 1e-3},    {"us", 1e-6},    {"ns", 1e-9},
                                   {"ps", 1e-12},      {"min", 60},     {"h", 3600},     {"d", 86400},
                                   {"day", 86400},     {"days", 86400}, {"y", 31557600}, {"year", 31557600},
                                   {"years", 31557600}};
constexpr Unit kAmountUnits[] = {{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}};
constexpr Unit kBytesUnits[] = {{"B", 1},       {"kB", 1e3},    {"KB", 1e3},    {"MB", 1e6},
                                {"GB", 1e9},    {"TB", 1e12},   {"PB", 1e15},   {"KiB", kKibi},
                                {"MiB", kMebi}, {"GiB", kGibi}, {"TiB", kTebi}, {"PiB", kPebi}};
// A lower-case b is bits, as in bps; a capital B is bytes.
constexpr Unit kBandwidthUnits[] = {
    {"B/s", 1},      {"kB/s", 1e3},    {"KB/s", 1e3},    {"MB/s", 1e6},    {"GB/s", 1e9},    {"TB/s", 1e12},
    {"PB/s", 1e15},  {"KiB/s", kKibi}, {"MiB/s", kMebi}, {"GiB/s", kGibi}, {"TiB/s", kTebi}, {"bps", 0.125},
    {"kbps", 125},   {"Kbps", 125},    {"Mbps", 125e3},  {"Gbps", 125e6},  {"Tbps", 125e9},  {"Mb/s", 125e3},
    {"Gb/s", 125e6}, {"Tb/s", 125e9},  {"kBps", 1e3},    {"MBps", 1e6},    {"GBps", 1e9},    {"TBps", 1e12}};
constexpr Unit kFlopRateUnits[] = {{"FLOPS", 1},      {"MFLOPS", 1e6},  {"GFLOPS", 1e9},  {"TFLOPS", 1e12},
                                   {"PFLOPS", 1e15},  {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12},
                                   {"PFLOP/s", 1e15}, {"TOPS", 1e12}};
constexpr Unit kFrequencyUnits[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit kPowerUnits[] = {{"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
constexpr Unit kMoneyUnits[] = {{"USD", 1}, {"kUSD", 1e3}, {"MUSD", 1e6}, {"BUSD", 1e9}};
constexpr Unit kPriceUnits[] = {{"USD/h", 1}};

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Splits off the leading number; returns the rest, trimmed.
std::string_view take_number(std::string_view text, const std::string& where, std::string_view expected,
                             double& number) {
  const std::string_view trimmed = trim(text);
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (error == std::errc::result_out_of_range) {
    throw Error(where, fmt::format("'{:.60}' is out of range", text), fmt::format("expected {}", expected));
  }
  if (error != std::errc{} || !std::isfinite(number)) {
    throw Error(where, fmt::format("'{:.60}' is not a number", text), fmt::format("expected {}", expected));
  }
  return trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
}

double parse_quantity(std::string_view text, const std::string& where, std::string_view noun,
                      std::string_view example, std::span<const Unit> units) {
  const std::string expected = fmt::format("{} with its unit, such as '{}'", noun, example);
  double number = 0;
  const std::string_view unit = take_number(text, where, expected, number);
  if (unit.empty())
    throw Error(where, fmt::format("'{:.60}' has no unit", text), fmt::format("expected {}", expected));
  for (const Unit& known : units) {
    if (known.name != unit) continue;
    if (number < 0)
      throw Error(where, fmt::format("'{:.60}' is negative", text), fmt::format("expected {}", expected));
    return number * known.scale;
  }
  std::vector<std::string_view> names;
  for (const Unit& known : units) names.push_back(known.name);
  // The only unit there is named as such: that it is near in letters says nothing.
  throw Error(where, fmt::format("'{:.60}' is not a unit of {}", unit, noun),
              names.size() == 1 ? fmt::format("known: {}, such as '{}'", names.front(), example)
                                : suggest(unit, std::span<const std::string_view>(names)));
}

// A positive value must not become a silent zero.
std::int64_t to_whole(double value, std::string_view text, const std::string& where, std::string_view unit) {
  const std::int64_t whole = std::llround(value);
  if (value > 0 && value < 1)
    throw Error(where, fmt::format("'{:.60}' is too small", text),
                fmt::format("the resolution is 1 {}", unit));
  return whole;
}

// Rates divide, so neither zero nor infinity may pass; the limits are far beyond any machine.
double check_rate(double value, std::string_view text, const std::string& where, double highest,
                  std::string_view unit) {
  if (value < 1)
    throw Error(where, fmt::format("'{:.60}' is too small", text),
                fmt::format("the lowest value is 1 {}", unit));
  if (!(value <= highest)) {
    throw Error(where, fmt::format("'{:.60}' is absurdly large", text),
                fmt::format("the limit is {:g} {}", highest, unit));
  }
  return value;
}

// Of watts and money, which may be none at all.
double check_amount(double value, std::string_view text, const std::string& where, std::string_view unit) {
  constexpr double kMost = 1e15;
  if (!(value <= kMost)) {
    throw Error(where, fmt::format("'{:.60}' is absurdly large", text),
                fmt::format("the limit is {:g} {}", kMost, unit));
  }
  return value;
}

// Scales `value` by powers of `step` until it is below it, also after rounding to the one digit printed
// there.
std::string scaled(double value, double step, std::span<const char* const> names) {
  std::size_t i = 0;
  while (std::abs(value) >= step - 0.05 && i + 1 < names.size()) value /= step, ++i;
  const int digits = std::abs(value) >= 100 ? 1 : std::abs(value) >= 10 ? 2 : 3;
  return fmt::format("{:.{}f} {}", value, digits, names[i]);
}

}  // namespace

Time parse_time(std::string_view text, const std::string& where) {
  const double ps = parse_quantity(text, where, "a time", "500ns", kTimeUnits);
  if (ps >= static_cast<double>(kEndOfTime.value)) {
    throw Error(where, fmt::format("'{:.60}' is absurdly long", text), "the longest time is 26 days");
  }
  return Time(to_whole(ps, text, where, "ps"));
}

double parse_duration(std::string_view text, const std::string& where) {
  constexpr double kMost = 1e12;
  const double seconds = parse_quantity(text, where, "a duration", "3h", kDurationUnits);
  if (seconds > kMost)
    throw Error(where, fmt::format("'{:.60}' is absurdly long", text), "the longest duration is 30000 years");
  return seconds;
}

Bytes parse_bytes(std::string_view text, const std::string& where) {
  constexpr double kMost = 1e18;
  const double bytes = parse_quantity(text, where, "a size", "25MiB", kBytesUnits);
  if (bytes > kMost)
    throw Error(where, fmt::format("'{:.60}' is absurdly large", text), "the limit is 1000 PB");
  return Bytes(to_whole(bytes, text, where, "B"));
}

Bandwidth parse_bandwidth(std::string_view text, const std::string& where) {
  const double value = parse_quantity(text, where, "a bandwidth", "400Gbps", kBandwidthUnits);
  return Bandwidth(check_rate(value, text, where, 1e18, "B/s"));
}

FlopRate parse_flop_rate(std::string_view text, const std::string& where) {
  const double value = parse_quantity(text, where, "a compute rate", "312TFLOPS", kFlopRateUnits);
  return FlopRate(check_rate(value, text, where, 1e24, "FLOPS"));
}

Power parse_power(std::string_view text, const std::string& where) {
  return Power(check_amount(parse_quantity(text, where, "a power", "700W", kPowerUnits), text, where, "W"));
}

Money parse_money(std::string_view text, const std::string& where) {
  return Money(
      check_amount(parse_quantity(text, where, "money", "2.5MUSD", kMoneyUnits), text, where, "USD"));
}

Money parse_price(std::string_view text, const std::string& where) {
  return Money(
      check_amount(parse_quantity(text, where, "a price", "6.88USD/h", kPriceUnits), text, where, "USD/h"));
}

Frequency parse_frequency(std::string_view text, const std::string& where) {
  const double value = parse_quantity(text, where, "a frequency", "1.41GHz", kFrequencyUnits);
  return Frequency(check_rate(value, text, where, 1e15, "Hz"));
}

std::int64_t parse_count(std::string_view text, const std::string& where) {
  const std::string_view trimmed = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
  if (error == std::errc::result_out_of_range)
    throw Error(where, fmt::format("'{:.60}' is out of range", text));
  if (error != std::errc{} || end != trimmed.data() + trimmed.size()) {
    throw Error(where, fmt::format("'{:.60}' is not a whole number", text));
  }
  return value;
}

double parse_real(std::string_view text, const std::string& where) {
  double value = 0;
  const std::string_view rest = take_number(text, where, "a plain number, such as '0.5'", value);
  if (!rest.empty()) throw Error(where, fmt::format("'{:.60}' is not a plain number", text));
  return value;
}

double parse_fraction(std::string_view text, const std::string& where) {
  double value = 0;
  const std::string_view rest =
      take_number(text, where, "a fraction between 0 and 1, such as '0.9' or '90%'", value);
  if (rest == "%") value /= 100;
  if ((!rest.empty() && rest != "%") || value < 0 || value > 1) {
    throw Error(where, fmt::format("'{:.60}' is not a fraction between 0 and 1", text),
                "write '0.9' or '90%'");
  }
  return value;
}

double parse_amount(std::string_view text, const std::string& where) {
  constexpr double kMost = 1e18;
  double amount = 0;
  const std::string_view suffix = take_number(text, where, "a count such as '15T' or '300e9'", amount);
  if (!suffix.empty()) {
    const auto* const unit = std::find_if(std::begin(kAmountUnits), std::end(kAmountUnits),
                                          [&](const Unit& known) { return known.name == suffix; });
    if (unit == std::end(kAmountUnits)) {
      throw Error(where, fmt::format("'{:.60}' is not the suffix of a count", suffix),
                  "k, M, B and T stand for 1e3, 1e6, 1e9 and 1e12");
    }
    amount *= unit->scale;
  }
  if (!(amount > 0)) throw Error(where, fmt::format("'{:.60}' is not a positive count", text));
  if (amount > kMost)
    throw Error(where, fmt::format("'{:.60}' is absurdly large", text), "the limit is 1e18");
  return amount;
}

std::string amount_text(double amount) {
  constexpr std::pair<double, std::string_view> kScales[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e4, "k"}};
  for (const auto& [scale, suffix] : kScales) {
    // What rounds up to the next power has its name.
    if (amount >= 0.9999995 * scale)
      return fmt::format("{:.6g}{}", amount / (scale == 1e4 ? 1e3 : scale), suffix);
  }
  return fmt::format("{:.6g}", amount);
}

std::string to_text(Time t) {
  static constexpr const char* kNames[] = {"ps", "ns", "us", "ms", "s"};
  return t.value == 0 ? "0 s" : scaled(static_cast<double>(t.value), 1000, kNames);
}
std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400, kYear = 31557600;
  constexpr std::pair<double, std::string_view> kShort[] = {{1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  for (const auto& [scale, unit] : kShort) {
    if (seconds < 0.99995 && seconds >= 0.99995 * scale)
      return fmt::format("{:.4g} {}", seconds / scale, unit);
  }
  if (seconds < 2 * kMinute) return fmt::format("{:.4g} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.4g} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.4g} h", seconds / kHour);
  if (seconds < 2 * kYear) return fmt::format("{:.4g} days", seconds / kDay);
  const double years = seconds / kYear;
  // Beyond what a whole number holds, infinity too, the exponent says enough.
  return years < 1e4 || years >= 1e15 || std::isnan(years) ? fmt::format("{:.4g} years", years)
                                                           : with_separators(std::llround(years)) + " years";
}
std::string to_text(Bytes b) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return b.value < 1024 ? fmt::format("{} B", b.value) : scaled(static_cast<double>(b.value), 1024, kNames);
}
std::string to_text(Flops f) {
  static constexpr const char* kNames[] = {"flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop"};
  return scaled(static_cast<double>(f.value), 1000, kNames);
}
std::string to_text(Bandwidth b) {
  static constexpr const char* kNames[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
  return scaled(b.value, 1000, kNames);
}
std::string to_text(FlopRate r) {
  static constexpr const char* kNames[] = {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"};
  return scaled(r.value, 1000, kNames);
}
std::string to_text(Power p) {
  constexpr std::array kNames = {"W", "kW", "MW", "GW"};
  return scaled(p.value, 1000, kNames);
}

std::string to_text(Energy e) {
  constexpr std::array kNames = {"uWh", "mWh", "Wh", "kWh", "MWh", "GWh", "TWh"};
  return scaled(e.value / 3600 * 1e6, 1000, kNames);
}

std::string to_text(Money m) {
  if (m.value >= 999'950) {
    constexpr std::array kNames = {"M USD", "B USD", "T USD"};
    std::string text = scaled(m.value / 1e6, 1000, kNames);
    text.erase(text.find(' '), 1);
    return text;
  }
  if (m.value >= 999.95) return with_separators(std::llround(m.value)) + " USD";
  return fmt::format("{:.4g} USD", m.value);
}

std::string to_text(Frequency f) {
  static constexpr const char* kNames[] = {"Hz", "kHz", "MHz", "GHz"};
  return scaled(f.value, 1000, kNames);
}

std::string with_separators(std::int64_t n) {
  std::string digits = fmt::format("{}", n);
  // From the right, three digits at a time; the minus sign does not count as a digit.
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3) {
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  }
  return digits;
}

namespace {

std::string_view ending_of(std::int64_t count, std::string_view noun) {
  if (count == 1) return "";
  return noun.ends_with("ch") || noun.ends_with("ss") ? "es" : "s";
}

}  // namespace

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_separators(count), noun, ending_of(count, noun));
}

std::string typed_count(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, ending_of(count, noun));
}

}  // namespace armilla
