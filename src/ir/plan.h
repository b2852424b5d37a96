// Plan: how the training job is spread over the machine. So far data parallelism (PyTorch DDP): every rank
// holds the whole model, computes its own samples and averages gradients with all others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"
#include "ir/tensor.h"

namespace armilla {

enum class Optimizer : std::uint8_t { sgd, momentum, adam };
std::string_view name_of(Optimizer optimizer);
int state_words(Optimizer optimizer);  // optimizer values kept per parameter, 4 bytes each

struct Plan {
  std::int64_t ranks = 1;
  std::int64_t batch = 32;         // samples per rank and iteration, over all micro-batches
  std::int64_t micro_batches = 1;  // gradient accumulation: gradients are exchanged after the last one
  DType precision = DType::fp32;   // of compute and activations; weights, gradients and optimizer state stay
                                   // in the parameter's type
  // Gradients are packed into buckets in the order the backward pass produces them; a bucket is exchanged
  // once it is full (PyTorch DistributedDataParallel: bucket_cap_mb = 25 after a first bucket of 1 MiB).
  Bytes first_bucket = Bytes(1 << 20);
  Bytes bucket = Bytes(25 << 20);
  bool overlap = true;  // false: gradients are exchanged only after the whole backward pass
  Optimizer optimizer = Optimizer::momentum;
};

// Throws Error naming the numbers that clash.
void validate_plan(const Plan& plan, const std::string& where);

}  // namespace armilla
