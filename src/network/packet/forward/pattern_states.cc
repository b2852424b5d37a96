// The states of contention patterns: in words, and taken over from them.
#include <algorithm>
#include <array>
#include <bit>

#include "network/packet/forward/patterns.h"
#include "network/packet/transport.h"

namespace armilla {

std::size_t PacketSimulation::FastForward::Patterns::Hash::operator()(const State& words) const {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) hash = (hash ^ hash >> 29 ^ word) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 32;
}

// Numbers its flows and ports in an order that does not depend on which of several alike it is, as far as
// jobs make connections in the same order everywhere.
void PacketSimulation::FastForward::Patterns::sort(Set& set) {
  set.sorted = true;
  std::ranges::sort(flows_of(set));
  for (const std::uint32_t port : ports_of(set)) port_label_[port] = kNone;
  ports_of(set).clear();
  State state;
  const auto add = [&](auto value) { state.push_back(static_cast<std::uint64_t>(value)); };
  for (std::size_t i = 0; i < flows_of(set).size(); ++i) {
    const Flow& flow = sim_.flows_[flows_of(set)[i]];
    flow_label_[flows_of(set)[i]] = static_cast<std::uint32_t>(i);
    add(sim_.ways_.links(flow.way_there));
    add(sim_.ways_.links(flow.way_back));
    forward_.for_each_port(flow, [&](std::uint32_t port, std::uint32_t) {
      if (port_label_[port] == kNone) {
        port_label_[port] = static_cast<std::uint32_t>(ports_of(set).size());
        ports_of(set).push_back(port);
      }
      add(port_label_[port]);
    });
    add(flow.priority);
    add(flow.window);
    add(flow.round_trip_ns);
    add(flow.hops);
  }
  for (const std::uint32_t index : ports_of(set)) {
    const Port& port = sim_.ports_[index];
    add(port.rate);
    add(port.delay_ns);
    add(port.at_switch);
    add(port.ecn.minimum);
    add(port.ecn.maximum);
    state.push_back(std::bit_cast<std::uint64_t>(port.ecn.probability));
    const Port& peer = sim_.ports_[index ^ 1];
    add(sim_.sets_.of_port(index ^ 1) == sim_.sets_.of_port(index) ? port_label_[index ^ 1] : kNone);
    add(peer.at_switch);
    if (peer.at_switch) add(sim_.switches_[peer.node].calm);
  }
  set.structure = structures_.try_emplace(std::move(state), structures_.size()).first->second;
}

void PacketSimulation::FastForward::Patterns::code_label(const std::vector<std::uint32_t>& of,
                                                         const std::vector<std::uint32_t>& labels,
                                                         std::uint32_t& number, Words& words) const {
  std::uint32_t label = words.reads() ? 0 : labels[number];
  words.bits(label, 32);
  if (words.reads()) number = of[label];
}

// What is yet to arrive: that is not taken over, but what arrives, and how large its last packet is,
// depends on it.
void PacketSimulation::FastForward::Patterns::code_messages(const Set& set, State& state) const {
  for (std::size_t i = 0; i < flows_of(set).size(); ++i) {
    const Mail& mail = sim_.mail_[flows_of(set)[i]];
    state.push_back(mail.posted - mail.arrived);
    for (std::size_t message = mail.arrived; message < mail.posted; ++message) {
      state.push_back(mail.messages[message].end - set.bases[i]);
      state.push_back(mail.messages[message].bytes_end - set.bases[i]);
    }
  }
}

void PacketSimulation::FastForward::Patterns::code(Set& set, std::vector<Held>& events, Words& words) {
  for (std::size_t i = 0; i < flows_of(set).size(); ++i) code_flow(set, i, words);
  for (const std::uint32_t port : ports_of(set)) code_port(set, port, words);
  code_events(set, events, words);
}

