#include "study/run/balance_stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/units_text.h"
#include "lower/plan.h"
#include "lower/sharded_model.h"

namespace armilla {
namespace {

// Fills stages from the last one backwards, none above `most`, leaving a block for each stage before. Empty
// where the blocks do not go in.
std::vector<std::int64_t> fill(const std::vector<Time>& costs, std::int64_t stages, Time most) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(stages));
  auto left = static_cast<std::int64_t>(costs.size());
  for (std::int64_t stage = stages; stage-- > 0;) {
    Time sum;
    std::int64_t& size = sizes[static_cast<std::size_t>(stage)];
    while (left > stage) {
      const Time cost = costs[static_cast<std::size_t>(left - 1)];
      if (later(sum, cost) > most) break;
      sum = later(sum, cost);
      --left;
      ++size;
    }
    if (size == 0) return {};
  }
  return left == 0 ? sizes : std::vector<std::int64_t>();
}

Time cost_of(const ShardedModel& model, const Pass& pass, const CostModel& cost) {
  Time sum;
  for (const PassStep& step : pass.steps) {
    if (step.kind == NodeKind::compute) sum = later(sum, cost.time(model.works[step.work]));
  }
  return sum;
}

}  // namespace

// Minimises the largest stage: binary search over the answer, greedy filling as the test. O(blocks log(total
// time in ps)).
std::vector<std::int64_t> balanced_cut(const std::vector<Time>& costs, std::int64_t stages) {
  Time lowest, highest;
  for (const Time cost : costs) {
    lowest = std::max(lowest, cost);
    highest = later(highest, cost);
  }
  // Times are integers of picoseconds, so the search ends at the exact optimum.
  while (lowest < highest) {
    const Time middle = lowest + (highest - lowest) / 2;
    if (fill(costs, stages, middle).empty()) {
      lowest = middle + Time(1);
    } else {
      highest = middle;
    }
  }
  return fill(costs, stages, highest);
}

std::vector<std::int64_t> balance_stages(const Model& model, const Plan& plan, const CostModel& cost,
                                         const std::string& where) {
  const std::int64_t stages = checked_multiply(plan.pipeline, plan.virtual_stages, where);
  const auto blocks = static_cast<std::int64_t>(model.blocks.size());
  if (stages > blocks) check_plan_for_model(plan, model, where);  // says so in the plan's words
  if (stages > 1 && stages > blocks) {
    throw Error(where, fmt::format("{} pipeline stages for a model of {}", stages, counted(blocks, "block")),
                fmt::format("use at most {}", counted(blocks, "stage")),
                {"plan.pipeline", "plan.virtual_stages"});
  }
  // What a block costs does not depend on the cut; but only stages that are given may be an embedding or a
  // head alone.
  Plan cut = plan;
  if (stages > 1) cut.stage_blocks.assign(static_cast<std::size_t>(stages), 1);
  // Costs are those of position 0; where experts are loaded unevenly, other positions differ.
  const ShardedModel sharded = shard_model(model, cut, 0, where);
  std::vector<Time> shapes;
  for (const BlockShape& shape : sharded.shapes) {
    Time sum;
    // Everything a micro-batch costs in a block: forward, repeated forward, backward.
    for (const Pass* pass : {&shape.forward, &shape.recompute, &shape.backward})
      sum = later(sum, cost_of(sharded, *pass, cost));
    shapes.push_back(sum);
  }
  std::vector<Time> costs;
  for (const ShardedBlock& block : sharded.blocks) costs.push_back(shapes[block.shape]);
  return balanced_cut(costs, stages);
}

}  // namespace armilla
