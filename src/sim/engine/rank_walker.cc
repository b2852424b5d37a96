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
namespace {

// How many the host has issued with each node; 0 where it does not issue it.
std::vector<std::uint32_t> issues_of(const Program& program) {
  std::vector<std::uint32_t> issues(program.size());
  std::uint32_t count = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.lane[node] == Lane::device || program.lane[node] == Lane::communication)
      issues[node] = ++count;
  }
  return issues;
}

bool has_counted_calls(const Graph& graph) {
  return std::ranges::any_of(graph.collectives, &CollectiveCall::counted_on_device);
}

// Whether what is known of nodes' successors is the same of both.
bool same_successors(const Graph& graph, const Program& a, const Program& b, bool chains) {
  const auto parts = [](const Program& program) {
    return std::tie(program.first_dependence, program.dependence, program.loop.first, program.loop.end,
                    program.loop.period, program.loop.more);
  };
  // Lanes count where the host issues (it issues some only) and where chains do; kinds and payloads where
  // calls make it wait.
  const bool counts = a.issue_time > Time(0);
  return counts == (b.issue_time > Time(0)) && ((!counts && !chains) || a.lane == b.lane) &&
         parts(a) == parts(b) && (!chains || a.kind == b.kind) &&
         (!counts || !has_counted_calls(graph) || (a.kind == b.kind && a.payload == b.payload));
}

bool computes(const Program& program, std::uint32_t node) {
  return program.lane[node] == Lane::device &&
         (program.kind[node] == NodeKind::compute || program.kind[node] == NodeKind::delay);
}

// Whether of any two nodes on the device the one with the larger id waits for the other.
bool computes_in_order(const Program& program) {
  std::vector<std::uint32_t> over(program.size());  // of those on the device, how many are, when a node is
  std::uint32_t count = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    // Of a later id it is not known yet what it comes behind; such programs go without chains.
    for (const std::uint32_t dependence : program.dependences(node)) {
      if (dependence >= node) return false;
      over[node] = std::max(over[node], over[dependence]);
    }
    if (program.lane[node] != Lane::device) continue;
    if (over[node] != count) return false;
    over[node] = ++count;
  }
  return true;
}

}  // namespace

RankWalker::RankWalker(const RunContext& context, const Executors& executors, bool one_communication)
    : context_(context),
      executors_(executors),
      exclusive_lanes_(static_cast<std::uint8_t>(bit_of(Lane::device) | bit_of(Lane::host) |
                                                 (one_communication ? bit_of(Lane::communication) : 0))),
      peers_(context.graph),
      target_(context.queue.add_handler(*this)),
      ranks_(context.classes.real.size()) {
  const Graph& graph = context.graph;
  // Traces of a job often differ in durations alone: what follows from dependences is then kept once.
  std::vector<std::uint32_t> successors_of;
  contends_ = std::ranges::any_of(graph.collectives, [](const auto& call) { return call.processors > 0; });
  // Chains leave out the moments between their nodes, so nobody may ask for those, and no call may change the
  // pace within one.
  chains_ = !contends_ && context.order.in_rounds() && executors.recorder.keeps_sums_only();
  for (const Program& program : graph.programs) {
    Loop loop = program.loop;
    if (loop.more == 0) loop = {program.size(), program.size(), 0, 0};
    has_loops_ = has_loops_ || loop.more > 0;
    loops_.push_back(loop);
    const std::size_t number = loops_.size() - 1;
    if (number == 0 || !same_successors(graph, graph.programs[number - 1], program, chains_))
      successors_.push_back(Successors(graph, program, loop, chains_));
    successors_of.push_back(static_cast<std::uint32_t>(successors_.size() - 1));
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].program = graph.program_of[static_cast<std::size_t>(context.classes.real[r])];
    ranks_[r].successors = successors_of[ranks_[r].program];
  }
}

