#include "network/packet/forward/patterns.h"

#include <algorithm>

#include "network/packet/transport.h"

namespace armilla {
namespace {

constexpr std::size_t kLargestSet = 1 << 14;                // connections
constexpr std::int64_t kMostWords = std::int64_t{1} << 26;  // kept of all patterns
constexpr std::uint32_t kPatience = 8;  // costly states not met before, after which some are not looked at
constexpr std::uint32_t kMostSkips = 1024;
constexpr std::size_t kWordsPerFrame = 8;  // that are written in the time that one is played in

}  // namespace

std::size_t PacketSimulation::FastForward::Patterns::Hash::operator()(const State& words) const {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) hash = (hash ^ hash >> 29 ^ word) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 32;
}

PacketSimulation::FastForward::Patterns::Patterns(PacketSimulation& simulation, FastForward& forward)
    : sim_(simulation),
      forward_(forward),
      set_of_port_(simulation.ports_.size(), kNone),
      port_label_(simulation.ports_.size(), kNone) {}

// ---- Sets

void PacketSimulation::FastForward::Patterns::connected(std::uint32_t flow) {
  set_of_flow_.resize(sim_.flows_.size(), kNone);
  flow_label_.resize(sim_.flows_.size(), kNone);
  std::uint32_t into = kNone;
  forward_.for_each_port(sim_.flows_[flow], [&](std::uint32_t port, std::uint32_t) {
    const std::uint32_t other = set_of_port_[port];
    if (other == kNone || other == into) return;
    const Set& set = sets_[other];
    touch(set.flows.front());
    if (into == kNone) {
      into = other;
      return;
    }
    const bool larger = set.flows.size() > sets_[into].flows.size();
    Set& from = sets_[larger ? into : other];
    if (larger) into = other;
    Set& to = sets_[into];
    to.fit = to.fit && from.fit;
    for (const std::uint32_t moved : from.flows) set_of_flow_[moved] = into;
    for (const std::uint32_t moved : from.ports) set_of_port_[moved] = into;
    to.flows.insert(to.flows.end(), from.flows.begin(), from.flows.end());
    to.ports.insert(to.ports.end(), from.ports.begin(), from.ports.end());
    from = {};
    from.mode = Set::Mode::gone;
  });
  if (into == kNone) {
    into = static_cast<std::uint32_t>(sets_.size());
    sets_.emplace_back();
  }
  Set& set = sets_[into];
  set.sorted = false;
  set.flows.push_back(flow);
  set_of_flow_[flow] = into;
  forward_.for_each_port(sim_.flows_[flow], [&](std::uint32_t port, std::uint32_t) {
    if (set_of_port_[port] == into) return;
    set_of_port_[port] = into;
    set.ports.push_back(port);
  });
  set.fit = set.fit && sim_.flows_[flow].ways == 1 && set.flows.size() <= kLargestSet;
}

