// Who uses which links at the moment: how collectives that are sometimes alone (sim/memo/lone_groups.h) know
// that they are.
//
// A collective that is played and a message of a node use the links of their ways from when they begin until
// all of them has arrived; a performance (sim/memo/memoised_collectives.h) holds its links, so that whoever
// begins to use one disturbs it first. Which links a message uses the ways say (sim/memo/message_ways.h). Not
// known: messages of custom collectives.
// Cost: O(messages of a call x hops) per kind of call and group, and O(hops) per pair of ranks that send each
// other messages, once; then O(links of the call or message).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "sim/collective_plan.h"
#include "sim/engine/group_members.h"
#include "sim/memo/message_ways.h"

namespace armilla {

class LinkUses {
 public:
  using Links = MessageWays::Links;  // ascending, each once
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  // Both must outlive it.
  LinkUses(MessageWays& ways, CollectivePlanner& planner)
      : ways_(ways), planner_(planner), links_(ways.links()) {}

  // Of all chunks and members of a call; stays where it is.
  const Links& of_call(const CollectiveCall& call, std::uint32_t group_class, const GroupMembers& group);
  // Of a message that goes over all dimensions in which the ranks differ; stays where it is.
  const Links& of_message(std::int32_t source, std::int32_t destination);

  void begin(const Links& links) {
    for (const std::uint32_t link : links) ++links_[link].users;
  }
  void end(const Links& links) {
    for (const std::uint32_t link : links) --links_[link].users;
  }
  // Nobody uses or holds any of them.
  bool are_free(const Links& links) const;

  // The links must be held by nobody.
  void hold(const Links& links, std::uint32_t holder);
  void release(const Links& links) { hold(links, kNobody); }
  std::uint32_t holder(std::uint32_t link) const { return links_[link].holder; }

 private:
  struct State {
    std::uint32_t users = 0, holder = kNobody;
  };

  MessageWays& ways_;
  CollectivePlanner& planner_;
  std::vector<State> links_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, CallKey>, Links> of_calls_;  // by family and group class
  std::map<std::pair<std::int32_t, std::int32_t>, Links> of_messages_;           // by source and destination
};

}  // namespace armilla
