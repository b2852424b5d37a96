#include "lower/data/data_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph_testing.h"
#include "lower/hybrid.h"
#include "lower/jobs/lowered_job_testing.h"
#include "lower/shard/sharded_model_testing.h"

namespace armilla {
namespace {

// Two layers of 1000 elements, embedding and head of 500: 3000 elements of 4 bytes.
constexpr std::int64_t kBytes = 3000 * 4;

Graph lower(const Plan& plan, const SmallShape& shape = {}, std::int64_t iterations = 1) {
  return lower_sharded({small_sharded_model(shape)}, plan, iterations).graph;
}

// What a rank sends per element of the model: a ring all-reduce counts twice (Rajbhandari et al. 2020,
// section 7).
double volume(const Graph& graph) {
  const Program& program = graph.programs[0];
  const auto bytes = [&](CollectiveKind kind) {
    return static_cast<double>(collective_bytes(graph, program, kind, "data") +
                               collective_bytes(graph, program, kind, "data gather"));
  };
  return (2 * bytes(CollectiveKind::all_reduce) + bytes(CollectiveKind::reduce_scatter) +
          bytes(CollectiveKind::all_gather)) /
         static_cast<double>(kBytes);
}

std::int64_t count_kind(const Graph& graph, std::size_t program, std::string_view name) {
  std::int64_t found = 0;
  for (const std::uint32_t n : graph.programs[program].name) found += graph.names[n] == name;
  return found;
}

// The first node of that name, or fails.
std::uint32_t find(const Graph& graph, std::size_t program, std::string_view name) {
  const std::vector<std::uint32_t>& names = graph.programs[program].name;
  for (std::uint32_t node = 0; node < names.size(); ++node) {
    if (graph.names[names[node]] == name) return node;
  }
  ADD_FAILURE() << "no node is called " << name;
  return 0;
}

std::vector<std::uint32_t> waits_of(const Graph& graph, std::size_t program, std::string_view name) {
  const auto waits = graph.programs[program].dependences(find(graph, program, name));
  return {waits.begin(), waits.end()};
}

TEST(DataPass, VolumesAreThoseOfTheZeroPaper) {
  Plan plan = small_plan(1, 4, 1, 1);
  for (const bool overlap : {true, false}) {
    plan.overlap = plan.overlap_parameters = overlap;
    for (const auto& [stage, expected] : {std::pair(0, 2.0), {1, 2.0}, {2, 2.0}, {3, 3.0}}) {
      plan.zero_stage = stage;
      EXPECT_DOUBLE_EQ(volume(lower(plan)), expected) << "ZeRO " << stage;
    }
  }
  plan.reshard = false;  // weights stay from the forward to the backward pass
  EXPECT_DOUBLE_EQ(volume(lower(plan)), 2);
}

// Psi per exchange: ZeRO-2 reduces every micro-batch, ZeRO-3 gathers twice for each, too.
TEST(DataPass, ShardedGradientsAreReducedForEveryMicroBatch) {
  Plan plan = small_plan(1, 2, 1, 4);
  for (const auto& [stage, expected] : {std::pair(0, 2.0), {1, 2.0}, {2, 4.0 + 1}, {3, 4.0 * 3}}) {
    plan.zero_stage = stage;
    EXPECT_DOUBLE_EQ(volume(lower(plan)), expected) << "ZeRO " << stage;
  }
}

// An all-reduce is twice Psi where a reduce-scatter is once; weights are gathered all the same.
TEST(DataPass, GradientsOfShardedStatesMayBeAllReduced) {
  for (const auto& [stage, expected] : {std::pair(1, 2.0 + 1), {2, 4 * 2.0 + 1}}) {
    Plan plan = small_plan(1, 2, 1, 4);
    plan.zero_stage = stage;
    plan.reduce_scatter = false;
    const Graph graph = lower(plan);
    EXPECT_DOUBLE_EQ(volume(graph), expected) << "ZeRO " << stage;
    EXPECT_EQ(collective_bytes(graph, graph.programs[0], CollectiveKind::reduce_scatter, "data"), 0);
  }
}

TEST(DataPass, ExchangesOfEveryMicroBatchHoldProcessors) {
  const auto held = [](const Plan& plan) {
    const Graph graph = lower(plan);
    EXPECT_FALSE(graph.collectives.empty());
    for (const CollectiveCall& call : graph.collectives)
      EXPECT_EQ(call.processors, graph.collectives.front().processors);
    return graph.collectives.front().processors;
  };
  Plan plan = small_plan(1, 8, 1, 2);
  for (const int stage : {0, 1, 2, 3}) {
    plan.zero_stage = stage;
    for (const std::int64_t part : {0, 4}) {
      plan.hybrid_shard = stage == 0 ? 0 : part;
      EXPECT_EQ(held(plan), stage >= 2 ? 16 : 0) << "ZeRO " << stage;
    }
  }
  plan.no_sync = true;
  EXPECT_EQ(held(plan), 16) << "of weights";
  plan.zero_stage = 2;
  EXPECT_EQ(held(plan), 0) << "as ZeRO-1";
  plan = small_plan(1, 8, 1, 1);
  plan.zero_stage = 2;
  EXPECT_EQ(held(plan), 0) << "as ZeRO-1";
}

ShardedModel with_tensors(ShardedModel model) {
  for (BlockShape& shape : model.shapes) {
    for (WeightGroup& group : shape.weights) group.tensors = {{group.elements, 1}};
  }
  return model;
}

// Of four replicas the first two have a layer each, the others embedding and head: all of it is all-reduced
// and copied both ways, and sent in four pieces, one after the other.
TEST(DataPass, WholeTensorsAreBroadcastByTheirOwners) {
  Plan plan = small_plan(1, 4, 1, 2);
  plan.zero_stage = 1;
  plan.zero_partition = ZeroPartition::tensors;
  plan.overlap_parameters = false;
  const Graph graph = lower_sharded({with_tensors(small_sharded_model())}, plan, 1).graph;
  const Program& program = graph.programs[0];
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_reduce, "data"), kBytes);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::reduce_scatter, "data"), 0);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_gather, "data"), 0);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::broadcast, "data"), kBytes);
  EXPECT_EQ(count_kind(graph, 0, "broadcast weights"), 4);
  std::int64_t copied = 0, updated = 0;
  std::uint32_t before = kNoNode;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    const std::string_view name = graph.names[program.name[node]];
    const auto waits = program.dependences(node);
    if (name == "broadcast weights") {
      EXPECT_TRUE(graph.collectives[program.payload[node]].takes_turns);
      if (before != kNoNode) {
        EXPECT_THAT(std::vector(waits.begin(), waits.end()), testing::Contains(before));
      }
      before = node;
    }
    if (name == "copy gradients") copied += graph.works[program.payload[node]].bytes.value;
    if (name.starts_with("optimizer")) updated += graph.works[program.payload[node]].flops.value;
  }
  EXPECT_EQ(copied, 2 * 2 * kBytes);
  // 1000 of 3000 elements, of ten operations each.
  EXPECT_NEAR(static_cast<double>(updated), 10 * 1000, 10 * 3);
}

