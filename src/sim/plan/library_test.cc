#include "sim/plan/library.h"

#include <gtest/gtest.h>

#include <tuple>

#include "sim/plan/collective_plan_testing.h"

namespace armilla {
namespace {

// From node to node, rings of all ranks, one per NIC, carry more than a hierarchy: of an all-gather (n - 1) /
// n. Trees carry half of an all-reduce between two nodes. Whoever names an algorithm gets its own bytes.
TEST(CollectivePlan, NodesExchangeWhatTheLibrarysRingsAndTreesCarry) {
  constexpr std::int64_t kInside = 4;
  const auto carried = [&](CollectiveKind kind, std::int64_t nodes, Time level, bool wish) {
    Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, kInside, 400),
                                  dimension_like("rail", DimensionKind::switched, nodes, 50)});
    machine.dimensions[1].protocols = {CollectiveProtocol{"Simple", Time(0), Time(0), 1, level, Time(0)}};
    CollectiveOptions options;
    if (wish) options.algorithms = {"halving-doubling"};
    const Result result = run(machine, call_of(kind, kGibibyte), options);
    for (const LinkUse& link : result.links) {
      if (link.dimension == 1) return static_cast<double>(link.bytes.value) * kInside / kGibibyte;
    }
    return 0.0;
  };
  constexpr double kRounded = 1e-6;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    EXPECT_NEAR(carried(kind, 2, Time(0), false), 7.0 / 8, kRounded);
    EXPECT_NEAR(carried(kind, 8, Time(0), false), 31.0 / 32, kRounded);
    EXPECT_NEAR(carried(kind, 8, Time(0), true), 7.0 / 8, kRounded);
  }
  constexpr CollectiveKind kReduce = CollectiveKind::all_reduce;
  EXPECT_NEAR(carried(kReduce, 2, Time(0), false), 1, kRounded);
  EXPECT_NEAR(carried(kReduce, 2, microseconds(1e6), false), 7.0 / 4, kRounded);  // trees that never pay
  EXPECT_NEAR(carried(kReduce, 8, Time(0), false), 31.0 / 16, kRounded);
  EXPECT_NEAR(carried(kReduce, 8, Time(0), true), 7.0 / 4, kRounded);
  EXPECT_NEAR(carried(CollectiveKind::all_to_all, 8, Time(0), false), 7.0 / 8 * kInside, kRounded);
}

// Every member of the chain takes the network's step, those inside nodes as well, whatever their chain; all
// bytes pass every NIC. Where roots take turns no member is done before the others.
TEST(CollectivePlan, ChainsBetweenNodesTakeAStepForEveryMember) {
  const auto time_of = [](CollectiveKind kind, Time step, bool takes_turns) {
    Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, 4, 400),
                                  dimension_like("rail", DimensionKind::switched, 8, 50)});
    for (Dimension& dimension : machine.dimensions) dimension.latency = Time(0);
    machine.dimensions[1].protocols = {
        CollectiveProtocol{"Simple", Time(0), step, 1, Time(0), microseconds(3)}};
    CollectiveOptions options;
    options.measured = true;
    CollectiveCall call = call_of(kind, 200'000'000);
    call.takes_turns = takes_turns;
    return in_seconds(run(machine, call, options).iteration);
  };
  constexpr double kStep = 10e-6;
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    const double with = time_of(kind, microseconds(10), false), without = time_of(kind, Time(0), false);
    EXPECT_NEAR(with - without, 31 * kStep, 1e-9);
  }
  const double with = time_of(CollectiveKind::broadcast, microseconds(10), true);
  const double without = time_of(CollectiveKind::broadcast, Time(0), true);
  EXPECT_NEAR(with - without, 31 * kStep, 1e-9);
  // Four NICs of 50 GB/s take 1 ms for it.
  EXPECT_NEAR(without, 1e-3, 0.2e-3);
}

