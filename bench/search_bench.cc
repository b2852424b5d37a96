// Strategy search: one plan through the library when what plans share is known, and whole searches
// on one core.
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include "base/config.h"
#include "goal_reporter.h"
#include "read/study.h"
#include "study/search.h"
#include "study/search/evaluate.h"

namespace armilla {
namespace {

Study study_of(const std::string& text) {
  return read_study(Config::parse(text, "benchmark", {}));
}

std::string gpt3(std::int64_t ranks, std::int64_t micro_batches) {
  return fmt::format(
      "model: gpt3-175b\nmachine: dgx-a100\n"
      "plan: {{ranks: {}, tensor: 8, pipeline: 16, micro_batch: 1, micro_batches: {}, precision: bf16}}\n",
      ranks, micro_batches);
}

// Legal, small enough, how long: each plan of a search goes this way. The model is divided and its slots are
// measured before, as they are for all plans of a search but the first of their kind.
void evaluate(benchmark::State& state, const std::string& text, double goal) {
  const Study study = study_of(text);
  PlanEvaluator evaluator(study);
  Time iteration;
  for (auto _ : state) {
    const PlanPrepared plan = evaluator.prepare(study.request);
    benchmark::DoNotOptimize(evaluator.bound(plan));
    benchmark::DoNotOptimize(evaluator.memory(plan));
    iteration = evaluator.simulate(plan).iteration;
  }
  state.counters["iteration_s"] = in_seconds(iteration);
  set_goal(state, "plans", static_cast<double>(state.iterations()), goal);
}

void evaluate_gpt3(benchmark::State& state) {
  evaluate(state, gpt3(1024, 192), 1000);
}
BENCHMARK(evaluate_gpt3)->Unit(benchmark::kMillisecond);

void evaluate_micro_batches(benchmark::State& state) {
  evaluate(state, gpt3(128, state.range(0)), 100);
}
BENCHMARK(evaluate_micro_batches)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

void evaluate_llama405b(benchmark::State& state) {
  evaluate(
      state,
      "model: {name: llama3-405b, sequence: 8192}\n"
      "machine: {name: gb200, device: gb200, dimensions: ["
      "{name: nvswitch, kind: Switch, size: 64, bandwidth: 900GB/s, latency: 936ns, efficiency: 0.962}, "
      "{name: rail, kind: Switch, size: 4, bandwidth: 400Gbps, latency: 2.5us, efficiency: 0.92}]}\n"
      "plan: {ranks: 256, tensor: 4, pipeline: 16, virtual_stages: 7, schedule: interleaved, micro_batch: 1, "
      "micro_batches: 384, precision: bf16}\n",
      1 / 0.3);
}
BENCHMARK(evaluate_llama405b)->Unit(benchmark::kMillisecond);

// A whole search, cold, on one core.
void search(benchmark::State& state, const std::string& text, bool brute_force, double goal) {
  SearchRequest request;
  const Config config = Config::parse(text, "benchmark", {});
  request.axes = search_axes(config);
  request.read = [&](const std::vector<Override>& settings) { return read_study(config.with(settings)); };
  request.threads = 1;
  request.brute_force = brute_force;
  SearchResult result;
  for (auto _ : state) result = search_plans(request);
  const SearchSpaceUse& space = result.space;
  state.counters["points"] = static_cast<double>(space.points);
  state.counters["refused"] = static_cast<double>(space.refused);
  state.counters["bounded"] = static_cast<double>(space.bounded);
  state.counters["simulated"] = static_cast<double>(space.simulated);
  state.counters["best_s"] = result.ranking.empty() ? 0 : in_seconds(result.ranking.front().iteration);
  set_goal(state, "searches", static_cast<double>(state.iterations()), goal);
}

// DistSim's: BERT of 48 layers on 16 A10 in 4 nodes, every product of powers of two.
void search_bert(benchmark::State& state) {
  search(state,
         "model: bert-exlarge\n"
         "machine: {name: a10, device: a10, dimensions: ["
         "{name: pcie, kind: Switch, size: 4, bandwidth: 25GB/s, latency: 5us}, "
         "{name: ethernet, kind: Switch, size: 4, bandwidth: 25Gbps, latency: 10us}]}\n"
         "plan: {ranks: 16, tensor: 1..16, pipeline: 1..16, virtual_stages: 1, micro_batch: 1, global_batch: "
         "16, "
         "precision: fp16, recompute: none, zero: 0, sequence_parallel: true}\n",
         true, 50);
}
BENCHMARK(search_bert)->Unit(benchmark::kMillisecond);

// What of Calculon's space for GPT-3-175B on 64 A100 is the same here.
void search_gpt3(benchmark::State& state) {
  search(state,
         "model: {name: gpt3-175b, sequence: 2048}\nmachine: dgx-a100\n"
         "plan: {ranks: 64, tensor: any, pipeline: any, virtual_stages: any, micro_batch: any, global_batch: "
         "64, "
         "precision: fp16, recompute: [none, selective, full], zero: [0, 1], sequence_parallel: any, "
         "overlap: any, offload: any}\n",
         state.range(0) != 0, 0.5);
}
BENCHMARK(search_gpt3)->Arg(0)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace armilla
