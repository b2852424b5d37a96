#include "network/packet/forward/pattern_states.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/splitmix.h"
#include "network/packet/transport/transport.h"

namespace armilla::packets {

std::size_t StateHash::operator()(const State& words) const {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) hash = hash_with(hash, word);
  return hash;
}

PatternStates::PatternStates(Parts& parts)
    : core_(parts.core),
      links_(parts.links),
      ways_(parts.ways),
      flows_(parts.flows),
      mail_(parts.mail),
      switches_(parts.switches),
      hosts_(parts.hosts),
      sets_(parts.connections.sets()),
      port_label_(links_.size(), kNone) {}

std::uint64_t PatternStates::sort(ConnectionSets::Set& set) {
  // Labels by the order of connections: sets that are alike but for their numbers have one structure, and
  // know each other's patterns.
  std::ranges::sort(set.connections);
  for (const std::uint32_t port : set.ports) port_label_[port] = kNone;
  set.ports.clear();
  flow_label_.resize(flows_.size(), kNone);
  State state;
  const auto add = [&](auto value) { state.push_back(static_cast<std::uint64_t>(value)); };
  for (std::size_t i = 0; i < set.connections.size(); ++i) {
    const Flow& flow = flows_[set.connections[i]];
    flow_label_[set.connections[i]] = static_cast<std::uint32_t>(i);
    add(ways_.store().links(flow.way_there));
    add(ways_.store().links(flow.way_back));
    ways_.for_each_port(flow, [&](std::uint32_t port, bool) {
      if (port_label_[port] == kNone) {
        port_label_[port] = static_cast<std::uint32_t>(set.ports.size());
        set.ports.push_back(port);
      }
      add(port_label_[port]);
    });
    add(flow.priority);
    add(flow.window);
    add(flow.round_trip_ns);
    add(flow.hops);
  }
  for (const std::uint32_t index : set.ports) {
    const Port& port = links_[index];
    add(port.rate);
    add(port.delay_ns);
    add(port.at_switch);
    add(port.ecn.minimum);
    add(port.ecn.maximum);
    state.push_back(std::bit_cast<std::uint64_t>(port.ecn.probability));
    const Port& peer = links_[index ^ 1];
    // Which port is at the other end, where that is one of the set's.
    add(sets_.of_port(index ^ 1) == sets_.of_port(index) ? port_label_[index ^ 1] : kNone);
    add(peer.at_switch);
    if (peer.at_switch) add(switches_[peer.node].calm);
  }
  return structures_.try_emplace(std::move(state), structures_.size()).first->second;
}

void PatternStates::code_label(const std::vector<std::uint32_t>& of, const std::vector<std::uint32_t>& labels,
                               std::uint32_t& number, Words& words) const {
  std::uint32_t label = words.reads() ? 0 : labels[number];
  words.bits(label, 32);
  if (words.reads()) number = of[label];
}

// What is yet to arrive: that is not taken over, but what arrives, and how large its last packet is,
// depends on it.
void PatternStates::code_messages(const SetMembers& set, State& state) const {
  for (std::size_t i = 0; i < set.connections.size(); ++i) {
    const Mail::Box& mail = mail_[set.connections[i]];
    state.push_back(mail.posted - mail.arrived);
    for (std::size_t message = mail.arrived; message < mail.posted; ++message) {
      state.push_back(mail.messages[message].end - set.bases[i]);
      state.push_back(mail.messages[message].bytes_end - set.bases[i]);
    }
  }
}

void PatternStates::code(const SetMembers& set, std::vector<HeldEvent>& events, bool ends_matter,
                         Words& words) {
  for (std::size_t i = 0; i < set.connections.size(); ++i) code_flow(set, i, ends_matter, words);
  for (const std::uint32_t port : set.ports) code_port(set, port, words);
  code_events(set, events, words);
}

void PatternStates::code_flow(const SetMembers& set, std::size_t place, bool ends_matter, Words& words) {
  const std::uint32_t index = set.connections[place];
  Flow& flow = flows_[index];
  if (words.reads()) flow.turn = kNone;  // NICs tell
  words.count_from(set.bases[place]);
  bool idle = flow.finished && flow.next == flow.acknowledged && flow.expected == flow.acknowledged &&
              flow.highest == flow.acknowledged && flow.size == flow.acknowledged;
  for (bool* flag : {&idle, &flow.started, &flow.finished}) words.bits(*flag, 1);
  words.end_bits();
  words.sequence(flow.acknowledged);
  // What was due is due, no matter for how long.
  if (!words.reads()) {
    std::int64_t next_send_ns = std::max(flow.next_send_ns, core_.events.now() - 1);
    words.time(next_send_ns);
  } else {
    words.time(flow.next_send_ns);
  }
  if (idle) {
    if (words.reads()) flow.next = flow.expected = flow.highest = flow.size = flow.acknowledged;
    return;
  }
  for (std::uint64_t* sequence : {&flow.next, &flow.expected, &flow.highest}) words.sequence(*sequence);
  if (ends_matter) words.sequence(flow.size);
  words.value(flow.rate);
  words.value(flow.last_size);
  hosts_.transport().code(index, words);
}

