// Plays collectives alone, once for all that differ in nothing but time and place: a queue, a network and a
// collective runner of their own, and the ranks as they are folded.
//
// Groups are alike that have one shape (sim/collective_plan.h) and whose ranks are represented alike. No link
// of their dimensions has a speed of its own, and their ranks keep their order: lone groups are so
// (sim/memo/lone_groups.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "event/event_queue.h"
#include "ir/graph.h"
#include "ir/study.h"
#include "network/network.h"
#include "sim/collective_plan.h"
#include "sim/engine/collective_runner.h"
#include "sim/engine/rank_turns.h"
#include "sim/fold/rank_classes.h"
#include "sim/memo/rehearsal.h"

namespace armilla {

class Rehearsals final : public Rehearser, MessageSink, CollectiveClient, RoundObserver {
 public:
  // `classes`: of the run, whose groups are rehearsed.
  Rehearsals(const Graph& graph, const Study& study, const RankClasses& classes, CollectivePlanner& planner);
  Rehearsals(const Rehearsals&) = delete;
  Rehearsals& operator=(const Rehearsals&) = delete;

  // Null for the first of its kind, too: what happens once need not be played twice. Cost: that of a play for
  // the second, then O(log calls + log groups x size of the group).
  const Rehearsal* rehearse(std::uint32_t call, const CollectiveGroup& group) override;

 private:
  // Kind, bytes, root, routing, shape, and how the members are represented.
  using Key =
      std::tuple<CollectiveKind, std::int64_t, std::int32_t, ExpertRouting, std::uint32_t, std::uint32_t>;
  struct Known {
    bool is_played = false;
    std::optional<Rehearsal> rehearsal;
  };
  // When a member is through, and in which round of that moment.
  struct End {
    Time time;
    std::int64_t round = 0;
    bool operator==(const End&) const = default;
  };

  std::uint32_t representation(const CollectiveGroup& group);
  void set_classes(std::uint32_t family, const CollectiveGroup& group);
  std::optional<Rehearsal> play(std::uint32_t call, const CollectiveGroup& group);
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
  const RankClasses& run_classes_;
  CollectivePlanner& planner_;
  std::map<Key, Known> known_;
  std::map<std::vector<std::int32_t>, std::uint32_t> representations_;  // numbers
  std::map<const CollectiveGroup*, std::uint32_t> representation_of_;
  bool possible_ = true;

  EventQueue queue_;
  std::unique_ptr<Network> network_;
  // Of the play under way.
  RankClasses classes_;  // the members of the group class
  const CollectiveGroup* group_ = nullptr;
  CollectiveRunner* runner_ = nullptr;
  RankTurns* turns_ = nullptr;
  Time begin_;
  Time round_time_;
  std::int64_t round_ = 0;    // of that moment
  std::int32_t started_ = 0;  // members, at the beginning
  std::vector<std::optional<End>> ends_;
  std::vector<Rehearsal::Member> members_;
  std::vector<std::map<std::tuple<std::int32_t, std::uint32_t, std::int64_t>, std::int64_t>> sent_;
  std::size_t distinct_ = 0;    // messages in it
  std::size_t remembered_ = 0;  // of all plays
};

}  // namespace armilla
