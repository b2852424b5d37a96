// For tests of text workloads: the times of a text graph's nodes
//   play               where every collective takes a given time, whatever else is in flight
//   play_on_one_queue  where the chunks of all collectives take turns, the most preferred of those waiting
//                      first, as in ASTRA-sim 1.0 with one dimension, one queue and one active chunk
// Fails the test when two computations overlap.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include "ir/result.h"
#include "trace/text.h"

namespace armilla {

inline Result play(const TextGraph& text, const std::function<Time(const CollectiveCall&)>& duration) {
  const Program& program = text.graph.programs.at(0);
  Result result;
  result.ranks = text.graph.ranks;
  RankClass& ranks = result.classes.emplace_back();
  std::vector<Time> end(program.size());
  Time computing;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    Time start;
    for (const std::uint32_t before : program.dependences(node)) start = std::max(start, end.at(before));
    const bool communicates = program.kind[node] == NodeKind::collective;
    end[node] = start + (communicates ? duration(text.graph.collectives.at(program.payload[node]))
                                      : Time(static_cast<std::int64_t>(program.payload[node])));
    const Interval interval{start, end[node], node};
    if (communicates) {
      ranks.collectives.push_back(interval);
    } else if (program.lane[node] == Lane::device) {
      EXPECT_GE(start, computing) << "node " << node << " overlaps another computation";
      computing = end[node];
      ranks.computes.push_back(interval);
    } else {
      ranks.others.push_back(interval);
    }
    result.iteration = std::max(result.iteration, end[node]);
  }
  return result;
}

class OneQueue {
 public:
  // `chunks` gives the times of a collective's chunks; `lifo` is the policy where a call prefers none.
  OneQueue(const TextGraph& text, bool lifo, std::function<std::vector<Time>(const CollectiveCall&)> chunks)
      : text_(text), program_(text.graph.programs.at(0)), lifo_(lifo), chunks_(std::move(chunks)) {}

  Result play() {
    result_.ranks = text_.graph.ranks;
    result_.classes.emplace_back();
    waiting_for_.resize(program_.size());
    dependents_.resize(program_.size());
    start_.resize(program_.size());
    left_.resize(program_.size());
    for (std::uint32_t node = 0; node < program_.size(); ++node) {
      for (const std::uint32_t before : program_.dependences(node)) dependents_[before].push_back(node);
      waiting_for_[node] = program_.dependences(node).size();
    }
    for (std::uint32_t node = 0; node < program_.size(); ++node) {
      if (waiting_for_[node] == 0) begin(node);
    }
    while (!events_.empty()) {
      const auto [time, sequence, node] = events_.top();
      events_.pop();
      now_ = time;
      if (program_.kind[node] == NodeKind::collective) {
        busy_ = false;
        if (--left_[node] == 0) end(node);
        next_chunk();
      } else {
        end(node);
      }
    }
    return std::move(result_);
  }

 private:
  using Event = std::tuple<Time, std::int64_t, std::uint32_t>;  // time, order of scheduling, node

  void begin(std::uint32_t node) {
    start_[node] = now_;
    if (program_.kind[node] != NodeKind::collective) {
      schedule(Time(static_cast<std::int64_t>(program_.payload[node])), node);
      return;
    }
    const CollectiveCall& call = text_.graph.collectives.at(program_.payload[node]);
    const bool lifo =
        call.preference == ChunkPreference::policy ? lifo_ : call.preference == ChunkPreference::lifo;
    const std::int64_t priority = call.preference == ChunkPreference::highest ? 100'000'000
                                  : lifo                                      ? counter_++
                                                                              : counter_--;
    for (const Time time : chunks_(call)) {
      ready_.emplace(std::pair(-priority, order_++), std::pair(node, time));
      ++left_[node];
    }
    next_chunk();
  }

  void next_chunk() {
    if (busy_ || ready_.empty()) return;
    busy_ = true;
    const auto [node, time] = ready_.begin()->second;
    ready_.erase(ready_.begin());
    schedule(time, node);
  }

  void end(std::uint32_t node) {
    const Interval interval{start_[node], now_, node};
    RankClass& ranks = result_.classes[0];
    (program_.kind[node] == NodeKind::collective ? ranks.collectives
     : program_.lane[node] == Lane::device       ? ranks.computes
                                                 : ranks.others)
        .push_back(interval);
    result_.iteration = now_;
    for (const std::uint32_t next : dependents_[node]) {
      if (--waiting_for_[next] == 0) begin(next);
    }
  }

  void schedule(Time after, std::uint32_t node) { events_.emplace(now_ + after, order_++, node); }

  const TextGraph& text_;
  const Program& program_;
  bool lifo_;
  std::function<std::vector<Time>(const CollectiveCall&)> chunks_;
  Result result_;
  Time now_;
  bool busy_ = false;
  std::int64_t counter_ = 0, order_ = 0;
  std::vector<std::size_t> waiting_for_, left_;  // per node: dependences, chunks
  std::vector<std::vector<std::uint32_t>> dependents_;
  std::vector<Time> start_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::uint32_t, Time>> ready_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace armilla
