#include "study/profile/profile_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace armilla {
namespace {

double logarithm(std::int64_t size) {
  return std::log2(static_cast<double>(std::max<std::int64_t>(1, size)));
}

// All that a family's members differ in. Empty where the key's shapes are none.
std::vector<double> logarithms_of(const ComputationKey& key) {
  std::vector<double> sizes;
  if (key.shapes.empty()) return {logarithm(key.bytes), logarithm(key.flops)};
  for (const Gemm& gemm : shapes_from(key.shapes).value_or(std::vector<Gemm>())) {
    for (const std::int64_t size : {gemm.m, gemm.n, gemm.k, gemm.count}) sizes.push_back(logarithm(size));
  }
  return sizes;
}

// How far `larger` is above `smaller`; nothing where one of its sizes is below.
std::optional<double> distance(const std::vector<double>& smaller, const std::vector<double>& larger) {
  double sum = 0;
  for (std::size_t i = 0; i < smaller.size(); ++i) {
    if (larger[i] < smaller[i]) return std::nullopt;
    sum += larger[i] - smaller[i];
  }
  return sum;
}

}  // namespace

ProfileTimes::ProfileTimes(const Profile& profile, const Device& device) : device_(device) {
  // What was measured on the device itself goes before what names none.
  for (const bool named : {true, false}) {
    for (const MeasuredComputation& computation : profile.computations) {
      if (computation.measured.device == (named ? device.name : "")) add(computation);
    }
  }
  elsewhere_ = std::count_if(profile.computations.begin(), profile.computations.end(),
                             [&](const MeasuredComputation& computation) {
                               const std::string& name = computation.measured.device;
                               return !name.empty() && name != device.name;
                             });
}

void ProfileTimes::add(const MeasuredComputation& computation) {
  const ComputationKey& key = computation.key;
  if (!times_.emplace(key, computation.measured.time).second) return;
  const double least = least_seconds(key), seconds = in_seconds(computation.measured.time);
  std::vector<double> sizes = logarithms_of(key);
  if (!(least > 0) || !(seconds > 0) || sizes.empty()) return;
  families_[{key.name, key.phase, key.type, sizes.size()}].push_back({std::move(sizes), least / seconds});
}

// The roofline with nothing but the peaks.
double ProfileTimes::least_seconds(const ComputationKey& key) const {
  const DType dtype = dtype_from_name(key.type).value_or(DType::fp32);
  const FlopRate rate = key.shapes.empty() ? device_.vector_rate : matrix_rate(device_, dtype);
  return std::max(static_cast<double>(key.flops) / rate.value,
                  static_cast<double>(key.bytes) / device_.memory_bandwidth.value);
}

std::optional<Time> ProfileTimes::between(const ComputationKey& key) const {
  const std::vector<double> sizes = logarithms_of(key);
  const auto family = families_.find({key.name, key.phase, key.type, sizes.size()});
  if (family == families_.end()) return std::nullopt;
  const Point *below = nullptr, *above = nullptr;
  double to_below = std::numeric_limits<double>::infinity(), to_above = to_below;
  for (const Point& point : family->second) {
    const auto down = distance(point.sizes, sizes), up = distance(sizes, point.sizes);
    if (down && *down < to_below) {
      below = &point;
      to_below = *down;
    }
    if (up && *up < to_above) {
      above = &point;
      to_above = *up;
    }
  }
  const double least = least_seconds(key);
  if (below == nullptr || above == nullptr || !(least > 0)) return std::nullopt;
  const double span = to_below + to_above, weight = span > 0 ? to_below / span : 0;
  return from_seconds(least / (below->share + weight * (above->share - below->share)));
}

std::optional<ProfileTimes::Found> ProfileTimes::find(const ComputationKey& key, const Work& work) const {
  if (const auto exact = times_.find(key); exact != times_.end())
    return Found{exact->second, false, &exact->first};
  const bool single = work.gemms.size() == 1;
  const ComputationKey product = single ? product_key(work.gemms.front(), work.dtype) : ComputationKey{};
  if (single) {
    if (const auto exact = times_.find(product); exact != times_.end())
      return Found{exact->second, false, &exact->first, true};
  }
  if (const auto time = between(key)) return Found{*time, true};
  if (single) {
    if (const auto time = between(product)) return Found{*time, true, nullptr, true};
  }
  return std::nullopt;
}

}  // namespace armilla
