#include "network/packet/forward/fast_forward.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/splitmix.h"
#include "network/packet/forward/patterns.h"
#include "network/packet/transport/transport.h"

namespace armilla::packets {
namespace {

// Periods that a flow's rate is judged by: as soon as there are so many, by the newer half of those since the
// partition is as it is; of kMost each two become one.
constexpr std::size_t kLeastPeriods = 8, kMostPeriods = 16;
constexpr std::int64_t kLeastPackets = 16;  // of a period
// Rates that differ by no more are the same: then it stands still for so many times as long as it was looked
// at, else for less.
constexpr double kSame = 1e-3, kLongStretch = 50, kShortStretch = 4;
constexpr double kOverload = 5e-4;  // of a link, by which queues may grow
// Who has no less than its share of a full link, to this, has nothing to gain.
constexpr double kFull = 0.9, kFair = 0.97;
// Of the time of a flow: what all that was not played may be off together, as far as periods tell.
constexpr double kBudget = kForwardBound / 2;
constexpr std::int64_t kLeastEvents = 2048;  // between two looks

}  // namespace

FastForward::FastForward(Parts& parts, EventHandler& player)
    : parts_(parts),
      player_(player),
      core_(parts.core),
      links_(parts.links),
      ways_(parts.ways),
      flows_(parts.flows),
      mail_(parts.mail),
      switches_(parts.switches),
      hosts_(parts.hosts),
      connections_(parts.connections),
      payload_(static_cast<std::uint64_t>(core_.settings.payload)),
      data_size_(static_cast<std::uint32_t>(payload_) + core_.traits.header),
      control_size_(core_.traits.control),
      holds_(links_.size(), kNone),
      user_(links_.size(), kNone),
      uses_(links_.size()),
      told_(links_.size()) {}

FastForward::~FastForward() = default;

void FastForward::connects(const std::vector<std::uint32_t>& ports) {
  for (const std::uint32_t port : ports) {
    // A new connection changes what shares its ports: what stood still or was known there is so no longer.
    if (holds_[port] != kNone) resume(holds_[port], core_.events.now());
    const std::uint32_t set = connections_.sets().of_port(port);
    if (patterns_ && set != ConnectionSets::kNone) patterns_->touch(connections_.sets()[set].first);
  }
}

void FastForward::join(std::uint32_t into, std::uint32_t from) {
  if (patterns_) patterns_->join(into, from);
}

void FastForward::connected(std::uint32_t flow) {
  if (!core_.traits.repeats) return;
  if (!patterns_) patterns_ = std::make_unique<Patterns>(*this);
  patterns_->connected(flow);
}

void FastForward::arrived(std::uint32_t flow) {
  if (patterns_) patterns_->arrived(flow);
}

void FastForward::repeat(std::uint32_t set, std::uint32_t stamp) {
  patterns_->go_on(set, stamp);
}

void FastForward::compare(std::uint32_t set, std::uint32_t stamp) {
  patterns_->compare(set, stamp);
}

void FastForward::left_to_chance(std::uint32_t port) {
  if (patterns_) patterns_->disturb(port);
}

void FastForward::crowded(std::uint32_t entry) {
  left_to_chance(entry ^ 1);
  // Sets of connections at one switch become one (crowded).
  if (patterns_ || stretches_.empty()) return;
  const std::int64_t now = core_.events.now();
  const std::uint32_t node = links_[entry].node;
  // Once per switch and nanosecond, however many of its ports come near to a pause.
  if (crowded_ns_ == now && crowded_node_ == node) return;
  crowded_ns_ = now;
  crowded_node_ = node;
  core_.events.schedule(now, kCrowded, node);
}

void FastForward::make_room(std::uint32_t node) {
  for (const std::uint32_t here : links_.of_node(node)) {
    for (const std::uint32_t port : {here, here ^ 1}) {
      // To the nanosecond before: events of this one have yet to be played.
      if (holds_[port] != kNone) resume(holds_[port], core_.events.now() - 1);
    }
  }
}

void FastForward::bring_up() {
  for (std::uint32_t port = 0; port < holds_.size(); ++port) {
    if (holds_[port] != kNone) resume(holds_[port], core_.events.now() - 1);
    if (patterns_) patterns_->wake_port(port);
  }
}

// Whether it is not played.
bool FastForward::stands(std::uint32_t flow) const {
  return holds_flow_[flow] != kNone || (patterns_ && patterns_->is_still(flow));
}

// It has come further without being seen.
void FastForward::look_anew(std::uint32_t flow) {
  if (flow < watch_of_.size() && watch_of_[flow] != kNone) watches_[watch_of_[flow]].partition = 0;
}

// Of a connection only the end of the message that is on its way.
std::uint64_t FastForward::last_byte(std::uint32_t index) const {
  const Flow& flow = flows_[index];
  if (!mail_.is_used()) return flow.size;
  const Mail::Box& mail = mail_[index];
  return mail.arrived < mail.posted ? mail.messages[mail.arrived].end : flow.next;
}

bool FastForward::could_stand(std::uint32_t index) const {
  const Flow& flow = flows_[index];
  if (flow.ways != 1 || flow.timer || flow.next != flow.highest) return false;
  const std::uint64_t end = last_byte(index);
  // Less than eight periods could not be judged before the message ends.
  return end > flow.next && (end - flow.next) / payload_ >= kLeastPeriods * kLeastPackets;
}

void FastForward::begins(std::uint32_t index) {
  const Flow& flow = flows_[index];
  if (patterns_) patterns_->touch(index);
  if (watch_of_.size() < flows_.size()) {
    watch_of_.resize(flows_.size(), kNone);
    holds_flow_.resize(flows_.size(), kNone);
    moved_.resize(flows_.size());
  }
  if (core_.look_at == INT64_MAX) core_.look_at = core_.events.handled() + kLeastEvents;
  for_each_port(flow, [&](std::uint32_t port, std::uint32_t) {
    if (holds_[port] != kNone) resume(holds_[port], core_.events.now());
  });
  if (watch_of_[index] == kNone) {
    watch_of_[index] = static_cast<std::uint32_t>(watches_.size());
    watches_.emplace_back().flow = index;
  }
  Watch& watch = watches_[watch_of_[index]];
  // What its partition did before it came says nothing any more.
  watch.partition = 0;
  watch.doubtful_ns = 0;
  if (!coming_.empty() && flows_are_known())
    for_each_port(flow, [&](std::uint32_t port, std::uint32_t) { --coming_[port]; });
}

// Flows that have yet to begin. Those that they will meet are played: how flows share a link that both come
// to depends on when each packet gets there.
void FastForward::expect_others() {
  coming_.assign(links_.size(), 0);
  if (!flows_are_known()) return;
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    if (flows_[index].started) continue;
    flows_.find_ways(index);
    for_each_port(flows_[index], [&](std::uint32_t port, std::uint32_t) { ++coming_[port]; });
  }
}

