// Executes collectives: cuts calls into chunks, walks every chunk through the phases of its plan and every
// phase through the steps of its schedule, sends the messages and counts those that arrive. Knows no
// algorithm and no network model.
//
// A collective begins when the last of its members has issued it: a kernel of NCCL's moves data into, and out
// of, devices that run it, too. Those that came before wait. (What fits into the library's buffers, 4 MiB per
// channel, may be there before a receiver is; that is not modelled.)
//
// What a member does with a chunk is a small record, its *part*; parts of a chunk lie side by side and are
// freed when the last member is through. A message names the part that receives it, so that an arrival looks
// up nothing else. Messages that arrive before their receiver has come that far are remembered.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/slots.h"
#include "event/event_queue.h"
#include "ir/graph.h"
#include "ir/study.h"
#include "sim/collective_plan.h"
#include "sim/engine/chunk_scheduler.h"
#include "sim/engine/collective_instances.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/group_members.h"
#include "sim/engine/run_context.h"

namespace armilla {

struct NativePlay;
class RankWalker;

class CollectiveRunner final : public EventHandler {
 public:
  CollectiveRunner(const NativePlay& play, const RunContext& context, GroupTable& groups,
                   CustomRunner& custom, RankWalker& walker);
  CollectiveRunner(const CollectiveRunner&) = delete;
  CollectiveRunner& operator=(const CollectiveRunner&) = delete;

  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence);

  // A message has arrived, a local reduction or a custom collective is done.
  void handle(std::uint64_t argument) override;
  void handle_times(std::uint64_t argument, std::uint32_t times) override;
  // Acts on what was noted for the rank.
  void take_turn(std::int32_t rank);

  // Plays collectives from their beginning, as if nothing had been noted of others: `play` issues them.
  template <class Play>
  void apart_from_notes(const Play& play) {
    std::vector<std::uint32_t> noted(first_noted_.size(), kNone);
    noted.swap(first_noted_);
    play();
    noted.swap(first_noted_);
  }

  // Of its messages, which name it as their target.
  MessageLabel label(const Message& message) const;
  std::uint32_t target() const { return target_; }

  // Chunks under way and slots in use; and what one of its events means. Not of custom collectives.
  void add_state(StateDigest& state) const;
  Digest describe(std::uint64_t argument) const;

  // When nothing moves any more although chunks wait: every rank starts its oldest waiting chunk beyond the
  // limit. Returns whether there were any. With chunks of several collectives under way, ranks can hold slots
  // for different ones and wait for each other.
  bool start_oldest_waiting();

