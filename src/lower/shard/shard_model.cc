#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"
#include "lower/expert_exchange.h"
#include "lower/pipeline_schedule.h"
#include "lower/plan.h"
#include "lower/shard/expert_load.h"
#include "lower/shard/shard_context.h"
#include "lower/shard/shard_memory.h"
#include "lower/shard/shard_pass.h"
#include "lower/shard/shard_tables.h"
#include "lower/shard/shard_work.h"
#include "lower/sharded_model.h"

namespace armilla {

namespace {

void check_attention_heads(const Model& model, const Plan& plan, const std::string& where) {
  // Whole heads, equally many on every tensor rank: Megatron-LM refuses other degrees as well.
  for (const Operator& op : model.operators) {
    if (!op.core_attention || op.ways == 0 || op.ways % plan.tensor == 0) continue;
    throw Error(where, fmt::format("plan.tensor {} does not divide attention heads {}", plan.tensor, op.ways),
                fmt::format("'{}' has {}", op.name, typed_count(op.ways, "head")), {"plan.tensor"});
  }
}

void check_sequence_parallel(const Model& model, const Plan& plan, const std::string& where) {
  if (!plan.sequence_parallel || plan.tensor == 1 || model.facts.sequence > 0) return;
  throw Error(
      where,
      fmt::format("plan.sequence_parallel with plan.tensor {} for a model without sequences", plan.tensor),
      "sequence parallelism divides the tokens of a sequence; leave it out",
      {"plan.sequence_parallel", "plan.tensor"});
}

void check_context(const Model& model, const Plan& plan, const std::string& where) {
  if (plan.context == 1) return;
  if (model.facts.sequence == 0) {
    throw Error(where, fmt::format("plan.context {} for a model without sequences", plan.context),
                "context parallelism divides the tokens of a sequence; leave it out", {"plan.context"});
  }
  if (plan.context_method == ContextMethod::ring && plan.context > kMostRingSteps) {
    throw Error(where, fmt::format("plan.context {}: a ring of so many steps", plan.context),
                fmt::format("rings have at most {} ranks", kMostRingSteps), {"plan.context"});
  }
}

void check_expert_position(const Model& model, const Plan& plan, std::int64_t position,
                           const std::string& where) {
  if (position < 0 || position >= plan.expert) {
    throw Error(where, fmt::format("expert position {} of plan.expert {}", position, plan.expert));
  }
  if (is_uneven(plan) && plan.expert > kMostUnevenExperts) {
    throw Error(where, fmt::format("plan.expert {} with uneven loads", plan.expert),
                fmt::format("loads that differ are limited to {} expert-parallel ranks", kMostUnevenExperts),
                {"plan.expert"});
  }
  const bool experts = std::any_of(model.operators.begin(), model.operators.end(),
                                   [](const Operator& op) { return op.expert; });
  const bool sequence_parallel = plan.sequence_parallel && plan.tensor > 1;
  if (experts && plan.experts_tensor() > plan.tensor) {
    throw Error(
        where,
        fmt::format("plan.expert_tensor {} is more than plan.tensor {}", plan.experts_tensor(), plan.tensor),
        fmt::format("plan.expert_tensor can be at most {}", plan.tensor),
        {"plan.expert_tensor", "plan.tensor"});
  }
  if (experts && plan.experts_tensor() != plan.tensor && !sequence_parallel) {
    throw Error(where,
                fmt::format("plan.expert_tensor {} with plan.tensor {} needs plan.sequence_parallel",
                            plan.experts_tensor(), plan.tensor),
                "without it all tensor ranks would send the same tokens to the experts",
                {"plan.expert_tensor", "plan.tensor", "plan.sequence_parallel"});
  }
}

// Weights that table and head share are divided for both or for none.
void check_tables(const Model& model, const Plan& plan, const std::string& where) {
  if (plan.embedding_parallel == plan.head_parallel || plan.tensor == 1) return;
  const auto has = [](const Operator& op, std::uint32_t parameter) {
    return std::ranges::find(op.parameters, parameter) != op.parameters.end();
  };
  const std::string_view whole = plan.head_parallel ? "plan.embedding_parallel" : "plan.head_parallel";
  for (const Operator& table : model.operators) {
    if (!is_table(table)) continue;
    for (const std::uint32_t parameter : table.parameters) {
      if (std::ranges::none_of(model.operators,
                               [&](const Operator& op) { return !is_table(op) && has(op, parameter); }))
        continue;
      throw Error(
          where, fmt::format("{} false for a model whose head has the weights of its embedding", whole),
          "tensor parallelism divides the other one, and so the weights that both share; leave it out",
          {std::string(whole)});
    }
  }
}

Degrees degrees_of(const Model& model, const Plan& plan, std::int64_t position) {
  Degrees degrees;
  degrees.tensor = plan.tensor;
  degrees.context = plan.context;
  degrees.expert = plan.expert;
  degrees.expert_tensor = plan.experts_tensor();
  degrees.sequence_parallel = plan.sequence_parallel && plan.tensor > 1;
  // DTensor gathers with operations of its own, so that a product's input, which autograd keeps for its
  // weight gradient, is the whole one.
  degrees.gathers_again = tensor_method_of(plan) == TensorMethod::megatron;
  degrees.exchanges_by_layer = tensor_method_of(plan) == TensorMethod::modules;
  degrees.loss_parallel = plan.loss_parallel;
  degrees.embedding_parallel = plan.embedding_parallel;
  degrees.head_parallel = plan.head_parallel;
  degrees.fuses_experts = plan.fused_experts && can_fuse_experts(model);
  degrees.folds_passes = plan.host == Host::compiled;
  degrees.all_to_all_context = plan.context > 1 && plan.context_method == ContextMethod::all_to_all;
  // The rank with most tokens counts for all: a group is as slow as its slowest member.
  if (plan.context > 1) degrees.sequence = largest_part(model.facts.sequence, plan.context);
  if (plan.expert_capacity > 0) degrees.capacity = capacity_share(plan);
  if (is_uneven(plan)) degrees.load = expert_loads(plan, model.facts)[static_cast<std::size_t>(position)];
  return degrees;
}

// A graph read from ONNX, say, under plain data parallelism: the one case where PyTorch's DDP, which hooks
// single parameters, is what runs it.
bool is_distributed_data_parallel(const Model& model, const Plan& plan) {
  return plan.is_plain_data_parallel() && model.facts.family.empty() && !model.layers.empty();
}

struct BlockCut {
  std::vector<Block> blocks;
  std::vector<std::int32_t> layers;  // as ShardedModel::layers
};

// Each begins with an operator that has parameters, whose backward pass is its last.
BlockCut cut_at_parameters(const Model& model) {
  BlockCut cut;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    for (std::uint32_t i = layer.first; i < layer.end; ++i) {
      const std::vector<std::uint32_t>& parameters = model.operators[i].parameters;
      const bool trains = std::any_of(parameters.begin(), parameters.end(),
                                      [&](std::uint32_t p) { return model.parameters[p].trainable; });
      if (i == layer.first || trains) {
        // Without a name: operators keep theirs whole.
        cut.blocks.push_back({"", BlockKind::other, i, i, static_cast<std::uint32_t>(cut.blocks.size())});
        cut.layers.push_back(static_cast<std::int32_t>(l));
      }
      cut.blocks.back().end = i + 1;
    }
  }
  return cut;
}

// The second choice is a model's own blocks; a graph without any is one block.
BlockCut blocks_of(const Model& model, const Plan& plan) {
  if (is_distributed_data_parallel(model, plan)) return cut_at_parameters(model);
  if (!model.blocks.empty() || model.operators.empty()) return {model.blocks, {}};
  return {{{model.name, BlockKind::other, 0, static_cast<std::uint32_t>(model.operators.size()), 0}}, {}};
}

// Of each block: whether it is one of the first or last layers that the plan keeps wide.
std::vector<bool> wide_blocks(const std::vector<Block>& blocks, const Plan& plan) {
  std::vector<std::size_t> layers;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].kind == BlockKind::encoder || blocks[b].kind == BlockKind::decoder) layers.push_back(b);
  }
  std::vector<bool> wide(blocks.size());
  const auto count = static_cast<std::int64_t>(layers.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_wide = i < plan.wide_first_layers || i >= count - plan.wide_last_layers;
    wide[layers[static_cast<std::size_t>(i)]] = is_wide;
  }
  return wide;
}

