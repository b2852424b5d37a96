// The flit network under a job: flits that pass a link per second, an all-to-all of 128 devices of a fat tree
// and a ring on a torus.
#include <benchmark/benchmark.h>

#include <memory>

#include "cost/cost.h"
#include "goal_reporter.h"
#include "one_collective.h"
#include "read/topology.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

constexpr double kFlitBytes = 256;  // the network's default

void flit_job(benchmark::State& state, const char* topology, CollectiveKind kind) {
  Study study;
  MachineLinks made = make_topology(parse_component(topology, "bench"));
  study.machine.name = topology;
  study.machine.graph = std::move(made.graph);
  study.machine.dimensions = std::move(made.dimensions);
  Device& device = study.machine.device;
  device.name = "device";
  device.vector_rate = teraflops(10);
  device.memory = Bytes(1'000'000'000);
  device.memory_bandwidth = gigabytes_per_second(1000);
  study.plan.ranks = rank_count(study.machine);
  study.network = parse_component("flit", "bench");
  const Graph graph = one_collective(study.plan.ranks, kind, Bytes(1 << 20));
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, device);
  double hops = 0;
  for (auto _ : state) {
    for (const LinkUse& link : simulate(graph, study, *cost).links)
      hops += static_cast<double>(link.bytes.value) * static_cast<double>(link.links) / kFlitBytes;
  }
  set_goal(state, "flit_hops", hops, 8e6);
}
BENCHMARK_CAPTURE(flit_job, all_to_all_fat_tree, "fat-tree:k=8", CollectiveKind::all_to_all)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(flit_job, all_reduce_torus, "torus:x=4,y=4,z=4", CollectiveKind::all_reduce)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace armilla
