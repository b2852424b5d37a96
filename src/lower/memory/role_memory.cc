#include "lower/memory/role_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/sorted.h"
#include "lower/data/tensor_owners.h"
#include "lower/jobs/job_loops.h"
#include "lower/memory.h"
#include "lower/shard/shard_memory.h"
#include "lower/shard/weight_types.h"
#include "lower/shard_share.h"

namespace armilla {
namespace {

constexpr const char* kWhere = "plan";
// PyTorch gives each thread that issues products a workspace of cuBLAS's, the main one and autograd's.
// Transformer Engine has one of its own for all products: from Hopper on, the first with 8 bits, 32 MiB,
// before 4 (get_cublas_workspace_size_bytes); four more for groups of products, which run on as many streams,
// and two more for those that overlap with tensor communication (initialize_ub).
std::int64_t workspaces(const RoleParts& parts, const Plan& plan, const Device& device) {
  constexpr std::int64_t kMiB = 1 << 20, kThreads = 2, kStreams = 4, kOverlapping = 2;
  // What XLA or a program that is none of a framework's needs is not known.
  const bool is_known = plan.framework == Framework::pytorch || plan.host != Host::compiled;
  if (device.product_workspace == Bytes(0) || !is_known) return 0;
  std::int64_t sum = checked_multiply(device.product_workspace.value, kThreads, device.name);
  if (plan.framework == Framework::pytorch) return sum;
  const std::int64_t own = (device.matrix_rate.contains(DType::fp8) ? 32 : 4) * kMiB;
  const bool overlaps = plan.tensor > 1 && plan.overlap_tensor;
  sum += own * (1 + (parts.has_experts ? kStreams : 0) + (overlaps ? kOverlapping : 0));
  for (const Bytes placeholder : parts.placeholders) sum = checked_add(sum, placeholder.value, kWhere);
  return sum;
}

std::int64_t add(std::int64_t a, std::int64_t b) {
  return checked_add(a, b, kWhere);
}

// `gradients`: bytes that the backward pass of each block makes.
ChunkActivations activations_of(const ShardedModel& model, const RoleChunk& chunk, std::int32_t stages,
                                std::span<const std::int64_t> gradients) {
  ChunkActivations result;
  for (std::size_t b = 0; b < chunk.shapes.size(); ++b) {
    const BlockShape& shape = model.shapes[chunk.shapes[b]];
    // All blocks of a chunk, in order: the walk needs what is saved up to each of them.
    result.add(shape.saved.value, shape.working.value, gradients[b]);
  }
  if (chunk.shapes.empty()) return result;
  // The first and the last stage have no message on their outer side.
  if (chunk.stage > 0) result.boundary = model.shapes[chunk.shapes.front()].input.value;
  if (chunk.stage < stages - 1)
    result.boundary = add(result.boundary, model.shapes[chunk.shapes.back()].output.value);
  return result;
}

// Over how many ranks a bucket's optimizer state is divided, and from which stage on what else.
std::int64_t shards(GroupAxis axis, const Plan& plan) {
  if (plan.zero_stage == 0) return 1;
  if (axis == GroupAxis::expert_data) return plan.expert_data();
  if (plan.hybrid_shard > 0) return plan.hybrid_shard;
  return plan.context * plan.data();
}
std::int64_t shards(const WeightBucket& bucket, const Plan& plan) {
  return shards(bucket.axis, plan);
}

// What a rank keeps of a bucket's gradients. ZeRO-2 and 3 shard them (Rajbhandari et al. 2020, figure 1).
std::int64_t gradients_of(const WeightBucket& bucket, const Plan& plan) {
  const bool whole = plan.zero_stage < 2 || (plan.no_sync && plan.micro_batches > 1);
  return ceil_divide(bucket.gradients.value, whole ? 1 : shards(bucket, plan));
}

// FSDP's shards are of the master weights: the narrow copy is there while it is gathered only.
bool shards_masters(const Plan& plan) {
  return has_masters(plan) && plan.zero_stage == 3 && plan.framework == Framework::pytorch;
}

// Megatron-Core accumulates in arrays of its own, PyTorch in tensors that the first backward pass makes and
// zero_grad(set_to_none=True) gives back. These have the type of the parameters; a wider one takes an array
// of its own there, too (nanotron's FP32GradientAccumulator).
bool keeps_gradients(const Plan& plan) {
  const int parameters = shards_masters(plan) ? 32 : bits_of(weight_type(plan));
  return plan.framework != Framework::pytorch || bits_of(gradient_type(plan)) > parameters;
}

void add_states(const RoleParts& parts, const Plan& plan, RoleMemory& memory) {
  constexpr std::int64_t kBitsPerByte = 8;
  const bool gathers_narrow = shards_masters(plan);
  const std::int64_t state = bits_of(plan.state_dtype) / kBitsPerByte * state_words(plan.optimizer) +
                             (has_masters(plan) ? size_of(1, DType::fp32, kWhere).value : 0);
  const std::int64_t versions = schedule_of(plan).weight_versions;
  std::int64_t weights = 0, optimizer = 0;
  for (const WeightBucket& bucket : parts.weights.buckets) {
    const std::int64_t ways = shards(bucket, plan);
    // ZeRO-1 shards the optimizer's states, ZeRO-3 weights, too (Rajbhandari et al. 2020, figure 1).
    if (!gathers_narrow || ways == 1)
      weights = add(weights, ceil_divide(bucket.weights.value, plan.zero_stage == 3 ? ways : 1));
    if (!shares_out_tensors(plan))
      optimizer = add(optimizer, checked_multiply(ceil_divide(bucket.elements, ways), state, kWhere));
  }
  if (shares_out_tensors(plan)) {
    // The rank that needs most: it may have the most loaded part of both.
    for (const GroupAxis axis : {GroupAxis::data, GroupAxis::expert_data}) {
      const std::int64_t owned =
          most_owned(tensor_owners(parts.weights.buckets, axis, shards(axis, plan), plan));
      optimizer = add(optimizer, checked_multiply(owned, state, kWhere));
    }
  }
  memory.use.weights = Bytes(add(checked_multiply(weights, versions, kWhere), parts.buffers));
  (plan.offload_optimizer ? memory.host : memory.use.optimizer) = Bytes(optimizer);
}

// Of buckets that are divided or whose tensors are copied into an array: one is filled while the other is
// exchanged.
std::int64_t two_largest(const RoleParts& parts, const Plan& plan) {
  std::int64_t first = 0, second = 0;
  for (const WeightBucket& bucket : parts.weights.buckets) {
    if (shards(bucket, plan) == 1) continue;
    second = std::max(second, std::min(first, bucket.gradients.value));
    first = std::max(first, bucket.gradients.value);
  }
  return add(first, second);
}

std::int64_t bucket_buffers(const RoleParts& parts, const Plan& plan) {
  std::int64_t all = 0, narrow = 0;
  for (const WeightBucket& bucket : parts.weights.buckets) {
    all = add(all, bucket.gradients.value);
    narrow = add(narrow, bucket.updated_weights().value);
  }
  // DDP's buckets are copies of the gradients as autograd makes them (gradient_as_bucket_view = false), there
  // only with more than one replica. Accumulation in a wider type has its own array beside them.
  if (plan.zero_stage < 2) {
    if (plan.data() == 1) return 0;
    if (parts.copies_gradients) return all;
    // Shards of the optimizer that work on arrays in a wider type go without DDP: those arrays are exchanged
    // where they are (nanotron's make_ddp).
    if (plan.framework != Framework::pytorch && shares_out_tensors(plan)) return two_largest(parts, plan);
    if (plan.framework != Framework::pytorch || (plan.zero_stage == 1 && keeps_gradients(plan))) return 0;
    return narrow;
  }
  // Whole gradients are there anyway, and exchanged when the activations are gone.
  if (plan.no_sync && plan.micro_batches > 1) return 0;
  return two_largest(parts, plan);
}

// Under ZeRO-3, in bytes.
struct GatheredWeights {
  std::int64_t all = 0;
  std::vector<std::int64_t> by_pass;  // of each chunk, where it needs most
};

GatheredWeights gathered_weights(const RoleParts& parts, const Plan& plan) {
  GatheredWeights result;
  result.by_pass.resize(parts.chunks.size());
  if (plan.zero_stage < 3) return result;
  std::vector<std::vector<std::int64_t>> gathered;
  for (const RoleChunk& chunk : parts.chunks) gathered.emplace_back(chunk.shapes.size());
  for (const WeightBucket& bucket : parts.weights.buckets) {
    if (shards(bucket, plan) == 1) continue;
    result.all = add(result.all, bucket.parameters.value);
    // Under ZeRO-3 a bucket is of one block.
    const BlockPlace& place = bucket.blocks.front();
    gathered[static_cast<std::size_t>(place.chunk)][static_cast<std::size_t>(place.block)] +=
        bucket.parameters.value;
  }
  for (std::size_t c = 0; c < gathered.size(); ++c) {
    const std::vector<std::int64_t>& blocks = gathered[c];
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      // The block at work and, prefetched, the next one.
      const std::int64_t next = plan.prefetch && b + 1 < blocks.size() ? blocks[b + 1] : 0;
      result.by_pass[c] = std::max(result.by_pass[c], add(blocks[b], next));
    }
  }
  return result;
}

// Passes beside each other gather each for itself; weight gradients alone need no weights.
std::int64_t held_beside(const GatheredWeights& gathered, std::span<const PipelineSlot> group) {
  std::int64_t sum = 0;
  for (const PipelineSlot& slot : group) {
    if (slot.action != PipelineAction::weight_gradient)
      sum = add(sum, gathered.by_pass[static_cast<std::size_t>(slot.chunk)]);
  }
  return sum;
}

// Of the messages between stages; chunks of one rank pass activations on where they are.
std::int64_t boundary_buffers(const RoleParts& parts, const Plan& plan) {
  if (plan.pipeline == 1) return 0;
  std::int64_t most = 0;
  for (const ChunkActivations& chunk : parts.activations) most = std::max(most, chunk.boundary);
  return checked_multiply(most, 2, kWhere);  // activations and their gradients
}

}  // namespace

