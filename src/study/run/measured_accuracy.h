// Written by tools/generate_reference.py from the errors behind docs/accuracy.md; do not edit.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace armilla {

// How far off predictions of the measured steps on a device are, on one apart from on several: shares,
// bias signed.
struct MeasuredAccuracy {
  std::string_view device, width;
  bool experts;                     // mixtures of experts
  std::int64_t rows, fewest, most;  // of steps; of devices
  double mape, bias, p90;
};

// clang-format off
inline constexpr std::array kMeasuredAccuracy = {
    MeasuredAccuracy{"a100-40gb-sxm", "16 bits", false, 1, 1, 1, 0.032, 0.032, 0.032},
    MeasuredAccuracy{"a100-40gb-sxm", "16 bits", false, 5, 8, 128, 0.038, -0.014, 0.061},
    MeasuredAccuracy{"a100-80gb-sxm", "16 bits", false, 22, 4, 3072, 0.060, -0.014, 0.124},
    MeasuredAccuracy{"b200-hgx", "16 bits", false, 1, 8, 8, 0.007, -0.007, 0.007},
    MeasuredAccuracy{"b200-hgx", "16 bits", true, 5, 8, 64, 0.049, -0.017, 0.085},
    MeasuredAccuracy{"b200-hgx", "fp4", true, 2, 64, 64, 0.090, -0.090, 0.092},
    MeasuredAccuracy{"b200-hgx", "fp8", false, 2, 8, 8, 0.084, 0.084, 0.095},
    MeasuredAccuracy{"b200-hgx", "fp8", true, 6, 64, 256, 0.074, -0.014, 0.112},
    MeasuredAccuracy{"b300-hgx", "fp8", true, 4, 256, 256, 0.018, 0.017, 0.029},
    MeasuredAccuracy{"gb200", "16 bits", true, 8, 64, 6144, 0.065, -0.052, 0.132},
    MeasuredAccuracy{"gb200", "fp4", false, 5, 8, 320, 0.091, -0.057, 0.136},
    MeasuredAccuracy{"gb200", "fp4", true, 2, 64, 64, 0.207, -0.207, 0.229},
    MeasuredAccuracy{"gb200", "fp8", false, 9, 64, 320, 0.040, 0.016, 0.049},
    MeasuredAccuracy{"gb200", "fp8", true, 13, 8, 6144, 0.073, -0.025, 0.126},
    MeasuredAccuracy{"gb300", "16 bits", true, 4, 64, 64, 0.036, -0.036, 0.042},
    MeasuredAccuracy{"gb300", "fp4", true, 2, 64, 64, 0.089, -0.089, 0.118},
    MeasuredAccuracy{"gb300", "fp8", false, 3, 8, 512, 0.047, -0.014, 0.127},
    MeasuredAccuracy{"gb300", "fp8", true, 7, 64, 3072, 0.146, -0.088, 0.137},
    MeasuredAccuracy{"h100-96gb-sxm", "fp8", false, 4, 64, 512, 0.083, -0.018, 0.247},
    MeasuredAccuracy{"h100-sxm", "16 bits", false, 66, 1, 1, 0.112, 0.034, 0.226},
    MeasuredAccuracy{"h100-sxm", "16 bits", false, 13, 8, 1536, 0.058, -0.014, 0.130},
    MeasuredAccuracy{"h100-sxm", "16 bits", true, 7, 1, 1, 0.121, -0.009, 0.147},
    MeasuredAccuracy{"h100-sxm", "16 bits", true, 7, 64, 1024, 0.113, -0.110, 0.135},
    MeasuredAccuracy{"h100-sxm", "fp8", false, 11, 8, 2560, 0.037, -0.012, 0.082},
    MeasuredAccuracy{"h100-sxm", "fp8", true, 5, 16, 512, 0.120, -0.065, 0.388},
    MeasuredAccuracy{"h200-sxm", "16 bits", false, 1, 1, 1, 0.146, 0.146, 0.146},
    MeasuredAccuracy{"h200-sxm", "16 bits", false, 3, 4, 32, 0.038, -0.031, 0.049},
    MeasuredAccuracy{"h200-sxm", "fp8", false, 2, 32, 64, 0.010, -0.010, 0.018},
    MeasuredAccuracy{"mi350x", "fp8", false, 1, 8, 8, 0.071, -0.071, 0.071},
    MeasuredAccuracy{"mi355x", "fp8", false, 1, 8, 8, 0.067, 0.067, 0.067},
    MeasuredAccuracy{"tpu-7x", "16 bits", false, 1, 64, 64, 0.012, -0.012, 0.012},
    MeasuredAccuracy{"tpu-7x", "16 bits", true, 1, 256, 256, 0.012, -0.012, 0.012},
    MeasuredAccuracy{"tpu-7x", "fp8", false, 1, 64, 64, 0.006, -0.006, 0.006},
    MeasuredAccuracy{"tpu-7x", "fp8", true, 1, 256, 256, 0.057, -0.057, 0.057},
    MeasuredAccuracy{"tpu-v4", "16 bits", false, 2, 192, 384, 0.025, -0.002, 0.027},
    MeasuredAccuracy{"tpu-v5e", "16 bits", false, 2, 256, 256, 0.019, 0.012, 0.031},
    MeasuredAccuracy{"tpu-v5p", "16 bits", false, 1, 64, 64, 0.001, 0.001, 0.001},
    MeasuredAccuracy{"tpu-v6e", "16 bits", false, 1, 8, 8, 0.018, 0.018, 0.018},
    MeasuredAccuracy{"tpu-v6e", "16 bits", true, 1, 256, 256, 0.052, 0.052, 0.052},
    MeasuredAccuracy{"v100-32gb-sxm2", "16 bits", false, 1, 1, 1, 0.063, 0.063, 0.063},
    MeasuredAccuracy{"v100-32gb-sxm2", "16 bits", false, 1, 8, 8, 0.073, -0.073, 0.073},
};
// clang-format on

}  // namespace armilla
