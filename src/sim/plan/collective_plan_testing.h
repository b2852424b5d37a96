// One collective call on a machine made for a test, all else taking no time.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "sim/simulate.h"

namespace armilla {

class NothingTakesTime : public CostModel {
 public:
  Time time(const Work&) const override { return Time(0); }
  FlopRate peak(DType) const override { return teraflops(1); }
};

inline Machine machine_of(std::vector<Dimension> dimensions) {
  Machine machine;
  machine.name = "test";
  machine.dimensions = std::move(dimensions);
  machine.device.memory_bandwidth = gigabytes_per_second(1000);
  return machine;
}

inline Dimension dimension_like(const char* name, DimensionKind kind, std::int64_t size,
                                double gigabytes = 50) {
  return {name, kind, size, gigabytes_per_second(gigabytes), microseconds(1)};
}

inline Machine torus(std::initializer_list<std::int64_t> sizes, double gigabytes = 50) {
  std::vector<Dimension> dimensions;
  const char* const names[] = {"x", "y", "z", "w"};
  for (const std::int64_t size : sizes)
    dimensions.push_back(dimension_like(names[dimensions.size()], DimensionKind::ring, size, gigabytes));
  return machine_of(std::move(dimensions));
}

inline CollectiveCall call_of(CollectiveKind kind, std::int64_t bytes) {
  CollectiveCall call;
  call.kind = kind;
  call.bytes = Bytes(bytes);
  return call;
}

inline Graph graph_for(const Machine& machine, const CollectiveCall& call) {
  Graph graph;
  graph.ranks = rank_count(machine);
  graph.program_of.resize(static_cast<std::size_t>(graph.ranks));
  graph.collectives = {call};
  graph.families = {world_family(graph.ranks)};
  graph.programs.emplace_back().add(NodeKind::collective, Phase::other, graph.names.add("c"), -1, 0, {});
  return graph;
}

inline Result run(const Machine& machine, const CollectiveCall& call, const CollectiveOptions& options = {},
                  const SimulationOptions& simulation = {}) {
  Study study;
  study.machine = machine;
  study.collectives = options;
  return simulate(graph_for(machine, call), study, NothingTakesTime(), simulation);
}

inline constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

}  // namespace armilla
