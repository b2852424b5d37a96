// Groups whose collectives meet nothing on their way: no message of others crosses their links, and every
// collective of theirs is over before the next begins. So one depends on nothing but when its members issue
// it (sim/memo/lone_plays.h).
//
// A group is lone when all of this holds for every member and every machine dimension that the group's calls
// are planned over:
//   - no message of a node, custom schedule or flat algorithm crosses the dimension;
//   - none of its links has a speed of its own;
//   - the member's program issues no collectives of other groups there (families of equal groups are one);
//   - on a Ring, all groups in it span it whole: messages to others than neighbours pass everyone between;
//   - in the member's program, each of the group's calls depends on the one before;
// and all members share one program, so that nothing but their places tells them apart.
// Groups may be *sometimes* lone that others meet there: of a family of groups whose calls all go by
// dimensions, without links of their own speed, within one program. Whether one of their collectives is alone
// shows during the run (sim/memo/link_uses.h). On a Ring that they do not span whole their messages pass
// others, so that what holds for one such group need not hold for the next.
// On a network that has links of its own (network/message_links.h) all are sometimes lone that are of one
// program, as their messages use the same links whenever they are sent.
// Cost: O(nodes + dependences) per program and family that may be lone, O(simulated ranks x calls).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/collective_plan.h"
#include "sim/plan/rank_classes.h"
#include "sim/plan/study_job.h"

namespace armilla {

class LoneGroups {
 public:
  // Always or sometimes.
  bool any() const;
  // By family and group class.
  bool contains(std::uint32_t family, std::int32_t group) const {
    return !lone_.empty() && lone_[family][static_cast<std::size_t>(group)];
  }
  // Of what passes send (find_lone_passes): whether messages between ranks of one program meet nothing else.
  bool has_lone_messages() const { return has_lone_messages_; }
  // Groups of the family that are not always lone may be sometimes. None where all that are asked for are
  // lone anyway.
  bool is_sometimes(std::uint32_t family) const { return !in_turn_.empty() && !in_turn_[family].empty(); }
  bool any_sometimes() const { return !in_turn_.empty(); }
  // Of these, whether each call of the group depends on the one before.
  bool is_in_turn(std::uint32_t family, std::uint32_t group) const { return in_turn_[family][group]; }
  // Whether messages of the family's groups pass ranks of other groups.
  bool passes_others(std::uint32_t family) const { return passes_others_[family]; }

 private:
  friend LoneGroups find_lone_groups(const StudyJob& input, const RankClasses& classes,
                                     CollectivePlanner& planner);
  friend LoneGroups find_lone_passes(const StudyJob& input, const RankClasses& classes,
                                     CollectivePlanner& planner, const std::set<std::string>& families);

  std::vector<std::vector<bool>> lone_;
  std::vector<std::vector<bool>> in_turn_;  // empty: none of the groups is sometimes lone
  std::vector<bool> passes_others_;         // by family
  bool has_lone_messages_ = true;
};

LoneGroups find_lone_groups(const StudyJob& input, const RankClasses& classes, CollectivePlanner& planner);
// What forward and backward passes of a pipeline send besides messages between stages is looked at as one,
// namely collectives of these families, by name, and messages between ranks of one program. All that one rank
// sends so is as of one group, whose calls may be under way at once within passes: where no passes overlap
// these are of one pass, whose messages meet in the same way whenever it begins. No group is sometimes lone.
LoneGroups find_lone_passes(const StudyJob& input, const RankClasses& classes, CollectivePlanner& planner,
                            const std::set<std::string>& families);

}  // namespace armilla