// Of the sets that flows and those they share ports with were found to be in.
std::uint32_t FastForward::set_of(std::uint32_t watch) {
  while (watches_[watch].set != watch) {
    watches_[watch].set = watches_[watches_[watch].set].set;
    watch = watches_[watch].set;
  }
  return watch;
}

void FastForward::find_partitions() {
  std::erase_if(watches_, [&](const Watch& watch) {
    if (!flows_[watch.flow].finished) return false;
    watch_of_[watch.flow] = kNone;
    return true;
  });
  partitions_.assign(watches_.size(), {});
  std::ranges::fill(user_, kNone);
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    watches_[i].set = i;
    watch_of_[watches_[i].flow] = i;
    // Those that stand still have ports of their own: any other flow there would have woken them.
    if (stands(watches_[i].flow)) continue;
    for_each_port(flows_[watches_[i].flow], [&](std::uint32_t port, std::uint32_t) {
      if (user_[port] == kNone) {
        user_[port] = i;
      } else {
        watches_[set_of(i)].set = set_of(user_[port]);
      }
    });
  }
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    const std::uint32_t index = watches_[i].flow;
    if (stands(index)) continue;
    const Flow& flow = flows_[index];
    Partition& partition = partitions_[set_of(i)];
    // A sum of mixed numbers: it is the same whatever the order of flows, and changes with any flow, any life
    // of one and any pause.
    partition.identity += splitmix(splitmix(index + std::uint64_t{1}) + flow.life);
    bool plain = could_stand(index);
    for_each_port(flow, [&](std::uint32_t number, std::uint32_t) {
      const Port& port = links_[number];
      partition.identity += splitmix(static_cast<std::uint64_t>(links_.pauses(number).sum_ns) << 24 ^ number);
      plain = plain && port.paused == 0 && (coming_.empty() || coming_[number] == 0) &&
              // The far end draws losses for what comes to it; a link that loses packets never is in a steady
              // state.
              links_[number ^ 1].loss_stream == kNone;
      // What comes in over its link is far from making a switch pause it.
      if (!plain || !links_[number ^ 1].at_switch || core_.traits.discipline != SwitchDiscipline::pause)
        return;
      plain = !switches_.is_crowded(links_[number ^ 1], switches_.shares(number ^ 1)[flow.priority]);
    });
    partition.plain = partition.plain && plain;
  }
}

