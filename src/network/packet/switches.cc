#include "network/packet/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace armilla::packets {

Switches::Switches(Core& core, Links& links, const WayFinder& ways, const Flows& flows, Losses& losses)
    : most_before_pause_(core.settings.xoff > 0 ? static_cast<std::uint32_t>(core.settings.xoff - kReserve)
                                                : UINT32_MAX),
      resume_offset_(core.settings.xoff > 0
                         ? static_cast<std::uint32_t>(core.settings.xoff - core.settings.xon)
                         : kResumeOffset),
      core_(core),
      links_(links),
      ways_(ways),
      flows_(flows),
      losses_(losses),
      watches_crowds_(core.forwards || core.repeats),
      coins_(core.settings.seed) {
  const NetworkGraph& graph = core.job.graph;
  const PacketSettings& settings = core.settings;
  const std::int64_t frame = settings.payload + core.traits.header;
  trim_limit_ = settings.trim_queue * frame;
  if (settings.port_queue > 0) {
    port_limit_ = settings.port_queue * frame;
    port_random_ = std::max<std::int64_t>(0, settings.port_queue - settings.port_queue_random) * frame;
  }
  shares_.resize(links.size());
  switches_.resize(graph.is_switch.size());
  std::int64_t nic_rate = 0;
  // Of the first host, as in HPCC's ns-3, which takes all NICs to be alike.
  for (std::uint32_t node = 0; node < graph.is_switch.size() && nic_rate == 0; ++node) {
    if (!graph.is_switch[node] && !links.of_node(node).empty())
      nic_rate = links[links.of_node(node).front()].rate;
  }
  for (std::uint32_t node = 0; node < graph.is_switch.size(); ++node) {
    if (!graph.is_switch[node]) continue;
    std::int64_t kept = 0, least_share = 1;
    for (const std::uint32_t index : links.of_node(node)) {
      Port& port = links[index];
      if (const auto found = settings.ecn_of_rate.find(port.rate); found != settings.ecn_of_rate.end()) {
        port.ecn = found->second;
      }
      if (core.traits.discipline != SwitchDiscipline::pause) continue;  // without PFC nothing is kept for it
      // What comes in while a pause is on its way, and until it takes effect: three times the link's
      // bandwidth times delay.
      auto headroom = static_cast<WideProduct>(port.rate) * port.delay_ns / 8 / 1'000'000'000 * 3;
      // Short links need what comes there and back, and frames: the one that asks for the pause, those
      // that go while it waits for one the other way and for acknowledgements, and the one that has
      // just begun then.
      if (settings.buffer_is_shared)
        headroom =
            std::max<WideProduct>(headroom, headroom / 3 * 2 + 4 * (settings.payload + core.traits.header));
      if (headroom > (settings.buffer_is_shared ? UINT32_MAX : settings.buffer)) {
        throw Error(core.job.where,
                    fmt::format("a link of {} with {} bit/s and {} ns needs {} bytes of headroom, and its "
                                "buffer has {}",
                                core.job.graph.called(node, "switch"), port.rate, port.delay_ns,
                                static_cast<std::int64_t>(headroom), settings.buffer),
                    "give the switches larger buffers (BUFFER_SIZE in MB, or packet:buffer=)");
      }
      port.headroom_limit = static_cast<std::uint32_t>(headroom);
      for (std::int64_t rate = port.rate; rate > nic_rate && port.threshold_shift > 0; rate /= 2)
        --port.threshold_shift;
      least_share = std::max(least_share, std::int64_t{1} << port.threshold_shift);
      kept += port.headroom_limit + kReserve;
    }
    if (settings.buffer_is_shared) kept = 0;
    if (kept >= settings.buffer) {
      throw Error(core.job.where,
                  fmt::format("{} needs {} bytes for the reserve and the headroom of its {} ports, and its "
                              "buffer has {}",
                              core.job.graph.called(node, "switch"), kept, links.of_node(node).size(),
                              settings.buffer),
                  "give the switches larger buffers (BUFFER_SIZE in MB, or packet:buffer=)");
    }
    Switch& here = switches_[node];
    here.buffer_left = static_cast<std::uint32_t>(settings.buffer - kept);
    // If each of n ports holds less than c of a buffer B, the least threshold is at least
    // (B - n c) / least_share, which is c for c = B / (n + least_share). Less two packets: what comes in at
    // one nanosecond.
    const std::int64_t calm =
        std::min<std::int64_t>(
            here.buffer_left / (static_cast<std::int64_t>(links.of_node(node).size()) + least_share),
            most_before_pause_) -
        2 * frame;
    here.calm = static_cast<std::uint32_t>(std::max<std::int64_t>(0, calm));
    here.joins = calm < 0 && core.traits.discipline == SwitchDiscipline::pause;
  }
}

