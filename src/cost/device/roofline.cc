#include "cost/device/roofline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cost/device/arrays.h"

namespace armilla {
namespace {

class Roofline : public CostModel {
 public:
  explicit Roofline(Device device) : device_(std::move(device)) {}
  Time time(const Work& work) const override { return roofline_time(device_, work); }
  FlopRate peak(DType dtype) const override { return matrix_rate(device_, dtype); }
  bool computes_in(DType dtype) const override {
    return !is_floating(dtype) || dtype == DType::fp32 || device_.matrix_rate.contains(dtype);
  }

 private:
  Device device_;
};

Time arithmetic_time(const Device& device, const Work& work) {
  switch (work.kind) {
    case WorkKind::matrix:
      if (device.arrays && !work.gemms.empty())
        return std::min(from_seconds(arrays_seconds(device, work)), kEndOfTime);
      return time_to_compute(work.flops,
                             FlopRate(matrix_rate(device, work.dtype).value * device.matrix_efficiency));
    case WorkKind::vector:
      return time_to_compute(work.flops, FlopRate(device.vector_rate.value * device.vector_efficiency));
    case WorkKind::copy:
    case WorkKind::none:
      break;
  }
  return Time(0);
}

void override_fraction(double& fraction, const ParameterValues& values, std::string_view name) {
  if (!values.is_set(name)) return;
  fraction = values.fraction(name);
  if (!(fraction > 0))
    throw Error(values.where(name), fmt::format("'{:.60}' leaves nothing of the peak", values.text(name)),
                "an efficiency is more than 0");
}

}  // namespace

Time roofline_time(const Device& device, const Work& work) {
  if (work.kind == WorkKind::none) return Time(0);
  constexpr double kPermuted = 1.0 / 3;
  const double attained = device.memory_efficiency * (work.kernel == Kernel::permute ? kPermuted : 1);
  const Time memory = time_to_move(work.bytes, Bandwidth(device.memory_bandwidth.value * attained));
  // Both terms are at most kEndOfTime, a quarter of the range: the sum cannot overflow.
  return std::min(device.launch_overhead + std::max(arithmetic_time(device, work), memory), kEndOfTime);
}

std::unique_ptr<CostModel> make_roofline(const Device& device, const ParameterValues& values) {
  Device changed = device;
  if (values.is_set("peak")) {
    for (const std::string_view name : dtype_names())
      changed.matrix_rate[*dtype_from_name(name)] = values.flop_rate("peak");
  }
  if (values.is_set("vector_peak")) changed.vector_rate = values.flop_rate("vector_peak");
  if (values.is_set("memory_bandwidth")) changed.memory_bandwidth = values.bandwidth("memory_bandwidth");
  override_fraction(changed.matrix_efficiency, values, "matrix_efficiency");
  override_fraction(changed.vector_efficiency, values, "vector_efficiency");
  override_fraction(changed.memory_efficiency, values, "memory_efficiency");
  if (values.is_set("launch_overhead")) changed.launch_overhead = values.time("launch_overhead");
  return std::make_unique<Roofline>(std::move(changed));
}

}  // namespace armilla
