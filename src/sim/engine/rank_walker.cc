#include "sim/engine/rank_walker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace armilla {

RankWalker::RankWalker(const RunContext& context, const Executors& executors, bool one_communication,
                       std::span<std::vector<WatchedEnd>> watched_ends)
    : context_(context),
      executors_(executors),
      exclusive_lanes_(static_cast<std::uint8_t>(bit_of(Lane::device) | bit_of(Lane::host) |
                                                 (one_communication ? bit_of(Lane::communication) : 0))),
      target_(context.queue.add_handler(*this)),
      contends_(std::ranges::any_of(context.graph.collectives,
                                    [](const CollectiveCall& call) { return call.processors > 0; })),
      // Chains leave out the moments between their nodes, so nobody may ask for those, and no call may change
      // the pace within one.
      chains_(!contends_ && context.order.in_rounds() && executors.recorder.keeps_sums_only()),
      watched_ends_(watched_ends),
      states_(context.graph, context.classes, chains_) {}

void RankWalker::start() {
  for (std::size_t r = 0; r < states_.ranks.size(); ++r) {
    Rank& rank = states_.ranks[r];
    const Program& program = states_.program_of(static_cast<std::int32_t>(r));
    states_.begin(rank);
    for (std::uint32_t written = 0; written < program.size(); ++written) {
      // None is in or behind a loop.
      if (program.dependences(written).empty()) make_ready(rank, written);
    }
  }
  // Only now: what one rank issues may concern ranks that come later.
  for (std::size_t r = 0; r < states_.ranks.size(); ++r) issue_ready(static_cast<std::int32_t>(r));
}

void RankWalker::release(Rank& rank, const Stretch& stretch, std::uint32_t node) {
  if (--states_.waiting_at(rank, stretch, node) == 0) make_ready(rank, node);
}

void RankWalker::release_behind(Rank& rank, std::uint32_t written) {
  const std::vector<Stretch>& stretches = states_.stretches_of(rank);
  std::size_t stretch = 0;
  while (written >= stretches[stretch].loop.end) ++stretch;
  release(rank, stretches[stretch], written + stretches[stretch].skipped);
}

// A node of a period depends on what is as far before it as where it is written; one behind the loop, too,
// but for what is in front of the loop.
void RankWalker::release_successors(Rank& rank, const Stretch& stretch, std::uint32_t node) {
  const Loop& loop = stretch.loop;
  const std::uint32_t local = node - stretch.skipped;
  const Successors& successors = states_.successors_of(rank);
  if (local < loop.end) {
    for (const std::uint32_t next : successors.dependents.of(local)) {
      if (next < loop.end) {
        release(rank, stretch, next + stretch.skipped);
      } else if (local < loop.first) {
        release_behind(rank, next);
      }
    }
  }
  if (local < loop.first) return;
  const std::uint32_t back = successors.reaches[stretch.number].back;
  // Copies follow the last written period: copy c of a node there depends on what is c periods behind what is
  // written. So the dependents of `local` in copy c are those of the node c periods before it.
  if (loop.more > 0 && local >= back + loop.period) {
    std::uint32_t copy = local < loop.end ? 1 : (local - loop.end) / loop.period + 1;
    const std::uint32_t last = std::min(loop.more, (local - back) / loop.period);
    for (; copy <= last; ++copy) {
      const std::uint32_t shift = copy * loop.period;
      for (const std::uint32_t next : successors.dependents.of(local - shift)) {
        if (next < loop.end && next >= loop.end - loop.period)
          release(rank, stretch, next + shift + stretch.skipped);
      }
    }
  }
  // What stands behind the loop names nodes of its last period, which are later by all periods that are not
  // written.
  if (local < loop.first + loop.unwritten()) return;
  for (const std::uint32_t next : successors.dependents.of(local - loop.unwritten())) {
    if (next < loop.end) continue;
    release_behind(rank, next);
    rank.behind = std::max(rank.behind, stretch.number + 1);
  }
}