// Blocks are one shape where they have equal work, weights and neighbours.
using ShapeKey = std::tuple<std::uint32_t, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool,
                            std::vector<std::int64_t>>;

class ModelSharder {
 public:
  ModelSharder(const Model& model, const Plan& plan, std::int64_t position)
      : model_(model),
        plan_(plan),
        cut_(blocks_of(model, plan)),
        blocks_(cut_.blocks),
        layout_(lay_out(model, degrees_of(model, plan, position))),
        tables_(result_),
        boundaries_(boundary_bytes(model, blocks_, layout_, plan)),
        uses_(parameter_uses(model, blocks_)),
        wide_(wide_blocks(blocks_, plan)) {
    result_.expert_loads = expert_loads(plan, model.facts);
    result_.layers = cut_.layers;
    result_.distributed_data_parallel = !cut_.layers.empty();
  }

  ShardedModel shard() {
    // With recompute chosen per block (Recompute::block), every block is shaped twice, with and without;
    // which one a stage uses is decided where its memory is known.
    const bool some = plan_.recompute == Recompute::block;
    const std::vector<BlockMemory> usual =
        block_memory(model_, blocks_, layout_, plan_, some ? Recompute::none : plan_.recompute, wide_);
    std::vector<BlockMemory> recomputed;
    if (some) recomputed = block_memory(model_, blocks_, layout_, plan_, Recompute::full, wide_);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const std::string& name = cut_.layers.empty()
                                    ? blocks_[b].name
                                    : model_.layers[static_cast<std::size_t>(cut_.layers[b])].name;
      ShardedBlock block{name, blocks_[b].kind, 0, 0};
      block.shape = shape_of(b, some ? Recompute::none : plan_.recompute, usual[b]);
      block.recomputed_shape = some ? shape_of(b, Recompute::full, recomputed[b]) : block.shape;
      result_.blocks.push_back(std::move(block));
    }
    return std::move(result_);
  }

 private:
  std::uint32_t shape_of(std::size_t b, Recompute recompute, const BlockMemory& memory) {
    const Block& block = blocks_[b];
    if (!can_recompute(block)) recompute = Recompute::none;
    std::vector<WeightGroup> weights =
        weight_groups(model_, block, layout_, uses_, result_.distributed_data_parallel, plan_);
    // Tied weights distinguish shapes: a block whose weight is also elsewhere exchanges its gradient with the
    // other holder.
    std::vector<std::int64_t> tied;
    for (const WeightGroup& group : weights) tied.push_back(group.tied);
    const std::uint32_t number = block.shape;
    // Where blocks of equal work differ in what crosses their borders or in what they keep (long skip
    // connections), they are different shapes, but share their passes.
    const auto [found, fresh] = shapes_.try_emplace(
        ShapeKey{number, wide_[b], boundaries_[b].value, boundaries_[b + 1].value, memory.saved.value,
                 memory.restored.value, recompute == Recompute::full, std::move(tied)},
        static_cast<std::uint32_t>(result_.shapes.size()));
    if (!fresh) return found->second;
    BlockShape shape;
    BlockPasses passes = passes_of(number, block, wide_[b]);
    if (recompute != Recompute::none) shape.recompute = std::move(passes.repeated);
    shape.forward = std::move(passes.forward);
    shape.backward = std::move(passes.backward);
    shape.weights = std::move(weights);
    shape.placeholders = gradient_placeholders(model_, block, layout_, plan_);
    shape.buffers = buffer_bytes(model_, block, layout_, plan_);
    shape.input = boundaries_[b];
    shape.output = boundaries_[b + 1];
    shape.saved = memory.saved;
    shape.working = largest_working_set(model_, block, layout_, plan_) + memory.restored;
    result_.shapes.push_back(std::move(shape));
    return found->second;
  }

  // Passes depend on the work alone, so they are written once per Block::shape, wide or not.
  BlockPasses passes_of(std::uint32_t number, const Block& block, bool wide) {
    const auto known = passes_.find({number, wide});
    if (known != passes_.end()) return known->second;
    return passes_
        .emplace(std::pair(number, wide), block_passes(model_, block, plan_, layout_, tables_, wide))
        .first->second;
  }

  const Model& model_;
  const Plan& plan_;
  BlockCut cut_;
  const std::vector<Block>& blocks_;
  Layout layout_;
  ShardedModel result_;
  ShardTables tables_;
  std::vector<Bytes> boundaries_;   // before each block
  std::vector<std::int64_t> uses_;  // blocks that use each parameter
  std::vector<bool> wide_;          // blocks without products in types narrower than 16 bits
  std::map<ShapeKey, std::uint32_t> shapes_;
  std::map<std::pair<std::uint32_t, bool>, BlockPasses> passes_;  // by Block::shape and whether it is wide
};

}  // namespace

