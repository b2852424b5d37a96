// Finds in a plain graph what Megatron divides: a product by outputs, element-wise work or attention, a
// product by inputs (Shoeybi et al. 2019, section 3).
//
// A region ends in a matrix product with a weight and reaches back, over element-wise operators alone, or
// over the transposes, products of activations and softmax of an attention, to other such products. It must
// be closed: nothing inside is read outside. An attention is divided by its heads, that is by the number of
// products per sample; operators between its first and last product are its core.
// Not found: attention as a single operator, normalisation inside a region, convolutions in pairs.
// Cost: O(operators x size of a region).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/model.h"

namespace armilla {

struct SplitRegion {
  std::vector<std::uint32_t> columns;   // products divided by outputs
  std::vector<std::uint32_t> interior;  // operators between, ascending
  std::vector<std::uint32_t> core;      // of these, an attention's core, ascending
  std::uint32_t row = 0;                // the product divided by inputs
  std::int64_t heads = 0;               // 0: no attention
  std::int64_t sequence = 0;            // queries per sample
};

// In order of `row`; no operator is in two.
std::vector<SplitRegion> find_split_regions(const Model& model);

// Whether a matrix product multiplies activations with a weight it trains.
bool is_weight_product(const Model& model, const Operator& op);

// Tensors that something trainable has a part in.
std::vector<bool> derived_tensors(const Model& model);

}  // namespace armilla
