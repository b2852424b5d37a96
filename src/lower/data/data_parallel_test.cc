// Plain data parallelism, as PyTorch's DistributedDataParallel does it: the hybrid lowering with
// degrees of 1.
#include <gtest/gtest.h>

#include <numeric>

#include "base/error_testing.h"
#include "ir/graph_testing.h"
#include "lower/hybrid.h"
#include "lower/shard/small_model_testing.h"

namespace armilla {
namespace {

Plan data_parallel_plan(std::int64_t ranks, std::int64_t batch, std::int64_t micro_batches) {
  Plan plan;
  plan.ranks = ranks;
  plan.batch = batch;
  plan.micro_batches = micro_batches;
  return plan;
}

Graph lowered(const Model& model, const Plan& plan) {
  return lower_hybrid(model, plan).graph;
}

std::vector<std::int64_t> bucket_bytes(const Plan& plan) {
  std::vector<std::int64_t> bytes;
  for (const CollectiveCall& call : lowered(small_model(4), plan).collectives)
    bytes.push_back(call.bytes.value);
  return bytes;
}

TEST(DataParallel, AnIterationIsForwardBackwardExchangeAndUpdate) {
  const Graph graph = lowered(small_model(4), data_parallel_plan(2, 4, 1));
  EXPECT_EQ(dump_graph(graph),
            "graph of 2 ranks, 1 programs\n"
            "program rank\n"
            "  0 forward 'embedding' 0 flops 256 bytes\n"
            "  1 forward 'a' 512 flops 544 bytes after 0\n"
            "  2 forward 'relu' 32 flops 256 bytes after 1\n"
            "  3 forward 'b' 512 flops 544 bytes after 2\n"
            "  4 input gradient 'b' 512 flops 544 bytes after 3\n"
            "  5 weight gradient 'b' 512 flops 544 bytes after 4\n"
            "  6 input gradient 'relu' 64 flops 384 bytes after 5\n"
            "  7 input gradient 'a' 512 flops 544 bytes after 6\n"
            "  8 weight gradient 'a' 512 flops 544 bytes after 7\n"
            "  9 weight gradient 'embedding' 0 flops 384 bytes after 8\n"
            "  10 gradient exchange 'gradient bucket 0' all-reduce 3488 bytes in data after 9\n"
            "  11 optimizer 'optimizer, bucket 0' 5232 flops 17440 bytes after 10 9\n");
}

TEST(DataParallel, ABucketStartsWhenItsLastGradientExists) {
  Plan plan = data_parallel_plan(2, 4, 1);
  plan.first_bucket = Bytes(256);
  plan.bucket = Bytes(256);
  const Graph graph = lowered(small_model(4), plan);
  const Program& program = graph.programs[0];
  std::vector<std::uint32_t> after;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.kind[node] == NodeKind::collective) after.push_back(program.dependences(node)[0]);
  }
  // Bias and the tied weight are complete with the weight gradient of a, their first use (node 8); the table
  // last (node 10, after the first exchange).
  EXPECT_EQ(after, (std::vector<std::uint32_t>{8, 10}));
  plan.overlap = false;
  const Graph late = lowered(small_model(4), plan);
  for (std::uint32_t node = 0; node < late.programs[0].size(); ++node) {
    if (late.programs[0].kind[node] == NodeKind::collective) {
      EXPECT_EQ(late.programs[0].dependences(node)[0], 9U);
    }
  }
}

TEST(DataParallel, BucketsCloseOnceTheyReachTheirSize) {
  Plan plan = data_parallel_plan(2, 4, 1);
  plan.first_bucket = Bytes(1);
  plan.bucket = Bytes(289);
  // In order of completion: bias (32 B), weight (256 B), table (3200 B).
  EXPECT_EQ(bucket_bytes(plan), (std::vector<std::int64_t>{32, 256 + 3200}));
}

TEST(DataParallel, EveryTrainableParameterIsInExactlyOneBucket) {
  for (const std::int64_t size : {1, 32, 100, 257, 5000}) {
    Plan plan = data_parallel_plan(2, 4, 1);
    plan.bucket = Bytes(size);
    plan.first_bucket = Bytes(size / 2 + 1);
    const std::vector<std::int64_t> bytes = bucket_bytes(plan);
    EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}), 32 + 256 + 3200) << size;
  }
}

TEST(DataParallel, MicroBatchesAccumulateAndExchangeOnce) {
  const Graph graph = lowered(small_model(2), data_parallel_plan(2, 6, 3));
  int forwards = 0, exchanges = 0;
  for (std::uint32_t node = 0; node < graph.programs[0].size(); ++node) {
    forwards += graph.programs[0].phase[node] == Phase::forward;
    exchanges += graph.programs[0].kind[node] == NodeKind::collective;
  }
  EXPECT_EQ(forwards, 12);
  EXPECT_EQ(exchanges, 1);
}

TEST(DataParallel, ASingleStageIsNotCut) {
  Plan plan = data_parallel_plan(2, 4, 1);
  const std::string usual = dump_graph(lowered(small_model(4), plan));
  plan.stage_blocks = {1};
  EXPECT_EQ(dump_graph(lowered(small_model(4), plan)), usual);
}

TEST(DataParallel, OneRankExchangesNothing) {
  const Graph graph = lowered(small_model(4), data_parallel_plan(1, 4, 1));
  EXPECT_TRUE(graph.collectives.empty());
}

TEST(DataParallel, PrecisionScalesTrafficAndArithmeticType) {
  Plan plan = data_parallel_plan(1, 4, 1);
  plan.precision = DType::fp16;
  const Graph graph = lowered(small_model(4), plan);
  const Work& first = graph.works[graph.programs[0].payload[1]];
  EXPECT_EQ(first.dtype, DType::fp16);
  EXPECT_EQ(first.bytes, Bytes(272));
}

TEST(DataParallel, EqualWorkIsStoredOnce) {
  const Graph graph = lowered(small_model(4), data_parallel_plan(1, 4, 1));
  EXPECT_LT(graph.works.size(), graph.programs[0].size());
}

TEST(DataParallel, AModelReadForAnotherBatchIsRefused) {
  EXPECT_EQ(error_of([] { lowered(small_model(4), data_parallel_plan(2, 8, 1)); }),
            "plan: the model was read for 4 samples, a micro-batch has 8");
}

TEST(DataParallel, AnAbsurdGraphIsRefused) {
  EXPECT_THROW(lowered(small_model(1), data_parallel_plan(2, 1'000'000'000, 1'000'000'000)), Error);
}

}  // namespace
}  // namespace armilla
