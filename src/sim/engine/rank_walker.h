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

#include <array>
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
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_context.h"
#include "sim/engine/successors.h"
#include "sim/fold/rank_classes.h"
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

  // For who looks for repetition (sim/fold/time_fold.h). Where programs have loops:
  bool has_loops() const { return has_loops_; }
  // Whether the first rank has entered another period since this was last asked; and which one it is in, of
  // which loop.
  bool has_entered_period() { return std::exchange(entered_period_, false); }
  std::int64_t period() const { return period_of(ranks_.front()); }
  std::size_t loop() const { return ranks_.front().stretch; }
  bool is_last(std::size_t loop) const { return loop + 2 >= stretches_of(ranks_.front()).size(); }
  std::int64_t period(std::int32_t rank) const { return period_of(ranks_[static_cast<std::size_t>(rank)]); }
  // Whether a rank, or every rank that of the first, is inside of a loop: nothing in front of it is left,
  // nothing behind it has begun.
  bool is_inside(std::int32_t rank, std::size_t loop) const;
  bool is_inside() const;
  // Periods that no rank has come near, and what follows would not miss.
  std::int64_t spare_periods() const;
  // Whether the hosts of all ranks did in these periods what they will do in those that follow, since a
  // moment from which `passed` has passed: either they keep pace with their ranks exactly, or they are faster
  // and nobody has waited for them.
  bool hosts_repeat(Time since, Time passed, std::int64_t periods) const;
  bool host_repeats(std::int32_t rank, Time since, Time passed, std::int64_t periods) const;
  // These periods, which take each rank so long.
  void leave_out(std::int64_t periods, std::span<const Time> skipped);
  void leave_out(std::int64_t periods, Time skipped) {
    leave_out(periods, std::vector<Time>(ranks_.size(), skipped));
  }
  // From now on the rank is so much later than the clock; and whether it has nothing to do.
  void pause(std::int32_t rank, Time pause);
  bool is_idle(std::int32_t rank) const;
  // What ranks are at, each seen from the period that it is in; and what one is at.
  void add_state(StateDigest& state) const;
  void add_state(StateDigest& state, std::int32_t rank, std::int64_t from_period) const;
  // From where a state is seen that is to be compared with a later one, each rank from the period that it is
  // in: where the node is, and how many collectives the rank has issued since the one of this number.
  std::int64_t place(std::int32_t rank, std::uint32_t node) const;
  std::int64_t age(std::int32_t rank, std::uint64_t sequence) const {
    return static_cast<std::int64_t>(ranks_[static_cast<std::size_t>(rank)].collectives - sequence);
  }
  // The rank and node of an event.
  Digest describe(std::uint64_t argument) const;
  static std::int32_t rank_of(std::uint64_t argument) {
    return static_cast<std::int32_t>((argument & ~kIssued) >> 32);
  }

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr std::uint32_t kDone = UINT32_MAX;
  static constexpr std::uint64_t kIssued = std::uint64_t{1}
                                           << 63;  // of an event: the host has issued its node

  static std::uint64_t argument_of(std::int32_t rank, std::uint32_t node) {
    return std::uint64_t{static_cast<std::uint32_t>(rank)} << 32 | node;
  }

  // Of a rank's nodes in a stretch.
  struct Waiting {
    std::vector<std::uint32_t> left;  // per node as far as needed: dependences that are not done, or kDone
    std::uint32_t reached = 0;        // nothing has happened to (local) nodes from here on
  };
  struct Rank {
    std::vector<Waiting> waiting;  // per stretch
    std::uint32_t first_left = 0;  // all nodes before it are done
    std::uint32_t stretch = 0;     // that it is in
    std::uint32_t behind = 0;      // of so many loops a node is done that a node behind waits for
    std::array<std::vector<std::uint32_t>, kLanes> ready;  // per lane, a heap with the smallest id on top
    std::uint8_t lanes_ready = 0;                          // a bit per lane with ready nodes,
    std::uint8_t lanes_busy = 0;                           // per lane that is occupied
    std::uint32_t nodes_left = 0;
    std::uint32_t program = 0;
    std::uint32_t successors = 0;     // of its program's nodes
    std::uint64_t collectives = 0;    // issued so far
    std::vector<std::uint32_t> held;  // nodes that wait for nothing but the host
    Time last_held{-1};               // when the latest of them began to
    Time host_shift;  // how much later the host is, seen from what was left out, and for what it waited
    std::uint32_t awaited = kDone;              // the next node that the host stops at
    std::uint32_t passed = 0;                   // nodes before it that it stopped at last
    std::vector<std::uint32_t> beyond;          // nodes behind `awaited` that wait for nothing but the host
    std::vector<std::int32_t> held_processors;  // by calls under way, in ascending order
    std::uint32_t chain = kDone;                // the first computation of the chain under way
    std::uint32_t computing = kDone;            // the node that computes, where calls may hold processors,
    Time work_left, paced_since, compute_end;   // how long it had to compute then, alone; and when it ends
    std::uint32_t nodes_left_out = 0;
    Time left_out;                 // how much later its ends are in a whole run
    std::size_t next_watched = 0;  // of its program's watched ends, the first that was not looked at
  };
  const Program& program_of(std::int32_t rank) const {
    return context_.graph.programs[ranks_[static_cast<std::size_t>(rank)].program];
  }
  const std::vector<Stretch>& stretches_of(const Rank& rank) const { return stretches_[rank.program]; }
  // Where a node of the whole program is.
  const Stretch& stretch_at(const Rank& rank, std::uint32_t node) const {
    const Stretch* stretch = stretches_of(rank).data();
    while (node >= stretch->behind) ++stretch;
    return *stretch;
  }
  std::size_t number_of(const Rank& rank, const Stretch& stretch) const {
    return static_cast<std::size_t>(&stretch - stretches_of(rank).data());
  }
  const Stretch& stretch_of(const Rank& rank) const { return stretches_of(rank)[rank.stretch]; }
  const Successors& successors_of(const Rank& rank) const { return successors_[rank.successors]; }
  std::uint32_t written_node(const Rank& rank, std::uint32_t node) const {
    const Stretch& stretch = stretch_at(rank, node);
    return stretch.written(node - stretch.skipped);
  }
  std::uint32_t written_node(std::int32_t rank, std::uint32_t node) const {
    return written_node(ranks_[static_cast<std::size_t>(rank)], node);
  }
  // All nodes, but for what was left out.
  std::uint32_t length_of(const Rank& rank) const {
    const Stretch& last = stretches_of(rank).back();
    return last.skipped + last.loop.end;
  }
  std::int64_t period_of(const Rank& rank) const;
  std::uint32_t waiting(const Rank& rank, std::uint32_t node) const;
  // What the node waits for.
  std::uint32_t& waiting_at(Rank& rank, std::uint32_t node);
  void extend(Rank& rank, const Stretch& stretch, Waiting& waiting, std::uint32_t local) const;
  // Those of written nodes that stand behind.
  void release_behind(Rank& rank, std::uint32_t written);
  // A dependence of the node is done.
  void release(Rank& rank, std::uint32_t node);
  void release_successors(Rank& rank, std::uint32_t node);
  void mark_done(Rank& rank, std::uint32_t node);
  static std::uint8_t bit_of(Lane lane) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(lane));
  }
  // Its dependences are done: it is ready once the host has issued it.
  void make_ready(Rank& rank, std::uint32_t node);
  void put_on_lane(Rank& rank, std::uint32_t node) const;
  // From this node on, the first call that the host stops at.
  std::uint32_t next_awaited(const Rank& rank, std::uint32_t from) const;
  // The host need not wait for it any longer, and goes on behind it.
  void pass_awaited(Rank& rank);
  // When the host has issued a node that it issues.
  Time issued_at(const Rank& rank, std::uint32_t node) const;
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
  std::vector<Successors> successors_;           // programs in a row with equal dependences have the same
  std::vector<std::vector<Stretch>> stretches_;  // per program
  bool has_loops_ = false, entered_period_ = false;
  bool contends_ = false;  // calls for processors
  bool chains_ = false;    // are one event
  std::span<std::vector<WatchedEnd>> watched_ends_;
  std::vector<Rank> ranks_;
};

}  // namespace armilla
