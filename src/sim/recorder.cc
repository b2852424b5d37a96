#include "sim/recorder.h"

#include <map>
#include <tuple>

namespace armilla {

Recorder::Recorder(const Graph& graph, const RankClasses& classes, bool intervals)
    : graph_(graph),
      intervals_(intervals),
      classes_(static_cast<std::size_t>(classes.simulated())),
      states_(classes_.size()),
      recorded_(classes_.size()),
      issued_(graph.programs.size()),
      started_(graph.programs.size()) {
  std::vector<bool> represented(graph.programs.size());
  for (std::size_t rank = 0; rank < classes_.size(); ++rank) {
    const std::uint32_t program = graph.program_of[rank];
    classes_[rank].representative = static_cast<std::int32_t>(rank);
    classes_[rank].ranks = classes.size();
    classes_[rank].program = program;
    if (represented[program]) continue;
    represented[program] = true;
    recorded_[rank] = true;
    issued_[program].resize(graph.programs[program].size());
    started_[program].resize(graph.programs[program].size());
  }
}

Recorder::State& Recorder::at(std::int32_t rank, Time now) {
  State& state = states_[static_cast<std::size_t>(rank)];
  RankClass& ranks = classes_[static_cast<std::size_t>(rank)];
  const Time passed = now - state.since;
  if (state.computing > 0) ranks.compute += passed;
  if (state.communicating > 0) ranks.communication += passed;
  if (state.communicating > 0 && state.computing == 0) ranks.exposed_communication += passed;
  ranks.finish = now;
  state.since = now;
  return state;
}

void Recorder::change(std::int32_t rank, std::uint32_t node, Time now, std::int32_t by) {
  const Program& program = graph_.programs[graph_.program_of[static_cast<std::size_t>(rank)]];
  State& state = at(rank, now);
  switch (program.kind[node]) {
    case NodeKind::compute:
    case NodeKind::delay:
      if (program.lane[node] == Lane::device) state.computing += by;
      return;
    case NodeKind::collective:
    case NodeKind::send:
    case NodeKind::receive:
      state.communicating += by;
      return;
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      return;
  }
}

void Recorder::node_started(std::int32_t rank, std::uint32_t node, Time now) {
  change(rank, node, now, 1);
  if (records(rank)) time_of(issued_, rank, node) = now;
}

void Recorder::node_finished(std::int32_t rank, std::uint32_t node, Time now) {
  change(rank, node, now, -1);
  if (!records(rank)) return;
  const std::uint32_t program_id = graph_.program_of[static_cast<std::size_t>(rank)];
  const Program& program = graph_.programs[program_id];
  RankClass& ranks = classes_[static_cast<std::size_t>(rank)];
  const Time issued = time_of(issued_, rank, node);
  const Interval interval{issued, now, node};
  if (program.kind[node] != NodeKind::collective) {
    if (!intervals_) return;
    const bool computes = program.lane[node] == Lane::device;
    (computes ? ranks.computes : ranks.others).push_back(interval);
    return;
  }
  if (intervals_) ranks.collectives.push_back(interval);
  CollectiveRecord record;
  record.program = program_id;
  record.node = node;
  record.call = static_cast<std::uint32_t>(program.payload[node]);
  record.issued = issued;
  record.started = time_of(started_, rank, node);
  record.finished = now;
  collectives_.push_back(std::move(record));
}

void Recorder::collective_started(std::int32_t rank, std::uint32_t node, Time now) {
  if (records(rank)) time_of(started_, rank, node) = now;
}

void Recorder::chunk_finished(std::int32_t rank, std::uint32_t node, const ChunkPhase& phase, Time now) {
  if (!intervals_ || !records(rank)) return;
  classes_[static_cast<std::size_t>(rank)].chunks.push_back({phase.start, now, node, phase.chunk,
                                                             phase.dimension, phase.phase, phase.ready,
                                                             phase.message_time, phase.messages});
}

void Recorder::finish(Result& result) {
  // Ranks that fared alike are one class, whether they were simulated as one or not.
  std::map<std::tuple<std::uint32_t, Time, Time, Time, Time>, std::size_t> known;
  for (RankClass& ranks : classes_) {
    const auto [found, fresh] = known.try_emplace(
        {ranks.program, ranks.finish, ranks.compute, ranks.communication, ranks.exposed_communication},
        result.classes.size());
    result.class_of.insert(result.class_of.end(), static_cast<std::size_t>(ranks.ranks),
                           static_cast<std::uint32_t>(found->second));
    if (fresh) {
      result.classes.push_back(std::move(ranks));
    } else {
      result.classes[found->second].ranks += ranks.ranks;
    }
  }
  result.collectives = std::move(collectives_);
}

}  // namespace armilla