// What it did since the last look.
void FastForward::see(Watch& watch, std::uint64_t partition) {
  const Flow& flow = flows_[watch.flow];
  const auto begin_period = [&] {
    watch.next = flow.next;
    watch.next_ns = flow.next_send_ns;
  };
  if (watch.partition != partition) {
    watch.partition = partition;
    watch.periods.clear();
    begin_period();
    return;
  }
  const auto under_way = static_cast<std::int64_t>(flow.next - flow.acknowledged);
  Period period = {static_cast<std::int64_t>((flow.next - watch.next) / payload_),
                   flow.next_send_ns - watch.next_ns, 0, under_way, flow.rate};
  // Periods hold all that is under way, and a DCQCN flow's whole timer: within less, rates go to and fro.
  if (period.ns <= 0 ||
      period.packets < std::max(kLeastPackets, under_way / static_cast<std::int64_t>(payload_)) ||
      period.ns < hosts_.transport().longest_period_ns(watch.flow))
    return;
  begin_period();
  for_each_port(flow, [&](std::uint32_t port, std::uint32_t) { period.queued += links_[port].queued; });
  watch.periods.push_back(period);
  // Two become one when there are too many: periods grow with time, so that the newer half always is about
  // half of it.
  if (watch.periods.size() < kMostPeriods) return;
  for (std::size_t i = 0; i < kMostPeriods / 2; ++i) {
    const Period& first = watch.periods[2 * i];
    Period& both = watch.periods[i] = watch.periods[2 * i + 1];
    both.packets += first.packets;
    both.ns += first.ns;
  }
  watch.periods.resize(kMostPeriods / 2);
}

// How its flow goes on, as far as its periods tell.
FastForward::Pace FastForward::pace_of(const Watch& watch) const {
  Pace pace;
  const std::size_t count = watch.periods.size();
  if (count < kLeastPeriods) return pace;
  const auto newer = std::span(watch.periods).subspan(count / 2);
  const auto first = newer.first(newer.size() / 2), second = newer.subspan(newer.size() / 2);
  struct Sum {
    double packets = 0, ns = 0, queued = 0, under_way = 0;
  };
  const auto sum_of = [](std::span<const Period> periods) {
    Sum sum;
    for (const Period& period : periods) {
      sum.packets += static_cast<double>(period.packets);
      sum.ns += static_cast<double>(period.ns);
      sum.queued += static_cast<double>(period.queued);
      sum.under_way += static_cast<double>(period.under_way);
    }
    sum.queued /= static_cast<double>(periods.size());
    sum.under_way /= static_cast<double>(periods.size());
    return sum;
  };
  const Sum before = sum_of(first), after = sum_of(second);
  pace.seen_ns = before.ns + after.ns;
  pace.packets_per_ns = (before.packets + after.packets) / pace.seen_ns;
  // The worst period, not the mean: a flow that goes to and fro looks steady on the average.
  double spread = 0;
  for (const Period& period : newer)
    spread = std::max(spread, std::abs(static_cast<double>(period.packets) / static_cast<double>(period.ns) /
                                           pace.packets_per_ns -
                                       1));
  // Between the halves: what drifts by so much in half of the time seen goes on to do so.
  const double drift = std::abs(after.packets / after.ns - before.packets / before.ns) / pace.packets_per_ns;
  const double grown =
      std::max(std::abs(after.queued - before.queued), std::abs(after.under_way - before.under_way)) /
      static_cast<double>(payload_);
  pace.same = spread <= kSame && grown <= 2 && std::ranges::all_of(newer, [&](const Period& period) {
                return period.rate == newer.front().rate;
              });
  pace.doubt = spread / 2 + (grown <= 2 ? 0 : grown / after.packets);
  pace.drift_per_ns = drift / pace.seen_ns;
  return pace;
}

