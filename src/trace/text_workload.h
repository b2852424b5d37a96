// Model -> ASTRA-sim 1.0 text workload (ir/formats/text_workload.h), as that simulator's workload generator
// does it with SCALE-Sim (scripts/workload_generator, removed in f34f956), extended from matrix products to
// whole models.
//
// The NPUs form D data parts times M model parts: DATA D = P, MODEL M = P, HYBRID_DATA_MODEL D = packages and
// M = P / packages, HYBRID_MODEL_DATA the other way round. With C[m,n] = A[m,k] B[k,n] per layer (a
// convolution as its im2col product) and integer division as there, but never below 1:
//   forward         (m/D, n/M, k)   all-gather      output / P     not under DATA
//   input gradient  (m/D, k, n/M)   reduce-scatter  input / D      not under DATA
//   weight gradient (k, n/M, m/D)   all-reduce      weights / M    not under MODEL
// Output and input are the activations' real tensors (m*n and, but for a convolution's window, m*k elements).
// Every layer has an input gradient, the first one too. The other operators of a layer are spread evenly over
// all NPUs. The generator's two bytes per element are the model's own type here.
// What the generator does not know: a look-up in a table of weights (an embedding) is a row of its own,
// without an input gradient. Every matrix of weights is exchanged with the row that uses it first, a tied one
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/formats/text_workload.h"
#include "ir/model.h"

namespace armilla {

struct TextWorkloadOptions {
  TextPolicy policy = TextPolicy::data;  // or MODEL or one of the two HYBRID_*_* of data and model
  std::int64_t npus = 1;
  std::int64_t packages = 1;         // under the hybrid policies; divides npus
  DType dtype = DType::unknown;      // of everything communicated; unknown: the model's own types
  bool all_parameters = false;       // gradients of biases and norms too, not of matrices of weights alone
  std::int64_t update_cycles = 100;  // the generator's
};

// What one NPU computes in each pass of a row (ir/derived/layer_table.h), operator by operator, the layer's
// own first.
struct ShardedLayer {
  std::vector<Work> forward, input_gradient, weight_gradient;
};
// One per row. Throws Error for options that clash.
std::vector<ShardedLayer> shard_layers(const Model& model, const TextWorkloadOptions& options);

struct LayerCycles {
  std::int64_t forward = 0, input_gradient = 0, weight_gradient = 0;
};
// `cycles`: what the shards of each row take, one entry per row. Throws Error for options that clash.
TextWorkload lower_to_text(const Model& model, const TextWorkloadOptions& options,
                           std::span<const LayerCycles> cycles);

}  // namespace armilla
