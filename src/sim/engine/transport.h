// Messages between ranks for whoever is not a collective algorithm: point-to-point nodes and custom
// collectives. The event queue's handler `target` is called with `argument` when the message has arrived.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace armilla {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual void send(std::int32_t source, std::int32_t destination, Bytes bytes, std::uint32_t target,
                    std::uint64_t argument) = 0;
};

}  // namespace armilla
