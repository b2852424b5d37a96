// The data-parallel pass of lower/hybrid.h: gradients, parameters and optimizer of one role.
//
//   ZeRO 0   a bucket is all-reduced after the last micro-batch's backward pass of its blocks
//            (Li et al. 2020)
//   ZeRO 1   reduce-scattered then (without Plan::reduce_scatter all-reduced); the optimizer updates the
//            shard; parameters are gathered: with
//            Plan::overlap_parameters at the start of the iteration, before the forward pass of the bucket's
//            blocks (what the iteration before has left to do, as Megatron-LM's overlap-param-gather), else
//            at its end
//            Where replicas update whole tensors (shares_out_tensors), gradients are all-reduced as under
//            ZeRO 0, and every replica that has any tensor broadcasts its own, one after the other; the one
//            that has most sets the pace of the optimizer
//   ZeRO 2   as 1, reduce-scattered after every micro-batch: whole gradients are not kept. With Plan::no_sync
//            (here and in ZeRO 3) after the last one alone
//   ZeRO 3   weights of every block gathered before its forward pass and, when resharded, before its backward
//            pass, one block ahead (Plan::prefetch); gradients reduce-scattered after its backward pass
//            (FSDP, Zhao et al. 2023). Gathers have a communicator of their own ("data gather"). Under
//            Framework::pytorch what was gathered is copied into the weights, and gradients into what is
//            reduced (FSDP2).
//
// Exchanges of ZeRO 3, and those of ZeRO 2 after every micro-batch, hold multiprocessors
// (CollectiveCall::processors).
//
// With hybrid_shard, ZeRO 1 to 3 shard dense weights within groups only, and the shards of gradients are then
// all-reduced across the groups, once per iteration.
//
// Volumes per rank are those of Rajbhandari et al. 2020, section 7: 2 Psi for ZeRO 0 to 2, 3 Psi for ZeRO 3,
// per micro-batch where a stage says so. Then, in Megatron-LM's order (finalize_model_grads.py): gradients of
// replicated norms over `tensor`, tied embeddings across stages; DualPipe's two copies of each stage before
// these. The optimizer waits for all exchanges, as `optimizer.step()` does; asynchronous schedules let it run
// beside the next iteration, whose update they only need one later. An offloaded optimizer moves gradients
// (shards) to the CPU and weights back over the link of `host_bandwidth`.
//
// NOT modelled: gradient-norm clipping's exchange of a few bytes, the CPU's own arithmetic (it hides behind
// the link where the CPU keeps up), the padding of buckets to multiples of the group.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "base/units.h"
#include "ir/plan.h"
#include "lower/data/job_tables.h"
#include "lower/data/program_writer.h"
#include "lower/data/weight_buckets.h"

namespace armilla {

class DataPass {
 public:
  DataPass(const ShardedModel& model, const std::vector<RoleChunk>& chunks, RoleWeights weights,
           std::int64_t iterations, Bandwidth host_bandwidth, const Plan& plan, JobTables& tables,
           ProgramWriter& writer);

  // What has to be done before anything else.
  void start();
  // Before the pass of a block begins, which waits for `entry` and the last computation: adds what else it
  // has to wait for. `first`: it is the first forward pass of the chunk in this iteration.
  void before_forward(const BlockPlace& place, std::int64_t iteration, bool first,
                      std::vector<std::uint32_t>& entry);
  // The input gradients come next, or the recomputation before them.
  void before_backward(const BlockPlace& place, std::vector<std::uint32_t>& entry);
  // All gradients of the block are there for this micro-batch. `last`: of the iteration.
  void after_backward(const BlockPlace& place, bool last, std::vector<std::uint32_t>& entry);
  // All passes of the iteration are done; `ends`: the communications that the next one waits for, changed
  // where it has to wait for others.
  void finish(std::int64_t iteration, std::vector<std::uint32_t>& ends);