// Each forward pass waits for the last broadcast that has something of its bucket.
TEST(DataPass, TensorsComeInTheOrderOfTheForwardPassWhereThatGoesOn) {
  Plan plan = small_plan(1, 2, 1, 1);
  plan.zero_stage = 1;
  plan.zero_partition = ZeroPartition::tensors;
  plan.first_bucket = plan.bucket = Bytes(1);
  const Graph graph = lower_sharded({with_tensors(small_sharded_model())}, plan, 1).graph;
  const std::uint32_t first = find(graph, 0, "broadcast weights");
  // Embedding and the first layer are the first replica's.
  EXPECT_THAT(waits_of(graph, 0, "f"), testing::Contains(first));
  EXPECT_EQ(count_kind(graph, 0, "broadcast weights"), 2);
}

TEST(DataPass, TensorsAreSharedOutWithinPartsOfTheReplicas) {
  Plan plan = small_plan(1, 4, 1, 1);
  plan.zero_stage = 1;
  plan.zero_partition = ZeroPartition::tensors;
  plan.overlap_parameters = false;
  plan.hybrid_shard = 2;
  const Graph graph = lower_sharded({with_tensors(small_sharded_model())}, plan, 1).graph;
  const Program& program = graph.programs[0];
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_reduce, "data"), kBytes);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::broadcast, "shard"), kBytes);
  EXPECT_EQ(count_kind(graph, 0, "broadcast weights"), 2);
}