// Numbers its flows and ports in an order that does not depend on which of several alike it is, as far as
// jobs make connections in the same order everywhere.
void PacketSimulation::FastForward::Patterns::sort(Set& set) {
  set.sorted = true;
  std::ranges::sort(set.flows);
  for (const std::uint32_t port : set.ports) port_label_[port] = kNone;
  set.ports.clear();
  State state;
  const auto add = [&](auto value) { state.push_back(static_cast<std::uint64_t>(value)); };
  for (std::size_t i = 0; i < set.flows.size(); ++i) {
    const Flow& flow = sim_.flows_[set.flows[i]];
    flow_label_[set.flows[i]] = static_cast<std::uint32_t>(i);
    add(sim_.ways_.links(flow.way_there));
    add(sim_.ways_.links(flow.way_back));
    forward_.for_each_port(flow, [&](std::uint32_t port, std::uint32_t) {
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
    const Port& port = sim_.ports_[index];
    add(port.rate);
    add(port.delay_ns);
    add(port.at_switch);
    add(port.ecn.minimum);
    add(port.ecn.maximum);
    state.push_back(std::bit_cast<std::uint64_t>(port.ecn.probability));
    const Port& peer = sim_.ports_[index ^ 1];
    add(set_of_port_[index ^ 1] == set_of_port_[index] ? port_label_[index ^ 1] : kNone);
    add(peer.at_switch);
    add(peer.threshold_shift);
    add(peer.headroom_limit);
    if (peer.at_switch) add(sim_.switches_[peer.node].buffer_left);
  }
  set.structure = structures_.try_emplace(std::move(state), structures_.size()).first->second;
}

std::uint32_t PacketSimulation::FastForward::Patterns::set_of(const WheelEvent& event) const {
  switch (event.kind) {
    case kSent:
    case kWake:
      return set_of_port_[event.subject];
    case kArrived:
      return set_of_port_[sim_.packets_[event.subject].port ^ 1];
    case kTimeout:
      return set_of_flow_[event.subject];
    default:
      return event.kind == kTimer || event.kind >= kIdleTimers ? set_of_flow_[event.subject] : kNone;
  }
}

bool PacketSimulation::FastForward::Patterns::is_stale(const WheelEvent& event) const {
  if (event.kind == kWake) return event.stamp != sim_.nics_[sim_.ports_[event.subject].nic].wake_stamp;
  if (event.kind < kTimer) return false;
  return sim_.flows_[event.subject].finished ||
         event.stamp != sim_.transport_->stamp_of(event.kind, event.subject);
}

// Data and acknowledgements in order, nothing else; buffers far from making a switch pause anyone.
bool PacketSimulation::FastForward::Patterns::can_stand(const Set& set) const {
  const auto flow_can = [&](std::uint32_t index) {
    const Flow& flow = sim_.flows_[index];
    return !flow.timer && !flow.ask && flow.next == flow.highest &&
           (index >= forward_.holds_flow_.size() || forward_.holds_flow_[index] == kNone);
  };
  const auto port_can = [&](std::uint32_t index) {
    const Port& port = sim_.ports_[index];
    const std::uint32_t entry = index ^ 1;
    const Port& peer = sim_.ports_[entry];
    if (!port.up || port.paused != 0 || (port.waiting & 1) != 0 || peer.loss_stream != kNone) return false;
    if (!peer.at_switch) return true;
    const Switch& here = sim_.switches_[peer.node];
    return 2 * here.shared_used <= here.buffer_left &&
           std::ranges::all_of(sim_.shares_[entry], [&](const Shares& in) {
             return !in.pausing && in.headroom == 0 &&
                    (in.arrived <= kReserve || 2 * (in.arrived - kReserve) < sim_.threshold(peer));
           });
  };
  return std::ranges::all_of(set.flows, flow_can) && std::ranges::all_of(set.ports, port_can);
}

// A pause, and the resume after it, may be under way when nobody pauses any more.
bool PacketSimulation::FastForward::Patterns::pauses(const Set& set) const {
  return std::ranges::any_of(set.held, [&](const Held& held) {
    return held.event.kind == kArrived && sim_.packets_[held.event.subject].kind >= PacketKind::pause;
  });
}

// ---- What comes from outside

void PacketSimulation::FastForward::Patterns::touch(std::uint32_t flow) {
  const std::uint32_t number = set_of_flow_[flow];
  Set& set = sets_[number];
  if (set.mode == Set::Mode::follows) wake(number);
  if (set.mode == Set::Mode::leads) close(set);
  if (!set.fit || set.touched) return;
  set.touched = true;
  touched_.push_back(number);
  if (std::exchange(settles_, true)) return;
  sim_.schedule(sim_.events_.now() + 1, kRepeat, kNone);
}

void PacketSimulation::FastForward::Patterns::arrived(std::uint32_t flow) {
  const Set& set = sets_[set_of_flow_[flow]];
  if (set.mode != Set::Mode::leads) return;
  const std::uint32_t label = flow_label_[flow];
  set.pattern->arrivals.push_back({sim_.events_.now() - set.begin_ns, label});
  for (const std::uint32_t follower : set.pattern->followers) tell(sets_[follower], label);
}

void PacketSimulation::FastForward::Patterns::disturb(std::uint32_t port) {
  const std::uint32_t number = set_of_port_[port];
  if (number == kNone || sets_[number].mode != Set::Mode::leads) return;
  Set& set = sets_[number];
  set.mode = Set::Mode::played;
  set.costly = true;
  set.pattern->growing = false;
  set.pattern->useless = true;
  release_followers(*set.pattern);
}

void PacketSimulation::FastForward::Patterns::wake_port(std::uint32_t port) {
  const std::uint32_t number = set_of_port_[port];
  if (number != kNone && sets_[number].mode == Set::Mode::follows) wake(number);
}

void PacketSimulation::FastForward::Patterns::go_on(std::uint32_t number, std::uint32_t stamp) {
  if (number == kNone) {
    settle();
    return;
  }
  Set& set = sets_[number];
  if (set.mode != Set::Mode::follows || set.stamp != stamp) return;
  const Pattern& pattern = *set.pattern;
  const std::int64_t since = sim_.events_.now() - set.begin_ns;
  if (!pattern.useless) {
    while (set.told < pattern.arrivals.size() && pattern.arrivals[set.told].ns <= since)
      tell(set, pattern.arrivals[set.told].flow);
  }
  if (pattern.useless || since >= pattern.ns) {
    wake(number);
  } else {
    schedule_next(number);
  }
}

void PacketSimulation::FastForward::Patterns::schedule_next(std::uint32_t number) {
  const Set& set = sets_[number];
  const Pattern& pattern = *set.pattern;
  const std::int64_t ns = set.told < pattern.arrivals.size() ? pattern.arrivals[set.told].ns : pattern.ns;
  sim_.schedule(set.begin_ns + ns, kRepeat, number, set.stamp);
}

void PacketSimulation::FastForward::Patterns::tell(Set& set, std::uint32_t label) {
  Mail& mail = sim_.mail_[set.flows[label]];
  sim_.arrived_.push_back(mail.messages[mail.arrived++].number);
  ++set.told;
}

// ---- Beginning and ending

void PacketSimulation::FastForward::Patterns::missed(Set& set) const {
  if (set.costly && ++set.misses > kPatience)
    set.skips = std::min(kMostSkips, 1U << std::min(set.misses - kPatience, 20U));
}

// All that was touched a moment ago: is it in a state that is known?
void PacketSimulation::FastForward::Patterns::settle() {
  settles_ = false;
  std::vector<std::uint32_t> candidates;
  for (const std::uint32_t number : std::exchange(touched_, {})) {
    Set& set = sets_[number];
    set.touched = false;
    if (set.mode != Set::Mode::played || !set.fit) continue;
    if (set.skips > 0) {
      --set.skips;
      continue;
    }
    if (!can_stand(set)) {
      set.costly = true;
      missed(set);
      continue;
    }
    if (!set.sorted) sort(set);
    set.held.clear();
    set.candidate = true;
    candidates.push_back(number);
  }
  if (candidates.empty()) return;
  sim_.events_.take_out(
      [&](const WheelEvent& event) {
        const std::uint32_t number = set_of(event);
        return number != kNone && sets_[number].candidate;
      },
      [&](std::int64_t time, const WheelEvent& event) {
        if (event.kind < kGoOn) --sim_.pending_;
        if (!is_stale(event)) sets_[set_of(event)].held.push_back({time, event});
      });
  for (const std::uint32_t number : candidates) {
    Set& set = sets_[number];
    set.candidate = false;
    if (look_up(number)) continue;
    for (const Held& held : set.held)
      sim_.schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
    set.held.clear();
  }
}

// Whether it follows a pattern that is known from its state on; if there is none it leads one.
bool PacketSimulation::FastForward::Patterns::look_up(std::uint32_t number) {
  Set& set = sets_[number];
  if (set.held.empty() || pauses(set)) return false;
  set.begin_ns = sim_.events_.now();
  set.bases.clear();
  for (const std::uint32_t flow : set.flows) set.bases.push_back(sim_.flows_[flow].acknowledged);
  State state = {set.structure};
  code_messages(set, state);
  Words words(state, false, set.begin_ns);
  code(set, set.held, words);
  const std::size_t size = state.size();
  if (words_ + static_cast<std::int64_t>(size) > kMostWords && !patterns_.contains(state)) return false;
  const auto [found, fresh] = patterns_.try_emplace(std::move(state));
  Pattern& pattern = found->second;
  if (fresh) {
    words_ += static_cast<std::int64_t>(size);
    pattern.words = size;
    missed(set);
    lead(number, pattern);
    return false;
  }
  if (pattern.useless || (pattern.growing && sets_[pattern.leader].begin_ns != set.begin_ns)) {
    missed(set);
    return false;
  }
  set.misses = 0;
  follow(number, pattern);
  return true;
}

void PacketSimulation::FastForward::Patterns::lead(std::uint32_t number, Pattern& pattern) {
  Set& set = sets_[number];
  set.mode = Set::Mode::leads;
  set.pattern = &pattern;
  pattern.leader = number;
  for (const std::uint32_t index : set.ports) {
    const Port& port = sim_.ports_[index];
    pattern.sent.push_back({port.carried_bytes, port.busy_ps, port.frames});
  }
}

void PacketSimulation::FastForward::Patterns::follow(std::uint32_t number, Pattern& pattern) {
  Set& set = sets_[number];
  set.mode = Set::Mode::follows;
  set.pattern = &pattern;
  set.told = 0;
  ++set.stamp;
  ++still_;
  ++sim_.pending_;
  if (pattern.growing) {
    pattern.followers.push_back(number);
  } else {
    schedule_next(number);
  }
}

// Something came from outside: up to here its pattern is known.
void PacketSimulation::FastForward::Patterns::close(Set& set) {
  for (const std::uint32_t port : set.ports) {
    if (forward_.holds_[port] != kNone) forward_.resume(forward_.holds_[port]);
  }
  Pattern& pattern = *set.pattern;
  set.mode = Set::Mode::played;
  pattern.growing = false;
  pattern.ns = sim_.events_.now() - set.begin_ns;
  pattern.useless = !can_stand(set);
  if (!pattern.useless) {
    const std::uint32_t number = set_of_flow_[set.flows.front()];
    set.held.clear();
    sim_.events_.for_each([&](std::int64_t time, const WheelEvent& event) {
      if (set_of(event) == number && !is_stale(event)) set.held.push_back({time, event});
    });
    pattern.useless = pauses(set);
  }
  if (!pattern.useless) {
    Words words(pattern.end, false, set.begin_ns);
    code(set, set.held, words);
    words_ += static_cast<std::int64_t>(pattern.end.size());
    std::int64_t frames = 0;
    for (std::size_t i = 0; i < set.ports.size(); ++i) {
      const Port& port = sim_.ports_[set.ports[i]];
      const Pattern::Sent before = pattern.sent[i];
      pattern.sent[i] = {port.carried_bytes - before.bytes, port.busy_ps - before.busy_ps,
                         port.frames - before.frames};
      frames += pattern.sent[i].frames;
    }
    const std::size_t worth = static_cast<std::size_t>(frames) * kWordsPerFrame;
    set.costly = worth < 4 * pattern.words;
    // Those who follow already take it over all the same.
    if (pattern.followers.empty() && worth < pattern.words) pattern.useless = true;
  }
  release_followers(pattern);
  set.pattern = nullptr;
}

void PacketSimulation::FastForward::Patterns::release_followers(Pattern& pattern) {
  for (const std::uint32_t follower : std::exchange(pattern.followers, {}))
    sim_.schedule(sim_.events_.now(), kRepeat, follower, sets_[follower].stamp);
  if (!pattern.useless) return;
  sets_[pattern.leader].pattern = nullptr;
  pattern.sent = {};
  pattern.end = {};
}

void PacketSimulation::FastForward::Patterns::wake(std::uint32_t number) {
  {
    const Pattern& pattern = *sets_[number].pattern;
    if (pattern.growing) close(sets_[pattern.leader]);
  }
  Set& set = sets_[number];
  const Pattern& pattern = *set.pattern;
  ++set.stamp;
  --still_;
  --sim_.pending_;
  set.mode = Set::Mode::played;
  if (!pattern.useless && sim_.events_.now() == set.begin_ns + pattern.ns) {
    jump(set);
  } else {
    catch_up(set);
  }
  set.pattern = nullptr;
  set.held.clear();
  for (const std::uint32_t flow : set.flows) forward_.look_anew(flow);
}

// What the ports hold beyond reserves takes part in the buffers that all ports of a switch share.
void PacketSimulation::FastForward::Patterns::share_buffers(const Set& set, bool add) {
  for (const std::uint32_t port : set.ports) {
    const Port& peer = sim_.ports_[port ^ 1];
    if (!peer.at_switch) continue;
    std::uint32_t& used = sim_.switches_[peer.node].shared_used;
    for (const Shares& in : sim_.shares_[port ^ 1]) {
      const std::uint32_t shared = in.arrived > kReserve ? in.arrived - kReserve : 0;
      used = add ? used + shared : used - shared;
    }
  }
}

void PacketSimulation::FastForward::Patterns::free_packets(Set& set) {
  const auto free_queue = [&](Queue& queue) {
    while (queue.head != kNone) sim_.free_packet(sim_.take(queue));
    queue = {};
  };
  for (const std::uint32_t port : set.ports) {
    free_queue(sim_.ports_[port].acknowledgements);
    for (Shares& out : sim_.shares_[port]) free_queue(out.queue);
  }
  for (const Held& held : set.held) {
    if (held.event.kind == kArrived) sim_.free_packet(held.event.subject);
  }
}

// To the state at the end of its pattern.
void PacketSimulation::FastForward::Patterns::jump(Set& set) {
  Pattern& pattern = *set.pattern;
  share_buffers(set, false);
  free_packets(set);
  std::vector<Held> events;
  Words words(pattern.end, true, set.begin_ns);
  code(set, events, words);
  share_buffers(set, true);
  for (const std::uint32_t flow : set.flows) {
    if (sim_.flows_[flow].turn != kNone) sim_.refresh(flow);
  }
  for (std::size_t i = 0; i < set.ports.size(); ++i) {
    Port& port = sim_.ports_[set.ports[i]];
    port.carried_bytes += pattern.sent[i].bytes;
    port.busy_ps += pattern.sent[i].busy_ps;
    port.frames += pattern.sent[i].frames;
    forward_.done_.frames += pattern.sent[i].frames;
  }
  ++forward_.done_.patterns;
  for (const Held& held : events)
    sim_.schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
}

// Played from where it stood, up to now: in a wheel of its own.
void PacketSimulation::FastForward::Patterns::catch_up(Set& set) {
  const std::int64_t now = sim_.events_.now();
  catching_up_ = true;
  std::swap(sim_.events_, past_);
  sim_.events_.begin_at(set.begin_ns);
  for (const Held& held : set.held)
    sim_.schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
  WheelEvent event;
  while (sim_.events_.next(now - 1, event)) sim_.handle(event);
  std::vector<Held> rest;
  sim_.events_.take_out([](const WheelEvent&) { return true; },
                        [&](std::int64_t time, const WheelEvent& left) {
                          if (left.kind < kGoOn) --sim_.pending_;
                          rest.push_back({time, left});
                        });
  std::swap(sim_.events_, past_);
  for (const Held& held : rest)
    sim_.schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
  catching_up_ = false;
}

// ---- States

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
  for (std::size_t i = 0; i < set.flows.size(); ++i) {
    const Mail& mail = sim_.mail_[set.flows[i]];
    state.push_back(mail.posted - mail.arrived);
    for (std::size_t message = mail.arrived; message < mail.posted; ++message) {
      state.push_back(mail.messages[message].end - set.bases[i]);
      state.push_back(mail.messages[message].bytes_end - set.bases[i]);
    }
  }
}

void PacketSimulation::FastForward::Patterns::code(Set& set, std::vector<Held>& events, Words& words) {
  for (std::size_t i = 0; i < set.flows.size(); ++i) code_flow(set, i, words);
  for (const std::uint32_t port : set.ports) code_port(set, port, words);
  code_events(set, events, words);
}

void PacketSimulation::FastForward::Patterns::code_flow(Set& set, std::size_t place, Words& words) {
  const std::uint32_t index = set.flows[place];
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
  for (std::uint64_t* sequence : {&flow.next, &flow.expected, &flow.highest, &flow.size})
    words.sequence(*sequence);
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
      code_label(set.flows, flow_label_, turn.flow, words);
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
  code_label(set.flows, flow_label_, packet.flow, words);
  words.end_bits();
  words.count_from(set.bases[flow_label_[packet.flow]]);
  words.sequence(packet.sequence);
  words.time(packet.sent_ns);
  std::uint32_t links = sim_.ways_.links(packet.step);
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
        code_label(set.ports, port_label_, subject, words);
        break;
      default:
        code_label(set.flows, flow_label_, subject, words);
    }
    words.end_bits();
    if (!words.reads() || held.event.kind == kSent) continue;
    held.event.stamp = held.event.kind == kWake ? sim_.nics_[sim_.ports_[subject].nic].wake_stamp
                                                : sim_.transport_->stamp_of(held.event.kind, subject);
  }
}

}  // namespace armilla
