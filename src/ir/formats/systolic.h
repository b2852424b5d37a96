// A systolic accelerator as SCALE-Sim describes it (Samajdar et al., ISPASS 2020), a layer it runs, and what
// its reports say of that layer. cost/systolic.h computes the report.
//
// Sizes and traffic are in words; a word is a byte in SCALE-Sim's files. Cycles are counted from 0; those
// before the first demand of the array are negative.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace armilla {

enum class Dataflow : std::uint8_t { output_stationary, weight_stationary, input_stationary };

struct SystolicArray {
  std::int64_t rows = 256, columns = 256;
  Dataflow dataflow = Dataflow::weight_stationary;
};

// Whose rules and report columns: scale-sim-v2 at 22f88b1, or SCALE-Sim v3 at 1d62b68.
enum class ScaleSimVersion : std::uint8_t { v2, v3 };

// Double-buffered scratchpads between the array and DRAM.
struct SystolicBuffers {
  std::int64_t ifmap = 0, filter = 0, ofmap = 0;  // words
  // USER: DRAM gives so many words per cycle to each, and the array waits. CALC: what it needs, no waiting.
  bool limited = false;
  std::int64_t ifmap_bandwidth = 10, filter_bandwidth = 10, ofmap_bandwidth = 10;  // words per cycle
  ScaleSimVersion version = ScaleSimVersion::v2;
};

// A convolution without padding over one image, as a SCALE-Sim topology gives it.
struct ConvolutionShape {
  std::int64_t ifmap_height = 1, ifmap_width = 1;
  std::int64_t filter_height = 1, filter_width = 1;
  std::int64_t channels = 1, filters = 1;
  std::int64_t stride_height = 1, stride_width = 1;

  friend bool operator==(const ConvolutionShape&, const ConvolutionShape&) = default;
};

// A row of a topology.
struct SystolicLayer {
  std::string name;
  ConvolutionShape shape;
  std::int64_t repeats = 1;  // channels of a depth-wise layer, each a layer of one channel
  std::string where;         // for errors
};

struct SystolicTopology {
  std::string name;
  bool products = false;  // a table of M, N, K; the layers are the convolutions that SCALE-Sim makes of them
  std::vector<SystolicLayer> layers;
  std::vector<std::string> notes;  // what was left aside
};

// A configuration file.
struct ScaleSimConfig {
  std::string run_name;
  std::string topology;    // the file's own; empty: none
  std::string bandwidths;  // of USER mode as given: "10,20"
  SystolicArray array;
  SystolicBuffers buffers;
  std::int64_t ifmap_kib = 0, filter_kib = 0, ofmap_kib = 0;
  std::vector<std::string> notes;  // what was left aside
};

struct SystolicTraffic {
  std::int64_t first = 0, last = 0;  // cycles
  std::int64_t words = 0;

  friend bool operator==(const SystolicTraffic&, const SystolicTraffic&) = default;
};

struct SystolicReport {
  std::int64_t total_cycles = 0, stall_cycles = 0;
  // Percentages, as the report prints them.
  double overall_utilization = 0, mapping_efficiency = 0, compute_utilization = 0;
  SystolicTraffic ifmap_sram, filter_sram, ofmap_sram;
  SystolicTraffic ifmap_dram, filter_dram, ofmap_dram;
};

}  // namespace armilla
