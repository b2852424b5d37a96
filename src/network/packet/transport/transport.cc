#include "network/packet/transport/transport.h"

#include <array>

namespace armilla::packets {
namespace {

const TransportRow& transport_of(const PacketSettings& settings) {
  static constexpr std::array kRows = {&kRoce, &kTcp, &kNdp, &kEqds};  // in the order of TransportFamily
  return *kRows[static_cast<std::size_t>(family_of(settings.congestion_control))];
}

}  // namespace

void Shift::move(Telemetry& telemetry) const {
  for (TelemetryHop& hop : telemetry.hops) {
    hop.time = static_cast<std::uint32_t>(hop.time + static_cast<std::uint64_t>(ns)) & 0xff'ffffU;
    hop.bytes = (hop.bytes + told[hop.port]) & 0xf'ffffU;
  }
}

Traits traits_of(const PacketSettings& settings) {
  return transport_of(settings).traits(settings);
}

std::unique_ptr<Transport> make_transport(Hosts& hosts) {
  return transport_of(hosts.core().settings).make(hosts);
}

}  // namespace armilla::packets
