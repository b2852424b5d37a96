#include <bit>
#include <utility>

#include "network/packet/transport.h"

namespace armilla {

// The next event, at most until `end_ns`, or the messages that begin before; false if there is neither.
inline bool PacketSimulation::play(std::int64_t end_ns) {
  WheelEvent event;
  if (pending_ == 0) return false;
  const std::int64_t post_ns = posts_.empty() ? INT64_MAX : posts_.front().ns;
  if (!events_.next(std::min(end_ns, post_ns), event)) {
    if (post_ns >= end_ns) return false;
    begin_messages();
    return true;
  }
  if (events_.began_chunk() && packets_.size() >= kManyPackets) look_ahead();
  handle(event);
  if (events_.handled() >= look_at_) look_at_ = forward_->look();
  return true;
}

PacketOutcome PacketSimulation::run() {
  while (play(settings_.stop_ns)) {
  }
  outcome_.forwarded = forwarded();
  outcome_.end_ns = events_.now();
  outcome_.events = events_.handled();
  outcome_.frames = frames();
  sum_pauses();
  // Nothing is left to happen: flows that are not over wait for each other.
  if (pending_ == 0) explain_deadlock();
  if (sampler_) outcome_.samples = sampler_->samples(events_.now());
  count_in_flight();
  return std::move(outcome_);
}

// In large networks what events are about was last touched long ago. The memory is asked for it some events
// before, step by step, as one thing names the next.
void PacketSimulation::look_ahead() const {
  // To GCC a function that does nothing but this has no effect, and it leaves out the calls of one.
  asm volatile("");
  std::array<std::span<const WheelEvent>, 3> chunks;
  events_.look_ahead(chunks);
  for (const WheelEvent& event : chunks[0]) {
    if (event.kind == kArrived) {
      const Packet& packet = packets_[event.subject];
      if (ports_[packet.port].at_switch) {
        if (packet.step == WayStore::kEnd) continue;
        const std::uint32_t exit = ways_[packet.step].port;
        fetch(&ports_[exit]);
        __builtin_prefetch(&shares_[exit][packet.priority], 1);
      } else {
        const Flow& flow = flows_[packet.flow];
        if (packet.kind != PacketKind::data && flow.turn != kNone)
          __builtin_prefetch(nics_[ports_[flow.port].nic].turns.data() + flow.turn, 1);
        if (flows_in_line_) transport_->fetch(packet.flow);
      }
    } else if (event.kind == kSent) {
      const Port& port = ports_[event.subject];
      if (port.at_switch) {
        if (port.waiting == 0) continue;
        const std::uint32_t head =
            shares_[event.subject][static_cast<std::size_t>(std::countr_zero(port.waiting))].queue.head;
        if (head != kNone) __builtin_prefetch(&packets_[head], 1);
      } else if (const Nic& nic = nics_[port.nic]; !nic.turns.empty()) {
        const std::size_t next = nic.last + std::size_t{1};
        fetch(&flows_[nic.turns[next < nic.turns.size() ? next : 0].flow]);
      }
    }
  }
  for (const WheelEvent& event : chunks[1]) {
    if (event.kind == kArrived) {
      const Packet& packet = packets_[event.subject];
      fetch(&ports_[packet.port]);
      if (packet.step != WayStore::kEnd) {
        ways_.fetch(packet.step);
        __builtin_prefetch(&shares_[packet.port][packet.priority], 1);
      } else {
        fetch(&flows_[packet.flow]);
      }
    } else if (event.kind == kSent) {
      const Port& port = ports_[event.subject];
      if (port.at_switch) {
        if (port.waiting != 0)
          __builtin_prefetch(
              &shares_[event.subject][static_cast<std::size_t>(std::countr_zero(port.waiting))], 1);
      } else if (const Nic& nic = nics_[port.nic]; !nic.turns.empty()) {
        const std::size_t next = nic.last + std::size_t{1};
        __builtin_prefetch(nic.turns.data() + (next < nic.turns.size() ? next : 0), 1);
      }
    }
  }
  for (const WheelEvent& event : chunks[2]) {
    if (event.kind == kArrived) __builtin_prefetch(&packets_[event.subject], 1);
    if (event.kind == kSent) fetch(&ports_[event.subject]);
  }
}

bool PacketSimulation::play_until(std::int64_t end_ns) {
  while (arrived_.empty() && play(end_ns)) {
  }
  if (arrived_.empty()) return false;
  if (mail_.empty()) return true;
  // All of the nanosecond, in an order that nothing else of it has an influence on.
  while (play(events_.now())) {
  }
  std::ranges::sort(arrived_);
  return true;
}

std::int64_t PacketSimulation::frames() const {
  std::int64_t frames = 0;
  for (const Port& port : ports_) frames += port.frames;
  return frames;
}

void PacketSimulation::bring_up() {
  if (forward_) forward_->bring_up();
}

std::optional<PacketForward> PacketSimulation::forwarded() const {
  return forward_ ? std::optional(forward_->done()) : std::nullopt;
}

void PacketSimulation::handle(const WheelEvent& event) {
  if (event.kind < kGoOn) --pending_;
  switch (event.kind) {
    case kSent:
      ports_[event.subject].busy = false;
      serve(event.subject);
      break;
    case kArrived:
      arrive(event.subject);
      break;
    case kWake: {
      Nic& nic = nics_[ports_[event.subject].nic];
      // Another time has been agreed on since.
      if (nic.wake_stamp != event.stamp) {
        events_.forget();
        break;
      }
      nic.wake_ns = -1;
      serve(event.subject);
      break;
    }
    // A flow takes three steps to start, as an application of ns-3 does.
    case kDue:
      schedule(events_.now(), kInstall, event.subject);
      break;
    case kInstall:
      schedule(events_.now(), kStart, event.subject);
      break;
    case kStart:
      start_flow(event.subject);
      break;
    case kTimeout:
      timeout(event.subject);
      break;
    case kNicResume: {
      const std::uint32_t packet = new_packet();
      packets_[packet].kind = PacketKind::resume;
      packets_[packet].priority = static_cast<std::uint8_t>(event.stamp);
      packets_[packet].size = kPauseFrame;
      append(ports_[event.subject].acknowledgements, packet);
      marking_.skip();
      serve(event.subject);
      schedule(events_.now() + kNicPauseGap, kNicMayPause, event.subject);
      break;
    }
    case kNicMayPause:
      nics_[ports_[event.subject].nic].may_pause = true;
      break;
    case kLinkDown:
      link_down();
      break;
    case kPauseOver: {
      Port& port = ports_[event.subject];
      // The peer may have let it go on, and paused it again: the later pause has a time of its own.
      if ((port.paused >> event.stamp & 1) == 0 ||
          pauses_[event.subject].since_ns[event.stamp] > events_.now() - longest_pause_ns(port.rate))
        break;
      end_pause(event.subject, event.stamp);
      serve(event.subject);
      break;
    }
    case kGoOn:
      forward_->go_on(event.subject, event.stamp);
      break;
    case kRepeat:
      events_.forget();
      forward_->repeat(event.subject, event.stamp);
      break;
    case kCompare:
      events_.forget();
      forward_->compare(event.subject, event.stamp);
      break;
    case kCrowded:
      events_.forget();
      forward_->make_room(event.subject);
      break;
    default:
      transport_->timer(event);
  }
}

void PacketSimulation::start_flow(std::uint32_t index) {
  Flow& flow = flows_[index];
  find_ways(index);
  flow.started = true;
  flow.start_ns = flow.next_send_ns = events_.now();
  flow.rate = flow.line_rate = ports_[flow.port].rate;
  if (forward_) forward_->begins(index);
  transport_->begin(index);
  transport_->extend(index);
  join_nic(index);
  serve(flow.port);
}

std::int64_t PacketSimulation::transmit(std::uint32_t index, std::uint32_t packet) {
  Port& port = ports_[index];
  port.busy = true;
  port.sending = packet;
  Packet& leaving = packets_[packet];
  // Packets leave to the picosecond though events are whole nanoseconds: what is left over is carried to the
  // next one, so that a full link is exactly as fast as it is.
  const std::int64_t takes_ps = port.transmission_ps[leaving.size];
  const std::int64_t sent = events_.now() + (takes_ps + port.carry_ps) / 1000;
  port.carry_ps = static_cast<std::int32_t>((takes_ps + port.carry_ps) % 1000);
  ++port.frames;
  port.carried_bytes += leaving.size;
  port.busy_ps += takes_ps;
  if (sampler_)
    sampler_->carries(index, static_cast<double>(events_.now()), static_cast<double>(sent), leaving.size);
  // Both directions of a cable are ports with numbers that differ in the last bit.
  leaving.port = index ^ 1;
  schedule(sent, kSent, index);
  schedule(sent + port.delay_ns, kArrived, packet);
  return sent;
}

void PacketSimulation::serve(std::uint32_t index) {
  const Port& port = ports_[index];
  if (port.busy || !port.up) return;
  if (port.at_switch) {
    serve_switch(index);
  } else {
    serve_host(index);
  }
}

void PacketSimulation::arrive(std::uint32_t number) {
  Packet& packet = packets_[number];
  const std::uint32_t index = packet.port;
  Port& port = ports_[index];
  if (!port.up) {
    drop(number, true);
    return;
  }
  // One draw for everything that comes over a link that loses some, pauses and acknowledgements included.
  if (port.loss_stream != kNone && losses_[port.loss_stream].next() < port.loss) {
    drop(number, true);
    return;
  }
  switch (packet.kind) {
    case PacketKind::pause:
    case PacketKind::resume: {
      const std::size_t priority = packet.priority;
      const auto bit = static_cast<std::uint8_t>(1U << priority);
      const bool pause = packet.kind == PacketKind::pause;
      free_packet(number);
      if (pause) {
        ++outcome_.pauses;
        if ((port.paused & bit) == 0) pauses_[index].since_ns[priority] = events_.now();
        port.paused |= bit;
      } else {
        ++outcome_.resumes;
        if ((port.paused & bit) != 0) end_pause(index, priority);
        serve(index);
      }
      break;
    }
    case PacketKind::data:
    case PacketKind::request:
      if (port.at_switch) {
        forward(number);
      } else {
        receive_data(number);
      }
      break;
    case PacketKind::ack:
    case PacketKind::nack:
    case PacketKind::pull:
      if (port.at_switch) {
        forward(number);
      } else {
        receive_acknowledgement(number);
      }
      break;
  }
}

void PacketSimulation::end_pause(std::uint32_t index, std::size_t priority) {
  ports_[index].paused &= static_cast<std::uint8_t>(~(1U << priority));
  Pauses& pauses = pauses_[index];
  pauses.sum_ns += events_.now() - pauses.since_ns[priority];
  if (sampler_) sampler_->paused(index, pauses.since_ns[priority], events_.now());
}

void PacketSimulation::sum_pauses() {
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    const Port& port = ports_[index];
    const std::uint8_t still_paused = port.paused;
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      if ((still_paused >> priority & 1) != 0) end_pause(index, priority);
    }
    const std::int64_t paused_ns = pauses_[index].sum_ns;
    ports_[index].paused = still_paused;
    outcome_.paused_ns += paused_ns;
    const Port& peer = ports_[index ^ 1];
    const PacketOutcome::Pause pause = {paused_ns, port.node, peer.node};
    if (paused_ns > outcome_.longest_pause.ns) outcome_.longest_pause = pause;
    if (port.at_switch && peer.at_switch && paused_ns > outcome_.longest_pause_between_switches.ns) {
      outcome_.longest_pause_between_switches = pause;
    }
  }
}

// In queues, and on links: what has yet to arrive. Ends the simulation.
void PacketSimulation::count_in_flight() {
  const auto count = [&](const Packet& packet) {
    if (PacketBytes* bytes = account_of(packet)) bytes->in_flight += packet.size;
  };
  const auto count_queue = [&](const Queue& queue) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = packets_[packet].next)
      count(packets_[packet]);
  };
  for (const Port& port : ports_) count_queue(port.acknowledgements);
  for (const std::array<Shares, kPriorities>& port : shares_) {
    for (const Shares& share : port) count_queue(share.queue);
  }
  // What is on a link is in no queue, only in the event of its arrival.
  WheelEvent event;
  while (events_.next(INT64_MAX, event)) {
    if (event.kind == kArrived) count(packets_[event.subject]);
  }
}

}  // namespace armilla