ShardedModel shard_model(const Model& model, const Plan& plan, std::int64_t expert_position,
                         const std::string& where) {
  validate_plan(plan, where);
  check_plan_for_model(plan, model, where);
  check_attention_heads(model, plan, where);
  check_sequence_parallel(model, plan, where);
  check_context(model, plan, where);
  check_tables(model, plan, where);
  check_expert_position(model, plan, expert_position, where);
  return ModelSharder(model, plan, expert_position).shard();
}

std::string division_of(const Plan& plan) {
  return fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} "
      "{} {} {} {} {} {} {} {}",
      plan.tensor, plan.context, plan.expert, plan.expert_tensor, plan.sequence_parallel, plan.overlap_tensor,
      name_of(plan.context_method), name_of(plan.expert_load), plan.expert_skew,
      name_of(plan.expert_dispatch), name_of(plan.dispatch_dtype), plan.seed, name_of(plan.precision),
      name_of(plan.weight_dtype), name_of(plan.gradient_dtype), name_of(plan.parameter_dtype),
      plan.accumulation_fusion, name_of(plan.recompute), plan.recompute_modules.bits(), stops_early(plan),
      plan.is_plain_data_parallel(), schedule_of(plan).overlaps_passes, name_of(plan.framework),
      name_of(plan.host), name_of(plan.loss), plan.loss_parallel, plan.embedding_parallel, plan.head_parallel,
      plan.wide_first_layers, plan.wide_last_layers, plan.wide_modules.bits(), plan.expert_capacity,
      name_of(plan.scaling), plan.overlap_tensor_gradients, plan.channels_last, plan.fp8_attention,
      plan.fused_experts, fused_elementwise_of(plan).bits(), name_of(tensor_method_of(plan)),
      shares_out_tensors(plan), plan.zero_stage >= 2, plan.cuda_graph_scope.bits());
}

}  // namespace armilla
