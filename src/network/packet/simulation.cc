#include "network/packet/simulation.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace armilla {
namespace {

// Sizes on the wire: PPP 2, IP 20, UDP 8, sequence and priority 6; acknowledgements fill a frame of 60 bytes at least.
constexpr std::uint32_t kHeader = 36, kSmallestFrame = 60, kPauseFrame = 31;
constexpr std::uint32_t kLinkAndIp = 22, kAcknowledgementHeader = 12;
constexpr std::uint32_t kReserve = 4096, kResumeOffset = 3072;        // bytes, per port and priority
constexpr std::int64_t kNackInterval = 500'000;                       // ns
constexpr std::int64_t kLongestPauseBits = 65535 * 512;               // IEEE 802.1Qbb
constexpr std::int64_t kNicPause = 10'000, kNicPauseGap = 1'000'000;  // ns
constexpr std::uint64_t kExplicitStreams = std::uint64_t{1} << 63;
constexpr int kRetries = 7;

// Kinds of events. Those from kAlpha on are timers of congestion control.
enum : std::uint32_t {
  kDue,
  kInstall,
  kStart,
  kSent,
  kArrived,
  kWake,
  kTimeout,
  kNicResume,
  kNicMayPause,
  kLinkDown,
  kPauseOver,
  kAlpha,
  kDecrease,
  kIncrease
};

// Time to send, to the nearest nanosecond, halves down.
std::int64_t nanoseconds(std::uint32_t bytes, std::int64_t bits_per_second) {
  const std::int64_t twice = static_cast<std::int64_t>(bytes) * 16'000'000'000;
  return (twice + bits_per_second - 1) / (2 * bits_per_second);
}

// A pause that nobody ends is over after this time.
std::int64_t longest_pause_ns(std::int64_t bits_per_second) {
  return kLongestPauseBits * 1'000'000'000 / bits_per_second;
}

// ns-3 numbers its random streams as objects are made. Of those made before the first packet, nine belong to every
// node's protocols, two to the network's error model and two to that of each link with a loss of its own.
std::uint64_t first_marking_stream(const NetworkGraph& graph) {
  std::uint64_t streams = 9 * graph.is_switch.size() + 2;
  for (const GraphLink& link : graph.links) streams += link.loss > 0 ? 2 : 0;
  return streams;
}

}  // namespace

PacketSimulation::PacketSimulation(const FlowJob& job)
    : job_(job),
      settings_(job.settings),
      routes_(job.graph, job.settings.payload, ends_of(job.flows)),
      largest_(routes_.largest()),
      marking_(job.settings.seed, first_marking_stream(job.graph)) {
  build();
}