// FSDP2's copies: of the gathered weights before each of a block's passes, both ways, and of its gradients
// before they are reduced.
TEST(DataPass, PyTorchCopiesWhatItExchangesUnderZero3) {
  Plan plan = small_plan(1, 4, 1, 1);
  plan.zero_stage = 3;
  EXPECT_EQ(count_kind(lower(plan), 0, "copy weights"), 0);
  plan.framework = Framework::pytorch;
  const Graph graph = lower(plan);
  const Program& program = graph.programs[0];
  EXPECT_EQ(count_kind(graph, 0, "copy weights"), count_kind(graph, 0, "gather weights"));
  std::int64_t weights = 0, gradients = 0, exchanges = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    const std::string_view name = graph.names[program.name[node]];
    exchanges += name.starts_with("gradient bucket");
    if (name != "copy weights" && name != "copy gradients") continue;
    ASSERT_EQ(program.kind[node], NodeKind::compute);
    (name == "copy weights" ? weights : gradients) += graph.works[program.payload[node]].bytes.value;
  }
  EXPECT_EQ(weights, 2 * 2 * kBytes) << "read and written, forward and backward";
  EXPECT_EQ(gradients, 2 * kBytes);
  EXPECT_EQ(count_kind(graph, 0, "copy gradients"), exchanges);
  const std::vector<std::uint32_t> waits = waits_of(graph, 0, "gradient bucket 0");
  EXPECT_THAT(waits, testing::Contains(find(graph, 0, "copy gradients")));
  plan.zero_stage = 2;
  EXPECT_EQ(count_kind(lower(plan), 0, "copy gradients"), 0);
}

// Under 1F1B the first stage has always more than one micro-batch in flight until the end.
TEST(DataPass, WeightsThatAreKeptForOneMicroBatchServeTheNext) {
  Plan plan = small_plan(2, 2, 1, 4);
  plan.zero_stage = 3;
  plan.reshard = false;
  const Graph graph = lower(plan);
  EXPECT_EQ(count_kind(graph, 0, "gather weights"), 2);      // once for each of its two blocks
  EXPECT_EQ(count_kind(graph, 1, "gather weights"), 4 * 2);  // one micro-batch at a time
}

TEST(DataPass, HybridShardingReducesShardsAcrossReplicas) {
  Plan plan = small_plan(1, 4, 1, 3);
  plan.zero_stage = 3;
  plan.hybrid_shard = 2;
  const Graph graph = lower(plan);
  const Program& program = graph.programs[0];
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_gather, "shard gather"), 3 * 2 * kBytes);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::reduce_scatter, "shard"), 3 * kBytes);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_reduce, "replicate"), kBytes / 2);
}

TEST(DataPass, HybridShardingOfTheOptimizerReducesShardsAcrossReplicas) {
  Plan plan = small_plan(1, 4, 1, 3);
  plan.zero_stage = 1;
  plan.hybrid_shard = 2;
  const Graph graph = lower(plan);
  const Program& program = graph.programs[0];
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::reduce_scatter, "shard"), kBytes);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_reduce, "replicate"), kBytes / 2);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_gather, "shard"), kBytes);
  EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_reduce, "data"), 0);
}

