#include "sim/plan/chunk_count.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "network/topology.h"

namespace armilla {
namespace {

double seconds_of(Bytes bytes, const Dimension& dimension) {
  return static_cast<double>(bytes.value) / dimension.bandwidth.value;
}

// A member's links that a message keeps busy: up and down a ring, or to and from a switch.
struct Directions {
  double first = 0, second = 0;
  double most() const { return std::max(first, second); }
};

// What the messages of one step keep a member's links busy for. Where all do the same, links carry what
// passes through as well.
Directions step_load(const RankSchedule& role, const Step& step, const Schedule& schedule,
                     const Dimension& dimension) {
  Directions load;
  double most = 0;
  for (const Transfer& transfer : role.sends_of(step)) {
    const double time = seconds_of(transfer.bytes, dimension);
    most = std::max(most, time);
    if (passes_others(dimension)) {
      const std::int32_t peer = schedule.peer(0, transfer);
      // By shifts of more than half of the ring the other way round is shorter.
      const bool backwards = schedule.addressing == Addressing::shift && 2 * peer > schedule.ranks;
      (backwards ? load.second : load.first) += time * static_cast<double>(hops(dimension, 0, peer));
    } else {
      if (step.leg != Leg::from_switch) load.first += time;
      if (step.leg != Leg::to_switch) load.second += time;
    }
  }
  // Every pair has a link of its own: the busiest one counts, not their sum.
  return links_every_pair(dimension) ? Directions{most, most} : load;
}

std::int32_t hops_of(const Step& step, const Dimension& dimension, std::int32_t here, std::int32_t there) {
  return step.leg == Leg::whole ? hops(dimension, here, there) : 1;
}

double step_latency(const RankSchedule& role, const Step& step, const Schedule& schedule,
                    const Dimension& dimension) {
  std::int32_t farthest = 0;
  for (const Transfer& transfer : role.sends_of(step))
    farthest = std::max(farthest, hops_of(step, dimension, 0, schedule.peer(0, transfer)));
  const std::int64_t sends = step.end_send - step.first_send;
  // A window lets so many messages be under way: the others wait for a latency each time.
  const std::int64_t rounds = step.window > 0 ? (sends + step.window - 1) / step.window : 1;
  return in_seconds(dimension.latency) * static_cast<double>(farthest * rounds);
}

void set_busy(PhaseLoad& load, const Directions& busy) {
  load.busy = busy.most();
  load.free_out = load.busy - busy.first;
  load.free_in = load.busy - busy.second;
}

PhaseLoad symmetric_load(const Schedule& schedule, const Dimension& dimension) {
  PhaseLoad load;
  const RankSchedule& role = schedule.roles.front();
  Directions busy;
  for (const Step& step : role.steps) {
    load.latency += step_latency(role, step, schedule, dimension);
    const Directions own = step_load(role, step, schedule, dimension);
    load.chain += own.most();
    busy.first += own.first;
    busy.second += own.second;
  }
  set_busy(load, busy);
  return load;
}

// When the last member is done: steps are entered when those before them are complete, and a member's
// messages leave one after the other, where bytes count.
class Chain {
 public:
  Chain(const Schedule& schedule, const Dimension& dimension, bool with_bytes)
      : schedule_(schedule), dimension_(dimension), with_bytes_(with_bytes), first_(members() + 1) {
    for (std::size_t m = 0; m < members(); ++m) first_[m + 1] = first_[m] + role(m).steps.size();
    waiting_.resize(first_.back());
    ready_.resize(first_.back());
    left_.resize(members());
    for (std::size_t m = 0; m < members(); ++m) {
      const std::vector<Step>& steps = role(m).steps;
      for (std::size_t s = 0; s < steps.size(); ++s) waiting_[first_[m] + s] = steps[s].receives;
    }
  }

  // When the last of those is done that begin by sending; after last().
  double last_to_begin() const {
    double last = 0;
    for (std::size_t m = 0; m < members(); ++m) {
      const std::vector<Step>& steps = role(m).steps;
      if (steps.empty() || role(m).sends_of(steps.front()).empty()) continue;
      last = std::max({last, ready_[first_[m + 1] - 1], left_[m]});
    }
    return last;
  }

