// Quantities as text: "400Gbps", "3.35TB/s", "500ns", "25MiB", "312TFLOPS", "1.41GHz".
//
// Parsing: a number, optional spaces, a unit. A bare number, an unknown unit, a negative or a non-finite
// value is an Error; so is one that the type cannot hold, that rounds to nothing, or a rate of zero. Decimal
// prefixes are powers of 1000, Ki/Mi/Gi/Ti powers of 1024; "b" is a bit and "B" a byte. Printing picks the
// prefix that leaves one to three digits before the point (four for binary prefixes), and at least four
// significant digits.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "base/units.h"

namespace armilla {

// `where` (a flag or a located key) begins the message of the Error.
Time parse_time(std::string_view text, const std::string& where);
Bytes parse_bytes(std::string_view text, const std::string& where);
Bandwidth parse_bandwidth(std::string_view text, const std::string& where);
FlopRate parse_flop_rate(std::string_view text, const std::string& where);
Frequency parse_frequency(std::string_view text, const std::string& where);
Power parse_power(std::string_view text, const std::string& where);  // "700W", "1.2kW"
Money parse_money(std::string_view text, const std::string& where);  // "500USD", "2.5MUSD"
Money parse_price(std::string_view text, const std::string& where);  // of an hour: "6.88USD/h"

// Numbers without a dimension: a whole number, a real number, a fraction of one ("0.9" or "90%").
std::int64_t parse_count(std::string_view text, const std::string& where);
double parse_real(std::string_view text, const std::string& where);
double parse_fraction(std::string_view text, const std::string& where);

std::string to_text(Time t);                  // "12.35 ms"
std::string to_text(Bytes b);                 // "97.28 MiB"
std::string to_text(Flops f);                 // "4.089 Gflop"
std::string to_text(Bandwidth b);             // "300.0 GB/s"
std::string to_text(FlopRate r);              // "312.0 TFLOP/s"
std::string to_text(Frequency f);             // "1.410 GHz"
std::string to_text(Power p);                 // "700.0 W"
std::string to_text(Energy e);                // "17.80 Wh"
std::string to_text(Money m);                 // "1,234 USD", "12.35M USD"
std::string with_separators(std::int64_t n);  // "25,557,032"

// "1 sample", "2 samples", "4,096 micro-batches".
std::string counted(std::int64_t count, std::string_view noun);
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return counted(static_cast<std::int64_t>(count), noun);
}

// As it would be typed, for messages about what was: "1 rank", "16384 ranks".
std::string typed_count(std::int64_t count, std::string_view noun);
template <std::integral Count>
std::string typed_count(Count count, std::string_view noun) {
  return typed_count(static_cast<std::int64_t>(count), noun);
}

}  // namespace armilla
