// What hosts do to bring the bytes of flows over: one class per family of transports (ir/flow_traffic.h),
// each in a source of its own. A transport decides what is sent next and what an arrival means; hosts
// move packets. Flows count as in Flows.
#pragma once

#include <memory>
#include <vector>

#include "network/packet/hosts.h"
#include "network/packet/transport/traits.h"

namespace armilla::packets {

class Words;

// A flow is so much further, and so much later.
struct Shift {
  std::uint64_t bytes = 0;  // whole packets
  std::int64_t ns = 0;
  const std::vector<std::uint32_t>&
      told;  // by port: the same of what telemetry tells of it (TelemetryHop::bytes)

  void move(Telemetry& telemetry) const;
};

class Transport {
 public:
  explicit Transport(Hosts& hosts)
      : hosts_(hosts),
        core_(hosts.core()),
        settings_(core_.settings),
        events_(core_.events),
        packets_(core_.packets),
        links_(hosts.links()),
        ways_(hosts.ways()),
        flows_(hosts.flows()),
        mail_(hosts.mail()) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // The number is that of another flow from now on (Traits::forgets).
  virtual void forget(std::uint32_t) {}
  // One more flow. `open`: a connection that hosts have had since before the job.
  virtual void add_flow(bool open) = 0;
  // The flow's size is known, or has grown.
  virtual void extend(std::uint32_t flow) = 0;
  virtual void begin(std::uint32_t flow) = 0;
  // A connection had nothing to do for so long, and has again.
  virtual void begin_again(std::uint32_t flow, std::int64_t silent_ns) = 0;

  // Something of it is about to arrive: asks the memory for what that needs.
  virtual void fetch(std::uint32_t) const {}
  virtual bool may_send(std::uint32_t flow) const = 0;
  // The next data of a flow that may send: fills in sequence and payload.
  virtual void next_data(std::uint32_t flow, Packet& data) = 0;
  // The ways that the packet takes, and that its answer takes, beyond the port of their hosts; in ways_.
  virtual std::uint32_t choose_way(std::uint32_t flow, Packet&) { return ways_.choose(flows_[flow]); }
  virtual std::uint32_t way_back(const Packet& packet) const { return flows_[packet.flow].way_back; }
  // Both take the packet over. What hosts sent to each other for other reasons than data counts as
  // acknowledgements.
  virtual void receive_data(std::uint32_t packet) = 0;
  virtual void receive_acknowledgement(std::uint32_t packet) = 0;
  // Nothing has come for a while after a loss: what is to be sent again?
  virtual void timed_out(std::uint32_t flow) = 0;
  // From when the timer of a flow runs that has had an acknowledgement since it was set: that one's time
  // where it is known.
  virtual std::int64_t progress_ns(std::uint32_t) const { return events_.now(); }
  // An event of a kind from kTimer on.
  virtual void timer(const WheelEvent& event) = 0;

  // Where flows can go on as they do without being played (Traits::shifts): nothing that the algorithm does
  // by itself is missed in stretches of so many nanoseconds, and what is kept of a flow that went on.
  virtual std::int64_t longest_period_ns(std::uint32_t) const { return 0; }
  virtual void shift(std::uint32_t, const Shift&) {}
  // What of a flow that is not idle is written, or read, where all that flows do follows from it
  // (Traits::repeats), and the stamp of its timers that are not out of date.
  virtual void code(std::uint32_t, Words&) {}
  virtual std::uint32_t stamp_of(std::uint32_t, std::uint32_t) const { return 0; }

 protected:
  std::uint64_t payload() const { return static_cast<std::uint64_t>(settings_.payload); }
  // For a bit per packet.
  std::size_t words(std::uint32_t flow) const { return (flows_[flow].size / payload() + 64) / 64; }
  // Data that arrives when its flow is over and nobody waits for more: frees it, returns whether it was so.
  bool frees_late(std::uint32_t packet) {
    const bool is_late = flows_[packets_[packet].flow].finished && !mail_.is_used();
    if (is_late) flows_.free_packet(packet);
    return is_late;
  }

  Hosts& hosts_;
  Core& core_;
  const PacketSettings& settings_;
  Events& events_;
  PacketPool& packets_;
  Links& links_;
  WayFinder& ways_;
  Flows& flows_;
  Mail& mail_;
};

// One row per family.
struct TransportRow {
  Traits (*traits)(const PacketSettings& settings);
  std::unique_ptr<Transport> (*make)(Hosts& hosts);
};
extern const TransportRow kRoce, kTcp, kNdp, kEqds;

// Of the family of the job's congestion control.
std::unique_ptr<Transport> make_transport(Hosts& hosts);

}  // namespace armilla::packets