void RankWalker::mark_done(Rank& rank, const Stretch& stretch, std::uint32_t node) {
  states_.waiting_at(rank, stretch, node) = kDone;
  if (!states_.has_loops || node != rank.first_left) return;
  const std::size_t loop = rank.stretch;
  const std::int64_t before = states_.period_of(rank);
  const std::vector<Stretch>& stretches = states_.stretches_of(rank);
  for (;; ++rank.stretch) {
    const Stretch& here = stretches[rank.stretch];
    const std::vector<std::uint32_t>& left = rank.waiting[rank.stretch].left;
    // Amortised O(1): each node is passed once.
    while (rank.first_left < here.behind) {
      const std::size_t place = rank.first_left - here.skipped - here.start;
      if (place >= left.size() || left[place] != kDone) break;
      ++rank.first_left;
    }
    if (rank.first_left < here.behind) break;
  }
  // One rank tells when to look. Others may be periods before or behind it: how far is part of the state.
  if (&rank == states_.ranks.data() && (rank.stretch != loop || states_.period_of(rank) != before))
    states_.entered_period = true;
}

Digest RankWalker::describe(std::uint64_t argument) const {
  const std::int32_t rank = rank_of(argument);
  return digest_of(rank, states_.place(rank, static_cast<std::uint32_t>(argument)), argument & kIssued);
}

void RankWalker::make_ready(Rank& rank, std::uint32_t node) {
  const std::vector<std::int64_t>& issues = states_.successors_of(rank).issues;
  if (!issues.empty() && issues[states_.written_node(rank, node)] > 0) {
    const auto r = static_cast<std::int32_t>(&rank - states_.ranks.data());
    const Time now = context_.queue.now();
    // The host has not come to it, and is not even on its way: when it will be is known once the node that it
    // stops at is through.
    if (node > rank.awaited) {
      executors_.recorder.host_waited_for(r, now, 1);
      rank.beyond.push_back(node);
      return;
    }
    // What the host stops at is ready, so the host is through, at the earliest now.
    if (node == rank.awaited) pass_awaited(rank);
    const Time issued = states_.issued_at(rank, node);
    if (issued > now) {
      executors_.recorder.host_waited_for(r, now, 1);
      rank.held.push_back(node);
      rank.last_held = now;
      context_.order.schedule(r, issued, target_, kIssued | argument_of(r, node));
      return;
    }
  }
  put_on_lane(rank, node);
}

void RankWalker::pass_awaited(Rank& rank) {
  const Program& program = context_.graph.programs[rank.program];
  const Time now = context_.queue.now();
  // It issues the node itself, or its first part, and waits for what that needs, so it is there as long
  // before; all that follows is later by the wait.
  const std::uint32_t written = states_.written_node(rank, rank.awaited);
  const std::int64_t own = host_issues_to_begin(context_.graph, program, written);
  const Time there = states_.issued_at(rank, rank.awaited) - saturating_multiply(program.issue_time, own);
  if (there < now) rank.host_shift += now - there;
  rank.passed = rank.awaited + 1;
  rank.awaited = states_.next_awaited(rank, rank.passed);
  std::vector<std::uint32_t> beyond = std::exchange(rank.beyond, {});
  // In the order in which the host would issue them; `make_ready` may stop it again at the next such call.
  std::sort(beyond.begin(), beyond.end());
  for (const std::uint32_t node : beyond) {
    executors_.recorder.host_waited_for(static_cast<std::int32_t>(&rank - states_.ranks.data()), now, -1);
    make_ready(rank, node);
  }
}

void RankWalker::put_on_lane(Rank& rank, std::uint32_t node) const {
  const Program& program = context_.graph.programs[rank.program];
  const Lane lane = program.lane[states_.written_node(rank, node)];
  std::vector<std::uint32_t>& ready = rank.ready[static_cast<std::size_t>(lane)];
  rank.lanes_ready |= bit_of(lane);
  ready.push_back(node);
  // The smallest id first: frameworks issue in program order.
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
}

