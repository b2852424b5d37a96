#include "network/packet/forward/patterns.h"

#include <algorithm>

#include "network/packet/transport/transport.h"

namespace armilla::packets {
namespace {

constexpr std::size_t kLargestSet = 1 << 14;                // connections
constexpr std::int64_t kMostWords = std::int64_t{1} << 26;  // kept of all patterns
constexpr std::uint32_t kPatience = 8;  // costly states not met before, after which some are not looked at
constexpr std::uint32_t kMostSkips = 1024;
constexpr std::size_t kWordsPerFrame = 8;  // that are written in the time that one is played in

}  // namespace

FastForward::Patterns::Patterns(FastForward& forward)
    : forward_(forward),
      core_(forward.core_),
      links_(forward.links_),
      flows_(forward.flows_),
      mail_(forward.mail_),
      switches_(forward.switches_),
      hosts_(forward.hosts_),
      connections_(forward.connections_),
      states_(forward.parts_) {}

// ---- Sets

void FastForward::Patterns::join(std::uint32_t into, std::uint32_t from) {
  sets_[into].fit = sets_[into].fit && sets_[from].fit;
  sets_[from] = {};
  sets_[from].mode = Set::Mode::gone;
}

void FastForward::Patterns::connected(std::uint32_t flow) {
  const std::uint32_t number = connections_.sets().of_connection(flow);
  if (sets_.size() <= number) sets_.resize(number + std::size_t{1});
  Set& set = sets_[number];
  set.number = number;
  set.sorted = false;
  set.fit = set.fit && flows_[flow].ways == 1 && flows_of(set).size() <= kLargestSet;
}

bool FastForward::Patterns::is_stale(const WheelEvent& event) const {
  // Events that mean nothing any more: states that differ by them alone are the same.
  if (event.kind == kWake) return event.stamp != hosts_.nic(event.subject).wake_stamp;
  if (event.kind < kTimer) return false;
  return flows_[event.subject].finished ||
         event.stamp != hosts_.transport().stamp_of(event.kind, event.subject);
}

void FastForward::Patterns::sort(Set& set) {
  if (std::exchange(set.sorted, true)) return;
  set.structure = states_.sort(connections_.sets()[set.number]);
}

// Data and acknowledgements in order, nothing else; buffers far from making a switch pause anyone.
bool FastForward::Patterns::can_stand(const Set& set) const {
  const auto flow_can = [&](std::uint32_t index) {
    const Flow& flow = flows_[index];
    return !flow.timer && !flow.ask && flow.next == flow.highest &&
           (index >= forward_.holds_flow_.size() || forward_.holds_flow_[index] == kNone);
  };
  const auto port_can = [&](std::uint32_t index) {
    const Port& port = links_[index];
    const std::uint32_t entry = index ^ 1;
    const Port& peer = links_[entry];
    if (!port.up || port.paused != 0 || (port.waiting & 1) != 0 || peer.loss_stream != kNone) return false;
    if (!peer.at_switch) return true;
    return is_calm(peer.node);
  };
  return std::ranges::all_of(flows_of(set), flow_can) && std::ranges::all_of(ports_of(set), port_can);
}

// Whether no port of the switch, of other sets neither, may soon pause its peer: what stands still has the
// share of the buffer that it had.
bool FastForward::Patterns::is_calm(std::uint32_t node) const {
  if (switches_[node].shared_used < switches_[node].calm) return true;
  return std::ranges::none_of(links_.of_node(node), [&](std::uint32_t port) {
    return std::ranges::any_of(switches_.shares(port),
                               [&](const Shares& in) { return switches_.is_crowded(links_[port], in); });
  });
}

// A pause, and the resume after it, may be under way when nobody pauses any more.
bool FastForward::Patterns::pauses(const std::vector<HeldEvent>& events) const {
  return std::ranges::any_of(events, [&](const HeldEvent& held) {
    return held.event.kind == kArrived && core_.packets[held.event.subject].kind >= PacketKind::pause;
  });
}

// ---- What comes from outside

void FastForward::Patterns::touch(std::uint32_t flow) {
  const std::uint32_t number = connections_.sets().of_connection(flow);
  Set& set = sets_[number];
  // Whatever else happens now has happened.
  if (set.mode == Set::Mode::follows) wake(number, core_.events.now());
  if (set.mode == Set::Mode::leads) close(set);
  give_up_trial(set);
  if (!set.fit || set.touched) return;
  set.touched = true;
  touched_.push_back(number);
  if (std::exchange(settles_, true)) return;
  core_.events.schedule(core_.events.now() + 1, kRepeat, kNone);
}

void FastForward::Patterns::arrived(std::uint32_t flow) {
  Set& set = sets_[connections_.sets().of_connection(flow)];
  give_up_trial(set);
  if (set.mode != Set::Mode::leads) return;
  const std::uint32_t label = states_.label_of(flow);
  set.pattern->arrivals.push_back({core_.events.now() - set.begin_ns, label});
  for (const std::uint32_t follower : set.pattern->followers) tell(sets_[follower], label);
}

void FastForward::Patterns::disturb(std::uint32_t port) {
  const std::uint32_t number = connections_.sets().of_port(port);
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

void FastForward::Patterns::wake_port(std::uint32_t port) {
  const std::uint32_t number = connections_.sets().of_port(port);
  if (number != kNone && sets_[number].mode == Set::Mode::follows) wake(number, core_.events.now() - 1);
}

void FastForward::Patterns::go_on(std::uint32_t number, std::uint32_t stamp) {
  if (number == kNone) {
    settle();
    return;
  }
  Set& set = sets_[number];
  if (set.mode != Set::Mode::follows || set.stamp != stamp) return;
  const Pattern& pattern = *set.pattern;
  const std::int64_t since = core_.events.now() - set.begin_ns;
  if (!pattern.useless) {
    while (set.told < pattern.arrivals.size() && pattern.arrivals[set.told].ns <= since)
      tell(set, pattern.arrivals[set.told].flow);
  }
  if (pattern.useless || since >= pattern.ns) {
    wake(number, core_.events.now() - 1);
  } else {
    schedule_next(number);
  }
}

void FastForward::Patterns::schedule_next(std::uint32_t number) {
  const Set& set = sets_[number];
  const Pattern& pattern = *set.pattern;
  const std::int64_t ns = set.told < pattern.arrivals.size() ? pattern.arrivals[set.told].ns : pattern.ns;
  core_.events.schedule(set.begin_ns + ns, kRepeat, number, set.stamp);
}

void FastForward::Patterns::tell(Set& set, std::uint32_t label) {
  mail_.tell_next(flows_of(set)[label]);
  ++set.told;
}

// ---- Stretches in periods

void FastForward::Patterns::give_up_trial(Set& set) {
  set.trial.period_ns = 0;
  set.trial.state.clear();
}

void FastForward::Patterns::expect_again(std::uint32_t flow, std::int64_t period_ns) {
  const std::uint32_t number = connections_.sets().of_connection(flow);
  Set& set = sets_[number];
  Trial& trial = set.trial;
  if (!set.fit || set.mode == Set::Mode::follows || trial.period_ns != 0) return;
  if (trial.rests > 0) {
    --trial.rests;
    return;
  }
  trial.period_ns = period_ns;
  // Both looks are put down a period before: what else their nanosecond has comes in the same order.
  core_.events.schedule(core_.events.now() + period_ns, kCompare, number, ++trial.stamp);
}

void FastForward::Patterns::compare(std::uint32_t number, std::uint32_t stamp) {
  Set& set = sets_[number];
  Trial& trial = set.trial;
  if (trial.period_ns == 0 || trial.stamp != stamp) return;
  const std::int64_t now = core_.events.now(), period_ns = trial.period_ns;
  if (!can_stand(set)) return give_up_trial(set);
  sort(set);
  std::vector<HeldEvent> held;
  core_.events.for_each([&](const HeldEvent& one) {
    if (connections_.set_of(one.event) == number && !is_stale(one.event)) held.push_back(one);
  });
  if (pauses(held)) return give_up_trial(set);
  // Sequences count from what is acknowledged, so that the same traffic further on is the same state.
  std::vector<std::uint64_t> bases;
  for (const std::uint32_t flow : flows_of(set)) bases.push_back(flows_[flow].acknowledged);
  State state;
  Words words(state, false, now);
  states_.code({flows_of(set), ports_of(set), bases}, held, false, words);
  if (trial.state.empty()) {
    trial.state = std::move(state);
    trial.bases = std::move(bases);
    core_.events.schedule(now + period_ns, kCompare, number, stamp);
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

void FastForward::Patterns::missed(Set& set) const {
  if (set.costly && ++set.misses > kPatience)
    set.skips = std::min(kMostSkips, 1U << std::min(set.misses - kPatience, 20U));
}

// All that was touched a moment ago: is it in a state that is known?
void FastForward::Patterns::settle() {
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
    sort(set);
    set.held.clear();
    set.candidate = true;
    candidates.push_back(number);
  }
  if (candidates.empty()) return;
  const auto is_candidates = [&](const WheelEvent& event) {
    const std::uint32_t number = connections_.set_of(event);
    return number != kNone && sets_[number].candidate;
  };
  core_.events.for_each([&](const HeldEvent& held) {
    if (is_candidates(held.event) && !is_stale(held.event))
      sets_[connections_.set_of(held.event)].held.push_back(held);
  });
  bool any = false;
  for (const std::uint32_t number : candidates) {
    Set& set = sets_[number];
    set.candidate = look_up(number);
    any = any || set.candidate;
    if (!set.candidate) set.held.clear();
  }
  if (!any) return;
  core_.events.take_out(is_candidates, [](const HeldEvent&) {});
  for (const std::uint32_t number : candidates) sets_[number].candidate = false;
}

// Whether it follows a pattern that is known from its state on; if there is none it leads one.
bool FastForward::Patterns::look_up(std::uint32_t number) {
  Set& set = sets_[number];
  if (set.held.empty() || pauses(set.held)) return false;
  set.begin_ns = core_.events.now();
  set.bases.clear();
  for (const std::uint32_t flow : flows_of(set)) set.bases.push_back(flows_[flow].acknowledged);
  State state = {set.structure};
  states_.code_messages(members_of(set), state);
  Words words(state, false, set.begin_ns);
  states_.code(members_of(set), set.held, true, words);
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

void FastForward::Patterns::lead(std::uint32_t number, Pattern& pattern) {
  Set& set = sets_[number];
  set.mode = Set::Mode::leads;
  set.pattern = &pattern;
  pattern.leader = number;
  for (const std::uint32_t index : ports_of(set)) {
    const Port& port = links_[index];
    pattern.sent.push_back({port.carried_bytes, port.busy_ps, port.frames});
  }
}

void FastForward::Patterns::follow(std::uint32_t number, Pattern& pattern) {
  Set& set = sets_[number];
  set.mode = Set::Mode::follows;
  set.pattern = &pattern;
  set.told = 0;
  ++set.stamp;
  core_.events.await();
  if (pattern.growing) {
    pattern.followers.push_back(number);
  } else {
    schedule_next(number);
  }
}

// Something came from outside: up to here its pattern is known.
void FastForward::Patterns::close(Set& set) {
  for (const std::uint32_t port : ports_of(set)) {
    if (forward_.holds_[port] != kNone) forward_.resume(forward_.holds_[port], core_.events.now());
  }
  Pattern& pattern = *set.pattern;
  set.mode = Set::Mode::played;
  pattern.growing = false;
  pattern.ns = core_.events.now() - set.begin_ns;
  pattern.useless = !can_stand(set);
  if (!pattern.useless) {
    const std::uint32_t number = connections_.sets().of_connection(flows_of(set).front());
    set.held.clear();
    core_.events.for_each([&](const HeldEvent& held) {
      if (connections_.set_of(held.event) == number && !is_stale(held.event)) set.held.push_back(held);
    });
    pattern.useless = pauses(set.held);
  }
  if (!pattern.useless) {
    Words words(pattern.end, false, set.begin_ns);
    states_.code(members_of(set), set.held, true, words);
    words_ += static_cast<std::int64_t>(pattern.end.size());
    std::int64_t frames = 0;
    for (std::size_t i = 0; i < ports_of(set).size(); ++i) {
      const Port& port = links_[ports_of(set)[i]];
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

void FastForward::Patterns::release_followers(Pattern& pattern) {
  for (const std::uint32_t follower : std::exchange(pattern.followers, {}))
    core_.events.schedule(core_.events.now(), kRepeat, follower, sets_[follower].stamp);
  if (!pattern.useless) return;
  sets_[pattern.leader].pattern = nullptr;
  pattern.sent = {};
  pattern.end = {};
}

// It comes to where it would be at the end of `until`: now, or what is due now has yet to happen.
void FastForward::Patterns::wake(std::uint32_t number, std::int64_t until) {
  {
    const Pattern& pattern = *sets_[number].pattern;
    if (pattern.growing) close(sets_[pattern.leader]);
  }
  Set& set = sets_[number];
  const Pattern& pattern = *set.pattern;
  ++set.stamp;
  core_.events.came();
  set.mode = Set::Mode::played;
  // Something came just when it did in the pattern: the state then is known.
  if (!pattern.useless && core_.events.now() == set.begin_ns + pattern.ns) {
    jump(set);
  } else {
    catch_up(set.begin_ns, set.held, until);
  }
  set.pattern = nullptr;
  set.held.clear();
  for (const std::uint32_t flow : flows_of(set)) forward_.look_anew(flow);
}

// What the ports hold beyond reserves takes part in the buffers that all ports of a switch share.
void FastForward::Patterns::share_buffers(const Set& set, bool add) {
  for (const std::uint32_t port : ports_of(set)) {
    const Port& peer = links_[port ^ 1];
    if (!peer.at_switch) continue;
    std::uint32_t& used = switches_[peer.node].shared_used;
    for (const Shares& in : switches_.shares(port ^ 1)) {
      const std::uint32_t shared = in.arrived > kReserve ? in.arrived - kReserve : 0;
      used = add ? used + shared : used - shared;
    }
  }
}

void FastForward::Patterns::free_packets(Set& set) {
  const auto free_queue = [&](Queue& queue) {
    while (queue.head != kNone) flows_.free_packet(core_.packets.take(queue));
    queue = {};
  };
  for (const std::uint32_t port : ports_of(set)) {
    free_queue(links_[port].acknowledgements);
    for (Shares& out : switches_.shares(port)) free_queue(out.queue);
  }
  for (const HeldEvent& held : set.held) {
    if (held.event.kind == kArrived) flows_.free_packet(held.event.subject);
  }
}

// To the state at the end of its pattern.
void FastForward::Patterns::jump(Set& set) {
  Pattern& pattern = *set.pattern;
  share_buffers(set, false);
  free_packets(set);
  std::vector<HeldEvent> events;
  Words words(pattern.end, true, set.begin_ns);
  states_.code(members_of(set), events, true, words);
  share_buffers(set, true);
  for (const std::uint32_t flow : flows_of(set)) {
    if (flows_[flow].turn != kNone) hosts_.refresh(flow);
  }
  for (std::size_t i = 0; i < ports_of(set).size(); ++i) {
    Port& port = links_[ports_of(set)[i]];
    port.carried_bytes += pattern.sent[i].bytes;
    port.busy_ps += pattern.sent[i].busy_ps;
    port.frames += pattern.sent[i].frames;
    forward_.done_.frames += pattern.sent[i].frames;
  }
  ++forward_.done_.patterns;
  for (const HeldEvent& held : events) core_.events.schedule(held);
}

void FastForward::Patterns::catch_up(std::int64_t begin_ns, const std::vector<HeldEvent>& held_back,
                                     std::int64_t until) {
  Events& events = core_.events;
  events.change_to(past_, begin_ns);
  for (const HeldEvent& held : held_back) events.schedule(held);
  WheelEvent event;
  while (until >= begin_ns && events.next(until, event)) forward_.player_.handle(event);
  std::vector<HeldEvent> rest;
  events.take_out([](const WheelEvent&) { return true; },
                  [&](const HeldEvent& left) { rest.push_back(left); });
  events.change_back(past_);
  for (const HeldEvent& held : rest) events.schedule(held);
}

}  // namespace armilla::packets