void PacketSimulation::build() {
  const NetworkGraph& graph = job_.graph;
  const CongestionControl algorithm = settings_.congestion_control;
  telemetry_size_ = algorithm == CongestionControl::hpcc                                              ? 42
                    : algorithm == CongestionControl::timely || algorithm == CongestionControl::swift ? 8
                                                                                                      : 0;
  header_ = kHeader + telemetry_size_;
  acknowledgement_size_ =
      std::max(kSmallestFrame - 34 + 22, kLinkAndIp + kAcknowledgementHeader + telemetry_size_);
  ack_priority_ = settings_.acks_first ? 0 : 3;
  // Swift is an algorithm of windows.
  has_window_ = settings_.window || algorithm == CongestionControl::swift;
  window_follows_rate_ = settings_.window_follows_rate || algorithm == CongestionControl::swift;

  // Whole chunks are acknowledged: with less than one under way a flow would wait for ever.
  if (settings_.recovery == LossRecovery::go_back_0) {
    least_window_ = static_cast<std::uint64_t>(settings_.chunk + settings_.payload);
  }

  ports_.resize(2 * graph.links.size());
  shares_.resize(ports_.size());
  switches_.resize(graph.is_switch.size());
  std::map<std::int64_t, std::uint32_t> rate_classes;
  losses_.emplace_back(settings_.seed, kExplicitStreams + 50);
  std::vector<std::vector<std::uint32_t>> of_node(graph.is_switch.size());
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) {
    const GraphLink& cable = graph.links[link];
    if (rate_classes.try_emplace(cable.bits_per_second, rate_classes.size()).second) {
      std::vector<std::uint32_t>& table = transmission_.emplace_back();
      const auto largest = static_cast<std::uint32_t>(settings_.payload) + header_ + 64;
      for (std::uint32_t bytes = 0; bytes <= largest; ++bytes) {
        table.push_back(static_cast<std::uint32_t>(nanoseconds(bytes, cable.bits_per_second)));
      }
    }
    if (cable.loss > 0) losses_.emplace_back(settings_.seed, kExplicitStreams + 50);
    for (const std::uint32_t end : {0U, 1U}) {
      Port& port = ports_[2 * link + end];
      port.node = static_cast<std::uint32_t>(end == 0 ? cable.a : cable.b);
      port.at_switch = graph.is_switch[port.node];
      port.rate = cable.bits_per_second;
      port.delay_ns = cable.delay_ns;
      port.loss = cable.loss > 0 ? cable.loss : settings_.loss;
      port.loss_stream = cable.loss > 0 ? static_cast<std::uint32_t>(losses_.size() - 1) : 0;
      of_node[port.node].push_back(2 * link + end);
      if (!port.at_switch) {
        port.nic = static_cast<std::uint32_t>(nics_.size());
        nics_.emplace_back();
      }
    }
  }

  for (Port& port : ports_) port.transmission_ns = transmission_[rate_classes.at(port.rate)].data();

  std::int64_t nic_rate = 0;
  for (std::uint32_t node = 0; node < graph.is_switch.size() && nic_rate == 0; ++node) {
    if (!graph.is_switch[node] && !of_node[node].empty()) nic_rate = ports_[of_node[node].front()].rate;
  }
  for (std::uint32_t node = 0; node < graph.is_switch.size(); ++node) {
    first_ports_.push_back(static_cast<std::uint32_t>(node_ports_.size()));
    node_ports_.insert(node_ports_.end(), of_node[node].begin(), of_node[node].end());
    if (!graph.is_switch[node]) continue;
    std::int64_t kept = 0;
    for (const std::uint32_t index : of_node[node]) {
      Port& port = ports_[index];
      if (const auto found = settings_.ecn_of_rate.find(port.rate); found != settings_.ecn_of_rate.end()) {
        port.ecn = found->second;
      }
      const auto headroom = static_cast<WideProduct>(port.rate) * port.delay_ns / 8 / 1'000'000'000 * 3;
      if (headroom > settings_.buffer) {
        throw Error(
            job_.where,
            fmt::format("a link of switch {} with {} bit/s and {} ns needs {} bytes of headroom, and its "
                        "buffer has {}",
                        node, port.rate, port.delay_ns, static_cast<std::int64_t>(headroom),
                        settings_.buffer),
            "give the switches a larger BUFFER_SIZE (MB)");
      }
      port.headroom_limit = static_cast<std::uint32_t>(headroom);
      for (std::int64_t rate = port.rate; rate > nic_rate && port.threshold_shift > 0; rate /= 2)
        --port.threshold_shift;
      kept += port.headroom_limit + kReserve;
    }
    if (kept >= settings_.buffer) {
      throw Error(
          job_.where,
          fmt::format("switch {} needs {} bytes for the reserve and the headroom of its {} ports, and its "
                      "buffer has {}",
                      node, kept, of_node[node].size(), settings_.buffer),
          "give the switches a larger BUFFER_SIZE (MB)");
    }
    switches_[node].buffer_left = static_cast<std::uint32_t>(settings_.buffer - kept);
  }
  first_ports_.push_back(static_cast<std::uint32_t>(node_ports_.size()));

  outcome_.longest_round_trip_ns = largest_.round_trip_ns;
  outcome_.window_bytes = largest_.bandwidth_delay_bytes;
  flows_.resize(job_.flows.size());
  outcome_.flows.resize(job_.flows.size());
  switch (algorithm) {
    case CongestionControl::none:
      break;
    case CongestionControl::dcqcn:
      dcqcn_.resize(flows_.size());
      break;
    case CongestionControl::hpcc:
      hpcc_.resize(flows_.size());
      break;
    case CongestionControl::timely:
      timely_.resize(flows_.size());
      break;
    case CongestionControl::dctcp:
      dctcp_.resize(flows_.size());
      break;
    case CongestionControl::swift:
      swift_.resize(flows_.size());
      break;
  }
  if (settings_.recovery == LossRecovery::selective) selective_.resize(flows_.size());
  const std::vector<FlowAddress> addresses = addresses_of(job_.flows);
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    const TrafficFlow& asked = job_.flows[index];
    Flow& flow = flows_[index];
    flow.size = static_cast<std::uint64_t>(asked.bytes);
    flow.address = addresses[index];
    flow.priority = static_cast<std::uint8_t>(asked.priority);
    const PairFigures pair = routes_.pair(flow.address.source, flow.address.destination);
    if (pair.hops == 0) {
      throw Error(
          job_.where,
          fmt::format("no way leads from host {} to host {}", flow.address.source, flow.address.destination),
          "hosts do not forward: every way goes over switches");
    }
    if (algorithm == CongestionControl::hpcc && pair.hops > kTelemetryHops + 1) {
      throw Error(
          job_.where,
          fmt::format("the way from host {} to host {} passes {} switches, and packets of HPCC have room "
                      "for the figures of {}",
                      flow.address.source, flow.address.destination, pair.hops - 1, kTelemetryHops),
          "choose another congestion control");
    }
    flow.round_trip_ns = settings_.global_window ? largest_.round_trip_ns : pair.round_trip_ns;
    if (has_window_) {
      flow.window = settings_.global_window ? largest_.bandwidth_delay_bytes : pair.bandwidth_delay_bytes();
    }
    flow.hops = static_cast<std::uint32_t>(pair.hops);
    // As the peers reckon it: the pair's round trip, and every byte at the slowest link's rate, with 48 of headers.
    const std::int64_t count = (asked.bytes - 1) / settings_.payload + 1;
    outcome_.flows[index].alone_ns =
        pair.round_trip_ns + static_cast<std::int64_t>(static_cast<WideProduct>(asked.bytes + count * 48) *
                                                       8'000'000'000 / pair.bits_per_second);
  }
  // Times of equal start in the file's order.
  for (std::uint32_t index = 0; index < flows_.size(); ++index)
    schedule(job_.flows[index].start_ns, kDue, index);
  if (settings_.link_down_ns > 0) schedule(settings_.link_down_ns, kLinkDown, 0);
}

