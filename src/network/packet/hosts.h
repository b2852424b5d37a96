// Hosts: NICs, which choose whose turn it is, and what hosts do with what arrives. What they speak is a
// transport (transport/transport.h), which decides what is sent next and what an arrival means.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/packet/flows.h"
#include "network/packet/links.h"
#include "network/packet/mail.h"
#include "network/packet/way_finder.h"

namespace armilla::packets {

class Transport;

// What a NIC looks at to choose whose turn it is.
struct Turn {
  std::int64_t next_send_ns = 0;
  std::uint32_t flow = 0;
  std::uint8_t priority = 0;
  bool ready = false;  // has bytes to send and room in its window
  bool finished = false;
};

struct Nic {
  std::vector<Turn> turns;  // of its flows; or of those in line (Traits::in_line), the first at `last`
  std::uint32_t last = 0;
  std::int64_t wake_ns = -1;  // when it looks again; -1: not foreseen
  std::uint32_t wake_stamp = 0;
  bool may_pause = true;
  std::int64_t pauses = 0;
};

class Hosts {
 public:
  Hosts(Core& core, Links& links, WayFinder& ways, Flows& flows, Mail& mail);
  ~Hosts();

  // What transports and connections use, too.
  Core& core() const { return core_; }
  Links& links() const { return links_; }
  WayFinder& ways() const { return ways_; }
  Flows& flows() const { return flows_; }
  Mail& mail() const { return mail_; }

  Transport& transport() { return *transport_; }
  const Transport& transport() const { return *transport_; }
  std::size_t nics() const { return nics_.size(); }
  Nic& nic(std::uint32_t port) { return nics_[links_[port].nic]; }
  const Nic& nic(std::uint32_t port) const { return nics_[links_[port].nic]; }

  // A flow begins; and it has a turn at its NIC from now on.
  void start(std::uint32_t flow);
  void join(std::uint32_t flow);
  // Whenever what decides about sending has changed.
  void refresh(std::uint32_t flow);
  // Sends what is next at the port, if it is free.
  void serve(std::uint32_t port);

  // Packets have arrived; an acknowledgement can be at its sender without a link, too.
  void receive_data(std::uint32_t packet);
  void receive_acknowledgement(std::uint32_t packet);
  // The packet itself becomes its answer.
  void answer(std::uint32_t packet, PacketKind kind);
  void finish(std::uint32_t flow);

  // Events: nothing has come for a while after a loss; a NIC looks again; a NIC ends its pause, and may begin
  // another.
  void timeout(std::uint32_t flow);
  void wake(std::uint32_t port, std::uint32_t stamp);
  void end_pause(std::uint32_t port, std::uint8_t priority);
  void may_pause(std::uint32_t port) { nic(port).may_pause = true; }
  // The flow's next packet may go earlier than its NIC foresaw.
  void wake_earlier(const Flow& flow);
  // Before all join again, on other ways.
  void leave_all_nics();

 private:
  void serve_first_in_line(std::uint32_t port, Nic& nic);
  std::uint32_t next_data(std::uint32_t flow);
  void send_pause_frame(std::uint32_t port, PacketKind kind, std::uint8_t priority);

  Core& core_;
  Links& links_;
  WayFinder& ways_;
  Flows& flows_;
  Mail& mail_;
  const int ack_priority_;
  std::vector<Nic> nics_;
  const std::unique_ptr<Transport> transport_;
};

}  // namespace armilla::packets
