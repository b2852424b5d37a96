// Turns what happens during a run into a Result: busy times of every simulated rank, and intervals of those
// that represent a program or that the user asked for.
//
// A rank communicates while a collective or a send of it is under way; it computes while a node occupies its
// device lane. Waiting for a message is neither, but ASTRA-sim's statistics count it as communication.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "event/state_digest.h"
#include "ir/result.h"
#include "sim/plan/rank_classes.h"
#include "sim/simulate.h"

namespace armilla {

enum class Counting : std::uint8_t { native, astra_sim };

class Recorder {
 public:
  // What the options say of intervals, chunks, collectives and the window. Intervals are kept for the first
  // rank of every program and for the classes of the ranks to be recorded.
  Recorder(const Graph& graph, const RankClasses& classes, const SimulationOptions& options,
           Counting counting);

  // `written`: where the node is written in its program (ir/graph.h).
  void node_started(std::int32_t rank, std::uint32_t node, std::uint32_t written, Time now);
  void node_finished(std::int32_t rank, std::uint32_t node, std::uint32_t written, Time now);
  // The first chunk of a collective began to work.
  void collective_started(std::int32_t rank, std::uint32_t node, Time now);
  void chunk_finished(std::int32_t rank, const ChunkInterval& phase);
  bool keeps_chunks(std::int32_t rank) const { return chunks_ && records(rank); }
  // From now on so many nodes more could begin, had the host issued them.
  void host_waited_for(std::int32_t rank, Time now, std::int32_t by) { at(rank, now).held += by; }
  // Whether nothing but sums is kept.
  bool keeps_sums_only() const { return !intervals_ && !keeps_collectives_; }
  // Of a chain of computations under way: at `end` one is done, and at `begin` the next one begins, held back
  // by the host alone. In ascending order; both may be still to come.
  void next_computation(std::int32_t rank, Time end, Time begin) {
    if (begin > end) ahead_[static_cast<std::size_t>(rank)].push_back({end, begin});
  }

  // Sums up to a moment, and what lies between two of them so many times more.
  struct Sums {
    std::vector<std::array<Time, 4>> of_rank;  // computing, communicating, exposed, waiting for the host
    std::vector<std::array<std::size_t, 3>> intervals;  // of each rank so far: computes, collectives, others
    std::size_t collectives = 0;                        // records so far
  };
  Sums sums(Time now);
  void repeat(const Sums& from, const Sums& until, const Repetition& repetition);
  // The same of some ranks alone, without a window.
  void repeat(std::span<const std::int32_t> ranks, const Sums& from, const Sums& until,
              const Repetition& repetition);
  // From now on the rank is so much later; it does nothing.
  void pause(std::int32_t rank, Time now, Time pause) {
    classes_[static_cast<std::size_t>(rank)].repeated.push_back({now, now, 0, pause});
  }
  // Whether it communicates, and whether it does anything at all.
  bool communicates(std::int32_t rank) const {
    return states_[static_cast<std::size_t>(rank)].communicating > 0;
  }
  bool is_idle(std::int32_t rank) const {
    const State& state = states_[static_cast<std::size_t>(rank)];
    return state.computing == 0 && state.communicating == 0 && state.held == 0;
  }
  // When nodes under way began. `place` tells where a rank's node stands (RankWalker).
  void add_issue(StateDigest& state, std::int32_t rank, std::uint32_t node, std::int64_t place,
                 Time now) const {
    if (records(rank)) state.add('r', 0, rank, place, now.value - begun_at(rank, node).value);
  }
  template <class Place>
  void add_starts(StateDigest& state, Time now, const Place& place) const {
    for (const auto& [key, start] : started_) {
      const auto rank = static_cast<std::int32_t>(key >> 32);
      state.add('r', 1, rank, place(rank, static_cast<std::uint32_t>(key)), now.value - start.value);
    }
  }
  // Where the host holds up a chain of the rank.
  void add_pauses(StateDigest& state, std::int32_t rank, Time now) const {
    for (const Pause& pause : ahead_[static_cast<std::size_t>(rank)]) {
      if (pause.until > now)
        state.add('r', 2, rank, std::max(pause.from, now).value - now.value, pause.until.value - now.value);
    }
  }

  // When the first of the nodes under way began, of ranks whose nodes are recorded.
  Time oldest_under_way() const {
    Time oldest = kEndOfTime;
    for (const Begun& begun : begun_) {
      for (std::size_t at = begun.head; at < begun.times.size(); ++at) {
        if (begun.times[at] >= Time(0)) oldest = std::min(oldest, begun.times[at]);
      }
    }
    return oldest;
  }

  // Moves everything recorded into `result`: its ranks, classes and iteration, and the skeletons of its
  // collectives (node, program, call and times).
  void finish(Result& result);

 private:
  struct State {
    std::int32_t computing = 0;      // nodes under way
    std::int32_t communicating = 0;  // likewise
    std::int32_t held = 0;           // that wait for the host only
    Time since;                      // the last change
  };
  Time begun_at(std::int32_t rank, std::uint32_t node) const {
    const Begun& begun = begun_[static_cast<std::size_t>(rank)];
    return begun.times[begun.place(node)];
  }
  // Between two computations of a chain.
  struct Pause {
    Time from, until;  // `from`: kBegun once it is accounted
  };
  static constexpr Time kBegun = Time(-1);
  // Accounts the time since the rank's last change to what it was doing.
  State& at(std::int32_t rank, Time now) {
    if (!ahead_[static_cast<std::size_t>(rank)].empty()) [[unlikely]]
      pass_pauses(rank, now);
    return account(rank, now);
  }
  State& account(std::int32_t rank, Time now);
  void pass_pauses(std::int32_t rank, Time now);
  void change(std::int32_t rank, std::uint32_t written, Time now, std::int32_t by);
  void add_compute(const Program& program, std::vector<Interval>& computes, const Interval& interval) const;
  static std::uint64_t key(std::int32_t rank, std::uint32_t node) {
    return std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node;
  }
  bool records(std::int32_t rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return (intervals_ || keeps_collectives_) && (first_[r] || chosen_[r]);
  }

  // When a rank's nodes began, from the first on that is not over.
  struct Begun {
    static constexpr Time kNotYet = Time(-1), kOver = Time(-2);
    std::uint32_t first = 0;  // all nodes before it are over
    std::size_t head = 0;     // its place
    std::vector<Time> times;  // those before `head` mean nothing

    std::size_t place(std::uint32_t node) const { return head + (node - first); }
    void begin(std::uint32_t node, Time now);
    Time end(std::uint32_t node);  // returns when it began
  };

  const Graph& graph_;
  const RankClasses& ranks_;
  bool intervals_, chunks_, keeps_collectives_, every_interval_;
  Counting counting_;
  TimeWindow window_;
  std::vector<RankClass> classes_;
  std::vector<State> states_;
  std::vector<std::vector<Pause>> ahead_;            // per rank, those that are not over
  std::vector<bool> first_;                          // of its program
  std::vector<bool> chosen_;                         // by the user
  std::vector<Begun> begun_;                         // of the recorded ranks
  std::unordered_map<std::uint64_t, Time> started_;  // of collectives under way on a first rank, by `key`
  std::vector<CollectiveRecord> collectives_;
};

}  // namespace armilla
