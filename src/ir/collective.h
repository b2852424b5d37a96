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
// Whether one of its ranks is not as the others.
constexpr bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

// Order in which the waiting chunks of a rank get a free slot of a dimension. Ties go to the earlier chunk.
enum class ChunkOrder : std::uint8_t { lifo, fifo, priority };
std::string_view name_of(ChunkOrder order);

// How a collective over several dimensions is decomposed.
enum class Decomposition : std::uint8_t {
  multi_axis,       // as bandwidth_aware, but chunks take Rings in different orders, so that all work at once
  bandwidth_aware,  // reduce-scatter upwards, all-reduce on the last dimension, all-gather downwards
  baseline,         // a whole all-reduce on each dimension in turn
  flat,             // one algorithm over all ranks, dimensions ignored
};
// Of a kind other than all-reduce, all but `flat` take the dimensions in one order; under `multi_axis`
// all-gather and reduce-scatter take Rings in several, too.
std::string_view name_of(Decomposition decomposition);

// What keeps a collective from being faster: that no algorithm could do with less of the links (bandwidth);
// what its schedule and protocol do, although another algorithm could load the links better (algorithm);
// links of a graph that its messages share with each other on their ways (sharing); else (estimated,
// sim/plan/chunk_count.h) the latencies of its steps, where they are at least half of its time, or that its
// phases on different dimensions overlap too little.
enum class CollectiveLimit : std::uint8_t { bandwidth, algorithm, latency, pipelining, sharing };
std::string_view name_of(CollectiveLimit limit);

// Which part of the way between two ranks of a Switch a message takes: switches that reduce and multicast
// begin and end messages themselves.
enum class Leg : std::uint8_t { whole, to_switch, from_switch };

struct CollectiveOptions {
  // Algorithm per dimension, innermost first ("ring", "direct", "direct:window=4" ...). One entry serves all
  // dimensions; empty: the natural one of each dimension (Ring: bidirectional-ring, FullyConnected: direct,
  // Switch: halving-doubling when its size is a power of two, else ring; where the switch reduces and that is
  // faster, the dimension's `in_switch`).
  std::vector<std::string> algorithms;
  std::map<CollectiveKind, std::vector<std::string>> algorithms_by_kind;  // overrides `algorithms`
  std::string algorithms_where = "collectives.algorithms";                // where `algorithms` stand
  std::map<CollectiveKind, std::string> where_by_kind;                    // and the others
  Decomposition decomposition = Decomposition::multi_axis;
  // Pieces it is cut into, which overlap across dimensions; none: by its size (sim/plan/chunk_count.h).
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
