#include "network/packet/marking.h"

namespace armilla::packets {
namespace {

// ns-3 numbers its random streams as objects are made. Of those made before the first packet, nine
// belong to every node's protocols, two to the network's error model and two to that of each link with a
// loss of its own.
std::uint64_t first_marking_stream(const NetworkGraph& graph) {
  std::uint64_t streams = 9 * graph.is_switch.size() + 2;
  for (const GraphLink& link : graph.links) streams += link.loss > 0 ? 2 : 0;
  return streams;
}

}  // namespace

Marking::Marking(const FlowJob& job) : draws_(job.settings.seed, first_marking_stream(job.graph)) {
  if (!job.usual_settings || !job.settings.ecn) return;
  for (std::uint64_t port = 0; port < 2 * job.graph.links.size(); ++port) {
    std::uint64_t coins = job.settings.seed;
    coins = coin_bits(coins) ^ port;
    coins_.push_back(coin_bits(coins));
  }
}

}  // namespace armilla::packets
