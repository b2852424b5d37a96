#include "network/packet.h"

#include "network/packet/simulation.h"

namespace armilla {

PacketOutcome simulate_packets(const FlowJob& job) {
  return PacketSimulation(job).run();
}

}  // namespace armilla