void PacketSimulation::FastForward::Patterns::code_flow(Set& set, std::size_t place, Words& words) {
  const std::uint32_t index = flows_of(set)[place];
  Flow& flow = sim_.flows_[index];
  if (words.reads()) flow.turn = kNone;  // NICs tell
  words.count_from(set.bases[place]);
  bool idle = flow.finished && flow.next == flow.acknowledged && flow.expected == flow.acknowledged &&
              flow.highest == flow.acknowledged && flow.size == flow.acknowledged;
  for (bool* flag : {&idle, &flow.started, &flow.finished}) words.bits(*flag, 1);
  words.end_bits();
  words.sequence(flow.acknowledged);
  // What was due is due, no matter for how long.
  if (!words.reads()) {
    std::int64_t next_send_ns = std::max(flow.next_send_ns, sim_.events_.now() - 1);
    words.time(next_send_ns);
  } else {
    words.time(flow.next_send_ns);
  }
  if (idle) {
    if (words.reads()) flow.next = flow.expected = flow.highest = flow.size = flow.acknowledged;
    return;
  }
  for (std::uint64_t* sequence : {&flow.next, &flow.expected, &flow.highest}) words.sequence(*sequence);
  if (ends_matter_) words.sequence(flow.size);
  words.value(flow.rate);
  words.value(flow.last_size);
  sim_.transport_->code(index, words);
}

void PacketSimulation::FastForward::Patterns::code_port(Set& set, std::uint32_t index, Words& words) {
  Port& port = sim_.ports_[index];
  std::array<Shares, kPriorities>& here = sim_.shares_[index];
  std::array<Shares, kPriorities>& there = sim_.shares_[index ^ 1];  // what came in over its link
  const bool into_switch = sim_.ports_[index ^ 1].at_switch;
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
    Nic& nic = sim_.nics_[port.nic];
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
      code_label(flows_of(set), flow_label_, turn.flow, words);
      words.end_bits();
      if (!words.reads()) continue;
      Flow& flow = sim_.flows_[turn.flow];
      flow.turn = i;
      turn.priority = flow.priority;
    }
  }
}

void PacketSimulation::FastForward::Patterns::code_queue(Set& set, Queue& queue, Words& words) {
  std::size_t count = 0;
  if (!words.reads()) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = sim_.packets_[packet].next) ++count;
  }
  words.value(count);
  if (!words.reads()) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = sim_.packets_[packet].next)
      code_packet(set, packet, words);
    return;
  }
  queue = {};
  for (; count > 0; --count) {
    std::uint32_t packet = kNone;
    code_packet(set, packet, words);
    sim_.append(queue, packet);
  }
}

void PacketSimulation::FastForward::Patterns::code_packet(Set& set, std::uint32_t& number, Words& words) {
  if (words.reads()) number = sim_.new_packet();
  Packet& packet = sim_.packets_[number];
  code_label(flows_of(set), flow_label_, packet.flow, words);
  words.end_bits();
  words.count_from(set.bases[flow_label_[packet.flow]]);
  words.sequence(packet.sequence);
  words.time(packet.sent_ns);
  std::uint32_t links = words.reads() ? 0 : sim_.ways_.links(packet.step);
  words.bits(packet.size, 24);
  words.bits(packet.payload, 16);
  words.bits(links, 16);
  words.bits(packet.kind, 4);
  words.bits(packet.priority, 4);
  words.end_bits();
  for (bool* flag : {&packet.marked, &packet.echo, &packet.asks}) words.bits(*flag, 1);
  std::uint32_t sender = packet.port ^ 1;
  code_label(ports_of(set), port_label_, sender, words);
  words.end_bits();
  packet.port = sender ^ 1;
  if (!words.reads()) return;
  const Flow& flow = sim_.flows_[packet.flow];
  packet.step = packet.kind == PacketKind::data ? flow.way_there : flow.way_back;
  while (sim_.ways_.links(packet.step) != links) packet.step = sim_.ways_[packet.step].rest;
}

void PacketSimulation::FastForward::Patterns::code_events(Set& set, std::vector<Held>& events, Words& words) {
  std::size_t count = events.size();
  words.value(count);
  events.resize(count);
  for (Held& held : events) {
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
        code_label(ports_of(set), port_label_, subject, words);
        break;
      default:
        code_label(flows_of(set), flow_label_, subject, words);
    }
    words.end_bits();
    if (!words.reads() || held.event.kind == kSent) continue;
    held.event.stamp = held.event.kind == kWake ? sim_.nics_[sim_.ports_[subject].nic].wake_stamp
                                                : sim_.transport_->stamp_of(held.event.kind, subject);
  }
}

}  // namespace armilla
