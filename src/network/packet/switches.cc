#include <algorithm>
#include <bit>
#include <utility>

#include "network/packet/transport.h"

namespace armilla {

void PacketSimulation::serve_switch(std::uint32_t index) {
  Port& port = ports_[index];
  int queue = 0;
  // Queue 0 goes before all others and cannot be paused.
  if ((port.waiting & 1) == 0) {
    const unsigned open = port.waiting & ~port.paused & 0xfeU;
    if (open == 0) return;
    // The next one after the one served last, around.
    const unsigned after = open & (0xffU << (port.last_served + 1));
    queue = std::countr_zero(after != 0 ? after : open);
    port.last_served = static_cast<std::uint8_t>(queue);
  }
  Queue& waiting = shares_[index][static_cast<std::size_t>(queue)].queue;
  const std::uint32_t packet = take(waiting);
  if (waiting.head == kNone) port.waiting &= static_cast<std::uint8_t>(~(1U << queue));
  port.queued -= packets_[packet].size;
  if (sampler_) sampler_->waits(index, events_.now(), port.queued);
  leave_switch(index, packet, static_cast<std::uint8_t>(queue));
  transmit(index, packet);
}

void PacketSimulation::leave_switch(std::uint32_t index, std::uint32_t number, std::uint8_t queue) {
  Port& port = ports_[index];
  // A packet still knows by which port it came, whose share of the buffer it gives back.
  const std::uint32_t size = packets_[number].size, came_by = packets_[number].port;
  if (queue == 0 && discipline_ == SwitchDiscipline::trim) shares_[index][queue].leaving -= size;
  if (queue != 0) {
    Switch& here = switches_[port.node];
    Shares& in = shares_[came_by][queue];
    Shares& out = shares_[index][queue];
    if (discipline_ == SwitchDiscipline::pause) {
      // Given back in the opposite order of taking: headroom first, then what is shared, at last the port's
      // own reserve, which is nobody else's.
      const std::uint32_t from_headroom = std::min(in.headroom, size);
      const std::uint32_t shared = in.arrived > kReserve ? in.arrived - kReserve : 0;
      here.shared_used -= std::min(size - from_headroom, shared);
      in.headroom -= from_headroom;
      in.arrived -= size - from_headroom;
    } else if (discipline_ == SwitchDiscipline::drop) {
      here.shared_used -= size;
    }
    out.leaving -= size;
    if (settings_.ecn) {
      // Marked by what is left behind it as it leaves, not by what it met when it came.
      bool mark = out.leaving > port.ecn.maximum;
      if (!mark && out.leaving > port.ecn.minimum) {
        const double probability = port.ecn.probability *
                                   static_cast<double>(out.leaving - port.ecn.minimum) /
                                   static_cast<double>(port.ecn.maximum - port.ecn.minimum);
        // No draw where the outcome is certain.
        mark = marks(probability, index);
        // What follows from a draw does not follow from the state: patterns end here.
        if (forward_) forward_->left_to_chance(index);
      }
      if (mark) {
        Packet& packet = packets_[number];
        if (!packet.marked) ++outcome_.marked_packets;
        packet.marked = true;
      }
    }
    if (in.pausing) {
      const std::uint32_t used = in.arrived > kReserve ? in.arrived - kReserve : 0;
      // Below the threshold by an offset, so that the peer is not stopped and let go with every packet.
      if (in.headroom == 0 && (used == 0 || used + kResumeOffset <= threshold(ports_[came_by]))) {
        pause_peer(came_by, queue, false);
      }
    }
  }
  if (has_telemetry_ && packets_[number].kind == PacketKind::data) {
    Telemetry& told = telemetry_[number];
    const auto unit = static_cast<std::uint64_t>(settings_.telemetry_unit);
    told.hops[told.count++ % kTelemetryHops] = {
        // Times, bytes and queues run over, as in the telemetry's fields of 24, 20 and 17 bits.
        static_cast<std::uint32_t>(events_.now()) & 0xff'ffffU,
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(port.carried_bytes) / (128 * unit)) & 0xf'ffffU,
        static_cast<std::uint32_t>(port.queued / (80 * unit)) & 0x1'ffffU, index, port.rate};
  }
}

bool PacketSimulation::marks(double probability, std::uint32_t port) {
  return marking_coins_.empty() ? marking_.next() < probability : happens(probability, marking_coins_[port]);
}

void PacketSimulation::pause_peer(std::uint32_t index, int priority, bool pause) {
  const std::uint32_t number = new_packet();
  Packet& frame = packets_[number];
  frame.kind = pause ? PacketKind::pause : PacketKind::resume;
  frame.priority = static_cast<std::uint8_t>(priority);
  frame.size = kPauseFrame;
  if (marking_coins_.empty()) marking_.skip();  // ns-3 draws an identification for the frame
  Port& port = ports_[index];
  shares_[index][static_cast<std::size_t>(priority)].pausing = pause;
  // Pauses go by queue 0, before all data, and are never held back themselves.
  append(shares_[index][0].queue, number);
  port.waiting |= 1;
  port.queued += frame.size;
  serve(index);
}

// Of packets that go to a port whose data has no room for another one, the last one there or the one that
// comes loses its payload, by a coin (Handley et al., SIGCOMM 2017). What then is at hand goes on in
// `number`; false: not even that had room.
bool PacketSimulation::trim(std::uint32_t number, std::uint32_t exit) {
  Packet& packet = packets_[number];
  Port& port = ports_[exit];
  if (packet.priority != 0) {
    Shares& data = shares_[exit][packet.priority];
    // The one that is being sent has left the queue but not the port: it counts.
    const Packet* sending = port.busy ? &packets_[port.sending] : nullptr;
    const std::uint32_t sent = sending != nullptr && sending->priority != 0 ? sending->size : 0;
    if (static_cast<std::int64_t>(data.leaving) + sent + packet.size <= trim_limit_) {
      data.leaving += packet.size;
      return true;
    }
    // A coin, so that flows in step are not cut one and the same all the time.
    if (data.queue.head != kNone && throw_coin()) {
      Packet& last = packets_[data.queue.tail];
      data.leaving += packet.size - last.size;
      port.queued += packet.size - last.size;
      std::swap(last, packet);
      last.next = kNone;
    }
    ++outcome_.trimmed_packets;
    const std::uint32_t headers = transport_->traits.control;
    outcome_.data.dropped += packet.size - headers;
    packet.size = headers;
    packet.priority = 0;
    packet.trimmed = true;
  }
  Shares& headers = shares_[exit][0];
  if (static_cast<std::int64_t>(headers.leaving) + packet.size > 2 * trim_limit_) {
    drop(number, false);
    return false;
  }
  headers.leaving += packet.size;
  return true;
}

bool PacketSimulation::is_beyond_port_queue(std::int64_t held) {
  constexpr double kByChance = 0.1;
  return held > port_limit_ || (held > port_random_ && happens(kByChance, coins_));
}

void PacketSimulation::forward(std::uint32_t number) {
  Packet& packet = packets_[number];
  const std::uint32_t entry = packet.port;
  const bool back = packet.kind != PacketKind::data && packet.kind != PacketKind::request;
  std::uint32_t exit = 0;
  if (hashed_) {
    FlowAddress flow = flows_[packet.flow].address;
    // A path is another source port to switches, which hash it like a flow of its own.
    flow.source_port = static_cast<std::uint16_t>(flow.source_port + packet.path);
    exit = next_port(job_.graph, routes_, ports_[entry].node, back ? flow.back() : flow);
    if (exit == kNoPort) {
      drop(number, true);
      return;
    }
  } else {
    if (job_.choice == WayChoice::progressive && packet.kind == PacketKind::data) choose_again(packet);
    const WayStore::Step& step = ways_[packet.step];
    exit = step.port;
    packet.step = step.rest;
  }
  std::uint8_t queue = packet.priority;
  if (discipline_ == SwitchDiscipline::trim) {
    if (!trim(number, exit)) return;
    queue = packet.priority;
  } else if (queue != 0 && discipline_ == SwitchDiscipline::drop) {
    // No pauses: what finds no room is dropped. A port may hold as much as is free (Choudhury and Hahne,
    // IEEE/ACM Transactions on Networking 6(2), 1998).
    Switch& here = switches_[ports_[entry].node];
    Shares& out = shares_[exit][queue];
    if (out.leaving + packet.size > here.buffer_left - here.shared_used ||
        is_beyond_port_queue(std::int64_t{out.leaving} + packet.size)) {
      drop(number, false);
      return;
    }
    here.shared_used += packet.size;
    out.leaving += packet.size;
  } else if (queue != 0) {
    const Port& port = ports_[entry];
    Switch& here = switches_[port.node];
    Shares& in = shares_[entry][queue];
    const std::uint32_t limit = threshold(port);
    const std::uint32_t used = in.arrived > kReserve ? in.arrived - kReserve : 0;
    if (packet.size + in.headroom > port.headroom_limit && packet.size + used > limit) {
      drop(number, false);
      return;
    }
    const std::uint32_t held = in.arrived + packet.size;
    if (held <= kReserve) {
      in.arrived = held;
    } else if (held - kReserve > limit) {
      in.headroom += packet.size;
    } else {
      in.arrived = held;
      here.shared_used += std::min(packet.size, held - kReserve);
    }
    // What goes out is counted apart from what came in: pauses go by inputs, marks by outputs.
    shares_[exit][queue].leaving += packet.size;
    if (!in.pausing) {
      const std::uint32_t now_used = in.arrived > kReserve ? in.arrived - kReserve : 0;
      if ((forward_ || can_repeat_) && is_crowded(port, in)) crowded(entry);
      if (in.headroom > 0 || now_used >= threshold(port)) pause_peer(entry, queue, true);
    }
  }
  // pause_peer may have moved the packets in memory.
  append(shares_[exit][queue].queue, number);
  Port& out = ports_[exit];
  out.waiting |= static_cast<std::uint8_t>(1U << queue);
  out.queued += packets_[number].size;
  if (sampler_) sampler_->waits(exit, events_.now(), out.queued);
  outcome_.longest_queue = std::max<std::int64_t>(outcome_.longest_queue, out.queued);
  serve(exit);
}

}  // namespace armilla
