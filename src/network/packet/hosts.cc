#include "network/packet/simulation.h"

#include <algorithm>
#include <utility>

namespace armilla {

void PacketSimulation::join_nic(std::uint32_t index) {
  Flow& flow = flows_[index];
  std::vector<Turn>& turns = nics_[ports_[flow.port].nic].turns;
  flow.turn = static_cast<std::uint32_t>(turns.size());
  turns.push_back({flow.next_send_ns, index, flow.priority, false, false});
  refresh(index);
}

void PacketSimulation::serve_host(std::uint32_t index) {
  Port& port = ports_[index];
  if ((port.paused >> ack_priority_ & 1) == 0 && port.acknowledgements.head != kNone) {
    transmit(index, take(port.acknowledgements));
    return;
  }
  Nic& nic = nics_[port.nic];
  const auto count = static_cast<std::uint32_t>(nic.turns.size());
  if (count == 0) return;
  const std::int64_t now = events_.now();
  std::uint32_t chosen = kNone, first_finished = kNone;
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
  if (first_finished != kNone) {
    std::uint32_t kept = first_finished;
    for (std::uint32_t i = first_finished; i < count; ++i) {
      if (nic.turns[i].finished) {
        flows_[nic.turns[i].flow].turn = kNone;
        continue;
      }
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
    transmit(index, packet);
    Flow& flow = flows_[number];
    flow.last_size = packets_[packet].size;
    flow.next_send_ns = settings_.pace && flow.rate != flow.line_rate
                            ? now + transmission_ns(flow.last_size, flow.rate)
                            : port.free_ns;
    refresh(number);
    return;
  }
  if (nic.wake_ns >= 0) return;
  std::int64_t soonest = INT64_MAX;
  for (const Turn& turn : nic.turns) soonest = std::min(soonest, turn.next_send_ns);
  if (soonest < INT64_MAX && soonest > now) {
    nic.wake_ns = soonest;
    schedule(soonest, kWake, index, nic.wake_stamp);
  }
}

// By the queue of the first switch's port to each way: what its host could be told.
std::uint32_t PacketSimulation::choose_way(Flow& flow) const {
  if (flow.ways == 1) return flow.way_there;
  const std::span<const Stretch> ways = std::span(ways_).subspan(flow.first_way, flow.ways);
  if (job_.choice == WayChoice::spread) return ways[flow.packets_spread++ % flow.ways].begin;
  return std::ranges::min_element(ways, {},
                                  [&](const Stretch& way) {
                                    const std::int64_t queued =
                                        way.length > 1 ? ports_[paths_[way.begin + 1]].queued : 0;
                                    return (queued + settings_.payload) * way.length;
                                  })
      ->begin;
}

std::uint32_t PacketSimulation::next_data(std::uint32_t index) {
  Flow& flow = flows_[index];
  const auto largest = static_cast<std::uint64_t>(settings_.payload);
  std::uint64_t sequence = flow.next;
  bool opens = false;
  if (!tcp_.empty()) {
    Tcp& tcp = tcp_[index];
    opens = !tcp.open;
    if (opens) {
      tcp.asked = true;
    } else {
      ++tcp.under_way;
      if (tcp_find_lost(index)) sequence = selective_[index].resend++ * largest;
    }
  } else if (!selective_.empty() && selective_[index].recovering) {
    Selective& repeat = selective_[index];
    sequence = repeat.resend * largest;
    ++repeat.resend;
    repeat.find_lost();
  }
  const std::uint64_t payload = opens ? 0 : std::min(largest, flow.size - sequence);
  const std::uint32_t packet = new_packet();
  Packet& data = packets_[packet];
  data.flow = index;
  data.kind = PacketKind::data;
  data.priority = flow.priority;
  data.sequence = sequence;
  data.payload = static_cast<std::uint16_t>(payload);
  data.size = (mail_.empty() || opens ? static_cast<std::uint32_t>(payload)
                                      : wire_payload(index, sequence, payload)) +
              header_;
  data.hop = choose_way(flow) + 1;
  data.sent_ns = events_.now();
  data.asks = std::exchange(flow.ask, false);
  if (!hpcc_.empty()) telemetry_[packet].count = 0;
  if (sequence == flow.next) flow.next += payload;
  ++outcome_.data_packets;
  if (sequence < flow.highest) {
    ++outcome_.repeated_packets;
  } else {
    flow.highest = sequence + payload;
  }
  outcome_.data.sent += data.size;
  return packet;
}

void PacketSimulation::receive_data(std::uint32_t number) {
  Packet& packet = packets_[number];
  const std::uint32_t index = packet.flow;
  Flow& flow = flows_[index];
  outcome_.data.delivered += packet.size;

  const std::uint32_t exit = paths_[flow.way_back];
  Nic& nic = nics_[ports_[exit].nic];
  if (settings_.nic_pauses > 0 && nic.may_pause) {
    nic.may_pause = false;
    if (nic.pauses < settings_.nic_pauses) {
      ++nic.pauses;
      const std::uint32_t frame = new_packet();
      packets_[frame].kind = PacketKind::pause;
      packets_[frame].priority = flow.priority;
      packets_[frame].size = kPauseFrame;
      marking_.skip();
      append(ports_[exit].acknowledgements, frame);
      serve(exit);
      schedule(events_.now() + kNicPause, kNicResume, exit, flow.priority);
    }
  }

  if (!tcp_.empty()) {
    tcp_receive_data(number);
    return;
  }
  Packet& data = packets_[number];
  bool reply = false, missing = false;
  const std::uint64_t arrived = data.sequence;
  const auto chunk = static_cast<std::uint64_t>(settings_.chunk);
  if (!selective_.empty() && !flow.finished) {
    Selective& repeat = selective_[index];
    const auto largest = static_cast<std::uint64_t>(settings_.payload);
    const std::uint64_t place = arrived / largest;
    repeat.arrived[place / 64] |= std::uint64_t{1} << (place % 64);
    if (arrived == flow.expected) {
      std::uint64_t next = place;
      while (next * largest < flow.size && (repeat.arrived[next / 64] >> (next % 64) & 1) != 0) ++next;
      flow.expected = std::min(next * largest, flow.size);
    } else if (arrived > flow.expected) {
      missing = flow.ways == 1;
    }
    reply = true;
    data.repeat = arrived;
  } else if (arrived == flow.expected) {
    flow.expected += data.payload;
    reply = flow.expected >= static_cast<std::uint64_t>(settings_.ack_interval) ||
            (chunk != 0 && flow.expected % chunk == 0);
  } else if (arrived > flow.expected) {
    if (events_.now() >= flow.next_nack_ns || flow.last_nack != flow.expected) {
      flow.next_nack_ns = events_.now() + kNackInterval;
      flow.last_nack = flow.expected;
      if (settings_.recovery == LossRecovery::go_back_0) flow.expected = flow.expected / chunk * chunk;
      reply = missing = true;
    }
  } else {
    reply = data.asks;
  }
  if (!mail_.empty()) note_arrivals(index);
  if (!reply) {
    free_packet(number);
    return;
  }
  answer(number, missing);
}

// The packet itself becomes its answer and takes what switches wrote into it back.
void PacketSimulation::answer(std::uint32_t number, bool missing) {
  Packet& answer = packets_[number];
  const Flow& flow = flows_[answer.flow];
  const std::uint32_t exit = paths_[flow.way_back];
  answer.kind = missing ? PacketKind::nack : PacketKind::ack;
  answer.echo = answer.marked;
  answer.marked = false;
  answer.sequence = flow.expected;
  answer.size = acknowledgement_size_;
  answer.hop = flow.way_back + 1;
  outcome_.acknowledgements.sent += answer.size;
  append(ports_[exit].acknowledgements, number);
  serve(exit);
}

void PacketSimulation::receive_acknowledgement(std::uint32_t number) {
  const Packet packet = packets_[number];
  const std::uint32_t index = packet.flow;
  Flow& flow = flows_[index];
  outcome_.acknowledgements.delivered += packet.size;
  if (flow.finished) {
    free_packet(number);
    return;
  }
  if (!tcp_.empty()) {
    tcp_receive_acknowledgement(number);
    return;
  }
  std::uint64_t sequence = packet.sequence;
  if (settings_.recovery == LossRecovery::go_back_0 && sequence < flow.size) {
    sequence =
        sequence / static_cast<std::uint64_t>(settings_.chunk) * static_cast<std::uint64_t>(settings_.chunk);
  }
  const std::uint64_t before = flow.acknowledged;
  flow.acknowledged = std::max(flow.acknowledged, sequence);
  // Without this a window would count what is under way below zero, and stay full.
  if (flow.window != 0 || packet.asks || !mail_.empty()) flow.next = std::max(flow.next, flow.acknowledged);
  if (flow.acknowledged >= flow.size) finish(index);
  if (!selective_.empty()) {
    Selective& repeat = selective_[index];
    const auto largest = static_cast<std::uint64_t>(settings_.payload);
    const std::uint64_t place = packet.repeat / largest, first = flow.acknowledged / largest;
    repeat.known[place / 64] |= std::uint64_t{1} << (place % 64);
    repeat.highest_known = std::max(repeat.highest_known, place);
    if (packet.kind == PacketKind::nack && first >= repeat.recover_until) {
      repeat.resend = first;
      repeat.recover_until = (flow.highest + largest - 1) / largest;
    }
    repeat.resend = std::max(repeat.resend, first);
    if (flow.ways == 1 || repeat.recovering) repeat.find_lost();
  } else if (packet.kind == PacketKind::nack) {
    flow.next = flow.acknowledged;
  }
  if (!flow.finished) {
    if (!swift_.empty()) {
      swift_[index].acknowledged(flow, events_.now(), static_cast<std::int64_t>(flow.acknowledged - before),
                                 events_.now() - packet.sent_ns, flow.hops, settings_);
    }
    control(index, packet);
    if (!hpcc_.empty()) {
      const std::int64_t rate =
          hpcc_[index].acknowledged(flow, packet.sequence, telemetry_[number], settings_);
      if (rate >= 0) change_rate(index, rate);
    }
  }
  free_packet(number);
  refresh(index);
  serve(flow.port);
}

void PacketSimulation::control(std::uint32_t index, const Packet& packet) {
  Flow& flow = flows_[index];
  // The mark of the data packet comes back in its acknowledgement, which is a CNP at once.
  if (!dcqcn_.empty() && packet.echo) {
    DcqcnState& state = dcqcn_[index];
    state.marked_for_alpha = state.marked_for_decrease = true;
    if (!state.started) {
      state.alpha = 1;
      state.marked_for_alpha = false;
      schedule(events_.now() + settings_.alpha_interval_us * 1000, kAlpha, index, flow.life);
      // A nanosecond later than alpha's.
      schedule(events_.now() + settings_.decrease_interval_us * 1000 + 1, kDecrease, index, flow.life);
      state.target = flow.rate;
      state.started = true;
    }
  }
  if (!timely_.empty()) {
    timely_[index].acknowledged(flow, packet.sequence,
                                events_.now() - (settings_.timely_without_timestamps ? 0 : packet.sent_ns),
                                settings_);
  }
  if (!dctcp_.empty()) dctcp_[index].acknowledged(flow, packet.sequence, packet.echo, settings_);
}

void PacketSimulation::change_rate(std::uint32_t index, std::int64_t rate) {
  Flow& flow = flows_[index];
  flow.next_send_ns += transmission_ns(flow.last_size, rate) - transmission_ns(flow.last_size, flow.rate);
  Nic& nic = nics_[ports_[flow.port].nic];
  if (nic.wake_ns >= 0 && flow.next_send_ns < nic.wake_ns) {
    nic.wake_ns = std::max(flow.next_send_ns, events_.now());
    schedule(nic.wake_ns, kWake, flow.port, ++nic.wake_stamp);
  }
  flow.rate = rate;
}

void PacketSimulation::finish(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.finished = true;
  if (!mail_.empty()) return;
  outcome_.flows[index].fct_ns = events_.now() - flow.start_ns;
  // The receiver forgets the flow: what still arrives is out of order to it.
  flow.expected = flow.last_nack = 0;
  flow.next_nack_ns = 0;
}

}  // namespace armilla
