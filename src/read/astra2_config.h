// ASTRA-sim 2.x's configuration: system JSON, network YAML, remote memory JSON and the table of per-node
// custom collectives -> SystemLayer. The communicator groups are read/communicators_json.h.
//
// Keys and units are those of Sys.cc, CollectiveImplLookup.cc and NetworkParser.cc (2.x, 2026): bandwidth in
// GB/s of 2^30 bytes, latency and delays in ns, local-mem-bw in 10^9 B/s, peak-perf in 10^12 flop/s. The
// scheduling keys of 1.0 (intra- and inter-dimension-scheduling) work here, too. Where a missing key leaves
// the peer with an uninitialised value, this takes what the measured runs showed and says so in `warnings`;
// an unknown key is an Error. "boost-mode" and keys that look like comments ("_note", "comment") are ignored
// with a warning. Not read: the ns-3 and htsim backends' own files.
#pragma once

#include <string>
#include <vector>

#include "ir/formats/system_layer.h"

namespace armilla {

struct Astra2Settings {
  Semantics semantics = Semantics::astra2_unaware;
  std::string system, network, remote_memory;  // paths; no remote memory when empty
  // Of the command line:
  double injection_scale = 1;
  std::int64_t queues_per_dimension = 1;
  bool rendezvous = false;
};

// All of it, with every check that needs no workload. Throws Error.
SystemLayer read_astra2_config(const Astra2Settings& settings, std::vector<std::string>& warnings);

// One file each. The system file needs the dimensions and semantics of `system` to be set.
std::vector<StreamDimension> read_astra2_network(const std::string& path, std::vector<std::string>& warnings);
RemoteMemory read_astra2_remote_memory(const std::string& path, std::int64_t ranks,
                                       std::vector<std::string>& warnings);
void read_astra2_system(const std::string& path, double injection_scale, SystemLayer& system,
                        std::vector<std::string>& warnings);

}  // namespace armilla
