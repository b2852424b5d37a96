// What goes wrong: packets that are dropped or lost, and priority flow control that comes to a deadlock.
#pragma once

#include <cstdint>

#include "network/packet/flows.h"
#include "network/packet/links.h"

namespace armilla::packets {

class Losses {
 public:
  Losses(Core& core, Links& links, Flows& flows) : core_(core), links_(links), flows_(flows) {}

  // By a full buffer, or on a link. Frees the packet.
  void drop(std::uint32_t packet, bool on_link);

 private:
  Core& core_;
  Links& links_;
  Flows& flows_;
};

// Throws Error if ports wait for each other in a cycle.
void explain_deadlock(const Core& core, const Links& links);

}  // namespace armilla::packets
