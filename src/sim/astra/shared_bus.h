// The bus between a rank's memory and its network endpoint as ASTRA-sim models it with "model-shared-bus": a
// LogGP channel per direction, the two excluding each other, with a memory bus of the same kind behind one
// end.
//
// Alexandrov et al., "LogGP: Incorporating Long Messages into the LogP Model", SPAA 1995; the state machine
// is that of astra-sim 2.x LogGP.cc (1.0 likewise): a transfer occupies the sending end for offset + G (bytes
// - 1) and the receiving end until offset + G (bytes - 1) + L + o, with offset o, or the rest of the gap g
// after a transfer the same way; eight transfers one way in a row give way to the other. Data to be reduced
// passes through processing of bytes / 100 x local-reduction-delay + 50 ns. The attached memory bus has G =
// 0.0038 ns per byte. Times are whole nanoseconds. Cost: O(1) events per transfer and stage.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "event/event_queue.h"
#include "ir/formats/system_layer.h"
#include "sim/engine/run_context.h"

namespace armilla {

class SharedBuses {
 public:
  // Without buses where `system` models none. `target`: the event queue's handler that hears of what has
  // crossed.
  SharedBuses(const RunContext& context, const SystemLayer& system, std::uint32_t target);
  SharedBuses(const SharedBuses&) = delete;
  SharedBuses& operator=(const SharedBuses&) = delete;
  ~SharedBuses();

  // `to_endpoint`: from memory to the network endpoint, else back. `processed`: to be reduced on the way;
  // `returned`: comes back to where it started.
  void cross(std::int32_t rank, bool to_endpoint, std::int64_t bytes, bool processed, bool returned,
             std::uint64_t argument);

 private:
  class Bus;
  std::vector<std::unique_ptr<Bus>> buses_;
};

}  // namespace armilla