RankWalker::Successors::Successors(const Graph& graph, const Program& program, const Loop& loop, bool chains)
    : dependents(program.first_dependence, program.dependence), reach(loop.end), ends_from(loop.end) {
  for (std::uint32_t written = loop.end; written < program.size(); ++written) {
    for (const std::uint32_t dependence : program.dependences(written)) {
      if (dependence >= loop.first) ends_from = std::min(ends_from, dependence);
    }
  }
  // Only the last written period is repeated. What it reaches back to bounds how many periods a node's end
  // concerns.
  for (std::uint32_t written = loop.end - loop.period; written < loop.end; ++written) {
    for (const std::uint32_t dependence : program.dependences(written)) reach = std::min(reach, dependence);
  }
  if (chains) find_chains(program, loop);
  if (program.issue_time == Time(0)) return;
  issues = issues_of(program);
  issues_in_period = std::count_if(issues.begin() + (loop.end - loop.period), issues.begin() + loop.end,
                                   [](std::uint32_t issue) { return issue > 0; });
  if (!has_counted_calls(graph)) return;
  for (std::uint32_t written = 0; written < program.size(); ++written) {
    const bool is_call = program.kind[written] == NodeKind::collective;
    awaited.push_back(is_call && graph.collectives[program.payload[written]].counted_on_device);
  }
  awaits_in_period = std::find(awaited.begin() + (loop.end - loop.period), awaited.begin() + loop.end,
                               true) != awaited.begin() + loop.end;
}

// What stands at one place of every period must be followed alike in all of them.
void RankWalker::Successors::find_chains(const Program& program, const Loop& loop) {
  if (!computes_in_order(program)) return;
  continues.resize(program.size());
  for (std::uint32_t node = 0; node + 1 < program.size(); ++node) {
    // What enters the loop or leaves it is followed differently the first or the last time, so chains end
    // there.
    if (node + 1 == loop.first || node + 1 == loop.end) continue;
    const std::span<const std::uint32_t> next = dependents.of(node);
    continues[node] = computes(program, node) && computes(program, node + 1) && next.size() == 1 &&
                      next.front() == node + 1 && program.dependences(node + 1).size() == 1;
  }
  if (loop.more == 0) return;
  // A node and its copies are looked up at one written place, whose answer must be true of all of them.
  for (std::uint32_t place = loop.end - loop.period; place < loop.end; ++place) {
    bool all = true;
    for (std::uint32_t node = loop.first + (place - loop.first) % loop.period; node < loop.end;
         node += loop.period)
      all = all && continues[node];
    for (std::uint32_t node = loop.first + (place - loop.first) % loop.period; node < loop.end;
         node += loop.period)
      continues[node] = all;
  }
}

void RankWalker::start() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    const Program& program = program_of(static_cast<std::int32_t>(r));
    const Loop& loop = loop_of(rank);
    rank.nodes_left = program.length();
    rank.waiting_for.resize(loop.end);
    rank.waiting_behind.resize(program.size() - loop.end);
    rank.awaited = next_awaited(rank, 0);
    for (std::uint32_t written = 0; written < program.size(); ++written) {
      const std::size_t dependences = program.dependences(written).size();
      const bool is_behind = written >= loop.end;
      (is_behind ? rank.waiting_behind[written - loop.end] : rank.waiting_for[written]) =
          static_cast<std::uint32_t>(dependences);
      // None is in or behind a loop.
      if (dependences == 0) make_ready(rank, written);
    }
  }
  // Only now: what one rank issues may concern ranks that come later.
  for (std::size_t r = 0; r < ranks_.size(); ++r) issue_ready(static_cast<std::int32_t>(r));
}

std::uint32_t RankWalker::waiting(const Rank& rank, std::uint32_t node) const {
  const Loop& loop = loop_of(rank);
  if (node >= behind(loop)) return rank.waiting_behind[node - behind(loop)];
  if (node < rank.waiting_for.size()) return rank.waiting_for[node];
  const Program& program = context_.graph.programs[rank.program];
  // Not touched yet: it waits for all of its dependences. So a loop of many periods takes the memory of what
  // is under way.
  return static_cast<std::uint32_t>(program.dependences(loop.written(node)).size());
}

