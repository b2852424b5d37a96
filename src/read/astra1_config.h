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
// Not read: files of the Garnet and ns-3 backends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/formats/system_layer.h"

namespace armilla {

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
std::vector<StreamDimension> read_astra1_network(const Astra1Settings& settings,
                                                 std::vector<std::string>& warnings);
void read_astra1_system(const Astra1Settings& settings, SystemLayer& system,
                        std::vector<std::string>& warnings);

// What the peer makes of `value` times a factor of its command line, before it truncates: factors are single
// precision, the product, too, in the tutorials' release.
double astra1_scaled(std::int64_t value, double scale, bool tutorial_release);

// What the peer's cost model asks for the network, in dollars: NVLink 100 per 50 GB/s, tile-to-tile links
// half of that, InfiniBand switches 23,698 per 40 ports, InfiniBand interfaces 1,200. The sums are those of
// its HierarchicalTopology.cc, but a tile-to-tile link of any topology is priced by its bandwidth. The
// tutorials' release asks per GB/s: 1 for tile-to-tile links, 4 for others, 7.4 between pods, 13 or 23.7 for
// a switch's port, 47.8 for an interface to a pod's switch; its switches between tiles, which have no price
// there, cost as others.
double astra1_network_cost(const SystemLayer& system);

}  // namespace armilla
