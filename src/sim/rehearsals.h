// Plays collectives alone, once for all that differ in nothing but time and place: a queue, a network and a
// collective runner of their own. Groups of one shape (sim/collective_plan.h) are alike where no link of
// their dimensions has a speed of its own and their ranks keep their order, which lone groups are (there).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "event/event_queue.h"
#include "ir/graph.h"
#include "ir/study.h"
#include "network/network.h"
#include "sim/collective_plan.h"
#include "sim/collective_runner.h"
#include "sim/rank_classes.h"
#include "sim/rank_turns.h"
#include "sim/rehearsal.h"

namespace armilla {

class Rehearsals final : public Rehearser, MessageSink, CollectiveClient, RoundObserver {
 public:
  Rehearsals(const Graph& graph, const Study& study, CollectivePlanner& planner);
  Rehearsals(const Rehearsals&) = delete;
  Rehearsals& operator=(const Rehearsals&) = delete;

  // Cost: that of a play the first time, then O(log calls).
  const Rehearsal* rehearse(std::uint32_t call, const GroupLayout& layout) override;

 private:
  using Key = std::tuple<CollectiveKind, std::int64_t, std::int32_t, std::uint32_t>;
  // When a member is through, and in which round of that moment.
  struct End {
    Time time;
    std::int64_t round = 0;
    bool operator==(const End&) const = default;
  };

  std::optional<Rehearsal> play(std::uint32_t call, const GroupLayout& layout);
  // Whether what was played can stand for any play: all members start at once, and are through together in
  // the first round of a later moment.
  bool is_uniform() const;

  void delivered(const Message& message) override;
  MessageLabel label(const Message& message) const override { return runner_->label(message); }
  void collective_started(std::int32_t rank, std::uint32_t node) override;
  void collective_finished(std::int32_t rank, std::uint32_t node) override;
  void chunk_finished(std::int32_t rank, std::uint32_t node, const ChunkPhase& phase) override;
  void round_over() override;

  const Graph& graph_;
  const Study& study_;
  CollectivePlanner& planner_;
  std::map<Key, std::optional<Rehearsal>> known_;
  bool possible_ = true;

  EventQueue queue_;
  std::unique_ptr<Network> network_;
  RankClasses classes_;  // the members of the group, every one for itself
  // Of the play under way.
  CollectiveRunner* runner_ = nullptr;
  RankTurns* turns_ = nullptr;
  Time begin_;
  Time round_time_;
  std::int64_t round_ = 0;    // of that moment
  std::int32_t started_ = 0;  // members, at the beginning
  std::vector<std::optional<End>> ends_;
  std::vector<Rehearsal::Member> members_;
  std::vector<std::map<std::tuple<std::int32_t, std::uint32_t, std::int64_t>, std::int64_t>> sent_;
};

}  // namespace armilla
