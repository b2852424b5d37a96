#include "sim/recorder.h"

#include <map>
#include <tuple>

namespace armilla {

Recorder::Recorder(const Graph& graph, const RankClasses& classes)
    : graph_(graph),
      classes_(static_cast<std::size_t>(classes.simulated())),
      states_(classes_.size()),
      recorded_(classes_.size()),
      issued_(graph.programs.size()),
      started_(graph.programs.size()) {
  for (std::size_t rank = 0; rank < classes_.size(); ++rank) {
    const std::uint32_t program = graph.program_of[rank];
    classes_[rank].representative = static_cast<std::int32_t>(rank);
    classes_[rank].ranks = classes.size();
    classes_[rank].program = program;
    if (!issued_[program].empty() || graph.programs[program].size() == 0) continue;
    recorded_[rank] = true;
    issued_[program].resize(graph.programs[program].size());
    started_[program].resize(graph.programs[program].size());
  }
}

Recorder::State& Recorder::at(std::int32_t rank, Time now) {
  State& state = states_[static_cast<std::size_t>(rank)];
  RankClass& ranks = classes_[static_cast<std::size_t>(rank)];
  const Time passed = now - state.since;
  if (state.computing) ranks.compute += passed;
  if (state.collectives > 0) ranks.communication += passed;
  if (state.collectives > 0 && !state.computing) ranks.exposed_communication += passed;
  ranks.finish = now;
  state.since = now;
  return state;
}

void Recorder::compute_finished(std::int32_t rank, std::uint32_t node, Time start, Time now) {
  at(rank, now).computing = false;
  if (records(rank)) classes_[static_cast<std::size_t>(rank)].computes.push_back({start, now, node});
}

void Recorder::collective_issued(std::int32_t rank, std::uint32_t node, Time now) {
  ++at(rank, now).collectives;
  if (records(rank)) time_of(issued_, rank, node) = now;
}

void Recorder::collective_started(std::int32_t rank, std::uint32_t node, Time now) {
  if (records(rank)) time_of(started_, rank, node) = now;
}

void Recorder::collective_finished(std::int32_t rank, std::uint32_t node, Time now) {
  --at(rank, now).collectives;
  if (!records(rank)) return;
  const std::uint32_t program = graph_.program_of[static_cast<std::size_t>(rank)];
  const Time issued = time_of(issued_, rank, node);
  classes_[static_cast<std::size_t>(rank)].collectives.push_back({issued, now, node});
  CollectiveRecord record;
  record.program = program;
  record.node = node;
  record.call = static_cast<std::uint32_t>(graph_.programs[program].payload[node]);
  record.issued = issued;
  record.started = time_of(started_, rank, node);
  record.finished = now;
  collectives_.push_back(std::move(record));
}

void Recorder::chunk_finished(std::int32_t rank, std::uint32_t node, std::uint32_t chunk,
                              std::uint32_t dimension, Time start, Time now) {
  if (records(rank))
    classes_[static_cast<std::size_t>(rank)].chunks.push_back({start, now, node, chunk, dimension});
}

void Recorder::finish(Result& result) {
  // Ranks that fared alike are one class, whether they were simulated as one or not.
  std::map<std::tuple<std::uint32_t, Time, Time, Time, Time>, std::size_t> known;
  for (RankClass& ranks : classes_) {
    const auto [found, fresh] = known.try_emplace(
        {ranks.program, ranks.finish, ranks.compute, ranks.communication, ranks.exposed_communication},
        result.classes.size());
    if (fresh) {
      result.classes.push_back(std::move(ranks));
    } else {
      result.classes[found->second].ranks += ranks.ranks;
    }
  }
  result.collectives = std::move(collectives_);
}

}  // namespace armilla