  double last() {
    std::vector<std::size_t> entered(members());  // the step each member is in
    std::vector<std::size_t> open;
    for (std::size_t m = 0; m < members(); ++m) {
      if (!role(m).steps.empty()) open.push_back(m), send(m, 0, 0.0, open, entered);
    }
    double last = 0;
    while (!open.empty()) {
      const std::size_t m = open.back();
      open.pop_back();
      while (entered[m] < role(m).steps.size() && waiting_[first_[m] + entered[m]] <= 0) {
        const double done = ready_[first_[m] + entered[m]];
        last = std::max(last, done);
        if (++entered[m] < role(m).steps.size()) send(m, entered[m], done, open, entered);
      }
    }
    return last;
  }

 private:
  std::size_t members() const { return static_cast<std::size_t>(schedule_.ranks); }
  const RankSchedule& role(std::size_t member) const {
    return schedule_.of(static_cast<std::int32_t>(member));
  }

  // Between fully connected members every message of a step has a link of its own.
  void send(std::size_t m, std::size_t step, double now, std::vector<std::size_t>& open,
            const std::vector<std::size_t>& entered) {
    const Step& sends = role(m).steps[step];
    double leaves = now, done = now;
    for (const Transfer& transfer : role(m).sends_of(sends)) {
      const auto peer = static_cast<std::size_t>(schedule_.peer(static_cast<std::int32_t>(m), transfer));
      const double sending = with_bytes_ ? seconds_of(transfer.bytes, dimension_) : 0;
      // Of the sender's link nothing is taken by what a switch sends.
      const bool shares_link = sends.leg != Leg::from_switch && !links_every_pair(dimension_);
      if (shares_link) leaves += sending;
      const double arrives =
          leaves + (shares_link ? 0 : sending) +
          in_seconds(dimension_.latency) *
              hops_of(sends, dimension_, static_cast<std::int32_t>(m), static_cast<std::int32_t>(peer));
      done = std::max(done, sends.window > 0 ? arrives : leaves);
      left_[m] = std::max(left_[m], leaves + (shares_link ? 0 : sending));
      const std::size_t at = first_[peer] + static_cast<std::size_t>(transfer.step);
      ready_[at] = std::max(ready_[at], arrives);
      if (--waiting_[at] == 0 && entered[peer] == static_cast<std::size_t>(transfer.step))
        open.push_back(peer);
    }
    double& own = ready_[first_[m] + step];
    own = std::max(own, done);
  }

