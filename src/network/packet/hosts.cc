#include <algorithm>
#include <utility>

#include "network/packet/transport.h"

namespace armilla {

void PacketSimulation::join_nic(std::uint32_t index) {
  if (flows_in_line_) return refresh(index);
  Flow& flow = flows_[index];
  std::vector<Turn>& turns = nics_[ports_[flow.port].nic].turns;
  flow.turn = static_cast<std::uint32_t>(turns.size());
  turns.push_back({flow.next_send_ns, index, flow.priority, false, false});
  refresh(index);
}

void PacketSimulation::serve_host(std::uint32_t index) {
  Port& port = ports_[index];
  // Acknowledgements first: what comes back is what lets others go on.
  if ((port.paused >> ack_priority_ & 1) == 0 && port.acknowledgements.head != kNone) {
    transmit(index, take(port.acknowledgements));
    return;
  }
  Nic& nic = nics_[port.nic];
  if (flows_in_line_) return serve_first_in_line(index, nic);
  const auto count = static_cast<std::uint32_t>(nic.turns.size());
  if (count == 0) return;
  const std::int64_t now = events_.now();
  std::uint32_t chosen = kNone, first_finished = kNone;
  // Queue pairs take turns, beginning behind the one that sent last.
  std::uint32_t place = nic.last % count;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (++place == count) place = 0;
    const Turn& turn = nic.turns[place];
    if (turn.ready && (port.paused >> turn.priority & 1) == 0) {
      if (turn.next_send_ns > now) continue;
      chosen = place;
      break;
    }
    if (turn.finished) first_finished = std::min(first_finished, place);
  }
  // Those that are over leave the row here, where places in it may move.
  if (first_finished != kNone) {
    std::uint32_t kept = first_finished;
    for (std::uint32_t i = first_finished; i < count; ++i) {
      if (nic.turns[i].finished) {
        flows_[nic.turns[i].flow].turn = kNone;
        if (forgets_) forget_if_over(nic.turns[i].flow);
        continue;
      }
      // The row moves up; who was chosen keeps its turn.
      if (i == chosen) chosen = kept;
      flows_[nic.turns[i].flow].turn = kept;
      nic.turns[kept++] = nic.turns[i];
    }
    nic.turns.resize(kept);
  }
  if (chosen != kNone) {
    nic.last = chosen;
    const std::uint32_t number = nic.turns[chosen].flow;
    const std::uint32_t packet = next_data(number);
    const std::int64_t free_ns = transmit(index, packet);
    Flow& flow = flows_[number];
    flow.last_size = packets_[packet].size;
    // A flow at line rate is held back by its link alone, whose time is exact to the picosecond.
    flow.next_send_ns = settings_.pace && flow.rate != flow.line_rate
                            ? now + transmission_ns(flow.last_size, flow.rate)
                            : free_ns;
    refresh(number);
    return;
  }
  // A wake is under way, at which all are looked at again.
  if (nic.wake_ns >= 0) return;
  // Of all flows, also those that may not send: where the time of one is over no wake is set, and the next
  // acknowledgement serves the port.
  std::int64_t soonest = INT64_MAX;
  for (const Turn& turn : nic.turns) soonest = std::min(soonest, turn.next_send_ns);
  if (soonest < INT64_MAX && soonest > now) {
    nic.wake_ns = soonest;
    schedule(soonest, kWake, index, nic.wake_stamp);
  }
}

// Who may send no longer leaves the line without a turn.
void PacketSimulation::serve_first_in_line(std::uint32_t port, Nic& nic) {
  while (nic.last < nic.turns.size()) {
    const std::uint32_t index = nic.turns[nic.last++].flow;
    // Places that were left are given back when they are half of the row: O(1) per turn.
    if (nic.last * std::size_t{2} >= nic.turns.size()) {
      nic.turns.erase(nic.turns.begin(), nic.turns.begin() + nic.last);
      nic.last = 0;
    }
    flows_[index].turn = kNone;
    if (!transport_->may_send(index)) continue;
    const std::uint32_t packet = next_data(index);
    Flow& flow = flows_[index];
    flow.next_send_ns = transmit(port, packet);
    flow.last_size = packets_[packet].size;
    return refresh(index);
  }
}

// By the queue of the first switch's port to each way: what its host could be told.
std::uint32_t PacketSimulation::choose_way(Flow& flow) const {
  if (flow.ways == 1) return flow.way_there;
  if (job_.choice == WayChoice::spread)
    return ways_.of_list(flow.ways_there, flow.packets_spread++ % flow.ways);
  return *std::ranges::min_element(ways_.list(flow.ways_there, flow.ways), {}, [&](std::uint32_t way) {
    const std::int64_t queued = way != WayStore::kEnd ? ports_[ways_[way].port].queued : 0;
    // Queue and a packet, times the links to go: of equal queues the shorter way wins.
    return (queued + settings_.payload) * (ways_.links(way) + 1);
  });
}

