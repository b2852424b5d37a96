#include "lower/data/data_pass.h"

#include <algorithm>

#include "base/checked.h"
#include "ir/tensor.h"
#include "lower/data/tensor_owners.h"
#include "lower/pipeline_schedule.h"
#include "lower/shard/weight_types.h"
#include "lower/shard_layout.h"

namespace armilla {
namespace {

// Reads gradients, master weights (of weights narrower than fp32, if there are any) and states, writes
// weights and states; of what is updated.
// `part` of it, one in so many `ways`.
Work optimizer_work(const WeightBucket& bucket, std::int64_t ways, double part, const Plan& plan) {
  const auto owned = [&](std::int64_t whole) {
    return part < 1 ? static_cast<std::int64_t>(static_cast<double>(whole) * part) : whole / ways;
  };
  const std::int64_t elements = part < 1 ? owned(bucket.updated) : ceil_divide(bucket.updated, ways);
  const std::int64_t states = state_words(plan.optimizer);
  const std::int64_t weight_bytes = owned(bucket.updated_weights().value);
  const bool has_master = has_masters(plan) && bucket.weights.value < bucket.elements * 4;
  const std::int64_t state_bytes = bits_of(plan.state_dtype) / 8;
  Work work;
  work.kind = WorkKind::vector;
  work.dtype = DType::fp32;
  // Operations per element: two for the update, four for every state word (two running averages for Adam).
  work.flops = Flops(elements * (2 + 4 * states));
  // States are read and written. So is a master copy, in fp32, and the narrow weights are written from it;
  // without one weights are read and written themselves.
  work.bytes = Bytes(owned(bucket.gradients.value) + elements * 2 * state_bytes * states +
                     (has_master ? elements * 8 + weight_bytes : weight_bytes * 2));
  return work;
}

// Of NCCL, whose collectives between nodes have so many channels, each with a block of threads
// (NCCL_DEBUG=INFO says "16 coll channels" on servers of eight A100 or H100, and 24 within one, where
// exchanges are short). Counted where more than one micro-batch has exchanges beside it, and under ZeRO-3,
// which exchanges weights for each.
std::int32_t processors_of_exchanges(const Plan& plan) {
  constexpr std::int32_t kChannels = 16;
  const bool every_time = plan.zero_stage == 2 && plan.micro_batches > 1 && !plan.no_sync;
  return every_time || plan.zero_stage == 3 ? kChannels : 0;
}

// FSDP2 copies what it gathered into the weights, and gradients into what it reduces, in the type of the
// reduction (foreach_all_gather_copy_out and chunk_cat in PyTorch's distributed/fsdp).
bool copies_what_it_exchanges(const Plan& plan) {
  return plan.framework == Framework::pytorch && plan.zero_stage == 3;
}
Work copy_work(Bytes from, Bytes to, DType dtype) {
  Work work;
  work.kind = WorkKind::copy;
  work.dtype = dtype;
  work.bytes = from + to;
  return work;
}

}  // namespace

DataPass::DataPass(const ShardedModel& model, const std::vector<RoleChunk>& chunks, RoleWeights weights,
                   std::int64_t iterations, Bandwidth host_bandwidth, const Plan& plan, JobTables& tables,
                   ProgramWriter& writer)
    : chunks_(chunks),
      plan_(plan),
      tables_(tables),
      writer_(writer),
      asynchronous_(!schedule_of(plan).flushes),
      host_bandwidth_(host_bandwidth),
      tied_(std::move(weights.tied)),
      partial_(weights.partial),
      ready_(static_cast<std::size_t>(iterations)) {
  // With two versions of the weights an update is seen an iteration later.
  delay_ = schedule_of(plan).weight_versions;
  // Where slots do not wait for communication, the order of exchanges on the groups of data parallelism has
  // to be fixed by hand.
  overlaps_passes_ = schedule_of(plan).overlaps_passes;
  serial_ = asynchronous_ || overlaps_passes_;
  for (const RoleChunk& chunk : chunks) blocks_.emplace_back(chunk.shapes.size());
  for (const WeightBucket& bucket : weights.buckets) make_bucket(bucket);
  if (shares_out_tensors(plan)) share_out_tensors();
  for (Bucket& bucket : buckets_)
    bucket.optimizer = tables_.work(optimizer_work(bucket.weights, bucket.ways, bucket.owned, plan_));
  if (plan.zero_stage != 3) return;
  for (std::size_t c = 0; c < chunks.size(); ++c)
    make_gathers(model, chunks[c], static_cast<std::int32_t>(c));
}

std::uint32_t DataPass::exchange_call(CollectiveCall call) {
  call.processors = processors_of_exchanges(plan_);
  return tables_.collective(call);
}

void DataPass::make_bucket(const WeightBucket& weights) {
  Bucket bucket;
  bucket.weights = weights;
  bucket.number = static_cast<std::uint32_t>(buckets_.size());
  // Hybrid sharding: shards within a part of the replicas, whole copies across them (FSDP's HYBRID_SHARD,
  // Megatron-LM's num_distributed_optimizer_instances).
  // Experts are not part of it.
  const bool divides = plan_.zero_stage > 0 && !shares_out_tensors(plan_);
  const bool within_replicas = divides && plan_.hybrid_shard > 0 && weights.axis == GroupAxis::data;
  const GroupAxis axis = within_replicas ? GroupAxis::shard : weights.axis;
  const std::int64_t size = group_size(plan_, axis);
  // Larger goes first: where chunks are queued by priority, buckets go in the order they become final.
  const auto priority = -static_cast<std::int32_t>(bucket.number);
  if (divides) bucket.ways = size;
  if (size > 1) {
    const std::uint32_t family = tables_.family(axis);
    const bool scatters = divides && plan_.reduce_scatter;
    const CollectiveKind kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    bucket.exchange = exchange_call({kind, weights.gradients, family, 0, priority});
    if (shares_out_tensors(plan_)) {
      bucket.copy = tables_.work(copy_work(weights.gradients, weights.gradients, gradient_type(plan_)));
    }
    if (copies_what_it_exchanges(plan_)) {
      const DType type = activation_dtype(plan_);
      bucket.copy =
          tables_.work(copy_work(size_of(weights.elements, type, "gradients"), weights.gradients, type));
    }
    // ZeRO-3 has no gather here: its blocks gather their own weights before every pass.
    if (divides && plan_.zero_stage < 3) {
      bucket.gather = exchange_call({CollectiveKind::all_gather, weights.parameters, family, 0, priority});
    }
  }
  const Bytes shard = shard_of(weights.gradients, bucket.ways);
  if (within_replicas && group_size(plan_, GroupAxis::replicate) > 1) {
    const std::uint32_t family = tables_.family(GroupAxis::replicate);
    bucket.replicate = exchange_call({CollectiveKind::all_reduce, shard, family, 0, priority});
  }
  if (group_size(plan_, GroupAxis::mirror) > 1) {
    const std::uint32_t family = tables_.family(GroupAxis::mirror);
    bucket.mirror = exchange_call({CollectiveKind::all_reduce, shard, family});
  }
  // A bucket is shown with the layer that completes it.
  const BlockPlace& last = weights.blocks.back();
  const std::int32_t layer =
      chunks_[static_cast<std::size_t>(last.chunk)].layers[static_cast<std::size_t>(last.block)];
  const JobTables::BucketNames& names = tables_.bucket_names(bucket.number);
  bucket.exchange_label = {Phase::gradient_exchange, names.exchange, layer};
  bucket.copy_label = {Phase::weight_gradient, tables_.name("copy gradients"), layer};
  bucket.gather_label = {Phase::optimizer, names.gather, layer};
  bucket.optimizer_label = {Phase::optimizer, names.optimizer, -1};
  // Two countdowns: blocks of the bucket's own chunk per micro-batch (ZeRO-2 and 3), and all blocks in any
  // chunk that use its weights, for the iteration.
  bucket.left = weights.blocks.size();
  bucket.left_of_last = weights.blocks.size() + weights.others.size();
  for (const BlockPlace& place : weights.blocks) state(place).buckets.push_back(bucket.number);
  for (const BlockPlace& place : weights.others) state(place).buckets.push_back(bucket.number);
  buckets_.push_back(std::move(bucket));
}

void DataPass::share_out_tensors() {
  std::vector<WeightBucket> weights;
  for (const Bucket& bucket : buckets_) weights.push_back(bucket.weights);
  for (const GroupAxis axis : {GroupAxis::data, GroupAxis::expert_data}) {
    const GroupAxis over = axis == GroupAxis::data && plan_.hybrid_shard > 0 ? GroupAxis::shard : axis;
    const std::int64_t replicas = group_size(plan_, over);
    if (replicas <= 1) continue;
    std::vector<TensorOwner> owners = tensor_owners(weights, axis, replicas, plan_);
    std::int64_t all = 0;
    for (const TensorOwner& owner : owners) all += owner.elements;
    for (Bucket& bucket : buckets_) {
      if (bucket.weights.axis == axis && all > 0)
        bucket.owned = static_cast<double>(most_owned(owners)) / static_cast<double>(all);
    }
    for (TensorOwner& owner : owners) {
      CollectiveCall call{CollectiveKind::broadcast, owner.parameters, tables_.family(over)};
      call.takes_turns = true;
      broadcasts_.push_back({exchange_call(call), std::move(owner.buckets)});
    }
  }
}

Bytes DataPass::owned_of(const Bucket& bucket, Bytes whole) const {
  if (bucket.owned < 1)
    return Bytes(static_cast<std::int64_t>(static_cast<double>(whole.value) * bucket.owned));
  return shard_of(whole, bucket.ways);
}

void DataPass::make_gathers(const ShardedModel& model, const RoleChunk& chunk, std::int32_t number) {
  for (std::size_t b = 0; b < chunk.shapes.size(); ++b) {
    BlockState& block = state({number, static_cast<std::int32_t>(b)});
    // Dense and expert weights are sharded over different groups.
    for (const GroupAxis axis : {GroupAxis::data, GroupAxis::expert_data}) {
      Bytes bytes;
      for (const WeightGroup& group : model.shapes[chunk.shapes[b]].weights) {
        if (group.axis != axis) continue;
        const DType type = group.dtype != DType::unknown ? group.dtype : parameter_type(plan_);
        bytes += size_of(group.elements, type, "weights");
      }
      const GroupAxis over = axis == GroupAxis::data && plan_.hybrid_shard > 0 ? GroupAxis::shard : axis;
      if (bytes.value == 0 || group_size(plan_, over) <= 1) continue;
      const std::uint32_t call =
          exchange_call({CollectiveKind::all_gather, bytes, tables_.gather_family(over)});
      block.gathers.push_back({tables_.name("gather weights"), chunk.layers[b], call});
      if (!copies_what_it_exchanges(plan_)) continue;
      block.gathers.back().copy_name = tables_.name("copy weights");
      block.gathers.back().copy = tables_.work(copy_work(bytes, bytes, parameter_type(plan_)));
    }
  }
}

void DataPass::keep_in_turn(std::vector<std::uint32_t>& waits) const {
  // Called before every exchange between replicas: with passes overlapped nothing else would order them, and
  // ranks must call the collectives of a group in one order.
  if (serial_ && last_exchange_ != kNoNode &&
      std::find(waits.begin(), waits.end(), last_exchange_) == waits.end())
    waits.push_back(last_exchange_);
}

std::uint32_t DataPass::communicate(std::uint32_t collective, const NodeLabel& label,
                                    const std::vector<std::uint32_t>& waits) {
  return last_exchange_ = writer_.communicate(NodeKind::collective, label, collective, waits);
}

void DataPass::start() {
  if (!plan_.overlap_parameters) return;
  // The first iterations find the parameters as an earlier iteration would have left them: not gathered yet.
  for (std::int64_t i = 0; i < delay_ && i < static_cast<std::int64_t>(ready_.size()); ++i)
    gather_parameters(ready_[static_cast<std::size_t>(i)], true);
}

// ZeRO-1 and 2: in the order of the next forward pass one after the other, or each as its shard is updated.
void DataPass::gather_parameters(Ready& ready, bool in_forward_order) {
  if (shares_out_tensors(plan_)) return broadcast_parameters(ready);
  ready.of_bucket.assign(buckets_.size(), kNoNode);
  std::uint32_t previous = kNoNode;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    // Buckets are numbered by the backward pass, so the forward pass needs them in reverse.
    const Bucket& bucket = buckets_[in_forward_order ? buckets_.size() - 1 - i : i];
    if (bucket.gather == kNoNode) continue;
    std::vector<std::uint32_t> waits = ready.all;
    if (in_forward_order) add_wait(waits, previous);
    keep_in_turn(waits);
    previous = communicate(bucket.gather, bucket.gather_label, waits);
    ready.of_bucket[bucket.number] = previous;
  }
}