  const Schedule& schedule_;
  const Dimension& dimension_;
  bool with_bytes_;
  std::vector<std::size_t> first_;     // step of every member, in the vectors below
  std::vector<std::int32_t> waiting_;  // messages that a step still waits for
  std::vector<double> ready_;          // when the latest of them arrived
  std::vector<double> left_;           // when all that a member has sent so far has left
};

PhaseLoad asymmetric_load(const Schedule& schedule, const Dimension& dimension) {
  PhaseLoad load;
  Chain empty(schedule, dimension, false), full(schedule, dimension, true);
  load.latency = empty.last();
  // What bytes add to the latencies, as those may hide each other.
  load.chain = full.last() - load.latency;
  load.latency_behind = load.latency - empty.last_to_begin();
  load.chain_behind = std::max(0.0, load.chain - (full.last_to_begin() - empty.last_to_begin()));
  std::vector<double> received(static_cast<std::size_t>(schedule.ranks));
  std::vector<double> between(links_every_pair(dimension) ? received.size() : 0);
  Directions busy;
  for (std::int32_t m = 0; m < schedule.ranks; ++m) {
    double sent = 0;
    std::ranges::fill(between, 0);
    const RankSchedule& role = schedule.of(m);
    for (const Step& step : role.steps) {
      for (const Transfer& transfer : role.sends_of(step)) {
        const double time = seconds_of(transfer.bytes, dimension);
        if (!between.empty()) {
          double& pair = between[static_cast<std::size_t>(schedule.peer(m, transfer))];
          busy.first = busy.second = std::max(busy.first, pair += time);
          continue;
        }
        if (step.leg != Leg::from_switch) sent += time;
        // What a switch sends takes none of the sender's link, what goes to one none of the receiver's.
        if (step.leg != Leg::to_switch)
          received[static_cast<std::size_t>(schedule.peer(m, transfer))] += time;
      }
    }
    busy.first = std::max(busy.first, sent);
  }
  for (const double time : received) busy.second = std::max(busy.second, time);
  set_busy(load, busy);
  return load;
}

}  // namespace

PhaseLoad phase_load(const Schedule& schedule, std::uint32_t number, const Dimension& dimension) {
  PhaseLoad load =
      schedule.is_symmetric() ? symmetric_load(schedule, dimension) : asymmetric_load(schedule, dimension);
  load.dimension = number;
  return load;
}

namespace {

// A dimension's part in the estimate: means over the chunks.
struct DimensionLoad {
  double busy = 0, chain = 0, meets = 0, latency = 0, free_out = 0, free_in = 0;
  double latency_behind = 0, chain_behind = 0;
  // What a chunk spends elsewhere, in latencies and with bytes: of the way that spends least there.
  double late = std::numeric_limits<double>::infinity(), filled = 0;
};

// What a chunk of `weight` in all adds to the estimate of dimension d.
void add_way(DimensionLoad& sum, const ChunkLoads& phases, std::uint32_t d, double weight, double delayed,
             bool waits_elsewhere) {
  double late = 0, filled = 0;
  std::size_t first = phases.size(), last = 0;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (phases[p].dimension != d) continue;
    sum.busy += weight * phases[p].busy;
    sum.free_out += weight * phases[p].free_out;
    sum.free_in += weight * phases[p].free_in;
    sum.chain += weight * phases[p].chain;
    if (phases[p].up_and_down) sum.meets += weight * phases[p].chain;
    sum.latency += weight * phases[p].latency;
    sum.latency_behind += weight * phases[p].latency_behind;
    sum.chain_behind += weight * phases[p].chain_behind;
    first = std::min(first, p);
    last = p;
  }
  for (std::size_t p = 0; p < phases.size(); ++p) {
    // A chunk between two of its phases here leaves the dimension to others, unless all are elsewhere at
    // once.
    const bool between = p > first && p < last;
    if (phases[p].dimension == d || (between && !waits_elsewhere)) continue;
    late += phases[p].latency;
    filled += delayed * phases[p].busy;
  }
  // The estimate asks for the way that comes through soonest: others fill what it leaves.
  if (late + filled >= sum.late + sum.filled) return;
  sum.late = late;
  sum.filled = filled;
}

}  // namespace

ChunkEstimate estimate_chunks(std::span<const ChunkLoads> ways, std::int64_t chunks, std::int64_t active) {
  constexpr double kOrder = 8, kDelay = 0.25;  // fitted, as the header says
  const auto n = static_cast<double>(chunks);
  const auto together = static_cast<double>(std::min(chunks, active));
  const double delayed = 1 + kDelay * (together - 1);
  std::vector<double> weights(ways.size(), 1);
  if (ways.size() > 1) {
    std::ranges::fill(weights, 0);
    for (const std::uint32_t way : share_out(ways, chunks)) weights[way] += 1 / n;
  }
  ChunkEstimate estimate;
  for (const PhaseLoad& phase : ways.front()) {
    DimensionLoad load;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      if (weights[w] > 0) add_way(load, ways[w], phase.dimension, weights[w], delayed / n, chunks <= active);
    }
    const double both_ways = std::min(load.free_out, load.free_in);
    load.busy -= both_ways;
    const double turn = load.latency - load.latency_behind;
    const double in_turns =
        std::ceil(n / together) * (turn + (load.chain - load.chain_behind + (delayed - 1) * load.meets) / n);
    const double more = std::max(load.busy, in_turns), less = std::min(load.busy, in_turns);
    double own = more > 0 ? more * std::pow(1 + std::pow(less / more, kOrder), 1 / kOrder) : 0;
    // What comes back waits behind what the others in flight send.
    own += load.latency_behind + (load.chain - load.busy) / n + both_ways * together / n;
    if (own + load.late + load.filled <= estimate.total) continue;
    estimate.total = own + load.late + load.filled;
    const double late = load.late + load.latency_behind + n / together * turn;
    const double filled = load.filled + (load.chain - load.busy) / n;
    estimate.latency = late;
    estimate.delay = late > filled ? CollectiveLimit::latency : CollectiveLimit::pipelining;
  }
  return estimate;
}

