// The simulator under ASTRA-sim's rules, message by message and node by node: the cases on which ASTRA-sim
// was measured (bench/README.md), and how the cost per message and per node grows.
#include <benchmark/benchmark.h>

#include "goal_reporter.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

SystemLayer network_of(Semantics semantics, DimensionKind kind, std::int64_t ranks,
                       StreamAlgorithmKind algorithm) {
  SystemLayer system;
  system.semantics = semantics;
  StreamDimension& dimension = system.dimensions.emplace_back();
  dimension.kind = kind;
  dimension.size = ranks;
  dimension.bandwidth = 50;
  dimension.latency_ns = 500;
  for (const CollectiveKind collective : kCollectiveKinds)
    system.algorithms[collective] = {{algorithm, false, -1}};
  system.memory_bytes_per_second = 1.6e12;
  return system;
}

Graph one_collective(CollectiveKind kind, std::int64_t ranks, Bytes bytes) {
  Graph graph;
  graph.ranks = ranks;
  graph.families.push_back(world_family(ranks));
  graph.collectives.push_back({.kind = kind, .bytes = bytes});
  graph.programs.emplace_back().add(NodeKind::collective, Phase::other, 0, -1, 0, {});
  graph.program_of.assign(static_cast<std::size_t>(ranks), 0);
  return graph;
}

// Every rank its own program of delays of 1 us, as if read from files that differ.
template <class Dependence>
Graph delays(std::int64_t ranks, std::uint32_t nodes, const Dependence& dependence_of) {
  Graph graph;
  graph.ranks = ranks;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Program& program = graph.programs.emplace_back();
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::uint32_t dependence = dependence_of(node);
      program.add(NodeKind::delay, Phase::other, 0, -1, 1'000'000,
                  dependence == node ? std::span<const std::uint32_t>() : std::span(&dependence, 1));
    }
    graph.program_of.push_back(static_cast<std::uint32_t>(rank));
  }
  return graph;
}

void run_messages(benchmark::State& state, const Graph& graph, const SystemLayer& system, double goal) {
  std::int64_t messages = 0;
  for (auto _ : state) messages += simulate(graph, system, {.fold = false, .intervals = false}).messages;
  set_goal(state, "messages", static_cast<double>(messages), goal);
}

void run_nodes(benchmark::State& state, const Graph& graph) {
  const SystemLayer system =
      network_of(Semantics::astra2_unaware, DimensionKind::ring, graph.ranks, StreamAlgorithmKind::ring);
  double nodes = 0;
  for (auto _ : state) {
    simulate(graph, system, {.fold = false, .intervals = false});
    nodes += static_cast<double>(graph.ranks) * graph.programs[0].size();
  }
  set_goal(state, "nodes", nodes, 5e6);
}

void stream_ring(benchmark::State& state) {
  run_messages(
      state, one_collective(CollectiveKind::all_reduce, state.range(0), Bytes(1 << 30)),
      network_of(Semantics::astra2_unaware, DimensionKind::ring, state.range(0), StreamAlgorithmKind::ring),
      28e6);
}
BENCHMARK(stream_ring)->Arg(256)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

void stream_ring_aware(benchmark::State& state) {
  run_messages(
      state, one_collective(CollectiveKind::all_reduce, state.range(0), Bytes(1 << 30)),
      network_of(Semantics::astra2_aware, DimensionKind::ring, state.range(0), StreamAlgorithmKind::ring),
      17e6);
}
BENCHMARK(stream_ring_aware)->Arg(256)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

void stream_all_to_all_aware(benchmark::State& state) {
  run_messages(state, one_collective(CollectiveKind::all_to_all, state.range(0), Bytes(64 << 20)),
               network_of(Semantics::astra2_aware, DimensionKind::switched, state.range(0),
                          StreamAlgorithmKind::direct),
               15e6);
}
BENCHMARK(stream_all_to_all_aware)->Arg(128)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);

void trace_chain(benchmark::State& state) {
  run_nodes(state, delays(8, static_cast<std::uint32_t>(state.range(0)),
                          [](std::uint32_t node) { return node == 0 ? 0 : node - 1; }));
}
BENCHMARK(trace_chain)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void trace_tree(benchmark::State& state) {
  run_nodes(state, delays(8, static_cast<std::uint32_t>(state.range(0)),
                          [](std::uint32_t node) { return node == 0 ? 0 : (node - 1) / 2; }));
}
BENCHMARK(trace_tree)->Arg(2'500)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void trace_independent(benchmark::State& state) {
  run_nodes(state,
            delays(8, static_cast<std::uint32_t>(state.range(0)), [](std::uint32_t node) { return node; }));
}
BENCHMARK(trace_independent)->Arg(2'500)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace armilla