void PatternStates::code_port(const SetMembers& set, std::uint32_t index, Words& words) {
  Port& port = links_[index];
  std::array<Shares, kPriorities>& here = switches_.shares(index);
  std::array<Shares, kPriorities>& there = switches_.shares(index ^ 1);  // what came in over its link
  const bool into_switch = links_[index ^ 1].at_switch;
  std::array<bool, kPriorities> leaves = {}, arrived = {};
  for (std::size_t queue = 0; queue < kPriorities; ++queue) {
    leaves[queue] = port.at_switch && (here[queue].leaving != 0 || here[queue].queue.head != kNone);
    arrived[queue] = into_switch && there[queue].arrived != 0;
    words.bits(leaves[queue], 1);
    words.bits(arrived[queue], 1);
  }
  words.bits(port.busy, 1);
  words.bits(port.waiting, 8);
  words.bits(port.last_served, 8);
  words.bits(port.carry_ps, 16);
  words.end_bits();
  for (std::size_t queue = 0; queue < kPriorities; ++queue) {
    if (arrived[queue]) {
      words.value(there[queue].arrived);
    } else if (into_switch) {
      there[queue].arrived = 0;
    }
  }
  if (port.at_switch) {
    words.value(port.queued);
    for (std::size_t queue = 0; queue < kPriorities; ++queue) {
      if (!leaves[queue]) {
        here[queue].leaving = 0;
        continue;
      }
      words.value(here[queue].leaving);
      code_queue(set, here[queue].queue, words);
    }
  } else {
    code_queue(set, port.acknowledgements, words);
    Nic& nic = hosts_.nic(index);
    bool wakes = nic.wake_ns >= 0;
    words.bits(nic.last, 32);
    words.bits(wakes, 1);
    words.end_bits();
    if (wakes) {
      words.time(nic.wake_ns);
    } else {
      nic.wake_ns = -1;
    }
    std::size_t turns = nic.turns.size();
    words.value(turns);
    nic.turns.resize(turns);
    for (std::uint32_t i = 0; i < turns; ++i) {
      Turn& turn = nic.turns[i];
      code_label(set.connections, flow_label_, turn.flow, words);
      words.end_bits();
      if (!words.reads()) continue;
      Flow& flow = flows_[turn.flow];
      flow.turn = i;
      turn.priority = flow.priority;
    }
  }
}

void PatternStates::code_queue(const SetMembers& set, Queue& queue, Words& words) {
  std::size_t count = 0;
  if (!words.reads()) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = core_.packets[packet].next) ++count;
  }
  words.value(count);
  if (!words.reads()) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = core_.packets[packet].next)
      code_packet(set, packet, words);
    return;
  }
  queue = {};
  for (; count > 0; --count) {
    std::uint32_t packet = kNone;
    code_packet(set, packet, words);
    core_.packets.append(queue, packet);
  }
}

void PatternStates::code_packet(const SetMembers& set, std::uint32_t& number, Words& words) {
  if (words.reads()) number = core_.packets.make();
  Packet& packet = core_.packets[number];
  code_label(set.connections, flow_label_, packet.flow, words);
  words.end_bits();
  words.count_from(set.bases[flow_label_[packet.flow]]);
  words.sequence(packet.sequence);
  words.time(packet.sent_ns);
  std::uint32_t links = words.reads() ? 0 : ways_.store().links(packet.step);
  words.bits(packet.size, 24);
  words.bits(packet.payload, 16);
  words.bits(links, 16);
  words.bits(packet.kind, 4);
  words.bits(packet.priority, 4);
  words.end_bits();
  for (bool* flag : {&packet.marked, &packet.echo, &packet.asks}) words.bits(*flag, 1);
  std::uint32_t sender = packet.port ^ 1;
  code_label(set.ports, port_label_, sender, words);
  words.end_bits();
  packet.port = sender ^ 1;
  if (!words.reads()) return;
  const Flow& flow = flows_[packet.flow];
  packet.step = packet.kind == PacketKind::data ? flow.way_there : flow.way_back;
  while (ways_.store().links(packet.step) != links) packet.step = ways_.store()[packet.step].rest;
}

void PatternStates::code_events(const SetMembers& set, std::vector<HeldEvent>& events, Words& words) {
  std::size_t count = events.size();
  words.value(count);
  events.resize(count);
  for (HeldEvent& held : events) {
    words.time(held.time);
    std::uint32_t& subject = held.event.subject;
    words.bits(held.event.kind, 8);
    switch (held.event.kind) {
      case kArrived:
        words.end_bits();
        code_packet(set, subject, words);
        continue;
      case kSent:
      case kWake:
        code_label(set.ports, port_label_, subject, words);
        break;
      default:
        code_label(set.connections, flow_label_, subject, words);
    }
    words.end_bits();
    if (!words.reads() || held.event.kind == kSent) continue;
    held.event.stamp = held.event.kind == kWake ? hosts_.nic(subject).wake_stamp
                                                : hosts_.transport().stamp_of(held.event.kind, subject);
  }
}

}  // namespace armilla::packets
