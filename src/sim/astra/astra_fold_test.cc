// One rank for all under ASTRA-sim's rules: the same figures as with every rank, or not at all.
#include "sim/astra/astra_fold.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "sim/engine/order.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

using Random = std::mt19937;

std::int64_t between(Random& random, std::int64_t lowest, std::int64_t highest) {
  return std::uniform_int_distribution<std::int64_t>(lowest, highest)(random);
}
template <class T>
T one_of(Random& random, std::initializer_list<T> choices) {
  return choices.begin()[between(random, 0, static_cast<std::int64_t>(choices.size()) - 1)];
}

SystemLayer random_system(Random& random) {
  SystemLayer system;
  system.semantics = one_of(random, {Semantics::astra1, Semantics::astra2_unaware});
  const std::int64_t dimensions = between(random, 1, 3);
  for (std::int64_t d = 0; d < dimensions; ++d) {
    StreamDimension& dimension = system.dimensions.emplace_back();
    dimension.kind =
        one_of(random, {DimensionKind::ring, DimensionKind::fully_connected, DimensionKind::switched});
    dimension.size = between(random, 2, 5);
    dimension.bandwidth = one_of(random, {25.0, 50.0, 100.0, 33.3});
    dimension.latency_ns = one_of(random, {0.0, 100.0, 500.0, 17.0});
    dimension.links = dimension.kind == DimensionKind::ring ? 2 : dimension.size;
  }
  for (const CollectiveKind kind : kCollectiveKinds) {
    for (const StreamDimension& dimension : system.dimensions) {
      const bool power = (dimension.size & (dimension.size - 1)) == 0;
      StreamAlgorithm algorithm;
      algorithm.kind =
          one_of(random, {StreamAlgorithmKind::ring, StreamAlgorithmKind::direct,
                          power && kind != CollectiveKind::all_to_all ? StreamAlgorithmKind::halving_doubling
                                                                      : StreamAlgorithmKind::direct});
      system.algorithms[kind].push_back(algorithm);
    }
  }
  system.scheduling = one_of(random, {ChunkOrder::lifo, ChunkOrder::fifo});
  system.intra_dimension =
      one_of(random, {IntraDimensionOrder::fifo, IntraDimensionOrder::rg, IntraDimensionOrder::smallest_first,
                      IntraDimensionOrder::less_remaining_phase_first});
  system.inter_dimension = one_of(random, {InterDimensionOrder::ascending, InterDimensionOrder::ascending,
                                           InterDimensionOrder::themis, InterDimensionOrder::round_robin});
  system.decomposition = one_of(random, {Decomposition::bandwidth_aware, Decomposition::baseline});
  system.active_chunks = between(random, 1, 4);
  system.splits = between(random, 1, 6);
  system.queues_per_dimension = 2 * between(random, 1, 2);
  system.memory_bytes_per_second = one_of(random, {0.0, 1e11});
  return system;
}

