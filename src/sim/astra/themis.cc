#include "sim/astra/themis.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace armilla {
namespace {

constexpr double kMebibyte = 1048576;

}  // namespace

Themis::Themis(std::vector<std::int64_t> sizes, std::vector<double> bandwidths, bool flexible,
               std::int64_t gap_denominator)
    : sizes_(std::move(sizes)),
      bandwidths_(std::move(bandwidths)),
      flexible_(flexible),
      gap_denominator_(gap_denominator) {
  for (std::size_t d = 0; d < sizes_.size(); ++d) loads_.push_back({d, 0});
}

void Themis::forget_loads() {
  for (std::size_t d = 0; d < loads_.size(); ++d) loads_[d] = {d, 0};
}

// Part of the data a rank sends on a ring of the dimension: (n-1)/n of its input, or n-1 shards.
double Themis::share_of(bool scatters, std::size_t dimension) const {
  const auto size = static_cast<double>(sizes_[dimension]);
  return (size - 1) / (scatters ? size : 1);
}

std::int64_t Themis::bytes_for(double elapsed, std::size_t dimension, bool scatters) const {
  // Elapsed time is counted in what the first dimension takes for a mebibyte.
  const double speed = bandwidths_[dimension] / bandwidths_[0];
  const double bytes = elapsed * speed / share_of(scatters, dimension) * kMebibyte;
  return bytes < 9e18 ? static_cast<std::int64_t>(bytes) : INT64_MAX;
}

// How many bytes it would take to level the loads, starting at place `place` of the order.
std::int64_t Themis::difference(std::size_t place, std::uint32_t mask, bool scatters) const {
  const Load& load = loads_[place];
  if (scatters) return bytes_for(std::fabs(loads_.back().elapsed - load.elapsed), load.dimension, true);
  std::size_t last = loads_.size() - 1;
  while (!takes_part(loads_[last].dimension, mask)) --last;
  std::int64_t bytes =
      bytes_for(std::fabs(loads_[last].elapsed - load.elapsed), loads_[last].dimension, false);
  // A gathered chunk grows by the size of every dimension it has passed: seen from the first one, it is
  // smaller.
  while (last > place) {
    --last;
    if (takes_part(loads_[last].dimension, mask)) bytes /= sizes_[loads_[last].dimension];
  }
  return bytes;
}

// Returns what is left, or what has grown, of the chunk behind the dimension.
std::int64_t Themis::add_load(Load& load, std::int64_t bytes, bool scatters) const {
  const std::size_t d = load.dimension;
  load.elapsed +=
      static_cast<double>(bytes) / kMebibyte * share_of(scatters, d) / (bandwidths_[d] / bandwidths_[0]);
  if (scatters) return bytes / sizes_[d];
  std::int64_t grown = 0;
  return __builtin_mul_overflow(bytes, sizes_[d], &grown) ? INT64_MAX : grown;
}

// The fixed order when levelling is not worth it. For an all-gather ASTRA-sim books the loads in reverse.
void Themis::load_in_fixed_order(std::uint32_t mask, std::int64_t bytes, bool scatters) {
  std::sort(loads_.begin(), loads_.end(),
            [](const Load& a, const Load& b) { return a.dimension < b.dimension; });
  if (!scatters) std::reverse(loads_.begin(), loads_.end());
  for (std::size_t d = 0; d < loads_.size(); ++d) {
    if (!takes_part(d, mask)) continue;
    Load booked{d, loads_[d].elapsed};
    bytes = add_load(booked, bytes, scatters);
    loads_[d].elapsed = booked.elapsed;
  }
}

Themis::Choice Themis::next_chunk(CollectiveKind kind, std::uint32_t mask, std::int64_t recommended,
                                  std::int64_t remaining) {
  const bool scatters = kind != CollectiveKind::all_gather;
  // Stable: which of two equal loads goes first decides the order of a chunk's phases.
  std::stable_sort(loads_.begin(), loads_.end(),
                   [](const Load& a, const Load& b) { return a.elapsed < b.elapsed; });
  if (!scatters) std::reverse(loads_.begin(), loads_.end());
  Choice choice;
  choice.bytes = std::min(remaining, recommended);
  std::int64_t bytes = recommended;
  bool first = true;
  for (std::size_t place = 0; place < loads_.size(); ++place) {
    const std::size_t dimension = loads_[place].dimension;
    if (takes_part(dimension, mask)) {
      if (first) {
        first = false;
        const std::int64_t levelling = difference(place, mask, scatters);
        if (levelling < (flexible_ ? recommended : recommended / gap_denominator_)) {
          choice.order.resize(loads_.size());
          std::iota(choice.order.begin(), choice.order.end(), std::size_t{0});
          load_in_fixed_order(mask, flexible_ ? choice.bytes : recommended, scatters);
          return choice;
        }
        if (flexible_) {
          bytes = levelling;
          choice.bytes = std::min(remaining, levelling);
        }
      }
      bytes = add_load(loads_[place], bytes, scatters);
    }
    choice.order.push_back(dimension);
  }
  return choice;
}

}  // namespace armilla
