// Evaluates collectives of lone groups (sim/memo/lone_groups.h) by their rehearsal (sim/memo/rehearsal.h)
// where all members issue them in one round: O(members) instead of O(messages).
//
// A member that issues such a call does nothing until the end of the round, when those that are not all there
// are given back to be played; what a member sends at once then meets nothing that it could have come before.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "event/event_queue.h"
#include "network/network.h"
#include "sim/engine/collective_executor.h"
#include "sim/engine/collective_instances.h"
#include "sim/engine/rank_turns.h"
#include "sim/fold/rank_classes.h"
#include "sim/memo/lone_groups.h"
#include "sim/memo/rehearsal.h"

namespace armilla {

class CollectiveEvaluator final : public EventHandler {
 public:
  CollectiveEvaluator(LoneGroups lone, Rehearser& rehearser, CollectiveInstances& instances,
                      const RankClasses& classes, EventQueue& queue, RankTurns& turns,
                      CollectiveClient& client);
  CollectiveEvaluator(const CollectiveEvaluator&) = delete;
  CollectiveEvaluator& operator=(const CollectiveEvaluator&) = delete;

  // A member has issued the instance, as the first one if it is `fresh`; returns whether it is seen to here.
  bool take(std::uint32_t id, bool fresh, std::int32_t rank);
  // At the end of a round, after the turns: calls `play(instance, member)` for whoever gathered in vain.
  template <class Play>
  void release(const Play& play);

  void handle(std::uint64_t id) override;  // an instance is over
  void take_turn(std::int32_t rank);

  // Tells the network of the messages that were not sent. At the end of the run, once.
  void count_messages(Network& network) const;

 private:
  void perform(std::uint32_t id);
  void finish(std::uint32_t id, std::uint32_t member_id, std::int32_t rank);

  LoneGroups lone_;
  Rehearser& rehearser_;
  CollectiveInstances& instances_;
  const RankClasses& classes_;
  EventQueue& queue_;
  RankTurns& turns_;
  CollectiveClient& client_;
  std::uint32_t target_;
  std::vector<std::uint32_t> gathering_;  // instances whose members began to gather in this round
  // Per simulated rank, what is over: instance and member.
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> over_;
};

template <class Play>
void CollectiveEvaluator::release(const Play& play) {
  for (const std::uint32_t id : gathering_) {
    CollectiveInstance& instance = instances_[id];
    if (instance.gathered == instance.issues.size()) continue;
    instance.rehearsal = nullptr;
    for (std::uint32_t m = 0; m < instance.issues.size(); ++m) {
      if (instance.issues[m].chunks_left >= 0) play(id, m);
    }
  }
  gathering_.clear();
}

}  // namespace armilla
