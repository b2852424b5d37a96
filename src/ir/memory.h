// Memory a rank needs at its peak, by category.
#pragma once

#include "base/units.h"

namespace armilla {

struct MemoryUse {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;            // kept from the forward for the backward pass, one micro-batch
  Bytes communication_buffers;  // gradient buckets
  Bytes temporary;              // the largest working set of one backward operator
  Bytes capacity;               // of the device

  Bytes peak() const {
    return weights + gradients + optimizer + activations + communication_buffers + temporary;
  }
  bool fits() const { return peak() <= capacity; }
};

}  // namespace armilla
