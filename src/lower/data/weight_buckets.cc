#include "lower/data/weight_buckets.h"

#include <algorithm>
#include <map>

#include "ir/tensor.h"
#include "lower/shard/weight_types.h"

namespace armilla {
namespace {

struct Unit {
  BlockPlace place;
  const WeightGroup* group = nullptr;
};

class BucketBuilder {
 public:
  BucketBuilder(const ShardedModel& model, const std::vector<RoleChunk>& chunks, const Plan& plan)
      : model_(model), chunks_(chunks), plan_(plan) {
    // The use of a tied weight that comes first in the model has it.
    // Tied weights (embedding and output matrix) on one rank are one weight: its gradient is complete when
    // the use that comes first in the model has had its backward pass, the last of all.
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(chunks.size()); ++c) {
      for (const Unit& unit : units_of(c)) {
        if (unit.group->tied < 0) continue;
        const auto [found, fresh] = owner_.try_emplace(unit.group->tied, unit.place);
        if (!fresh && model_block(unit.place) < model_block(found->second)) found->second = unit.place;
      }
    }
  }

  RoleWeights build(const std::vector<std::int32_t>& chunk_order,
                    const std::vector<std::vector<std::int64_t>>& holders) {
    for (const std::int32_t chunk : chunk_order) {
      // Chunks never share a bucket: their backward passes end at different times.
      open_ = {-1, -1};
      std::vector<Unit> units = units_of(chunk);
      // In the order the backward pass completes them.
      std::reverse(units.begin(), units.end());
      for (const Unit& unit : units) add(unit, holders);
    }
    // Once every bucket exists: a weight's other uses may lie in chunks that come before its own.
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(chunks_.size()); ++c) {
      for (const Unit& unit : units_of(c)) note_other_use(unit);
    }
    std::sort(result_.tied.begin(), result_.tied.end(),
              [](const TiedWeight& a, const TiedWeight& b) { return a.tied < b.tied; });
    return std::move(result_);
  }

 private:
  std::int64_t model_block(const BlockPlace& place) const {
    return chunks_[static_cast<std::size_t>(place.chunk)].first_block + place.block;
  }

  std::vector<Unit> units_of(std::int32_t chunk) const {
    std::vector<Unit> units;
    const std::vector<std::uint32_t>& shapes = chunks_[static_cast<std::size_t>(chunk)].shapes;
    std::size_t most = 0;
    for (const std::uint32_t shape : shapes) most += model_.shapes[shape].weights.size();
    units.reserve(most);
    for (std::size_t b = 0; b < shapes.size(); ++b) {
      for (const WeightGroup& group : model_.shapes[shapes[b]].weights) {
        if (group.elements > 0) units.push_back({{chunk, static_cast<std::int32_t>(b)}, &group});
      }
    }
    return units;
  }

  bool is_full(const WeightBucket& bucket, const BlockPlace& next) const {
    if (plan_.zero_stage == 3) return !(bucket.blocks.back() == next);
    // PyTorch's DDP makes the first bucket small (1 MiB) to start communication early; plans may do the same.
    const bool first = std::count_if(result_.buckets.begin(), result_.buckets.end(),
                                     [&](const auto& other) { return other.axis == bucket.axis; }) == 1;
    return bucket.gradients >= (first ? plan_.first_bucket : plan_.bucket);
  }

  void add(const Unit& unit, const std::vector<std::vector<std::int64_t>>& holders) {
    const WeightGroup& group = *unit.group;
    // The other uses of a tied weight bring no elements of their own.
    if (group.tied >= 0 && !(owner_.at(group.tied) == unit.place)) return;
    const bool expert = group.axis == GroupAxis::expert_data;
    std::int32_t& open = open_[expert ? 1 : 0];
    if (open < 0 || is_full(result_.buckets[static_cast<std::size_t>(open)], unit.place)) {
      open = static_cast<std::int32_t>(result_.buckets.size());
      WeightBucket& fresh = result_.buckets.emplace_back();
      fresh.axis = expert ? GroupAxis::expert_data : GroupAxis::data;
      fresh.chunk = unit.place.chunk;
    }
    WeightBucket& bucket = result_.buckets[static_cast<std::size_t>(open)];
    bucket.elements += group.elements;
    const std::int64_t updated = updated_of(group);
    bucket.updated += updated;
    bucket.gradients += size_of(updated, gradient_type(plan_), "gradients");
    const bool own = group.dtype != DType::unknown;
    bucket.parameters += size_of(group.elements, own ? group.dtype : parameter_type(plan_), "weights");
    bucket.weights += size_of(group.elements, own ? group.dtype : weight_type(plan_), "weights");
    for (const WeightTensors& tensor : group.tensors) {
      const DType type = own ? group.dtype : parameter_type(plan_);
      bucket.tensors.push_back({tensor.elements, tensor.count, size_of(tensor.elements, type, "weights")});
    }
    if (bucket.blocks.empty() || !(bucket.blocks.back() == unit.place)) bucket.blocks.push_back(unit.place);
    if (group.tensor_partial) result_.partial += group.elements;
    if (group.tied < 0) return;
    bucket_of_tied_[group.tied] = static_cast<std::size_t>(open);
    const auto number = static_cast<std::size_t>(group.tied);
    // Holders on several ranks sum the weight's gradients across stages.
    if (number < holders.size() && holders[number].size() > 1)
      result_.tied.push_back({group.tied, group.elements, holders[number]});
  }

  void note_other_use(const Unit& unit) {
    if (unit.group->tied < 0) return;
    WeightBucket& bucket = result_.buckets[bucket_of_tied_.at(unit.group->tied)];
    std::vector<BlockPlace>& known = unit.place.chunk == bucket.chunk ? bucket.blocks : bucket.others;
    if (std::find(known.begin(), known.end(), unit.place) == known.end()) known.push_back(unit.place);
  }

  const ShardedModel& model_;
  const std::vector<RoleChunk>& chunks_;
  const Plan& plan_;
  std::map<std::int64_t, BlockPlace> owner_;            // by tied number
  std::map<std::int64_t, std::size_t> bucket_of_tied_;  // by tied number
  std::vector<std::int32_t> open_ = {-1, -1};           // buckets being filled: dense, expert
  RoleWeights result_;
};

}  // namespace

RoleChunk role_chunk(const ShardedModel& model, const Plan& plan, const StageCut& stages,
                     const PipelineChunk& held) {
  RoleChunk chunk;
  chunk.chain = held.chain;
  chunk.stage = held.stage;
  chunk.first_block = stages.first[static_cast<std::size_t>(held.stage)];
  chunk.shapes = stage_shapes(model, plan, stages, held.stage);
  for (std::size_t b = 0; b < chunk.shapes.size(); ++b) {
    const auto block = static_cast<std::size_t>(chunk.first_block) + b;
    chunk.layers.push_back(model.layers.empty() ? static_cast<std::int32_t>(block) : model.layers[block]);
  }
  return chunk;
}

RoleWeights role_weights(const ShardedModel& model, const std::vector<RoleChunk>& chunks,
                         const std::vector<std::int32_t>& chunk_order,
                         const std::vector<std::vector<std::int64_t>>& holders, const Plan& plan) {
  return BucketBuilder(model, chunks, plan).build(chunk_order, holders);
}

}  // namespace armilla
