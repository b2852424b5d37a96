#include "lower/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lower/pipeline_schedule.h"
#include "lower/plan/idle_overlap.h"
#include "lower/shard/shard_recompute.h"
#include "lower/shard/shard_work.h"
#include "lower/shard_layout.h"

namespace armilla {
namespace {

bool has_convolutions(const Plan& plan, const Model& model) {
  return std::ranges::any_of(model.operators,
                             [&](const Operator& op) { return wants_channels_last(op, plan.precision); });
}

}  // namespace

std::vector<std::string> settings_without_effect(const PlanRequest& request, const Plan& plan,
                                                 const Model& model) {
  const ModelFacts& facts = model.facts;
  std::vector<std::string> notes;
  // Only what the user wrote is worth a note: `places` has no defaults.
  const auto note = [&](bool idle, std::string_view key, std::string_view reason) {
    const auto place = request.places.find(key);
    if (idle && place != request.places.end())
      notes.push_back(fmt::format("{} has no effect: {}", place->second, reason));
  };
  constexpr std::string_view kTensor = "plan.tensor is 1", kPipeline = "plan.pipeline is 1";
  note(plan.tensor == 1 && plan.sequence_parallel, "sequence_parallel", kTensor);
  note(plan.tensor == 1 && plan.overlap_tensor, "overlap_tensor", kTensor);
  if (request.places.contains("overlap_tensor") && overlaps_nothing(plan, model))
    note(true, "overlap_tensor", why_nothing_overlaps(plan, model));
  note(plan.tensor == 1 && plan.overlap_tensor_gradients, "overlap_tensor_gradients", kTensor);
  note(plan.tensor > 1 && plan.overlap_tensor && plan.overlap_tensor_gradients, "overlap_tensor_gradients",
       "plan.overlap_tensor overlaps the backward pass, too");
  note(plan.context == 1, "context_method", "plan.context is 1");
  const bool schedules = request.places.contains("schedule");
  note(schedules && plan.pipeline == 1 && orders_like_1f1b(plan), "schedule", kPipeline);
  note(plan.pipeline * plan.virtual_stages == 1, "stage_blocks", kPipeline);
  note(plan.pipeline == 1, "overlap_pipeline", kPipeline);
  const bool by_layer = plan.tensor_method == TensorMethod::modules;
  note(plan.tensor == 1 || (!plan.sequence_parallel && !by_layer), "tensor_method",
       by_layer ? kTensor : "plan.sequence_parallel does not share out tokens");
  note(plan.scatter_gather && plan.pipeline == 1, "scatter_gather", kPipeline);
  note(plan.scatter_gather && plan.pipeline > 1 && plan.tensor == 1, "scatter_gather", kTensor);
  note(plan.scatter_gather && plan.pipeline > 1 && plan.tensor > 1 && plan.sequence_parallel,
       "scatter_gather", "with plan.sequence_parallel every rank has a part of its own");
  const auto any = [&](auto&& is) { return std::ranges::any_of(model.operators, is); };
  const bool is_core = request.plan.recompute_modules == Parts{Part::core_attn};
  note(request.plan.recompute == Recompute::selective && is_core && facts.heads == 0, "recompute",
       "the model has no attention that could be computed again");
  const bool is_narrow = plan.precision == DType::fp8 || plan.precision == DType::fp4;
  constexpr std::string_view kWide = "plan.precision has 16 bits or more";
  note(plan.precision != DType::fp8, "scaling", "plan.precision is not fp8");
  constexpr std::string_view kNoLayers = "the model has no such layers";
  const bool has_layers = std::ranges::any_of(model.blocks, [](const Block& block) {
    return block.kind == BlockKind::encoder || block.kind == BlockKind::decoder;
  });
  for (const std::string_view key : {"wide_first_layers", "wide_last_layers"}) {
    note(!is_narrow, key, kWide);
    note(is_narrow && !has_layers, key, kNoLayers);
  }
  note(!is_narrow, "wide_modules", kWide);
  note(!is_narrow, "fp8_attention", kWide);
  note(is_narrow && !any([](const Operator& op) { return op.core_attention; }), "fp8_attention",
       "the model has no attention");
  note(is_narrow && !plan.wide_modules.empty() && !any([&](const Operator& op) {
         return op.parts.meets(plan.wide_modules) && op.weight_is_operand;
       }),
       "wide_modules", "the model has none of these parts");
  note(request.plan.recompute == Recompute::selective && !is_core &&
           !any([&](const Operator& op) { return times_repeated(op, request.plan.recompute_modules) > 0; }),
       "recompute_modules", "the model has none of these parts");
  const bool can_stop =
      request.plan.recompute != Recompute::none && request.plan.recompute != Recompute::operators;
  note(!can_stop, "recompute_early_stop", "plan.recompute is none or operators");
  const bool has_kernels = any([](const Operator& op) { return op.forward.kernel == Kernel::loss; });
  const bool over_logits = has_kernels || any([](const Operator& op) {
                             return op.type.find("SoftmaxCrossEntropy") != std::string::npos;
                           });
  constexpr std::string_view kNoLogits = "the model has no loss over logits";
  const bool narrow_loss = plan.framework == Framework::megatron && plan.loss == LossKernel::narrow;
  note(narrow_loss, "loss", "plan.framework is megatron, whose loss is in fp32");
  note(plan.loss != LossKernel::automatic && !narrow_loss && !has_kernels, "loss",
       over_logits ? "the loss is an operator of a graph, which has one kernel" : kNoLogits);
  note(!any([&](const Operator& op) { return elementwise_part(model, op).has_value(); }), "fused_elementwise",
       "the model has none of these parts");
  note(!plan.channels_last && !has_convolutions(plan, model), "channels_last",
       "the model has no convolutions that tensor cores compute");
  note(!plan.loss_parallel && !over_logits, "loss_parallel", kNoLogits);
  note(!plan.loss_parallel && over_logits && plan.tensor == 1, "loss_parallel", kTensor);
  note(!plan.embedding_parallel && plan.tensor == 1, "embedding_parallel", kTensor);
  note(!plan.embedding_parallel && plan.tensor > 1 && !any(is_table), "embedding_parallel",
       "the model has no table of tokens");
  note(!plan.head_parallel && plan.tensor == 1, "head_parallel", kTensor);
  note(!plan.head_parallel && plan.tensor > 1 &&
           !any([](const Operator& op) { return op.parts.has(Part::logits); }),
       "head_parallel", "the model has no output matrix of tokens");
  note(plan.check_collectives && plan.ranks == 1, "check_collectives", "a single rank exchanges nothing");
  constexpr std::string_view kOneProgram = "plan.host compiled issues a step as one";
  const bool is_one = issue_time_of(plan) == Time(0);
  note(plan.check_collectives && plan.ranks > 1 && is_one, "check_collectives", kOneProgram);
  const bool captures = !plan.cuda_graph_scope.empty();
  note(is_one && captures, "cuda_graph_scope", kOneProgram);
  note(plan.step_overhead > Time(0) && !schedule_of(plan).flushes, "step_overhead",
       fmt::format("steps overlap under plan.schedule {}", plan.schedule));
  note(!is_one && captures && !any([&](const Operator& op) { return op.parts.meets(plan.cuda_graph_scope); }),
       "cuda_graph_scope", "the model has none of these parts");
  const bool no_experts = facts.experts == 0;
  const std::string_view no_spread = no_experts ? "the model has no experts" : "plan.expert is 1";
  note(no_experts || plan.expert == 1, "expert_load", no_spread);
  note(no_experts, "expert_capacity", no_spread);
  note(no_experts, "fused_experts", no_spread);
  note(plan.fused_experts && !no_experts && !can_fuse_experts(model), "fused_experts",
       "experts have products of other than multiples of 256, biases or no gate");
  if (no_experts || plan.expert == 1) {
    note(true, "expert_skew", no_spread);
    note(true, "seed", no_spread);
    note(no_experts || !dispatches_on_rank(plan.expert_dispatch), "expert_dispatch", no_spread);
    note(true, "dispatch_type", no_spread);
  } else {
    note(plan.expert_load == ExpertLoad::uniform, "expert_skew", "plan.expert_load is uniform");
    note(plan.expert_load != ExpertLoad::uniform && plan.expert_skew == 0, "expert_load",
         "plan.expert_skew is 0, which makes all experts alike");
    note(plan.expert_load != ExpertLoad::random, "seed", "plan.expert_load is not random");
  }
  // Data and context ranks hold the same weights; experts have replicas of their own.
  const bool alone = plan.data() * plan.context == 1 && plan.expert_data() == 1;
  note(alone && request.plan.zero_stage > 0 && plan.zero_stage == 0, "zero",
       "there are no data-parallel ranks to share states with");
  if (const auto place = request.places.find("zero");
      alone && plan.zero_stage > 0 && place != request.places.end())
    notes.push_back(
        fmt::format("{} shares nothing out, since there are no data-parallel ranks; how FSDP updates "
                    "weights and holds gradients is counted all the same",
                    place->second));
  note(request.plan.zero_stage == 0, "zero_partition", "plan.zero is 0");
  note(alone && request.plan.zero_stage > 0, "zero_partition",
       "there are no data-parallel ranks to share out for");
  note(request.plan.zero_stage == 0, "reduce_scatter", "gradients are scattered under ZeRO only");
  note(alone && request.plan.zero_stage > 0, "reduce_scatter",
       "there are no data-parallel ranks to exchange gradients with");
  note(shares_out_tensors(plan), "reduce_scatter", "gradients of whole tensors are all-reduced");
  note(plan.zero_stage == 0, "parameter_type", "weights are gathered under ZeRO only");
  note(plan.zero_stage == 3, "bucket", "ZeRO-3 exchanges gradients block by block");
  note(plan.zero_stage == 3, "first_bucket", "ZeRO-3 exchanges gradients block by block");
  note(plan.zero_stage < 3, "prefetch", "weights are sharded by ZeRO-3 only");
  note(plan.zero_stage < 3, "reshard", "weights are sharded by ZeRO-3 only");
  note(plan.no_sync && plan.zero_stage < 2, "no_sync", "gradients are sharded by ZeRO-2 and ZeRO-3 only");
  note(plan.no_sync && plan.zero_stage >= 2 && plan.micro_batches == 1, "no_sync",
       "there is one micro-batch");
  note(plan.zero_stage == 0 || plan.zero_stage == 3, "overlap_parameters",
       "parameters are gathered after the step under ZeRO-1 and ZeRO-2 only");
  return notes;
}

std::string convolution_note(const PlanRequest& request, const Plan& plan, const Model& model) {
  if (request.places.contains("channels_last") || !has_convolutions(plan, model)) return {};
  return "images are counted channels last (NHWC); where a framework keeps its default (NCHW), cuDNN "
         "transposes "
         "what convolutions read and write: plan.channels_last: false";
}

std::string batch_note(const PlanRequest& request, const Plan& plan, bool described) {
  const bool batch = request.batch || request.global_batch;
  const bool parts = request.micro_batch || request.micro_batches;
  // Nothing was left to choose.
  if ((batch && parts) || (request.micro_batch && request.micro_batches)) return {};
  const std::string pieces =
      plan.micro_batches == 1 ? fmt::format("1 micro-batch of {}", plan.micro_batch())
                              : fmt::format("{} micro-batches of {}", plan.micro_batches, plan.micro_batch());
  if (!batch) {
    const std::string reason =
        plan.pipeline > 1 && !request.micro_batches && plan.micro_batches % plan.pipeline == 0
            ? fmt::format(", {} per pipeline stage", plan.micro_batches / plan.pipeline)
            : "";
    return fmt::format("plan.batch was not given: {} {} per replica and iteration {} assumed, as {}{}",
                       plan.batch, plan.batch == 1 ? "sample" : "samples", plan.batch == 1 ? "is" : "are",
                       pieces, reason);
  }
  if (plan.pipeline > 1) {
    return fmt::format(
        "a replica's batch of {} becomes {}, as many as divide it up to 4 per pipeline stage; "
        "plan.micro_batch or plan.micro_batches chooses another number",
        plan.batch, pieces);
  }
  if (!described || plan.batch == 1) return {};
  return fmt::format(
      "a replica's batch of {} goes through as {}; plan.micro_batch or plan.micro_batches cuts it "
      "into more",
      plan.batch, pieces);
}

}  // namespace armilla