double FastForward::Pace::doubtful_ns(double ns) const {
  // A rate that is wrong by a share is off by that share of the time; one that drifts by its square.
  return ns * doubt + ns * ns * drift_per_ns;
}

// How long its flow may go on so, unseen.
std::int64_t FastForward::allowed_ns(const Watch& watch, const Pace& pace) const {
  const Flow& flow = flows_[watch.flow];
  // The last packets are always played, with all that the end of a flow brings about.
  const auto left = static_cast<double>((last_byte(watch.flow) - flow.next) / payload_ - 2);
  double ns = std::min((pace.same ? kLongStretch : kShortStretch) * pace.seen_ns, left / pace.packets_per_ns);
  const auto age = static_cast<double>(core_.events.now() - flow.start_ns);
  // Halved until the sum of doubts fits into the flow's budget: the bound of docs/models/fast_forward.md.
  while (ns > 1 && watch.doubtful_ns + pace.doubtful_ns(ns) > kBudget * (age + ns)) ns /= 2;
  return static_cast<std::int64_t>(ns);
}

// Whether the flow is where congestion control wants it to be, and for how long its partition may go on so.
void FastForward::settle(const Watch& watch, const Pace& pace, Partition& partition) const {
  const Use* full = nullptr;
  bool overloaded = false, alone = true;
  for_each_port(flows_[watch.flow], [&](std::uint32_t port, std::uint32_t size) {
    const Use& use = uses_[port];
    overloaded = overloaded || use.load > 1 + kOverload;
    alone = alone && (size != data_size_ || use.flows == 1);
    // Full, and no flow there is much faster: congestion control has given this one its share.
    if (size == data_size_ && use.load >= kFull && pace.packets_per_ns >= kFair * use.most &&
        (full == nullptr || use.flows > full->flows))
      full = &use;
  });
  // Flows that share a link go on giving way to each other for much longer than their rates show (docs).
  if (overloaded || full == nullptr || !(pace.same || alone)) {
    partition.settled = false;
    return;
  }
  // Jobs stand still in whole periods of all ports together, or not at all.
  if (mail_.is_used()) {
    constexpr std::int64_t kLongest = 10'000'000;
    std::int64_t period_ns = period_of(flows_[watch.flow]);
    if (period_ns <= kLongest) period_ns = std::lcm(partition.period_ns, period_ns);
    if (period_ns > kLongest) {
      partition.settled = false;
      return;
    }
    partition.period_ns = period_ns;
  }
  partition.most_ns =
      std::min({partition.most_ns, allowed_ns(watch, pace), core_.settings.stop_ns - core_.events.now()});
  if (static_cast<double>(partition.most_ns) < pace.seen_ns / 4) partition.settled = false;
}