// Whatever is issued may finish at once and make others ready, so the state is looked at afresh every time.
void RankWalker::issue_ready(std::int32_t r) {
  Rank& rank = states_.ranks[static_cast<std::size_t>(r)];
  while (const unsigned open = rank.lanes_ready & ~rank.lanes_busy) {
    auto chosen = static_cast<std::size_t>(std::countr_zero(open));
    // Among lanes, too, the smallest id goes first: nodes of one rank begin in an order that hangs on nothing
    // but the program.
    for (std::size_t lane = chosen + 1; open >> lane != 0; ++lane) {
      if ((open >> lane & 1) != 0 && rank.ready[lane].front() < rank.ready[chosen].front()) chosen = lane;
    }
    const std::uint8_t bit = bit_of(static_cast<Lane>(chosen));
    std::vector<std::uint32_t>& ready = rank.ready[chosen];
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const std::uint32_t node = ready.back();
    ready.pop_back();
    if (ready.empty()) rank.lanes_ready &= static_cast<std::uint8_t>(~bit);
    rank.lanes_busy |= bit & exclusive_lanes_;
    issue(r, node);
  }
}

void RankWalker::issue(std::int32_t rank, std::uint32_t node) {
  const Program& program = states_.program_of(rank);
  const std::uint32_t written = states_.written_node(rank, node);
  executors_.recorder.node_started(rank, node, written, context_.queue.now());
  const std::uint64_t payload = program.payload[written];
  switch (program.kind[written]) {
    case NodeKind::compute:
      compute_for(rank, node, executors_.times.of_work(rank, node, payload));
      return;
    case NodeKind::delay: {
      const Time duration(static_cast<std::int64_t>(payload));
      if (program.lane[written] == Lane::device) {
        compute_for(rank, node, executors_.times.of_delay(rank, node, duration));
      } else {
        finish_after(rank, node, duration);
      }
      return;
    }
    case NodeKind::collective:
      for (RunObserver* const observer : context_.observers)
        observer->issues(rank, context_.graph.collectives[payload].family);
      if (contends_) hold_processors(rank, context_.graph.collectives[payload], true);
      executors_.collectives.issue(rank, node, static_cast<std::uint32_t>(payload),
                                   states_.ranks[static_cast<std::size_t>(rank)].collectives++);
      return;
    case NodeKind::send:
    case NodeKind::receive:
      issue_transfer(rank, node);
      return;
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      executors_.memories.access(rank, context_.classes.real_rank(rank),
                                 Bytes(static_cast<std::int64_t>(payload)),
                                 {target_, argument_of(rank, node)});
      return;
  }
}

void RankWalker::issue_transfer(std::int32_t rank, std::uint32_t node) {
  const Program& program = states_.program_of(rank);
  const std::uint32_t written = states_.written_node(rank, node);
  const PointToPoint& transfer = context_.graph.transfers[program.payload[written]];
  const Notice done{target_, argument_of(rank, node)};
  const std::int32_t here = context_.classes.real_rank(rank), there = context_.peers.of(here, transfer);
  if (program.kind[written] == NodeKind::send) {
    executors_.messages.send({0, here, there, transfer.tag, transfer.bytes}, done);
  } else {
    executors_.messages.receive({0, there, here, transfer.tag, transfer.bytes}, done);
  }
}

void RankWalker::finish_after(std::int32_t rank, std::uint32_t node, Time duration) {
  const Time end = later(context_.queue.now(), duration);
  context_.order.schedule(rank, end, target_, argument_of(rank, node));
}

void RankWalker::compute_for(std::int32_t rank, std::uint32_t node, Time duration) {
  if (!contends_) {
    if (chains_) {
      follow_chain(rank, node, end_of(rank, node, context_.queue.now(), duration));
    } else {
      finish_after(rank, node, end_of(rank, node, context_.queue.now(), duration) - context_.queue.now());
    }
    return;
  }
  Rank& state = states_.ranks[static_cast<std::size_t>(rank)];
  state.computing = node;
  state.work_left = duration;
  state.paced_since = context_.queue.now();
  schedule_end(rank);
}

