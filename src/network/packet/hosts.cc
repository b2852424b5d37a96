#include "network/packet/hosts.h"

#include <algorithm>
#include <utility>

#include "network/packet/transport/transport.h"

namespace armilla::packets {

Hosts::Hosts(Core& core, Links& links, WayFinder& ways, Flows& flows, Mail& mail)
    : core_(core),
      links_(links),
      ways_(ways),
      flows_(flows),
      mail_(mail),
      ack_priority_(core.settings.acks_first ? 0 : 3),
      nics_(links.nics()),
      transport_(make_transport(*this)) {}

Hosts::~Hosts() = default;

void Hosts::start(std::uint32_t index) {
  Flow& flow = flows_[index];
  flows_.find_ways(index);
  flow.started = true;
  flow.start_ns = flow.next_send_ns = core_.events.now();
  flow.rate = flow.line_rate = links_[flow.port].rate;
  core_.watcher.begins(index);
  transport_->begin(index);
  transport_->extend(index);
  join(index);
  serve(flow.port);
}

void Hosts::join(std::uint32_t index) {
  if (core_.traits.in_line) return refresh(index);
  Flow& flow = flows_[index];
  std::vector<Turn>& turns = nics_[links_[flow.port].nic].turns;
  flow.turn = static_cast<std::uint32_t>(turns.size());
  turns.push_back({flow.next_send_ns, index, flow.priority, false, false});
  refresh(index);
}

void Hosts::serve(std::uint32_t index) {
  Port& port = links_[index];
  if (port.busy || !port.up) return;
  // Acknowledgements first: what comes back is what lets others go on.
  if ((port.paused >> ack_priority_ & 1) == 0 && port.acknowledgements.head != kNone) {
    links_.transmit(index, core_.packets.take(port.acknowledgements));
    return;
  }
  Nic& nic = nics_[port.nic];
  if (core_.traits.in_line) return serve_first_in_line(index, nic);
  const auto count = static_cast<std::uint32_t>(nic.turns.size());
  if (count == 0) return;
  const std::int64_t now = core_.events.now();
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
        flows_.forget_if_over(nic.turns[i].flow);
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
    const std::int64_t free_ns = links_.transmit(index, packet);
    Flow& flow = flows_[number];
    flow.last_size = core_.packets[packet].size;
    // A flow at line rate is held back by its link alone, whose time is exact to the picosecond.
    flow.next_send_ns = core_.settings.pace && flow.rate != flow.line_rate
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
    core_.events.schedule(soonest, kWake, index, nic.wake_stamp);
  }
}

// Who may send no longer leaves the line without a turn.
void Hosts::serve_first_in_line(std::uint32_t port, Nic& nic) {
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
    flow.next_send_ns = links_.transmit(port, packet);
    flow.last_size = core_.packets[packet].size;
    return refresh(index);
  }
}

