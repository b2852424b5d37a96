// Roofline: a kernel takes the longer of its arithmetic and its memory traffic, after a fixed overhead.
//
//   t = launch_overhead + max(flops / (peak * efficiency), bytes / (memory_bandwidth * memory_efficiency))
//
// Rows that are moved into another order (Kernel::permute: tokens to their experts and back) attain a third
// of that bandwidth, an assumption: 0.2 to 0.35 of the peak was measured on A100, H100 and B200
// (kernels.memory.permute of machines/devices), nothing on TPUs.
//
// Matrix products on systolic arrays, as of TPUs: cost/device/arrays.h.
//
// Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
// Architectures", CACM 52(4), 2009; the overhead is what a GPU spends on every kernel before it computes.
// `peak` is the dense matrix rate in the work's type for matrix products (the vector rate for fp32 and for
// integers where the device lists none; other types that it does not list it does not compute in) and the
// vector rate for element-wise work; a copy has no arithmetic. Every figure
// is the device's own unless a parameter replaces it. Not modelled: efficiency that varies with size and
// shape, cache reuse between kernels, kernels that overlap, a clock that drops under load.
#pragma once

#include "cost/cost.h"

namespace armilla {

inline constexpr ParameterInfo kRooflineParameters[] = {
    {"peak", ParameterType::flop_rate, "", "matrix rate in every type; default: the device's, by type"},
    {"vector_peak", ParameterType::flop_rate, "", "rate of element-wise work; default: the device's"},
    {"memory_bandwidth", ParameterType::bandwidth, "", "default: the device's"},
    {"matrix_efficiency", ParameterType::fraction, "",
     "attainable share of the matrix rate; default: the device's"},
    {"vector_efficiency", ParameterType::fraction, "",
     "attainable share of the vector rate; default: the device's"},
    {"memory_efficiency", ParameterType::fraction, "",
     "attainable share of the bandwidth; default: the device's"},
    {"launch_overhead", ParameterType::time, "", "per kernel; default: the device's"},
};

// The equation above with the device's own figures; zero for WorkKind::none.
Time roofline_time(const Device& device, const Work& work);

std::unique_ptr<CostModel> make_roofline(const Device& device, const ParameterValues& values);

}  // namespace armilla