Time RankWalker::computing_time(std::int32_t rank, std::uint32_t node, std::uint32_t written) const {
  const Program& program = states_.program_of(rank);
  const std::uint64_t payload = program.payload[written];
  return program.kind[written] == NodeKind::compute
             ? executors_.times.of_work(rank, node, payload)
             : executors_.times.of_delay(rank, node, Time(static_cast<std::int64_t>(payload)));
}

Time RankWalker::end_of(std::int32_t r, std::uint32_t node, Time begin, Time duration) {
  Rank& rank = states_.ranks[static_cast<std::size_t>(r)];
  const Program& program = states_.program_of(r);
  const std::uint32_t written = states_.written_node(rank, node);
  if (!program.has_parts(written) || program.issue_time == Time(0)) return later(begin, duration);
  const std::vector<Time>& parts = context_.graph.parts[program.parts[written]];
  if (parts.empty()) return later(begin, duration);
  Time issued = states_.issued_at(rank, node);
  // All issued before it begins: nothing holds it up.
  if (later(issued, saturating_multiply(program.issue_time, std::ssize(parts) - 1)) <= begin)
    return later(begin, duration);
  Time end = begin;
  for (const Time part : parts) {
    if (issued > end) {
      rank.last_held = end;
      executors_.recorder.next_computation(r, end, issued);
      end = issued;
    }
    end = later(end, part);
    issued = later(issued, program.issue_time);
  }
  return end;
}

// From the node that has begun and ends then.
void RankWalker::follow_chain(std::int32_t r, std::uint32_t node, Time end) {
  Rank& rank = states_.ranks[static_cast<std::size_t>(r)];
  rank.chain = node;
  const Successors& known = states_.successors_of(rank);
  if (!known.continues.empty()) {
    std::uint32_t written = states_.written_node(rank, node);
    // A watched end must be an event of its own, or a run that is late would be seen late.
    while (known.continues[written] && node + 1 < rank.awaited && !is_watched(rank, node)) {
      const Time duration = computing_time(r, node + 1, written + 1);
      // One that takes no time ends in a later round of its moment, which the event of a chain would not.
      if (duration <= Time(0)) break;
      ++node;
      ++written;
      Time begin = end;
      if (!known.issues.empty()) begin = std::max(begin, states_.issued_at(rank, node));
      if (begin > end) rank.last_held = end;
      // The host may hold the next one up: the lane then is idle in between, as it would be with an event for
      // each.
      executors_.recorder.next_computation(r, end, begin);
      end = end_of(r, node, begin, duration);
    }
    // Who compares states looks at nodes up to `reached`, and these have in part begun.
    if (node > rank.chain) states_.waiting_at(rank, states_.stretch_at(rank, node), node);
  }
  context_.order.schedule(r, end, target_, argument_of(r, node));
}

bool RankWalker::is_watched(Rank& rank, std::uint32_t node) const {
  if (watched_ends_.empty()) return false;
  const std::vector<WatchedEnd>& watched = watched_ends_[rank.program];
  const std::uint32_t whole = node + rank.nodes_left_out;
  while (rank.next_watched < watched.size() && watched[rank.next_watched].node < whole) ++rank.next_watched;
  return rank.next_watched < watched.size() && watched[rank.next_watched].node == whole;
}

// One processor is always left.
double RankWalker::pace_of(std::int32_t rank) const {
  const Rank& state = states_.ranks[static_cast<std::size_t>(rank)];
  if (state.held_processors.empty()) return 1;
  const auto all = static_cast<double>(executors_.times.processors(rank));
  return std::max(all - state.held_processors.back(), 1.0) / all;
}

void RankWalker::schedule_end(std::int32_t rank) {
  Rank& state = states_.ranks[static_cast<std::size_t>(rank)];
  const Time left(std::llround(static_cast<double>(state.work_left.value) / pace_of(rank)));
  state.compute_end = later(context_.queue.now(), left);
  context_.order.schedule(rank, state.compute_end, target_, argument_of(rank, state.computing));
}

