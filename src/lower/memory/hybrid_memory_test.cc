#include "lower/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lower/memory/role_memory.h"
#include "lower/plan.h"

namespace armilla {
namespace {

using testing::ElementsAre;

// `blocks` equal blocks of `elements` weights, 100 bytes kept and 30 used while it works, 8 bytes across.
ShardedModel equal_blocks(std::int64_t blocks, std::int64_t elements) {
  ShardedModel model;
  BlockShape& shape = model.shapes.emplace_back();
  shape.weights.push_back({GroupAxis::data, elements, -1, DType::unknown});
  shape.input = shape.output = Bytes(8);
  shape.saved = Bytes(100);
  shape.working = Bytes(30);
  for (std::int64_t b = 0; b < blocks; ++b) model.blocks.push_back({"block", BlockKind::decoder, 0, 0});
  return model;
}

// One program per pipeline rank: a computation per slot, between two messages.
LoweredJob job_of(const ShardedModel& model, const Plan& plan) {
  LoweredJob job;
  job.sharded.push_back(model);
  job.order = pipeline_order(plan, 1, "plan");
  job.stages = cut_stages(model, plan, "plan");
  for (std::int64_t rank = 0; rank < plan.pipeline; ++rank) {
    job.roles.push_back({rank, 0});
    Program& program = job.graph.programs.emplace_back();
    program.role = "stage " + std::to_string(rank);
    std::vector<NodeRange>& nodes = job.slot_nodes.emplace_back();
    for (std::size_t s = 0; s < job.order.slots[static_cast<std::size_t>(rank)].size(); ++s) {
      const std::uint32_t first = program.size();
      for (const NodeKind kind : {NodeKind::receive, NodeKind::compute, NodeKind::send})
        program.add(kind, Phase::forward, 0, 0, 0, {});
      nodes.push_back({first, program.size()});
    }
  }
  return job;
}

Plan pipelined_plan(std::string_view schedule, std::int64_t pipeline, std::int64_t micro_batches) {
  Plan plan;
  plan.schedule = schedule;
  plan.ranks = plan.pipeline = pipeline;
  plan.virtual_stages = schedule == "zb-v" ? 2 : schedule == "interleaved" ? 2 : 1;
  plan.batch = plan.micro_batches = micro_batches;
  plan.precision = plan.weight_dtype = plan.parameter_dtype = plan.gradient_dtype = DType::bf16;
  plan.optimizer = Optimizer::adam;
  return plan;
}

std::vector<std::int64_t> activations_of(std::string_view schedule, std::int64_t pipeline,
                                         std::int64_t micro_batches) {
  const Plan plan = pipelined_plan(schedule, pipeline, micro_batches);
  std::vector<std::int64_t> result;
  for (const RoleMemory& memory : hybrid_memory(job_of(equal_blocks(8, 10), plan), plan, Device()))
    result.push_back(memory.use.activations.value);
  return result;
}

// Rajbhandari et al. 2020, figure 1: 7.5 billion parameters, K = 12, 64 ranks: 120, 31.4, 16.6 and 1.9 GB.
TEST(HybridMemory, StatesEqualThoseOfZero) {
  const double published[] = {120, 31.4, 16.6, 1.9};
  for (int stage = 0; stage <= 3; ++stage) {
    Plan plan = pipelined_plan("1f1b", 1, 1);
    plan.ranks = 64;
    plan.zero_stage = stage;
    const MemoryUse use = hybrid_memory(job_of(equal_blocks(1, 7'500'000'000), plan), plan, Device())[0].use;
    const Bytes states = use.weights + use.gradients + use.optimizer;
    EXPECT_NEAR(static_cast<double>(states.value) * 1e-9, published[stage], 0.06) << "stage " << stage;
  }
}

TEST(HybridMemory, StatesFollowTypesAndOffload) {
  Plan plan = pipelined_plan("1f1b", 1, 1);
  const auto use_of = [&] { return hybrid_memory(job_of(equal_blocks(2, 1000), plan), plan, Device())[0]; };
  EXPECT_EQ(use_of().use.weights, Bytes(4000));
  EXPECT_EQ(use_of().use.gradients, Bytes(4000));
  EXPECT_EQ(use_of().use.optimizer, Bytes(24000));
  EXPECT_EQ(use_of().use.communication_buffers(), Bytes(0));
  plan.gradient_dtype = DType::fp32;
  EXPECT_EQ(use_of().use.gradients, Bytes(8000));
  plan.weight_dtype = DType::fp32;
  EXPECT_EQ(use_of().use.optimizer, Bytes(16000));  // no master copy beside fp32 weights
  plan.offload_optimizer = true;
  EXPECT_EQ(use_of().use.optimizer, Bytes(0));
  EXPECT_EQ(use_of().host, Bytes(16000));
  const MemoryUse use = use_of().use;
  EXPECT_EQ(use.fragmentation.value, (8000 + 8000 + 200 + 30) * 4 / 100);
}

// 2p half stages of 1 block for ZB-V; whole stages of 2 blocks for the others. 1F1B keeps min(p - rank, m),
// GPipe m, ZB-H1 p on every rank, as its weight gradients wait (Qi et al. 2023, section 3); DualPipe p + 1
// and, where its last weight gradients wait, no more.
TEST(HybridMemory, ActivationsFollowTheSchedule) {
  EXPECT_THAT(activations_of("gpipe", 4, 6), ElementsAre(1200, 1200, 1200, 1200));
  EXPECT_THAT(activations_of("1f1b", 4, 6), ElementsAre(800, 600, 400, 200));
  EXPECT_THAT(activations_of("zb-h1", 4, 6), ElementsAre(800, 800, 800, 800));
  EXPECT_THAT(activations_of("zb-v", 4, 8), ElementsAre(800, 800, 800, 800));
  EXPECT_THAT(activations_of("interleaved", 4, 8), ElementsAre(1100, 900, 700, 500));
  EXPECT_THAT(activations_of("dualpipe", 4, 8), ElementsAre(1000, 1000, 1000, 1000));
}

// What the walk through all slots holds, without passing over rounds.
HeldByPasses most_held(const RoleParts& parts, const std::vector<PipelineSlot>& slots,
                       std::int64_t& most_in_flight) {
  ActivationWalk walk(parts.activations, false, parts.kept_gradients, parts.made);
  HeldByPasses most;
  for (std::size_t i = 0; i < slots.size();) {
    const std::span<const PipelineSlot> group = slots_beside(slots, i);
    const HeldByPasses held = walk.enter(group, slot_at(slots, i + group.size()));
    if (held.sum() > most.sum()) most = held;
    walk.leave(group);
    i += group.size();
  }
  most_in_flight = walk.most_in_flight();
  return walk.held().sum() > most.sum() ? walk.held() : most;
}

// Rounds that are passed over hold as much, for blocks that keep much, little or nothing, where gradients are
// there always and where the first passes make them.
TEST(HybridMemory, ManyMicroBatchesHoldWhatEverySlotSays) {
  for (const PipelineScheduleInfo& schedule : pipeline_schedules()) {
    for (const std::int64_t micro_batches : {8, 12, 40, 160}) {
      for (const auto& [saved, framework] : {std::pair(0, Framework::megatron),
                                             {1, Framework::pytorch},
                                             {100, Framework::megatron},
                                             {100, Framework::pytorch},
                                             {100'000, Framework::pytorch}}) {
        Plan plan = pipelined_plan(schedule.name, 4, micro_batches);
        plan.framework = framework;
        ShardedModel model = equal_blocks(16, 10);
        model.shapes.front().saved = Bytes(saved);
        const LoweredJob job = job_of(model, plan);
        const std::vector<RoleMemory> memory = hybrid_memory(job, plan, Device());
        for (std::size_t rank = 0; rank < 4; ++rank) {
          SCOPED_TRACE(testing::Message()
                       << schedule.name << " " << micro_batches << " " << saved << " " << rank);
          const RoleParts parts = role_parts(model, job.stages, job.order, rank, plan);
          std::int64_t most_in_flight = 0;
          const HeldByPasses most = most_held(parts, job.order.slots[rank], most_in_flight);
          EXPECT_EQ(memory[rank].use.activations, Bytes(most.activations));
          EXPECT_EQ(memory[rank].use.gradients, Bytes(most.gradients));
          EXPECT_EQ(memory[rank].most_in_flight, most_in_flight);
        }
      }
    }
  }
}

TEST(HybridMemory, CopiesAndVersionsOfWeightsCount) {
  const auto weights = [](std::string_view schedule) {
    const Plan plan = pipelined_plan(schedule, 4, 8);
    return hybrid_memory(job_of(equal_blocks(8, 10), plan), plan, Device())[1].use.weights;
  };
  EXPECT_EQ(weights("1f1b"), Bytes(2 * 10 * 2));
  EXPECT_EQ(weights("dualpipe"), Bytes(4 * 10 * 2));
  EXPECT_EQ(weights("pipedream-2bw"), Bytes(4 * 10 * 2));
}

TEST(HybridMemory, ThePeakIsThatOfOneMoment) {
  // The first block needs much while it works, when the second has not kept anything yet.
  ShardedModel model = equal_blocks(1, 10);
  model.shapes.push_back(model.shapes[0]);
  model.shapes[0].working = Bytes(1000);
  model.blocks.push_back({"block", BlockKind::decoder, 1, 1});
  const Plan plan = pipelined_plan("1f1b", 1, 2);
  const MemoryUse use = hybrid_memory(job_of(model, plan), plan, Device())[0].use;
  EXPECT_EQ(use.activations, Bytes(100));
  EXPECT_EQ(use.temporary, Bytes(1000));
}

TEST(HybridMemory, TiedWeightsOfARankAreThereOnce) {
  ShardedModel model = equal_blocks(3, 10);
  model.shapes.push_back(model.shapes[0]);
  model.shapes[1].weights = {{GroupAxis::data, 500, 0, DType::unknown}};
  model.blocks.front().shape = model.blocks.back().shape = 1;
  Plan plan = pipelined_plan("1f1b", 1, 1);
  EXPECT_EQ(hybrid_memory(job_of(model, plan), plan, Device())[0].use.weights, Bytes(510 * 2));
  plan = pipelined_plan("1f1b", 2, 2);
  plan.stage_blocks = {2, 1};
  EXPECT_EQ(hybrid_memory(job_of(model, plan), plan, Device())[1].use.weights, Bytes(500 * 2));
}

TEST(HybridMemory, BuffersHoldWhatIsOnItsWay) {
  Plan plan = pipelined_plan("1f1b", 2, 2);
  plan.ranks = 8;
  plan.batch = 2;
  const auto buffers = [&] {
    return hybrid_memory(job_of(equal_blocks(8, 1000), plan), plan, Device())[0].use.communication_buffers();
  };
  EXPECT_EQ(buffers(), Bytes(2 * 8));
  plan.zero_stage = 2;
  plan.first_bucket = plan.bucket = Bytes(4000);  // two blocks each
  EXPECT_EQ(buffers(), Bytes(2 * 8 + 2 * 4000));
  plan.zero_stage = 3;
  EXPECT_EQ(buffers(), Bytes(2 * 8 + 2 * 2000 + 2 * 2000));
  plan.prefetch = false;
  EXPECT_EQ(buffers(), Bytes(2 * 8 + 2 * 2000 + 2000));
  plan.reshard = false;
  EXPECT_EQ(buffers(), Bytes(2 * 8 + 2 * 2000 + 4 * 2000));
  plan.hybrid_shard = 1;  // sharding among one: nothing to gather
  EXPECT_EQ(buffers(), Bytes(2 * 8));
  plan = pipelined_plan("interleaved", 1, 2);  // two chunks on one rank send nothing
  EXPECT_EQ(buffers(), Bytes(0));
}

// A tensor of 1000 elements in each of eight blocks on four replicas, two each; on 16 one each has most. Adam
// keeps 8 bytes an element and a master copy.
TEST(HybridMemory, TheReplicaWithMostTensorsNeedsMost) {
  Plan plan = pipelined_plan("1f1b", 1, 1);
  plan.zero_stage = 1;
  plan.zero_partition = ZeroPartition::tensors;
  plan.overlap_parameters = false;
  ShardedModel model = equal_blocks(8, 1000);
  for (BlockShape& shape : model.shapes) {
    for (WeightGroup& group : shape.weights) group.tensors = {{group.elements, 1}};
  }
  for (const auto& [ranks, most] : {std::pair(1, 8), {3, 3}, {4, 2}, {16, 1}}) {
    plan.ranks = ranks;
    const MemoryUse use = hybrid_memory(job_of(model, plan), plan, Device())[0].use;
    plan.zero_stage = 0;
    const MemoryUse whole = hybrid_memory(job_of(model, plan), plan, Device())[0].use;
    plan.zero_stage = 1;
    EXPECT_EQ(use.optimizer.value * 8, whole.optimizer.value * most) << ranks;
    EXPECT_EQ(use.gradients, whole.gradients);
  }
}

TEST(HybridMemory, PassesBesideEachOtherGatherEachForItself) {
  const auto gathered = [](std::string_view schedule, bool reshard) {
    Plan plan = pipelined_plan(schedule, 2, 8);
    plan.ranks = 8;
    plan.zero_stage = 3;
    plan.reshard = reshard;
    return hybrid_memory(job_of(equal_blocks(8, 1000), plan), plan, Device())[0].use.buffer(
        MemoryBuffer::gathered_weights);
  };
  constexpr std::int64_t kBlock = 2000;
  EXPECT_EQ(gathered("1f1b", true), Bytes(2 * kBlock));
  EXPECT_EQ(gathered("zb-h1", true), Bytes(2 * kBlock));
  EXPECT_EQ(gathered("dualpipe", true), Bytes(2 * 2 * kBlock));
  EXPECT_EQ(gathered("dualpipe", false), Bytes(2 * 4 * kBlock));
}

// "1>100+30": from the start of node 1 activations of 100 and a working set of 30; "1<100": from its end.
std::string over_time(const RoleMemory& memory) {
  std::string text;
  for (const MemoryMoment& moment : memory.over_time) {
    text +=
        std::to_string(moment.node) + (moment.at_end ? '<' : '>') + std::to_string(moment.activations.value);
    if (moment.temporary > Bytes(0)) text += '+' + std::to_string(moment.temporary.value);
    text += ' ';
  }
  return text;
}

TEST(HybridMemory, WhatIsHeldOverTimeComesAndGoesWithTheSlots) {
  Plan plan = pipelined_plan("1f1b", 2, 2);
  const auto held = [&] {
    return over_time(hybrid_memory(job_of(equal_blocks(2, 10), plan), plan, Device())[0]);
  };
  // Slots F0 F1 B0 B1 of three nodes; the second of each computes.
  EXPECT_EQ(held(), "1>100+30 1<100 4>200+30 4<200 7>200+30 7<100 10>100+30 10<0 ");
  plan.schedule = "zb-h1";  // F0 F1 B0 W0 B1 W1
  EXPECT_EQ(held(),
            "1>100+30 1<100 4>200+30 4<200 7>200+30 7<200 10>200 10<100 13>100+30 13<100 16>100 16<0 ");
  plan.schedule = "1f1b";
  plan.offload_activations = true;  // a pass and one more at most, and one between passes
  EXPECT_EQ(held(), "1>100+30 1<100 4>200+30 4<100 7>200+30 7<100 10>100+30 10<0 ");
}

TEST(HybridMemory, WhatIsHeldOverTimeFollowsTheBlocks) {
  // Two blocks in a pass of four computations: twice the first, then twice the second; backward the other
  // way.
  ShardedModel model = equal_blocks(2, 10);
  model.shapes.push_back(model.shapes[0]);
  model.shapes[1].saved = Bytes(7);
  model.shapes[1].working = Bytes(1000);
  model.blocks[1].shape = 1;
  const Plan plan = pipelined_plan("1f1b", 1, 1);
  LoweredJob job = job_of(model, plan);
  Program& program = job.graph.programs[0] = {};
  for (const std::int32_t layer : {0, 0, 1, 1, 1, 1, 0, 0})
    program.add(NodeKind::compute, Phase::forward, 0, layer, 0, {});
  job.slot_nodes[0] = {{0, 4}, {4, 8}};
  const RoleMemory memory = hybrid_memory(job, plan, Device())[0];
  EXPECT_EQ(over_time(memory), "0>100+30 1<100 2>107+1000 3<107 4>107+1000 5<100 6>100+30 7<0 ");
  // A block that computes nothing goes with its neighbour.
  for (std::int32_t& layer : program.layer) layer = 1;
  EXPECT_EQ(over_time(hybrid_memory(job, plan, Device())[0]), "0>107+1000 3<107 4>107+1000 7<0 ");
}

TEST(HybridMemory, OffloadedActivationsAreOnTheHost) {
  Plan plan = pipelined_plan("gpipe", 1, 6);
  plan.offload_activations = true;
  const RoleMemory memory = hybrid_memory(job_of(equal_blocks(1, 10), plan), plan, Device())[0];
  EXPECT_EQ(memory.host, Bytes(600));
  EXPECT_EQ(memory.use.activations, Bytes(200));
  EXPECT_EQ(memory.most_in_flight, 6);
}

// A single pass of four blocks needs two of them at a time, of W what B has loaded.
TEST(HybridMemory, OffloadGoesBlockByBlock) {
  Plan plan = pipelined_plan("gpipe", 1, 1);
  const auto activations = [&] {
    return hybrid_memory(job_of(equal_blocks(4, 10), plan), plan, Device())[0].use.activations;
  };
  EXPECT_EQ(activations(), Bytes(400));
  plan.offload_activations = true;
  EXPECT_EQ(activations(), Bytes(200));
  plan.schedule = "zb-h1";
  EXPECT_EQ(activations(), Bytes(400));
}

// Of passes alone the peak is that of a moment, however many rounds are passed over.
TEST(HybridMemory, PeaksAreThoseOfAMoment) {
  ShardedModel model = equal_blocks(16, 10);
  model.shapes.push_back(model.shapes[0]);
  model.shapes[1].saved = Bytes(500);
  model.blocks[3].shape = model.blocks[7].shape = model.blocks[15].shape = 1;
  // An embedding, whose gradient is larger than what all blocks keep: it is there when the rest has gone.
  model.shapes.push_back(model.shapes[0]);
  model.shapes[2].weights.front().elements = 5000;
  model.blocks[0].shape = 2;
  for (const char* const schedule : {"1f1b", "gpipe", "interleaved", "zb-h1"}) {
    for (const std::int64_t micro_batches : {4, 16, 40}) {
      for (const Framework framework : {Framework::megatron, Framework::pytorch}) {
        SCOPED_TRACE(testing::Message() << schedule << " " << micro_batches);
        Plan plan = pipelined_plan(schedule, 4, micro_batches);
        plan.framework = framework;
        plan.bucket = plan.first_bucket = Bytes(1);  // one for each block
        // PyTorch adds each pass's gradients to arrays of a wider type.
        for (const auto& [offload, gradients] : {std::pair(false, DType::bf16),
                                                 {false, DType::fp32},
                                                 {true, DType::bf16},
                                                 {true, DType::fp32}}) {
          plan.offload_activations = offload;
          plan.gradient_dtype = gradients;
          for (const RoleMemory& memory : hybrid_memory(job_of(model, plan), plan, Device())) {
            std::int64_t most = 0;
            for (const MemoryMoment& moment : memory.over_time)
              most = std::max(most, (moment.activations + moment.temporary + moment.gradients).value);
            EXPECT_EQ((memory.use.activations + memory.use.temporary + memory.use.gradients).value, most)
                << memory.role << (offload ? " offloaded, " : ", ") << name_of(gradients);
          }
        }
      }
    }
  }
}

// A head that keeps more than any layer is there once, beside the layer before it.
TEST(HybridMemory, OffloadHoldsTheLargestBlockOnce) {
  ShardedModel model = equal_blocks(4, 10);
  model.shapes.push_back(model.shapes[0]);
  model.shapes[1].saved = Bytes(500);
  model.blocks[3].shape = 1;
  Plan plan = pipelined_plan("1f1b", 1, 3);
  plan.offload_activations = true;
  for (const Framework framework : {Framework::megatron, Framework::pytorch}) {
    plan.framework = framework;
    const RoleMemory memory = hybrid_memory(job_of(model, plan), plan, Device())[0];
    EXPECT_EQ(memory.use.activations, Bytes(600));
    EXPECT_EQ(memory.host, Bytes(800));
    Plan without = plan;
    without.offload_activations = false;
    EXPECT_LT(memory.use.peak(), hybrid_memory(job_of(model, without), without, Device())[0].use.peak());
  }
  // A head that leaves while the first block of the next pass is at work.
  plan.schedule = "gpipe";
  EXPECT_EQ(hybrid_memory(job_of(model, plan), plan, Device())[0].use.activations, Bytes(600));
}

}  // namespace
}  // namespace armilla