// All of a communicator, so one after the other.
void DataPass::broadcast_parameters(Ready& ready) {
  ready.of_bucket.assign(buckets_.size(), kNoNode);
  const NodeLabel label{Phase::optimizer, tables_.name("broadcast weights"), -1};
  std::uint32_t previous = kNoNode;
  for (const Broadcast& broadcast : broadcasts_) {
    std::vector<std::uint32_t> waits = ready.all;
    add_wait(waits, previous);
    keep_in_turn(waits);
    previous = communicate(broadcast.collective, label, waits);
    for (const std::size_t bucket : broadcast.buckets) ready.of_bucket[bucket] = previous;
  }
}

void DataPass::gather_block(BlockState& block, Phase phase, std::vector<std::uint32_t>& entry) {
  const PassStarts& starts = starts_of(phase == Phase::forward);
  for (const BlockGather& gather : block.gathers) {
    std::vector<std::uint32_t> waits;
    // The gather may start when the pass of the block before starts: one block ahead, which is what FSDP's
    // prefetch keeps in memory. Without prefetch it starts when that pass is done.
    if (plan_.prefetch) {
      add_wait(waits, starts.before);
    } else {
      waits = entry;
      add_wait(waits, writer_.last_compute());
    }
    // One communicator, which exchanges have no part in: gathers follow each other.
    if (std::find(waits.begin(), waits.end(), last_gather_) == waits.end()) add_wait(waits, last_gather_);
    last_gather_ = writer_.communicate(NodeKind::collective, {phase, gather.name, gather.layer},
                                       gather.collective, waits);
    entry.push_back(last_gather_);
  }
  for (const BlockGather& gather : block.gathers) {
    if (gather.copy == kNoNode) continue;
    entry.push_back(writer_.compute({phase, gather.copy_name, gather.layer}, gather.copy, entry));
  }
}

