#include "sim/engine/recorder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace armilla {

Recorder::Recorder(const Graph& graph, const RankClasses& classes, const SimulationOptions& options,
                   Counting counting)
    : graph_(graph),
      ranks_(classes),
      intervals_(options.intervals),
      chunks_(options.intervals && options.chunks),
      keeps_collectives_(options.collectives),
      every_interval_(options.every_interval),
      counting_(counting),
      window_(options.window),
      classes_(static_cast<std::size_t>(classes.simulated())),
      states_(classes_.size()),
      ahead_(classes_.size()),
      first_(classes_.size()),
      chosen_(classes_.size()),
      begun_(classes_.size()) {
  std::vector<bool> represented(graph.programs.size());
  for (std::size_t rank = 0; rank < classes_.size(); ++rank) {
    classes_[rank].representative = classes.real[rank];
    classes_[rank].ranks = classes.sizes[rank];
    classes_[rank].program = graph.program_of[static_cast<std::size_t>(classes.real[rank])];
    first_[rank] = !represented[classes_[rank].program];
    represented[classes_[rank].program] = true;
  }
  for (const std::int32_t real : options.record_ranks) {
    const auto rank = static_cast<std::size_t>(classes.simulated_rank(real));
    if (!first_[rank]) chosen_[rank] = true;
  }
}

void Recorder::pass_pauses(std::int32_t rank, Time now) {
  std::vector<Pause>& pauses = ahead_[static_cast<std::size_t>(rank)];
  std::size_t over = 0;
  for (Pause& pause : pauses) {
    if (pause.from > now) break;
    if (pause.from >= Time(0)) {
      State& state = account(rank, pause.from);
      --state.computing;
      ++state.held;
      pause.from = kBegun;
    }
    if (pause.until > now) break;
    State& state = account(rank, pause.until);
    ++state.computing;
    --state.held;
    ++over;
  }
  pauses.erase(pauses.begin(), pauses.begin() + static_cast<std::ptrdiff_t>(over));
}

Recorder::State& Recorder::account(std::int32_t rank, Time now) {
  State& state = states_[static_cast<std::size_t>(rank)];
  RankClass& ranks = classes_[static_cast<std::size_t>(rank)];
  const Time passed = std::max(std::min(now, window_.until) - std::max(state.since, window_.from), Time(0));
  if (state.computing > 0) ranks.compute += passed;
  if (state.communicating > 0) ranks.communication += passed;
  // Sums over the time since the last change: nothing that they are made of has changed meanwhile.
  if (state.communicating > 0 && state.computing == 0) ranks.exposed_communication += passed;
  // Of what the host holds up only that which nothing else covers.
  if (state.held > 0 && state.communicating == 0 && state.computing == 0) ranks.host_waits += passed;
  ranks.finish = now;
  state.since = now;
  return state;
}

void Recorder::change(std::int32_t rank, std::uint32_t written, Time now, std::int32_t by) {
  const Program& program = graph_.programs[classes_[static_cast<std::size_t>(rank)].program];
  State& state = at(rank, now);
  switch (program.kind[written]) {
    case NodeKind::compute:
    case NodeKind::delay:
      if (program.lane[written] == Lane::device) state.computing += by;
      // Copies to and from the host's memory; what a trace says of its CPU is none.
      if (program.lane[written] == Lane::host && counting_ == Counting::native) state.communicating += by;
      return;
    case NodeKind::collective:
    case NodeKind::send:
      state.communicating += by;
      return;
    // A receive waits for what another rank does; natively that wait is idleness, not communication.
    case NodeKind::receive:
      if (counting_ == Counting::astra_sim) state.communicating += by;
      return;
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      return;
  }
}

void Recorder::node_started(std::int32_t rank, std::uint32_t node, std::uint32_t written, Time now) {
  change(rank, written, now, 1);
  if (records(rank)) begun_[static_cast<std::size_t>(rank)].begin(node, now);
}

void Recorder::Begun::begin(std::uint32_t node, Time now) {
  const std::size_t at = place(node);
  if (at == times.size()) {
    times.push_back(now);
    return;
  }
  if (at > times.size()) times.resize(at + 1, kNotYet);
  times[at] = now;
}

Time Recorder::Begun::end(std::uint32_t node) {
  const Time began = std::exchange(times[place(node)], kOver);
  for (; head < times.size() && times[head] == kOver; ++head) ++first;
  if (head == times.size()) {
    times.clear();
    head = 0;
  } else if (head >= 64 && 2 * head >= times.size()) {
    // Once it is half of the list, so that a node costs O(1), and a long program no memory.
    times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(head));
    head = 0;
  }
  return began;
}

