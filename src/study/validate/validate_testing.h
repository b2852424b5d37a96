// A row of a table of training steps, for tests to change.
#pragma once

#include "read/measurements.h"

namespace armilla {

inline MeasuredPlan small_row() {
  MeasuredPlan row;
  row.model = "some-model";
  row.device = "A100-SXM4-80GB";
  row.layers = 4;
  row.hidden = 1024;
  row.heads = 16;
  row.feed_forward = 4096;
  row.vocabulary = 50257;
  row.sequence = 512;
  row.devices = 16;
  row.devices_per_node = 8;
  row.tensor = 2;
  row.pipeline = 2;
  row.data = 4;
  row.micro_batch = 1;
  row.global_batch = 32;
  row.precision = "bf16";
  row.recompute = "none";
  return row;
}

}  // namespace armilla