void DataPass::before_forward(const BlockPlace& place, std::int64_t iteration, bool first,
                              std::vector<std::uint32_t>& entry) {
  starts_of(true).begin(writer_.last_compute());
  BlockState& block = state(place);
  if (first) {
    const Ready& ready = ready_[static_cast<std::size_t>(iteration)];
    // The chunk's first block waits for what concerns all blocks, every block for the gather of its own
    // buckets.
    if (place.block == 0) entry.insert(entry.end(), ready.all.begin(), ready.all.end());
    for (const std::uint32_t bucket : block.buckets) {
      if (bucket < ready.of_bucket.size()) add_wait(entry, ready.of_bucket[bucket]);
    }
  }
  // Without resharding the weights stay from the first forward pass on, until no pass needs them.
  if (plan_.reshard || block.in_use == 0) gather_block(block, Phase::forward, entry);
  ++block.in_use;
}

void DataPass::before_backward(const BlockPlace& place, std::vector<std::uint32_t>& entry) {
  starts_of(false).begin(writer_.last_compute());
  BlockState& block = state(place);
  if (plan_.reshard) gather_block(block, Phase::input_gradient, entry);
  --block.in_use;
}

void DataPass::after_backward(const BlockPlace& place, bool last, std::vector<std::uint32_t>& entry) {
  for (const std::uint32_t number : state(place).buckets) {
    Bucket& bucket = buckets_[number];
    const bool own = place.chunk == bucket.weights.chunk;
    if (last) --bucket.left_of_last;
    // Gradients are reduced into shards after each micro-batch, so whole gradients live only until their
    // bucket is full; a tied weight's uses in other chunks do not delay it.
    if (plan_.zero_stage >= 2) {
      if (!own || --bucket.left > 0) continue;
      bucket.left = bucket.weights.blocks.size();
      if (plan_.no_sync && !last) continue;
      exchange(bucket, last, plan_.overlap ? nullptr : &entry);
    } else if (plan_.overlap && bucket.left_of_last == 0) {
      // ZeRO-0 and 1 accumulate whole gradients: the exchange starts with the last micro-batch, as soon as
      // the bucket's last block is done.
      exchange(bucket, true, nullptr);
    }
  }
}

