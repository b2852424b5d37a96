// Every row of the shared oracle of single collectives under ASTRA-sim 2.x: the same nanosecond.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/oracle_testing.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

using Row = OracleRow;

DimensionKind kind_of(const std::string& name) {
  if (name == "Ring") return DimensionKind::ring;
  return name == "Switch" ? DimensionKind::switched : DimensionKind::fully_connected;
}

StreamAlgorithm algorithm_of(std::string name) {
  StreamAlgorithm algorithm;
  if (name.starts_with("one")) {
    algorithm.flat = true;
    name = std::string(1, static_cast<char>(name[3] + 'a' - 'A')) + name.substr(4);
  }
  if (name.starts_with("direct")) {
    algorithm.kind = StreamAlgorithmKind::direct;
    if (name.size() > 6) algorithm.window = std::stoi(name.substr(6));
  }
  if (name == "halvingDoubling") algorithm.kind = StreamAlgorithmKind::halving_doubling;
  if (name == "doubleBinaryTree") algorithm.kind = StreamAlgorithmKind::double_binary_tree;
  return algorithm;
}

SystemLayer system_of(const Row& row) {
  SystemLayer system;
  system.semantics =
      row.at("backend") == "congestion_aware" ? Semantics::astra2_aware : Semantics::astra2_unaware;
  const std::vector<std::string> kinds = split(row.at("topology"), 'x'),
                                 sizes = split(row.at("npus_count"), 'x'),
                                 bandwidths = split(row.at("bandwidth"), 'x'),
                                 latencies = split(row.at("latency"), 'x');
  for (std::size_t d = 0; d < kinds.size(); ++d) {
    StreamDimension& dimension = system.dimensions.emplace_back();
    dimension.kind = kind_of(kinds[d]);
    dimension.size = std::stoll(sizes[d]);
    dimension.bandwidth = std::stod(bandwidths[d]);
    dimension.latency_ns = std::stod(latencies[d]);
  }
  system.scheduling = row.at("scheduling") == "LIFO" ? ChunkOrder::lifo : ChunkOrder::fifo;
  system.decomposition = row.at("collective_optimization") == "baseline" ? Decomposition::baseline
                                                                         : Decomposition::bandwidth_aware;
  system.active_chunks = std::stoll(row.at("active_chunks"));
  system.splits = std::stoll(row.at("chunks"));
  system.endpoint_delay_ns = std::stoll(row.at("endpoint_delay"));
  system.memory_bytes_per_second = std::stod(row.at("local_mem_bw")) * 1e9;
  system.queues_per_dimension = std::stoll(row.at("queues_per_dim"));
  for (const CollectiveKind kind : kCollectiveKinds) {
    for (const std::string& name : split(row.at("algorithm"), 'x'))
      system.algorithms[kind].push_back(algorithm_of(name));
  }
  return system;
}

Graph graph_of(const Row& row, std::int64_t ranks) {
  const std::map<std::string, CollectiveKind> kinds = {{"all_reduce", CollectiveKind::all_reduce},
                                                       {"all_gather", CollectiveKind::all_gather},
                                                       {"reduce_scatter", CollectiveKind::reduce_scatter},
                                                       {"all_to_all", CollectiveKind::all_to_all}};
  Graph graph;
  graph.ranks = ranks;
  graph.program_of.resize(static_cast<std::size_t>(ranks));
  graph.families = {world_family(ranks)};
  CollectiveCall call;
  call.kind = kinds.at(row.at("collective"));
  call.bytes = Bytes(std::stoll(row.at("bytes")) * (call.kind == CollectiveKind::all_gather ? ranks : 1));
  graph.collectives = {call};
  graph.programs.emplace_back().add(NodeKind::collective, Phase::other, 0, -1, 0, {});
  return graph;
}

TEST(Astra2Collectives, EveryRowOfTheOracle) {
  for (const Oracle& oracle : oracles("astra2/collectives.csv")) {
    int compared = 0;
    for (const Row& row : read_oracle(oracle.path)) {
      if (row.at("exit_code") != "0")
        continue;  // congestion-aware with several dimensions: ASTRA-sim refuses
      const SystemLayer system = system_of(row);
      const Result result = simulate(graph_of(row, rank_count(system)), system);
      Time first = kEndOfTime;
      for (const RankClass& ranks : result.classes) first = std::min(first, ranks.finish);
      std::string name;
      for (const char* const key : {"backend", "topology", "npus_count", "collective", "algorithm", "bytes",
                                    "chunks", "scheduling", "active_chunks", "collective_optimization"})
        name += row.at(key) + " ";
      EXPECT_EQ(first.value / 1000, std::stoll(row.at("finish_cycles_min"))) << name;
      EXPECT_EQ(result.iteration.value / 1000, std::stoll(row.at("finish_cycles_max"))) << name;
      ++compared;
    }
    EXPECT_GE(compared, oracle.whole ? 162 : 33);
  }
}

}  // namespace
}  // namespace armilla
