// A job of one collective among all ranks: what benchmarks of networks and of the engine play.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace armilla {

inline Graph one_collective(std::int64_t ranks, CollectiveKind kind, Bytes bytes) {
  Graph graph;
  graph.ranks = ranks;
  graph.families.push_back(world_family(ranks));
  graph.collectives.push_back({.kind = kind, .bytes = bytes});
  const std::uint32_t name = graph.names.add("collective");
  Program& program = graph.programs.emplace_back();
  program.role = "rank";
  program.add(NodeKind::collective, Phase::gradient_exchange, name, -1, 0, {});
  graph.program_of.assign(static_cast<std::size_t>(ranks), 0);
  return graph;
}

}  // namespace armilla
