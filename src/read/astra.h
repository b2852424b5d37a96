// Readers of ASTRA-sim's files: the system and network configurations of 1.0 and 2, text workloads, and
// custom collectives, MSCCL's algorithms among them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/custom_collective.h"
#include "ir/formats/msccl.h"
#include "ir/formats/system_layer.h"
#include "ir/formats/text_workload.h"

namespace armilla {

// ASTRA-sim 1.0's configuration for its analytical backend: system file ("key: value" words), network JSON
// and the command line's network overrides -> SystemLayer with Semantics::astra1.
//
// Keys and units are those of 1.0's Sys.cc and of astra-network-analytical's main.cc of that time:
// link-bandwidth in GB/s of 2^30 bytes per link, latencies in ns. A Ring uses an even number of links, a
// FullyConnected dimension whole links to each neighbour; what is left over is warned about. Unknown keys
// are Errors. nic-, router- and hbm- keys may be missing (0; bandwidth 1) and dimension-type, too ("N").
//
// Two releases of 1.0 part in details (SystemLayer::tutorial_release): the tags of its tutorials (2022, 2023;
// the ns-3 branch, too) and the final branch. Only the tutorials' take a network file without topology-name
// ("Hierarchical"), dimensions-count, latencies or memory, and the key gap-denominator of the system file:
// such files choose their release themselves, with a warning, unless the settings name one.
// Files of the Garnet backend (read/astra/garnet_network.h) are told by their keys: their links and the
// network flit with their settings are set, too. Not read: files of the ns-3 backend.

struct Astra1Settings {
  std::string system, network;  // paths
  double injection_scale = 1;
  std::int64_t queues_per_dimension = 1;
  bool rendezvous = false;
  std::optional<bool> tutorial_release;  // absent: by the files
  // Instead of the network file's, one per dimension; empty: the file's.
  std::vector<std::string> units_count, links_count, link_bandwidth, link_latency;
};

// Throws Error.
SystemLayer read_astra1_config(const Astra1Settings& settings, std::vector<std::string>& warnings);
// Each file alone; the system's lists may have one entry for each of `system.dimensions`.
void read_astra1_network(const Astra1Settings& settings, SystemLayer& system,
                         std::vector<std::string>& warnings);
void read_astra1_system(const Astra1Settings& settings, SystemLayer& system,
                        std::vector<std::string>& warnings);

// What ASTRA-sim makes of `value` times a factor of its command line, before it truncates: factors are single
// precision, the product, too, in the tutorials' release.
double astra1_scaled(std::int64_t value, double scale, bool tutorial_release);

// What ASTRA-sim's cost model asks for the network, in dollars: NVLink 100 per 50 GB/s, tile-to-tile links
// half of that, InfiniBand switches 23,698 per 40 ports, InfiniBand interfaces 1,200. The sums are those of
// its HierarchicalTopology.cc, but a tile-to-tile link of any topology is priced by its bandwidth. The
// tutorials' release asks per GB/s: 1 for tile-to-tile links, 4 for others, 7.4 between pods, 13 or 23.7 for
// a switch's port, 47.8 for an interface to a pod's switch; its switches between tiles, which have no price
// there, cost as others.
double astra1_network_cost(const SystemLayer& system);

// ASTRA-sim 2.x's configuration: system JSON, network YAML, remote memory JSON and the table of per-node
// custom collectives -> SystemLayer. The communicator groups are read/trace.h.
//
// Keys and units are those of Sys.cc, CollectiveImplLookup.cc and NetworkParser.cc (2.x, 2026): bandwidth in
// GB/s of 2^30 bytes, latency and delays in ns, local-mem-bw in 10^9 B/s, peak-perf in 10^12 flop/s. The
// scheduling keys of 1.0 (intra- and inter-dimension-scheduling) work here, too. Where a missing key leaves
// ASTRA-sim with an uninitialised value, this takes what the measured runs showed and says so in `warnings`;
// an unknown key is an Error. "boost-mode" and keys that look like comments ("_note", "comment") are ignored
// with a warning.
//
// A network configuration of the ns-3 backend is a config.txt (read/roce.h), whose dimensions stand in a file
// of their own: {"logical-dims": ["8", "4"]}, the ranks being the hosts 0 to 31. Its links and the network
// packet with its settings are set, too.
//
// With its htsim backend the dimensions are those of the YAML, and the links those of htsim's .topo
// (read/topology.h): every rank is a host. What its TCP does is fixed (HTSimProtoTcp.cc, and htsim's TcpSrc
// and RandomQueue): packets of 1,500 bytes, ten in the first window, slow start to 100, an acknowledgement
// for each, timers of 250 ms; queues of eight packets at every port, of which the last three drop one in ten
// by chance. docs/astra_sim.md says what differs.

struct HtsimSettings {
  bool used = false;
  std::string protocol;              // --htsim-proto; empty: tcp, the only one
  std::vector<std::string> options;  // what follows --htsim_opts: "-topo", FILE ...
};

struct Astra2Settings {
  Semantics semantics = Semantics::astra2_unaware;
  std::string system, network, remote_memory;  // paths; no remote memory when empty
  std::string logical_topology;                // of an ns-3 network, and of no other
  HtsimSettings htsim;
  // Of the command line:
  double injection_scale = 1;
  std::int64_t queues_per_dimension = 1;
  bool rendezvous = false;
};

// All of it, with every check that needs no workload. Throws Error.
SystemLayer read_astra2_config(const Astra2Settings& settings, std::vector<std::string>& warnings);

// One file each. The system file needs the dimensions and semantics of `system` to be set.
std::vector<StreamDimension> read_astra2_network(const std::string& path, std::vector<std::string>& warnings);
// Of an ns-3 network, {"logical-dims": ["8", "4"]}: how many ranks each dimension has, innermost first.
std::vector<std::int64_t> read_logical_dimensions(const std::string& path,
                                                  std::vector<std::string>& warnings);
// Of ns-3, both files: dimensions, links, the network and its settings.
void read_astra2_ns3(const std::string& network, const std::string& logical_topology, SystemLayer& system,
                     std::vector<std::string>& warnings);
// Of htsim: links, the network and its settings. The dimensions of `system` are set.
void read_astra2_htsim(const HtsimSettings& htsim, SystemLayer& system, std::vector<std::string>& warnings);
RemoteMemory read_astra2_remote_memory(const std::string& path, std::int64_t ranks,
                                       std::vector<std::string>& warnings);
void read_astra2_system(const std::string& path, double injection_scale, SystemLayer& system,
                        std::vector<std::string>& warnings);

// Text workloads (ir/formats/text_workload.h) of ASTRA-sim 1.0 and SimAI, read line by line:
//
//   POLICY [number] [key: value ...]
//   number of layers
//   name dependence  cycles collective bytes (forward)  ... (input gradient)  ... (weight gradient)  update
//
// Columns are separated by any white space; empty lines are skipped. Keys come in any order, with or without
// a space after the colon; SimAI's are known too. Under HYBRID_CUSTOMIZED a 13th column is the layer's
// policy; elsewhere ASTRA-sim 1.0 would misread the file from the next layer on, so it is ignored with a
// warning. Whatever the policy never uses is a warning; what would hang or abort ASTRA-sim is an Error.

// `name` is for messages. Warnings ("FILE:LINE:COLUMN: ...") are appended; nullptr drops them. Throws Error
// with file, line and column.
TextWorkload read_astra_text(std::span<const char> bytes, const std::string& name,
                             std::vector<std::string>* warnings);

// Whether the first word is a policy.
bool looks_like_astra_text(std::span<const char> beginning);

// Reader of users' own collective schedules, for ASTRA-sim 2's "*-implementation-custom" and for MSCCL.
//
// - PREFIX: Chakra traces PREFIX.<position>.et of COMM_SEND, COMM_RECV and COMP nodes. Peers are positions in
//   the group; tags default to 0; control dependences count like data dependences. A message is comm_size
//   bytes, whatever the call asks for, or, without comm_size, the share msg_chunk_cnt / total_chunk_cnt of
//   the call (collectiveapi's newer converter). A computation lasts duration_micros, or 1 ns when that is 0.
// - the path of a file: MSCCL (ir/formats/msccl.h). Each step waits for the step before it in its threadblock
//   and for the step it names; a receiving and a sending half become a receive and a send, a reduction or a
//   local copy a computation of 1 ns, a nop one of nothing. A message is count / chunks_per_loop of the call.
// Sources: CustomAlgorithm.cc of ASTRA-sim 2; mscclang2chakra_converter.py of astra-sim/collectiveapi.

// Throws Error for what is missing, malformed, of other kinds, or for another number of members.
CustomCollective read_custom_collective(const std::string& path_or_prefix, std::int32_t members);

CustomCollective custom_collective(const MscclAlgorithm& algorithm);

// Whether the path is that of an MSCCL file, by its content, rather than the prefix of traces.
bool is_msccl_file(const std::string& path_or_prefix);

// Reader of MSCCL-XML, the collective algorithms that msccl-tools writes:
//   <algo name nchunksperloop ngpus coll inplace ...>
//     <gpu id i_chunks o_chunks s_chunks>
//       <tb id send recv chan>
//         <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>
// Source: microsoft/msccl-tools, msccl/language/ir.py, and the parser of microsoft/msccl. Attributes the
// runtime does not need for the schedule (proto, nchannels, minBytes ...) are not looked at; one that is
// nearly but not quite a known one is an Error. Linear in the file's size.

// `name` is what messages call the file. Throws Error with file:line:column.
MscclAlgorithm parse_msccl(std::span<const char> text, const std::string& name);
MscclAlgorithm read_msccl(const std::string& path);

}  // namespace armilla
