#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "base/units_text.h"
#include "lower/hybrid.h"

namespace armilla {
namespace {

bool has_weights(const ShardedModel& model, std::int64_t block) {
  const BlockShape& shape = model.shapes[model.blocks[static_cast<std::size_t>(block)].shape];
  return std::any_of(shape.weights.begin(), shape.weights.end(),
                     [](const WeightGroup& group) { return group.elements > 0; });
}

// Blocks that make stages: embeddings, heads and blocks without weights go along with their neighbours.
bool is_layer(const ShardedModel& model, std::int64_t block) {
  const BlockKind kind = model.blocks[static_cast<std::size_t>(block)].kind;
  return kind != BlockKind::embedding && kind != BlockKind::head && has_weights(model, block);
}

std::vector<std::int64_t> layers_of(const ShardedModel& model) {
  std::vector<std::int64_t> layers;
  for (std::int64_t b = 0; b < static_cast<std::int64_t>(model.blocks.size()); ++b) {
    if (is_layer(model, b)) layers.push_back(b);
  }
  return layers;
}

std::string describe_stages(const Plan& plan) {
  if (plan.virtual_stages == 1) return fmt::format("plan.pipeline {}", plan.pipeline);
  return fmt::format("{} stages (plan.pipeline {} x plan.virtual_stages {})",
                     plan.pipeline * plan.virtual_stages, plan.pipeline, plan.virtual_stages);
}

// How many of `count` each of `stages` gets.
std::vector<std::int64_t> even_shares(std::int64_t count, std::int64_t stages) {
  // Every stage gets the share rounded up, and the surplus is taken away again stage by stage.
  const bool exact = count % stages == 0;
  std::vector<std::int64_t> share(static_cast<std::size_t>(stages), count / stages + (exact ? 0 : 1));
  std::int64_t surplus = exact ? 0 : stages - count % stages;
  for (std::int64_t i = 0; surplus > 0; ++i, --surplus) {
    // From the outside in, the last stage first: the head costs more than the embedding.
    const std::int64_t stage = i % 2 == 0 ? stages - 1 - i / 2 : i / 2;
    --share[static_cast<std::size_t>(stage)];
  }
  return share;
}

StageCut cut_exactly(const std::vector<std::int64_t>& sizes) {
  StageCut cut;
  std::int64_t next = 0;
  for (const std::int64_t size : sizes) {
    cut.first.push_back(next);
    cut.end.push_back(next += size);
  }
  return cut;
}

// Cuts before the first of the layers of every stage but stage 0; embeddings between layers go with the layer
// that follows them, other blocks with the one before.
StageCut cut_by_layers(const ShardedModel& model, const std::vector<std::int64_t>& layers,
                       const std::vector<std::int64_t>& shares) {
  const auto blocks = static_cast<std::int64_t>(model.blocks.size());
  const auto stages = static_cast<std::int64_t>(shares.size());
  std::vector<std::int64_t> starts(1, 0);
  std::int64_t used = shares[0];
  for (std::int64_t s = 1; s < stages; ++s) {
    if (used < static_cast<std::int64_t>(layers.size())) {
      std::int64_t start = layers[static_cast<std::size_t>(used)];
      const std::int64_t before = used > 0 ? layers[static_cast<std::size_t>(used - 1)] : -1;
      // Embeddings between layers (T5's decoder has one) belong to the layer behind them.
      while (start - 1 > before && used > 0 &&
             model.blocks[static_cast<std::size_t>(start - 1)].kind == BlockKind::embedding)
        --start;
      starts.push_back(start);
    } else {
      // A stage beyond the last layer begins behind it and holds the head alone, or nothing, which is refused
      // later.
      starts.push_back(layers.empty() ? blocks : layers.back() + 1);
    }
    used += shares[static_cast<std::size_t>(s)];
  }
  StageCut cut;
  for (std::size_t s = 0; s < starts.size(); ++s) {
    cut.first.push_back(starts[s]);
    cut.end.push_back(s + 1 < starts.size() ? starts[s + 1] : blocks);
  }
  return cut;
}

StageCut cut_as_given(const ShardedModel& model, const Plan& plan, const std::vector<std::int64_t>& layers,
                      std::int64_t stages, const std::string& where) {
  if (static_cast<std::int64_t>(plan.stage_blocks.size()) != stages) {
    throw Error(where,
                fmt::format("plan.stage_blocks has {} for {}",
                            counted(std::ssize(plan.stage_blocks), "number"), describe_stages(plan)),
                fmt::format("give {}, in model order", typed_count(stages, "number")),
                {"plan.stage_blocks", "plan.pipeline", "plan.virtual_stages"});
  }
  std::int64_t sum = 0;
  for (const std::int64_t size : plan.stage_blocks) {
    if (size < 0)
      throw Error(where, fmt::format("a stage of {} blocks", size), "a stage has at least 1 block",
                  {"plan.stage_blocks"});
    sum = checked_add(sum, size, where);
  }
  const auto blocks = static_cast<std::int64_t>(model.blocks.size());
  // Users count layers, or all blocks with embedding and head; which of the two follows from the sum.
  const auto count = static_cast<std::int64_t>(layers.size());
  if (sum == blocks) return cut_exactly(plan.stage_blocks);
  if (sum == count) return cut_by_layers(model, layers, plan.stage_blocks);
  throw Error(where,
              fmt::format("plan.stage_blocks {} adds up to {}, the model has {}, {} of them {}",
                          fmt::join(plan.stage_blocks, ","), sum, typed_count(blocks, "block"), count,
                          count == 1 ? "a layer" : "layers"),
              fmt::format("make them add up to {}{}", count,
                          blocks == count ? "" : fmt::format(" (or {}, with embedding and head)", blocks)),
              {"plan.stage_blocks"});
}

// More would say nothing, or hide a mistake.
void check_recompute_blocks(const ShardedModel& model, const Plan& plan, const StageCut& cut,
                            const std::string& where) {
  if (plan.recompute != Recompute::block) return;
  std::int64_t most = 0;
  for (std::size_t s = 0; s < cut.first.size(); ++s) {
    std::int64_t layers = 0;
    for (std::int64_t b = cut.first[s]; b < cut.end[s]; ++b) layers += is_layer(model, b) ? 1 : 0;
    most = std::max(most, layers);
  }
  if (plan.recompute_blocks <= most) return;
  throw Error(where,
              fmt::format("plan.recompute_blocks {} for model chunks of at most {}", plan.recompute_blocks,
                          typed_count(most, "layer")),
              fmt::format("plan.recompute_blocks can be at most {}; plan.recompute full takes all", most),
              {"plan.recompute_blocks", "plan.recompute"});
}

}  // namespace

StageCut cut_stages(const ShardedModel& model, const Plan& plan, const std::string& where) {
  const std::int64_t stages = checked_multiply(plan.pipeline, plan.virtual_stages, where);
  const auto blocks = static_cast<std::int64_t>(model.blocks.size());
  if (stages < 1) throw Error(where, fmt::format("{} pipeline stages", stages), "there is at least 1");
  if (stages > blocks) {
    throw Error(where, fmt::format("{} for a model of {}", describe_stages(plan), counted(blocks, "block")),
                fmt::format("use at most {}", counted(blocks, "stage")),
                {"plan.pipeline", "plan.virtual_stages"});
  }
  const std::vector<std::int64_t> layers = layers_of(model);
  StageCut cut;
  // Under DistributedDataParallel blocks are cut at every parameter: they are not what the user numbered.
  if (!plan.stage_blocks.empty() && !model.distributed_data_parallel) {
    cut = cut_as_given(model, plan, layers, stages, where);
  } else if (static_cast<std::int64_t>(layers.size()) >= stages) {
    cut = cut_by_layers(model, layers, even_shares(static_cast<std::int64_t>(layers.size()), stages));
  } else {
    // Fewer layers than stages: then embedding and head have to make stages of their own.
    cut = cut_exactly(even_shares(blocks, stages));
  }
  for (std::size_t s = 0; s < cut.first.size(); ++s) {
    if (cut.first[s] >= cut.end[s])
      throw Error(where,
                  fmt::format("stage {}{} has no blocks", s,
                              plan.stage_blocks.empty() ? "" : " of plan.stage_blocks"),
                  "every stage needs at least 1", {"plan.stage_blocks", "plan.pipeline"});
  }
  check_recompute_blocks(model, plan, cut, where);
  return cut;
}

bool repeats_all(const ShardedModel& model, const Plan& plan, const StageCut& stages) {
  for (std::size_t s = 0; s < stages.first.size(); ++s) {
    std::int64_t repeated = 0;
    for (std::int64_t b = stages.first[s]; b < stages.end[s]; ++b) {
      const BlockKind kind = model.blocks[static_cast<std::size_t>(b)].kind;
      if (kind == BlockKind::embedding || kind == BlockKind::head) continue;
      if (!is_layer(model, b) || ++repeated > plan.recompute_blocks) return false;
    }
  }
  return true;
}

std::vector<std::uint32_t> stage_shapes(const ShardedModel& model, const Plan& plan, const StageCut& stages,
                                        std::int64_t stage) {
  std::vector<std::uint32_t> shapes;
  // The first layers of every model chunk, as Megatron-LM's recompute_method "block" does.
  std::int64_t recomputed = plan.recompute == Recompute::block ? plan.recompute_blocks : 0;
  const auto index = static_cast<std::size_t>(stage);
  for (std::int64_t b = stages.first[index]; b < stages.end[index]; ++b) {
    const ShardedBlock& block = model.blocks[static_cast<std::size_t>(b)];
    const bool repeats = recomputed > 0 && is_layer(model, b);
    if (repeats) --recomputed;
    shapes.push_back(repeats ? block.recomputed_shape : block.shape);
  }
  return shapes;
}

}  // namespace armilla