// `entry`: of what comes next, where that waits.
void DataPass::exchange(Bucket& bucket, bool last, std::vector<std::uint32_t>* entry) {
  if (bucket.exchange != kNoNode) {
    std::vector<std::uint32_t> waits;
    if (bucket.copy != kNoNode) writer_.compute(bucket.copy_label, bucket.copy, waits);
    add_wait(waits, writer_.last_compute());
    keep_in_turn(waits);
    bucket.exchanged = communicate(bucket.exchange, bucket.exchange_label, waits);
  }
  // Across replicas shards are summed once per iteration, however many micro-batches were reduced within.
  if (last && bucket.replicate != kNoNode) {
    std::vector<std::uint32_t> waits;
    add_wait(waits, bucket.exchange != kNoNode ? bucket.exchanged : writer_.last_compute());
    bucket.exchanged =
        writer_.communicate(NodeKind::collective, bucket.exchange_label, bucket.replicate, waits);
  }
  if (entry != nullptr) add_wait(*entry, bucket.exchanged);
}

void DataPass::finish(std::int64_t iteration, std::vector<std::uint32_t>& ends) {
  // Without overlap nothing was exchanged so far.
  if (!plan_.overlap && plan_.zero_stage < 2) {
    for (Bucket& bucket : buckets_) exchange(bucket, true, nullptr);
  }
  late_.clear();
  // Mirrors first, since partial and tied sums are of what they leave.
  exchange_mirrors();
  exchange_partial(ends);
  exchange_tied();
  update(iteration + delay_);
  for (Bucket& bucket : buckets_) {
    bucket.left_of_last = bucket.weights.blocks.size() + bucket.weights.others.size();
    bucket.exchanged = kNoNode;
  }
}