PacketOutcome PacketSimulation::run() {
  WheelEvent event;
  while (pending_ > 0 && events_.next(settings_.stop_ns, event)) handle(event);
  outcome_.end_ns = events_.now();
  outcome_.events = events_.handled();
  sum_pauses();
  if (pending_ == 0) explain_deadlock();
  count_in_flight();
  return std::move(outcome_);
}

// ---- packets and queues

std::uint32_t PacketSimulation::new_packet() {
  if (free_packets_ != kNone) {
    const std::uint32_t packet = free_packets_;
    free_packets_ = packets_[packet].next;
    packets_[packet] = {};
    return packet;
  }
  packets_.emplace_back();
  if (!hpcc_.empty()) telemetry_.emplace_back();
  return static_cast<std::uint32_t>(packets_.size() - 1);
}

void PacketSimulation::free_packet(std::uint32_t packet) {
  packets_[packet].next = free_packets_;
  free_packets_ = packet;
}

void PacketSimulation::append(Queue& queue, std::uint32_t packet) {
  packets_[packet].next = kNone;
  if (queue.head == kNone) {
    queue.head = packet;
  } else {
    packets_[queue.tail].next = packet;
  }
  queue.tail = packet;
}

std::uint32_t PacketSimulation::take(Queue& queue) {
  const std::uint32_t packet = queue.head;
  queue.head = packets_[packet].next;
  if (queue.head != kNone)
    __builtin_prefetch(&packets_[queue.head], 1);  // in long queues it was touched long ago
  return packet;
}

// ---- events