void Hosts::refresh(std::uint32_t index) {
  Flow& flow = flows_[index];
  Nic& nic = nics_[links_[flow.port].nic];
  if (core_.traits.in_line) {
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

std::uint32_t Hosts::next_data(std::uint32_t index) {
  Flow& flow = flows_[index];
  const std::uint32_t packet = core_.packets.make();
  Packet& data = core_.packets[packet];
  data.flow = index;
  data.kind = PacketKind::data;
  data.priority = flow.priority;
  data.asks = std::exchange(flow.ask, false);
  transport_->next_data(index, data);
  data.size = (!mail_.is_used() ? data.payload : mail_.wire_payload(index, data.sequence, data.payload)) +
              core_.traits.header;
  data.step = transport_->choose_way(index, data);
  data.sent_ns = core_.events.now();
  if (core_.traits.telemetry) core_.packets.telemetry(packet).count = 0;
  // New data moves the pointer; what is sent again does not.
  if (data.sequence == flow.next) flow.next += data.payload;
  ++core_.outcome.data_packets;
  if (data.sequence < flow.highest) {
    ++core_.outcome.repeated_packets;
  } else {
    flow.highest = data.sequence + data.payload;
  }
  core_.outcome.data.sent += data.size;
  flows_.note_sent(flow);
  return packet;
}

void Hosts::receive_data(std::uint32_t number) {
  Packet& packet = core_.packets[number];
  const std::uint32_t index = packet.flow;
  Flow& flow = flows_[index];
  core_.account_of(packet)->delivered += packet.size;

  const std::uint32_t exit = flow.exit;
  Nic& nic = nics_[links_[exit].nic];
  if (core_.settings.nic_pauses > 0 && nic.may_pause) {
    nic.may_pause = false;
    if (nic.pauses < core_.settings.nic_pauses) {
      ++nic.pauses;
      send_pause_frame(exit, PacketKind::pause, flow.priority);
      core_.events.schedule(core_.events.now() + kNicPause, kNicResume, exit, flow.priority);
    }
  }

  transport_->receive_data(number);
}

// The packet itself becomes its answer and takes what switches wrote into it back.
void Hosts::answer(std::uint32_t number, PacketKind kind) {
  Packet& answer = core_.packets[number];
  const Flow& flow = flows_[answer.flow];
  answer.kind = kind;
  answer.echo = answer.marked;
  answer.marked = false;
  answer.sequence = flow.expected;
  // Control frames have one size, whatever the data was.
  answer.size = core_.traits.control;
  core_.outcome.acknowledgements.sent += answer.size;
  if (core_.settings.acks_take_no_time) return receive_acknowledgement(number);
  answer.step = transport_->way_back(answer);
  core_.packets.append(links_[flow.exit].acknowledgements, number);
  serve(flow.exit);
}

void Hosts::receive_acknowledgement(std::uint32_t number) {
  const Packet& packet = core_.packets[number];
  core_.outcome.acknowledgements.delivered += packet.size;
  if (flows_[packet.flow].finished) {
    flows_.free_packet(number);
  } else {
    transport_->receive_acknowledgement(number);
  }
}

void Hosts::finish(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.finished = true;
  // Of connections only messages end; the pair stays.
  if (mail_.is_used()) return;
  mail_.flow_is_over(index);
  core_.outcome.flows[index].fct_ns = core_.events.now() - flow.start_ns;
  // The receiver forgets the flow: what still arrives is out of order to it.
  flow.expected = flow.last_nack = 0;
  flow.next_nack_ns = 0;
}

void Hosts::timeout(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.timer = false;
  if (flow.finished) {
    core_.events.forget();
    flows_.forget_if_over(index);
    return;
  }
  std::int64_t since_ns = core_.events.now();
  if (flow.acknowledged > flow.timer_mark) {
    flow.retries = 0;
    since_ns = transport_->progress_ns(index);
  } else {
    // A NIC gives up. A sender that is pulled does only while links lose what it sends: full buffers
    // have room again.
    const bool hopeless = core_.traits.discipline != SwitchDiscipline::trim || flow.lost_on_link;
    if (flow.retries == kRetries && hopeless) {
      ++core_.outcome.given_up;
      return;
    }
    flow.retries = std::min(flow.retries + 1, kRetries);
    ++core_.outcome.timeouts;
    flow.ask = true;
    transport_->timed_out(index);
  }
  flow.timer = true;
  flow.lost_on_link = false;
  flow.timer_mark = flow.acknowledged;
  // What was heard of in a wait that had been doubled may be longer ago than a simple one.
  const std::int64_t wait_ns = core_.settings.retransmit_timeout_ns
                               << (core_.traits.backs_off ? flow.retries : 0);
  core_.events.schedule(std::max(core_.events.now(), since_ns + wait_ns), kTimeout, index);
  refresh(index);
  serve(flow.port);
}

void Hosts::wake(std::uint32_t port, std::uint32_t stamp) {
  Nic& here = nic(port);
  // Another time has been agreed on since.
  if (here.wake_stamp != stamp) {
    core_.events.forget();
    return;
  }
  here.wake_ns = -1;
  serve(port);
}

void Hosts::wake_earlier(const Flow& flow) {
  Nic& here = nic(flow.port);
  if (here.wake_ns < 0 || flow.next_send_ns >= here.wake_ns) return;
  here.wake_ns = std::max(flow.next_send_ns, core_.events.now());
  core_.events.schedule(here.wake_ns, kWake, flow.port, ++here.wake_stamp);
}

// A pause, or what ends it, goes before all that waits.
void Hosts::send_pause_frame(std::uint32_t port, PacketKind kind, std::uint8_t priority) {
  const std::uint32_t frame = core_.packets.make();
  core_.packets[frame].kind = kind;
  core_.packets[frame].priority = priority;
  core_.packets[frame].size = kPauseFrame;
  core_.marking.note_pause_frame();
  core_.packets.append(links_[port].acknowledgements, frame);
  serve(port);
}

void Hosts::end_pause(std::uint32_t port, std::uint8_t priority) {
  send_pause_frame(port, PacketKind::resume, priority);
  core_.events.schedule(core_.events.now() + kNicPauseGap, kNicMayPause, port);
}

void Hosts::leave_all_nics() {
  for (Nic& nic : nics_) {
    for (const Turn& turn : nic.turns) {
      flows_[turn.flow].turn = kNone;
      flows_.forget_if_over(turn.flow);
    }
    nic.turns.clear();
    if (core_.traits.in_line) nic.last = 0;
  }
}

}  // namespace armilla::packets