namespace {

// Whole tensors that tensor parallelism exchanges in a forward pass, in bytes.
struct Exchanged {
  std::int64_t summed = 0;    // all of them
  std::int64_t gathered = 0;  // the largest
};

// `gathers_logits`: what the block gathers last is no product's input but what it returns.
Exchanged exchanged_by(const BlockShape& shape, bool gathers_logits) {
  Exchanged result;
  std::int64_t last_gathered = 0;
  for (const PassStep& step : shape.forward.steps) {
    if (step.kind != NodeKind::collective || step.axis != GroupAxis::tensor) continue;
    if (step.collective == CollectiveKind::all_gather) {
      result.gathered = std::max(result.gathered, last_gathered);
      last_gathered = step.bytes.value;
    } else {
      result.summed = add(result.summed, step.bytes.value);
    }
  }
  if (gathers_logits) {
    result.summed = add(result.summed, last_gathered);
  } else {
    result.gathered = std::max(result.gathered, last_gathered);
  }
  return result;
}

// Of both passes of a block that computes products; 0 for others.
double flops_of(const ShardedModel& model, const BlockShape& shape) {
  double sum = 0, products = 0;
  for (const Pass* pass : {&shape.forward, &shape.backward}) {
    for (const PassStep& step : pass->steps) {
      if (step.kind != NodeKind::compute) continue;
      const Work& work = model.works[step.work];
      sum += static_cast<double>(work.flops.value);
      if (work.kind == WorkKind::matrix) products += static_cast<double>(work.flops.value);
    }
  }
  return products > 0 ? sum : 0;
}

// Whether a layer's passes take the device of a pipeline longer than the host. In the steps that nanotron's
// benchmarks measured they never take less than some 4 ms and 2 ms for each rank of the tensor group, however
// few tokens there are, and where they take more they reach 20 to 36 % of the device's peak, collectives
// included; of these 30 divides best the peaks that have something freed late from those that have not.
bool device_is_behind(const RoleParts& parts, const Plan& plan, const Device& device) {
  constexpr double kHostSeconds = 4e-3, kHostSecondsPerRank = 2e-3, kAttained = 0.3;
  const double rate = matrix_rate(device, plan.precision).value * kAttained;
  return rate > 0 &&
         parts.layer_flops / rate > kHostSeconds + kHostSecondsPerRank * static_cast<double>(plan.tensor);
}

// The largest tensor that a product of the forward pass makes; `wide`: as the loss reads it.
std::int64_t largest_output(const ShardedModel& model, const BlockShape& shape, bool wide) {
  std::int64_t most = 0;
  for (const PassStep& step : shape.forward.steps) {
    if (step.kind != NodeKind::compute) continue;
    const Work& work = model.works[step.work];
    for (const Gemm& gemm : work.gemms)
      most = std::max(
          most,
          size_of(checked_multiply(gemm.m, gemm.n, kWhere), wide ? DType::fp32 : work.dtype, kWhere).value);
  }
  return most;
}

// Whether the loss reads logits in fp32.
bool is_wide(const Plan& plan) {
  const LossKernel loss = loss_kernel_of(plan);
  return loss == LossKernel::wide || loss == LossKernel::in_place;
}

// How many blocks' tensors CUDA's queue holds back, of passes that follow each other: the last goes forward,
// those before go both ways. 1,024 launches wait, of which a layer's passes make some 32 and 48 (counted in
// nanotron's LlamaDecoderLayer).
std::int64_t blocks_in_queue(std::int64_t last, std::int64_t before) {
  constexpr std::int64_t kQueue = 1'024, kForward = 32, kBackward = 48;
  const std::int64_t blocks = std::min(last, kQueue / kForward);
  return blocks + std::min(before, (kQueue - blocks * kForward) / kBackward);
}

// What collectives were given is free for others when the device has passed them, not when the host has
// (Tensor.record_stream). The host is ahead by what CUDA queues. Compiled programs place what they exchange
// in memory themselves.
std::int64_t freed_late(const RoleParts& parts, const Plan& plan, const Device& device,
                        std::int64_t most_in_flight) {
  if (!runs_operator_by_operator(plan) || parts.summing_blocks == 0) return 0;
  // Hosts slower than their devices free nothing late: those of pipelines over more tensor ranks than these,
  // and of jobs on more devices than these, unless their groups of tensor ranks are as large. There a
  // micro-batch takes as long whatever its size, in the steps that nanotron's benchmarks measured.
  constexpr std::int64_t kMostTensorRanks = 16, kMostRanks = 256;
  const bool wide = plan.tensor > kMostTensorRanks;
  if (wide ? plan.pipeline > 1 : plan.ranks > kMostRanks) return 0;
  const std::int64_t of_pass = parts.summing_blocks;
  std::int64_t blocks = 0;
  if (plan.pipeline == 1) {
    // Before the fullest moment, the end of a forward pass, lies the backward pass of the micro-batch before,
    // which sums gradients of inputs as the forward pass does outputs. Steps begin with the device idle.
    blocks = blocks_in_queue(of_pass, plan.micro_batches > 1 ? of_pass : 0);
  } else {
    // Where the host is the slower one it is ahead in the passes alone that fill the pipeline, beyond two:
    // messages that it receives make it wait for the device.
    const std::int64_t passes =
        most_in_flight -
        (device_is_behind(parts, plan, device) ? 0 : std::min<std::int64_t>(2, most_in_flight));
    if (passes > 0) blocks = blocks_in_queue(of_pass, checked_multiply(passes - 1, of_pass, kWhere));
  }
  return checked_multiply(blocks, parts.summed, kWhere) / of_pass;
}

}  // namespace

