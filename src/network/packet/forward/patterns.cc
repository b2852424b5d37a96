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

PacketSimulation::FastForward::Patterns::Patterns(PacketSimulation& simulation, FastForward& forward)
    : sim_(simulation), forward_(forward), port_label_(simulation.ports_.size(), kNone) {}

// ---- Sets

void PacketSimulation::FastForward::Patterns::join(std::uint32_t into, std::uint32_t from) {
  sets_[into].fit = sets_[into].fit && sets_[from].fit;
  sets_[from] = {};
  sets_[from].mode = Set::Mode::gone;
}

void PacketSimulation::FastForward::Patterns::connected(std::uint32_t flow) {
  flow_label_.resize(sim_.flows_.size(), kNone);
  const std::uint32_t number = sim_.sets_.of_connection(flow);
  if (sets_.size() <= number) sets_.resize(number + std::size_t{1});
  Set& set = sets_[number];
  set.number = number;
  set.sorted = false;
  set.fit = set.fit && sim_.flows_[flow].ways == 1 && flows_of(set).size() <= kLargestSet;
}

bool PacketSimulation::FastForward::Patterns::is_stale(const WheelEvent& event) const {
  // Events that mean nothing any more: states that differ by them alone are the same.
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
    return is_calm(peer.node);
  };
  return std::ranges::all_of(flows_of(set), flow_can) && std::ranges::all_of(ports_of(set), port_can);
}

// Whether no port of the switch, of other sets neither, may soon pause its peer: what stands still has the
// share of the buffer that it had.
bool PacketSimulation::FastForward::Patterns::is_calm(std::uint32_t node) const {
  if (sim_.switches_[node].shared_used < sim_.switches_[node].calm) return true;
  const std::span<const std::uint32_t> ports(sim_.node_ports_.begin() + sim_.first_ports_[node],
                                             sim_.node_ports_.begin() + sim_.first_ports_[node + 1]);
  return std::ranges::none_of(ports, [&](std::uint32_t port) {
    return std::ranges::any_of(sim_.shares_[port],
                               [&](const Shares& in) { return sim_.is_crowded(sim_.ports_[port], in); });
  });
}

// A pause, and the resume after it, may be under way when nobody pauses any more.
bool PacketSimulation::FastForward::Patterns::pauses(const std::vector<Held>& events) const {
  return std::ranges::any_of(events, [&](const Held& held) {
    return held.event.kind == kArrived && sim_.packets_[held.event.subject].kind >= PacketKind::pause;
  });
}

// ---- What comes from outside

void PacketSimulation::FastForward::Patterns::touch(std::uint32_t flow) {
  const std::uint32_t number = sim_.sets_.of_connection(flow);
  Set& set = sets_[number];
  // Whatever else happens now has happened.
  if (set.mode == Set::Mode::follows) wake(number, sim_.events_.now());
  if (set.mode == Set::Mode::leads) close(set);
  give_up_trial(set);
  if (!set.fit || set.touched) return;
  set.touched = true;
  touched_.push_back(number);
  if (std::exchange(settles_, true)) return;
  sim_.schedule(sim_.events_.now() + 1, kRepeat, kNone);
}

void PacketSimulation::FastForward::Patterns::arrived(std::uint32_t flow) {
  Set& set = sets_[sim_.sets_.of_connection(flow)];
  give_up_trial(set);
  if (set.mode != Set::Mode::leads) return;
  const std::uint32_t label = flow_label_[flow];
  set.pattern->arrivals.push_back({sim_.events_.now() - set.begin_ns, label});
  for (const std::uint32_t follower : set.pattern->followers) tell(sets_[follower], label);
}

void PacketSimulation::FastForward::Patterns::disturb(std::uint32_t port) {
  const std::uint32_t number = sim_.sets_.of_port(port);
  if (number == kNone) return;
  Set& set = sets_[number];
  give_up_trial(set);
  if (set.mode != Set::Mode::leads) return;
  set.mode = Set::Mode::played;
  set.costly = true;
  set.pattern->growing = false;
  set.pattern->useless = true;
  release_followers(*set.pattern);
}

