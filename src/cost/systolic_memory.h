// A layer on a systolic array with its buffers and DRAM: the report of SCALE-Sim (v2 at 22f88b1; v3 at
// 1d62b68 dense, without layouts and without Ramulator), figure for figure.
//
// Cycles without stalls are those of cost/systolic.h. The operands and the results have a buffer each
// (cost/read_buffer.h, cost/write_buffer.h); the array waits for the slowest of the three. A word that is
// read arrives a cycle after it was demanded.
//
// Time: closed forms, and a step for every move of a buffer's window and every group of lines that leaves;
// overlapping windows that do not fit their buffer are followed word by word (cost/read_buffer.h).
// Not modelled, by SCALE-Sim either: batches, reuse of what a layer before left in a buffer, refresh and
// banks of DRAM. What SCALE-Sim computes by mistake is computed so too: "total cycles" is the index of the
// last one, utilisation under ws and is counts C - 1 cycles twice, os adds R + C writes per fold, the end of
// a group of lines that leave the buffer may be counted as full, and v3 counts a stall twice.
#pragma once

#include <string>

#include "ir/formats/systolic.h"

namespace armilla {

// Throws Error (beginning with `where`) for shapes that are impossible or beyond 64 bits, and for overlapping
// windows of images of 2^31 words and more that do not fit the buffer.
SystolicReport simulate_layer(const SystolicArray& array, const SystolicBuffers& buffers,
                              const ConvolutionShape& layer, const std::string& where);

// The cycles for which a product waits for DRAM, each word of its operands being another.
std::int64_t stall_cycles(const SystolicArray& array, const SystolicBuffers& buffers, std::int64_t m,
                          std::int64_t n, std::int64_t k);

}  // namespace armilla
