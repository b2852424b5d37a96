// Where activations change between whole and divided inside a block, and the collectives that does:
// Megatron's f and g (Shoeybi et al. 2019, figure 3) and their sequence-parallel forms (Korthikanti et al.
// 2022, figure 5).
//
//                            without sequence parallelism      with it
//                            forward      backward             forward          backward
//   enter a divided region   -            all-reduce           all-gather       reduce-scatter
//   leave it (partial sums)  all-reduce   -                    reduce-scatter   all-gather
//   divide whole tokens      -            all-gather           all-to-all       all-to-all
//   collect features         all-gather   -                    all-to-all       all-to-all
//   collect both             all-gather   reduce-scatter       all-gather       reduce-scatter
//   copy to all              all-gather   -                    all-gather       -
// One conversion serves all operators of the block that read the tensor. With sequence parallelism the
// divided tensor is kept and gathered again for weight gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/model.h"
#include "lower/shard_layout.h"
#include "lower/sharded_model.h"

namespace armilla {

struct CollectiveStep {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupAxis axis = GroupAxis::tensor;
  Bytes bytes;
};

enum class Conversion : std::uint8_t { none, enter, divide, collect_features, collect_all, copy };

struct Entry {
  std::uint32_t tensor = 0;
  Conversion conversion = Conversion::none;
  std::uint32_t first = 0;                    // operator before which the forward collective happens
  std::uint32_t first_gradient = UINT32_MAX;  // after whose input gradient the backward one does
  std::uint32_t last_product = UINT32_MAX;  // last one whose weight gradient needs the tensor gathered again
  std::optional<CollectiveStep> forward, backward, again;
  std::int64_t layers = 1;  // linear layers that exchange it one by one (TensorMethod::modules)
};

// Of a tensor as it was gathered: all tokens of the context rank and all features.
Bytes whole_bytes(const Model& model, const Layout& layout, std::uint32_t tensor, DType floats);

// What an operator needs done to one of its inputs.
Conversion conversion(const Model& model, const Layout& layout, const Operator& op, std::uint32_t input);

// Of the operators [first, end), in order of Entry::first.
std::vector<Entry> entries(const Model& model, const Layout& layout, std::uint32_t first, std::uint32_t end,
                           DType floats);

// Whether the tensor is kept as it was gathered because no product gathers it again.
bool keeps_gathered(const Entry& entry);

// Sums where partial sums leave, and the gathering of a divided result of the model.
struct Exit {
  std::optional<CollectiveStep> forward, backward;
};
Exit exit_of(const Model& model, const Layout& layout, const Operator& op, DType floats);

}  // namespace armilla
