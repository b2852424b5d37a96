// Memory of a data-parallel rank.
//
//   weights, gradients   trainable parameters in their own type (weights also the buffers)
//   optimizer            state_words(optimizer) x 4 bytes per trainable parameter
//   activations          every tensor that some operator's backward pass reads, once, for one micro-batch, in
//   the plan's precision; views
//                        share the memory of what they view
//   communication        the gradient buckets, which PyTorch keeps beside the gradients
//   (gradient_as_bucket_view = false) temporary            the largest sum of incoming and outgoing gradients
//   of one operator
//   fragmentation        kFragmentation of all of these (lower/hybrid_memory.h)
//   framework            driver, context and buffers of the collective library (lower/framework_memory.h)
// Not modelled: cuDNN workspaces, kernels that recompute what they could save.
#pragma once

#include "ir/machine.h"
#include "ir/memory.h"
#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

MemoryUse data_parallel_memory(const Model& model, const Plan& plan, const Device& device);

}  // namespace armilla
