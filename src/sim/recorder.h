// Turns what happens during a run into a Result: busy times of every simulated rank, and intervals of those
// that represent a program.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/result.h"
#include "sim/rank_classes.h"

namespace armilla {

class Recorder {
 public:
  Recorder(const Graph& graph, const RankClasses& classes);

  void compute_started(std::int32_t rank, Time now) { at(rank, now).computing = true; }
  void compute_finished(std::int32_t rank, std::uint32_t node, Time start, Time now);
  void collective_issued(std::int32_t rank, std::uint32_t node, Time now);
  void collective_started(std::int32_t rank, std::uint32_t node, Time now);
  void collective_finished(std::int32_t rank, std::uint32_t node, Time now);
  void chunk_finished(std::int32_t rank, std::uint32_t node, std::uint32_t chunk, std::uint32_t dimension,
                      Time start, Time now);

  // Moves everything recorded into `result`: its classes and the skeletons of its collectives (node, program,
  // call and times).
  void finish(Result& result);

 private:
  struct State {
    bool computing = false;
    std::int64_t collectives = 0;  // in flight
    Time since;                    // the last change
  };
  // Accounts the time since the rank's last change to what it was doing.
  State& at(std::int32_t rank, Time now);
  bool records(std::int32_t rank) const { return recorded_[static_cast<std::size_t>(rank)]; }
  Time& time_of(std::vector<std::vector<Time>>& times, std::int32_t rank, std::uint32_t node) {
    return times[graph_.program_of[static_cast<std::size_t>(rank)]][node];
  }

  const Graph& graph_;
  std::vector<RankClass> classes_;
  std::vector<State> states_;
  std::vector<bool> recorded_;
  // Of the recorded rank of each program, by node.
  std::vector<std::vector<Time>> issued_, started_;
  std::vector<CollectiveRecord> collectives_;
};

}  // namespace armilla
