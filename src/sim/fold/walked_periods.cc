#include "sim/fold/walked_periods.h"

#include <algorithm>

namespace armilla {

bool WalkedPeriods::is_inside(std::int32_t number, std::size_t loop) const {
  const RankStates::Rank& rank = states_.ranks[static_cast<std::size_t>(number)];
  if (rank.stretch != loop || states_.stretch_of(rank).loop.more == 0 || states_.period_of(rank) < 0 ||
      rank.behind > loop)
    return false;
  // What waited for nothing but what is in front of the loop may be under way.
  for (std::size_t s = loop + 1; s < rank.waiting.size(); ++s) {
    const RankStates::Waiting& waiting = rank.waiting[s];
    const std::uint32_t start = states_.stretches_of(rank)[s].start;
    for (std::uint32_t local = start; local < waiting.reached; ++local) {
      if (waiting.left[local - start] == 0 || waiting.left[local - start] == RankStates::kDone) return false;
    }
  }
  return true;
}

bool WalkedPeriods::is_inside() const {
  for (std::size_t rank = 0; rank < states_.ranks.size(); ++rank) {
    if (!is_inside(static_cast<std::int32_t>(rank), loop())) return false;
  }
  return true;
}

std::int64_t WalkedPeriods::spare_periods() const {
  std::int64_t spare = INT64_MAX;
  for (const RankStates::Rank& rank : states_.ranks) {
    const Loop& loop = states_.stretch_of(rank).loop;
    // A period may be left out only if nothing behind the loop waits for what was done in it: `ends_from`
    // says where that begins.
    const std::uint32_t from = states_.successors_of(rank).reaches[rank.stretch].ends_from;
    const std::uint32_t reached = rank.waiting[rank.stretch].reached;
    // Periods up to the last node that anything has touched are in use; the rest is still as it was at the
    // start.
    const std::uint32_t used = reached <= from ? 0 : (reached - from - 1) / loop.period + 1;
    spare = std::min(spare, std::int64_t{loop.more} - std::int64_t{used});
  }
  return spare;
}

bool WalkedPeriods::hosts_repeat(Time since, Time passed, std::int64_t periods) const {
  for (std::size_t rank = 0; rank < states_.ranks.size(); ++rank) {
    if (!host_repeats(static_cast<std::int32_t>(rank), since, passed, periods)) return false;
  }
  return true;
}

bool WalkedPeriods::host_repeats(std::int32_t number, Time since, Time passed, std::int64_t periods) const {
  const RankStates::Rank& rank = states_.ranks[static_cast<std::size_t>(number)];
  const Successors::Reach& reach = states_.successors_of(rank).reaches[rank.stretch];
  const Time taken =
      saturating_multiply(states_.program_of(number).issue_time, reach.issues_in_period * periods);
  // One that waits for the device keeps pace with it; how far they are apart is part of the state.
  return reach.awaits_in_period || taken == passed || (taken < passed && rank.last_held < since);
}

void WalkedPeriods::pause(std::int32_t number, Time pause) {
  RankStates::Rank& rank = states_.ranks[static_cast<std::size_t>(number)];
  rank.left_out += pause;
  rank.host_shift -= pause;
}

bool WalkedPeriods::is_idle(std::int32_t number) const {
  const RankStates::Rank& rank = states_.ranks[static_cast<std::size_t>(number)];
  return rank.lanes_ready == 0 && rank.lanes_busy == 0 && rank.held.empty() && rank.beyond.empty();
}

// The host has issued what is left out, too, and all later moments are seen earlier.
void WalkedPeriods::leave_out(std::int64_t periods, std::span<const Time> skipped) {
  const std::size_t loop = this->loop();
  for (std::size_t p = 0; p < states_.stretches.size(); ++p) {
    std::vector<Stretch>& stretches = states_.stretches[p];
    // Nodes keep their numbers up to here; those of all that comes later are smaller by what is left out, as
    // if the loop had been shorter from the beginning.
    const std::uint32_t nodes = static_cast<std::uint32_t>(periods) * stretches[loop].loop.period;
    stretches[loop].loop.more -= static_cast<std::uint32_t>(periods);
    stretches[loop].behind -= nodes;
    for (std::size_t s = loop + 1; s < stretches.size(); ++s) {
      stretches[s].skipped -= nodes;
      if (s + 1 < stretches.size()) stretches[s].behind -= nodes;
    }
  }
  for (std::size_t r = 0; r < states_.ranks.size(); ++r) {
    RankStates::Rank& rank = states_.ranks[r];
    rank.left_out += skipped[r];
    const Program& program = states_.graph.programs[rank.program];
    const std::uint32_t nodes = static_cast<std::uint32_t>(periods) * states_.stretch_of(rank).loop.period;
    rank.nodes_left -= nodes;
    rank.nodes_left_out += nodes;
    const Successors::Reach& reach = states_.successors_of(rank).reaches[loop];
    if (rank.awaited != RankStates::kDone) rank.awaited = states_.next_awaited(rank, rank.passed);
    // One that waits for the device has kept pace with it: its issues and its waits together took what was
    // skipped.
    if (reach.awaits_in_period) continue;
    rank.host_shift += saturating_multiply(program.issue_time, reach.issues_in_period * periods) - skipped[r];
  }
}

void WalkedPeriods::add_state(StateDigest& state) const {
  // Periods are counted from the first rank's: two states are alike if ranks are as far apart, whichever
  // period it is.
  for (std::size_t rank = 0; rank < states_.ranks.size(); ++rank)
    add_state(state, static_cast<std::int32_t>(rank), period());
  recorder_.add_starts(state, queue_.now(),
                       [&](std::int32_t rank, std::uint32_t node) { return states_.place(rank, node); });
}

void WalkedPeriods::add_state(StateDigest& state, std::int32_t number, std::int64_t from_period) const {
  enum : std::uint8_t { position, left, ready_node, lanes, host, behind_host, pace, holds };
  const RankStates::Rank& rank = states_.ranks[static_cast<std::size_t>(number)];
  const std::int32_t r = number;
  const Program& program = states_.program_of(number);
  const Stretch& stretch = states_.stretch_of(rank);
  const RankStates::Waiting& waiting = rank.waiting[rank.stretch];
  state.add('w', position, r, states_.period_of(rank) - from_period);
  // Nodes before are all done, nodes behind untouched: only those between can differ.
  for (std::uint32_t node = rank.first_left; node < waiting.reached + stretch.skipped; ++node) {
    const std::uint32_t local = node - stretch.skipped;
    const std::uint32_t waits = waiting.left[local - stretch.start];
    const std::uint32_t written = stretch.written(local);
    if (waits != program.dependences(written).size())
      state.add('w', left, r, states_.place(number, node), waits);
    const auto waits_in = [&](const std::vector<std::uint32_t>& nodes) {
      return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    };
    // What is neither held nor ready has been issued: since when is part of the state.
    if (waits > 0 || waits_in(rank.held) || waits_in(rank.beyond)) continue;
    const std::vector<std::uint32_t>& ready = rank.ready[static_cast<std::size_t>(program.lane[written])];
    if (std::find(ready.begin(), ready.end(), node) == ready.end())
      recorder_.add_issue(state, number, node, states_.place(number, node), queue_.now());
  }
  for (std::size_t lane = 0; lane < RankStates::kLanes; ++lane) {
    for (const std::uint32_t node : rank.ready[lane])
      state.add('w', ready_node, r, lane, states_.place(number, node));
    state.add('w', lanes, r, lane, (rank.lanes_busy >> lane & 1) != 0);
  }
  const Time now = queue_.now();
  if (rank.awaited != RankStates::kDone) {
    const Time issued = states_.issued_at(rank, rank.awaited);
    state.add('w', host, r, states_.place(number, rank.awaited), issued.value - now.value);
    for (const std::uint32_t node : rank.beyond) state.add('w', behind_host, r, states_.place(number, node));
  }
  if (rank.computing != RankStates::kDone)
    state.add('w', pace, r, states_.place(number, rank.computing), rank.work_left.value,
              rank.paced_since.value - now.value, rank.compute_end.value - now.value);
  for (const std::int32_t processors : rank.held_processors) state.add('w', holds, r, processors);
  recorder_.add_pauses(state, number, now);
}

}  // namespace armilla