 private:
  struct Bucket {
    WeightBucket weights;
    std::uint32_t number = 0;                            // among those of the role
    std::int64_t ways = 1;                               // the optimizer's share is one in so many,
    double owned = 1;                                    // or, of whole tensors, this part
    std::uint32_t optimizer = 0;                         // work
    std::uint32_t gather = kNoNode, exchange = kNoNode;  // collectives of the tables; kNoNode: none
    std::uint32_t replicate = kNoNode, mirror = kNoNode;
    std::uint32_t copy = kNoNode;  // work before the exchange
    NodeLabel exchange_label, gather_label, copy_label, optimizer_label;
    std::size_t left = 0;               // blocks of this micro-batch that are not done
    std::size_t left_of_last = 0;       // blocks of the last micro-batch, other chunks' included
    std::uint32_t exchanged = kNoNode;  // the node after which this iteration's gradients are averaged
  };
  // What a replica updated, to the others.
  struct Broadcast {
    std::uint32_t collective = 0;
    std::vector<std::size_t> buckets;
  };
  struct BlockGather {
    std::uint32_t name = 0;
    std::int32_t layer = -1;
    std::uint32_t collective = 0;
    std::uint32_t copy_name = 0, copy = kNoNode;  // work behind it
  };
  struct BlockState {
    std::vector<std::uint32_t> buckets;  // that its backward pass completes
    std::vector<BlockGather> gathers;    // ZeRO-3
    std::int64_t in_use = 0;             // passes that the gathered weights are kept for
  };
  // What an iteration's forward passes wait for.
  struct Ready {
    std::vector<std::uint32_t> all;
    std::vector<std::uint32_t> of_bucket;
  };

  // Among the tables' collectives.
  std::uint32_t exchange_call(CollectiveCall call);
  void make_bucket(const WeightBucket& weights);
  void share_out_tensors();
  void make_gathers(const ShardedModel& model, const RoleChunk& chunk, std::int32_t number);
  Bytes shard_of(Bytes whole, std::int64_t ways) const { return Bytes(ceil_divide(whole.value, ways)); }
  BlockState& state(const BlockPlace& place) {
    return blocks_[static_cast<std::size_t>(place.chunk)][static_cast<std::size_t>(place.block)];
  }
  // Adds the latest communication between replicas where their order would depend on timing.
  void keep_in_turn(std::vector<std::uint32_t>& waits) const;
  std::uint32_t communicate(std::uint32_t collective, const NodeLabel& label,
                            const std::vector<std::uint32_t>& waits);
  void gather_block(BlockState& block, Phase phase, std::vector<std::uint32_t>& entry);
  void exchange(Bucket& bucket, bool last, std::vector<std::uint32_t>* entry);
  void exchange_mirrors();
  void exchange_partial(std::vector<std::uint32_t>& ends);
  void exchange_tied();
  void wait_for_exchanges(std::vector<std::uint32_t>& waits) const;
  void update(std::int64_t target);
  void pause(Ready& ready);
  void update_on_host(Ready& ready);
  void gather_parameters(Ready& ready, bool in_forward_order);
  void broadcast_parameters(Ready& ready);
  Bytes owned_of(const Bucket& bucket, Bytes whole) const;

  const std::vector<RoleChunk>& chunks_;
  const Plan& plan_;
  JobTables& tables_;
  ProgramWriter& writer_;
  std::int64_t delay_ = 1;  // iterations until an update is seen
  bool asynchronous_ = false, overlaps_passes_ = false, serial_ = false;
  Bandwidth host_bandwidth_;
  std::vector<TiedWeight> tied_;
  std::int64_t partial_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<Broadcast> broadcasts_;            // where replicas update whole tensors
  std::vector<std::vector<BlockState>> blocks_;  // [chunk][block]
  std::vector<Ready> ready_;                     // per iteration
  std::uint32_t last_exchange_ = kNoNode;        // communication between replicas
  std::uint32_t last_gather_ = kNoNode;          // ZeRO-3
  // Last computations before the latest two passes; of forward and of backward passes where these overlap.
  struct PassStarts {
    std::uint32_t before = kNoNode, latest = kNoNode;
    void begin(std::uint32_t last_compute) {
      before = latest;
      latest = last_compute;
    }
  };
  PassStarts& starts_of(bool forward) { return starts_[overlaps_passes_ && !forward ? 1 : 0]; }
  std::array<PassStarts, 2> starts_;
  std::vector<std::uint32_t> late_;  // exchanges over tensor, embedding and mirror
};

}  // namespace armilla