namespace {

// Of each chunk, those that a backward pass makes; notes the others.
std::vector<std::vector<std::int64_t>> gradients_by_block(RoleParts& parts, const Plan& plan) {
  std::vector<std::vector<std::int64_t>> result;
  for (const RoleChunk& chunk : parts.chunks) result.emplace_back(chunk.shapes.size());
  for (const WeightBucket& bucket : parts.weights.buckets) {
    const std::int64_t bytes = gradients_of(bucket, plan);
    // A weight that several chunks use has a gradient from the first of their passes on.
    const bool kept = keeps_gradients(plan) || !bucket.others.empty();
    if (kept) parts.kept_gradients = add(parts.kept_gradients, bytes);
    if (kept && parts.made == GradientsMade::once) continue;
    // All of a bucket with its last block in the model, whose backward pass is the first.
    const auto last = std::ranges::max_element(bucket.blocks, {}, &BlockPlace::block);
    std::int64_t& made =
        result[static_cast<std::size_t>(bucket.chunk)][static_cast<std::size_t>(last->block)];
    made = add(made, kept ? bucket.updated_weights().value : bytes);
  }
  return result;
}

}  // namespace

RoleParts role_parts(const ShardedModel& model, const StageCut& stages, const PipelineOrder& order,
                     std::size_t pipeline_rank, const Plan& plan) {
  RoleParts parts;
  parts.copies_gradients = model.distributed_data_parallel;
  for (const PipelineChunk& held : order.chunks[pipeline_rank]) {
    const RoleChunk& chunk = parts.chunks.emplace_back(role_chunk(model, plan, stages, held));
    std::int64_t summing = 0, summed = 0;
    for (const std::uint32_t& shape : chunk.shapes) {
      const bool last = chunk.stage == order.stages - 1 && &shape == &chunk.shapes.back();
      const Exchanged exchanged = exchanged_by(model.shapes[shape], last && !plan.loss_parallel);
      summing += exchanged.summed > 0 ? 1 : 0;
      const double flops = exchanged.summed > 0 ? flops_of(model, model.shapes[shape]) : 0;
      if (flops > 0 && (parts.layer_flops == 0 || flops < parts.layer_flops)) parts.layer_flops = flops;
      summed = add(summed, exchanged.summed);
      parts.gathered = std::max(parts.gathered, exchanged.gathered);
      parts.largest_output =
          std::max(parts.largest_output, largest_output(model, model.shapes[shape], last && is_wide(plan)));
      parts.buffers = add(parts.buffers, model.shapes[shape].buffers.value);
      std::ranges::copy(model.shapes[shape].placeholders, std::back_inserter(parts.placeholders));
      for (const WeightGroup& group : model.shapes[shape].weights)
        parts.has_experts = parts.has_experts || group.axis == GroupAxis::expert_data;
    }
    if (summed > parts.summed) {
      parts.summed = summed;
      parts.summing_blocks = summing;
    }
  }
  std::vector<std::int32_t> in_turn(parts.chunks.size());
  std::iota(in_turn.begin(), in_turn.end(), 0);
  sort_unique(parts.placeholders);
  // What a rank keeps depends neither on the order of its chunks nor on who else holds a tied weight.
  parts.weights = role_weights(model, parts.chunks, in_turn, {}, plan);
  // PyTorch's own gradients, of the weights' type, are added to the arrays when the pass is over (nanotron's
  // FP32GradientAccumulator.backward); FSDP adds those of each block when it is done.
  if (keeps_gradients(plan) && plan.framework == Framework::pytorch && plan.zero_stage < 2)
    parts.made = GradientsMade::every_pass;
  const std::vector<std::vector<std::int64_t>> gradients = gradients_by_block(parts, plan);
  for (std::size_t c = 0; c < parts.chunks.size(); ++c)
    parts.activations.push_back(activations_of(model, parts.chunks[c], order.stages, gradients[c]));
  return parts;
}