void PacketSimulation::schedule(std::int64_t time, std::uint32_t kind, std::uint32_t subject,
                                std::uint32_t stamp) {
  if (kind < kAlpha) ++pending_;
  events_.schedule(time, kind, subject, stamp);
}

void PacketSimulation::handle(const WheelEvent& event) {
  if (event.kind < kAlpha) --pending_;
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
      if ((port.paused >> event.stamp & 1) == 0 ||
          port.paused_since_ns[event.stamp] > events_.now() - longest_pause_ns(port.rate))
        break;
      port.paused &= static_cast<std::uint8_t>(~(1U << event.stamp));
      port.paused_ns += events_.now() - port.paused_since_ns[event.stamp];
      serve(event.subject);
      break;
    }
    case kAlpha: {
      if (flows_[event.subject].finished) {
        events_.forget();
        break;
      }
      DcqcnState& state = dcqcn_[event.subject];
      state.alpha = (1 - settings_.gain) * state.alpha + (state.marked_for_alpha ? settings_.gain : 0);
      state.marked_for_alpha = false;
      schedule(events_.now() + settings_.alpha_interval_us * 1000, kAlpha, event.subject);
      break;
    }
    case kDecrease: {
      if (flows_[event.subject].finished) {
        events_.forget();
        break;
      }
      schedule(events_.now() + settings_.decrease_interval_us * 1000, kDecrease, event.subject);
      DcqcnState& state = dcqcn_[event.subject];
      if (!state.marked_for_decrease) break;
      state.decrease(flows_[event.subject], settings_);
      refresh(event.subject);
      schedule(events_.now() + settings_.increase_interval_us * 1000, kIncrease, event.subject,
               ++flows_[event.subject].increase_stamp);
      break;
    }
    case kIncrease: {
      Flow& flow = flows_[event.subject];
      if (flow.finished || event.stamp != flow.increase_stamp) {
        events_.forget();
        break;
      }
      schedule(events_.now() + settings_.increase_interval_us * 1000, kIncrease, event.subject,
               ++flow.increase_stamp);
      dcqcn_[event.subject].increase(flow, settings_);
      refresh(event.subject);
      break;
    }
    default:
      break;
  }
}

// ---- flows

void PacketSimulation::start_flow(std::uint32_t index) {
  Flow& flow = flows_[index];
  find_ways(index);
  flow.started = true;
  flow.start_ns = flow.next_send_ns = events_.now();
  flow.port = paths_[flow.way_there];
  flow.rate = flow.line_rate = ports_[flow.port].rate;
  if (!dcqcn_.empty()) dcqcn_[index].target = flow.rate;
  if (!hpcc_.empty()) {
    hpcc_[index].rate = flow.rate;
    for (HpccState::PerHop& hop : hpcc_[index].per_hop) hop.rate = flow.rate;
  }
  if (!timely_.empty()) timely_[index].rate = flow.rate;
  if (!selective_.empty()) {
    const std::size_t words = (flow.size / static_cast<std::uint64_t>(settings_.payload) + 64) / 64;
    selective_[index].arrived.assign(words, 0);
    selective_[index].known.assign(words, 0);
  }
  join_nic(index);
  serve(flow.port);
}

void PacketSimulation::join_nic(std::uint32_t index) {
  Flow& flow = flows_[index];
  std::vector<Turn>& turns = nics_[ports_[flow.port].nic].turns;
  flow.turn = static_cast<std::uint32_t>(turns.size());
  turns.push_back({flow.next_send_ns, index, flow.priority, false, false});
  refresh(index);
}

// To be called whenever what decides about sending has changed.
void PacketSimulation::refresh(std::uint32_t index) {
  const Flow& flow = flows_[index];
  Turn& turn = nics_[ports_[flow.port].nic].turns[flow.turn];
  turn.next_send_ns = flow.next_send_ns;
  turn.ready = (flow.next < flow.size && !flow.window_full(window_follows_rate_, least_window_)) ||
               (!selective_.empty() && selective_[index].recovering);
  turn.finished = flow.acknowledged >= flow.size;
}