// What is carried, the time and the name are those of the same way: more bytes never take less time where
// trees begin to pay.
TEST(CollectivePlan, RingsGiveWayToTreesWithoutAStep) {
  Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, 8, 400),
                                dimension_like("rail", DimensionKind::switched, 2, 4)});
  machine.dimensions[1].protocols = {
      CollectiveProtocol{"plain", Time(0), microseconds(20), 1, microseconds(10'000), microseconds(3)}};
  Time before;
  for (std::int64_t mebibytes = 64; mebibytes <= 1024; mebibytes += 64) {
    const Result result = run(machine, call_of(CollectiveKind::all_reduce, mebibytes << 20));
    const std::string_view crosses =
        mebibytes < 690 ? "(as rings)" : "(as trees)";  // 20 ms pay from 697 MiB on
    EXPECT_TRUE(result.collectives[0].algorithm.find(crosses) != std::string::npos)
        << mebibytes << " MiB: " << result.collectives[0].algorithm;
    EXPECT_GT(result.iteration, before) << mebibytes << " MiB";
    before = result.iteration;
  }
  CollectiveOptions named;
  named.algorithms = {"halving-doubling"};
  const Result own = run(machine, call_of(CollectiveKind::all_reduce, kGibibyte), named);
  EXPECT_EQ(own.collectives[0].algorithm.find("(as"), std::string::npos);
}

// Two servers of two A100 (microsoft/vidur, a100_dgx): NCCL's all-reduces have rings up to 8 MiB, trees up to
// 16, rings up to 64 and trees again, to the byte. Rings send 2 (n - 1) / n = 1.5 times as much; NCCL expects
// 0.92 times 0.7, 0.8, 0.7, 0.7 and 0.8 of their bandwidth of trees.
TEST(CollectivePlan, TreesAreTakenWhereTheLibraryExpectsMuchOfThem) {
  Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, 2, 400),
                                dimension_like("rail", DimensionKind::switched, 2, 4)});
  machine.dimensions[1].protocols = {CollectiveProtocol{"Simple", Time(0), Time(0), 1}};
  const auto crosses = [&](std::int64_t bytes) {
    const std::string way = run(machine, call_of(CollectiveKind::all_reduce, bytes)).collectives[0].algorithm;
    return way.find("(as trees)") != std::string::npos ? "trees" : "rings";
  };
  constexpr std::int64_t kMebibyte = 1 << 20;
  constexpr std::int64_t kLittle = 4096;
  for (const auto& [from, way, before] :
       {std::tuple(8, "trees", "rings"), {16, "rings", "trees"}, {64, "trees", "rings"}}) {
    EXPECT_STREQ(crosses(from * kMebibyte), way) << from << " MiB";
    EXPECT_STREQ(crosses(from * kMebibyte - kLittle), before) << "below " << from << " MiB";
  }
}

// NCCL expects no more than 23.6 GB/s of a channel's tree on two nodes of A100 (perChMaxTreeBws), as if its
// bytes went up and down one after the other, of which rings on adapters of 200 Gb/s have more. On slower
// ones it expects trees to be faster. Megatron-DeepSpeed's all-reduces of 201 MB among 16 A100 with four
// adapters a node took 4.06 ms (vTrain's measurements: steps of two sizes of micro-batches apart), which is
// rings; trees would take 2.4.
TEST(CollectivePlan, TreesAreNotTakenWhereTheLibraryExpectsLittleOfAChannel) {
  const auto all_reduce = [](std::int64_t nodes, double adapter, std::int64_t bytes) {
    Machine machine = machine_of({dimension_like("nvswitch", DimensionKind::switched, 8, 240),
                                  dimension_like("rail", DimensionKind::switched, nodes, 12.5 * adapter)});
    Dimension& rail = machine.dimensions[1];
    rail.efficiency = 0.92;
    rail.protocols = {CollectiveProtocol{"Simple", microseconds(15), microseconds(14), 1, microseconds(14),
                                         Time(3'400'000)}};
    rail.trees_of_two = gigabytes_per_second(11.8);
    rail.trees_of_more = gigabytes_per_second(8.9);
    return run(machine, call_of(CollectiveKind::all_reduce, bytes));
  };
  const auto crosses = [&](std::int64_t nodes, double adapter, std::int64_t bytes) {
    const std::string way = all_reduce(nodes, adapter, bytes).collectives[0].algorithm;
    return way.find("(as trees)") != std::string::npos ? "trees" : "rings";
  };
  for (const std::int64_t megabytes : {25, 50, 101, 201, 403}) {
    EXPECT_STREQ(crosses(2, 1, megabytes * 1'000'000), "rings") << megabytes;
    EXPECT_STREQ(crosses(2, 0.5, megabytes * 1'000'000), "trees") << megabytes;
    EXPECT_STREQ(crosses(4, 0.5, megabytes * 1'000'000), "rings") << megabytes;
  }
  EXPECT_STREQ(crosses(2, 1, 1'000'000), "trees");
  EXPECT_NEAR(in_seconds(all_reduce(2, 1, 201'000'000).iteration), 4.06e-3, 0.3e-3);
}

}  // namespace
}  // namespace armilla
