// What lone groups' collectives (sim/memo/lone_groups.h) do: when all members start together and nothing
// else uses their links, it is always the same but for the moment. So each is played once, alone - a native
// run of a graph of one node, the ranks as they are folded - and remembered for all that differ in nothing
// but time and place.
//
// Groups are alike that have one shape (sim/collective_plan.h) and whose ranks are represented alike. No link
// of their dimensions has a speed of its own, and their ranks keep their order: lone groups are so. Where
// links are a network's own, their messages use links that are as fast and are shared as much
// (MessageWays::description); of folded ranks each group is its own kind there. So is, on any links, each
// whose messages pass ranks of other groups.
//
// What is known may outlive a run (sim/run_memory.h): then what one run does once is played alone by the
// next, and looked up from there on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "ir/graph.h"
#include "ir/result.h"
#include "ir/study.h"
#include "sim/collective_plan.h"
#include "sim/engine/group_members.h"
#include "sim/memo/message_ways.h"
#include "sim/plan/rank_classes.h"

namespace armilla {

struct NativePlay;

// Sorted times, of which most others are quickly told that they are none: one bit for many.
class TimeSet {
 public:
  TimeSet() = default;
  explicit TimeSet(std::vector<Time> ascending);
  bool contains(Time time) const {
    const std::uint64_t bit = hash(time) & mask_;
    return (bits_[bit / 64] >> bit % 64 & 1) != 0 && std::ranges::binary_search(times_, time);
  }
  std::size_t size() const { return times_.size(); }

 private:
  static std::uint64_t hash(Time time) {
    return static_cast<std::uint64_t>(time.value) * 0x9E3779B97F4A7C15 >> 32;
  }
  std::vector<Time> times_;
  std::vector<std::uint64_t> bits_ = {0};
  std::uint64_t mask_ = 63;
};

struct LonePlay {
  // Equal messages of one member to another.
  struct Sent {
    std::int32_t to = 0;  // position in the sender's own group
    std::uint32_t dimension = 0;
    Bytes bytes;
    std::int64_t times = 0;
    Leg leg = Leg::whole;
    float share = 0;
  };
  struct Member {
    std::vector<ChunkInterval> phases;  // in order of their ends
    std::vector<Sent> sent;
  };
  Time duration;                // of every member: they end together, too
  TimeSet moments;              // at which anything happens
  std::vector<Member> members;  // of the group class
};

// By one run, or by those that follow each other with the same machine, collectives and network, and number
// the shapes of groups alike.
struct KnownPlays {
  // Call, shape, how the members are represented, what links they use, and which dimensions the run's
  // senders share.
  using Key = std::tuple<CallKey, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Known {
    bool is_played = false;
    std::optional<LonePlay> play;
  };
  std::map<Key, Known> plays;
  std::map<std::vector<std::int32_t>, std::uint32_t> representations;  // numbers
  std::map<std::vector<std::uint64_t>, std::uint32_t> kinds_of_links;  // numbers
  std::size_t remembered = 0;        // distinct messages and moments of all plays
  std::size_t links_remembered = 0;  // in their kinds
  std::uint64_t runs = 0;
};

class LonePlays {
 public:
  // `run`: whose groups are played; `known`: from earlier ones; `ways`: of its messages.
  LonePlays(const NativePlay& run, KnownPlays& known, MessageWays& ways);
  LonePlays(const LonePlays&) = delete;
  LonePlays& operator=(const LonePlays&) = delete;

  // Null where members that start together do not end together at a later moment, and for the first of its
  // kind: what happens once need not be played twice. Stays where it is. Cost: that of a play for the
  // second, then O(log calls + log groups x size of the group). `passes_others`: its messages pass ranks of
  // other groups.
  const LonePlay* find(std::uint32_t call, std::uint32_t group_class, const GroupMembers& group,
                       bool passes_others);

 private:
  std::uint32_t representation(const GroupMembers& group);
  std::uint32_t links_used(const CollectiveCall& call, std::uint32_t group_class, const GroupMembers& group,
                           bool passes_others);
  std::optional<LonePlay> play(std::uint32_t call, std::uint32_t group_class, const GroupMembers& group);
  bool remember_sent(const CollectiveCall& call, const GroupMembers& group, LonePlay& play);

  const Graph& graph_;
  const Study& study_;
  const RankClasses& classes_;
  CollectivePlanner& planner_;
  MessageWays& ways_;
  std::uint32_t shared_dimensions_;
  Graph one_node_;  // what is played
  KnownPlays& known_;
  std::uint64_t run_;  // number of the run among those that know them
  std::map<const GroupMembers*, std::uint32_t> representation_of_;
  bool possible_ = true;
};

}  // namespace armilla