void PacketSimulation::find_ways(std::uint32_t index) {
  Flow& flow = flows_[index];
  for (const bool back : {false, true}) {
    const FlowAddress address = back ? flow.address.back() : flow.address;
    (back ? flow.way_back : flow.way_there) = static_cast<std::uint32_t>(paths_.size());
    for (std::uint32_t node = address.source; node != address.destination;) {
      const std::uint32_t port = next_port(job_.graph, routes_, node, address);
      if (port == kNoPort) {
        throw Error(
            job_.where,
            fmt::format("no way leads from host {} to host {} after the link between {} and {} failed",
                        flow.address.source, flow.address.destination, settings_.link_down_a,
                        settings_.link_down_b));
      }
      paths_.push_back(port);
      node = ports_[port ^ 1].node;
    }
  }
}

// ---- sending

void PacketSimulation::transmit(std::uint32_t index, std::uint32_t packet) {
  Port& port = ports_[index];
  port.busy = true;
  ++outcome_.frames;
  Packet& leaving = packets_[packet];
  const std::int64_t sent = events_.now() + port.transmission_ns[leaving.size];
  leaving.port = index ^ 1;
  schedule(sent, kSent, index);
  schedule(sent + port.delay_ns, kArrived, packet);
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
    for (std::uint32_t i = first_finished + 1; i < count; ++i) {
      if (nic.turns[i].finished) continue;
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
    flow.next_send_ns =
        now + (settings_.pace && flow.rate != flow.line_rate ? nanoseconds(flow.last_size, flow.rate)
                                                             : port.transmission_ns[flow.last_size]);
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

std::uint32_t PacketSimulation::next_data(std::uint32_t index) {
  Flow& flow = flows_[index];
  const auto largest = static_cast<std::uint64_t>(settings_.payload);
  std::uint64_t sequence = flow.next;
  if (!selective_.empty() && selective_[index].recovering) {
    Selective& repeat = selective_[index];
    sequence = repeat.resend * largest;
    ++repeat.resend;
    repeat.find_lost();
  }
  const std::uint64_t payload = std::min(largest, flow.size - sequence);
  const std::uint32_t packet = new_packet();
  Packet& data = packets_[packet];
  data.flow = index;
  data.kind = PacketKind::data;
  data.priority = flow.priority;
  data.sequence = sequence;
  data.payload = static_cast<std::uint16_t>(payload);
  data.size = static_cast<std::uint32_t>(payload) + header_;
  data.hop = flow.way_there + 1;
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

void PacketSimulation::serve_switch(std::uint32_t index) {
  Port& port = ports_[index];
  int queue = 0;
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
  leave_switch(index, packet, static_cast<std::uint8_t>(queue));
  transmit(index, packet);
}

std::uint32_t PacketSimulation::threshold(const Port& port) const {
  const Switch& here = switches_[port.node];
  return (here.buffer_left - here.shared_used) >> port.threshold_shift;
}

void PacketSimulation::leave_switch(std::uint32_t index, std::uint32_t number, std::uint8_t queue) {
  Port& port = ports_[index];
  const std::uint32_t size = packets_[number].size, came_by = packets_[number].port;
  if (queue != 0) {
    Switch& here = switches_[port.node];
    Shares& in = shares_[came_by][queue];
    Shares& out = shares_[index][queue];
    const std::uint32_t from_headroom = std::min(in.headroom, size);
    const std::uint32_t shared = in.arrived > kReserve ? in.arrived - kReserve : 0;
    here.shared_used -= std::min(size - from_headroom, shared);
    in.headroom -= from_headroom;
    in.arrived -= size - from_headroom;
    out.leaving -= size;
    if (settings_.ecn) {
      bool mark = out.leaving > port.ecn.maximum;
      if (!mark && out.leaving > port.ecn.minimum) {
        const double probability = port.ecn.probability *
                                   static_cast<double>(out.leaving - port.ecn.minimum) /
                                   static_cast<double>(port.ecn.maximum - port.ecn.minimum);
        mark = marking_.next() < probability;
      }
      if (mark) {
        Packet& packet = packets_[number];
        if (!packet.marked) ++outcome_.marked_packets;
        packet.marked = true;
      }
    }
    Port& entry = ports_[came_by];
    if ((entry.pausing >> queue & 1) != 0) {
      const std::uint32_t used = in.arrived > kReserve ? in.arrived - kReserve : 0;
      if (in.headroom == 0 && (used == 0 || used + kResumeOffset <= threshold(entry))) {
        pause_peer(came_by, queue, false);
      }
    }
  }
  if (!hpcc_.empty() && packets_[number].kind == PacketKind::data) {
    Telemetry& told = telemetry_[number];
    const auto unit = static_cast<std::uint64_t>(settings_.telemetry_unit);
    told.hops[told.count++ % kTelemetryHops] = {
        static_cast<std::uint32_t>(events_.now()) & 0xff'ffffU,
        static_cast<std::uint32_t>(port.sent_bytes / (128 * unit)) & 0xf'ffffU,
        static_cast<std::uint32_t>(port.queued / (80 * unit)) & 0x1'ffffU, index, port.rate};
  }
  port.sent_bytes += size;
}

void PacketSimulation::pause_peer(std::uint32_t index, int priority, bool pause) {
  const std::uint32_t number = new_packet();
  Packet& frame = packets_[number];
  frame.kind = pause ? PacketKind::pause : PacketKind::resume;
  frame.priority = static_cast<std::uint8_t>(priority);
  frame.size = kPauseFrame;
  marking_.skip();  // ns-3 draws an identification for the frame
  Port& port = ports_[index];
  if (pause) {
    port.pausing |= static_cast<std::uint8_t>(1U << priority);
  } else {
    port.pausing &= static_cast<std::uint8_t>(~(1U << priority));
  }
  append(shares_[index][0].queue, number);
  port.waiting |= 1;
  port.queued += frame.size;
  serve(index);
}

// ---- arriving

void PacketSimulation::drop(std::uint32_t number, bool on_link) {
  const Packet& packet = packets_[number];
  ++(on_link ? outcome_.lost_packets : outcome_.dropped_packets);
  if (packet.kind == PacketKind::data) outcome_.data.dropped += packet.size;
  if (packet.kind == PacketKind::ack || packet.kind == PacketKind::nack)
    outcome_.acknowledgements.dropped += packet.size;
  if (packet.kind != PacketKind::pause && packet.kind != PacketKind::resume) {
    // A host's timer runs from its last progress. It can only fire after a loss, and so begins with one.
    Flow& flow = flows_[packet.flow];
    if (settings_.retransmit_timeout_ns > 0 && !flow.timer && !flow.finished) {
      flow.timer = true;
      flow.timer_mark = flow.acknowledged;
      schedule(events_.now() + settings_.retransmit_timeout_ns, kTimeout, packet.flow);
    }
  }
  if (packet.kind == PacketKind::resume && on_link && ports_[packet.port].up) {
    schedule(events_.now() + longest_pause_ns(ports_[packet.port].rate), kPauseOver, packet.port,
             packet.priority);
  }
  free_packet(number);
}

void PacketSimulation::timeout(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.timer = false;
  if (flow.finished) {
    events_.forget();
    return;
  }
  if (flow.acknowledged > flow.timer_mark) {
    flow.retries = 0;
  } else {
    if (++flow.retries > kRetries) return;  // given up, as a NIC does
    ++outcome_.timeouts;
    flow.ask = true;
    if (selective_.empty()) {
      flow.next = flow.acknowledged;
    } else {
      selective_[index].resend = flow.acknowledged / static_cast<std::uint64_t>(settings_.payload);
      selective_[index].recovering = true;
    }
  }
  flow.timer = true;
  flow.timer_mark = flow.acknowledged;
  schedule(events_.now() + settings_.retransmit_timeout_ns, kTimeout, index);
  refresh(index);
  serve(flow.port);
}

void PacketSimulation::arrive(std::uint32_t number) {
  Packet& packet = packets_[number];
  const std::uint32_t index = packet.port;
  Port& port = ports_[index];
  if (!port.up) {
    drop(number, true);
    return;
  }
  if (port.loss > 0 && losses_[port.loss_stream].next() < port.loss) {
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
        if ((port.paused & bit) == 0) port.paused_since_ns[priority] = events_.now();
        port.paused |= bit;
      } else {
        ++outcome_.resumes;
        if ((port.paused & bit) != 0) port.paused_ns += events_.now() - port.paused_since_ns[priority];
        port.paused &= static_cast<std::uint8_t>(~bit);
        serve(index);
      }
      break;
    }
    case PacketKind::data:
      if (port.at_switch) {
        forward(number);
      } else {
        receive_data(number);
      }
      break;
    case PacketKind::ack:
    case PacketKind::nack:
      if (port.at_switch) {
        forward(number);
      } else {
        receive_acknowledgement(number);
      }
      break;
  }
}

void PacketSimulation::forward(std::uint32_t number) {
  Packet& packet = packets_[number];
  const std::uint32_t entry = packet.port;
  const bool back = packet.kind != PacketKind::data;
  std::uint32_t exit = 0;
  if (hashed_) {
    const FlowAddress& flow = flows_[packet.flow].address;
    exit = next_port(job_.graph, routes_, ports_[entry].node, back ? flow.back() : flow);
    if (exit == kNoPort) {
      drop(number, true);
      return;
    }
  } else {
    exit = paths_[packet.hop++];
  }
  const std::uint8_t queue = packet.priority;
  if (queue != 0) {
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
    shares_[exit][queue].leaving += packet.size;
    if ((port.pausing >> queue & 1) == 0) {
      const std::uint32_t now_used = in.arrived > kReserve ? in.arrived - kReserve : 0;
      if (in.headroom > 0 || now_used >= threshold(port)) pause_peer(entry, queue, true);
    }
  }
  // pause_peer may have moved the packets in memory.
  append(shares_[exit][queue].queue, number);
  Port& out = ports_[exit];
  out.waiting |= static_cast<std::uint8_t>(1U << queue);
  out.queued += packets_[number].size;
  outcome_.longest_queue = std::max<std::int64_t>(outcome_.longest_queue, out.queued);
  serve(exit);
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

  Packet& answer = packets_[number];
  bool reply = false, missing = false;
  const std::uint64_t arrived = answer.sequence;
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
      missing = true;
    }
    reply = true;
    answer.repeat = arrived;
  } else if (arrived == flow.expected) {
    flow.expected += answer.payload;
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
    reply = answer.asks;
  }
  if (!reply) {
    free_packet(number);
    return;
  }
  // The packet itself becomes its answer and takes what switches wrote into it back.
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
  std::uint64_t sequence = packet.sequence;
  if (settings_.recovery == LossRecovery::go_back_0 && sequence < flow.size) {
    sequence =
        sequence / static_cast<std::uint64_t>(settings_.chunk) * static_cast<std::uint64_t>(settings_.chunk);
  }
  const std::uint64_t before = flow.acknowledged;
  flow.acknowledged = std::max(flow.acknowledged, sequence);
  // Without this a window would count what is under way below zero, and stay full.
  if (flow.window != 0 || packet.asks) flow.next = std::max(flow.next, flow.acknowledged);
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
    repeat.find_lost();
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
      schedule(events_.now() + settings_.alpha_interval_us * 1000, kAlpha, index);
      // A nanosecond later than alpha's.
      schedule(events_.now() + settings_.decrease_interval_us * 1000 + 1, kDecrease, index);
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
  flow.next_send_ns += nanoseconds(flow.last_size, rate) - nanoseconds(flow.last_size, flow.rate);
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
  outcome_.flows[index].fct_ns = events_.now() - flow.start_ns;
  // The receiver forgets the flow: what still arrives is out of order to it.
  flow.expected = flow.last_nack = 0;
  flow.next_nack_ns = 0;
}

