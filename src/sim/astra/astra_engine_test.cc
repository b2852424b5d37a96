// The engine of the ASTRA-sim semantics against closed forms and against figures measured on ASTRA-sim 2.x,
// on cases small enough to be written down here. Whole oracles: astra2_collectives_test.cc and src/study.
#include "sim/astra/astra_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error_testing.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

constexpr double kBandwidth = 50, kLatency = 500;

SystemLayer system_with(DimensionKind kind, std::int64_t ranks, StreamAlgorithm algorithm = {}) {
  SystemLayer system;
  StreamDimension& dimension = system.dimensions.emplace_back();
  dimension.kind = kind;
  dimension.size = ranks;
  dimension.bandwidth = kBandwidth;
  dimension.latency_ns = kLatency;
  for (const CollectiveKind collective : kCollectiveKinds) system.algorithms[collective] = {algorithm};
  system.memory_bytes_per_second = 1.6e12;
  return system;
}

// All ranks run one program; `add` fills it.
struct Job {
  explicit Job(std::int64_t ranks) {
    graph.ranks = ranks;
    graph.program_of.resize(static_cast<std::size_t>(ranks));
    graph.families = {world_family(ranks)};
    graph.programs.emplace_back();
  }
  Program& program() { return graph.programs.front(); }
  void collective(CollectiveKind kind, std::int64_t bytes, std::vector<std::uint32_t> after = {}) {
    CollectiveCall call;
    call.kind = kind;
    call.bytes = Bytes(bytes);
    graph.collectives.push_back(call);
    program().add(NodeKind::collective, Phase::other, 0, -1, graph.collectives.size() - 1, after);
  }
  Graph graph;
};

std::vector<std::int64_t> finish_ns(const Graph& graph, const SystemLayer& system) {
  const Result result = simulate(graph, system);
  std::vector<std::int64_t> times;
  for (const std::uint32_t ranks : result.class_of)
    times.push_back(result.classes[ranks].finish.value / 1000);
  return times;
}

std::int64_t last_ns(const Graph& graph, const SystemLayer& system) {
  const std::vector<std::int64_t> times = finish_ns(graph, system);
  return *std::max_element(times.begin(), times.end());
}

std::int64_t one_collective(CollectiveKind kind, std::int64_t bytes, const SystemLayer& system) {
  const std::int64_t ranks = rank_count(system);
  Job job(ranks);
  job.collective(kind, bytes * (kind == CollectiveKind::all_gather ? ranks : 1));
  return last_ns(job.graph, system);
}

// c(m, h): time of a message of m bytes over h hops; r(m): of reducing m bytes.
std::int64_t c(std::int64_t bytes, double hops = 1) {
  return static_cast<std::int64_t>(hops * kLatency +
                                   static_cast<double>(bytes) / (kBandwidth * (1 << 30) / 1e9));
}
std::int64_t r(std::int64_t bytes) {
  return 3 * static_cast<std::int64_t>(static_cast<double>(bytes) / 1.6e12 * 1e9);
}

TEST(AstraEngine, RingsFollowTheClosedForms) {
  for (const std::int64_t n : {2, 3, 5, 8, 13}) {
    const SystemLayer system = system_with(DimensionKind::ring, n);
    const std::int64_t e = system.endpoint_delay_ns, bytes = n * 300'000, part = bytes / n;
    EXPECT_EQ(one_collective(CollectiveKind::all_reduce, bytes, system),
              e + 2 * (n - 1) * (c(part) + e) + (n - 1) * r(part));
    EXPECT_EQ(one_collective(CollectiveKind::reduce_scatter, bytes, system),
              e + (n - 1) * (c(part) + e + r(part)));
    EXPECT_EQ(one_collective(CollectiveKind::all_gather, bytes, system), e + (n - 1) * (c(bytes) + e));
    EXPECT_EQ(one_collective(CollectiveKind::all_to_all, bytes, system), e + n * (n - 1) / 2 * (c(part) + e));
  }
}

