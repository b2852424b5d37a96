// Interconnects of machines (ir/interconnect.h): made from a few parameters, written down link by link, or
// read from other simulators' files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "ir/interconnect.h"
#include "ir/machine.h"

namespace armilla {

struct MachineLinks {
  Interconnect graph;                 // empty: that of the dimensions
  std::vector<Dimension> dimensions;  // that collectives are planned by
  std::string surplus = {};           // where and what of a file is not among the links, as in ns-3; or empty
  std::string without_effect =
      {};  // a warning of keys that say nothing here, as of htsim's own queues; or empty
};

struct TopologyInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  MachineLinks (*make)(const ParameterValues& values);
};
std::span<const TopologyInfo> topologies();
// Whether the text, up to its parameters, is one of their names: units such as GB/s make no path of it.
bool names_topology(std::string_view text);

// Throws Error for an unknown topology, unknown parameters, bad values, and more than a million nodes.
MachineLinks make_topology(const ComponentChoice& choice);

// `topology:` of a machine: a path, "fat-tree:k=8", or {kind: fat-tree, k: 8}.
MachineLinks read_topology(const Config& config);

// `nodes:` and `links:` of a machine (docs/formats/machine.md). One dimension holds all devices.
MachineLinks read_links(const Config& nodes, const Config& links);

// "leaf0-spine1": the link failed; "leaf0-spine1=0.5": it carries that share of its bandwidth. Throws Error.
DamagedLink parse_damage(const std::string& text, const std::string& where);

// HPCC's and SimAI's ns-3 topology.txt, htsim's .topo, InfraGraph, a configuration of BookSim, and the
// network files of ASTRA-sim 1.0 and 2, told apart by what is in them. Throws Error with file:line. Links
// beyond those that ns-3's files announce are told of, and refused where they are asked for by name.
MachineLinks read_topology_file(const std::string& path);

// What is called so on a command line: "fat-tree:k=8", or the path of such a file.
MachineLinks named_topology(const std::string& name);

// All devices in one dimension, a Switch: each with the bandwidth of its widest link (the least of all
// devices), and half the latency of the longest of the shortest ways from the first device.
Dimension one_dimension(const Interconnect& graph, const std::string& name);

}  // namespace armilla