  // As CollectiveExecutor's.
  Time beyond(std::int32_t rank, std::uint32_t call);
  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const {
    return instances_.missing_member(rank, node);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::int32_t kNobodyYet = INT32_MIN;
  enum class State : std::uint8_t { not_issued, issued, waiting, active, reducing, reduced, done };

  struct ChunkRun {
    std::uint32_t instance = 0;
    std::uint32_t chunk = 0;
    const CollectivePlan* plan = nullptr;
    const GroupMembers* group = nullptr;
    std::uint32_t first_part = 0, members = 0;
    std::uint32_t members_left = 0;
    std::uint16_t sender = 0;  // Message::sender
  };

  // A member's part of a chunk. What every message needs comes first.
  struct Part {
    State state = State::not_issued;
    bool holds_slot = false;  // of the scheduler, in the current phase
    bool noted = false;       // something happened to it since the rank's last turn
    std::uint8_t phase = 0;
    std::uint32_t place = 0;  // phase and step, as in a message
    std::int32_t receives_left = 0;
    std::uint32_t step = 0;
    std::uint32_t next_send = 0;
    std::uint32_t next_noted = kNone;        // of its rank
    const PlannedPhase* planned = nullptr;   // the current phase,
    const RankSchedule* schedule = nullptr;  // and its schedule for where it stands
    std::int32_t rank = 0, real = 0;         // simulated rank, and whom it stands for
    // To whom it sent last in this phase: as Transfer::peer names it, rank and part.
    std::int32_t last_peer = kNobodyYet, last_to = 0;
    std::uint32_t last_part = 0;
    std::int32_t in_flight = 0;    // sends of a step with a window
    std::int32_t here = 0;         // its position in the current phase's line of ranks
    std::uint32_t tree = kNoTree;  // that the phase takes
    std::uint32_t queue = 0;       // of the scheduler, where it needs a slot in the current phase
    std::uint32_t run = 0;
    std::int32_t priority = 0;
    std::uint64_t sequence = 0;  // of the collective, among those that the rank issued
    Time phase_start;
    std::vector<std::uint32_t> early;  // places of messages that came too soon
  };

  // A message of a step with a window: its arrival concerns the sender, too.
  struct Windowed {
    std::uint32_t from = 0, to = 0, place = 0;
  };

  // Of a call in groups of one shape, as far as it has been asked for.
  struct CallFacts {
    std::uint32_t shape = 0;
    std::vector<const CollectivePlan*> plans;  // of its chunks
    std::optional<Time> beyond;                // its schedule
  };

  Digest describe_part(std::uint32_t id) const;
  // Which the planner would have to look up.
  CallFacts& facts_of(std::uint32_t call, std::uint32_t shape);
  const std::vector<const CollectivePlan*>& plans_of(std::uint32_t call, std::uint32_t shape);
  void open_chunks(std::uint32_t id);
  // All members are there.
  void begin(std::uint32_t instance);
  ChunkRun& run_of(const Part& part) { return *runs_[part.run]; }
  const ChunkRun& run_of(const Part& part) const { return *runs_[part.run]; }
  std::uint32_t id_of(const Part& part) const { return parts_.number_of(part); }

  std::uint32_t dimension_of(const Part& part) const;
  // Of the member's communicator in the dimension of its phase.
  std::uint32_t queue_of(const Part& part) const;

  // A member enters its current phase, or the first after it that it takes part in, or is through with the
  // chunk.
  void enter_phase(std::uint32_t id);
  void fill_slots(std::int32_t rank);
  void fill_slots(std::int32_t rank, std::uint32_t queue);
  void locate(Part& part);
  std::uint32_t tree_of(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank,
                        std::int32_t here);
  void start_phase(std::uint32_t id, bool holds_slot);
  void enter_step(Part& part);
  void send_within_window(Part& part);
  std::uint32_t row_of(const Part& part, const Step& step) const;
  void find_peer(Part& part, const Transfer& transfer) const;
  void complete_steps(std::uint32_t id);
  void finish_phase(std::uint32_t id);
  void finish_chunk(std::uint32_t id);
  void windowed_arrived(std::uint32_t slot);
  void receive(Part& part, std::uint32_t place, std::uint32_t times = 1);
  void note(Part& part);
  // Among those of a rank.
  bool goes_first(const Part& a, const Part& b) const {
    return a.sequence != b.sequence ? a.sequence < b.sequence : run_of(a).chunk < run_of(b).chunk;
  }
  void act(std::uint32_t id);

  RunContext context_;
  const CollectiveOptions& options_;
  bool every_message_;                        // one by one
  std::uint32_t dimensions_;                  // of the machine
  std::vector<Bandwidth> memory_bandwidths_;  // per simulated rank, for local reductions
  CollectivePlanner& planner_;
  GroupTable& groups_;
  CustomRunner& custom_;
  RankWalker& walker_;
  std::uint32_t target_;
  ChunkScheduler scheduler_;
  CollectiveInstances instances_;
  std::vector<std::vector<CallFacts>> facts_;  // by call
  // Ids are never used twice, so that stale references are recognised.
  std::vector<std::unique_ptr<ChunkRun>> runs_;
  std::vector<std::unique_ptr<ChunkRun>> spare_runs_;  // that are over: their memory is used again
  mutable std::size_t closed_ = 0;                     // runs before it are over
  Blocks<Part> parts_;                                 // a block per chunk
  Slots<Windowed> windowed_;
  std::vector<std::uint32_t> first_noted_;  // part, per simulated rank
  std::vector<std::uint32_t> turn_;         // the parts being acted on
  // By group, dimension and first member of the line, and kind.
  std::map<std::tuple<const GroupLayout*, std::uint32_t, std::int32_t, CollectiveKind>, std::uint32_t> trees_;
};

}  // namespace armilla