void RankWalker::hold_processors(std::int32_t rank, const CollectiveCall& call, bool begins) {
  if (call.processors == 0 || executors_.times.processors(rank) == 0) return;
  Rank& state = states_.ranks[static_cast<std::size_t>(rank)];
  std::vector<std::int32_t>& held = state.held_processors;
  const auto place = std::ranges::lower_bound(held, call.processors);
  // Behind all that hold less, and, where it ends, alone in holding so many.
  const bool changes = begins ? place == held.end() : place + 1 == held.end();
  // What was done until now was done at the old pace.
  if (changes && state.computing != kDone) {
    const Time now = context_.queue.now(), passed = now - state.paced_since;
    state.work_left -=
        std::min(state.work_left, Time(std::llround(static_cast<double>(passed.value) * pace_of(rank))));
    state.paced_since = now;
  }
  if (begins) {
    held.insert(place, call.processors);
  } else {
    held.erase(place);
  }
  if (changes && state.computing != kDone) schedule_end(rank);
}

void RankWalker::handle(std::uint64_t argument) {
  const std::int32_t rank = rank_of(argument);
  const auto node = static_cast<std::uint32_t>(argument);
  Rank& state = states_.ranks[static_cast<std::size_t>(rank)];
  if ((argument & kIssued) == 0) {
    // An end that was put off or brought forward has left its old event behind, which means nothing.
    // Cheaper than taking events out of the queue, of which each change of pace would have to find one.
    if (contends_ && states_.program_of(rank).lane[states_.written_node(rank, node)] == Lane::device) {
      if (state.computing != node || state.compute_end != context_.queue.now()) return;
      state.computing = kDone;
    }
    finished(rank, node);
    return;
  }
  executors_.recorder.host_waited_for(rank, context_.queue.now(), -1);
  std::erase(state.held, node);
  put_on_lane(state, node);
  act(rank);
}

void RankWalker::finished(std::int32_t r, std::uint32_t node) {
  const Program& program = states_.program_of(r);
  const std::uint32_t written = states_.written_node(r, node);
  executors_.recorder.node_finished(r, node, written, context_.queue.now());
  executors_.progress.node_done(program.kind[written], program.payload[written]);
  Rank& rank = states_.ranks[static_cast<std::size_t>(r)];
  if (!watched_ends_.empty() && program.lane[written] == Lane::device) require_in_time(rank, node);
  if (contends_ && program.kind[written] == NodeKind::collective)
    hold_processors(r, context_.graph.collectives[program.payload[written]], false);
  // The nodes of a chain ended on the way. Nothing waits for one of them but the next, so nobody is to be
  // released.
  if (chains_ && computes(program, written)) {
    for (std::uint32_t before = rank.chain; before < node; ++before) {
      const std::uint32_t there = written - (node - before);
      executors_.progress.node_done(program.kind[there], program.payload[there]);
      --rank.nodes_left;
      mark_done(rank, states_.stretch_at(rank, before), before);
    }
  }
  --rank.nodes_left;
  rank.lanes_busy &= static_cast<std::uint8_t>(~bit_of(program.lane[written]));
  const Stretch& stretch = states_.stretch_at(rank, node);
  mark_done(rank, stretch, node);
  release_successors(rank, stretch, node);
  act(r);
}

void RankWalker::require_in_time(Rank& rank, std::uint32_t node) const {
  if (!is_watched(rank, node)) return;
  WatchedEnd& end = watched_ends_[rank.program][rank.next_watched];
  end.seen = later(context_.queue.now(), rank.left_out);
  if (end.seen > end.latest) throw RunIsLate{};
}

// In rounds a rank acts once on all that ended in this one, so that the order of events decides nothing.
void RankWalker::act(std::int32_t rank) {
  if (context_.order.in_rounds()) {
    context_.order.mark(rank, TurnPart::walker);
  } else {
    issue_ready(rank);
  }
}

void RankWalker::collective_started(std::int32_t rank, std::uint32_t node) {
  executors_.recorder.collective_started(rank, node, context_.queue.now());
}

void RankWalker::chunk_finished(std::int32_t rank, const ChunkInterval& phase) {
  ChunkInterval written = phase;
  written.node = states_.written_node(rank, phase.node);
  executors_.recorder.chunk_finished(rank, written);
}