std::int64_t FastForward::look() {
  find_partitions();
  std::int64_t links = 0;
  paces_.resize(watches_.size());
  std::ranges::fill(uses_, Use{});
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    if (stands(watch.flow)) continue;
    const Flow& flow = flows_[watch.flow];
    links += ways_.store().links(flow.way_there) + ways_.store().links(flow.way_back) + 2;
    Partition& partition = partitions_[set_of(i)];
    if (!partition.plain) {
      watch.partition = 0;
      continue;
    }
    see(watch, partition.identity);
    const Pace& pace = paces_[i] = pace_of(watch);
    if (pace.packets_per_ns == 0) {
      partition.settled = false;
      continue;
    }
    for_each_port(flow, [&](std::uint32_t port, std::uint32_t size) {
      Use& use = uses_[port];
      use.load += pace.packets_per_ns * 1e-3 * static_cast<double>(links_[port].transmission_ps[size]);
      use.turn_ps += links_[port].transmission_ps[size];
      partition.hops_per_ns += pace.packets_per_ns;
      if (size != data_size_) return;
      use.most = std::max(use.most, pace.packets_per_ns);
      ++use.flows;
    });
  }
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    if (stands(watches_[i].flow)) continue;
    Partition& partition = partitions_[set_of(i)];
    if (!partition.plain || !partition.settled) continue;
    settle(watches_[i], paces_[i], partition);
  }
  double saved = 0;
  for (const Partition& partition : partitions_) {
    if (partition.plain && partition.settled)
      saved += 2 * partition.hops_per_ns * static_cast<double>(partition.most_ns);
  }
  // Standing still costs a walk through all events.
  if (saved > 4 * static_cast<double>(core_.events.pending()) + kLeastEvents) {
    // What a job goes on to do may hang on a single packet: nothing but whole periods will do.
    if (mail_.is_used()) {
      for (std::uint32_t i = 0; patterns_ && i < watches_.size(); ++i) {
        const Partition& partition = partitions_[set_of(i)];
        if (!stands(watches_[i].flow) && partition.plain && partition.settled)
          patterns_->expect_again(watches_[i].flow, partition.period_ns);
      }
    } else if (coming_.empty()) {
      // Flows to come are looked for only now: it takes finding the ways of all of them.
      expect_others();
      return core_.events.handled();
    } else {
      stand_still();
    }
  }
  // The events of as many packets of every flow as a period has at the least: earlier none could be over.
  return core_.events.handled() + std::max(kLeastEvents, 2 * kLeastPackets * links);
}

// Ports send packets to the picosecond: after so long each has sent as many as make whole nanoseconds.
std::int64_t FastForward::period_of(const Flow& flow) const {
  std::int64_t packets = 1, full_ps = 0;
  for_each_port(flow, [&](std::uint32_t port, std::uint32_t size) {
    const std::int64_t ps = links_[port].transmission_ps[size];
    packets = std::lcm(packets, 1000 / std::gcd(ps, std::int64_t{1000}));
    if (uses_[port].load >= kFull) full_ps = std::max(full_ps, uses_[port].turn_ps);
  });
  return std::max<std::int64_t>(1, packets * full_ps / 1000);
}

void FastForward::stand_in_periods(std::uint32_t set, std::int64_t period_ns,
                                   const std::vector<std::uint64_t>& moved) {
  const ConnectionSets::Set& members = connections_.sets()[set];
  const std::int64_t now = core_.events.now();
  std::int64_t periods = (core_.settings.stop_ns - now) / period_ns, packets = 0;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] == 0) continue;
    const std::uint64_t next = flows_[members.connections[i]].next, end = last_byte(members.connections[i]);
    const std::uint64_t left = end > next ? (end - next) / payload_ : 0;
    // The last two packets are played: what ends has no influence before.
    periods = std::min(periods, left > 2 ? static_cast<std::int64_t>((left - 2) / (moved[i] / payload_)) : 0);
    packets += static_cast<std::int64_t>(moved[i] / payload_);
  }
  if (packets == 0 || periods == 0) return;
  const std::uint32_t number = stretches_.take();
  Stretch& stretch = stretches_[number];
  stretch.begin_ns = now;
  stretch.period_ns = period_ns;
  stretch.parts.clear();
  stretch.events.clear();
  stretch.ports = members.ports;
  for (const std::uint32_t port : stretch.ports) holds_[port] = number;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] == 0) continue;
    stretch.parts.push_back({members.connections[i], {}, static_cast<std::int64_t>(moved[i] / payload_)});
    holds_flow_[members.connections[i]] = number;
  }
  core_.events.await();
  core_.events.schedule(now + periods * period_ns, kGoOn, number, ++stretch.stamp);
  // By sets, not by ports: events that are about a connection's timers belong to it, too.
  core_.events.take_out([&](const WheelEvent& event) { return connections_.set_of(event) == set; },
                        [&](const HeldEvent& held) { stretch.events.push_back(held); });
}

