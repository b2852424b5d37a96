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
  std::array<std::int64_t, 3> dense = {};                      // tensor, context, data: stride within a stage
  std::array<std::int64_t, 3> experts = {};                    // expert tensor, expert, expert data: the same
  std::int64_t data = 1, experts_tensor = 1, expert_data = 1;  // what the plan works out each time
};

std::size_t index_of(Axis axis) {
  return static_cast<std::size_t>(axis);
}

Grid grid_of(const Plan& plan) {
  const std::array<std::int64_t, 4> dense = {plan.tensor, plan.context, plan.data(), plan.pipeline};
  const std::array<std::int64_t, 3> experts = {plan.experts_tensor(), plan.expert, plan.expert_data()};
  Grid grid;
  grid.data = dense[2];
  grid.experts_tensor = experts[0];
  grid.expert_data = experts[2];
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

// By Axis.
using AxisPositions = std::array<std::int64_t, 4>;

RankCoordinates dense_coordinates(const AxisPositions& at) {
  return {at[0], at[1], at[2], at[3], 0, 0, 0};
}
// The same rank within its stage, read with the expert axes' strides.
void add_expert_coordinates(const Grid& grid, const Plan& plan, RankCoordinates& at) {
  const std::int64_t in_stage =
      at.tensor * grid.dense[0] + at.context * grid.dense[1] + at.data * grid.dense[2];
  at.expert_tensor = in_stage / grid.experts[0] % grid.experts_tensor;
  at.expert = in_stage / grid.experts[1] % plan.expert;
  at.expert_data = in_stage / grid.experts[2] % grid.expert_data;
}

bool is_of_experts(GroupAxis axis) {
  return axis == GroupAxis::expert || axis == GroupAxis::expert_tensor || axis == GroupAxis::expert_data;
}

// Position among the ranks that hold the same dense weights, in order of rank.
std::int64_t replica_of(const Grid& grid, const Plan& plan, const RankCoordinates& at) {
  const bool context_first = grid.dense[1] <= grid.dense[2];
  return context_first ? at.data * plan.context + at.context : at.context * grid.data + at.data;
}

// Equal for the ranks of a group and for no others; -1: in no group. Not dense.
std::int64_t group_key(const Grid& grid, const Plan& plan, GroupAxis axis, const RankCoordinates& at,
                       const std::vector<std::int64_t>& pipeline_ranks) {
  // A key is the rank's coordinates with the group's own axis set to 0: ranks that differ in it alone meet.
  const auto dense = [&](std::int64_t tensor, std::int64_t context, std::int64_t data, std::int64_t stage) {
    return ((stage * grid.data + data) * plan.context + context) * plan.tensor + tensor;
  };
  const auto expert = [&](std::int64_t tensor, std::int64_t position, std::int64_t data) {
    return ((at.pipeline * grid.expert_data + data) * plan.expert + position) * grid.experts_tensor + tensor;
  };
  const std::int64_t replicas = plan.context * grid.data;
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
  const Grid grid = grid_of(plan);
  // Mixed radix: the first axis of the order changes fastest.
  AxisPositions at = {};
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[index_of(grid.axes[i])] = rank % grid.sizes[i];
    rank /= grid.sizes[i];
  }
  RankCoordinates coordinates = dense_coordinates(at);
  add_expert_coordinates(grid, plan, coordinates);
  return coordinates;
}

GroupFamily axis_family(const Plan& plan, GroupAxis axis, const std::vector<std::int64_t>& pipeline_ranks) {
  const Grid grid = grid_of(plan);
  GroupFamily family;
  family.name = name_of(axis);
  family.group_of.assign(static_cast<std::size_t>(plan.ranks), -1);
  std::vector<std::int32_t> group_of_key(static_cast<std::size_t>(plan.ranks), -1);
  std::vector<std::size_t> sizes;
  AxisPositions at = {};
  for (std::int32_t& group : family.group_of) {
    RankCoordinates coordinates = dense_coordinates(at);
    if (is_of_experts(axis)) add_expert_coordinates(grid, plan, coordinates);
    for (std::size_t i = 0; i < at.size(); ++i) {
      std::int64_t& position = at[index_of(grid.axes[i])];
      if (++position < grid.sizes[i]) break;
      position = 0;
    }
    const std::int64_t key = group_key(grid, plan, axis, coordinates, pipeline_ranks);
    if (key < 0) continue;
    std::int32_t& known = group_of_key[static_cast<std::size_t>(key)];
    if (known < 0) {
      known = static_cast<std::int32_t>(sizes.size());
      sizes.push_back(0);
    }
    ++sizes[static_cast<std::size_t>(known)];
    group = known;
  }
  family.groups.resize(sizes.size());
  for (std::size_t group = 0; group < sizes.size(); ++group) family.groups[group].reserve(sizes[group]);
  // A coordinate of any axis grows with the rank while the others stay: ascending ranks are in order of
  // position.
  for (std::size_t rank = 0; rank < family.group_of.size(); ++rank) {
    const std::int32_t group = family.group_of[rank];
    if (group >= 0) family.groups[static_cast<std::size_t>(group)].push_back(static_cast<std::int32_t>(rank));
  }
  return family;
}

}  // namespace armilla
