// Which links a run's messages use, of folded ranks and links those of who stands for them: what collectives
// that are sometimes alone watch (sim/memo/link_uses.h), and what tells their groups apart
// (sim/memo/lone_plays.h). Either the links of the machine's dimensions (network/topology.h), which every
// rank has the same of, or those of a network with links of its own (network/message_links.h), where each
// message of two ends uses the same ones whenever it is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/graph.h"
#include "network/network.h"
#include "sim/engine/group_members.h"

namespace armilla {

struct NativePlay;

// Calls `visit(member, message, times)` for every message that members of a group send in a call, `times` of
// those that chunks of one plan send alike.
template <class Visit>
void for_each_message(CollectivePlanner& planner, const CollectiveCall& call, const GroupMembers& group,
                      const Visit& visit) {
  const auto plans = planner.plans(call, group.layouts.front()->shape);
  for (std::size_t member = 0; member < group.real.size(); ++member) {
    const GroupLayout& layout = *group.layouts[member];
    const std::int32_t rank = group.real[member];
    for (const auto& [plan, times] : plans) {
      for (const PlannedPhase& phase : plan->phases) {
        if (!takes_part(*plan, phase, layout, rank)) continue;
        const std::int32_t here = position_in(phase, layout, rank);
        const RankSchedule& role = phase.schedule->of(here);
        for (const Step& step : role.steps) {
          for (const Transfer& transfer : role.sends_of(step)) {
            const std::int32_t to = rank_at(phase, layout, rank, here, phase.schedule->peer(here, transfer));
            visit(member,
                  Message{.source = rank,
                          .destination = to,
                          .bytes = transfer.bytes,
                          .dimension = phase.dimension,
                          .leg = step.leg,
                          .share = phase.share},
                  times);
          }
        }
      }
    }
  }
}

class MessageWays {
 public:
  using Links = std::vector<std::uint32_t>;  // numbers below `links()`

  virtual ~MessageWays() = default;
  virtual std::size_t links() const = 0;
  // Appends those that the message uses; one may come twice. O(hops).
  virtual void add(const Message& message, Links& links) = 0;
  // What calls of groups alike, whose messages pass no ranks of others, may differ in: who sends to whom over
  // which links, these in the order of their first use, how fast they are and with what shares. Equal for
  // calls whose messages fare alike, empty where all do. O(messages of the call x hops).
  virtual std::vector<std::uint64_t> description(const CollectiveCall& call, const GroupMembers& group) = 0;
  // Whether what has these links to itself fares as if it were alone, so that it may be looked up: not where
  // every message is to be played.
  virtual bool tells_who_meets() const = 0;
};

// `play` is used during this call only, what it refers to as long as the result lives.
std::unique_ptr<MessageWays> message_ways(const NativePlay& play);

}  // namespace armilla
