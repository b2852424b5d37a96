// Physical quantities as distinct types, so that a byte count cannot be added to a time.
//
// Time counts picoseconds in 64 bits (range +-106 days), Bytes and Flops are exact 64-bit counts, Bandwidth
// is bytes per second, FlopRate operations per second, Frequency cycles per second, Power watts, Energy
// joules, Money US dollars. One flop is one addition or one multiplication: a multiply-accumulate is two.
// Decimal prefixes are powers of 1000 everywhere ("GB/s" is 1e9 B/s). Parsing and printing live in
// base/units_text.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>

namespace armilla {

template <class Tag, class Representation>
struct Quantity {
  using Rep = Representation;
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.value / k); }
  constexpr Quantity& operator+=(Quantity b) { return *this = *this + b; }
  constexpr Quantity& operator-=(Quantity b) { return *this = *this - b; }
};

using Time = Quantity<struct TimeTag, std::int64_t>;      // picoseconds
using Bytes = Quantity<struct BytesTag, std::int64_t>;    // bytes
using Flops = Quantity<struct FlopsTag, std::int64_t>;    // floating-point operations
using Bandwidth = Quantity<struct BandwidthTag, double>;  // bytes per second
using FlopRate = Quantity<struct FlopRateTag, double>;    // operations per second
using Frequency = Quantity<struct FrequencyTag, double>;  // cycles per second
using Power = Quantity<struct PowerTag, double>;          // watts
using Energy = Quantity<struct EnergyTag, double>;        // joules
using Money = Quantity<struct MoneyTag, double>;          // US dollars

constexpr Time picoseconds(std::int64_t n) {
  return Time(n);
}
constexpr Time nanoseconds(std::int64_t n) {
  return Time(n * 1'000);
}
constexpr Time microseconds(std::int64_t n) {
  return Time(n * 1'000'000);
}
constexpr Time milliseconds(std::int64_t n) {
  return Time(n * 1'000'000'000);
}
constexpr Bandwidth gigabytes_per_second(double n) {
  return Bandwidth(n * 1e9);
}
constexpr FlopRate teraflops(double n) {
  return FlopRate(n * 1e12);
}

constexpr double in_seconds(Time t) {
  return static_cast<double>(t.value) * 1e-12;
}
constexpr double in_microseconds(Time t) {
  return static_cast<double>(t.value) * 1e-6;
}

// Latest representable time. Every conversion below saturates here instead of overflowing; the simulator
// refuses a run that reaches it.
constexpr Time kEndOfTime = Time(INT64_MAX / 4);

// a + b, saturating. Both must lie between 0 and kEndOfTime.
constexpr Time later(Time a, Time b) {
  return a + b < kEndOfTime ? a + b : kEndOfTime;
}

constexpr Time saturating_multiply(Time a, std::int64_t times) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a.value, times, &product) ? kEndOfTime : std::min(Time(product), kEndOfTime);
}

// For counters that may be fed absurd sizes.
constexpr Bytes saturating_add(Bytes a, Bytes b) {
  std::int64_t sum = 0;
  return Bytes(__builtin_add_overflow(a.value, b.value, &sum) ? INT64_MAX : sum);
}

constexpr Bytes saturating_multiply(Bytes a, std::int64_t times) {
  std::int64_t product = 0;
  return Bytes(__builtin_mul_overflow(a.value, times, &product) ? INT64_MAX : product);
}

// Rounds to the nearest picosecond; `seconds` beyond kEndOfTime saturate.
inline Time from_seconds(double seconds) {
  const double ps = seconds * 1e12;
  return ps < static_cast<double>(kEndOfTime.value) ? Time(std::llround(ps)) : kEndOfTime;
}

inline Time time_to_move(Bytes bytes, Bandwidth bandwidth) {
  return from_seconds(static_cast<double>(bytes.value) / bandwidth.value);
}
inline Time time_to_compute(Flops flops, FlopRate rate) {
  return from_seconds(static_cast<double>(flops.value) / rate.value);
}

}  // namespace armilla
