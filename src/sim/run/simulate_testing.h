// Small jobs for tests of the engine: fixed delays and collectives on a few ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/simulate.h"

namespace armilla {

// Nothing here computes anything but fixed delays.
class NoCost : public CostModel {
 public:
  Time time(const Work&) const override { return Time(0); }
  FlopRate peak(DType) const override { return teraflops(1); }
};

// 1 GB/s moves a byte in a nanosecond.
inline Dimension dimension(DimensionKind kind, std::int64_t size, double gigabytes = 1,
                           Time latency = nanoseconds(100)) {
  return {"d", kind, size, gigabytes_per_second(gigabytes), latency};
}

inline Study study_of(std::vector<Dimension> dimensions) {
  Study study;
  for (std::size_t d = 0; d < dimensions.size(); ++d) dimensions[d].name = "d" + std::to_string(d);
  study.machine.name = "test";
  study.machine.dimensions = std::move(dimensions);
  study.machine.device.memory_bandwidth = gigabytes_per_second(3);
  study.plan.ranks = rank_count(study.machine);
  study.collectives.chunks = 1;
  study.collectives.active_chunks = 1;
  return study;
}

// Clockwise rings, one dimension after the other.
inline Study rings_of(std::vector<Dimension> dimensions) {
  Study study = study_of(std::move(dimensions));
  study.collectives.algorithms = {"ring"};
  study.collectives.decomposition = Decomposition::bandwidth_aware;
  return study;
}

// All ranks: a delay each, then the collectives, all issued together.
inline Graph graph_with(std::int64_t ranks, const std::vector<CollectiveCall>& calls, Time delay = Time(0)) {
  Graph graph;
  graph.ranks = ranks;
  graph.program_of.assign(static_cast<std::size_t>(ranks), 0);
  graph.families = {world_family(ranks)};
  graph.names.add("node");
  graph.collectives = calls;
  Program& program = graph.programs.emplace_back();
  program.role = "rank";
  const std::uint32_t first =
      program.add(NodeKind::delay, Phase::other, 1, -1, static_cast<std::uint64_t>(delay.value), {});
  for (std::size_t i = 0; i < calls.size(); ++i) {
    program.add(NodeKind::collective, Phase::gradient_exchange, 1, -1, i, std::span(&first, 1));
  }
  return graph;
}

inline CollectiveCall call(CollectiveKind kind, std::int64_t bytes) {
  return {kind, Bytes(bytes), 0, 0, 0};
}

}  // namespace armilla