TEST(DataPass, OptimizersUpdateEveryParameterOnce) {
  for (const std::int64_t pipeline : {1, 2, 4}) {
    for (int stage = 0; stage <= 3; ++stage) {
      Plan plan = small_plan(pipeline, 2, 1, 4);
      plan.zero_stage = stage;
      plan.bucket = plan.first_bucket = Bytes(1500);
      const Graph graph = lower(plan);
      std::int64_t flops = 0;
      for (const std::uint32_t index : graph.program_of) {
        const Program& program = graph.programs[index];
        for (std::uint32_t node = 0; node < program.size(); ++node) {
          if (program.phase[node] == Phase::optimizer && program.kind[node] == NodeKind::compute)
            flops += graph.works[program.payload[node]].flops.value;
        }
      }
      // Adam: 2 + 4 x 2 operations per element; without sharding both replicas do them all.
      EXPECT_EQ(flops, 3000 * 10 * (stage == 0 ? 2 : 1)) << pipeline << " stages, ZeRO " << stage;
    }
  }
}

TEST(DataPass, OptimizerTrafficCountsMasterWeightsOfNarrowOnes) {
  Plan plan = small_plan(1, 1, 1, 1);
  plan.weight_dtype = DType::bf16;
  const Graph graph = lower(plan);
  const Program& program = graph.programs[0];
  // Per element: gradient 4, master 4 + 4, two states 2 x (4 + 4), weight 2.
  EXPECT_EQ(graph.works[program.payload[program.size() - 1]].bytes, Bytes(3000 * 30));
}

TEST(DataPass, ABucketLeavesWhenItsLastBlockIsDone) {
  Plan plan = small_plan(1, 2, 1, 2);
  plan.first_bucket = Bytes(2000);
  plan.bucket = Bytes(6000);
  const Graph graph = lower(plan);
  // In order of completion: head 2000, layers 4000 and 4000, embedding 2000 bytes: buckets of 2000, 8000,
  // 2000.
  EXPECT_EQ(graph.collectives.size(), 3U);
  const auto last_of = [](const Graph& of, std::int32_t layer) {
    std::uint32_t last = 0;
    const Program& program = of.programs[0];
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] == NodeKind::compute && program.layer[node] == layer) last = node;
    }
    return last;
  };
  EXPECT_EQ(waits_of(graph, 0, "gradient bucket 0"), std::vector<std::uint32_t>{last_of(graph, 3)});
  EXPECT_EQ(waits_of(graph, 0, "gradient bucket 1"), std::vector<std::uint32_t>{last_of(graph, 1)});
  EXPECT_EQ(waits_of(graph, 0, "gradient bucket 2"), std::vector<std::uint32_t>{last_of(graph, 0)});
  plan.overlap = false;
  const Graph late = lower(plan);
  for (const char* name : {"gradient bucket 0", "gradient bucket 1", "gradient bucket 2"})
    EXPECT_EQ(waits_of(late, 0, name), std::vector<std::uint32_t>{last_of(late, 0)}) << name;
}