void RankWalker::collective_finished(std::int32_t rank, std::uint32_t node) {
  for (RunObserver* const observer : context_.observers) observer->ends(rank, node);
  const auto call =
      static_cast<std::uint32_t>(states_.program_of(rank).payload[states_.written_node(rank, node)]);
  const Time beyond = executors_.collectives.beyond(rank, call);
  if (beyond > Time(0)) {
    finish_after(rank, node, beyond);
  } else {
    finished(rank, node);
  }
}

std::string RankWalker::describe(std::int32_t rank, std::uint32_t node) const {
  return fmt::format(
      "rank {} waits in '{}' (node {})", context_.classes.real_rank(rank),
      context_.graph.names[states_.program_of(rank).name[states_.written_node(rank, node)]],
      states_.program_of(rank).file_id.empty() ? node : states_.program_of(rank).shown_id(node));
}

// With no event left, something the rank has issued never ends: a collective some member never issues, or a
// receive of what is never sent.
std::pair<std::uint32_t, std::int32_t> RankWalker::stuck(std::int32_t rank) const {
  const Program& program = states_.program_of(rank);
  const Rank& state = states_.ranks[static_cast<std::size_t>(rank)];
  std::uint32_t some = UINT32_MAX;
  for (std::uint32_t node = 0; node < states_.length_of(state); ++node) {
    if (states_.waiting(state, node) != 0) continue;
    const std::uint32_t written = states_.written_node(rank, node);
    const auto lane = static_cast<std::size_t>(program.lane[written]);
    const std::vector<std::uint32_t>& ready = state.ready[lane];
    if (std::find(ready.begin(), ready.end(), node) != ready.end()) continue;  // not issued
    // A missing member is the best answer, a transfer's other end the next; only then whatever stands still.
    if (program.kind[written] == NodeKind::collective) {
      const std::int32_t missing = executors_.collectives.missing_member(rank, node);
      if (missing >= 0) return {node, missing};
    }
    if (program.kind[written] == NodeKind::send || program.kind[written] == NodeKind::receive)
      return {node,
              context_.classes.simulated_rank(context_.peers.of(
                  context_.classes.real_rank(rank), context_.graph.transfers[program.payload[written]]))};
    some = std::min(some, node);
  }
  return {some == UINT32_MAX ? 0 : some, -1};
}

void RankWalker::finish(const std::function<bool()>& unstick) {
  bool ran_empty = context_.queue.run();
  while (ran_empty && !is_finished() && unstick()) ran_empty = context_.queue.run();
  if (!ran_empty)
    throw Error("simulation", "the simulated time passes 26 days", "check sizes, bandwidths and units");
  require_finished();
}

bool RankWalker::is_finished() const {
  return std::all_of(states_.ranks.begin(), states_.ranks.end(),
                     [](const Rank& rank) { return rank.nodes_left == 0; });
}

void RankWalker::require_finished() const {
  const auto unfinished = std::find_if(states_.ranks.begin(), states_.ranks.end(),
                                       [](const Rank& rank) { return rank.nodes_left > 0; });
  if (unfinished == states_.ranks.end()) return;
  std::string chain;
  std::vector<bool> seen(states_.ranks.size());
  auto rank = static_cast<std::int32_t>(unfinished - states_.ranks.begin());
  // Who waits for whom, until it comes back to a rank that was named, or to one that has finished and will
  // never answer.
  while (rank >= 0 && !seen[static_cast<std::size_t>(rank)]) {
    if (states_.ranks[static_cast<std::size_t>(rank)].nodes_left == 0) {
      chain += fmt::format(", which has finished");
      break;
    }
    seen[static_cast<std::size_t>(rank)] = true;
    const auto [node, missing] = stuck(rank);
    chain += fmt::format("{}{}", chain.empty() ? "" : "; ", describe(rank, node));
    if (missing >= 0) chain += fmt::format(" for rank {}", context_.classes.real_rank(missing));
    rank = missing;
  }
  throw Error("simulation", fmt::format("the run cannot finish: {}", chain),
              "the members of a group must issue the same collectives in the same order, and every receive "
              "needs a send of the same tag and size");
}

}  // namespace armilla
