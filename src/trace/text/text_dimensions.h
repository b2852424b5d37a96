// Which dimensions of the machine a text workload's collectives span (ASTRA-sim 1.0,
// Workload::decode_involved_dimensions and Sys::break_dimension): bit d of a mask is logical dimension d.
//
// A model-parallel group of N ranks takes the leading dimensions whose sizes multiply to N; where N ends
// inside a dimension, that one is split in two.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/formats/text_workload.h"

namespace armilla {

struct TextDimensions {
  std::vector<std::int64_t> logical;  // sizes, innermost first
  std::int32_t split_dimension = -1;  // physical
  std::int64_t split_first = 0;
  std::int32_t model_dimensions = 0;  // leading logical dimensions inside a model-parallel group
  std::int64_t ranks = 1;
};

// `group`: of the transformer policies, else 0. Throws Error.
TextDimensions text_dimensions(const std::vector<std::int64_t>& physical, std::int64_t group);

// Forward, input gradient, weight gradient of a layer under `policy` (that of the layer if it has one).
std::array<std::uint32_t, 3> text_masks(TextPolicy policy, bool first_layer,
                                        const TextDimensions& dimensions);

}  // namespace armilla