TEST(DataPass, ParametersAreGatheredBeforeTheirFirstUseOrAfterTheUpdate) {
  Plan plan = small_plan(1, 2, 1, 2);
  plan.zero_stage = 1;
  plan.first_bucket = plan.bucket = Bytes(2000);
  const Graph early = lower(plan);
  // Four buckets, the embedding's first; the embedding's forward pass waits for that one alone.
  EXPECT_EQ(waits_of(early, 0, "parameters, bucket 3"), std::vector<std::uint32_t>{});
  EXPECT_EQ(waits_of(early, 0, "parameters, bucket 2"),
            std::vector<std::uint32_t>{find(early, 0, "parameters, bucket 3")});
  EXPECT_EQ(waits_of(early, 0, "f"), std::vector<std::uint32_t>{find(early, 0, "parameters, bucket 3")});
  plan.overlap_parameters = false;
  const Graph late = lower(plan);
  EXPECT_EQ(waits_of(late, 0, "f"), std::vector<std::uint32_t>{});
  EXPECT_EQ(waits_of(late, 0, "parameters, bucket 0"),
            std::vector<std::uint32_t>{find(late, 0, "optimizer, bucket 3")});
  // The next iteration computes with what was gathered.
  const Graph two = lower(plan, {}, 2);
  const Program& program = two.programs[0];
  const std::uint32_t gathered = find(two, 0, "parameters, bucket 3");
  std::int64_t waiting = 0;
  for (std::uint32_t node = gathered; node < program.size(); ++node) {
    for (const std::uint32_t wait : program.dependences(node))
      waiting += wait == gathered && program.kind[node] == NodeKind::compute;
  }
  EXPECT_EQ(waiting, 1);
}

// Behind the update, or what is gathered behind it; the next iteration waits for it.
TEST(DataPass, TimePassesBetweenSteps) {
  Plan plan = small_plan(1, 2, 1, 2);
  plan.zero_stage = 1;
  for (const bool overlap : {true, false}) {
    plan.overlap_parameters = overlap;
    plan.step_overhead = Time(0);
    const std::int64_t without = lower(plan, {}, 2).programs[0].size();
    plan.step_overhead = microseconds(7);
    const Graph graph = lower(plan, {}, 2);
    const Program& program = graph.programs[0];
    EXPECT_EQ(program.size(), without + 2);
    EXPECT_EQ(count_kind(graph, 0, "between steps"), 2);
    const std::uint32_t pause = find(graph, 0, "between steps");
    EXPECT_EQ(program.kind[pause], NodeKind::delay);
    EXPECT_EQ(program.lane[pause], Lane::none) << "no device is busy";
    EXPECT_EQ(program.payload[pause], 7'000'000U);
    const std::string last = overlap ? "optimizer, bucket 0" : "parameters, bucket 0";
    EXPECT_THAT(waits_of(graph, 0, "between steps"), testing::Contains(find(graph, 0, last)));
    std::int64_t waiting = 0;
    for (std::uint32_t node = pause; node < program.size(); ++node) {
      for (const std::uint32_t wait : program.dependences(node)) waiting += wait == pause;
    }
    EXPECT_GT(waiting, 0);
  }
}

TEST(DataPass, GathersRunOneBlockAheadOrNot) {
  Plan plan = small_plan(1, 2, 1, 1);
  plan.zero_stage = 3;
  const Graph ahead = lower(plan);
  // The gather of layer 1 starts when layer 0 does: once that one's weights and the embedding's pass are
  // there.
  EXPECT_NE(
      dump_graph(ahead).find("  3 forward 'f' 200 flops 200 bytes after 2 1\n"
                             "  4 forward 'gather weights' all-gather 4000 bytes in data gather after 1 2\n"
                             "  5 forward 'f' 200 flops 200 bytes after 4 3\n"),
      std::string::npos);
  plan.prefetch = false;
  EXPECT_NE(dump_graph(lower(plan))
                .find("  3 forward 'f' 200 flops 200 bytes after 2 1\n"
                      "  4 forward 'gather weights' all-gather 4000 bytes in data gather after 3 2\n"),
            std::string::npos);
}

// Two communicators: gathers follow gathers, reductions reductions.
TEST(DataPass, GathersOfPairedPassesDoNotWaitForReductions) {
  Plan plan = small_plan(1, 2, 1, 6, "combined-1f1b");
  plan.zero_stage = 3;
  const Graph graph = lower(plan);
  const Program& program = graph.programs[0];
  const auto kind_of = [&](std::uint32_t node) { return graph.collectives[program.payload[node]].kind; };
  std::int64_t gathers = 0, in_turn = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.kind[node] != NodeKind::collective || kind_of(node) != CollectiveKind::all_gather) continue;
    ++gathers;
    for (const std::uint32_t wait : program.dependences(node)) {
      if (program.kind[wait] != NodeKind::collective) continue;
      EXPECT_EQ(kind_of(wait), CollectiveKind::all_gather) << node;
      ++in_turn;
    }
  }
  EXPECT_GT(gathers, 2 * 6);
  EXPECT_EQ(in_turn, gathers - 1);
}

