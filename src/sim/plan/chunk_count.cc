#include "sim/chunk_count.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "network/topology.h"

namespace armilla {
namespace {

double seconds_of(Bytes bytes, const Dimension& dimension) {
  return static_cast<double>(bytes.value) / dimension.bandwidth.value;
}

// What the messages of one step keep the busiest of a member's links busy for. Where all do the same, links
// carry what passes through as well.
double step_time(const RankSchedule& role, const Step& step, const Schedule& schedule,
                 const Dimension& dimension) {
  double sum = 0, most = 0;
  for (std::uint32_t s = step.first_send; s < step.end_send; ++s) {
    const Transfer& transfer = role.sends[s];
    const std::int64_t crossed =
        passes_others(dimension) ? hops(dimension, 0, schedule.peer(0, transfer)) : 1;
    const double time = seconds_of(transfer.bytes, dimension) * static_cast<double>(crossed);
    sum += time;
    most = std::max(most, time);
  }
  if (links_every_pair(dimension)) return most;
  // Both directions of a Ring share what goes to many.
  const bool both = passes_others(dimension) && step.end_send - step.first_send > 1;
  return both ? sum / 2 : sum;
}

double step_latency(const RankSchedule& role, const Step& step, const Schedule& schedule,
                    const Dimension& dimension) {
  std::int32_t farthest = 0;
  for (std::uint32_t s = step.first_send; s < step.end_send; ++s)
    farthest = std::max(farthest, hops(dimension, 0, schedule.peer(0, role.sends[s])));
  const std::int64_t sends = step.end_send - step.first_send;
  const std::int64_t rounds = step.window > 0 ? (sends + step.window - 1) / step.window : 1;
  return in_seconds(dimension.latency) * static_cast<double>(farthest * rounds);
}

PhaseLoad symmetric_load(const Schedule& schedule, const Dimension& dimension) {
  PhaseLoad load;
  const RankSchedule& role = schedule.roles.front();
  for (const Step& step : role.steps) {
    load.latency += step_latency(role, step, schedule, dimension);
    load.chain += step_time(role, step, schedule, dimension);
  }
  load.busy = load.chain;
  return load;
}

// When the last member is done if a byte takes `byte_seconds`: steps are entered when those before them are
// complete, and a member's messages leave one after the other.
class Chain {
 public:
  Chain(const Schedule& schedule, const Dimension& dimension, bool with_bytes)
      : schedule_(schedule), dimension_(dimension), with_bytes_(with_bytes), first_(members() + 1) {
    for (std::size_t m = 0; m < members(); ++m) first_[m + 1] = first_[m] + role(m).steps.size();
    waiting_.resize(first_.back());
    ready_.resize(first_.back());
    for (std::size_t m = 0; m < members(); ++m) {
      const std::vector<Step>& steps = role(m).steps;
      for (std::size_t s = 0; s < steps.size(); ++s) waiting_[first_[m] + s] = steps[s].receives;
    }
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

  void send(std::size_t m, std::size_t step, double now, std::vector<std::size_t>& open,
            const std::vector<std::size_t>& entered) {
    const Step& sends = role(m).steps[step];
    double leaves = now;
    for (std::uint32_t s = sends.first_send; s < sends.end_send; ++s) {
      const Transfer& transfer = role(m).sends[s];
      const auto peer = static_cast<std::size_t>(schedule_.peer(static_cast<std::int32_t>(m), transfer));
      if (with_bytes_) leaves += seconds_of(transfer.bytes, dimension_);
      const double arrives = leaves + in_seconds(dimension_.latency) *
                                          static_cast<double>(hops(dimension_, static_cast<std::int32_t>(m),
                                                                   static_cast<std::int32_t>(peer)));
      const std::size_t at = first_[peer] + static_cast<std::size_t>(transfer.step);
      ready_[at] = std::max(ready_[at], arrives);
      if (--waiting_[at] == 0 && entered[peer] == static_cast<std::size_t>(transfer.step))
        open.push_back(peer);
    }
    double& own = ready_[first_[m] + step];
    own = std::max(own, leaves);
  }

  const Schedule& schedule_;
  const Dimension& dimension_;
  bool with_bytes_;
  std::vector<std::size_t> first_;     // step of every member, in the vectors below
  std::vector<std::int32_t> waiting_;  // messages that a step still waits for
  std::vector<double> ready_;          // when the latest of them arrived
};

PhaseLoad asymmetric_load(const Schedule& schedule, const Dimension& dimension) {
  PhaseLoad load;
  load.latency = Chain(schedule, dimension, false).last();
  load.chain = Chain(schedule, dimension, true).last() - load.latency;
  std::vector<double> received(static_cast<std::size_t>(schedule.ranks));
  for (std::int32_t m = 0; m < schedule.ranks; ++m) {
    double sent = 0;
    for (const Transfer& transfer : schedule.of(m).sends) {
      const double time = seconds_of(transfer.bytes, dimension);
      sent += time;
      received[static_cast<std::size_t>(schedule.peer(m, transfer))] += time;
    }
    load.busy = std::max(load.busy, sent);
  }
  for (const double time : received) load.busy = std::max(load.busy, time);
  return load;
}

}  // namespace

PhaseLoad phase_load(const Schedule& schedule, std::uint32_t number, const Dimension& dimension) {
  PhaseLoad load =
      schedule.is_symmetric() ? symmetric_load(schedule, dimension) : asymmetric_load(schedule, dimension);
  load.dimension = number;
  return load;
}

ChunkEstimate estimate_chunks(std::span<const PhaseLoad> phases, std::int64_t chunks, std::int64_t active) {
  constexpr double kOrder = 8, kDelay = 0.25;  // fitted, as the header says
  const auto n = static_cast<double>(chunks);
  const auto together = static_cast<double>(std::min(chunks, active));
  const double delayed = 1 + kDelay * (together - 1);
  ChunkEstimate estimate;
  for (const PhaseLoad& phase : phases) {
    double busy = 0, chain = 0, latency = 0;
    double late = 0, filled = 0;  // what a chunk spends elsewhere: in latencies, with bytes
    std::size_t first = phases.size(), last = 0;
    for (std::size_t p = 0; p < phases.size(); ++p) {
      if (phases[p].dimension != phase.dimension) continue;
      busy += phases[p].busy;
      chain += phases[p].chain;
      latency += phases[p].latency;
      first = std::min(first, p);
      last = p;
    }
    for (std::size_t p = 0; p < phases.size(); ++p) {
      const bool between = p > first && p < last;
      if (phases[p].dimension == phase.dimension || (between && chunks > active)) continue;
      late += phases[p].latency;
      filled += delayed * phases[p].busy / n;
    }
    const double in_turns = n / together * (latency + chain / n);
    const double more = std::max(busy, in_turns), less = std::min(busy, in_turns);
    double own = more > 0 ? more * std::pow(1 + std::pow(less / more, kOrder), 1 / kOrder) : 0;
    own += (chain - busy) / n;
    if (own + late + filled <= estimate.total) continue;
    estimate.total = own + late + filled;
    late += n / together * latency;
    filled += (chain - busy) / n;
    estimate.delay = late > filled ? CollectiveLimit::latency : CollectiveLimit::pipelining;
  }
  return estimate;
}

std::int64_t choose_chunks(std::span<const PhaseLoad> phases, std::int64_t active) {
  constexpr std::int64_t kMost = 256;
  constexpr double kAsGood = 1.01;
  double least = estimate_chunks(phases, kFewestChunks, active).total;
  for (std::int64_t chunks = 2 * kFewestChunks; chunks <= kMost; chunks *= 2)
    least = std::min(least, estimate_chunks(phases, chunks, active).total);
  std::int64_t chunks = kFewestChunks;
  while (chunks < kMost && estimate_chunks(phases, chunks, active).total > kAsGood * least) chunks *= 2;
  return chunks;
}

}  // namespace armilla