// Of data that is beyond the first switch of the shortest way: by the queues here, among the ways that are
// the same up to here (Jiang, Kim, Dally, ISCA 2009).
void PacketSimulation::choose_again(Packet& packet) {
  const Flow& flow = flows_[packet.flow];
  const std::uint32_t hops = ways_.links(flow.way_there) - ways_.links(packet.step);
  // Only of packets that have left their first switch, and are not on a longer way already.
  if (flow.ways == 1 || hops == 0 || ways_.links(packet.step) > ways_.links(flow.way_there)) return;
  const auto after = [&](std::uint32_t way, std::uint32_t same_as) {
    for (std::uint32_t hop = 0; hop < hops; ++hop) {
      if (way == WayStore::kEnd || ways_[way].port != ways_[same_as].port) return WayStore::kEnd;
      way = ways_[way].rest;
      same_as = ways_[same_as].rest;
    }
    return way;
  };
  const std::uint32_t straight = packet.step;
  if (after(flow.way_there, flow.way_there) != straight) return;
  const auto wait = [&](std::uint32_t way) {
    return (ports_[ways_[way].port].queued + settings_.payload) * ways_.links(way);
  };
  for (const std::uint32_t way : ways_.list(flow.ways_there, flow.ways)) {
    const std::uint32_t rest = after(way, flow.way_there);
    if (rest != WayStore::kEnd && wait(rest) < wait(packet.step)) packet.step = rest;
  }
}

void PacketSimulation::refresh(std::uint32_t index) {
  Flow& flow = flows_[index];
  Nic& nic = nics_[ports_[flow.port].nic];
  if (flows_in_line_) {
    // A flow stands in line once, however often it is refreshed.
    if (flow.turn != kNone || !transport_->may_send(index)) return;
    flow.turn = 0;
    nic.turns.push_back({0, index, flow.priority, true, false});
    return;
  }
  Turn& turn = nic.turns[flow.turn];
  turn.next_send_ns = flow.next_send_ns;
  turn.ready = transport_->may_send(index);
  turn.finished = flow.acknowledged >= flow.size;
}

std::uint32_t PacketSimulation::next_data(std::uint32_t index) {
  Flow& flow = flows_[index];
  const std::uint32_t packet = new_packet();
  Packet& data = packets_[packet];
  data.flow = index;
  data.kind = PacketKind::data;
  data.priority = flow.priority;
  data.asks = std::exchange(flow.ask, false);
  transport_->next_data(index, data);
  data.size = (mail_.empty() ? data.payload : wire_payload(index, data.sequence, data.payload)) +
              transport_->traits.header;
  data.step = transport_->choose_way(index, data);
  data.sent_ns = events_.now();
  if (has_telemetry_) telemetry_[packet].count = 0;
  // New data moves the pointer; what is sent again does not.
  if (data.sequence == flow.next) flow.next += data.payload;
  ++outcome_.data_packets;
  if (data.sequence < flow.highest) {
    ++outcome_.repeated_packets;
  } else {
    flow.highest = data.sequence + data.payload;
  }
  outcome_.data.sent += data.size;
  if (forgets_) ++flow.under_way;
  return packet;
}

void PacketSimulation::receive_data(std::uint32_t number) {
  Packet& packet = packets_[number];
  const std::uint32_t index = packet.flow;
  Flow& flow = flows_[index];
  account_of(packet)->delivered += packet.size;

  const std::uint32_t exit = flow.exit;
  Nic& nic = nics_[ports_[exit].nic];
  if (settings_.nic_pauses > 0 && nic.may_pause) {
    nic.may_pause = false;
    if (nic.pauses < settings_.nic_pauses) {
      ++nic.pauses;
      const std::uint32_t frame = new_packet();
      packets_[frame].kind = PacketKind::pause;
      packets_[frame].priority = flow.priority;
      packets_[frame].size = kPauseFrame;
      // As for every PFC frame (pause_peer).
      marking_.skip();
      append(ports_[exit].acknowledgements, frame);
      serve(exit);
      schedule(events_.now() + kNicPause, kNicResume, exit, flow.priority);
    }
  }

  transport_->receive_data(number);
}

// The packet itself becomes its answer and takes what switches wrote into it back.
void PacketSimulation::answer(std::uint32_t number, PacketKind kind) {
  Packet& answer = packets_[number];
  const Flow& flow = flows_[answer.flow];
  answer.kind = kind;
  answer.echo = answer.marked;
  answer.marked = false;
  answer.sequence = flow.expected;
  // Control frames have one size, whatever the data was.
  answer.size = transport_->traits.control;
  outcome_.acknowledgements.sent += answer.size;
  if (settings_.acks_take_no_time) return receive_acknowledgement(number);
  answer.step = transport_->way_back(answer);
  append(ports_[flow.exit].acknowledgements, number);
  serve(flow.exit);
}

void PacketSimulation::receive_acknowledgement(std::uint32_t number) {
  const Packet& packet = packets_[number];
  outcome_.acknowledgements.delivered += packet.size;
  if (flows_[packet.flow].finished) {
    free_packet(number);
  } else {
    transport_->receive_acknowledgement(number);
  }
}

void PacketSimulation::finish(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.finished = true;
  // Of connections only messages end; the pair stays.
  if (!mail_.empty()) return;
  if (!message_of_.empty()) arrived_.push_back(message_of_[index]);
  outcome_.flows[index].fct_ns = events_.now() - flow.start_ns;
  // The receiver forgets the flow: what still arrives is out of order to it.
  flow.expected = flow.last_nack = 0;
  flow.next_nack_ns = 0;
}

}  // namespace armilla