TEST(DataPass, CopiesOfATiedEmbeddingAreSummedAcrossStages) {
  SmallShape shape;
  shape.ties = true;
  const Graph graph = lower(small_plan(2, 2, 1, 2), shape);
  for (const std::size_t program : {0U, 1U}) {
    EXPECT_EQ(collective_bytes(graph, graph.programs[program], CollectiveKind::all_reduce, "embedding"),
              2000);
    EXPECT_EQ(waits_of(graph, program, "tied embedding gradients"),
              std::vector<std::uint32_t>{find(graph, program, "gradient bucket 0")});
  }
  // On one rank it is one weight: 500 elements fewer, no exchange across stages.
  const Graph one = lower(small_plan(1, 2, 1, 2), shape);
  EXPECT_EQ(collective_bytes(one, one.programs[0], CollectiveKind::all_reduce, "data"), 2500 * 4);
  EXPECT_EQ(count_kind(one, 0, "tied embedding gradients"), 0);
}

TEST(DataPass, StagesBetweenHaveNoPartInATiedEmbedding) {
  SmallShape shape;
  shape.ties = true;
  shape.layers = 4;
  const Graph graph = lower(small_plan(4, 1, 1, 4), shape);
  EXPECT_EQ(count_kind(graph, 0, "tied embedding gradients"), 1);
  EXPECT_EQ(count_kind(graph, 1, "tied embedding gradients"), 0);
  EXPECT_EQ(count_kind(graph, 3, "tied embedding gradients"), 1);
}

std::int64_t bytes_of_optimizer(const Graph& graph) {
  std::int64_t sum = 0;
  const Program& program = graph.programs[0];
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.kind[node] == NodeKind::compute && program.phase[node] == Phase::optimizer)
      sum += graph.works[program.payload[node]].bytes.value;
  }
  return sum;
}

// Of 3000 elements the gradient, the weights written and two states read and written, and a master copy,
// without which the weights are read.
TEST(DataPass, NarrowStatesAreUpdatedWithoutAMasterCopy) {
  Plan plan = small_plan(1, 4, 1, 3);
  plan.optimizer = Optimizer::adam;
  plan.precision = plan.weight_dtype = plan.gradient_dtype = DType::bf16;
  const std::int64_t with_masters = bytes_of_optimizer(lower(plan));
  plan.state_dtype = DType::bf16;
  EXPECT_EQ(with_masters - bytes_of_optimizer(lower(plan)), 3000 * (8 + 8 - 2));
}

// Of the embedding's 500 elements.
TEST(DataPass, OfSparseGradientsWhatWasReadIsExchangedAndUpdated) {
  Plan plan = small_plan(1, 4, 1, 3);
  plan.optimizer = Optimizer::sgd;
  ShardedModel model = small_sharded_model();
  for (const int updated : {120, 40, 500}) {
    model.shapes[model.blocks.front().shape].weights.front().updated = updated;
    const Graph graph = lower_sharded({model}, plan, 1).graph;
    EXPECT_DOUBLE_EQ(volume(graph), 2 * (2500.0 + updated) / 3000);
    EXPECT_EQ(bytes_of_optimizer(graph), (2500 + updated) * bytes_of_optimizer(lower(plan)) / 3000);
  }
}

TEST(DataPass, NormGradientsAreSummedOverTensorOnce) {
  SmallShape shape;
  shape.partial_elements = 16;
  const Graph graph = lower(small_plan(1, 2, 2, 3), shape);
  EXPECT_EQ(collective_bytes(graph, graph.programs[0], CollectiveKind::all_reduce, "tensor"), 2 * 16 * 4);
  EXPECT_EQ(count_kind(graph, 0, "norm gradients"), 1);
}

