// A network of routers as arrays: channels from outputs to inputs, and the table of routes. Ports of a router
// are numbered, each an input and an output; all ports of all routers are numbered in one row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/flit.h"

namespace armilla {

inline constexpr std::uint32_t kNoFlitPort = UINT32_MAX;

// From an output to an input, or to a node; credits go back on it. What is written on a channel is read
// latency + 1 cycles later, and a flit that takes longer than a cycle so much later than that.
struct FlitChannel {
  static constexpr std::uint32_t kCycle = 1 << 16;
  std::uint32_t input = kNoFlitPort;  // port of the router behind it
  std::uint32_t node = kNoFlitPort;   // or the node that takes the flits
  std::uint32_t latency = 1;
  std::uint32_t period = kCycle;  // from one flit to the next, in 1/65536 cycles, at least a cycle

  std::uint32_t whole_period() const { return (period + kCycle - 1) / kCycle; }
};

// How the table is read.
enum class RouteRule : std::uint8_t {
  any_vc,       // all virtual channels are alike
  dateline,     // rings: a lower and an upper half, chosen when a ring is entered: does the way wrap around?
  global_hops,  // one per global link that the packet has passed
  given         // every packet has its way
};

// The virtual channels that a route may use: first and last.
struct VcRange {
  std::uint16_t first = 0, last = 0;
  bool operator==(const VcRange&) const = default;
};

// Of a way that is given: the output of a router, of all ports.
struct FlitStep {
  std::uint32_t port = 0;
  VcRange vcs;
};

// Where a packet goes next: of the router and the destination.
struct RouteEntry {
  std::uint16_t port = 0;     // of the router; the first of them
  std::uint16_t choices = 0;  // one of so many ports, by chance; 0: there is no choice
  std::uint8_t phase = 0;     // dateline: the half; global_hops: 1 where this port is a global link
  bool ejects = false;
};

struct FlitNetwork {
  RouteRule rule = RouteRule::any_vc;
  std::uint32_t nodes = 0, routers = 0;
  std::vector<std::uint32_t> first_port;  // of each router, and one past the last
  std::vector<std::uint32_t> router_of_port;
  std::vector<FlitChannel> outputs;                   // of each port; those of nodes follow, in their order
  std::vector<std::string> port_names;                // of the ports of the largest router, for messages
  std::vector<RouteEntry> routes;                     // [router * nodes + destination]
  std::vector<FlitStep> steps;                        // given: of all ways, those of each in a row
  std::vector<std::string> router_names, node_names;  // for messages; empty: they have numbers
  // dateline: ports 2d and 2d+1 are both directions of ring d. global_hops: a packet enters at these ports.
  std::uint32_t node_ports = 0;

  std::uint32_t ports() const { return first_port.back(); }
  const RouteEntry& route(std::uint32_t router, std::uint32_t destination) const {
    return routes[static_cast<std::size_t>(router) * nodes + destination];
  }
  // "router 5 from router 4": what is behind it.
  std::string input_name(std::uint32_t port) const;
  std::string router_name(std::uint32_t router) const;
  std::string node_name(std::uint32_t node) const;  // "node 3"
  // Fills router_of_port.
  void number_ports();
};

// Throws Error for sizes that are none, or too large.
FlitNetwork make_flit_network(const FlitStudy& study);

// A cycle of buffers that can wait for each other for ever, in words, by the routes alone; empty: there is
// none. It looks at sets of virtual channels that a route may use: those of two routes must be the same or
// have nothing in common, else nothing is said of them.
std::string possible_deadlock(const FlitNetwork& network, std::int64_t virtual_channels);

inline VcRange vc_range(RouteRule rule, bool ejects, std::uint8_t phase, std::int64_t virtual_channels) {
  const auto all = static_cast<std::uint16_t>(virtual_channels);
  if (rule == RouteRule::global_hops) return {phase, phase};
  if (rule == RouteRule::dateline && !ejects) {
    const auto half = static_cast<std::uint16_t>(all / 2);
    return phase == 0 ? VcRange{0, static_cast<std::uint16_t>(all - 1 - half)}
                      : VcRange{half, static_cast<std::uint16_t>(all - 1)};
  }
  return {0, static_cast<std::uint16_t>(all - 1)};
}

}  // namespace armilla