void RankWalker::extend(Rank& rank, std::uint32_t node) const {
  const Program& program = context_.graph.programs[rank.program];
  const Loop& loop = loop_of(rank);
  for (auto next = static_cast<std::uint32_t>(rank.waiting_for.size()); next <= node; ++next)
    rank.waiting_for.push_back(static_cast<std::uint32_t>(program.dependences(loop.written(next)).size()));
}

void RankWalker::release(Rank& rank, std::uint32_t node) {
  const std::uint32_t end = behind(loop_of(rank));
  if (node >= end) {
    if (--rank.waiting_behind[node - end] == 0) make_ready(rank, node);
    return;
  }
  if (node >= rank.waiting_for.size()) extend(rank, node);
  rank.reached = std::max(rank.reached, node + 1);
  if (--rank.waiting_for[node] == 0) make_ready(rank, node);
}

// A node of a period depends on what is as far before it as where it is written; one behind the loop, too,
// but for what is in front of the loop.
void RankWalker::release_successors(Rank& rank, std::uint32_t node) {
  const Loop& loop = loop_of(rank);
  const Successors& successors = successors_of(rank);
  const std::uint32_t skipped = loop.more * loop.period;
  if (node < loop.end) {
    for (const std::uint32_t next : successors.dependents.of(node)) {
      if (next < loop.end) {
        release(rank, next);
      } else if (node < loop.first) {
        release(rank, next + skipped);
      }
    }
  }
  if (node < loop.first) return;
  // Copies follow the last written period: copy c of a node there depends on what is c periods behind what is
  // written. So the dependents of `node` in copy c are those of the node c periods before it.
  if (loop.more > 0 && node >= successors.reach + loop.period) {
    std::uint32_t copy = node < loop.end ? 1 : (node - loop.end) / loop.period + 1;
    const std::uint32_t last = std::min(loop.more, (node - successors.reach) / loop.period);
    for (; copy <= last; ++copy) {
      const std::uint32_t shift = copy * loop.period;
      for (const std::uint32_t next : successors.dependents.of(node - shift)) {
        if (next < loop.end && next >= loop.end - loop.period) release(rank, next + shift);
      }
    }
  }
  // What stands behind the loop names nodes of its last period, which are later by all periods that are not
  // written.
  if (node < loop.first + skipped) return;
  for (const std::uint32_t next : successors.dependents.of(node - skipped)) {
    if (next < loop.end) continue;
    release(rank, next + skipped);
    rank.is_behind = true;
  }
}

void RankWalker::mark_done(Rank& rank, std::uint32_t node) {
  const Loop& loop = loop_of(rank);
  const std::uint32_t end = behind(loop);
  if (node >= end) {
    rank.waiting_behind[node - end] = kDone;
    return;
  }
  if (node >= rank.waiting_for.size()) extend(rank, node);
  rank.reached = std::max(rank.reached, node + 1);
  rank.waiting_for[node] = kDone;
  if (!has_loops_ || node != rank.first_left) return;
  const std::int64_t before = period_of(rank);
  while (rank.first_left < rank.waiting_for.size() && rank.waiting_for[rank.first_left] == kDone)
    ++rank.first_left;
  if (&rank == ranks_.data() && period_of(rank) != before) entered_period_ = true;
}

std::int64_t RankWalker::period_of(const Rank& rank) const {
  const Loop& loop = loop_of(rank);
  return rank.first_left < loop.first || loop.period == 0 ? -1 : (rank.first_left - loop.first) / loop.period;
}

bool RankWalker::is_inside() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) {
    const Loop& loop = loop_of(rank);
    return loop.more > 0 && rank.first_left >= loop.first && rank.first_left < behind(loop) &&
           !rank.is_behind;
  });
}

std::int64_t RankWalker::spare_periods() const {
  std::int64_t spare = INT64_MAX;
  for (const Rank& rank : ranks_) {
    const Loop& loop = loop_of(rank);
    // A period may be left out only if nothing behind the loop waits for what was done in it: `ends_from`
    // says where that begins.
    const std::uint32_t from = successors_of(rank).ends_from;
    const std::uint32_t used = rank.reached <= from ? 0 : (rank.reached - from - 1) / loop.period + 1;
    spare = std::min(spare, std::int64_t{loop.more} - std::int64_t{used});
  }
  return spare;
}