TEST(AstraEngine, DirectFollowsTheClosedForms) {
  for (const std::int64_t n : {2, 3, 8}) {
    const SystemLayer system =
        system_with(DimensionKind::switched, n, {StreamAlgorithmKind::direct, false, -1});
    const std::int64_t e = system.endpoint_delay_ns, bytes = n * 300'000, part = bytes / n, w = c(part, 2);
    EXPECT_EQ(one_collective(CollectiveKind::all_reduce, bytes, system), e + w + e + r(part) + w + e);
    EXPECT_EQ(one_collective(CollectiveKind::reduce_scatter, bytes, system), e + w + e + r(part));
    EXPECT_EQ(one_collective(CollectiveKind::all_gather, bytes, system), e + c(bytes, 2) + e);
    EXPECT_EQ(one_collective(CollectiveKind::all_to_all, bytes, system), e + w + e);
  }
}

TEST(AstraEngine, AWindowSendsThatManyAtATime) {
  const SystemLayer system = system_with(DimensionKind::switched, 7, {StreamAlgorithmKind::direct, false, 2});
  const std::int64_t e = system.endpoint_delay_ns;
  EXPECT_EQ(one_collective(CollectiveKind::all_to_all, 7'000'000, system), e + 3 * (c(1'000'000, 2) + e));
}

TEST(AstraEngine, HalvingDoublingFollowsTheClosedForms) {
  for (const std::int64_t n : {2, 4, 16}) {
    const SystemLayer system =
        system_with(DimensionKind::fully_connected, n, {StreamAlgorithmKind::halving_doubling, false, -1});
    const std::int64_t e = system.endpoint_delay_ns, bytes = 1 << 20;
    std::int64_t scatter = e, gather = e, all = e;
    for (std::int64_t part = bytes / 2; part >= bytes / n; part /= 2) {
      const std::int64_t reduced = part == bytes / 2 ? 0 : r(part);  // the first is not charged
      scatter += c(part) + e + reduced;
      all += 2 * (c(part) + e) + reduced;
    }
    for (std::int64_t part = bytes; part < bytes * n; part *= 2) gather += c(part) + e;
    EXPECT_EQ(one_collective(CollectiveKind::all_reduce, bytes, system), all) << n;
    EXPECT_EQ(one_collective(CollectiveKind::all_gather, bytes, system), gather) << n;
  }
}

// What deadlocks, aborts or crashes ASTRA-sim: group sizes that are no power of two, an all-to-all by
// halving-doubling, kinds without an implementation.
TEST(AstraEngine, FinishesWhereThePeerDoesNot) {
  for (const StreamAlgorithmKind kind :
       {StreamAlgorithmKind::halving_doubling, StreamAlgorithmKind::double_binary_tree}) {
    for (const std::int64_t n : {3, 6, 8, 12}) {
      const SystemLayer system = system_with(DimensionKind::switched, n, {kind, false, -1});
      for (const CollectiveKind collective : kCollectiveKinds) {
        const std::int64_t time = one_collective(collective, 1'000'000, system);
        EXPECT_GE(time, c(collective == CollectiveKind::barrier ? 0 : 1'000'000 / n))
            << name_of(collective) << ' ' << n;
        EXPECT_LT(time, 100 * c(1'000'000)) << name_of(collective) << ' ' << n;
      }
    }
  }
}

TEST(AstraEngine, TheTreesRootsTakeTurns) {
  SystemLayer system =
      system_with(DimensionKind::switched, 8, {StreamAlgorithmKind::double_binary_tree, false, -1});
  Job job(8);
  job.collective(CollectiveKind::all_reduce, 1'000'000);
  const std::vector<std::int64_t> odd = finish_ns(job.graph, system);
  EXPECT_EQ(std::min_element(odd.begin(), odd.end()) - odd.begin(), 7);  // the root leaves first
  const std::uint32_t first = 0;
  job.collective(CollectiveKind::all_reduce, 1'000'000, {first});
  const std::vector<std::int64_t> even = finish_ns(job.graph, system);
  EXPECT_EQ(std::min_element(even.begin(), even.end()) - even.begin(), 0);
}

