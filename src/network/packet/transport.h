// What hosts do to bring the bytes of flows over: one class per family of transports (ir/flow_traffic.h),
// each in a source of its own. A transport decides what is sent next and what an arrival means; the
// simulation moves packets. Flows count as in PacketSimulation::flows_.
#pragma once

#include "network/packet/forward/fast_forward.h"
#include "network/packet/forward/words.h"
#include "network/packet/simulation.h"

namespace armilla {

class PacketSimulation::Transport {
 public:
  // What it puts on the wire, and expects of switches.
  struct Traits {
    std::uint32_t header = 0, control = 0;  // bytes: of data, and of a whole packet without any
    SwitchDiscipline discipline = SwitchDiscipline::pause;
    bool telemetry = false;  // switches write into its data packets
    bool windows = false;    // a flow has the window of its way's bandwidth-delay product
    bool in_line = false;    // a NIC serves flows in the order in which they got to send; else in turn
    bool sprays = false;     // over all of a flow's ways, there and back
    bool backs_off = false;  // waits twice as long for each timeout in a row
  };

  Transport(PacketSimulation& simulation, const Traits& its_traits)
      : traits(its_traits), sim_(simulation), settings_(simulation.settings_) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Whether a number can be that of another flow once its flow is over and no packet of it is under way; then
  // that is called.
  virtual bool can_forget() const { return false; }
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
  virtual std::uint32_t choose_way(std::uint32_t flow, Packet&) { return sim_.choose_way(sim_.flows_[flow]); }
  virtual std::uint32_t way_back(const Packet& packet) const { return sim_.flows_[packet.flow].way_back; }
  // Both take the packet over. What hosts sent to each other for other reasons than data counts as
  // acknowledgements.
  virtual void receive_data(std::uint32_t packet) = 0;
  virtual void receive_acknowledgement(std::uint32_t packet) = 0;
  // Nothing has come for a while after a loss: what is to be sent again?
  virtual void timed_out(std::uint32_t flow) = 0;
  // From when the timer of a flow runs that has had an acknowledgement since it was set: that one's time
  // where it is known.
  virtual std::int64_t progress_ns(std::uint32_t) const { return sim_.events_.now(); }
  // An event of a kind from kTimer on.
  virtual void timer(const WheelEvent& event) = 0;

  // Whether flows can go on as they do without being played (forward/fast_forward.h), and what is kept of
  // one that did.
  virtual bool can_shift() const { return false; }
  // Nothing that the algorithm does by itself is missed in stretches of so many nanoseconds.
  virtual std::int64_t longest_period_ns(std::uint32_t) const { return 0; }
  virtual void shift(std::uint32_t, const Shift&) {}
  // Whether what flows do follows from what `code` writes, or reads, of each that is not idle
  // (forward/patterns.h), and the stamp of its timers that are not out of date.
  virtual bool can_repeat() const { return false; }
  virtual void code(std::uint32_t, Words&) {}
  virtual std::uint32_t stamp_of(std::uint32_t, std::uint32_t) const { return 0; }

  const Traits traits;

 protected:
  std::uint64_t payload() const { return static_cast<std::uint64_t>(settings_.payload); }
  // For a bit per packet.
  std::size_t words(std::uint32_t flow) const { return (sim_.flows_[flow].size / payload() + 64) / 64; }
  // Data that arrives when its flow is over and nobody waits for more: frees it, returns whether it was so.
  bool frees_late(std::uint32_t packet) {
    const bool is_late = sim_.flows_[sim_.packets_[packet].flow].finished && sim_.mail_.empty();
    if (is_late) sim_.free_packet(packet);
    return is_late;
  }

  PacketSimulation& sim_;
  const PacketSettings& settings_;
};

// A flow is so much further, and so much later.
struct PacketSimulation::Shift {
  std::uint64_t bytes = 0;  // whole packets
  std::int64_t ns = 0;
  const std::vector<std::uint32_t>&
      told;  // by port: the same of what telemetry tells of it (TelemetryHop::bytes)

  void move(Telemetry& telemetry) const;
};

// What arrived out of order, and what the sender knows of it. In packets of the flow.
struct PacketSimulation::Selective {
  std::vector<std::uint64_t> arrived;  // bit per packet
  std::vector<std::uint64_t> known;    // the same, as far as the sender has been told
  std::uint64_t highest_arrived = 0;
  std::uint64_t highest_known = 0;  // below it, what is not known is taken for lost
  bool recovering = false;          // `resend` is to be sent again
  std::uint64_t resend = 0;         // everything lost before it has been sent again
  std::uint64_t recover_until = 0;  // what is lost beyond begins a new recovery

  static bool has(const std::vector<std::uint64_t>& bits, std::uint64_t packet) {
    return (bits[packet / 64] >> (packet % 64) & 1) != 0;
  }
  static void set(std::vector<std::uint64_t>& bits, std::uint64_t packet) {
    bits[packet / 64] |= std::uint64_t{1} << (packet % 64);
  }
  bool knows(std::uint64_t packet) const { return has(known, packet); }
  // The same so many packets further on; all before has arrived.
  void shift(std::uint64_t packets);
  void grow(std::size_t words) {
    arrived.resize(words);
    known.resize(words);
  }
  // The first byte that has not arrived, of a flow of so many, once all before `next` has.
  std::uint64_t expected(std::uint64_t next, std::uint64_t payload, std::uint64_t size) const {
    while (next * payload < size && has(arrived, next)) ++next;
    return std::min(next * payload, size);
  }
  void find_lost() {
    while (resend < highest_known && knows(resend)) ++resend;
    recovering = resend < highest_known;
  }
};

template <class Visit>
void PacketSimulation::for_each_port(const Flow& flow, const Visit& visit) const {
  const auto follow = [&](std::uint32_t way, bool back) {
    for (; way != WayStore::kEnd; way = ways_[way].rest) visit(ways_[way].port, back);
  };
  visit(flow.port, false);
  follow(flow.way_there, false);
  visit(flow.exit, true);
  follow(flow.way_back, true);
  if (flow.ways == 1) return;
  for (const std::uint32_t way : ways_.list(flow.ways_there, flow.ways)) follow(way, false);
  if (!transport_->traits.sprays) return;
  for (const std::uint32_t way : ways_.list(flow.ways_back, flow.ways)) follow(way, true);
}

}  // namespace armilla
