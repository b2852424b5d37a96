// Packets of flits, and where they go next: by the network's table of routes (flit_network.h), or the way
// that they were given.
#pragma once

#include <cstdint>

#include "network/flit/flit_network.h"
#include "network/flit/lagged_random.h"

namespace armilla {

struct FlitPacket {
  std::uint32_t source = 0, destination = 0;
  std::uint32_t flits = 1;
  std::int64_t created = 0;            // cycle
  std::int64_t entered = 0;            // cycle in which its head left the node
  std::uint32_t hops = 0;              // routers that its tail has left
  bool measured = false;               // the owner's own
  std::uint32_t message = 0, way = 0;  // likewise
  std::uint32_t step = 0;              // the next one of its way, where ways are given
  // The next route.
  std::uint32_t port = 0;  // output, of all
  VcRange vcs;
  std::uint8_t phase = 0;
};

// What the packet, which comes in there, asks of the router. Draws where a way is chosen by chance.
inline void set_route(const FlitNetwork& network, std::uint32_t vcs, std::uint32_t router,
                      std::uint32_t input_port, LaggedRandom& random, FlitPacket& packet) {
  if (network.rule == RouteRule::given) {
    const FlitStep& step = network.steps[packet.step++];
    packet.port = step.port;
    packet.vcs = step.vcs;
    return;
  }
  const RouteEntry& entry = network.route(router, packet.destination);
  const std::uint32_t input = input_port - network.first_port[router];
  std::uint32_t port = entry.port;
  switch (network.rule) {
    case RouteRule::any_vc:
      if (entry.choices > 0) port += random.below(entry.choices);
      break;
    case RouteRule::dateline:
      if (entry.ejects) break;
      // Ports of a ring come in pairs, one for each direction. A packet keeps its direction: only where it
      // enters the ring is there a choice, and a draw.
      if (input / 2 == entry.port / 2) {
        port = input ^ 1;  // further the same way
      } else {
        if (entry.choices > 0) port += 1 - random.below(2);
        packet.phase = entry.phase;
      }
      break;
    case RouteRule::global_hops:
      // The VC rises with each global link, from 0 where the packet leaves its node, and never falls: so
      // nothing waits in a circle.
      if (input < network.node_ports) packet.phase = 0;
      packet.phase |= entry.phase;
      break;
    case RouteRule::given:
      break;
  }
  packet.port = network.first_port[router] + port;
  packet.vcs = vc_range(network.rule, entry.ejects, packet.phase, vcs);
}

}  // namespace armilla