bool RankWalker::hosts_repeat(Time since, Time passed, std::int64_t periods) const {
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) {
    const Program& program = context_.graph.programs[rank.program];
    const Time taken =
        saturating_multiply(program.issue_time, successors_of(rank).issues_in_period * periods);
    // One that waits for the device keeps pace with it; how far they are apart is part of the state.
    return successors_of(rank).awaits_in_period || taken == passed ||
           (taken < passed && rank.last_held < since);
  });
}

// The host has issued what is left out, too, and all later moments are seen earlier.
void RankWalker::leave_out(std::int64_t periods, Time skipped) {
  for (Loop& loop : loops_) loop.more -= static_cast<std::uint32_t>(periods);
  left_out_ += skipped;
  for (Rank& rank : ranks_) {
    const Program& program = context_.graph.programs[rank.program];
    const std::uint32_t nodes = static_cast<std::uint32_t>(periods) * loop_of(rank).period;
    rank.nodes_left -= nodes;
    rank.nodes_left_out += nodes;
    // One that waits for the device has kept pace with it: its issues and its waits together took what was
    // skipped.
    if (successors_of(rank).awaits_in_period) {
      rank.awaited = next_awaited(rank, rank.passed);
      continue;
    }
    rank.host_shift +=
        saturating_multiply(program.issue_time, successors_of(rank).issues_in_period * periods) - skipped;
  }
}

std::int64_t RankWalker::place(std::int32_t r, std::uint32_t node) const {
  const Rank& rank = ranks_[static_cast<std::size_t>(r)];
  return std::int64_t{node} - period_of(rank) * loop_of(rank).period;
}

Digest RankWalker::describe(std::uint64_t argument) const {
  const auto rank = static_cast<std::int32_t>((argument & ~kIssued) >> 32);
  return digest_of(rank, place(rank, static_cast<std::uint32_t>(argument)), argument & kIssued);
}

void RankWalker::add_state(StateDigest& state) const {
  enum : std::uint8_t { position, left, ready_node, lanes, host, behind_host, pace, holds };
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    const auto number = static_cast<std::int32_t>(r);
    const Program& program = program_of(number);
    const Loop& loop = loop_of(rank);
    // Periods are counted from the first rank's: two states are alike if ranks are as far apart, whichever
    // period it is.
    state.add('w', position, r, period_of(rank) - period());
    // Nodes before are all done, nodes behind untouched: only those between can differ.
    for (std::uint32_t node = rank.first_left; node < rank.reached; ++node) {
      const std::uint32_t waits = rank.waiting_for[node];
      const std::uint32_t written = loop.written(node);
      if (waits != program.dependences(written).size()) state.add('w', left, r, place(number, node), waits);
      const auto waits_in = [&](const std::vector<std::uint32_t>& nodes) {
        return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
      };
      // What is neither held nor ready has been issued: since when is part of the state.
      if (waits > 0 || waits_in(rank.held) || waits_in(rank.beyond)) continue;
      const std::vector<std::uint32_t>& ready = rank.ready[static_cast<std::size_t>(program.lane[written])];
      if (std::find(ready.begin(), ready.end(), node) == ready.end())
        executors_.recorder.add_issue(state, number, node, place(number, node), context_.queue.now());
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (const std::uint32_t node : rank.ready[lane])
        state.add('w', ready_node, r, lane, place(number, node));
      state.add('w', lanes, r, lane, (rank.lanes_busy >> lane & 1) != 0);
    }
    const Time now = context_.queue.now();
    if (rank.awaited != kDone) {
      const Time issued = issued_at(rank, rank.awaited, loop.written(rank.awaited));
      state.add('w', host, r, place(number, rank.awaited), issued.value - now.value);
      for (const std::uint32_t node : rank.beyond) state.add('w', behind_host, r, place(number, node));
    }
    if (rank.computing != kDone)
      state.add('w', pace, r, place(number, rank.computing), rank.work_left.value,
                rank.paced_since.value - now.value, rank.compute_end.value - now.value);
    if (rank.holding > 0) state.add('w', holds, r, rank.holding, rank.processors);
  }
  executors_.recorder.add_starts(state, context_.queue.now(),
                                 [&](std::int32_t rank, std::uint32_t node) { return place(rank, node); });
}

