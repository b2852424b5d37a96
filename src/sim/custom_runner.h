// Executes a user's own collective schedules (ir/custom_collective.h): a member's nodes start as soon as what
// they depend on is done, any number at once. Messages inside an instance match only each other.
//
// As in astra-sim 2.x (CustomAlgorithm.cc): no chunks, no endpoint delays, a send is done when it has
// arrived. Natively, what becomes ready starts in the rank's turn (sim/rank_turns.h). Cost: O(nodes +
// dependences) per member.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "event/event_queue.h"
#include "ir/custom_collective.h"
#include "sim/messenger.h"
#include "sim/rank_agenda.h"
#include "sim/rank_classes.h"
#include "sim/rank_turns.h"

namespace armilla {

class CustomClient {
 public:
  virtual ~CustomClient() = default;
  virtual void custom_finished(std::uint64_t argument) = 0;
};

class CustomRunner final : public EventHandler {
 public:
  // `agenda` may be null: then computations go to the queue directly.
  CustomRunner(EventQueue& queue, RankAgenda* agenda, Messenger& messages);
  CustomRunner(const CustomRunner&) = delete;
  CustomRunner& operator=(const CustomRunner&) = delete;
  void use(CustomClient& client) { client_ = &client; }
  // Native order. Every rank with a custom collective must be simulated itself.
  void use(RankTurns& turns, const RankClasses& classes) {
    turns_ = &turns;
    classes_ = &classes;
    waiting_.resize(static_cast<std::size_t>(classes.simulated()));
  }

  // An instance of `collective` among `ranks`, moving `bytes`. Both must outlive it.
  std::uint32_t open(const CustomCollective& collective, const std::vector<std::int32_t>& ranks, Bytes bytes);
  // A member begins; the client hears `argument` when it is through, never before this call returns.
  void start(std::uint32_t instance, std::int32_t member, std::uint64_t argument);

  void handle(std::uint64_t argument) override;
  // Starts what has become ready on the rank.
  void take_turn(std::int32_t rank);

 private:
  // Who depends on a node: a program's dependences the other way round (CSR).
  struct Successors {
    std::vector<std::uint32_t> first, node;
  };
  struct Member {
    std::vector<std::uint32_t> waiting_for;  // per node, dependences not done
    std::uint32_t left = 0;
    std::uint64_t started = 0;  // how many custom collectives the rank had started before
    std::uint64_t argument = 0;
  };
  struct Ready {
    std::uint64_t started = 0;
    std::uint32_t instance = 0, node = 0;
    std::int32_t member = 0;
  };
  struct Instance {
    const CustomCollective* collective = nullptr;
    const std::vector<Successors>* successors = nullptr;  // per member
    const std::vector<std::int32_t>* ranks = nullptr;
    Bytes bytes;
    std::vector<Member> members;
    std::int64_t members_left = 0;
  };

  const std::vector<Successors>& successors_of(const CustomCollective& collective);
  void make_ready(std::uint32_t instance, std::int32_t member, std::uint32_t node);
  void issue(std::uint32_t instance, std::int32_t member, std::uint32_t node);
  void schedule(std::int32_t rank, Time time, std::uint64_t argument);

  EventQueue& queue_;
  RankAgenda* agenda_;
  Messenger& messages_;
  CustomClient* client_ = nullptr;
  RankTurns* turns_ = nullptr;
  const RankClasses* classes_ = nullptr;
  std::uint32_t target_;
  std::map<const CustomCollective*, std::vector<Successors>> successors_;
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> free_;
  std::vector<std::vector<Ready>> waiting_;  // per simulated rank, for its turn
  std::uint64_t starts_ = 0;
};

}  // namespace armilla
