// Hybrid-parallel jobs: folded, from the description of the model to the result, as the number of devices
// grows while the roles stay the same; and unfolded, every rank of 1,024 node by node.
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include "base/config.h"
#include "cost/cost.h"
#include "goal_reporter.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

// Llama-3-405B with 16 micro-batches per replica: TP8 PP16 and as much data parallelism as there are devices.
Study llama(std::int64_t devices) {
  const std::string text = fmt::format(
      "model: {{name: llama3-405b, sequence: 8192}}\n"
      "machine: dgx-h100\n"
      "plan: {{ranks: {}, tensor: 8, pipeline: 16, virtual_stages: 2, schedule: interleaved, micro_batch: 1, "
      "micro_batches: 16, sequence_parallel: true, zero: 1, recompute: selective, precision: bf16}}\n",
      devices);
  return prepare_study(read_study(Config::parse(text, "benchmark", {})));
}

void hybrid_folded(benchmark::State& state) {
  const std::int64_t devices = state.range(0);
  std::size_t classes = 0;
  for (auto _ : state) classes = run_study(llama(devices), {.intervals = false}).result.classes.size();
  state.counters["classes"] = static_cast<double>(classes);
  set_goal(state, "jobs", static_cast<double>(state.iterations()), devices > 16384 ? 1 : 2);
}
BENCHMARK(hybrid_folded)
    ->Arg(1024)
    ->Arg(4096)
    ->Arg(16384)
    ->Arg(65536)
    ->Arg(131072)
    ->Unit(benchmark::kMillisecond);

// 96 layers, TP8 PP16 DP8, 64 micro-batches.
void hybrid_unfolded(benchmark::State& state) {
  const Study study = prepare_study(read_study(Config::parse(
      "model: gpt3-175b\n"
      "machine: dgx-a100\n"
      "plan: {ranks: 1024, tensor: 8, pipeline: 16, micro_batch: 1, micro_batches: 64, precision: bf16}\n",
      "benchmark", {})));
  const Graph graph = run_study(study, {.intervals = false}).graph;
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  double nodes = 0;
  for (auto _ : state) {
    simulate(graph, study, *cost, {.fold = false, .intervals = false});
    for (const std::uint32_t program : graph.program_of) nodes += graph.programs[program].size();
  }
  set_goal(state, "nodes", nodes, 5e6);
}
BENCHMARK(hybrid_unfolded)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace armilla
