// Executes collectives: cuts calls into chunks, walks every chunk through the phases of its plan and every
// phase through the steps of its schedule, sends the messages and counts those that arrive. Knows no
// algorithm and no network model.
//
// The k-th collective a rank issues in a group is the k-th of every other member (validate_graph has checked
// that they agree). A chunk's state is a small record per simulated member; it is freed when the last member
// is through. Messages that arrive before their receiver has come that far are remembered.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "event/event_queue.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "network/network.h"
#include "sim/chunk_scheduler.h"
#include "sim/collective_executor.h"
#include "sim/collective_plan.h"
#include "sim/custom_runner.h"
#include "sim/rank_classes.h"
#include "sim/rank_turns.h"

namespace armilla {

class CollectiveRunner final : public CollectiveExecutor, public EventHandler, public CustomClient {
 public:
  // `memory_bandwidths`: per simulated rank, for local reductions.
  CollectiveRunner(const Graph& graph, const Machine& machine, const CollectiveOptions& options,
                   std::vector<Bandwidth> memory_bandwidths, CollectivePlanner& planner,
                   const RankClasses& classes, EventQueue& queue, RankTurns& turns, CollectiveClient& client);
  CollectiveRunner(const CollectiveRunner&) = delete;
  CollectiveRunner& operator=(const CollectiveRunner&) = delete;

  // The network the messages go to, and who executes custom schedules; set once, before the first `issue`.
  void use(Network& network, CustomRunner& custom) {
    network_ = &network;
    custom_ = &custom;
    custom.use(*this);
  }

  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call) override;

  void delivered(const Message& message);
  MessageLabel label(const Message& message) const;
  void handle(std::uint64_t argument) override;  // a local reduction is done
  // Acts on what was noted for the rank.
  void take_turn(std::int32_t rank);

  // When nothing moves any more although chunks wait: every rank starts its oldest waiting chunk beyond the
  // limit. Returns whether there were any. With chunks of several collectives under way, ranks can hold slots
  // for different ones and wait for each other.
  bool start_oldest_waiting();

  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const override;

  void custom_finished(std::uint64_t argument) override;

 private:
  enum class State : std::uint8_t { not_issued, waiting, active, reducing, reduced, done };

  struct Member {
    State state = State::not_issued;
    std::uint32_t phase = 0, step = 0;
    std::int32_t here = 0;                   // its position in the current phase's line of ranks
    const RankSchedule* schedule = nullptr;  // of the current phase, for that position
    std::int32_t receives_left = 0;
    std::uint32_t next_send = 0;
    std::int32_t in_flight = 0;  // sends of a step with a window
    bool holds_slot = false;     // of the scheduler, in the current phase
    bool noted = false;          // something happened to it since the rank's last turn
    Time phase_start;
    std::vector<std::uint32_t> early;  // (phase, step) of messages that came too soon, as in a tag
  };

  struct Issue {
    std::uint32_t node = 0;
    std::uint64_t sequence = 0;     // how many collectives the rank had issued before
    std::int32_t chunks_left = -1;  // -1: not issued
    std::int32_t priority = 0;
    bool started = false;
  };

  // A group class (sim/rank_classes.h), with the layouts of its members' own groups.
  struct Group {
    const FoldedFamily* family = nullptr;
    const GroupClass* ranks = nullptr;
    std::vector<std::int32_t> real;  // per member
    std::vector<const GroupLayout*> layouts;
    std::vector<std::uint32_t> instances;  // in order
  };

  // A collective among one group class. With a custom schedule it has one chunk without phases.
  struct Instance {
    std::uint32_t family = 0;
    std::uint32_t number = 0;  // among those of its group
    const Group* group = nullptr;
    std::vector<Issue> issues;        // per member
    std::vector<std::uint32_t> runs;  // its chunks
    std::int64_t members_left = 0;
    bool is_custom = false;
    std::uint32_t custom = 0;  // of the custom runner
  };

