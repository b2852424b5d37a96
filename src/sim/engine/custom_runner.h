// Executes a user's own collective schedules (ir/custom_collective.h): a member's nodes start as soon as what
// they depend on is done, any number at once. Messages inside an instance match only each other.
//
// As in astra-sim 2.x (CustomAlgorithm.cc): no chunks, no endpoint delays, a send is done when it has
// arrived. Natively, what becomes ready starts in the rank's turn (sim/engine/order.h), and where no two
// messages of a collective could be taken for each other, each knows its receive beforehand instead of
// looking it up. Cost: O(nodes + dependences) per member.
//
// Apart from RankWalker: any number of instances of one schedule are under way on a rank, each with its own
// sizes, so that a node is named by instance, member and number; none of its nodes is recorded, scaled by
// jitter or kept to a lane; and messages find their receives without a look-up, which a walk of sends and
// receives by tag would need.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/slots.h"
#include "event/event_queue.h"
#include "ir/custom_collective.h"
#include "sim/engine/messenger.h"
#include "sim/engine/run_context.h"
#include "sim/engine/successors.h"

namespace armilla {

class CustomRunner final : public EventHandler {
 public:
  // Every rank with a custom collective must be simulated itself.
  CustomRunner(const RunContext& context, Messenger& messages);
  CustomRunner(const CustomRunner&) = delete;
  CustomRunner& operator=(const CustomRunner&) = delete;

  // An instance of `collective` among `ranks`, moving `bytes`. Both must outlive it.
  std::uint32_t open(const CustomCollective& collective, const std::vector<std::int32_t>& ranks, Bytes bytes);
  // A member begins; the notice is given when it is through, never before this call returns.
  void start(std::uint32_t instance, std::int32_t member, Notice done);

  void handle(std::uint64_t argument) override;
  // Starts what has become ready on the rank.
  void take_turn(std::int32_t rank);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // What all instances of a collective share. Nodes are numbered through: those of member 0 first.
  struct Prepared {
    std::vector<std::uint32_t> offset;       // per member, its first node
    std::vector<Dependents> dependents;      // per member, among its own nodes
    std::vector<std::uint32_t> dependences;  // how many, per node
    std::vector<std::uint32_t> receive;      // per node: of a send, the peer's node that receives it
    bool is_matched = false;                 // every message knows its receive
  };
  enum class Receive : std::uint8_t { idle, posted, arrived };
  struct Member {
    std::uint32_t left = 0;
    std::uint64_t started = 0;  // how many custom collectives the rank had started before
    Notice done;
  };
  struct Ready {
    std::uint64_t started = 0;
    std::uint32_t instance = 0, node = 0;
    std::int32_t member = 0;
  };
  struct Instance {
    const CustomCollective* collective = nullptr;
    const Prepared* prepared = nullptr;
    const std::vector<std::int32_t>* ranks = nullptr;
    Bytes bytes;
    std::vector<Member> members;
    std::vector<std::uint32_t> waiting_for;  // per node, dependences not done
    std::vector<Receive> receives;           // per node, where messages know theirs
    std::int64_t members_left = 0;
  };

  const Prepared& prepared(const CustomCollective& collective);
  static void match(const CustomCollective& collective, Prepared& prepared);
  bool delivers(const Instance& instance) const {
    return context_.order.in_rounds() && instance.prepared->is_matched;
  }
  void message_arrived(std::uint32_t instance, std::int32_t member, std::uint32_t node);
  void node_done(std::uint32_t instance, std::int32_t member, std::uint32_t node);
  void make_ready(std::uint32_t instance, std::int32_t member, std::uint32_t node);
  void issue(std::uint32_t instance, std::int32_t member, std::uint32_t node);

  RunContext context_;
  Messenger& messages_;
  std::uint32_t target_;
  std::map<const CustomCollective*, Prepared> prepared_;
  Slots<Instance> instances_;
  std::vector<std::vector<Ready>> waiting_;  // per simulated rank, for its turn
  std::uint64_t starts_ = 0;
};

}  // namespace armilla
