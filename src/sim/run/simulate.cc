#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/units_text.h"
#include "sim/astra/astra_run.h"
#include "sim/fold/layer_loops.h"
#include "sim/run/describe_run.h"
#include "sim/run/ready_job.h"
#include "sim/run/shortened_run.h"

namespace armilla {
namespace {

void check_ranks(std::int64_t devices, const Graph& graph) {
  if (devices != graph.ranks)
    throw Error("simulation", fmt::format("{} on a machine of {}", typed_count(graph.ranks, "rank"),
                                          typed_count(devices, "device")));
}

void check_positive(double factor, std::string_view what) {
  if (std::isfinite(factor) && factor > 0) return;
  throw Error("what_if", fmt::format("a factor of {} on {}", factor, what), "factors are larger than 0");
}

void check_what_if(const WhatIf& what_if, const Machine& machine) {
  for (const SlowRanks& slow : what_if.ranks) check_positive(slow.time, "times of ranks");
  for (const SlowLinks& slow : what_if.links) {
    check_positive(slow.bandwidth, "bandwidths of links");
    check_positive(slow.latency, "latencies of links");
    if (slow.dimension >= machine.dimensions.size()) {
      throw Error("what_if.links", fmt::format("dimension {} of a machine of {}", slow.dimension,
                                               typed_count(machine.dimensions.size(), "dimension")));
    }
  }
}

void check_recorded(const std::vector<std::int32_t>& chosen, const Graph& graph) {
  for (const std::int32_t rank : chosen) {
    if (rank < 0 || rank >= graph.ranks)
      throw Error("simulation",
                  fmt::format("rank {} of {} is to be recorded", rank, typed_count(graph.ranks, "rank")));
  }
}

void check_machine(const Graph& graph, const Study& study, const SimulationOptions& options) {
  check_ranks(rank_count(study.machine), graph);
  check_what_if(study.what_if, study.machine);
  check_recorded(options.record_ranks, graph);
}

// Of a run that no other of its study follows.
constexpr KeptAtMost kNothingKept{.structures = 0};

// Of all devices of a study.
struct AllCosts {
  AllCosts(const Study& study, const CostModel& usual) : costs({&usual}) {
    for (const OtherDevices& other : study.machine.others) {
      others.push_back(make_cost_model(study.compute, other.device));
      costs.push_back(others.back().get());
    }
  }
  std::vector<const CostModel*> costs;
  std::vector<std::unique_ptr<CostModel>> others;
};

// Whether nobody asks what a node of a layer did.
bool asks_for_sums_only(const SimulationOptions& options) {
  return !options.intervals && !options.collectives && options.watched_ends.empty() &&
         options.record_ranks.empty() && options.window.from == Time(0) && options.window.until == kEndOfTime;
}

Result simulated_as_written(const Graph& graph, std::span<const CostModel* const> costs,
                            const SimulationOptions& options, RunMemory& memory) {
  check_machine(graph, memory.study(), options);
  const ReadyJob job(graph, options, memory);
  Result result = played(job.play(costs, options), &ShortenedRun::result);
  describe_run(result, job);
  return result;
}

Result simulated(const Graph& graph, std::span<const CostModel* const> costs,
                 const SimulationOptions& options, RunMemory& memory) {
  if (options.fold_time && asks_for_sums_only(options)) {
    if (const std::optional<Graph> shorter = in_layer_loops(graph, memory.study().collectives.order))
      return simulated_as_written(*shorter, costs, options, memory);
  }
  return simulated_as_written(graph, costs, options, memory);
}

}  // namespace

Result simulate(const Graph& graph, const Study& study, std::span<const CostModel* const> costs,
                const SimulationOptions& options) {
  RunMemory memory(study, kNothingKept);
  return simulated(graph, costs, options, memory);
}

Result simulate(const Graph& graph, const Study& study, const CostModel& cost,
                const SimulationOptions& options) {
  return simulate(graph, study, AllCosts(study, cost).costs, options);
}

Result simulate(const Graph& graph, const CostModel& cost, const SimulationOptions& options,
                RunMemory& memory) {
  return simulated(graph, AllCosts(memory.study(), cost).costs, options, memory);
}

PlayTime foresee(const Graph& graph, const Study& study, const CostModel& cost,
                 const SimulationOptions& options) {
  check_machine(graph, study, options);
  RunMemory memory(study, kNothingKept);
  const ReadyJob job(graph, options, memory);
  return NativeRun(job.play(AllCosts(study, cost).costs, options)).foreseen_time();
}

Result simulate(const Graph& graph, const SystemLayer& system, const SimulationOptions& options) {
  check_ranks(rank_count(system), graph);
  check_recorded(options.record_ranks, graph);
  Result result = astra_result(graph, system, options);
  note_unseen_links(result, machine_of(system), system.network);
  return result;
}

}  // namespace armilla