void Switches::serve(std::uint32_t index) {
  Port& port = links_[index];
  if (port.busy || !port.up) return;
  int queue = 0;
  // Queue 0 goes before all others and cannot be paused.
  if ((port.waiting & 1) == 0) {
    const unsigned open = port.waiting & ~port.paused & 0xfeU;
    if (open == 0) return;
    // The next one after the one served last, around.
    // Without a loop over eight queues, of which mostly one is used.
    const unsigned after = open & (0xffU << (port.last_served + 1));
    queue = std::countr_zero(after != 0 ? after : open);
    port.last_served = static_cast<std::uint8_t>(queue);
  }
  Queue& waiting = shares_[index][static_cast<std::size_t>(queue)].queue;
  const std::uint32_t packet = core_.packets.take(waiting);
  if (waiting.head == kNone) port.waiting &= static_cast<std::uint8_t>(~(1U << queue));
  port.queued -= core_.packets[packet].size;
  links_.note_waiting(index);
  leave(index, packet, static_cast<std::uint8_t>(queue));
  links_.transmit(index, packet);
}

void Switches::leave(std::uint32_t index, std::uint32_t number, std::uint8_t queue) {
  Port& port = links_[index];
  // A packet still knows by which port it came, whose share of the buffer it gives back.
  const std::uint32_t size = core_.packets[number].size, came_by = core_.packets[number].port;
  if (queue == 0 && core_.traits.discipline == SwitchDiscipline::trim) shares_[index][queue].leaving -= size;
  if (queue != 0) {
    Switch& here = switches_[port.node];
    Shares& in = shares_[came_by][queue];
    Shares& out = shares_[index][queue];
    if (core_.traits.discipline == SwitchDiscipline::pause) {
      // Given back in the opposite order of taking: headroom first, then what is shared, at last the port's
      // own reserve, which is nobody else's.
      const std::uint32_t from_headroom = std::min(in.headroom, size);
      const std::uint32_t shared = in.arrived > kReserve ? in.arrived - kReserve : 0;
      here.shared_used -= std::min(size - from_headroom, shared);
      in.headroom -= from_headroom;
      in.arrived -= size - from_headroom;
    } else if (core_.traits.discipline == SwitchDiscipline::drop) {
      here.shared_used -= size;
    }
    out.leaving -= size;
    if (core_.settings.ecn) {
      // Marked by what is left behind it as it leaves, not by what it met when it came.
      bool mark = out.leaving > port.ecn.maximum;
      if (!mark && out.leaving > port.ecn.minimum) {
        const double probability = port.ecn.probability *
                                   static_cast<double>(out.leaving - port.ecn.minimum) /
                                   static_cast<double>(port.ecn.maximum - port.ecn.minimum);
        // No draw where the outcome is certain.
        mark = core_.marking.marks(probability, index);
        // What follows from a draw does not follow from the state: patterns end here.
        core_.watcher.left_to_chance(index);
      }
      if (mark) {
        Packet& packet = core_.packets[number];
        if (!packet.marked) ++core_.outcome.marked_packets;
        packet.marked = true;
      }
    }
    if (in.pausing) {
      const std::uint32_t used = in.arrived > kReserve ? in.arrived - kReserve : 0;
      // Below the threshold by an offset, so that the peer is not stopped and let go with every packet.
      if (in.headroom == 0 && (used == 0 || used + resume_offset_ <= threshold(links_[came_by]))) {
        pause_peer(came_by, queue, false);
      }
    }
  }
  if (core_.traits.telemetry && core_.packets[number].kind == PacketKind::data) {
    Telemetry& told = core_.packets.telemetry(number);
    const auto unit = static_cast<std::uint64_t>(core_.settings.telemetry_unit);
    // Times, bytes and queues run over, as in the telemetry's fields of 24, 20 and 17 bits.
    const bool whole = core_.traits.told_when_sent;
    told.hops[told.count++ % kTelemetryHops] = {
        static_cast<std::uint32_t>(core_.events.now()) & (whole ? UINT32_MAX : 0xff'ffffU),
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(port.carried_bytes) / (128 * unit)) &
            (whole ? UINT32_MAX : 0xf'ffffU),
        static_cast<std::uint32_t>(port.queued / (80 * unit)) & (whole ? UINT32_MAX : 0x1'ffffU), index,
        port.rate};
  }
}

void Switches::tell_again(std::uint32_t index) {
  const Port& port = links_[index];
  const Packet& sent = core_.packets[port.sending];
  if (!port.at_switch || sent.kind != PacketKind::data || core_.packets.telemetry(port.sending).count == 0)
    return;
  Telemetry& told = core_.packets.telemetry(port.sending);
  TelemetryHop& here = told.hops[(told.count - 1) % kTelemetryHops];
  const auto unit = static_cast<std::uint64_t>(core_.settings.telemetry_unit);
  here.time = static_cast<std::uint32_t>(core_.events.now());
  here.queue = static_cast<std::uint32_t>(port.queued / (80 * unit));
}

void Switches::pause_peer(std::uint32_t index, int priority, bool pause) {
  const std::uint32_t number = core_.packets.make();
  Packet& frame = core_.packets[number];
  frame.kind = pause ? PacketKind::pause : PacketKind::resume;
  frame.priority = static_cast<std::uint8_t>(priority);
  frame.size = kPauseFrame;
  core_.marking.note_pause_frame();
  Port& port = links_[index];
  shares_[index][static_cast<std::size_t>(priority)].pausing = pause;
  // Pauses go by queue 0, before all data, and are never held back themselves.
  core_.packets.append(shares_[index][0].queue, number);
  port.waiting |= 1;
  port.queued += frame.size;
  serve(index);
}

// Of packets that go to a port whose data has no room for another one, the last one there or the one that
// comes loses its payload, by a coin (Handley et al., SIGCOMM 2017). What then is at hand goes on in
// `number`; false: not even that had room.
bool Switches::trim(std::uint32_t number, std::uint32_t exit) {
  Packet& packet = core_.packets[number];
  Port& port = links_[exit];
  if (packet.priority != 0) {
    Shares& data = shares_[exit][packet.priority];
    // The one that is being sent has left the queue but not the port: it counts.
    const Packet* sending = port.busy ? &core_.packets[port.sending] : nullptr;
    const std::uint32_t sent = sending != nullptr && sending->priority != 0 ? sending->size : 0;
    if (static_cast<std::int64_t>(data.leaving) + sent + packet.size <= trim_limit_) {
      data.leaving += packet.size;
      return true;
    }
    // A coin, so that flows in step are not cut one and the same all the time.
    if (data.queue.head != kNone && throw_coin(coins_)) {
      Packet& last = core_.packets[data.queue.tail];
      data.leaving += packet.size - last.size;
      port.queued += packet.size - last.size;
      std::swap(last, packet);
      last.next = kNone;
    }
    ++core_.outcome.trimmed_packets;
    const std::uint32_t headers = core_.traits.control;
    core_.outcome.data.dropped += packet.size - headers;
    packet.size = headers;
    packet.priority = 0;
    packet.trimmed = true;
  }
  Shares& headers = shares_[exit][0];
  if (static_cast<std::int64_t>(headers.leaving) + packet.size > 2 * trim_limit_) {
    losses_.drop(number, false);
    return false;
  }
  headers.leaving += packet.size;
  return true;
}

bool Switches::is_beyond_port_queue(std::int64_t held) {
  constexpr double kByChance = 0.1;
  return held > port_limit_ || (held > port_random_ && happens(kByChance, coins_));
}

void Switches::forward(std::uint32_t number) {
  Packet& packet = core_.packets[number];
  const std::uint32_t entry = packet.port;
  const bool back = packet.kind != PacketKind::data && packet.kind != PacketKind::request;
  std::uint32_t exit = 0;
  if (ways_.hop_by_hop()) {
    FlowAddress flow = flows_[packet.flow].address;
    // A path is another source port to switches, which hash it like a flow of its own.
    flow.source_port = static_cast<std::uint16_t>(flow.source_port + packet.path);
    exit = ways_.next_hop(links_[entry].node, back ? flow.back() : flow);
    if (exit == kNoPort) {
      losses_.drop(number, true);
      return;
    }
  } else {
    if (core_.job.choice == WayChoice::progressive && packet.kind == PacketKind::data)
      ways_.choose_again(flows_[packet.flow], packet);
    const WayStore::Step& step = ways_.store()[packet.step];
    exit = step.port;
    packet.step = step.rest;
  }
  std::uint8_t queue = packet.priority;
  if (core_.traits.discipline == SwitchDiscipline::trim) {
    if (!trim(number, exit)) return;
    queue = packet.priority;
  } else if (queue != 0 && core_.traits.discipline == SwitchDiscipline::drop) {
    // No pauses: what finds no room is dropped. A port may hold as much as is free (Choudhury and Hahne,
    // IEEE/ACM Transactions on Networking 6(2), 1998).
    Switch& here = switches_[links_[entry].node];
    Shares& out = shares_[exit][queue];
    if (out.leaving + packet.size > here.buffer_left - here.shared_used ||
        is_beyond_port_queue(std::int64_t{out.leaving} + packet.size)) {
      losses_.drop(number, false);
      return;
    }
    here.shared_used += packet.size;
    out.leaving += packet.size;
  } else if (queue != 0) {
    const Port& port = links_[entry];
    Switch& here = switches_[port.node];
    Shares& in = shares_[entry][queue];
    const std::uint32_t limit = threshold(port);
    const std::uint32_t used = in.arrived > kReserve ? in.arrived - kReserve : 0;
    if (packet.size + in.headroom > port.headroom_limit && packet.size + used > limit) {
      losses_.drop(number, false);
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
      if (watches_crowds_ && is_crowded(port, in)) core_.watcher.crowded(entry);
      if (in.headroom > 0 || now_used >= threshold(port)) pause_peer(entry, queue, true);
    }
  }
  // pause_peer may have moved the packets in memory.
  core_.packets.append(shares_[exit][queue].queue, number);
  Port& out = links_[exit];
  out.waiting |= static_cast<std::uint8_t>(1U << queue);
  out.queued += core_.packets[number].size;
  links_.note_waiting(exit);
  core_.outcome.longest_queue = std::max<std::int64_t>(core_.outcome.longest_queue, out.queued);
  serve(exit);
}

void Switches::drop_queues(std::uint32_t index) {
  Port& port = links_[index];
  for (std::size_t queue = 0; queue < kPriorities; ++queue) {
    Queue& waiting = shares_[index][queue].queue;
    while (waiting.head != kNone) {
      const std::uint32_t packet = core_.packets.take(waiting);
      port.queued -= core_.packets[packet].size;
      // The buffer is free again.
      if (queue != 0) leave(index, packet, static_cast<std::uint8_t>(queue));
      losses_.drop(packet, true);
    }
  }
  port.waiting = 0;
}

}  // namespace armilla::packets