void FastForward::stand_still() {
  const std::int64_t now = core_.events.now();
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    const std::uint32_t index = watches_[i].flow;
    if (stands(index)) continue;
    Partition& partition = partitions_[set_of(i)];
    if (!partition.plain || !partition.settled) continue;
    if (partition.stretch == kNone) {
      partition.stretch = stretches_.take();
      Stretch& stretch = stretches_[partition.stretch];
      stretch.begin_ns = now;
      stretch.period_ns = 0;
      stretch.parts.clear();
      stretch.ports.clear();
      stretch.events.clear();
      core_.events.await();
      core_.events.schedule(now + partition.most_ns, kGoOn, partition.stretch, ++stretch.stamp);
    }
    Stretch& stretch = stretches_[partition.stretch];
    stretch.parts.push_back({index, paces_[i]});
    holds_flow_[index] = partition.stretch;
    for_each_port(flows_[index], [&](std::uint32_t port, std::uint32_t) {
      if (holds_[port] != kNone) return;
      holds_[port] = partition.stretch;
      stretch.ports.push_back(port);
    });
  }
  const auto stretch_of = [&](const WheelEvent& event) {
    switch (event.kind) {
      case kSent:
      case kWake:
        return holds_[event.subject];
      case kArrived:
        // An arrival belongs to the port that sent the packet: the one at the near end of its link.
        return holds_[core_.packets[event.subject].port ^ 1];
      default:
        return (event.kind == kTimer || event.kind >= kIdleTimers) && event.subject < holds_flow_.size()
                   ? holds_flow_[event.subject]
                   : kNone;
    }
  };
  core_.events.take_out(
      [&](const WheelEvent& event) { return stretch_of(event) != kNone; },
      [&](const HeldEvent& held) { stretches_[stretch_of(held.event)].events.push_back(held); });
}

void FastForward::go_on(std::uint32_t stretch, std::uint32_t stamp) {
  if (stretches_[stretch].stamp == stamp) {
    resume(stretch, core_.events.now() - 1);
  } else {
    core_.events.forget();
  }
}

