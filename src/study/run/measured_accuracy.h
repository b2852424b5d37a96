// Written by tools/generate_reference.py from the errors behind docs/accuracy.md; do not edit.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace armilla {

// How far off predictions of the measured steps on a device are: shares, bias signed.
struct MeasuredAccuracy {
  std::string_view device, width;
  bool experts;                     // mixtures of experts
  std::int64_t rows, fewest, most;  // of steps; of devices
  double mape, bias, p90;
};

// clang-format off
inline constexpr std::array kMeasuredAccuracy = {
    MeasuredAccuracy{"a100-40gb-sxm", "16 bits", false, 4, 8, 128, 0.115, -0.123, 0.138},
    MeasuredAccuracy{"a100-80gb-sxm", "16 bits", false, 24, 1, 3072, 0.138, -0.129, 0.229},
    MeasuredAccuracy{"b200-hgx", "16 bits", false, 1, 8, 8, 0.081, -0.081, 0.081},
    MeasuredAccuracy{"b200-hgx", "16 bits", true, 5, 8, 64, 0.093, -0.062, 0.233},
    MeasuredAccuracy{"b200-hgx", "fp8", false, 2, 8, 8, 0.144, 0.144, 0.156},
    MeasuredAccuracy{"b200-hgx", "fp8", true, 4, 128, 256, 0.251, -0.238, 0.348},
    MeasuredAccuracy{"b300-hgx", "fp8", true, 4, 256, 256, 0.125, -0.050, 0.174},
    MeasuredAccuracy{"gb200", "16 bits", true, 8, 64, 6144, 0.299, -0.363, 0.384},
    MeasuredAccuracy{"gb200", "fp4", false, 5, 8, 320, 0.159, -0.149, 0.220},
    MeasuredAccuracy{"gb200", "fp8", false, 9, 64, 320, 0.157, 0.082, 0.229},
    MeasuredAccuracy{"gb200", "fp8", true, 12, 8, 6144, 0.225, -0.226, 0.360},
    MeasuredAccuracy{"gb300", "16 bits", true, 4, 64, 64, 0.269, -0.268, 0.273},
    MeasuredAccuracy{"gb300", "fp8", false, 3, 8, 512, 0.136, -0.117, 0.261},
    MeasuredAccuracy{"gb300", "fp8", true, 5, 64, 3072, 0.101, 0.012, 0.381},
    MeasuredAccuracy{"h100-sxm", "16 bits", false, 13, 8, 1536, 0.226, -0.139, 0.679},
    MeasuredAccuracy{"h100-sxm", "16 bits", true, 7, 64, 1024, 0.292, -0.310, 0.330},
    MeasuredAccuracy{"h100-sxm", "fp8", false, 15, 8, 2560, 0.193, -0.028, 0.440},
    MeasuredAccuracy{"h100-sxm", "fp8", true, 5, 16, 512, 0.207, 0.045, 0.457},
    MeasuredAccuracy{"h200-sxm", "16 bits", false, 4, 1, 32, 0.102, -0.010, 0.274},
    MeasuredAccuracy{"h200-sxm", "fp8", false, 2, 32, 64, 0.047, -0.047, 0.055},
    MeasuredAccuracy{"mi350x", "fp8", false, 1, 8, 8, 0.428, -0.428, 0.428},
    MeasuredAccuracy{"mi355x", "fp8", false, 1, 8, 8, 0.348, -0.348, 0.348},
    MeasuredAccuracy{"tpu-7x", "16 bits", false, 1, 64, 64, 0.189, -0.189, 0.189},
    MeasuredAccuracy{"tpu-7x", "16 bits", true, 1, 256, 256, 0.475, -0.475, 0.475},
    MeasuredAccuracy{"tpu-7x", "fp8", false, 1, 64, 64, 0.278, -0.278, 0.278},
    MeasuredAccuracy{"tpu-7x", "fp8", true, 1, 256, 256, 0.428, -0.428, 0.428},
    MeasuredAccuracy{"tpu-v4", "16 bits", false, 2, 192, 384, 0.264, 0.264, 0.296},
    MeasuredAccuracy{"tpu-v5e", "16 bits", false, 2, 256, 256, 0.421, 0.421, 0.779},
    MeasuredAccuracy{"tpu-v5p", "16 bits", false, 1, 64, 64, 0.443, 0.443, 0.443},
    MeasuredAccuracy{"tpu-v6e", "16 bits", false, 1, 8, 8, 0.301, -0.301, 0.301},
    MeasuredAccuracy{"tpu-v6e", "16 bits", true, 1, 256, 256, 0.468, -0.468, 0.468},
    MeasuredAccuracy{"v100-32gb-sxm2", "16 bits", false, 2, 1, 8, 0.059, -0.026, 0.085},
};
// clang-format on

}  // namespace armilla