std::vector<std::uint32_t> share_out(std::span<const ChunkLoads> ways, std::int64_t chunks) {
  if (ways.size() == 1) return std::vector<std::uint32_t>(static_cast<std::size_t>(chunks));
  std::uint32_t dimensions = 0;
  for (const PhaseLoad& phase : ways.front()) dimensions = std::max(dimensions, phase.dimension + 1);
  std::vector<std::vector<double>> adds;
  for (const ChunkLoads& phases : ways) {
    std::vector<double>& by_dimension = adds.emplace_back(dimensions);
    for (const PhaseLoad& phase : phases) by_dimension[phase.dimension] += phase.busy;
  }
  std::vector<double> sums(dimensions);
  std::vector<std::uint32_t> taken;
  // Greedy: each chunk takes the way by which the busiest dimension ends soonest. Ties go to the first way.
  while (static_cast<std::int64_t>(taken.size()) < chunks) {
    double least = 0;
    std::uint32_t best = 0;
    for (std::uint32_t w = 0; w < adds.size(); ++w) {
      double most = 0;
      for (std::uint32_t d = 0; d < dimensions; ++d) most = std::max(most, sums[d] + adds[w][d]);
      // Sums of the same loads in other orders differ in their last digits.
      if (w > 0 && most >= least * (1 - 1e-9)) continue;
      least = most;
      best = w;
    }
    for (std::uint32_t d = 0; d < dimensions; ++d) sums[d] += adds[best][d];
    taken.push_back(best);
  }
  return taken;
}

std::int64_t choose_chunks(std::span<const ChunkLoads> ways, std::int64_t active) {
  constexpr std::int64_t kMost = 256;
  const auto number = static_cast<std::int64_t>(ways.size());
  const double as_good = number > 1 ? 1.01 : 1.02;
  std::map<std::int64_t, double> times;
  for (const std::int64_t first : {kFewestChunks, number}) {
    for (std::int64_t chunks = first; chunks <= kMost; chunks *= 2) {
      if (chunks >= kFewestChunks) times.emplace(chunks, estimate_chunks(ways, chunks, active).total);
    }
  }
  const auto least = std::ranges::min_element(times, {}, [](const auto& entry) { return entry.second; });
  return std::ranges::find_if(times,
                              [&](const auto& entry) { return entry.second <= as_good * least->second; })
      ->first;
}

// Trees over all dimensions are about as fast as the last.
std::uint32_t crossed_by(const PlannedPhase& phase, const Machine& machine) {
  return std::min(phase.dimension, static_cast<std::uint32_t>(machine.dimensions.size()) - 1);
}

ChunkLoads loads_of(const CollectivePlan& plan, const Machine& machine) {
  ChunkLoads loads;
  for (const PlannedPhase& phase : plan.phases) {
    Dimension attained;
    const std::uint32_t crossed = crossed_by(phase, machine);
    const Dimension* dimension = &machine.dimensions[crossed];
    if (phase.attained != 1) {
      attained = *dimension;
      attained.bandwidth.value *= phase.attained;
      dimension = &attained;
    }
    PhaseLoad& load = loads.emplace_back(phase_load(*phase.schedule, crossed, *dimension));
    load.up_and_down = phase.kind == CollectiveKind::all_reduce && !phase.schedule->is_symmetric();
    // Links and queues of others than the root's block.
    if (phase.members == PhaseMembers::other_blocks)
      load.dimension += static_cast<std::uint32_t>(machine.dimensions.size());
  }
  return loads;
}

}  // namespace armilla
