// What lone groups' collectives (sim/memo/lone_groups.h) do: when all members start together and nothing else
// uses their links, it is always the same but for the moment. So each is played once, alone, in a run of its
// own - a queue, a network and a collective runner, and the ranks as they are folded - and remembered for all
// that differ in nothing but time and place.
//
// Groups are alike that have one shape (sim/collective_plan.h) and whose ranks are represented alike. No link
// of their dimensions has a speed of its own, and their ranks keep their order: lone groups are so.
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
#include "sim/engine/group_members.h"
#include "sim/engine/order.h"
#include "sim/fold/rank_classes.h"

namespace armilla {

struct LonePlay {
  // Equal messages of one member to another.
  struct Sent {
    std::int32_t to = 0;  // position in the sender's own group
    std::uint32_t dimension = 0;
    Bytes bytes;
    std::int64_t times = 0;
  };
  struct Member {
    std::vector<ChunkPhase> phases;  // in order of their ends
    std::vector<Sent> sent;
  };
  Time duration;                // of every member: they end together, too
  std::vector<Member> members;  // of the group class
};

class LonePlays final : MessageLabels, CollectiveClient, RoundObserver {
 public:
  // `classes`: of the run, whose groups are played.
  LonePlays(const Graph& graph, const Study& study, const RankClasses& classes, CollectivePlanner& planner);
  LonePlays(const LonePlays&) = delete;
  LonePlays& operator=(const LonePlays&) = delete;

  // Null where members that start together do not end together at a later moment, and for the first of its
  // kind: what happens once need not be played twice. Stays where it is. Cost: that of a play for the second,
  // then O(log calls + log groups x size of the group).
  const LonePlay* find(std::uint32_t call, const GroupMembers& group);

 private:
  class Tap;

  // Kind, bytes, root, routing, shape, and how the members are represented.
  using Key =
      std::tuple<CollectiveKind, std::int64_t, std::int32_t, ExpertRouting, std::uint32_t, std::uint32_t>;
  struct Known {
    bool is_played = false;
    std::optional<LonePlay> play;
  };
  // When a member is through, and in which round of that moment.
  struct End {
    Time time;
    std::int64_t round = 0;
    bool operator==(const End&) const = default;
  };

  std::uint32_t representation(const GroupMembers& group);
  void set_classes(std::uint32_t family, const GroupMembers& group);
  std::optional<LonePlay> play(std::uint32_t call, const GroupMembers& group);
  // Whether what was played can stand for any play: all members start at once, and are through together in
  // the first round of a later moment.
  bool is_uniform() const;

  void remember(const Message& message);
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
  std::map<const GroupMembers*, std::uint32_t> representation_of_;
  bool possible_ = true;

  EventQueue queue_;
  std::unique_ptr<Network> network_;  // of study.network, with a tap that remembers what is sent
  // Of the play under way.
  RankClasses classes_;  // the members of the group class
  const GroupMembers* group_ = nullptr;
  CollectiveRunner* runner_ = nullptr;
  Order* order_ = nullptr;
  Time begin_;
  Time round_time_;
  std::int64_t round_ = 0;    // of that moment
  std::int32_t started_ = 0;  // members, at the beginning
  std::vector<std::optional<End>> ends_;
  std::vector<LonePlay::Member> members_;
  std::vector<std::map<std::tuple<std::int32_t, std::uint32_t, std::int64_t>, std::int64_t>> sent_;
  std::size_t distinct_ = 0;    // messages in it
  std::size_t remembered_ = 0;  // of all plays
};

}  // namespace armilla
