#include "sim/engine/rank_walker.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

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

}  // namespace

RankWalker::RankWalker(const RunContext& context, const Executors& executors, bool one_communication)
    : context_(context),
      executors_(executors),
      one_communication_(one_communication),
      peers_(context.graph),
      target_(context.queue.add_handler(*this)),
      ranks_(context.classes.real.size()) {
  const Graph& graph = context.graph;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    ranks_[r].program = graph.program_of[static_cast<std::size_t>(context.classes.real[r])];
  for (const Program& program : graph.programs) {
    Successors successors;
    successors.first.assign(program.size() + std::size_t{1}, 0);
    for (const std::uint32_t node : program.dependence) ++successors.first[node + std::size_t{1}];
    for (std::size_t i = 1; i < successors.first.size(); ++i) successors.first[i] += successors.first[i - 1];
    successors.node.resize(program.dependence.size());
    std::vector<std::uint32_t> next(successors.first.begin(), successors.first.end() - 1);
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      for (const std::uint32_t dependence : program.dependences(node))
        successors.node[next[dependence]++] = node;
    }
    if (program.issue_time > Time(0)) successors.issues = issues_of(program);
    successors_.push_back(std::move(successors));
  }
}

void RankWalker::start() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    const Program& program = program_of(rank);
    ranks_[r].nodes_left = program.size();
    ranks_[r].waiting_for.resize(program.size());
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      const std::size_t dependences = program.dependences(node).size();
      ranks_[r].waiting_for[node] = static_cast<std::uint32_t>(dependences);
      if (dependences == 0) make_ready(rank, node);
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) issue_ready(static_cast<std::int32_t>(r));
}

bool RankWalker::is_exclusive(Lane lane) const {
  return lane == Lane::device || lane == Lane::host || (lane == Lane::communication && one_communication_);
}

void RankWalker::make_ready(std::int32_t r, std::uint32_t node) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const Program& program = program_of(r);
  const std::vector<std::uint32_t>& issues = successors_[rank.program].issues;
  if (!issues.empty() && issues[node] > 0) {
    const Time issued = later(program.issue_start, saturating_multiply(program.issue_time, issues[node]));
    if (issued > context_.queue.now()) {
      executors_.recorder.host_waited_for(r, context_.queue.now(), 1);
      const std::uint64_t argument = std::uint64_t{static_cast<std::uint32_t>(r)} << 32 | node;
      context_.order.schedule(r, issued, target_, kIssued | argument);
      return;
    }
  }
  put_on_lane(rank, program, node);
}

void RankWalker::put_on_lane(Rank& rank, const Program& program, std::uint32_t node) const {
  std::vector<std::uint32_t>& ready = rank.ready[static_cast<std::size_t>(program.lane[node])];
  ready.push_back(node);
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
}

// Whatever is issued may finish at once and make others ready, so the state is looked at afresh every time.
void RankWalker::issue_ready(std::int32_t r) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  for (;;) {
    std::size_t chosen = kLanes;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (rank.ready[lane].empty() || rank.busy[lane]) continue;
      if (chosen == kLanes || rank.ready[lane].front() < rank.ready[chosen].front()) chosen = lane;
    }
    if (chosen == kLanes) return;
    std::vector<std::uint32_t>& ready = rank.ready[chosen];
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const std::uint32_t node = ready.back();
    ready.pop_back();
    rank.busy[chosen] = is_exclusive(static_cast<Lane>(chosen));
    issue(r, node);
  }
}

void RankWalker::issue(std::int32_t rank, std::uint32_t node) {
  const Program& program = program_of(rank);
  executors_.recorder.node_started(rank, node, context_.queue.now());
  const std::uint64_t payload = program.payload[node];
  switch (program.kind[node]) {
    case NodeKind::compute:
      finish_after(rank, node, executors_.times.of_work(rank, node, payload));
      return;
    case NodeKind::delay: {
      const Time duration(static_cast<std::int64_t>(payload));
      const bool computes = program.lane[node] == Lane::device;
      finish_after(rank, node, computes ? executors_.times.of_delay(rank, node, duration) : duration);
      return;
    }
    case NodeKind::collective:
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
  const PointToPoint& transfer = context_.graph.transfers[program.payload[node]];
  const Notice done{target_, std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node};
  const std::int32_t here = context_.classes.real_rank(rank), there = peers_.of(here, transfer);
  if (program.kind[node] == NodeKind::send) {
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

void RankWalker::handle(std::uint64_t argument) {
  const auto rank = static_cast<std::int32_t>((argument & ~kIssued) >> 32);
  const auto node = static_cast<std::uint32_t>(argument);
  if ((argument & kIssued) == 0) {
    finished(rank, node);
    return;
  }
  executors_.recorder.host_waited_for(rank, context_.queue.now(), -1);
  put_on_lane(ranks_[static_cast<std::size_t>(rank)], program_of(rank), node);
  act(rank);
}

void RankWalker::finished(std::int32_t r, std::uint32_t node) {
  const Program& program = program_of(r);
  executors_.recorder.node_finished(r, node, context_.queue.now());
  executors_.progress.node_done(program.kind[node], program.payload[node]);
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  --rank.nodes_left;
  rank.busy[static_cast<std::size_t>(program.lane[node])] = false;
  rank.waiting_for[node] = kDone;
  const Successors& successors = successors_[rank.program];
  for (std::uint32_t i = successors.first[node]; i < successors.first[node + std::size_t{1}]; ++i) {
    if (--rank.waiting_for[successors.node[i]] == 0) make_ready(r, successors.node[i]);
  }
  act(r);
}

void RankWalker::act(std::int32_t rank) {
  if (context_.order.in_rounds()) {
    context_.order.mark(rank);
  } else {
    issue_ready(rank);
  }
}

void RankWalker::collective_started(std::int32_t rank, std::uint32_t node) {
  executors_.recorder.collective_started(rank, node, context_.queue.now());
}

void RankWalker::collective_finished(std::int32_t rank, std::uint32_t node) {
  const auto call = static_cast<std::uint32_t>(program_of(rank).payload[node]);
  const Time beyond = executors_.collectives.beyond(rank, call);
  if (beyond > Time(0)) {
    finish_after(rank, node, beyond);
  } else {
    finished(rank, node);
  }
}

std::string RankWalker::describe(std::int32_t rank, std::uint32_t node) const {
  return fmt::format("rank {} waits in '{}' (node {})", context_.classes.real_rank(rank),
                     context_.graph.names[program_of(rank).name[node]], program_of(rank).shown_id(node));
}

// With no event left, something the rank has issued never ends: a collective some member never issues, or a
// receive of what is never sent.
std::pair<std::uint32_t, std::int32_t> RankWalker::stuck(std::int32_t rank) const {
  const Program& program = program_of(rank);
  const Rank& state = ranks_[static_cast<std::size_t>(rank)];
  std::uint32_t some = UINT32_MAX;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (state.waiting_for[node] != 0) continue;
    const auto lane = static_cast<std::size_t>(program.lane[node]);
    const std::vector<std::uint32_t>& ready = state.ready[lane];
    if (std::find(ready.begin(), ready.end(), node) != ready.end()) continue;  // not issued
    if (program.kind[node] == NodeKind::collective) {
      const std::int32_t missing = executors_.collectives.missing_member(rank, node);
      if (missing >= 0) return {node, missing};
    }
    if (program.kind[node] == NodeKind::send || program.kind[node] == NodeKind::receive)
      return {node, context_.classes.simulated_rank(peers_.of(
                        context_.classes.real_rank(rank), context_.graph.transfers[program.payload[node]]))};
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
