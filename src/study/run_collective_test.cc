#include "study/run_collective.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/study_yaml.h"

namespace armilla {
namespace {

Study ring(std::string_view more) {
  return read_machine_study(Config::parse(
      "machine: {name: ring, device: a100-80gb-sxm, elastic: true, dimensions: [{name: ring, kind: Ring, "
      "size: "
      "8, bandwidth: 50GB/s, latency: 500ns}]}\ncollectives: {algorithms: [ring], chunks: 1}\n" +
          std::string(more),
      "ring.yaml", {}));
}

// 2 (n - 1) steps of S / n bytes.
TEST(RunCollective, RingAllReduceFollowsTheClosedForm) {
  for (const std::int64_t n : {2, 8, 4096}) {
    const auto run = run_collective(ring("plan: {ranks: " + std::to_string(n) + "}\n"),
                                    CollectiveKind::all_reduce, Bytes(4096 * 50'000));
    EXPECT_EQ(run.result.iteration, 2 * (n - 1) * (nanoseconds(4096 * 1000 / n) + nanoseconds(500))) << n;
    EXPECT_EQ(run.result.ranks, n);
    EXPECT_EQ(run.result.messages, 2 * (n - 1)) << "one rank stands for all";
  }
}

TEST(RunCollective, TakesTheWholeMachineUnlessToldOtherwise) {
  const auto run = run_collective(ring(""), CollectiveKind::all_gather, Bytes(800));
  EXPECT_EQ(run.result.ranks, 8);
  EXPECT_EQ(run.workload, "all-gather of 800 B");
  EXPECT_FALSE(has_model(run));
}

TEST(RunCollective, ABarrierMovesNothing) {
  const auto run = run_collective(ring(""), CollectiveKind::barrier, Bytes(800));
  EXPECT_GT(run.result.iteration, Time(0));
  EXPECT_EQ(run.workload, "barrier");
  EXPECT_EQ(run.graph.collectives[0].bytes, Bytes(0));
}

TEST(RunCollective, RefusesSectionsOfAModel) {
  EXPECT_EQ(
      error_of([] { ring("model: resnet18\n"); }),
      "ring.yaml:3:1: model: unknown key 'model'\n  hint: known: collectives, compute, machine, network, "
      "plan, what_if");
}

}  // namespace
}  // namespace armilla