// ---- what goes wrong

void PacketSimulation::link_down() {
  for (std::uint32_t link = 0; link < job_.graph.links.size(); ++link) {
    const GraphLink& cable = job_.graph.links[link];
    const bool same = (cable.a == settings_.link_down_a && cable.b == settings_.link_down_b) ||
                      (cable.a == settings_.link_down_b && cable.b == settings_.link_down_a);
    if (!same) continue;
    failed_.push_back(link);
    for (const std::uint32_t index : {2 * link, 2 * link + 1}) {
      Port& port = ports_[index];
      port.up = false;
      while (port.acknowledgements.head != kNone) drop(take(port.acknowledgements), true);
      for (std::size_t queue = 0; queue < kPriorities; ++queue) {
        Queue& waiting = shares_[index][queue].queue;
        while (waiting.head != kNone) {
          const std::uint32_t packet = take(waiting);
          port.queued -= packets_[packet].size;
          // The buffer is free again.
          if (queue != 0) leave_switch(index, packet, static_cast<std::uint8_t>(queue));
          drop(packet, true);
        }
      }
      port.waiting = 0;
    }
  }
  const std::vector<std::uint32_t> ends = ends_of(job_.flows);
  routes_ = Routes(job_.graph, settings_.payload, ends, failed_);
  hashed_ = true;
  for (Nic& nic : nics_) nic.turns.clear();
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    Flow& flow = flows_[index];
    if (!flow.started || flow.finished) continue;
    find_ways(index);
    flow.port = paths_[flow.way_there];
    join_nic(index);
    serve(flow.port);
  }
}