Time RankWalker::issued_at(const Rank& rank, std::uint32_t node, std::uint32_t written) const {
  const Program& program = context_.graph.programs[rank.program];
  const Successors& known = successors_of(rank);
  std::int64_t issues = known.issues[written];
  if (node > written)
    issues += std::int64_t{(node - written) / loop_of(rank).period} * known.issues_in_period;
  return later(program.issue_start, saturating_multiply(program.issue_time, issues)) + rank.host_shift;
}

void RankWalker::make_ready(Rank& rank, std::uint32_t node) {
  const std::vector<std::uint32_t>& issues = successors_of(rank).issues;
  const std::uint32_t written = loop_of(rank).written(node);
  if (!issues.empty() && issues[written] > 0) {
    const auto r = static_cast<std::int32_t>(&rank - ranks_.data());
    const Time now = context_.queue.now();
    // The host has not come to it, and is not even on its way: when it will be is known once the call that it
    // stops at is through.
    if (node > rank.awaited) {
      executors_.recorder.host_waited_for(r, now, 1);
      rank.beyond.push_back(node);
      return;
    }
    if (node == rank.awaited) pass_awaited(rank, written);
    const Time issued = issued_at(rank, node, written);
    if (issued > now) {
      executors_.recorder.host_waited_for(r, now, 1);
      rank.held.push_back(node);
      rank.last_held = now;
      const std::uint64_t argument = std::uint64_t{static_cast<std::uint32_t>(r)} << 32 | node;
      context_.order.schedule(r, issued, target_, kIssued | argument);
      return;
    }
  }
  put_on_lane(rank, node);
}

std::uint32_t RankWalker::next_awaited(const Rank& rank, std::uint32_t from) const {
  const std::vector<bool>& awaited = successors_of(rank).awaited;
  if (awaited.empty()) return kDone;
  const Loop& loop = loop_of(rank);
  const auto end = behind(loop) + static_cast<std::uint32_t>(awaited.size()) - loop.end;
  for (std::uint32_t node = from; node < end; ++node) {
    if (awaited[loop.written(node)]) return node;
  }
  return kDone;
}

void RankWalker::pass_awaited(Rank& rank, std::uint32_t written) {
  const Program& program = context_.graph.programs[rank.program];
  const Time now = context_.queue.now();
  // It issues the call itself and waits for what that needs, so it is there one issue before; all that
  // follows is later by the wait.
  const Time there = issued_at(rank, rank.awaited, written) - program.issue_time;
  if (there < now) rank.host_shift += now - there;
  rank.passed = rank.awaited + 1;
  rank.awaited = next_awaited(rank, rank.passed);
  std::vector<std::uint32_t> beyond = std::exchange(rank.beyond, {});
  // In the order in which the host would issue them; `make_ready` may stop it again at the next such call.
  std::sort(beyond.begin(), beyond.end());
  for (const std::uint32_t node : beyond) {
    executors_.recorder.host_waited_for(static_cast<std::int32_t>(&rank - ranks_.data()), now, -1);
    make_ready(rank, node);
  }
}

void RankWalker::put_on_lane(Rank& rank, std::uint32_t node) const {
  const Program& program = context_.graph.programs[rank.program];
  const Lane lane = program.lane[loop_of(rank).written(node)];
  std::vector<std::uint32_t>& ready = rank.ready[static_cast<std::size_t>(lane)];
  rank.lanes_ready |= bit_of(lane);
  ready.push_back(node);
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
}

// Whatever is issued may finish at once and make others ready, so the state is looked at afresh every time.
void RankWalker::issue_ready(std::int32_t r) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
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
  const Program& program = program_of(rank);
  const std::uint32_t written = written_node(rank, node);
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
      if (contends_) hold_processors(rank, context_.graph.collectives[payload], true);
      executors_.collectives.issue(rank, node, static_cast<std::uint32_t>(payload),
                                   ranks_[static_cast<std::size_t>(rank)].collectives++);
      return;
    case NodeKind::send:
    case NodeKind::receive:
      issue_transfer(rank, node);
      return;
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      executors_.memories.access(rank, context_.classes.real_rank(rank),
                                 Bytes(static_cast<std::int64_t>(payload)),
                                 {target_, std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node});
      return;
  }
}

