#include "lower/rank_grid.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace armilla {
namespace {

// A stage's ranks are counted twice: by dense axes and by expert axes, each in the order of the plan without
// the pipeline. So both layouts fill the same ranks wherever the pipeline stands.
struct Grid {
  std::array<std::int64_t, 4> sizes = {};  // in order of Plan::order
  std::array<Axis, 4> axes = {};
  std::array<std::int64_t, 3> dense = {};    // tensor, context, data: stride within a stage
  std::array<std::int64_t, 3> experts = {};  // expert tensor, expert, expert data: the same
};

std::size_t index_of(Axis axis) {
  return static_cast<std::size_t>(axis);
}

Grid grid_of(const Plan& plan) {
  const std::array<std::int64_t, 4> dense = {plan.tensor, plan.context, plan.data(), plan.pipeline};
  const std::array<std::int64_t, 3> experts = {plan.experts_tensor(), plan.expert, plan.expert_data()};
  Grid grid;
  std::int64_t dense_stride = 1, expert_stride = 1;
  for (std::size_t i = 0; i < 4; ++i) {
    grid.axes[i] = plan.order[i];
    const std::size_t axis = index_of(plan.order[i]);
    grid.sizes[i] = dense[axis];
    // The pipeline is left out of the strides: a stage's ranks are numbered by the other axes alone.
    if (plan.order[i] == Axis::pipeline) continue;
    grid.dense[axis] = dense_stride;
    grid.experts[axis] = expert_stride;
    dense_stride *= dense[axis];
    expert_stride *= experts[axis];
  }
  return grid;
}

RankCoordinates coordinates_in(const Grid& grid, const Plan& plan, std::int64_t rank) {
  // Mixed radix: the first axis of the order changes fastest.
  std::array<std::int64_t, 4> at = {};
  for (std::size_t i = 0; i < 4; ++i) {
    at[index_of(grid.axes[i])] = rank % grid.sizes[i];
    rank /= grid.sizes[i];
  }
  RankCoordinates result{at[0], at[1], at[2], at[3], 0, 0, 0};
  // The same rank within its stage, read with the expert axes' strides.
  const std::int64_t in_stage = at[0] * grid.dense[0] + at[1] * grid.dense[1] + at[2] * grid.dense[2];
  result.expert_tensor = in_stage / grid.experts[0] % plan.experts_tensor();
  result.expert = in_stage / grid.experts[1] % plan.expert;
  result.expert_data = in_stage / grid.experts[2] % plan.expert_data();
  return result;
}

// Position among the ranks that hold the same dense weights, in order of rank.
std::int64_t replica_of(const Grid& grid, const Plan& plan, const RankCoordinates& at) {
  const bool context_first = grid.dense[1] <= grid.dense[2];
  return context_first ? at.data * plan.context + at.context : at.context * plan.data() + at.data;
}

// Equal for the ranks of a group and for no others; -1: in no group. Not dense.
std::int64_t group_key(const Grid& grid, const Plan& plan, GroupAxis axis, const RankCoordinates& at,
                       const std::vector<std::int64_t>& pipeline_ranks) {
  // A key is the rank's coordinates with the group's own axis set to 0: ranks that differ in it alone meet.
  const auto dense = [&](std::int64_t tensor, std::int64_t context, std::int64_t data, std::int64_t stage) {
    return ((stage * plan.data() + data) * plan.context + context) * plan.tensor + tensor;
  };
  const auto expert = [&](std::int64_t tensor, std::int64_t position, std::int64_t data) {
    return ((at.pipeline * plan.expert_data() + data) * plan.expert + position) * plan.experts_tensor() +
           tensor;
  };
  const std::int64_t replicas = plan.context * plan.data();
  // Hybrid sharding cuts the replicas into runs of `shard`; those at one position of their runs replicate
  // each other.
  const std::int64_t shard = plan.hybrid_shard == 0 ? replicas : plan.hybrid_shard;
  const std::int64_t weights = at.pipeline * plan.tensor + at.tensor;
  switch (axis) {
    case GroupAxis::tensor:
      return dense(0, at.context, at.data, at.pipeline);
    case GroupAxis::context:
      return dense(at.tensor, 0, at.data, at.pipeline);
    case GroupAxis::data:
      return weights;
    case GroupAxis::pipeline:
      return dense(at.tensor, at.context, at.data, 0);
    case GroupAxis::expert:
      return expert(at.expert_tensor, 0, at.expert_data);
    case GroupAxis::expert_tensor:
      return expert(0, at.expert, at.expert_data);
    case GroupAxis::expert_data:
      return expert(at.expert_tensor, at.expert, 0);
    case GroupAxis::embedding:
      if (std::find(pipeline_ranks.begin(), pipeline_ranks.end(), at.pipeline) == pipeline_ranks.end())
        return -1;
      return dense(at.tensor, at.context, at.data, 0);
    case GroupAxis::shard:
      return weights * (replicas / shard) + replica_of(grid, plan, at) / shard;
    case GroupAxis::replicate:
      return weights * shard + replica_of(grid, plan, at) % shard;
    case GroupAxis::mirror:
      return dense(at.tensor, at.context, at.data, std::min(at.pipeline, plan.pipeline - 1 - at.pipeline));
  }
  return -1;
}

}  // namespace

std::string_view name_of(GroupAxis axis) {
  switch (axis) {
    case GroupAxis::tensor:
      return "tensor";
    case GroupAxis::context:
      return "context";
    case GroupAxis::data:
      return "data";
    case GroupAxis::pipeline:
      return "pipeline";
    case GroupAxis::expert:
      return "expert";
    case GroupAxis::expert_tensor:
      return "expert tensor";
    case GroupAxis::expert_data:
      return "expert data";
    case GroupAxis::embedding:
      return "embedding";
    case GroupAxis::shard:
      return "shard";
    case GroupAxis::replicate:
      return "replicate";
    case GroupAxis::mirror:
      return "mirror";
  }
  return "?";
}

RankCoordinates coordinates_of(const Plan& plan, std::int64_t rank) {
  return coordinates_in(grid_of(plan), plan, rank);
}

GroupFamily axis_family(const Plan& plan, GroupAxis axis, const std::vector<std::int64_t>& pipeline_ranks) {
  const Grid grid = grid_of(plan);
  GroupFamily family;
  family.name = name_of(axis);
  family.group_of.assign(static_cast<std::size_t>(plan.ranks), -1);
  std::vector<std::int32_t> group_of_key(static_cast<std::size_t>(plan.ranks), -1);
  // A coordinate of any axis grows with the rank while the others stay: ascending ranks are in order of
  // position.
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    const std::int64_t key = group_key(grid, plan, axis, coordinates_in(grid, plan, rank), pipeline_ranks);
    if (key < 0) continue;
    std::int32_t& group = group_of_key[static_cast<std::size_t>(key)];
    if (group < 0) {
      group = static_cast<std::int32_t>(family.groups.size());
      family.groups.emplace_back();
    }
    family.groups[static_cast<std::size_t>(group)].push_back(static_cast<std::int32_t>(rank));
    family.group_of[static_cast<std::size_t>(rank)] = group;
  }
  return family;
}

}  // namespace armilla
