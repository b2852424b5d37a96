#include "network/packet/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "base/units_text.h"
#include "network/packet/forward/fast_forward.h"
#include "network/packet/transport/transport.h"

namespace armilla::packets {
namespace {

constexpr std::size_t kManyPackets = 4096;  // more than the processor keeps close to it

// A port, a packet, or what packets need of a flow first: two lines of the processor's cache.
void fetch(const void* at) {
  __builtin_prefetch(at, 1);
  __builtin_prefetch(static_cast<const char*>(at) + 64, 1);
}

}  // namespace

Simulation::Simulation(const FlowJob& job)
    : parts_(job, *this),
      forward_(parts_.core.forwards ? std::make_unique<FastForward>(parts_, static_cast<EventHandler&>(*this))
                                    : nullptr) {
  const std::vector<FlowAddress> addresses = addresses_of(job.flows);
  for (std::uint32_t index = 0; index < job.flows.size(); ++index) {
    parts_.hosts.transport().add_flow(false);
    parts_.flows.add(job.flows[index], addresses[index]);
  }
  // Times of equal start in the file's order.
  for (std::uint32_t index = 0; index < job.flows.size(); ++index)
    parts_.core.events.schedule(job.flows[index].start_ns, kDue, index);
  if (job.settings.link_down_ns > 0) parts_.core.events.schedule(job.settings.link_down_ns, kLinkDown, 0);
}

Simulation::~Simulation() = default;

std::uint32_t Simulation::connect(std::span<const std::vector<std::uint32_t>> ways) {
  parts_.mail.open();
  const std::uint32_t connection = parts_.flows.connect(ways);
  parts_.hosts.transport().add_flow(true);
  return connection;
}

void Simulation::post(std::uint32_t connection, std::int64_t bytes, std::uint64_t message,
                      std::int64_t at_ns) {
  parts_.mail.post(connection, bytes, message);
  parts_.connections.await(connection, at_ns);
}

void Simulation::begin(const TrafficFlow& flow, std::uint64_t message, std::int64_t at_ns) {
  const Flows::Coming coming = parts_.flows.come(flow);
  if (coming.fresh) {
    parts_.hosts.transport().add_flow(false);
  } else {
    parts_.hosts.transport().forget(coming.flow);
  }
  parts_.mail.name_flow(coming.flow, message);
  // As ASTRA-sim does: an application of ns-3 that is due at once.
  parts_.core.events.schedule(at_ns, kInstall, coming.flow);
}

// The next event, at most until `end_ns`, or the messages that begin before; false if there is neither.
inline bool Simulation::play(std::int64_t end_ns) {
  Core& core = parts_.core;
  WheelEvent event;
  if (core.events.pending() == 0) return false;
  // Messages begin behind all events of their nanosecond, so that events at `post_ns` still are before them.
  const std::int64_t post_ns = parts_.connections.next_ns();
  if (!core.events.next(std::min(end_ns, post_ns), event)) {
    if (post_ns >= end_ns) return false;
    parts_.connections.begin_messages();
    return true;
  }
  // Small simulations are in the processor's cache as they are.
  if (core.events.began_chunk() && core.packets.size() >= kManyPackets) look_ahead();
  handle(event);
  if (core.events.handled() >= core.look_at) core.look_at = forward_->look();
  return true;
}

// By what is acknowledged, so that what is sent again and again counts once. O(flows).
void Simulation::tell_progress() const {
  double done = 0, all = 0;
  std::uint32_t finished = 0;
  for (std::uint32_t index = 0; index < parts_.flows.size(); ++index) {
    const Flow& flow = parts_.flows[index];
    done += static_cast<double>(std::min(flow.acknowledged, flow.size));
    all += static_cast<double>(flow.size);
    finished += flow.finished ? 1 : 0;
  }
  Progress& progress = *parts_.core.job.progress;
  progress.update(all > 0 ? done / all : 0);
  progress.remark(fmt::format("{} of {} done, {:.4g} ms are simulated", finished,
                              typed_count(parts_.flows.size(), "flow"),
                              static_cast<double>(parts_.core.events.now()) / 1e6));
}

PacketOutcome Simulation::run() {
  constexpr int kTellEvery = 1 << 20;  // events: some tenth of a second
  Core& core = parts_.core;
  core.job.progress->begin("simulating packets");
  for (bool more = true; more;) {
    for (int plays = 0; more && plays < kTellEvery; ++plays) more = play(core.settings.stop_ns);
    tell_progress();
  }
  core.outcome.forwarded = forwarded();
  core.outcome.end_ns = traffic_end_ns();
  core.outcome.events = core.events.handled();
  core.outcome.frames = frames();
  parts_.links.sum_pauses(core.outcome.end_ns);
  core.outcome.stopped = core.events.pending() > 0;
  // Where nothing is left to happen flows that are not over wait for each other. Where the run was stopped
  // ports in a cycle could yet be let go, but for one that was silent for most of the time.
  if (!core.outcome.stopped || is_storm(core.outcome)) explain_deadlock(core, parts_.links);
  parts_.links.take_samples(core.outcome.end_ns);
  count_in_flight();
  return std::move(core.outcome);
}

// In large networks what events are about was last touched long ago. The memory is asked for it some events
// before, step by step, as one thing names the next.
void Simulation::look_ahead() const {
  // To GCC a function that does nothing but this has no effect, and it leaves out the calls of one.
  asm volatile("");
  std::array<std::span<const WheelEvent>, 3> chunks;
  parts_.core.events.look_ahead(chunks);
  for (const WheelEvent& event : chunks[0]) {
    if (event.kind == kArrived) {
      const Packet& packet = parts_.core.packets[event.subject];
      if (parts_.links[packet.port].at_switch) {
        if (packet.step == WayStore::kEnd) continue;
        const std::uint32_t exit = parts_.ways.store()[packet.step].port;
        fetch(&parts_.links[exit]);
        __builtin_prefetch(&parts_.switches.shares(exit)[packet.priority], 1);
      } else {
        const Flow& flow = parts_.flows[packet.flow];
        if (packet.kind != PacketKind::data && flow.turn != kNone)
          __builtin_prefetch(parts_.hosts.nic(flow.port).turns.data() + flow.turn, 1);
        if (parts_.core.traits.in_line) parts_.hosts.transport().fetch(packet.flow);
      }
    } else if (event.kind == kSent) {
      const Port& port = parts_.links[event.subject];
      if (port.at_switch) {
        if (port.waiting == 0) continue;
        const std::uint32_t head =
            parts_.switches.shares(event.subject)[static_cast<std::size_t>(std::countr_zero(port.waiting))]
                .queue.head;
        if (head != kNone) __builtin_prefetch(&parts_.core.packets[head], 1);
      } else if (const Nic& nic = parts_.hosts.nic(event.subject); !nic.turns.empty()) {
        const std::size_t next = nic.last + std::size_t{1};
        fetch(&parts_.flows[nic.turns[next < nic.turns.size() ? next : 0].flow]);
      }
    }
  }
  for (const WheelEvent& event : chunks[1]) {
    if (event.kind == kArrived) {
      const Packet& packet = parts_.core.packets[event.subject];
      fetch(&parts_.links[packet.port]);
      if (packet.step != WayStore::kEnd) {
        parts_.ways.store().fetch(packet.step);
        __builtin_prefetch(&parts_.switches.shares(packet.port)[packet.priority], 1);
      } else {
        fetch(&parts_.flows[packet.flow]);
      }
    } else if (event.kind == kSent) {
      const Port& port = parts_.links[event.subject];
      if (port.at_switch) {
        if (port.waiting != 0)
          __builtin_prefetch(&parts_.switches.shares(
                                 event.subject)[static_cast<std::size_t>(std::countr_zero(port.waiting))],
                             1);
      } else if (const Nic& nic = parts_.hosts.nic(event.subject); !nic.turns.empty()) {
        const std::size_t next = nic.last + std::size_t{1};
        __builtin_prefetch(nic.turns.data() + (next < nic.turns.size() ? next : 0), 1);
      }
    }
  }
  for (const WheelEvent& event : chunks[2]) {
    if (event.kind == kArrived) __builtin_prefetch(&parts_.core.packets[event.subject], 1);
    if (event.kind == kSent) fetch(&parts_.links[event.subject]);
  }
}

bool Simulation::play_until(std::int64_t end_ns) {
  while (parts_.mail.arrived().empty() && play(end_ns)) {
  }
  if (parts_.mail.arrived().empty()) return false;
  if (!parts_.mail.is_used()) return true;
  // All of the nanosecond, in an order that nothing else of it has an influence on.
  while (play(parts_.core.events.now())) {
  }
  std::ranges::sort(parts_.mail.arrived());
  return true;
}

void Simulation::bring_up() {
  if (forward_) forward_->bring_up();
}

std::optional<PacketForward> Simulation::forwarded() const {
  return forward_ ? std::optional(forward_->done()) : std::nullopt;
}

void Simulation::begins(std::uint32_t flow) {
  if (forward_) forward_->begins(flow);
}

void Simulation::arrived(std::uint32_t connection) {
  if (forward_) forward_->arrived(connection);
}

void Simulation::left_to_chance(std::uint32_t port) {
  if (forward_) forward_->left_to_chance(port);
}

void Simulation::crowded(std::uint32_t entry) {
  if (forward_) forward_->crowded(entry);
  parts_.connections.crowded(entry);
}

void Simulation::connects(const std::vector<std::uint32_t>& ports) {
  if (forward_) forward_->connects(ports);
}

void Simulation::join(std::uint32_t into, std::uint32_t from) {
  if (forward_) forward_->join(into, from);
}

void Simulation::connected(std::uint32_t connection) {
  if (forward_) forward_->connected(connection);
}

void Simulation::handle(const WheelEvent& event) {
  Events& events = parts_.core.events;
  switch (event.kind) {
    case kSent:
      parts_.links[event.subject].busy = false;
      if (parts_.core.traits.told_when_sent) [[unlikely]]
        parts_.switches.tell_again(event.subject);
      serve(event.subject);
      break;
    case kArrived:
      last_arrival_ns_ = events.now();
      arrive(event.subject);
      break;
    case kWake:
      parts_.hosts.wake(event.subject, event.stamp);
      break;
    // A flow takes three steps to start, as an application of ns-3 does.
    case kDue:
      events.schedule(events.now(), kInstall, event.subject);
      break;
    case kInstall:
      events.schedule(events.now(), kStart, event.subject);
      break;
    case kStart:
      parts_.hosts.start(event.subject);
      break;
    case kTimeout:
      parts_.hosts.timeout(event.subject);
      break;
    case kNicResume:
      parts_.hosts.end_pause(event.subject, static_cast<std::uint8_t>(event.stamp));
      break;
    case kNicMayPause:
      parts_.hosts.may_pause(event.subject);
      break;
    case kLinkDown:
      fail_link();
      break;
    case kPauseOver:
      if (parts_.links.pause_is_over(event.subject, event.stamp)) serve(event.subject);
      break;
    case kGoOn:
      forward_->go_on(event.subject, event.stamp);
      break;
    case kRepeat:
      events.forget();
      forward_->repeat(event.subject, event.stamp);
      break;
    case kCompare:
      events.forget();
      forward_->compare(event.subject, event.stamp);
      break;
    case kCrowded:
      events.forget();
      forward_->make_room(event.subject);
      break;
    default:
      parts_.hosts.transport().timer(event);
  }
}

void Simulation::serve(std::uint32_t port) {
  if (parts_.links[port].at_switch) {
    parts_.switches.serve(port);
  } else {
    parts_.hosts.serve(port);
  }
}

void Simulation::arrive(std::uint32_t number) {
  const Packet& packet = parts_.core.packets[number];
  const std::uint32_t index = packet.port;
  const Port& port = parts_.links[index];
  if (parts_.links.loses(port)) {
    parts_.losses.drop(number, true);
    return;
  }
  switch (packet.kind) {
    case PacketKind::pause:
    case PacketKind::resume: {
      const std::size_t priority = packet.priority;
      const bool pause = packet.kind == PacketKind::pause;
      parts_.flows.free_packet(number);
      if (pause) {
        parts_.links.pause(index, priority);
      } else {
        parts_.links.resume(index, priority);
        serve(index);
      }
      break;
    }
    case PacketKind::data:
    case PacketKind::request:
      if (port.at_switch) {
        parts_.switches.forward(number);
      } else {
        parts_.hosts.receive_data(number);
      }
      break;
    case PacketKind::ack:
    case PacketKind::nack:
    case PacketKind::pull:
      if (port.at_switch) {
        parts_.switches.forward(number);
      } else {
        parts_.hosts.receive_acknowledgement(number);
      }
      break;
  }
}

void Simulation::fail_link() {
  const FlowJob& job = parts_.core.job;
  const PacketSettings& settings = job.settings;
  std::vector<std::uint32_t> failed;
  for (std::uint32_t link = 0; link < job.graph.links.size(); ++link) {
    const GraphLink& cable = job.graph.links[link];
    const bool same = (cable.a == settings.link_down_a && cable.b == settings.link_down_b) ||
                      (cable.a == settings.link_down_b && cable.b == settings.link_down_a);
    if (!same) continue;
    failed.push_back(link);
    for (const std::uint32_t index : {2 * link, 2 * link + 1}) {
      Port& port = parts_.links[index];
      port.up = false;
      while (port.acknowledgements.head != kNone)
        parts_.losses.drop(parts_.core.packets.take(port.acknowledgements), true);
      parts_.switches.drop_queues(index);
    }
  }
  // Every flow finds a way anew, also those that the link did not carry: ns-3 sets all of its tables up
  // again.
  parts_.ways.without(failed);
  parts_.hosts.leave_all_nics();
  for (std::uint32_t index = 0; index < parts_.flows.size(); ++index) {
    const Flow& flow = parts_.flows[index];
    if (!flow.started || flow.finished) continue;
    parts_.flows.find_ways(index);
    parts_.hosts.join(index);
    parts_.hosts.serve(flow.port);
  }
}

// Timers, such as those of acknowledgements that wait for a second segment, may run for long after the last
// packet: nothing is over only with them. A run that was stopped ends there.
std::int64_t Simulation::traffic_end_ns() const {
  const Core& core = parts_.core;
  std::int64_t end_ns = last_arrival_ns_;
  bool all_finished = true;
  for (std::size_t index = 0; index < core.outcome.flows.size(); ++index) {
    const std::int64_t fct_ns = core.outcome.flows[index].fct_ns;
    all_finished = all_finished && fct_ns >= 0;
    if (fct_ns >= 0) end_ns = std::max(end_ns, core.job.flows[index].start_ns + fct_ns);
  }
  return all_finished || core.events.pending() == 0 ? end_ns : core.events.now();
}

// In queues, and on links: what has yet to arrive. Ends the simulation.
void Simulation::count_in_flight() {
  const auto count = [&](const Packet& packet) {
    if (PacketBytes* bytes = parts_.core.account_of(packet)) bytes->in_flight += packet.size;
  };
  const auto count_queue = [&](const Queue& queue) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = parts_.core.packets[packet].next)
      count(parts_.core.packets[packet]);
  };
  for (std::uint32_t port = 0; port < parts_.links.size(); ++port) {
    count_queue(parts_.links[port].acknowledgements);
    for (const Shares& share : parts_.switches.shares(port)) count_queue(share.queue);
  }
  // What is on a link is in no queue, only in the event of its arrival.
  WheelEvent event;
  while (parts_.core.events.next(INT64_MAX, event)) {
    if (event.kind == kArrived) count(parts_.core.packets[event.subject]);
  }
}

void Simulation::explain_standstill() const {
  explain_deadlock(parts_.core, parts_.links);
  for (std::uint32_t connection = 0; connection < parts_.flows.size(); ++connection) {
    if (parts_.mail.is_used() ? parts_.mail[connection].arrived == parts_.mail[connection].messages.size()
                              : parts_.flows[connection].finished)
      continue;
    throw Error(parts_.core.job.where,
                fmt::format("after {} ns host {} gave up sending to host {}: {} lost on links and "
                            "{} dropped by full buffers",
                            parts_.core.events.now(), parts_.links[parts_.flows[connection].port].node,
                            parts_.links[parts_.flows[connection].exit].node,
                            typed_count(parts_.core.outcome.lost_packets, "packet"),
                            parts_.core.outcome.dropped_packets),
                "a larger buffer, or links that lose less");
  }
  throw Error(parts_.core.job.where,
              fmt::format("nothing moves any more after {} ns", parts_.core.events.now()));
}

}  // namespace armilla::packets
