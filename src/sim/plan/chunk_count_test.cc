#include "sim/plan/chunk_count.h"

#include <gtest/gtest.h>

#include <array>

#include "base/units_text.h"
#include "collective/algorithm.h"

namespace armilla {
namespace {

constexpr double kGigabyte = 1e9;

Dimension dimension_of(DimensionKind kind, std::int64_t size) {
  return {"d", kind, size, Bandwidth(100 * kGigabyte), microseconds(1)};
}

PhaseLoad load(const std::string& algorithm, CollectiveKind kind, const Dimension& on) {
  const ScheduleRequest request{
      kind, static_cast<std::int32_t>(on.size), Bytes(std::int64_t{1'000'000'000}), 0, 0, false};
  return phase_load(Algorithm(algorithm, "test").schedule(request), 3, on);
}

// The closed forms at the head of each algorithm, with alpha the latency of the hops.
TEST(ChunkCount, LoadsOfSymmetricSchedulesAreTheirClosedForms) {
  const double beta = 1e-11 * 1e9;  // seconds for all bytes
  const PhaseLoad ring = load("ring", CollectiveKind::all_reduce, dimension_of(DimensionKind::ring, 8));
  EXPECT_EQ(ring.dimension, 3U);
  EXPECT_NEAR(ring.latency, 14e-6, 1e-12);
  EXPECT_NEAR(ring.chain, 2 * 7.0 / 8 * beta, 1e-9);
  EXPECT_EQ(ring.busy, ring.chain);
  const PhaseLoad halving =
      load("halving-doubling", CollectiveKind::reduce_scatter, dimension_of(DimensionKind::switched, 8));
  EXPECT_NEAR(halving.latency, 3 * 2e-6, 1e-12);
  EXPECT_NEAR(halving.busy, 7.0 / 8 * beta, 1e-9);
  const PhaseLoad direct =
      load("direct", CollectiveKind::all_to_all, dimension_of(DimensionKind::fully_connected, 8));
  EXPECT_NEAR(direct.latency, 1e-6, 1e-12);
  EXPECT_NEAR(direct.busy, 1.0 / 8 * beta, 1e-9);
  const PhaseLoad window =
      load("direct:window=2", CollectiveKind::all_to_all, dimension_of(DimensionKind::switched, 8));
  EXPECT_NEAR(window.latency, 4 * 2e-6, 1e-12);
  EXPECT_NEAR(window.busy, 7.0 / 8 * beta, 1e-9);
}

// A broadcast's root is busy with all its messages, one after the other; the chain ends with the last of
// them.
TEST(ChunkCount, LoadsOfOtherSchedulesFollowTheLongestChain) {
  const double beta = 1e-11 * 1e9;
  const PhaseLoad direct =
      load("direct", CollectiveKind::broadcast, dimension_of(DimensionKind::switched, 8));
  EXPECT_NEAR(direct.latency, 2e-6, 1e-12);
  EXPECT_NEAR(direct.busy, 7 * beta, 1e-9);
  EXPECT_NEAR(direct.chain, 7 * beta, 1e-9);
  const PhaseLoad tree =
      load("halving-doubling", CollectiveKind::broadcast, dimension_of(DimensionKind::switched, 8));
  EXPECT_NEAR(tree.latency, 3 * 2e-6, 1e-12);
  EXPECT_NEAR(tree.chain, 3 * beta, 1e-9);
}

// Only the root of a broadcast holds slots. Of the 2 (n - 1) steps of a ring, of alpha + beta C / n each, it
// takes n, and the ring passes the last block on in the others.
TEST(ChunkCount, WhoPassesOnHoldsUpNoChunk) {
  const double beta = 1e-11 * 1e9;
  const PhaseLoad ring = load("ring", CollectiveKind::broadcast, dimension_of(DimensionKind::switched, 8));
  EXPECT_NEAR(ring.latency, 14 * 2e-6, 1e-12);
  EXPECT_NEAR(ring.latency_behind, 6 * 2e-6, 1e-12);
  EXPECT_NEAR(ring.chain, 14.0 / 8 * beta, 1e-9);
  EXPECT_NEAR(ring.chain_behind, 6.0 / 8 * beta, 1e-9);
  EXPECT_NEAR(ring.busy, beta, 1e-9);
  // Four times the chunks take no more turns: a long ring is filled by many.
  const PhaseLoad wide = load("ring", CollectiveKind::broadcast, dimension_of(DimensionKind::switched, 64));
  EXPECT_GE(choose_chunks(std::array{ChunkLoads{wide, PhaseLoad{0, 2e-6, beta, beta}}}, 4), 32);
  // Leaves send first, and wait until the sum is back.
  const PhaseLoad tree =
      load("double-binary-tree", CollectiveKind::all_reduce, dimension_of(DimensionKind::switched, 8));
  EXPECT_EQ(tree.latency_behind, 0);
}

TEST(ChunkCount, LargeCallsOverSeveralDimensionsTakeMany) {
  const auto loads = [](double bytes) {
    return std::array{ChunkLoads{PhaseLoad{0, 6e-6, bytes * 2e-12, bytes * 2e-12},
                                 PhaseLoad{1, 30e-6, bytes * 4e-12, bytes * 4e-12},
                                 PhaseLoad{0, 6e-6, bytes * 2e-12, bytes * 2e-12}}};
  };
  EXPECT_EQ(choose_chunks(loads(1e3), 4), kFewestChunks);
  EXPECT_GT(choose_chunks(loads(1e10), 4), 32);
  std::int64_t last = kFewestChunks;
  for (double bytes = 1e3; bytes < 1e12; bytes *= 10) {
    const std::int64_t chunks = choose_chunks(loads(bytes), 4);
    EXPECT_GE(chunks, last) << bytes;
    last = chunks;
  }
  EXPECT_EQ(estimate_chunks(loads(1e3), 4, 4).delay, CollectiveLimit::latency);
  EXPECT_EQ(estimate_chunks(loads(1e10), 4, 4).delay, CollectiveLimit::pipelining);
  EXPECT_EQ(estimate_chunks(loads(1e6), 4096, 4).delay, CollectiveLimit::latency);
}

TEST(ChunkCount, BothDirectionsAndBothLegsCountByThemselves) {
  const double beta = 1e-11 * 1e9;
  const PhaseLoad ring =
      load("bidirectional-ring", CollectiveKind::all_reduce, dimension_of(DimensionKind::ring, 8));
  EXPECT_NEAR(ring.latency, 8e-6, 1e-12);
  EXPECT_NEAR(ring.busy, 7.0 / 8 * beta, 1e-9);
  const PhaseLoad sharp = load("sharp", CollectiveKind::all_reduce, dimension_of(DimensionKind::switched, 8));
  EXPECT_NEAR(sharp.latency, 2e-6, 1e-12);
  EXPECT_NEAR(sharp.busy, beta, 1e-9);
  EXPECT_NEAR(sharp.chain, 2 * beta, 1e-9);
  const PhaseLoad multicast =
      load("multicast", CollectiveKind::broadcast, dimension_of(DimensionKind::switched, 8));
  EXPECT_NEAR(multicast.latency, 2e-6, 1e-12);
  EXPECT_NEAR(multicast.busy, beta, 1e-9);
  EXPECT_NEAR(multicast.chain, 2 * beta, 1e-9);
}

// Of a torus of 4 x 16 most chunks begin on the short axis, whose share of the work is smaller.
TEST(ChunkCount, ChunksAreSharedOutSoThatAxesAreBusyAlike) {
  const auto way = [](std::uint32_t first, double a, std::uint32_t second, double b) {
    return ChunkLoads{PhaseLoad{first, 0, a, a}, PhaseLoad{second, 0, b, b}};
  };
  const std::array ways = {way(0, 3.0 / 4, 1, 15.0 / 16 / 4), way(1, 15.0 / 16, 0, 3.0 / 4 / 16)};
  const std::vector<std::uint32_t> taken = share_out(ways, 64);
  double x = 0, y = 0;
  for (const std::uint32_t w : taken) {
    x += w == 0 ? 3.0 / 4 : 3.0 / 4 / 16;
    y += w == 0 ? 15.0 / 16 / 4 : 15.0 / 16;
  }
  EXPECT_NEAR(x / y, 1, 0.05);
  EXPECT_EQ(taken, share_out(ways, 64));
  const std::array equal = {way(0, 1, 1, 0.25), way(1, 1, 0, 0.25)};
  EXPECT_EQ(share_out(equal, 4), (std::vector<std::uint32_t>{0, 1, 0, 1}));
}

}  // namespace
}  // namespace armilla