TEST(AstraEngine, ChunksTakeTheirTurnsAndARemainderIsAFullChunk) {
  SystemLayer system = system_with(DimensionKind::ring, 8);
  const std::int64_t one = one_collective(CollectiveKind::all_reduce, 149'796, system);
  system.splits = 7;
  EXPECT_EQ(one_collective(CollectiveKind::all_reduce, 1 << 20, system), 8 * one);
  system.active_chunks = 8;
  EXPECT_EQ(one_collective(CollectiveKind::all_reduce, 1 << 20, system), one);
}

TEST(AstraEngine, SmallAllGathersEnd) {
  SystemLayer system = system_with(DimensionKind::ring, 4);
  system.splits = 100;
  EXPECT_GT(one_collective(CollectiveKind::all_gather, 3, system), 0);
}

// Measured: astra2/traces two_ar_FIFO, queues2, group_endpoint1000, rendezvous, injection2, shared_bus.
TEST(AstraEngine, MeasuredOnAstraSim2) {
  SystemLayer system = system_with(DimensionKind::ring, 8);
  system.splits = 4;
  EXPECT_EQ(one_collective(CollectiveKind::all_reduce, 1 << 20, system), 64'440);
  SystemLayer rendezvous = system;
  rendezvous.rendezvous = true;
  EXPECT_EQ(one_collective(CollectiveKind::all_reduce, 1 << 20, rendezvous), 100'952);
  SystemLayer injection = system;
  injection.endpoint_delay_ns = 20;
  EXPECT_EQ(one_collective(CollectiveKind::all_reduce, 1 << 20, injection), 65'040);
  SystemLayer bus = system;
  bus.shared_bus = true;
  bus.bus_l_ns = 10;
  bus.bus_o_ns = 5;
  bus.bus_g_ns = 2;
  bus.bus_gap_per_byte_ns = 0.01;
  EXPECT_EQ(one_collective(CollectiveKind::all_reduce, 1 << 20, bus), 135'488);
  SystemLayer queues = system;
  queues.queues_per_dimension = 2;
  queues.active_chunks = 2;
  EXPECT_EQ(one_collective(CollectiveKind::all_reduce, 1 << 24, queues), 602'908);
  system.active_chunks = 4;
  Job job(8);
  for (const std::int64_t bytes : {1 << 22, 1 << 26, 1 << 20})
    job.collective(CollectiveKind::all_reduce, bytes);
  EXPECT_EQ(last_ns(job.graph, system), 640'663);
}

// Streams have their numbers of queues as packed as there are: those of the second dimension begin at 65,536.
TEST(AstraEngine, AsManyQueuesAsCanBeAskedForAreNoOthersThanMany) {
  SystemLayer system = system_with(DimensionKind::ring, 4);
  system.dimensions.push_back(system.dimensions.front());
  for (auto& [kind, algorithms] : system.algorithms) algorithms.push_back(algorithms.front());
  system.splits = system.active_chunks = 4;
  Job job(16);
  for (const std::int64_t bytes : {1 << 25, 1 << 27, 1 << 25})
    job.collective(CollectiveKind::all_reduce, bytes);
  system.queues_per_dimension = 64;
  const std::int64_t many = last_ns(job.graph, system);
  for (const std::int64_t queues : {1 << 14, 1 << 15, 1 << 16}) {
    system.queues_per_dimension = queues;
    EXPECT_EQ(last_ns(job.graph, system), many) << queues;
  }
}

TEST(AstraEngine, CommunicatorsRunOnOneRingWithAFixedEndpointDelay) {
  SystemLayer system = system_with(DimensionKind::ring, 8);
  system.splits = 4;
  system.endpoint_delay_ns = 1000;
  Job job(8);
  GroupFamily halves{"halves", {{0, 1, 2, 3}, {4, 5, 6, 7}}, {0, 0, 0, 0, 1, 1, 1, 1}, 0};
  job.graph.families.push_back(halves);
  job.collective(CollectiveKind::all_reduce, 1 << 20);
  job.graph.collectives[0].family = 1;
  EXPECT_EQ(last_ns(job.graph, system), 49'000);
}

// In ASTRA-sim this deadlocks: ranks with different histories number the next collective differently.
TEST(AstraEngine, UnevenHistoriesDoNotDeadlock) {
  Job job(4);
  GroupFamily pair{"pair", {{2, 3}}, {-1, -1, 0, 0}, 0};
  job.graph.families.push_back(pair);
  job.collective(CollectiveKind::all_reduce, 1 << 20);
  job.graph.programs.push_back(job.graph.programs[0]);
  CollectiveCall extra;
  extra.bytes = Bytes(1 << 20);
  extra.family = 1;
  job.graph.collectives.push_back(extra);
  Program& second = job.graph.programs[1];
  second = Program();
  const std::uint32_t first = second.add(NodeKind::collective, Phase::other, 0, -1, 1, {});
  second.add(NodeKind::collective, Phase::other, 0, -1, 0, std::span(&first, 1));
  job.graph.program_of = {0, 0, 1, 1};
  EXPECT_GT(last_ns(job.graph, system_with(DimensionKind::ring, 4)), 0);
}

TEST(AstraEngine, ARunThatCannotFinishSaysWhoWaitsForWhom) {
  Job job(2);
  job.collective(CollectiveKind::all_reduce, 1000);
  Program& other = job.graph.programs.emplace_back();
  other.add(NodeKind::delay, Phase::other, 0, -1, 1000, {});
  job.graph.program_of = {0, 1};
  EXPECT_EQ(
      error_of([&] { simulate(job.graph, system_with(DimensionKind::ring, 2)); }),
      "simulation: the run cannot finish: rank 0 waits in '' (node 0) for rank 1, which has finished\n"
      "  hint: the members of a group must issue the same collectives in the same order, and every receive "
      "needs a send of the same tag and size");
}

TEST(AstraEngine, RefusesWhatWouldNeverEndOrFit) {
  SystemLayer system = system_with(DimensionKind::ring, 1024);
  const SystemLayer wide = system_with(DimensionKind::ring, 4096);
  Job job(4096);
  job.collective(CollectiveKind::all_to_all, 1 << 20);
  EXPECT_EQ(
      error_of([&] { simulate(job.graph, wide, {.fold = false}); }),
      "simulation: the run would take about 3.4e+10 messages, the limit is 2,000,000,000\n"
      "  hint: choose other algorithms, fewer chunks or fewer ranks, or raise the limit with --max-messages");
  system.splits = 1'000'000;
  EXPECT_EQ(error_of([&] { one_collective(CollectiveKind::all_reduce, 1 << 30, system); }),
            "simulation: 1e+06 chunks of a collective among 1024 ranks would be under way at once\n"
            "  hint: choose fewer preferred-dataset-splits");
}

// Point-to-point, one communication at a time per rank. Measured: p2p_pair, p2p_2hop, p2p_late_recv,
// multi_send.
struct Transfers {
  Transfers(std::int64_t ranks) {
    graph.ranks = ranks;
    graph.families = {world_family(ranks)};
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      graph.programs.emplace_back();
      graph.program_of.push_back(static_cast<std::uint32_t>(rank));
    }
  }
  std::uint32_t add(std::int32_t rank, NodeKind kind, std::int32_t peer, std::int64_t bytes,
                    std::uint32_t tag, std::vector<std::uint32_t> after = {}) {
    graph.transfers.push_back({peer, tag, Bytes(bytes)});
    return graph.programs[static_cast<std::size_t>(rank)].add(kind, Phase::other, 0, -1,
                                                              graph.transfers.size() - 1, after);
  }
  std::uint32_t wait(std::int32_t rank, std::uint64_t us, std::vector<std::uint32_t> after = {}) {
    return graph.programs[static_cast<std::size_t>(rank)].add(NodeKind::delay, Phase::other, 0, -1,
                                                              us * 1'000'000, after);
  }
  Graph graph;
};

TEST(AstraEngine, ASendIsDoneOnArrivalAndAReceiveWhenBothAreThere) {
  Transfers early(4);
  early.add(0, NodeKind::send, 1, 1 << 20, 1);
  early.add(1, NodeKind::receive, 0, 1 << 20, 1);
  EXPECT_EQ(finish_ns(early.graph, system_with(DimensionKind::ring, 4)),
            (std::vector<std::int64_t>{20'031, 20'031, 0, 0}));

  Transfers late(4);
  late.wait(0, 3, {late.add(0, NodeKind::send, 1, 1 << 20, 1)});
  late.wait(1, 7, {late.add(1, NodeKind::receive, 0, 1 << 20, 1, {late.wait(1, 500)})});
  const std::vector<std::int64_t> times = finish_ns(late.graph, system_with(DimensionKind::ring, 4));
  EXPECT_EQ(times[0], 23'031);
  EXPECT_EQ(times[1], 507'000);
}

TEST(AstraEngine, SendsOfARankFollowEachOther) {
  Transfers job(8);
  for (std::int32_t to = 1; to < 8; ++to) {
    job.add(0, NodeKind::send, to, 1 << 20, 1);
    job.add(to, NodeKind::receive, 0, 1 << 20, 1);
  }
  EXPECT_EQ(finish_ns(job.graph, system_with(DimensionKind::switched, 8))[0], 7 * c(1 << 20, 2));
}

TEST(AstraEngine, AwareLinksCarryOneMessageAtATimeAndStoreIt) {
  Transfers job(8);
  for (std::int32_t from = 1; from < 8; ++from) {
    job.add(from, NodeKind::send, 0, 8 << 20, 1);
    job.add(0, NodeKind::receive, from, 8 << 20, 1);
  }
  SystemLayer system = system_with(DimensionKind::switched, 8);
  EXPECT_EQ(finish_ns(job.graph, system)[1], 157'250);
  system.semantics = Semantics::astra2_aware;
  const std::vector<std::int64_t> times = finish_ns(job.graph, system);
  EXPECT_EQ(times[1], 313'500);
  EXPECT_EQ(times[7], 1'251'000);
}

TEST(AstraEngine, AwareNetworksOfSeveralDimensionsCrossThemInTurn) {
  Transfers job(8);
  job.add(0, NodeKind::send, 5, 1 << 20, 1);
  job.add(5, NodeKind::receive, 0, 1 << 20, 1);
  SystemLayer system = system_with(DimensionKind::ring, 4);
  system.dimensions.push_back(system.dimensions[0]);
  system.dimensions[1].kind = DimensionKind::switched;
  system.dimensions[1].size = 2;
  EXPECT_EQ(finish_ns(job.graph, system)[5], c(1 << 20));  // ASTRA-sim charges the lowest dimension alone
  system.semantics = Semantics::astra2_aware;
  EXPECT_EQ(finish_ns(job.graph, system)[5], 3 * c(1 << 20));
}

// Measured: mem_pool, mem_per_npu.
TEST(AstraEngine, RemoteMemoryServesOneAtATimeWhereItIsShared) {
  Job job(4);
  const std::uint32_t load = job.program().add(NodeKind::memory_load, Phase::other, 0, -1, 10 << 20, {});
  const std::uint32_t work =
      job.program().add(NodeKind::delay, Phase::other, 0, -1, 50'000'000, std::span(&load, 1));
  job.program().add(NodeKind::memory_store, Phase::other, 0, -1, 5 << 20, std::span(&work, 1));
  SystemLayer system = system_with(DimensionKind::ring, 4);
  system.remote_memory = {RemoteMemoryKind::per_npu, 100, 100, 0, 0};
  EXPECT_EQ(finish_ns(job.graph, system), (std::vector<std::int64_t>(4, 207'485)));
  system.remote_memory.kind = RemoteMemoryKind::pool;
  EXPECT_EQ(finish_ns(job.graph, system), (std::vector<std::int64_t>{472'356, 524'884, 577'412, 629'940}));
  system.remote_memory = {RemoteMemoryKind::per_node, 100, 100, 2, 2};
  const std::vector<std::int64_t> nodes = finish_ns(job.graph, system);
  EXPECT_EQ(nodes[0], nodes[2]);
  EXPECT_LT(nodes[0], nodes[1]);
  system.remote_memory = {};
  EXPECT_EQ(error_of([&] { simulate(job.graph, system); }),
            "rank 0: loads from or stores to remote memory, and there is none\n"
            "  hint: choose another memory-type than NO_MEMORY_EXPANSION");
}

TEST(AstraEngine, CustomSchedulesTakeTheirOwnTimes) {
  // A ring all-gather of three steps among four (measured: custom_ag, 16,146 ns and 5 us of computation).
  CustomCollective ring;
  for (std::int32_t m = 0; m < 4; ++m) {
    CustomProgram& program = ring.members.emplace_back();
    for (std::uint32_t step = 0; step < 3; ++step) {
      for (const auto kind : {CustomNode::Kind::send, CustomNode::Kind::receive}) {
        CustomNode node;
        node.kind = kind;
        node.peer = (m + (kind == CustomNode::Kind::send ? 1 : 3)) % 4;
        node.tag = step;
        node.bytes = Bytes(1 << 18);
        program.nodes.push_back(node);
        if (step > 0) program.dependence.push_back(2 * step - 1);
        program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
      }
    }
  }
  Job job(4);
  job.graph.custom.push_back(ring);
  job.collective(CollectiveKind::all_gather, 1 << 20);
  job.graph.collectives[0].custom = 0;
  EXPECT_EQ(last_ns(job.graph, system_with(DimensionKind::ring, 4)), 3 * c(1 << 18));
}

}  // namespace
}  // namespace armilla