namespace {

// Under ZeRO-1 replicas exchange their shards of the weights when activations are gone: in one of the rank's
// own and one for each replica (nanotron's all_gather_coalesced), and for the whole in one array more, in
// which PyTorch gathers (newLikeFlat of its ProcessGroupNCCL). Those that are larger than the blocks that
// activations leave in the allocator's cache take memory of their own, which the next step has for the
// optimizer's states: they came with the first step and took the cache's blocks.
std::int64_t exchange_arrays(const RoleParts& parts, const Plan& plan) {
  if (!runs_operator_by_operator(plan) || plan.zero_stage != 1 || shares_out_tensors(plan)) return 0;
  std::int64_t whole = 0, shard = 0, elements = 0;
  for (const WeightBucket& bucket : parts.weights.buckets) {
    const std::int64_t ways = shards(bucket, plan);
    if (ways == 1) continue;
    shard = add(shard, ceil_divide(bucket.weights.value, ways));
    whole = add(whole, bucket.weights.value);
    elements = add(elements, ceil_divide(bucket.elements, ways));
  }
  std::int64_t arrays = 0;
  if (whole > parts.largest_output) arrays = add(arrays, whole);
  if (shard > parts.largest_output) arrays = add(arrays, add(whole, shard));
  const Bytes states =
      size_of(checked_multiply(elements, state_words(plan.optimizer), kWhere), plan.state_dtype, kWhere);
  return std::max<std::int64_t>(0, arrays - states.value);
}

// For tensors that are freed late beside others of so many bytes: where memory runs short, PyTorch's
// allocator waits for the device and gets them back (synchronize_and_free_events in
// CUDACachingAllocator.cpp).
std::int64_t room_for(std::int64_t others, const MemoryUse& use) {
  if (use.capacity == Bytes(0)) return std::numeric_limits<std::int64_t>::max();
  const double lost = static_cast<double>(others) * kFragmentation;
  return std::max<std::int64_t>(0, (use.capacity - use.framework()).value - others - std::llround(lost));
}

// Finds slots that are those of the round before again. What a walk holds depends on the actions and chunks
// of slots alone: where a round of slots has left as much as it found, rounds like it need no look.
class RoundSkipper {
 public:
  RoundSkipper(const std::vector<PipelineSlot>& slots, std::size_t length)
      : slots_(slots), length_(length), left_(length) {}

