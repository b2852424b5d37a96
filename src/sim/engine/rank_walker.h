// Walks every simulated rank through its program: issues nodes whose dependences are done and whose lane is
// free, the smallest id first, and passes them on to who executes them.
//
// A lane holds one node at a time, except that natively any number of communications are under way, and the
// lane `none` always has room. ASTRA-sim 2 has one communication at a time per rank, too
// (HardwareResource.cc). Natively, ends of nodes are noted and what they make ready is issued in the rank's
// turn (sim/engine/order.h). Nodes have the numbers of whole programs, loops written out (ir/graph.h), and
// are looked up where they are written. Cost: O(log ready) per node and O(1) per dependence.
//
// A host that issues nodes stops at a call of which only the device knows how much it moves
// (CollectiveCall::counted_on_device), and at what depends on a message that it awaits itself
// (PointToPoint::stops_host), until nothing is left that the node waits for, and goes on from there.
// While a rank has calls under way that hold c of its device's n processors (CollectiveCall::processors, of
// the one that holds most: those of one kind share a stream), its computations go on at (n - c) / n of their
// pace.
// Ends that are put off or brought forward are events of their own, and those before them mean nothing.
//
// Where nobody asks when single nodes ran, a chain of computations is one event, at its end. In a chain
// nothing waits for a node but the next one, which waits for nothing else but the host. All computations of
// the program follow each other, so that no other takes the device in between, and none of the chain takes no
// time, so that its end is in the first round of its moment, as if each were an event. When the host lets go
// of each is known when the chain begins.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cost/cost.h"
#include "event/event_queue.h"
#include "event/state_digest.h"
#include "ir/graph.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/messenger.h"
#include "sim/engine/rank_states.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_context.h"
#include "sim/plan/effort.h"
#include "sim/simulate.h"

namespace armilla {

// Who executes what the walker issues, and who looks on.
struct Executors {
  CollectiveExecutor& collectives;
  Messenger& messages;
  RemoteMemories& memories;
  const ComputeTimes& times;
  Recorder& recorder;
  RunProgress& progress;
};

class RankWalker final : public EventHandler {
 public:
  // `one_communication`: at a time per rank. `watched_ends`: SimulationOptions's.
  RankWalker(const RunContext& context, const Executors& executors, bool one_communication,
             std::span<std::vector<WatchedEnd>> watched_ends);
  RankWalker(const RankWalker&) = delete;
  RankWalker& operator=(const RankWalker&) = delete;

  std::uint32_t target() const { return target_; }

  // Issues every node without dependences, rank by rank.
  void start();
  // Issues what has become ready.
  void take_turn(std::int32_t rank) { issue_ready(rank); }

  // Plays on until every rank is through; where nothing moves any more, `unstick` may set things going again
  // and say so. Throws Error saying who waits for whom, and when the simulated time passes 26 days.
  void finish(const std::function<bool()>& unstick);

  void handle(std::uint64_t argument) override;  // a node that is no collective is done

  // Told by who executes collectives.
  void collective_started(std::int32_t rank, std::uint32_t node);
  void collective_finished(std::int32_t rank, std::uint32_t node);
  // A phase of a chunk is over, now or, where all of the collective is told at once, before. Flat algorithms
  // have the index after the last dimension.
  void chunk_finished(std::int32_t rank, const ChunkInterval& phase);
  // Whether anybody wants to know of the rank's.
  bool keeps_chunks(std::int32_t rank) const { return executors_.recorder.keeps_chunks(rank); }

  // For who looks for repetition (sim/fold/time_fold.h): where ranks are; and the rank and node of an event.
  RankStates& states() { return states_; }
  Digest describe(std::uint64_t argument) const;
  static std::int32_t rank_of(std::uint64_t argument) {
    return static_cast<std::int32_t>((argument & ~kIssued) >> 32);
  }

 private:
  using Rank = RankStates::Rank;
  static constexpr std::uint32_t kDone = RankStates::kDone;
  static constexpr std::uint64_t kIssued = std::uint64_t{1}
                                           << 63;  // of an event: the host has issued its node

  static std::uint64_t argument_of(std::int32_t rank, std::uint32_t node) {
    return std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node;
  }

  // Those of written nodes that stand behind.
  void release_behind(Rank& rank, std::uint32_t written);
  // A dependence of the node is done.
  void release(Rank& rank, const Stretch& stretch, std::uint32_t node);
  // Of a node in the stretch that is done.
  void release_successors(Rank& rank, const Stretch& stretch, std::uint32_t node);
  void mark_done(Rank& rank, const Stretch& stretch, std::uint32_t node);
  static std::uint8_t bit_of(Lane lane) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(lane));
  }
  // Its dependences are done: it is ready once the host has issued it.
  void make_ready(Rank& rank, std::uint32_t node);
  void put_on_lane(Rank& rank, std::uint32_t node) const;
  // The host need not wait for it any longer, and goes on behind it.
  void pass_awaited(Rank& rank);
  void issue_ready(std::int32_t rank);
  void issue(std::int32_t rank, std::uint32_t node);
  void issue_transfer(std::int32_t rank, std::uint32_t node);
  void finish_after(std::int32_t rank, std::uint32_t node, Time duration);
  void compute_for(std::int32_t rank, std::uint32_t node, Time duration);
  Time computing_time(std::int32_t rank, std::uint32_t node, std::uint32_t written) const;
  // Of a computation that begins then: each of its parts once the host has issued it.
  Time end_of(std::int32_t rank, std::uint32_t node, Time begin, Time duration);
  void follow_chain(std::int32_t rank, std::uint32_t node, Time end);
  bool is_watched(Rank& rank, std::uint32_t node) const;
  // Another call holds processors, or one no longer does.
  void hold_processors(std::int32_t rank, const CollectiveCall& call, bool begins);
  // Of its computations, of what they have alone.
  double pace_of(std::int32_t rank) const;
  void schedule_end(std::int32_t rank);
  void finished(std::int32_t rank, std::uint32_t node);
  void act(std::int32_t rank);  // in its turn, where there are rounds
  void require_in_time(Rank& rank, std::uint32_t node) const;
  bool is_finished() const;
  void require_finished() const;
  std::string describe(std::int32_t rank, std::uint32_t node) const;
  // What an unfinished rank is stuck in, and the rank it waits for, or -1.
  std::pair<std::uint32_t, std::int32_t> stuck(std::int32_t rank) const;

  RunContext context_;
  Executors executors_;
  std::uint8_t exclusive_lanes_;  // a bit per lane with one node at a time
  std::uint32_t target_;
  bool contends_;  // calls for processors
  bool chains_;    // are one event
  std::span<std::vector<WatchedEnd>> watched_ends_;
  RankStates states_;
};

}  // namespace armilla