void PacketSimulation::FastForward::Patterns::wake_port(std::uint32_t port) {
  const std::uint32_t number = sim_.sets_.of_port(port);
  if (number != kNone && sets_[number].mode == Set::Mode::follows) wake(number, sim_.events_.now() - 1);
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
    wake(number, sim_.events_.now() - 1);
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
  Mail& mail = sim_.mail_[flows_of(set)[label]];
  // Messages of a connection arrive in the order in which they were posted.
  sim_.arrived_.push_back(mail.messages[mail.arrived++].number);
  ++set.told;
}

// ---- Stretches in periods

void PacketSimulation::FastForward::Patterns::give_up_trial(Set& set) {
  set.trial.period_ns = 0;
  set.trial.state.clear();
}

void PacketSimulation::FastForward::Patterns::expect_again(std::uint32_t flow, std::int64_t period_ns) {
  const std::uint32_t number = sim_.sets_.of_connection(flow);
  Set& set = sets_[number];
  Trial& trial = set.trial;
  if (!set.fit || set.mode == Set::Mode::follows || trial.period_ns != 0) return;
  if (trial.rests > 0) {
    --trial.rests;
    return;
  }
  trial.period_ns = period_ns;
  // Both looks are put down a period before: what else their nanosecond has comes in the same order.
  sim_.schedule(sim_.events_.now() + period_ns, kCompare, number, ++trial.stamp);
}

void PacketSimulation::FastForward::Patterns::compare(std::uint32_t number, std::uint32_t stamp) {
  Set& set = sets_[number];
  Trial& trial = set.trial;
  if (trial.period_ns == 0 || trial.stamp != stamp) return;
  const std::int64_t now = sim_.events_.now(), period_ns = trial.period_ns;
  if (!can_stand(set)) return give_up_trial(set);
  if (!set.sorted) sort(set);
  std::vector<Held> held;
  sim_.events_.for_each([&](std::int64_t time, const WheelEvent& event) {
    if (sim_.set_of(event) == number && !is_stale(event)) held.push_back({time, event});
  });
  if (pauses(held)) return give_up_trial(set);
  // Sequences count from what is acknowledged, so that the same traffic further on is the same state.
  std::vector<std::uint64_t> bases;
  for (const std::uint32_t flow : flows_of(set)) bases.push_back(sim_.flows_[flow].acknowledged);
  State state;
  Words words(state, false, now);
  std::swap(set.bases, bases);
  ends_matter_ = false;
  code(set, held, words);
  ends_matter_ = true;
  std::swap(set.bases, bases);
  if (trial.state.empty()) {
    trial.state = std::move(state);
    trial.bases = std::move(bases);
    sim_.schedule(now + period_ns, kCompare, number, stamp);
    return;
  }
  const bool same = state == trial.state;
  give_up_trial(set);
  if (!same) {
    trial.rests = std::min(kMostSkips, 1U << std::min(++trial.failed, 20U));
    return;
  }
  trial.failed = 0;
  for (std::size_t i = 0; i < bases.size(); ++i) bases[i] -= trial.bases[i];
  forward_.stand_in_periods(number, period_ns, bases);
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
  const auto is_candidates = [&](const WheelEvent& event) {
    const std::uint32_t number = sim_.set_of(event);
    return number != kNone && sets_[number].candidate;
  };
  sim_.events_.for_each([&](std::int64_t time, const WheelEvent& event) {
    if (is_candidates(event) && !is_stale(event)) sets_[sim_.set_of(event)].held.push_back({time, event});
  });
  bool any = false;
  for (const std::uint32_t number : candidates) {
    Set& set = sets_[number];
    set.candidate = look_up(number);
    any = any || set.candidate;
    if (!set.candidate) set.held.clear();
  }
  if (!any) return;
  sim_.events_.take_out(is_candidates, [&](std::int64_t, const WheelEvent& event) {
    if (event.kind < kGoOn) --sim_.pending_;
  });
  for (const std::uint32_t number : candidates) sets_[number].candidate = false;
}