TEST(DataPass, DualPipeSumsTheTwoCopiesOfEveryStage) {
  SmallShape shape;
  shape.layers = 6;
  const Graph graph = lower(small_plan(2, 1, 1, 4, "dualpipe"), shape);
  for (const Program& program : graph.programs)
    EXPECT_EQ(collective_bytes(graph, program, CollectiveKind::all_reduce, "mirror"), (6000 + 1000) * 4);
}

TEST(DataPass, AsynchronousUpdatesRunBesideTheNextIteration) {
  const Graph graph = lower(small_plan(2, 1, 1, 4, "pipedream-2bw"), {}, 3);
  const Program& program = graph.programs[0];
  std::vector<std::uint32_t> updates;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.phase[node] == Phase::optimizer) updates.push_back(node);
  }
  ASSERT_EQ(updates.size(), 3U);
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    for (const std::uint32_t wait : program.dependences(node)) {
      if (wait == updates[0]) waiting.push_back(node);
    }
  }
  // Only the first forward pass of iteration 2, which computes with W(2).
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(program.phase[waiting[0]], Phase::forward);
  std::int64_t forwards_before = 0;
  for (std::uint32_t node = 0; node < waiting[0]; ++node) {
    forwards_before += program.kind[node] == NodeKind::compute && program.phase[node] == Phase::forward &&
                       program.layer[node] == 0;
  }
  EXPECT_EQ(forwards_before, 8);
}

TEST(DataPass, OffloadedOptimizersMoveShardsOverTheHostLink) {
  Plan plan = small_plan(1, 2, 1, 1);
  plan.zero_stage = 2;
  plan.offload_optimizer = true;
  plan.weight_dtype = DType::bf16;
  const LoweredJob job = lower_sharded({small_sharded_model()}, plan, 1, gigabytes_per_second(1));
  const Program& program = job.graph.programs[0];
  ASSERT_EQ(job.notes.size(), 1U);
  EXPECT_THAT(job.notes.front(), testing::HasSubstr("on the CPU takes no time here"));
  // Half of 3000 elements: gradients of 4 bytes down, weights of 2 bytes up, at 1 byte per nanosecond.
  const std::uint32_t down = find(job.graph, 0, "gradients to host");
  const std::uint32_t up = find(job.graph, 0, "weights from host");
  EXPECT_EQ(program.payload[down], 6'000'000U);
  EXPECT_EQ(program.payload[up], 3'000'000U);
  EXPECT_EQ(program.lane[down], Lane::host);
  EXPECT_EQ(std::count(program.phase.begin(), program.phase.end(), Phase::optimizer), 3);  // and one gather
  const LoweredJob unknown = lower_sharded({small_sharded_model()}, plan, 1);
  EXPECT_THAT(
      unknown.notes,
      testing::Contains("The device's link to its CPU is not known; 31.5 GB/s (PCIe 4.0) is assumed."));
}

TEST(DataPass, OffloadedActivationsLeaveAndReturn) {
  Plan plan = small_plan(1, 1, 1, 2);
  plan.offload_activations = true;
  const LoweredJob job = lower_sharded({small_sharded_model()}, plan, 1, gigabytes_per_second(1));
  const Program& program = job.graph.programs[0];
  std::int64_t out = 0, back = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.lane[node] != Lane::host) continue;
    const auto ps = static_cast<std::int64_t>(program.payload[node]);
    (program.phase[node] == Phase::forward ? out : back) += ps;
  }
  // Saved: 40, 80, 80 and 120 bytes for each of two micro-batches.
  EXPECT_EQ(out, 2 * 320 * 1000);
  EXPECT_EQ(back, out);
  EXPECT_EQ(UntimedExecution(job.graph).complaint(), "");
}

}  // namespace
}  // namespace armilla