// Computations and collectives over all ranks or along some dimensions; every node may wait for earlier ones.
Graph random_graph(Random& random, const SystemLayer& system) {
  Graph graph;
  graph.ranks = rank_count(system);
  std::vector<std::int64_t> sizes;
  for (const StreamDimension& dimension : system.dimensions) sizes.push_back(dimension.size);
  graph.families.push_back(world_family(graph.ranks));
  const auto masks = std::int64_t{1} << sizes.size();
  graph.families.push_back(grid_family(sizes, static_cast<std::uint32_t>(between(random, 1, masks - 1))));
  graph.program_of.assign(static_cast<std::size_t>(graph.ranks), 0);
  Program& program = graph.programs.emplace_back();
  const std::int64_t nodes = between(random, 1, 8);
  for (std::int64_t node = 0; node < nodes; ++node) {
    std::vector<std::uint32_t> after;
    for (std::int64_t earlier = 0; earlier < node; ++earlier) {
      if (between(random, 0, 2) == 0) after.push_back(static_cast<std::uint32_t>(earlier));
    }
    if (between(random, 0, 2) == 0) {
      program.add(NodeKind::delay, Phase::forward, 0, -1,
                  static_cast<std::uint64_t>(between(random, 0, 20)) * 100'000, after);
      continue;
    }
    CollectiveCall call;
    call.kind = one_of(random, {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                CollectiveKind::all_gather, CollectiveKind::all_to_all});
    call.bytes = Bytes(one_of<std::int64_t>(random, {1, 1000, 65536, 1 << 20, 999'999}));
    call.family = static_cast<std::uint32_t>(between(random, 0, 1));
    graph.collectives.push_back(call);
    program.add(NodeKind::collective, Phase::other, 0, -1, graph.collectives.size() - 1, after);
  }
  return graph;
}

TEST(StreamFold, OneRankFaresAsEveryRank) {
  std::int64_t folded = 0, foldable = 0, stuck = 0;
  for (unsigned seed = 0; seed < 1600; seed += kCaseStep) {
    Random random(seed);
    const SystemLayer system = random_system(random);
    const Graph graph = random_graph(random, system);
    SCOPED_TRACE(seed);
    Result all;
    const std::string error = error_of([&] { all = simulate(graph, system, {.fold = false}); });
    Result one;
    ASSERT_EQ(error_of([&] { one = simulate(graph, system); }), error);
    stuck += error == "no error" ? 0 : 1;
    ASSERT_EQ(one.iteration, all.iteration);
    ASSERT_EQ(one.class_of.size(), all.class_of.size());
    for (std::size_t rank = 0; rank < one.class_of.size(); ++rank) {
      const RankClass& a = one.classes[one.class_of[rank]];
      const RankClass& b = all.classes[all.class_of[rank]];
      ASSERT_EQ(a.finish, b.finish) << rank;
      ASSERT_EQ(a.compute, b.compute) << rank;
      ASSERT_EQ(a.communication, b.communication) << rank;
      ASSERT_EQ(a.exposed_communication, b.exposed_communication) << rank;
    }
    ASSERT_EQ(one.sent_per_dimension, all.sent_per_dimension);
    ASSERT_EQ(one.links.size(), all.links.size());
    for (std::size_t i = 0; i < one.links.size(); ++i) {
      EXPECT_EQ(one.links[i].name, all.links[i].name);
      EXPECT_EQ(one.links[i].bytes, all.links[i].bytes);
    }
    foldable += can_fold(graph, system) ? 1 : 0;
    folded += one.messages > 0 && one.messages < all.messages ? 1 : 0;
    if (one.messages < all.messages) {
      ASSERT_EQ(one.messages * graph.ranks, all.messages);
    }
  }
  // Else the test would compare runs with themselves.
  EXPECT_LT(stuck, 120 / kCaseStep);  // LIFO queues of ranks can wait for each other, as in ASTRA-sim
  EXPECT_GT(foldable, 300 / kCaseStep);
  EXPECT_GT(folded, 100 / kCaseStep);
}

TEST(StreamFold, RanksThatCanBeToldApartAreNotFolded) {
  SystemLayer system;
  system.dimensions.emplace_back();
  system.dimensions[0].size = 4;
  system.dimensions[0].bandwidth = 50;
  system.dimensions[0].latency_ns = 500;
  system.algorithms[CollectiveKind::all_reduce] = {{StreamAlgorithmKind::ring}};
  Graph graph;
  graph.ranks = 4;
  graph.families.push_back(world_family(4));
  graph.collectives.push_back({.kind = CollectiveKind::all_reduce, .bytes = Bytes(1 << 20)});
  graph.programs.emplace_back().add(NodeKind::collective, Phase::other, 0, -1, 0, {});
  graph.program_of.assign(4, 0);
  EXPECT_TRUE(can_fold(graph, system));

  SystemLayer other = system;
  other.semantics = Semantics::astra2_aware;
  EXPECT_FALSE(can_fold(graph, other));
  other = system;
  other.rendezvous = true;
  EXPECT_FALSE(can_fold(graph, other));
  other = system;
  other.algorithms[CollectiveKind::all_reduce] = {{StreamAlgorithmKind::double_binary_tree}};
  EXPECT_FALSE(can_fold(graph, other));
  other.algorithms[CollectiveKind::all_reduce] = {{StreamAlgorithmKind::ring, true}};
  EXPECT_FALSE(can_fold(graph, other));

  Graph two = graph;
  two.programs.push_back(two.programs.front());
  two.program_of = {0, 0, 0, 1};
  EXPECT_FALSE(can_fold(two, system));
  Graph sends = graph;
  sends.transfers.push_back({1, 0, Bytes(8)});
  sends.programs.front().add(NodeKind::send, Phase::other, 0, -1, 0, {});
  EXPECT_FALSE(can_fold(sends, system));
}

// Does things at given moments.
struct Watched : EventHandler {
  EventQueue queue;
  Order order{OrderRule::watched, 1, queue};
  std::uint32_t target = queue.add_handler(*this);
  std::vector<std::function<void()>> steps;

  void at(Time time, std::function<void()> step) {
    queue.schedule(time, target, steps.size());
    steps.push_back(std::move(step));
  }
  void handle(std::uint64_t step) override { steps[step](); }
};

TEST(Order, PartsWhereDifferentRanksScheduleOneMomentAtOnce) {
  Watched ties;
  ties.at(Time(1), [&] {
    ties.order.watch(Time(10), Order::kOwn);
    ties.order.watch(Time(10), Order::kOwn);
  });
  ties.at(Time(2), [&] {
    ties.order.watch(Time(10), 3);
    ties.order.watch(Time(11), Order::kOwn);
    EXPECT_FALSE(ties.order.parted());
    ties.order.watch(Time(10), 4);
  });
  EXPECT_TRUE(ties.queue.run());
  EXPECT_TRUE(ties.order.parted());

  Watched meeting;
  meeting.at(Time(1), [&] { meeting.order.watch(Time(10), Order::kOwn); });
  meeting.at(Time(10), [&] {
    meeting.order.meet();
    EXPECT_FALSE(meeting.order.parted());
  });
  meeting.at(Time(11), [&] { meeting.order.watch(Time(22), Order::kOwn); });
  meeting.at(Time(12), [&] { meeting.order.watch(Time(22), Order::kOwn); });
  meeting.at(Time(22), [&] { meeting.order.meet(); });
  EXPECT_TRUE(meeting.queue.run());
  EXPECT_TRUE(meeting.order.parted());
}

}  // namespace
}  // namespace armilla