// Whether it follows a pattern that is known from its state on; if there is none it leads one.
bool PacketSimulation::FastForward::Patterns::look_up(std::uint32_t number) {
  Set& set = sets_[number];
  if (set.held.empty() || pauses(set.held)) return false;
  set.begin_ns = sim_.events_.now();
  set.bases.clear();
  for (const std::uint32_t flow : flows_of(set)) set.bases.push_back(sim_.flows_[flow].acknowledged);
  State state = {set.structure};
  code_messages(set, state);
  Words words(state, false, set.begin_ns);
  code(set, set.held, words);
  const std::size_t size = state.size();
  // Nothing is thrown out to make room: those who follow a pattern need it. New states are not noted then.
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
  // While a pattern is played only those can follow it who came into its state at the same moment.
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
  for (const std::uint32_t index : ports_of(set)) {
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
  ++sim_.pending_;
  if (pattern.growing) {
    pattern.followers.push_back(number);
  } else {
    schedule_next(number);
  }
}

// Something came from outside: up to here its pattern is known.
void PacketSimulation::FastForward::Patterns::close(Set& set) {
  for (const std::uint32_t port : ports_of(set)) {
    if (forward_.holds_[port] != kNone) forward_.resume(forward_.holds_[port], sim_.events_.now());
  }
  Pattern& pattern = *set.pattern;
  set.mode = Set::Mode::played;
  pattern.growing = false;
  pattern.ns = sim_.events_.now() - set.begin_ns;
  pattern.useless = !can_stand(set);
  if (!pattern.useless) {
    const std::uint32_t number = sim_.sets_.of_connection(flows_of(set).front());
    set.held.clear();
    sim_.events_.for_each([&](std::int64_t time, const WheelEvent& event) {
      if (sim_.set_of(event) == number && !is_stale(event)) set.held.push_back({time, event});
    });
    pattern.useless = pauses(set.held);
  }
  if (!pattern.useless) {
    Words words(pattern.end, false, set.begin_ns);
    code(set, set.held, words);
    words_ += static_cast<std::int64_t>(pattern.end.size());
    std::int64_t frames = 0;
    for (std::size_t i = 0; i < ports_of(set).size(); ++i) {
      const Port& port = sim_.ports_[ports_of(set)[i]];
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

// It comes to where it would be at the end of `until`: now, or what is due now has yet to happen.
void PacketSimulation::FastForward::Patterns::wake(std::uint32_t number, std::int64_t until) {
  {
    const Pattern& pattern = *sets_[number].pattern;
    if (pattern.growing) close(sets_[pattern.leader]);
  }
  Set& set = sets_[number];
  const Pattern& pattern = *set.pattern;
  ++set.stamp;
  --sim_.pending_;
  set.mode = Set::Mode::played;
  // Something came just when it did in the pattern: the state then is known.
  if (!pattern.useless && sim_.events_.now() == set.begin_ns + pattern.ns) {
    jump(set);
  } else {
    catch_up(set.begin_ns, set.held, until);
  }
  set.pattern = nullptr;
  set.held.clear();
  for (const std::uint32_t flow : flows_of(set)) forward_.look_anew(flow);
}

// What the ports hold beyond reserves takes part in the buffers that all ports of a switch share.
void PacketSimulation::FastForward::Patterns::share_buffers(const Set& set, bool add) {
  for (const std::uint32_t port : ports_of(set)) {
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
  for (const std::uint32_t port : ports_of(set)) {
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
  for (const std::uint32_t flow : flows_of(set)) {
    if (sim_.flows_[flow].turn != kNone) sim_.refresh(flow);
  }
  for (std::size_t i = 0; i < ports_of(set).size(); ++i) {
    Port& port = sim_.ports_[ports_of(set)[i]];
    port.carried_bytes += pattern.sent[i].bytes;
    port.busy_ps += pattern.sent[i].busy_ps;
    port.frames += pattern.sent[i].frames;
    forward_.done_.frames += pattern.sent[i].frames;
  }
  ++forward_.done_.patterns;
  for (const Held& held : events)
    sim_.schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
}

void PacketSimulation::FastForward::Patterns::catch_up(std::int64_t begin_ns,
                                                       const std::vector<Held>& held_back,
                                                       std::int64_t until) {
  std::swap(sim_.events_, past_);
  sim_.events_.begin_at(begin_ns);
  for (const Held& held : held_back)
    sim_.schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
  WheelEvent event;
  while (until >= begin_ns && sim_.events_.next(until, event)) sim_.handle(event);
  std::vector<Held> rest;
  sim_.events_.take_out([](const WheelEvent&) { return true; },
                        [&](std::int64_t time, const WheelEvent& left) {
                          if (left.kind < kGoOn) --sim_.pending_;
                          rest.push_back({time, left});
                        });
  std::swap(sim_.events_, past_);
  for (const Held& held : rest)
    sim_.schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
}

}  // namespace armilla
