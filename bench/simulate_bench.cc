// The simulator on one collective: n ranks on a ring, n(n-1) messages for each half of an all-reduce, every
// rank played message by message, or one for all.
#include <benchmark/benchmark.h>

#include <memory>
#include <span>

#include "cost/cost.h"
#include "goal_reporter.h"
#include "one_collective.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

constexpr double kGoal = 20e6;  // messages per second on one core

Study on_a_ring(std::int64_t ranks) {
  Study study;
  study.plan.ranks = ranks;
  Device& device = study.machine.device;
  study.machine.name = "ring";
  device.name = "device";
  device.vector_rate = teraflops(10);
  device.memory = Bytes(1'000'000'000);
  device.memory_bandwidth = gigabytes_per_second(1000);
  study.machine.dimensions = {
      {"ring", DimensionKind::ring, ranks, gigabytes_per_second(25), microseconds(1)}};
  study.collectives.algorithms = {"ring"};
  study.collectives.chunks = 1;
  return study;
}

void simulate_ring_unfolded(benchmark::State& state) {
  const std::int64_t ranks = state.range(0);
  const Graph graph = one_collective(ranks, CollectiveKind::all_reduce, Bytes(100'000'000));
  const Study study = on_a_ring(ranks);
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  std::int64_t messages = 0;
  for (auto _ : state)
    messages += simulate(graph, study, *cost, {.fold = false, .every_message = true}).messages;
  set_goal(state, "messages", static_cast<double>(messages), kGoal);
}
BENCHMARK(simulate_ring_unfolded)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

// One rank for all of 4096, three calls one after the other: what is not played must not be memoised
// unfolded.
void simulate_ring_folded(benchmark::State& state) {
  Graph graph = one_collective(4096, CollectiveKind::all_reduce, Bytes(1'000'000'000));
  Program& program = graph.programs.front();
  for (std::uint32_t call = 0; call < 2; ++call)
    program.add(NodeKind::collective, Phase::gradient_exchange, program.name[0], -1, 0, std::span(&call, 1));
  const Study study = on_a_ring(4096);
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  for (auto _ : state) simulate(graph, study, *cost);
  set_goal(state, "jobs", static_cast<double>(state.iterations()), 50);
}
BENCHMARK(simulate_ring_folded)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace armilla
