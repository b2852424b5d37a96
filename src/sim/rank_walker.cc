#include "sim/rank_walker.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace armilla {

RankWalker::RankWalker(const Graph& graph, const CostModel& cost, const RankClasses& classes,
                       EventQueue& queue, Recorder& recorder)
    : graph_(graph),
      queue_(queue),
      recorder_(recorder),
      target_(queue.add_handler(*this)),
      ranks_(static_cast<std::size_t>(classes.simulated())) {
  for (const Work& work : graph.works) work_times_.push_back(cost.time(work));
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
    successors_.push_back(std::move(successors));
  }
}

void RankWalker::start(CollectiveRunner& runner) {
  runner_ = &runner;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    const Program& program = program_of(rank);
    ranks_[r].nodes_left = program.size();
    ranks_[r].waiting_for.resize(program.size());
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      ranks_[r].waiting_for[node] = static_cast<std::uint32_t>(program.dependences(node).size());
    }
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.dependences(node).empty()) issue(rank, node);
    }
    start_computing(rank);
  }
}

Time RankWalker::duration(const Program& program, std::uint32_t node) const {
  const std::uint64_t payload = program.payload[node];
  return program.kind[node] == NodeKind::compute ? work_times_[payload]
                                                 : Time(static_cast<std::int64_t>(payload));
}

void RankWalker::issue(std::int32_t rank, std::uint32_t node) {
  const Program& program = program_of(rank);
  if (program.kind[node] == NodeKind::collective) {
    recorder_.collective_issued(rank, node, queue_.now());
    runner_->issue(rank, node, static_cast<std::uint32_t>(program.payload[node]));
    return;
  }
  std::vector<std::uint32_t>& ready = ranks_[static_cast<std::size_t>(rank)].ready;
  ready.push_back(node);
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
}

void RankWalker::start_computing(std::int32_t rank) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.computing || state.ready.empty()) return;
  std::pop_heap(state.ready.begin(), state.ready.end(), std::greater<>());
  const std::uint32_t node = state.ready.back();
  state.ready.pop_back();
  state.computing = true;
  state.compute_start = queue_.now();
  recorder_.compute_started(rank, queue_.now());
  queue_.schedule(later(queue_.now(), duration(program_of(rank), node)), target_,
                  std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node);
}

void RankWalker::handle(std::uint64_t argument) {
  const auto rank = static_cast<std::int32_t>(argument >> 32);
  const auto node = static_cast<std::uint32_t>(argument);
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  state.computing = false;
  recorder_.compute_finished(rank, node, state.compute_start, queue_.now());
  finished(rank, node);
}

void RankWalker::finished(std::int32_t rank, std::uint32_t node) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  --state.nodes_left;
  const Successors& successors = successors_[graph_.program_of[static_cast<std::size_t>(rank)]];
  for (std::uint32_t i = successors.first[node]; i < successors.first[node + 1]; ++i) {
    if (--state.waiting_for[successors.node[i]] == 0) issue(rank, successors.node[i]);
  }
  start_computing(rank);
}

void RankWalker::collective_started(std::int32_t rank, std::uint32_t node) {
  recorder_.collective_started(rank, node, queue_.now());
}

void RankWalker::collective_finished(std::int32_t rank, std::uint32_t node) {
  recorder_.collective_finished(rank, node, queue_.now());
  finished(rank, node);
}

void RankWalker::chunk_finished(std::int32_t rank, std::uint32_t node, std::uint32_t chunk,
                                std::uint32_t dimension, Time start) {
  recorder_.chunk_finished(rank, node, chunk, dimension, start, queue_.now());
}

std::string RankWalker::describe(std::int32_t rank, std::uint32_t node) const {
  return fmt::format("rank {} waits in '{}' (node {})", rank, graph_.names[program_of(rank).name[node]],
                     node);
}

// The collective an unfinished rank is stuck in: with no event left, something it issued never ends.
std::uint32_t RankWalker::stuck_node(std::int32_t rank) const {
  const Program& program = program_of(rank);
  const Rank& state = ranks_[static_cast<std::size_t>(rank)];
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.kind[node] == NodeKind::collective && state.waiting_for[node] == 0 &&
        runner_->missing_member(rank, node) >= 0)
      return node;
  }
  return 0;
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
    seen[static_cast<std::size_t>(rank)] = true;
    const std::uint32_t node = stuck_node(rank);
    const std::int32_t missing = runner_->missing_member(rank, node);
    chain += fmt::format("{}{}", chain.empty() ? "" : "; ", describe(rank, node));
    if (missing >= 0) chain += fmt::format(" for rank {}", missing);
    rank = missing;
  }
  throw Error("simulation", fmt::format("the run cannot finish: {}", chain),
              "the members of a group must issue the same collectives in the same order");
}

}  // namespace armilla