  struct ChunkRun {
    std::uint32_t instance = 0;
    std::uint32_t chunk = 0;
    const CollectivePlan* plan = nullptr;
    const Group* group = nullptr;
    std::vector<Member> members;
    std::int64_t members_left = 0;
  };

  // A member that something happened to; those of one rank are a list.
  struct Note {
    std::uint32_t run = 0, member = 0;
    std::uint32_t next = 0;  // into notes_, or kNone
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t member_of(std::uint32_t family, std::int32_t rank) const {
    return static_cast<std::uint32_t>(classes_.families[family].member_of[static_cast<std::size_t>(rank)]);
  }
  static std::uint32_t member_of(const ChunkRun& run, std::int32_t rank) {
    return static_cast<std::uint32_t>(run.group->family->member_of[static_cast<std::size_t>(rank)]);
  }
  template <class InstanceOrRun>
  static std::int32_t rank_of(const InstanceOrRun& of, std::uint32_t member) {
    return of.group->ranks->members[member];
  }
  std::uint32_t instance_for(std::int32_t rank, std::uint32_t call);
  std::uint32_t make_instance(std::uint32_t call, Group& group);

  std::uint32_t queue_of(const PlannedPhase& phase) const;
  bool takes_part(const ChunkRun& run, const PlannedPhase& phase, std::uint32_t member) const;

  // A member enters its current phase, or the first after it that it takes part in, or is through with the
  // chunk.
  void enter_phase(std::uint32_t run_id, std::uint32_t member_id);
  void fill_slots(std::int32_t rank);
  void fill_slots(std::int32_t rank, std::uint32_t queue);
  void locate(const ChunkRun& run, std::uint32_t member_id, Member& member) const;
  void start_phase(std::uint32_t run_id, std::uint32_t member_id, bool holds_slot);
  void enter_step(std::uint32_t run_id, std::uint32_t member_id);
  void send_within_window(std::uint32_t run_id, std::uint32_t member_id);
  void complete_steps(std::uint32_t run_id, std::uint32_t member_id);
  void finish_phase(std::uint32_t run_id, std::uint32_t member_id);
  void finish_chunk(std::uint32_t run_id, std::uint32_t member_id);
  void free_window_slot(std::uint32_t run_id, std::uint32_t sender_id, std::uint32_t phase);
  void receive(std::uint32_t run_id, std::uint32_t member_id, std::uint32_t place);
  void note(std::uint32_t run_id, std::uint32_t member_id);
  bool goes_first(const Note& a, const Note& b) const;
  void act(std::uint32_t run_id, std::uint32_t member_id);
  bool is_awaited(const Member& member) const;

  const Graph& graph_;
  const CollectiveOptions& options_;
  std::vector<Bandwidth> memory_bandwidths_;
  CollectivePlanner& planner_;
  const RankClasses& classes_;
  EventQueue& queue_;
  RankTurns& turns_;
  CollectiveClient& client_;
  Network* network_ = nullptr;
  CustomRunner* custom_ = nullptr;
  std::uint32_t target_;
  ChunkScheduler scheduler_;
  std::uint32_t flat_queue_;  // index of the queue of flat algorithms, after those of the dimensions

  std::vector<std::unique_ptr<ChunkRun>>
      runs_;  // ids are never used twice, so that stale references are recognised
  std::vector<std::unique_ptr<Instance>> instances_;          // likewise
  std::vector<std::vector<Group>> groups_;                    // [family][group class]
  std::vector<std::vector<std::uint32_t>> issued_in_family_;  // [family][simulated rank], how many
  std::vector<std::uint64_t> issued_;                         // per simulated rank
  std::size_t acted_on_ = 0;                                  // of them
  std::vector<Note> notes_;                                   // of this round
  std::vector<std::uint32_t> first_note_;                     // per simulated rank
  std::vector<Note> turn_;                                    // the notes being acted on
  bool refill_ = false;  // a slot became free or a chunk came to wait since slots were last filled
};

}  // namespace armilla
