// A systolic array of rows x columns multiply-accumulate units, in closed form: SCALE-Sim v2 (Samajdar et
// al., ISPASS 2020; scale-sim-v2 at 22f88b1) with bandwidth mode CALC, figure for figure.
//
// C[M,N] = A[M,K] B[K,N] is mapped to Sr spatial rows, Sc spatial columns and T steps in time:
//   output stationary os  (M, N, K)   R + C + T - 2 cycles per fold
//   weight stationary ws  (K, N, M)   2R + C + T - 2
//   input stationary  is  (K, M, N)   2R + C + T - 2
// in F = ceil(Sr/R) * ceil(Sc/C) folds that do not overlap; a partial fold costs as much as a whole one.
// SCALE-Sim's report says "total cycles" for one cycle less than that (the index of the last cycle), divides
// ws and is utilisation by a fold of 2R + 2C + T - 3 cycles, and adds F (R + C) to the output writes of os;
// these are reported as it does. Counts are words; what exceeds 64 bits saturates. Stalls for DRAM and
// traffic: simulate_layer, below. Depth-wise layers are to be given as one product per channel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cost/cost.h"
#include "ir/formats/systolic.h"
#include "ir/work.h"

namespace armilla {

struct SystolicResult {
  std::int64_t folds = 0, cycles_per_fold = 0;
  std::int64_t compute_cycles = 0;
  std::int64_t reported_total_cycles = 0;
  // Percentages, as the report prints them.
  double mapping_efficiency = 0, compute_utilization = 0, overall_utilization = 0;
  std::int64_t ifmap_reads = 0, filter_reads = 0, ofmap_writes = 0;
};

// One of the `gemm.count` products. All zero for an empty one. Rows, columns and sizes must not be negative,
// the array not empty.
SystolicResult evaluate(const SystolicArray& array, const Gemm& gemm);

// The im2col product of a convolution: M = output pixels, N = filters, K = window. Throws Error (beginning
// with `where`) for sizes that are not positive, a filter larger than its input, and sizes that overflow.
Gemm to_gemm(const ConvolutionShape& shape, const std::string& where);

// A layer on a systolic array with its buffers and DRAM: the report of SCALE-Sim (v2 at 22f88b1; v3 at
// 1d62b68 dense, without layouts and without Ramulator), figure for figure.
//
// Cycles without stalls are those of `evaluate`. The operands and the results have a buffer each
// (cost/systolic/read_buffer.h, cost/systolic/write_buffer.h); the array waits for the slowest of the three.
// A word that is read arrives a cycle after it was demanded.
//
// Time: closed forms, and a step for every move of a buffer's window and every group of lines that leaves;
// overlapping windows that do not fit their buffer are followed word by word (cost/systolic/read_buffer.h).
// Not modelled, by SCALE-Sim either: batches, reuse of what a layer before left in a buffer, refresh and
// banks of DRAM. What SCALE-Sim computes by mistake is computed so too: "total cycles" is the index of the
// last one, utilisation under ws and is counts C - 1 cycles twice, os adds R + C writes per fold, the end of
// a group of lines that leave the buffer may be counted as full, and v3 counts a stall twice.
//
// Throws Error (beginning with `where`) for shapes that are impossible or beyond 64 bits, and for overlapping
// windows of images of 2^31 words and more that do not fit the buffer.
SystolicReport simulate_layer(const SystolicArray& array, const SystolicBuffers& buffers,
                              const ConvolutionShape& layer, const std::string& where);

// The cycles for which a product waits for DRAM, each word of its operands being another.
std::int64_t stall_cycles(const SystolicArray& array, const SystolicBuffers& buffers, std::int64_t m,
                          std::int64_t n, std::int64_t k);

inline constexpr ParameterInfo kSystolicParameters[] = {
    {"rows", ParameterType::count, "256", "rows of the array, at most 65536"},
    {"columns", ParameterType::count, "256", "columns of the array, at most 65536"},
    {"arrays", ParameterType::count, "1", "arrays that share the folds, at most 65536"},
    {"dataflow", ParameterType::choice, "ws", "which operand stays in place", "os|ws|is"},
    {"frequency", ParameterType::frequency, "1GHz", "clock of the array"},
    {"cycles", ParameterType::choice, "compute",
     "compute, or reported: one less per product, as SCALE-Sim prints it", "compute|reported"},
    {"memory_bound", ParameterType::boolean, "false",
     "whether a product also waits for its memory traffic at the device's attainable bandwidth"},
    {"dram_bandwidth", ParameterType::count, "",
     "words per cycle from DRAM to each buffer, for which the array waits; default: it never waits"},
    {"ifmap_sram", ParameterType::bytes, "6MiB", "buffer of the left operand, with dram_bandwidth"},
    {"filter_sram", ParameterType::bytes, "6MiB", "buffer of the right operand, with dram_bandwidth"},
    {"ofmap_sram", ParameterType::bytes, "2MiB", "buffer of the result, with dram_bandwidth"},
    {"word", ParameterType::count, "1", "bytes of a word in the buffers, at most 16; SCALE-Sim's are 1"},
};

// Matrix work takes cycles / frequency; element-wise work and copies take their roofline time on the device.
// The defaults are those of ASTRA-sim's workload generator (google.cfg: 256 x 256 ws at 1 GHz).
std::unique_ptr<CostModel> make_systolic(const Device& device, const ParameterValues& values);

}  // namespace armilla
