// Memoised collectives: an optional pass in front of the collective runner. Collectives of lone groups
// (sim/memo/lone_groups.h) that all members issue in one round are not played but remembered from a play of
// their own (sim/memo/lone_plays.h): O(members) instead of O(messages). All others are passed on. Without
// lone groups it does nothing; the engine knows nothing of it (sim/run/shortened_run.h).
//
// A collective of a group that is lone only sometimes holds its links meanwhile (sim/memo/link_uses.h).
// Before somebody else begins to use one of them, what it has done so far is played by itself with the clock
// set back, and the rest among the others. O(pending events) besides.
//
// A member that issues such a call does nothing until the end of the round, when those that are not all there
// are passed on to be played; what a member sends at once then meets nothing that it could have come before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/slots.h"
#include "event/event_queue.h"
#include "sim/engine/collective_runner.h"
#include "sim/engine/group_members.h"
#include "sim/engine/messenger.h"
#include "sim/engine/run_context.h"
#include "sim/memo/link_uses.h"
#include "sim/memo/lone_groups.h"
#include "sim/memo/lone_plays.h"
#include "sim/memo/message_ways.h"

namespace armilla {

struct NativePlay;
class RankWalker;

class MemoisedCollectives final : public EventHandler, public RoundObserver, public RunObserver {
 public:
  // `known`: plays of earlier runs; `runner`: who plays the others.
  MemoisedCollectives(const NativePlay& play, KnownPlays& known, const RunContext& context,
                      GroupTable& groups, CollectiveRunner& runner, RankWalker& walker);
  MemoisedCollectives(const MemoisedCollectives&) = delete;
  MemoisedCollectives& operator=(const MemoisedCollectives&) = delete;

  // As CollectiveExecutor's.
  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence);

  // Where links are watched.
  void ends(std::int32_t rank, std::uint32_t node) override;
  void leaves(const Channel& channel) override;
  void arrives(const Channel& channel) override;
  // Whether any collective may be looked up.
  bool may_perform() const { return lone_.any(); }
  // Whether what happens now happened before, to a collective that then still was alone.
  bool is_catching_up() const { return is_catching_up_; }

  std::uint32_t target() const { return target_; }
  // At the end of a round, after the turns: who gathered in vain is passed on, and played is what might have
  // to begin among others in the next moment.
  void round_over() override {
    if (is_catching_up_) return;
    if (!gathering_.empty() || !holding_.empty()) pass_on_what_cannot_wait();
  }
  void handle(std::uint64_t performance) override;  // is over
  void take_turn(std::int32_t rank);

  // Which groups perform what; and what one of its events means.
  void add_state(StateDigest& state) const;
  Digest describe(std::uint64_t performance) const;
  // How often each group has performed each play.
  using Sums = std::map<std::tuple<std::size_t, std::size_t, const LonePlay*>, std::int64_t>;
  Sums sums() const;
  void repeat(const Sums& from, const Sums& until, std::int64_t times) {
    repeat(from, until, times, [](std::int32_t) { return true; });
  }
  // The same of groups whose first member is chosen.
  template <class Chosen>
  void repeat(const Sums& from, const Sums& until, std::int64_t times, const Chosen& chosen) {
    for (const auto& [which, count] : until) {
      const auto& [f, g, play] = which;
      if (!chosen(context_.classes.families[f].groups[g].front())) continue;
      const auto before = from.find(which);
      states_[f][g].performed[play] += (count - (before == from.end() ? 0 : before->second)) * times;
    }
  }

  // Whether nothing ever meets the group's collectives; and the links of a message from rank to rank.
  bool is_lone(std::uint32_t family, std::int32_t group) const { return lone_.contains(family, group); }
  void add_links(std::int32_t source, std::int32_t destination, MessageWays::Links& links) {
    ways_->add({source, destination, Bytes(0)}, links);
  }

  // Tells the network of the messages that were not sent. At the end of the run, once.
  void count_messages() const;

 private:
  // All members of a group in a collective of theirs, gathering or performing.
  struct Performance {
    const LonePlay* play = nullptr;
    std::uint32_t call = 0, family = 0, group = 0;
    std::uint32_t gathered = 0, members_left = 0;
    Time start;
    const LinkUses::Links* links = nullptr;  // that it holds, if others may want them
    struct Member {
      std::uint32_t node = 0;
      std::uint64_t sequence = 0;
      bool is_there = false;
    };
    std::vector<Member> members;
  };
  static constexpr std::uint32_t kMostPatience = 16, kMostHopes = 8;
  struct Group {
    struct Call {
      const LonePlay* play = nullptr;  // where there is one
      const LinkUses::Links* links = nullptr;
    };
    std::unordered_map<std::uint32_t, Call> calls;  // what is known of those so far
    std::vector<std::uint32_t> issued;              // collectives, per member
    std::uint32_t decided = 0;                      // of them, whether to be played or not
    std::uint32_t performance = 0;                  // of the one that is not, while members gather
    bool gathers = false;
    // With performances that hold links: one less after each that was disturbed, one more after each that was
    // not, up to the most.
    std::uint32_t patience = kMostPatience;
    // Without any: how many in a row found their links free, and how often such a row may still give some
    // back. What wore it out may have been a phase, such as that in which parameters are gathered.
    std::uint32_t calm = 0, hopes = kMostHopes;
    // Of collectives that are played, where links are watched:
    std::vector<std::uint32_t> passed_on;               // per member
    std::uint32_t begun = 0, ends_left = 0;             // of members
    std::vector<const LinkUses::Links*> links;          // of those under way
    std::map<const LonePlay*, std::int64_t> performed;  // how often
  };

  std::uint32_t open(std::uint32_t call, std::uint32_t family, std::uint32_t group, const LonePlay& play);
  void perform(std::uint32_t id);
  void pass_on(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence);
  void pass_on_gathered(std::uint32_t id);
  const LonePlay* play_of(Group& group, std::uint32_t call, std::uint32_t group_class);
  const LinkUses::Links& links_of(Group& group, std::uint32_t call, std::uint32_t group_class);
  bool is_alone(std::uint32_t family, std::uint32_t group, const LinkUses::Links& links);
  void begin_use(const LinkUses::Links& links);
  void disturb(std::uint32_t id);
  void take_heart(Group& group, std::uint32_t family, std::uint32_t number, const LinkUses::Links& links);
  static void lose_patience(Group& group) { group.patience -= group.patience > 0 ? 1 : 0; }
  void let_go(std::uint32_t id);
  void catch_up(std::uint32_t id, Time until);
  void pass_on_what_cannot_wait();
  void play_what_has_ties();
  void finish(std::uint32_t id, std::uint32_t member, std::int32_t rank);

  RunContext context_;
  std::unique_ptr<MessageWays> ways_;
  LoneGroups lone_;
  LonePlays plays_;
  GroupTable& groups_;
  CollectiveRunner& runner_;
  RankWalker& walker_;
  std::uint32_t target_;
  std::vector<std::vector<Group>> states_;  // [family][group class]
  Slots<Performance> performances_;
  std::vector<std::uint32_t> gathering_;  // performances that began to gather in this round
  std::optional<LinkUses> uses_;          // where groups are sometimes lone
  // Per simulated rank, node and family of what it has under way that is played, where links are watched.
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> played_;
  struct Holder {
    Time start;
    const TimeSet* moments = nullptr;  // of the play
    std::uint32_t id = 0;
  };
  std::vector<Holder> holding_;  // performances under way that hold links
  bool is_catching_up_ = false;
  // Per simulated rank, what is over: performance and member.
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> over_;
};

}  // namespace armilla