void Recorder::node_finished(std::int32_t rank, std::uint32_t node, std::uint32_t written, Time now) {
  change(rank, written, now, -1);
  if (!records(rank)) return;
  RankClass& ranks = classes_[static_cast<std::size_t>(rank)];
  const Program& program = graph_.programs[ranks.program];
  const Time issued = begun_[static_cast<std::size_t>(rank)].end(node);
  const Interval interval{issued, now, written};
  if (program.kind[written] != NodeKind::collective) {
    if (!intervals_) return;
    if (program.lane[written] != Lane::device) {
      ranks.others.push_back(interval);
    } else {
      add_compute(program, ranks.computes, interval);
    }
    return;
  }
  if (intervals_) ranks.collectives.push_back(interval);
  if (!keeps_collectives_ || !first_[static_cast<std::size_t>(rank)]) return;
  CollectiveRecord record;
  record.program = ranks.program;
  record.node = written;
  record.call = static_cast<std::uint32_t>(program.payload[written]);
  record.issued = issued;
  if (const auto started = started_.find(key(rank, node)); started != started_.end()) {
    record.started = started->second;
    started_.erase(started);
  }
  record.finished = now;
  collectives_.push_back(std::move(record));
}

// Of a trace's millions of computations, what is made of sums needs only when any of them ran. What is
// repeated is counted interval by interval.
void Recorder::add_compute(const Program& program, std::vector<Interval>& computes,
                           const Interval& interval) const {
  const auto may_join = [&](std::uint32_t node) { return program.layer[node] < 0; };
  const bool joins = !every_interval_ && program.loops.empty() && !computes.empty() &&
                     computes.back().end == interval.start && may_join(interval.node) &&
                     may_join(computes.back().node);
  if (joins) {
    computes.back().end = interval.end;
  } else {
    computes.push_back(interval);
  }
}

void Recorder::collective_started(std::int32_t rank, std::uint32_t node, Time now) {
  // Again where it was to be looked up, and is played after all, behind others
  // (MemoisedCollectives::catch_up).
  if (keeps_collectives_ && first_[static_cast<std::size_t>(rank)])
    started_.insert_or_assign(key(rank, node), now);
}

Recorder::Sums Recorder::sums(Time now) {
  // Pauses that chains have announced end at moments of their own, before the sums are read.
  for (std::size_t rank = 0; rank < ahead_.size(); ++rank) {
    if (!ahead_[rank].empty()) pass_pauses(static_cast<std::int32_t>(rank), now);
  }
  Sums sums;
  sums.collectives = collectives_.size();
  for (std::size_t rank = 0; rank < classes_.size(); ++rank) {
    const RankClass& ranks = classes_[rank];
    if (intervals_)
      sums.intervals.push_back({ranks.computes.size(), ranks.collectives.size(), ranks.others.size()});
    const State& state = states_[rank];
    const Time passed = std::max(std::min(now, window_.until) - std::max(state.since, window_.from), Time(0));
    const bool computes = state.computing > 0, communicates = state.communicating > 0;
    sums.of_rank.push_back(
        {classes_[rank].compute + (computes ? passed : Time(0)),
         classes_[rank].communication + (communicates ? passed : Time(0)),
         classes_[rank].exposed_communication + (communicates && !computes ? passed : Time(0)),
         classes_[rank].host_waits + (state.held > 0 && !communicates && !computes ? passed : Time(0))});
  }
  return sums;
}

// What was recorded between the two moments happens so many more times.
void Recorder::repeat(const Sums& from, const Sums& until, const Repetition& repetition) {
  // Where the window is seen from now on.
  window_.from -= repetition.skipped();
  if (window_.until < kEndOfTime) window_.until -= repetition.skipped();
  std::vector<std::int32_t> ranks(classes_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  repeat(ranks, from, until, repetition);
}

void Recorder::repeat(std::span<const std::int32_t> ranks, const Sums& from, const Sums& until,
                      const Repetition& repetition) {
  const std::int64_t times = repetition.times;
  std::vector<bool> records_of(graph_.programs.size());  // whether they are of these ranks
  for (const std::int32_t r : ranks) {
    const auto rank = static_cast<std::size_t>(r);
    RankClass& all = classes_[rank];
    all.repeated.push_back(repetition);
    if (first_[rank]) records_of[all.program] = true;
    const auto more = [&](std::size_t sum) {
      return (until.of_rank[rank][sum] - from.of_rank[rank][sum]) * times;
    };
    all.compute += more(0);
    all.communication += more(1);
    all.exposed_communication += more(2);
    all.host_waits += more(3);
    // Intervals stay in the list once, with the times that they happened; readers expand them (ir/result.h).
    std::size_t list = 0;
    for (auto* const intervals : {&all.computes, &all.collectives, &all.others}) {
      for (std::size_t i = intervals_ ? from.intervals[rank][list] : 0;
           intervals_ && i < until.intervals[rank][list]; ++i)
        (*intervals)[i].times += static_cast<std::uint32_t>(times);
      ++list;
    }
  }
  for (std::size_t record = from.collectives; record < until.collectives; ++record) {
    if (records_of[collectives_[record].program]) collectives_[record].times += times;
  }
}

void Recorder::chunk_finished(std::int32_t rank, const ChunkInterval& phase) {
  if (keeps_chunks(rank)) classes_[static_cast<std::size_t>(rank)].chunks.push_back(phase);
}

void Recorder::finish(Result& result) {
  // Ranks that fared alike are one class, whether they were simulated as one or not; but a chosen one keeps
  // its own, for its intervals may differ.
  for (RankClass& ranks : classes_) {
    for (const Repetition& repetition : ranks.repeated) ranks.finish += repetition.skipped();
  }
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
