// What can be searched: the keys of a plan, the values that most people would try, and all that
// could be tried.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/model.h"
#include "ir/study.h"

namespace armilla {

// What decides which values make sense.
struct SpaceFacts {
  const Study& study;  // with first values for whatever is searched
  ModelFacts model;
  std::int64_t ranks = 1;
  std::int64_t node = 1;             // ranks of the innermost dimension
  std::int64_t batch = 0;            // of a replica at most; 0: not known
  std::int64_t run_micro_batch = 0;  // what `armilla run` takes where nothing is searched; 0: not known
  // Degrees of tensor and of expert parallelism that are tried; empty: the one of the study.
  std::vector<std::string> tensor, expert{};
  Parts parts{};  // of the model's layers that can be computed again
};

// Whether groups of so many ranks next to each other are in as few nodes as can be: of groups of 16 the fifth
// is in two racks of 72.
bool fits_nodes(std::int64_t group, std::int64_t node, std::int64_t ranks);
// Why these plans took long to simulate: ranks of groups that do not are no copies of each other
// (docs/models/folding.md). Empty where all do.
std::string note_on_nodes(const std::vector<std::pair<const Plan*, const Machine*>>& simulated);

struct PlanAxis {
  std::string_view key;  // of a study file, below "plan."
  // In the order in which they are tried, as text of a study file.
  std::vector<std::string> (*usual)(const SpaceFacts& facts);
  std::vector<std::string> (*any)(const SpaceFacts& facts);
  // Takes over what the key says.
  void (*copy)(const PlanRequest& from, PlanRequest& to);
};

// Degrees first, then whatever else cuts the job into micro-batches and stages: what these rule out needs no
// look at the rest.
std::span<const PlanAxis> plan_axes();
inline constexpr std::size_t kCuttingAxes = 10;  // tensor to schedule

// Whether an error about these keys (Error::keys) has to do with the cutting axes alone: then it is one for
// all plans that are cut alike. Not those about the sequence, whose division depends on how attention and
// norms go about it.
bool is_about_cutting(const std::vector<std::string>& keys);

}  // namespace armilla
