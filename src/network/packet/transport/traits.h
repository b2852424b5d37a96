// What a transport puts on the wire, and expects of switches: known of a job before anything is built.
#pragma once

#include <cstdint>

#include "ir/flow_traffic.h"

namespace armilla::packets {

// What switches do about what they have no room for: they keep it from coming by PFC, drop it, or cut it
// down to its headers, which go before data.
enum class SwitchDiscipline : std::uint8_t { pause, drop, trim };

struct Traits {
  std::uint32_t header = 0, control = 0;  // bytes: of data, and of a whole packet without any
  SwitchDiscipline discipline = SwitchDiscipline::pause;
  bool telemetry = false;       // switches write into its data packets as they leave the queue
  bool told_when_sent = false;  // and again when they have left, in fields as wide as it takes
  bool windows = false;         // a flow has the window of its way's bandwidth-delay product
  bool in_line = false;         // a NIC serves flows in the order in which they got to send; else in turn
  bool sprays = false;          // over all of a flow's ways, there and back
  bool backs_off = false;       // waits twice as long for each timeout in a row
  // Whether a number can be that of another flow once its flow is over and no packet of it is under way.
  bool forgets = false;
  // Whether flows can go on as they do without being played (forward/fast_forward.h), and whether what they
  // do follows from what Transport::code writes of them (forward/patterns.h).
  bool shifts = false, repeats = false;
};

Traits traits_of(const PacketSettings& settings);

}  // namespace armilla::packets