  // How many slots from `at` on, whole rounds, are to be passed over by a walk that has come so far;
  // asked in order.
  std::size_t skip(std::size_t at, const ActivationWalk& walk) {
    if (length_ == 0) return 0;
    Left& before = left_[at % length_];
    const Left now = {at + length_, {walk.live(), walk.in_flight(), walk.held().gradients, walk.waiting()}};
    const bool is_repeated = before.again_at == at && before.state == now.state;
    before = now;
    if (!is_repeated || at < next_) return 0;
    std::size_t end = at;
    while (end < slots_.size() && are_alike(slots_[end], slots_[end - length_])) ++end;
    next_ = end + 1;
    std::size_t rounds = (end - at) / length_;
    const std::size_t behind = at + rounds * length_;
    // What stands behind a round tells what its last slot needs: with offload, what comes for the next.
    if (rounds > 0 && behind < slots_.size() &&
        (slots_[behind].beside_previous || !are_alike(slots_[behind], slots_[behind - length_])))
      --rounds;
    return rounds * length_;
  }

 private:
  // What the latest slot at a place of its round found, and where the next round has that place.
  struct Left {
    std::size_t again_at = std::numeric_limits<std::size_t>::max();
    std::array<std::int64_t, 4> state = {};
  };

  static bool are_alike(const PipelineSlot& a, const PipelineSlot& b) {
    return a.action == b.action && a.chunk == b.chunk && a.beside_previous == b.beside_previous;
  }

