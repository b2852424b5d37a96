#include "sim/engine/recorder.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace armilla {

Recorder::Recorder(const Graph& graph, const RankClasses& classes, bool intervals,
                   std::span<const std::int32_t> chosen, Counting counting)
    : graph_(graph),
      ranks_(classes),
      intervals_(intervals),
      counting_(counting),
      classes_(static_cast<std::size_t>(classes.simulated())),
      states_(classes_.size()),
      first_(classes_.size()),
      chosen_(classes_.size()),
      issued_(classes_.size()) {
  std::vector<bool> represented(graph.programs.size());
  for (std::size_t rank = 0; rank < classes_.size(); ++rank) {
    classes_[rank].representative = classes.real[rank];
    classes_[rank].ranks = classes.sizes[rank];
    classes_[rank].program = graph.program_of[static_cast<std::size_t>(classes.real[rank])];
    first_[rank] = !represented[classes_[rank].program];
    represented[classes_[rank].program] = true;
    if (first_[rank]) record(rank);
  }
  for (const std::int32_t real : chosen) {
    const auto rank = static_cast<std::size_t>(classes.simulated_rank(real));
    if (first_[rank]) continue;
    chosen_[rank] = true;
    record(rank);
  }
}

void Recorder::record(std::size_t rank) {
  issued_[rank].resize(graph_.programs[classes_[rank].program].size());
}

Recorder::State& Recorder::at(std::int32_t rank, Time now) {
  State& state = states_[static_cast<std::size_t>(rank)];
  RankClass& ranks = classes_[static_cast<std::size_t>(rank)];
  const Time passed = std::max(std::min(now, window_.until) - std::max(state.since, window_.from), Time(0));
  if (state.computing > 0) ranks.compute += passed;
  if (state.communicating > 0) ranks.communication += passed;
  if (state.communicating > 0 && state.computing == 0) ranks.exposed_communication += passed;
  if (state.held > 0 && state.communicating == 0 && state.computing == 0) ranks.host_waits += passed;
  ranks.finish = now;
  state.since = now;
  return state;
}

void Recorder::change(std::int32_t rank, std::uint32_t node, Time now, std::int32_t by) {
  const Program& program = graph_.programs[classes_[static_cast<std::size_t>(rank)].program];
  State& state = at(rank, now);
  switch (program.kind[node]) {
    case NodeKind::compute:
    case NodeKind::delay:
      if (program.lane[node] == Lane::device) state.computing += by;
      // Copies to and from the host's memory; what a trace says of its CPU is none.
      if (program.lane[node] == Lane::host && counting_ == Counting::native) state.communicating += by;
      return;
    case NodeKind::collective:
    case NodeKind::send:
      state.communicating += by;
      return;
    case NodeKind::receive:
      if (counting_ == Counting::astra_sim) state.communicating += by;
      return;
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      return;
  }
}

void Recorder::node_started(std::int32_t rank, std::uint32_t node, Time now) {
  change(rank, node, now, 1);
  if (records(rank)) issued_[static_cast<std::size_t>(rank)][node] = now;
}

void Recorder::node_finished(std::int32_t rank, std::uint32_t node, Time now) {
  change(rank, node, now, -1);
  if (!records(rank)) return;
  RankClass& ranks = classes_[static_cast<std::size_t>(rank)];
  const Program& program = graph_.programs[ranks.program];
  const Time issued = issued_[static_cast<std::size_t>(rank)][node];
  const Interval interval{issued, now, node};
  if (program.kind[node] != NodeKind::collective) {
    if (!intervals_) return;
    const bool computes = program.lane[node] == Lane::device;
    (computes ? ranks.computes : ranks.others).push_back(interval);
    return;
  }
  if (intervals_) ranks.collectives.push_back(interval);
  if (!first_[static_cast<std::size_t>(rank)]) return;
  CollectiveRecord record;
  record.program = ranks.program;
  record.node = node;
  record.call = static_cast<std::uint32_t>(program.payload[node]);
  record.issued = issued;
  if (const auto started = started_.find(key(rank, node)); started != started_.end()) {
    record.started = started->second;
    started_.erase(started);
  }
  record.finished = now;
  collectives_.push_back(std::move(record));
}

void Recorder::collective_started(std::int32_t rank, std::uint32_t node, Time now) {
  if (first_[static_cast<std::size_t>(rank)]) started_.emplace(key(rank, node), now);
}

void Recorder::chunk_finished(std::int32_t rank, const ChunkInterval& phase) {
  if (intervals_ && records(rank)) classes_[static_cast<std::size_t>(rank)].chunks.push_back(phase);
}

void Recorder::finish(Result& result) {
  // Ranks that fared alike are one class, whether they were simulated as one or not; but a chosen one keeps
  // its own, for its intervals may differ.
  std::map<std::tuple<std::uint32_t, Time, Time, Time, Time, Time>, std::uint32_t> known;
  std::vector<std::uint32_t> class_of(classes_.size());
  for (std::size_t rank = 0; rank < classes_.size(); ++rank) {
    RankClass& ranks = classes_[rank];
    class_of[rank] = static_cast<std::uint32_t>(result.classes.size());
    if (!chosen_[rank]) {
      class_of[rank] = known
                           .try_emplace({ranks.program, ranks.finish, ranks.compute, ranks.communication,
                                         ranks.exposed_communication, ranks.host_waits},
                                        class_of[rank])
                           .first->second;
    }
    if (class_of[rank] == result.classes.size()) {
      result.classes.push_back(std::move(ranks));
    } else {
      result.classes[class_of[rank]].ranks += ranks.ranks;
    }
  }
  for (const std::int32_t rank : ranks_.simulated_of)
    result.class_of.push_back(class_of[static_cast<std::size_t>(rank)]);
  result.collectives = std::move(collectives_);
  result.ranks = graph_.ranks;
  for (const RankClass& ranks : result.classes) result.iteration = std::max(result.iteration, ranks.finish);
}

}  // namespace armilla