void FastForward::resume(std::uint32_t number, std::int64_t until) {
  Stretch& stretch = stretches_[number];
  ++stretch.stamp;
  core_.events.came();
  const std::int64_t now = core_.events.now(), since = now - stretch.begin_ns,
                     periods = stretch.period_ns > 0 ? since / stretch.period_ns : 0,
                     ns = stretch.period_ns > 0 ? periods * stretch.period_ns : since;
  // Switches tell HPCC bytes in units of 128 times the telemetry's: what they told before, and after.
  const std::int64_t unit = 128 * core_.settings.telemetry_unit;
  for (const std::uint32_t port : stretch.ports) {
    holds_[port] = kNone;
    told_[port] = static_cast<std::uint32_t>(links_[port].carried_bytes / unit);
    if (!links_[port].at_switch) {
      Nic& nic = hosts_.nic(port);
      // Its event is among those that were taken out, and is moved with them.
      if (nic.wake_ns >= 0) nic.wake_ns += ns;
    }
  }
  PacketOutcome& outcome = core_.outcome;
  for (const Stretch::Part& part : stretch.parts) {
    Flow& flow = flows_[part.flow];
    holds_flow_[part.flow] = kNone;
    // One packet less than is left, so that rounding up cannot end the flow unseen.
    const auto most = static_cast<std::int64_t>((last_byte(part.flow) - flow.next) / payload_) - 1;
    const std::int64_t packets =
        stretch.period_ns > 0
            ? part.packets * periods
            : std::clamp<std::int64_t>(std::llround(part.pace.packets_per_ns * static_cast<double>(ns)), 0,
                                       most);
    moved_[part.flow] = static_cast<std::uint64_t>(packets) * payload_;
    for_each_port(flow, [&](std::uint32_t index, std::uint32_t size) {
      Port& port = links_[index];
      port.carried_bytes += packets * size;
      port.busy_ps += packets * port.transmission_ps[size];
      if (links_.is_sampled()) {
        // After the packet that was being sent when it began, for which the link has been noted as busy.
        const auto sending = std::ranges::find_if(stretch.events, [&](const HeldEvent& held) {
          return held.event.kind == kSent && held.event.subject == index;
        });
        const std::int64_t rest = sending == stretch.events.end() ? 0 : sending->time - stretch.begin_ns;
        links_.note_carried(index, stretch.begin_ns + rest, now + rest, packets * size);
      }
      port.frames += packets;
      done_.frames += packets;
    });
    outcome.data_packets += packets;
    // Packets that are left out are sent and delivered alike: conservation holds over a stretch as it does
    // without.
    for (std::int64_t* bytes : {&outcome.data.sent, &outcome.data.delivered}) *bytes += packets * data_size_;
    for (std::int64_t* bytes : {&outcome.acknowledgements.sent, &outcome.acknowledgements.delivered})
      *bytes += packets * control_size_;
    Watch& watch = watches_[watch_of_[part.flow]];
    watch.doubtful_ns += part.pace.doubtful_ns(static_cast<double>(ns));
    watch.periods.clear();
  }
  for (const std::uint32_t port : stretch.ports)
    told_[port] = static_cast<std::uint32_t>(links_[port].carried_bytes / unit) - told_[port];
  shift_packets(stretch, ns);
  for (const Stretch::Part& part : stretch.parts) {
    Flow& flow = flows_[part.flow];
    const std::uint64_t bytes = std::exchange(moved_[part.flow], 0);
    for (std::uint64_t* place : {&flow.next, &flow.acknowledged, &flow.expected, &flow.highest})
      *place += bytes;
    flow.next_send_ns += ns;
    hosts_.transport().shift(part.flow, {bytes, ns, told_});
    hosts_.refresh(part.flow);
    Watch& watch = watches_[watch_of_[part.flow]];
    watch.next = flow.next;
    watch.next_ns = flow.next_send_ns;
  }
  ++done_.stretches;
  for (HeldEvent& held : stretch.events) held.time += ns;
  if (stretch.period_ns > 0) {
    patterns_->catch_up(stretch.begin_ns + ns, stretch.events, until);
  } else {
    for (const HeldEvent& held : stretch.events) core_.events.schedule(held);
  }
  stretches_.release(number);
}

// Those in queues, and those on links, which are events.
void FastForward::shift_packets(const Stretch& stretch, std::int64_t ns) {
  const auto shift = [&](std::uint32_t number) {
    Packet& packet = core_.packets[number];
    if (packet.kind >= PacketKind::pause) return;
    packet.sequence += moved_[packet.flow];
    packet.repeat += moved_[packet.flow];
    packet.sent_ns += ns;
    if (core_.traits.telemetry) Shift{moved_[packet.flow], ns, told_}.move(core_.packets.telemetry(number));
  };
  const auto shift_queue = [&](const Queue& queue) {
    for (std::uint32_t packet = queue.head; packet != kNone; packet = core_.packets[packet].next)
      shift(packet);
  };
  for (const HeldEvent& held : stretch.events) {
    if (held.event.kind == kArrived) shift(held.event.subject);
  }
  for (const std::uint32_t port : stretch.ports) {
    shift_queue(links_[port].acknowledgements);
    for (const Shares& share : switches_.shares(port)) shift_queue(share.queue);
  }
}

}  // namespace armilla::packets
