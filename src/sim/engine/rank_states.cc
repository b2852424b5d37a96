#include "sim/engine/rank_states.h"

namespace armilla {

RankStates::RankStates(const Graph& job, const RankClasses& classes, bool chains)
    : graph(job), ranks(classes.real.size()) {
  // Traces of a job often differ in durations alone: what follows from dependences is then kept once.
  std::vector<std::uint32_t> successors_of;
  for (const Program& program : graph.programs) {
    has_loops = has_loops || !program.loops.empty();
    stretches.push_back(stretches_in(program));
    const std::size_t number = stretches.size() - 1;
    if (number == 0 || !same_successors(graph, graph.programs[number - 1], program, chains))
      successors.push_back(Successors(graph, program, stretches.back(), chains));
    successors_of.push_back(static_cast<std::uint32_t>(successors.size() - 1));
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].program = graph.program_of[static_cast<std::size_t>(classes.real[r])];
    ranks[r].successors = successors_of[ranks[r].program];
  }
}

void RankStates::begin(Rank& rank) const {
  const Program& program = graph.programs[rank.program];
  rank.nodes_left = program.length();
  rank.awaited = next_awaited(rank, 0);
  for (const Stretch& stretch : stretches_of(rank)) {
    std::vector<std::uint32_t>& left = rank.waiting.emplace_back().left;
    left.reserve(stretch.loop.end - stretch.start);
    for (std::uint32_t written = stretch.start; written < stretch.loop.end; ++written)
      left.push_back(static_cast<std::uint32_t>(program.dependences(written).size()));
  }
}

std::uint32_t RankStates::waiting(const Rank& rank, std::uint32_t node) const {
  const Stretch& stretch = stretch_at(rank, node);
  const std::vector<std::uint32_t>& left = rank.waiting[stretch.number].left;
  const std::uint32_t local = node - stretch.skipped;
  if (local - stretch.start < left.size()) return left[local - stretch.start];
  const Program& program = graph.programs[rank.program];
  // Not touched yet: it waits for all of its dependences. So a loop of many periods takes the memory of what
  // is under way.
  return static_cast<std::uint32_t>(program.dependences(stretch.written(local)).size());
}

void RankStates::extend(const Rank& rank, const Stretch& stretch, Waiting& waiting,
                        std::uint32_t local) const {
  const Program& program = graph.programs[rank.program];
  std::vector<std::uint32_t>& left = waiting.left;
  for (auto next = static_cast<std::uint32_t>(stretch.start + left.size()); next <= local; ++next)
    left.push_back(static_cast<std::uint32_t>(program.dependences(stretch.written(next)).size()));
}

Time RankStates::issued_at(const Rank& rank, std::uint32_t node) const {
  const Program& program = graph.programs[rank.program];
  const Successors& known = successors_of(rank);
  const Stretch& stretch = stretch_at(rank, node);
  const std::uint32_t local = node - stretch.skipped, written = stretch.written(local);
  std::int64_t issues = known.issues[written];
  if (local > written)
    issues += std::int64_t{(local - written) / stretch.loop.period} *
              known.reaches[stretch.number].issues_in_period;
  for (std::size_t s = 0; s < stretch.number; ++s)
    issues += std::int64_t{stretches_of(rank)[s].loop.more} * known.reaches[s].issues_in_period;
  return later(program.issue_start, saturating_multiply(program.issue_time, issues)) + rank.host_shift;
}

std::uint32_t RankStates::next_awaited(const Rank& rank, std::uint32_t from) const {
  const std::vector<bool>& awaited = successors_of(rank).awaited;
  if (awaited.empty()) return kDone;
  for (std::uint32_t node = from; node < length_of(rank); ++node) {
    if (awaited[written_node(rank, node)]) return node;
  }
  return kDone;
}

}  // namespace armilla