void RankWalker::issue_transfer(std::int32_t rank, std::uint32_t node) {
  const Program& program = program_of(rank);
  const std::uint32_t written = written_node(rank, node);
  const PointToPoint& transfer = context_.graph.transfers[program.payload[written]];
  const Notice done{target_, std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node};
  const std::int32_t here = context_.classes.real_rank(rank), there = peers_.of(here, transfer);
  if (program.kind[written] == NodeKind::send) {
    executors_.messages.send({0, here, there, transfer.tag, transfer.bytes}, done);
  } else {
    executors_.messages.receive({0, there, here, transfer.tag, transfer.bytes}, done);
  }
}

void RankWalker::finish_after(std::int32_t rank, std::uint32_t node, Time duration) {
  const Time end = later(context_.queue.now(), duration);
  const std::uint64_t argument = std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node;
  context_.order.schedule(rank, end, target_, argument);
}

void RankWalker::compute_for(std::int32_t rank, std::uint32_t node, Time duration) {
  if (!contends_) {
    if (chains_) {
      follow_chain(rank, node, later(context_.queue.now(), duration));
    } else {
      finish_after(rank, node, duration);
    }
    return;
  }
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  state.computing = node;
  state.work_left = duration;
  state.paced_since = context_.queue.now();
  schedule_end(rank);
}

Time RankWalker::computing_time(std::int32_t rank, std::uint32_t node, std::uint32_t written) const {
  const Program& program = program_of(rank);
  const std::uint64_t payload = program.payload[written];
  return program.kind[written] == NodeKind::compute
             ? executors_.times.of_work(rank, node, payload)
             : executors_.times.of_delay(rank, node, Time(static_cast<std::int64_t>(payload)));
}

// From the node that has begun and ends then.
void RankWalker::follow_chain(std::int32_t r, std::uint32_t node, Time end) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  rank.chain = node;
  const Successors& known = successors_of(rank);
  if (!known.continues.empty()) {
    const Loop& loop = loop_of(rank);
    std::uint32_t written = loop.written(node);
    // A watched end must be an event of its own, or a run that is late would be seen late.
    while (known.continues[written] && node + 1 < rank.awaited && !is_watched(rank, node)) {
      const Time duration = computing_time(r, node + 1, written + 1);
      // One that takes no time ends in a later round of its moment, which the event of a chain would not.
      if (duration <= Time(0)) break;
      ++node;
      ++written;
      Time begin = end;
      if (!known.issues.empty()) begin = std::max(begin, issued_at(rank, node, written));
      if (begin > end) rank.last_held = end;
      executors_.recorder.next_computation(r, end, begin);
      end = later(begin, duration);
    }
    // Who compares states looks at nodes up to `reached`, and these have in part begun.
    if (node > rank.chain && node < behind(loop)) {
      if (node >= rank.waiting_for.size()) extend(rank, node);
      rank.reached = std::max(rank.reached, node + 1);
    }
  }
  const std::uint64_t argument = std::uint64_t{static_cast<std::uint32_t>(r)} << 32 | node;
  context_.order.schedule(r, end, target_, argument);
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
  const Rank& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.holding == 0) return 1;
  const auto all = static_cast<double>(executors_.times.processors(rank));
  return std::max(all - state.processors, 1.0) / all;
}

void RankWalker::schedule_end(std::int32_t rank) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  const Time left(std::llround(static_cast<double>(state.work_left.value) / pace_of(rank)));
  state.compute_end = later(context_.queue.now(), left);
  const std::uint64_t argument = std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | state.computing;
  context_.order.schedule(rank, state.compute_end, target_, argument);
}