void PacketSimulation::sum_pauses() {
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    const Port& port = ports_[index];
    std::int64_t paused_ns = port.paused_ns;
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      if ((port.paused >> priority & 1) != 0) paused_ns += events_.now() - port.paused_since_ns[priority];
    }
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
    if (packet.kind == PacketKind::data) outcome_.data.in_flight += packet.size;
    if (packet.kind == PacketKind::ack || packet.kind == PacketKind::nack) {
      outcome_.acknowledgements.in_flight += packet.size;
    }
  };
  const auto count_queue = [&](const Queue& queue) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = packets_[packet].next)
      count(packets_[packet]);
  };
  for (const Port& port : ports_) count_queue(port.acknowledgements);
  for (const std::array<Shares, kPriorities>& port : shares_) {
    for (const Shares& share : port) count_queue(share.queue);
  }
  WheelEvent event;
  while (events_.next(INT64_MAX, event)) {
    if (event.kind == kArrived) count(packets_[event.subject]);
  }
}

void PacketSimulation::explain_deadlock() const {
  // A port that is paused waits for the queues that the packets it paused for wait in: at the switch that paused it, the
  // paused ports that still hold packets.
  std::vector<std::uint32_t> way;
  std::vector<char> state(ports_.size());
  const auto blocked = [&](std::uint32_t port) {
    return ports_[port].at_switch && (ports_[port].waiting & ports_[port].paused) != 0;
  };
  for (std::uint32_t start = 0; start < ports_.size(); ++start) {
    if (!blocked(start) || state[start] != 0) continue;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stack = {{start, 0}};
    state[start] = 1;
    way = {start};
    while (!stack.empty()) {
      const std::uint32_t node = ports_[stack.back().first ^ 1].node;
      const std::uint32_t at = first_ports_[node] + stack.back().second++;
      if (at >= first_ports_[node + 1]) {
        state[stack.back().first] = 2;
        stack.pop_back();
        way.pop_back();
        continue;
      }
      const std::uint32_t next = node_ports_[at];
      if (next == (stack.back().first ^ 1) || !blocked(next)) continue;
      if (state[next] == 1) {
        std::string cycle;
        for (auto port = std::find(way.begin(), way.end(), next); port != way.end(); ++port) {
          cycle += fmt::format("{} -> ", ports_[*port].node);
        }
        throw Error(job_.where,
                    fmt::format("PFC deadlock after {} ns: switches wait for each other in the cycle {}{}, "
                                "each paused by the "
                                "next with a full buffer",
                                events_.now(), cycle, ports_[next].node),
                    "routes that go up and then only down, a larger BUFFER_SIZE, or congestion control with "
                    "a window avoid "
                    "it");
      }
      if (state[next] == 0) {
        state[next] = 1;
        stack.emplace_back(next, 0);
        way.push_back(next);
      }
    }
  }
}

}  // namespace armilla