void DataPass::wait_for_exchanges(std::vector<std::uint32_t>& waits) const {
  // Where nothing was exchanged (one replica), gradients are final when they are computed.
  bool any = false;
  for (const Bucket& bucket : buckets_) {
    add_wait(waits, bucket.exchanged);
    any |= bucket.exchanged != kNoNode;
  }
  if (!any) add_wait(waits, writer_.last_compute());
  waits.insert(waits.end(), late_.begin(), late_.end());
}

// Both holders of a stage call in the order of stages, whichever of their chunks a stage is.
void DataPass::exchange_mirrors() {
  std::vector<Bucket*> order;
  for (Bucket& bucket : buckets_) {
    if (bucket.mirror != kNoNode) order.push_back(&bucket);
  }
  const auto stage = [&](const Bucket* bucket) {
    return chunks_[static_cast<std::size_t>(bucket->weights.chunk)].stage;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Bucket* a, const Bucket* b) { return stage(a) < stage(b); });
  std::uint32_t previous = kNoNode;
  for (Bucket* bucket : order) {
    std::vector<std::uint32_t> waits;
    add_wait(waits, bucket->exchanged != kNoNode ? bucket->exchanged : writer_.last_compute());
    add_wait(waits, previous);
    previous = bucket->exchanged =
        writer_.communicate(NodeKind::collective, bucket->exchange_label, bucket->mirror, waits);
  }
}

// The passes' own collectives use the same groups: this one comes after those before it and, where the next
// iteration has begun, before the others; then it does not wait for the exchange between replicas (sums
// commute).
void DataPass::exchange_partial(std::vector<std::uint32_t>& ends) {
  if (partial_ == 0 || plan_.tensor <= 1) return;
  const Bytes bytes = size_of(partial_, gradient_type(plan_), "gradients");
  std::vector<std::uint32_t> waits = ends;
  if (asynchronous_) {
    add_wait(waits, writer_.last_compute());
  } else {
    wait_for_exchanges(waits);
  }
  const std::uint32_t call =
      tables_.collective({CollectiveKind::all_reduce, bytes, tables_.family(GroupAxis::tensor)});
  const NodeLabel label{Phase::gradient_exchange, tables_.name("norm gradients"), -1};
  late_.push_back(writer_.communicate(NodeKind::collective, label, call, waits));
  if (asynchronous_) ends.assign(1, late_.back());
}