void RankWalker::hold_processors(std::int32_t rank, const CollectiveCall& call, bool begins) {
  if (call.processors == 0 || executors_.times.processors(rank) == 0) return;
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  const bool changes = state.holding == (begins ? 0 : 1);
  // What was done until now was done at the old pace. Only the first to hold and the last to let go change
  // it.
  if (changes && state.computing != kDone) {
    const Time now = context_.queue.now(), passed = now - state.paced_since;
    state.work_left -=
        std::min(state.work_left, Time(std::llround(static_cast<double>(passed.value) * pace_of(rank))));
    state.paced_since = now;
  }
  state.holding += begins ? 1 : -1;
  if (!changes) return;
  if (begins) state.processors = call.processors;
  if (state.computing != kDone) schedule_end(rank);
}

void RankWalker::handle(std::uint64_t argument) {
  const auto rank = static_cast<std::int32_t>((argument & ~kIssued) >> 32);
  const auto node = static_cast<std::uint32_t>(argument);
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  if ((argument & kIssued) == 0) {
    // An end that was put off or brought forward has left its old event behind, which means nothing.
    if (contends_ && program_of(rank).lane[written_node(rank, node)] == Lane::device) {
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
  const Program& program = program_of(r);
  const std::uint32_t written = written_node(r, node);
  executors_.recorder.node_finished(r, node, written, context_.queue.now());
  executors_.progress.node_done(program.kind[written], program.payload[written]);
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
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
      mark_done(rank, before);
    }
  }
  --rank.nodes_left;
  rank.lanes_busy &= static_cast<std::uint8_t>(~bit_of(program.lane[written]));
  mark_done(rank, node);
  release_successors(rank, node);
  act(r);
}

void RankWalker::require_in_time(Rank& rank, std::uint32_t node) const {
  if (!is_watched(rank, node)) return;
  WatchedEnd& end = watched_ends_[rank.program][rank.next_watched];
  end.seen = later(context_.queue.now(), left_out_);
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
  written.node = written_node(rank, phase.node);
  executors_.recorder.chunk_finished(rank, written);
}

void RankWalker::collective_finished(std::int32_t rank, std::uint32_t node) {
  const auto call = static_cast<std::uint32_t>(program_of(rank).payload[written_node(rank, node)]);
  const Time beyond = executors_.collectives.beyond(rank, call);
  if (beyond > Time(0)) {
    finish_after(rank, node, beyond);
  } else {
    finished(rank, node);
  }
}

std::string RankWalker::describe(std::int32_t rank, std::uint32_t node) const {
  return fmt::format("rank {} waits in '{}' (node {})", context_.classes.real_rank(rank),
                     context_.graph.names[program_of(rank).name[written_node(rank, node)]],
                     program_of(rank).file_id.empty() ? node : program_of(rank).shown_id(node));
}

// With no event left, something the rank has issued never ends: a collective some member never issues, or a
// receive of what is never sent.
std::pair<std::uint32_t, std::int32_t> RankWalker::stuck(std::int32_t rank) const {
  const Program& program = program_of(rank);
  const Rank& state = ranks_[static_cast<std::size_t>(rank)];
  std::uint32_t some = UINT32_MAX;
  const std::uint32_t nodes =
      behind(loop_of(state)) + static_cast<std::uint32_t>(state.waiting_behind.size());
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (waiting(state, node) != 0) continue;
    const std::uint32_t written = written_node(rank, node);
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
              context_.classes.simulated_rank(peers_.of(context_.classes.real_rank(rank),
                                                        context_.graph.transfers[program.payload[written]]))};
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
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.nodes_left == 0; });
}

void RankWalker::require_finished() const {
  const auto unfinished =
      std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.nodes_left > 0; });
  if (unfinished == ranks_.end()) return;
  std::string chain;
  std::vector<bool> seen(ranks_.size());
  auto rank = static_cast<std::int32_t>(unfinished - ranks_.begin());
  // Who waits for whom, until it comes back to a rank that was named, or to one that has finished and will
  // never answer.
  while (rank >= 0 && !seen[static_cast<std::size_t>(rank)]) {
    if (ranks_[static_cast<std::size_t>(rank)].nodes_left == 0) {
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
