// SystemLayer: what ASTRA-sim's system, network and remote-memory files say, in their own numbers, for the
// semantics profiles that reproduce it (sim/astra/astra_engine.h). read/astra.h fills it; `machine_of` gives
// the same interconnect as a Machine for the native profile.
//
// Times are nanoseconds (one cycle of ASTRA-sim), bandwidths GB/s of 2^30 bytes where the file means that.
// Numbers stay as written, because ASTRA-sim truncates after floating-point arithmetic on them.
// Sources: astra-sim 2.x Sys.cc, CmdLineParser.cc, astra-network-analytical NetworkParser.cc; astra-sim 1.0
// Sys.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "ir/collective.h"
#include "ir/flow_traffic.h"
#include "ir/machine.h"

namespace armilla {

// A semantics profile: whose rules the simulation follows.
enum class Semantics : std::uint8_t { native, astra1, astra2_unaware, astra2_aware };
std::string_view name_of(Semantics semantics);  // "astra2-unaware"

enum class StreamAlgorithmKind : std::uint8_t { ring, direct, halving_doubling, double_binary_tree };
struct StreamAlgorithm {
  StreamAlgorithmKind kind = StreamAlgorithmKind::ring;
  bool flat = false;         // oneRing, oneDirect, oneHalvingDoubling: over all ranks, dimensions ignored
  std::int32_t window = -1;  // direct: messages in flight, -1: all
};

enum class IntraDimensionOrder : std::uint8_t { fifo, rg, smallest_first, less_remaining_phase_first };
enum class InterDimensionOrder : std::uint8_t { ascending, themis, themis_flex, round_robin };

enum class RemoteMemoryKind : std::uint8_t { none, per_npu, per_node, pool };
struct RemoteMemory {
  RemoteMemoryKind kind = RemoteMemoryKind::none;
  double latency_ns = 0;
  double bytes_per_ns = 0;
  std::int64_t nodes = 0, npus_per_node = 0;  // per_node
};

// One dimension of the network, as in the file.
struct StreamDimension {
  DimensionKind kind = DimensionKind::ring;
  std::int64_t size = 2;
  double bandwidth = 0;   // of a link, GB/s of 2^30 bytes
  double latency_ns = 0;  // of a link
  // Only ASTRA-sim 1.0:
  std::int64_t links = 1;  // per NPU
  double nic_latency_ns = 0, router_latency_ns = 0;
  double memory_latency_ns = 0, memory_bandwidth = 0, memory_scale = 0;  // "hbm-*"
  std::string type;  // "N", "P", "T": for its cost model only
};

struct SystemLayer {
  Semantics semantics = Semantics::astra2_unaware;
  std::vector<StreamDimension> dimensions;  // innermost first
  Interconnect links;       // one by one, where the file says more than its dimensions; empty: theirs
  ComponentChoice network;  // a native one under ASTRA-sim's rules; no name: that of the profile
  // Of the network packet, where the files are those of the ns-3 or htsim backend: what hosts and switches
  // do. Each message is then a flow of its own, which has arrived when its sender has heard so, as there.
  std::optional<PacketSettings> packets{};

  // ASTRA-sim 1.0's transformer policies split a dimension in which the model-parallel group ends:
  // collectives then see it as two, of split_first and size / split_first ranks. -1: no split.
  std::int32_t split_dimension = -1;
  std::int64_t split_first = 0;

  ChunkOrder scheduling = ChunkOrder::lifo;  // priority: by the node's comm_priority (EXPLICIT)
  IntraDimensionOrder intra_dimension = IntraDimensionOrder::fifo;
  InterDimensionOrder inter_dimension = InterDimensionOrder::ascending;
  Decomposition decomposition = Decomposition::bandwidth_aware;       // or baseline
  std::map<CollectiveKind, std::vector<StreamAlgorithm>> algorithms;  // per dimension, innermost first
  std::int64_t endpoint_delay_ns = 10;                                // injection scale included
  std::int64_t active_chunks = 1;
  std::int64_t splits = 1;  // chunks per collective
  std::int64_t queues_per_dimension = 1;
  bool rendezvous = false;

  // ASTRA-sim 1.0 as in the tags of its tutorials of 2022 and 2023 (and its ns-3 branch), not as in its final
  // branch: collectives of layers keep the system's order of chunks whatever the layer asks for, "SCF"
  // compares what chunks enter a phase with and knows no exception for the last but one.
  bool tutorial_release = false;
  // Of 1.0's "boost-mode": along a dimension only the ranks in line with rank 0 send; the others wait with
  // them for the end of a phase. Only ties are broken otherwise.
  bool boost = false;
  std::int64_t gap_denominator = 16;  // Themis leaves alone loads that differ by less than 1/16 of a chunk

  // ASTRA-sim 2: local memory in bytes/s for reductions and the roofline. 0: reductions are not charged.
  double memory_bytes_per_second = 0;
  double peak_flops = 0;
  bool roofline = false;
  bool replay_only = false;
  bool trace_enabled = false;
  bool track_local_memory = false;
  std::string local_memory_trace = "local_mem_trace";

  bool shared_bus = false;
  std::int64_t bus_l_ns = 0, bus_o_ns = 0, bus_g_ns = 0;
  double bus_gap_per_byte_ns = 0;  // LogGP's G
  std::int64_t local_reduction_delay = 1;

  RemoteMemory remote_memory;

  // Custom collectives: path prefixes of Chakra traces, PREFIX.<position>.et, or of one MSCCL-XML file.
  std::map<CollectiveKind, std::string> custom;
  std::map<std::uint64_t, std::string> custom_by_node;
};

std::int64_t rank_count(const SystemLayer& system);

// The same interconnect in native terms (bandwidth times 2^30 B/s, links of a Ring as its two directions).
Machine machine_of(const SystemLayer& system);

}  // namespace armilla