void DataPass::exchange_tied() {
  for (const TiedWeight& weight : tied_) {
    // Two copies that are each other's mirrors have been summed.
    if (group_size(plan_, GroupAxis::mirror) == 2 && weight.holders.size() == 2) continue;
    Bytes bytes = size_of(weight.elements, gradient_type(plan_), "gradients");
    // From stage 2 on only shards of the gradients are left to sum.
    if (plan_.zero_stage >= 2) bytes = shard_of(bytes, group_size(plan_, GroupAxis::data));
    std::vector<std::uint32_t> waits;
    wait_for_exchanges(waits);
    const std::uint32_t call =
        tables_.collective({CollectiveKind::all_reduce, bytes, tables_.embedding_family(weight.holders)});
    const NodeLabel label{Phase::gradient_exchange, tables_.name("tied embedding gradients"), -1};
    late_.push_back(writer_.communicate(NodeKind::collective, label, call, waits));
  }
}

// `target`: the first iteration that computes with the result.
void DataPass::update(std::int64_t target) {
  Ready unseen;
  const bool seen = target < static_cast<std::int64_t>(ready_.size());
  Ready& ready = seen ? ready_[static_cast<std::size_t>(target)] : unseen;
  if (plan_.offload_optimizer) {
    update_on_host(ready);
  } else {
    std::vector<std::uint32_t> waits;
    wait_for_exchanges(waits);
    // The optimizer's kernels follow each other on the device, so only the first has to wait. Asynchronously
    // they run beside the next iteration's passes, in a chain of their own.
    for (const Bucket& bucket : buckets_) {
      // What was copied for the exchange is copied back.
      if (shares_out_tensors(plan_) && bucket.copy != kNoNode && !asynchronous_) {
        writer_.compute(bucket.copy_label, bucket.copy, waits);
        waits.clear();
      }
      if (!asynchronous_) {
        writer_.compute(bucket.optimizer_label, bucket.optimizer, waits);
        waits.clear();
      } else {
        waits.assign(1, writer_.compute_aside(bucket.optimizer_label, bucket.optimizer, waits));
      }
    }
    if (!buckets_.empty()) ready.all.assign(1, asynchronous_ ? waits.front() : writer_.last_compute());
  }
  if (plan_.overlap_parameters) pause(ready);
  // With overlapped gathers those of an iteration belong to the next one; after the last there is none to do
  // them for.
  if (seen || !plan_.overlap_parameters) gather_parameters(ready, plan_.overlap_parameters);
  if (!plan_.overlap_parameters) {
    for (const std::uint32_t node : ready.of_bucket) add_wait(ready.all, node);
    ready.of_bucket.clear();
    pause(ready);
  }
}

// Steps that overlap leave no pause.
void DataPass::pause(Ready& ready) {
  if (plan_.step_overhead == Time(0) || asynchronous_) return;
  if (ready.all.empty()) add_wait(ready.all, writer_.last_compute());  // nothing is trained
  const NodeLabel label{Phase::optimizer, tables_.name("between steps"), -1};
  ready.all.assign(1, writer_.pause(label, plan_.step_overhead, ready.all));
}

// Gradients leave as they become final; the update waits for all of them.
void DataPass::update_on_host(Ready& ready) {
  const NodeLabel down{Phase::optimizer, tables_.name("gradients to host"), -1};
  const NodeLabel up{Phase::optimizer, tables_.name("weights from host"), -1};
  std::vector<std::uint32_t> arrived;
  for (const Bucket& bucket : buckets_) {
    const Bytes shard = owned_of(bucket, bucket.weights.gradients);
    std::vector<std::uint32_t> waits;
    add_wait(waits, bucket.exchanged != kNoNode ? bucket.exchanged : writer_.last_compute());
    arrived.push_back(writer_.host_copy(down, time_to_move(shard, host_bandwidth_), waits));
  }
  std::vector<std::uint32_t> waits = arrived;
  waits.insert(waits.end(), late_.begin(), late_.end());
  // The CPU steps when all gradients have arrived; the transfers back follow each other on the one link.
  for (const Bucket& bucket : buckets_) {
    const Bytes shard = owned_of(bucket, bucket.weights.updated_weights());
    waits.assign(1, writer_.host_copy(up, time_to_move(shard, host_bandwidth_), waits));
  }
  ready.all = waits;
}

}  // namespace armilla
