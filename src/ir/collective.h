// Names of collective communication and how a user configures it.
//
// Sizes follow NCCL: `bytes` is what each rank contributes for all-reduce, reduce and all-to-all, what each
// rank ends up with for broadcast, the whole input of a rank for reduce-scatter, and the whole OUTPUT of a
// rank for all-gather (rank count times the shard; ASTRA-sim 2 gives the shard there).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  reduce,
  barrier
};
inline constexpr std::array kCollectiveKinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                                CollectiveKind::all_gather, CollectiveKind::all_to_all,
                                                CollectiveKind::broadcast,  CollectiveKind::reduce,
                                                CollectiveKind::barrier};
std::string_view name_of(CollectiveKind kind);  // "all-reduce"
std::optional<CollectiveKind> collective_from_name(std::string_view name);

// Order in which the waiting chunks of a rank get a free slot of a dimension. Ties go to the earlier chunk.
enum class ChunkOrder : std::uint8_t { lifo, fifo, priority };
std::string_view name_of(ChunkOrder order);

// How a collective over several dimensions is decomposed (all-reduce only; the others have one order that
// works).
enum class Decomposition : std::uint8_t {
  bandwidth_aware,  // reduce-scatter upwards, all-reduce on the last dimension, all-gather downwards
  baseline,         // a whole all-reduce on each dimension in turn
  flat,             // one algorithm over all ranks, dimensions ignored
};
std::string_view name_of(Decomposition decomposition);

// What keeps a collective from being faster (estimated, sim/chunk_count.h): its busiest links, the latencies
// of its steps, that its phases on different dimensions overlap too little, or links of a graph that its
// messages share with each other on their ways.
enum class CollectiveLimit : std::uint8_t { bandwidth, latency, pipelining, sharing };
std::string_view name_of(CollectiveLimit limit);

struct CollectiveOptions {
  // Algorithm per dimension, innermost first ("ring", "direct", "direct:window=4" ...). One entry serves all
  // dimensions; empty: the natural one of each dimension (Ring: ring, FullyConnected: direct, Switch:
  // halving-doubling when its size is a power of two, else ring).
  std::vector<std::string> algorithms;
  std::map<CollectiveKind, std::vector<std::string>> algorithms_by_kind;  // overrides `algorithms`
  std::string algorithms_where = "collectives.algorithms";                // where `algorithms` stand
  std::map<CollectiveKind, std::string> where_by_kind;                    // and the others
  Decomposition decomposition = Decomposition::bandwidth_aware;
  // Pieces a collective is cut into, which overlap across dimensions; none: by its size (sim/chunk_count.h).
  std::optional<std::int64_t> chunks;
  std::int64_t active_chunks = 4;  // chunks a rank works on at once per communicator and dimension
  ChunkOrder order = ChunkOrder::fifo;
  // Charge the memory traffic of combining received with local data: 3 bytes moved per byte reduced, at the
  // device's memory bandwidth (ASTRA-sim 2's local-mem-bw term). GPU libraries hide it behind the transfer,
  // so it is off by default.
  bool charge_reductions = false;
  // As the collective library attains it: the efficiencies and protocols of the machine's dimensions count,
  // where it has any (ir/machine.h). Else links carry what they can.
  bool measured = true;
};

// Where the algorithms that a kind takes stand.
std::string where_of(const CollectiveOptions& options, CollectiveKind kind);

}  // namespace armilla
