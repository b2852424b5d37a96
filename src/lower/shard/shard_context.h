// Context parallelism around one run of core-attention operators; see lower/shard/shard_pass.h.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/model.h"
#include "ir/plan.h"
#include "lower/shard/pass_writer.h"
#include "lower/shard/shard_tables.h"
#include "lower/shard_layout.h"

namespace armilla {

// Partial steps that ring attention may take.
inline constexpr std::int64_t kMostRingSteps = 4096;

struct CoreRun {
  std::uint32_t first = 0, end = 0;  // operators
  std::string name;                  // of the first
  std::vector<Bytes> inputs;         // what every rank sends of each input in an all-to-all
  Bytes output;
  Bytes keys_values;  // what moves around the ring
};
CoreRun core_run(const Model& model, const Layout& layout, std::uint32_t first, std::uint32_t end,
                 std::string_view name, DType floats);

// `compute(op)`: the step of an operator of the run, by ring a part of it.
using CoreStep = std::function<PassStep(std::uint32_t)>;
void write_ring(PassWriter& writer, ShardTables& tables, const CoreRun& run, std::int64_t steps,
                bool backward, const CoreStep& compute);
void write_all_to_all(PassWriter& writer, ShardTables& tables, const CoreRun& run, bool backward,
                      const CoreStep& compute);

}  // namespace armilla
