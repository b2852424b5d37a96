// Interconnect: the links of a machine as an explicit graph of devices, network interfaces and switches. A
// machine that has one runs over it on the networks that take any graph (flow, packet, flit); its dimensions
// are then how collectives are planned, and what the analytical network sees.
//
// Node r < devices is the device of rank r. Between two nodes may lie any number of cables; each is two
// directed links, with figures of their own: link 2c leads from a to b of cable c, link 2c + 1 back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace armilla {

enum class NetworkNodeKind : std::uint8_t { device, nic, switched };
std::string_view name_of(NetworkNodeKind kind);  // "device", "nic", "switch"

struct InterconnectNode {
  NetworkNodeKind kind = NetworkNodeKind::switched;
  std::string name;          // "gpu3", "leaf0"
  std::int64_t number = -1;  // in the file that it is from, which calls its nodes by numbers; -1: in none
};

struct LinkFigures {
  Bandwidth bandwidth;
  Time latency;
  double loss = 0;  // of packets, 0 <= loss < 1
  // Before it was derated. Routers do not know that a link is slow: ways are chosen as if it were whole.
  std::optional<Bandwidth> whole = {};

  Bandwidth width() const { return whole.value_or(bandwidth); }
  void derate(double share) {
    whole = width();
    bandwidth.value *= share;
  }
  // Of all links alike, which routers know.
  void scale(double factor) {
    bandwidth.value *= factor;
    if (whole) whole->value *= factor;
  }
};

struct Cable {
  std::uint32_t a = 0, b = 0;   // nodes
  LinkFigures there, back;      // from a to b, and from b to a
  std::uint32_t dimension = 0;  // of the machine, that it belongs to: for reports and what-if
};

struct Interconnect {
  std::vector<InterconnectNode> nodes;
  std::vector<Cable> cables;
  bool devices_forward = false;  // what is for others may pass through a device

  bool empty() const { return nodes.empty(); }
  std::int64_t devices() const;
};

// Every cable between two nodes carries less, or is gone.
struct DamagedLink {
  std::string between;   // "leaf0-spine1": their names
  double bandwidth = 0;  // times; 0: failed
  std::string where;     // where it was given
};

// What the two names of "leaf0-spine1" are, and which cables lie between them. Throws Error for names that
// are none ("did you mean"), and for nodes that no cable joins.
std::vector<std::uint32_t> cables_between(const Interconnect& graph, const DamagedLink& link);

// The graph with its links damaged; failed cables are not in it, and those behind them count one less. Throws
// Error as above, for a cable given both as failed and with a share, and, naming two of them, where devices
// are cut off from each other.
Interconnect with_damage(Interconnect graph, std::span<const DamagedLink> damage);

// Throws Error (`where`: of the machine) for devices behind other nodes, cables from nowhere or of a node
// with itself, no bandwidth, and devices that no way leads to (the first is named).
void validate_interconnect(const Interconnect& graph, const std::string& where);

}  // namespace armilla