  const std::vector<PipelineSlot>& slots_;
  std::size_t length_, next_ = 0;  // no other rounds end before `next_`
  std::vector<Left> left_;         // by place in a round
};

}  // namespace

RoleMemory role_memory(const RoleParts& parts, const std::vector<PipelineSlot>& slots, const Plan& plan,
                       const Device& device) {
  RoleMemory memory;
  add_states(parts, plan, memory);
  ActivationWalk walk(parts.activations, plan.offload_activations, parts.kept_gradients, parts.made);
  HeldByPasses most;
  const GatheredWeights gathered = gathered_weights(parts, plan);
  std::int64_t most_gathered = plan.reshard ? 0 : gathered.all;
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  const std::int64_t round = parts.chunks.empty() ? 0 : round_of(plan) / schedule.chains;
  RoundSkipper rounds(slots, static_cast<std::size_t>(schedule.passes * round) * parts.chunks.size());
  for (std::size_t i = 0; i < slots.size();) {
    if (const std::size_t repeated = rounds.skip(i, walk); repeated > 0) {
      walk.pass_over(std::span(slots).subspan(i, repeated));
      i += repeated;
      continue;
    }
    // Slots beside each other hold their activations at once. The fullest moment counts, by activations and
    // temporaries together.
    const std::span<const PipelineSlot> group = slots_beside(slots, i);
    const HeldByPasses held = walk.enter(group, slot_at(slots, i + group.size()));
    if (held.sum() > most.sum()) most = held;
    if (plan.reshard) most_gathered = std::max(most_gathered, held_beside(gathered, group));
    walk.leave(group);
    i += group.size();
  }
  // While the optimizer works there is nothing but all gradients.
  if (walk.held().sum() > most.sum()) most = walk.held();
  memory.most_in_flight = walk.most_in_flight();
  MemoryUse& use = memory.use;
  use.activations = Bytes(most.activations);
  use.gradients = Bytes(most.gradients);
  use.temporary = Bytes(most.temporary);
  if (plan.offload_activations) memory.host = saturating_add(memory.host, Bytes(walk.most_live()));
  use.buffer(MemoryBuffer::gradient_buckets) = Bytes(bucket_buffers(parts, plan));
  use.buffer(MemoryBuffer::gathered_weights) = Bytes(most_gathered);
  use.buffer(MemoryBuffer::stage_messages) = Bytes(boundary_buffers(parts, plan));
  // Autograd functions that gather a product's input again in the backward pass keep no whole input: it lies
  // in an array that all products share (nanotron's MemoryBuffer), one for inputs and one for gradients.
  if (runs_operator_by_operator(plan) && tensor_method_of(plan) == TensorMethod::megatron)
    use.buffer(MemoryBuffer::gathered_inputs) = Bytes(checked_multiply(parts.gathered, 2, kWhere));
  use.buffer(MemoryBuffer::workspaces) = Bytes(workspaces(parts, plan, device));
  use.capacity = device.memory;
  set_framework_memory(plan, device, use);
  std::int64_t sum = 0;
  for (const Bytes part : {use.weights, use.gradients, use.optimizer, use.activations, use.temporary,
                           use.communication_buffers()})
    sum = add(sum, part.value);
  const std::int64_t late =
      std::min(freed_late(parts, plan, device, walk.most_in_flight()), room_for(sum, use));
  use.buffer(MemoryBuffer::freed_late) = Bytes(late);
  // A caching allocator loses a part of what is in use, kFragmentation of lower/memory.h, and what only the
  // exchange of weights uses. What is freed late is not in use.
  const auto lost = static_cast<std::int64_t>(static_cast<double>(sum) * kFragmentation);
  // Where there is no room for all, blocks in use nowhere are given back, and all of them.
  const std::int64_t arrays = exchange_arrays(parts, plan);
  const std::int64_t idle = arrays <= room_for(add(sum, late), use) ? arrays : 0;
  use.fragmentation = Bytes(add(lost, idle));
  // Only to be told of an overflow.
  add(add(sum, late), use.fragmentation.value);
  return memory;
}

}  // namespace armilla
