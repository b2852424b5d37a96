// Executes collectives: cuts calls into chunks, walks every chunk through the phases of its plan and every
// phase through the steps of its schedule, sends the messages and counts those that arrive. Knows no
// algorithm and no network model.
//
// A chunk's state is a small record per simulated member; it is freed when the last member is through.
// Messages that arrive before their receiver has come that far are remembered.
//
// Where a CollectiveEvaluator takes a call, nothing of it is played.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event/event_queue.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "network/network.h"
#include "sim/collective_plan.h"
#include "sim/engine/chunk_scheduler.h"
#include "sim/engine/collective_executor.h"
#include "sim/engine/collective_instances.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/rank_turns.h"
#include "sim/fold/rank_classes.h"
#include "sim/memo/collective_evaluator.h"

namespace armilla {

class CollectiveRunner final : public CollectiveExecutor, public EventHandler, public CustomClient {
 public:
  // `memory_bandwidths`: per simulated rank, for local reductions.
  CollectiveRunner(const Graph& graph, const Machine& machine, const CollectiveOptions& options,
                   std::vector<Bandwidth> memory_bandwidths, CollectivePlanner& planner,
                   const RankClasses& classes, EventQueue& queue, RankTurns& turns, CollectiveClient& client);
  CollectiveRunner(const CollectiveRunner&) = delete;
  CollectiveRunner& operator=(const CollectiveRunner&) = delete;

  // The network the messages go to; set once, before the first `issue`.
  void use(Network& network) { network_ = &network; }
  // Who executes custom schedules, where there are any.
  void use(CustomRunner& custom) {
    custom_ = &custom;
    custom.use(*this);
  }
  // Collectives of `lone` groups may be evaluated; without, every message is played.
  void evaluate(LoneGroups lone, Rehearser& rehearser) {
    evaluator_.emplace(std::move(lone), rehearser, instances_, classes_, queue_, turns_, client_);
  }

  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call) override;

  void delivered(const Message& message);
  MessageLabel label(const Message& message) const;
  void handle(std::uint64_t argument) override;  // a local reduction is done
  // Acts on what was noted for the rank.
  void take_turn(std::int32_t rank);
  // After the turns of a round and, first, after what is issued before any.
  void round_over();

  // Tells the network of the messages that were not sent because their collectives were evaluated. At the end
  // of the run, once.
  void count_evaluated() const {
    if (evaluator_) evaluator_->count_messages(*network_);
  }

  // When nothing moves any more although chunks wait: every rank starts its oldest waiting chunk beyond the
  // limit. Returns whether there were any. With chunks of several collectives under way, ranks can hold slots
  // for different ones and wait for each other.
  bool start_oldest_waiting();

  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const override {
    return instances_.missing_member(rank, node);
  }

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

  struct ChunkRun {
    std::uint32_t instance = 0;
    std::uint32_t chunk = 0;
    const CollectivePlan* plan = nullptr;
    const CollectiveGroup* group = nullptr;
    std::vector<Member> members;
    std::int64_t members_left = 0;
  };

  // A member that something happened to; those of one rank are a list.
  struct Note {
    std::uint32_t run = 0, member = 0;
    std::uint32_t next = 0;  // into notes_, or kNone
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  static std::uint32_t member_of(const ChunkRun& run, std::int32_t rank) {
    return static_cast<std::uint32_t>(run.group->family->member_of[static_cast<std::size_t>(rank)]);
  }
  template <class InstanceOrRun>
  static std::int32_t rank_of(const InstanceOrRun& of, std::uint32_t member) {
    return of.group->ranks->members[member];
  }
  void open_custom(CollectiveInstance& instance);
  void open_runs(std::uint32_t id);
  void play(std::uint32_t id, std::uint32_t member_id);

  std::uint32_t dimension_of(const ChunkRun& run, const Member& member) const;
  // Of the member's communicator in the dimension of its phase.
  std::uint32_t queue_of(const ChunkRun& run, const Member& member) const;
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
  std::uint32_t all_dimensions_;  // stands for the dimension of flat algorithms, after the others

  CollectiveInstances instances_;
  std::vector<std::unique_ptr<ChunkRun>>
      runs_;  // ids are never used twice, so that stale references are recognised
  std::optional<CollectiveEvaluator> evaluator_;
  std::vector<Note> notes_;                // of this round
  std::size_t acted_on_ = 0;               // of them
  std::vector<std::uint32_t> first_note_;  // per simulated rank
  std::vector<Note> turn_;                 // the notes being acted on
  bool refill_ = false;  // a slot became free or a chunk came to wait since slots were last filled
};

}  // namespace armilla
