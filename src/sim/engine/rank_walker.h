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
// (CollectiveCall::counted_on_device) until nothing is left that the call waits for, and goes on from there.
// While a rank has calls under way that hold c of its device's n processors (CollectiveCall::processors, of
// the first of them: they share a stream), its computations go on at (n - c) / n of their pace.
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
#include "sim/engine/collective_executor.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/dependents.h"
#include "sim/engine/messenger.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_context.h"
#include "sim/engine/run_progress.h"
#include "sim/fold/rank_classes.h"
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

class RankWalker final : public EventHandler, public CollectiveClient, public Viewpoint {
 public:
  // `one_communication`: at a time per rank.
  RankWalker(const RunContext& context, const Executors& executors, bool one_communication);
  RankWalker(const RankWalker&) = delete;
  RankWalker& operator=(const RankWalker&) = delete;

  std::uint32_t target() const { return target_; }

  // From now on, ends that are later throw RunIsLate (SimulationOptions::watched_ends).
  void watch_ends(std::span<std::vector<WatchedEnd>> watched) { watched_ends_ = watched; }
  // Issues every node without dependences, rank by rank.
  void start();
  // Issues what has become ready.
  void take_turn(std::int32_t rank) { issue_ready(rank); }

  // Plays on until every rank is through; where nothing moves any more, `unstick` may set things going again
  // and say so. Throws Error saying who waits for whom, and when the simulated time passes 26 days.
  void finish(const std::function<bool()>& unstick);

  void handle(std::uint64_t argument) override;  // a node that is no collective is done
  void collective_started(std::int32_t rank, std::uint32_t node) override;
  void collective_finished(std::int32_t rank, std::uint32_t node) override;
  void chunk_finished(std::int32_t rank, const ChunkInterval& phase) override;
  bool keeps_chunks(std::int32_t rank) const override { return executors_.recorder.keeps_chunks(rank); }

  // For who looks for repetition (sim/fold/time_fold.h). Where programs have loops:
  bool has_loops() const { return has_loops_; }
  // Whether the first rank has entered another period since this was last asked; and which one it is in.
  bool has_entered_period() { return std::exchange(entered_period_, false); }
  std::int64_t period() const { return period_of(ranks_.front()); }
  // Whether every rank is inside of its loop: nothing in front of it is left, nothing behind it has begun.
  bool is_inside() const;
  // Periods that no rank has come near, and what follows would not miss.
  std::int64_t spare_periods() const;
  // Whether the hosts of all ranks did in these periods what they will do in those that follow, since a
  // moment from which `passed` has passed: either they keep pace with their ranks exactly, or they are faster
  // and nobody has waited for them.
  bool hosts_repeat(Time since, Time passed, std::int64_t periods) const;
  // These periods, which take so long.
  void leave_out(std::int64_t periods, Time skipped);
  // What ranks are at, each seen from the period that it is in.
  void add_state(StateDigest& state) const;
  std::int64_t place(std::int32_t rank, std::uint32_t node) const override;
  std::int64_t age(std::int32_t rank, std::uint64_t sequence) const override {
    return static_cast<std::int64_t>(ranks_[static_cast<std::size_t>(rank)].collectives - sequence);
  }
  // The rank and node of an event.
  Digest describe(std::uint64_t argument) const;

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr std::uint32_t kDone = UINT32_MAX;
  static constexpr std::uint64_t kIssued = std::uint64_t{1}
                                           << 63;  // of an event: the host has issued its node

  struct Rank {
    // Per node, dependences that are not done, or kDone: up to the end of the loop as far as
    // needed, and behind.
    std::vector<std::uint32_t> waiting_for, waiting_behind;
    std::uint32_t first_left = 0;  // all nodes before it are done
    std::uint32_t reached = 0;     // up to the end of the loop, nothing has happened to nodes from here on
    bool is_behind = false;        // a node of the loop that a node behind it waits for is done
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
    std::uint32_t awaited = kDone;             // the next call that the host stops at
    std::uint32_t passed = 0;                  // nodes before it that it stopped at last
    std::vector<std::uint32_t> beyond;         // nodes behind `awaited` that wait for nothing but the host
    std::int32_t holding = 0;                  // calls that hold processors
    std::int32_t processors = 0;               // how many
    std::uint32_t chain = kDone;               // the first computation of the chain under way
    std::uint32_t computing = kDone;           // the node that computes, where calls may hold processors,
    Time work_left, paced_since, compute_end;  // how long it had to compute then, alone; and when it ends
    std::uint32_t nodes_left_out = 0;
    std::size_t next_watched = 0;  // of its program's watched ends, the first that was not looked at
  };
  // Of a program's written nodes.
  struct Successors {
    Successors(const Graph& graph, const Program& program, const Loop& loop, bool chains);
    void find_chains(const Program& program, const Loop& loop);
    Dependents dependents;
    std::uint32_t reach = 0;            // no node of the loop's last written period depends on one before
    std::uint32_t ends_from = 0;        // no node behind the loop does on one of the loop before
    std::vector<std::uint32_t> issues;  // of the host up to the node; empty where it is ahead always
    std::int64_t issues_in_period = 0;
    std::vector<bool> continues;  // computations whose chain goes on with the next node; empty: none does
    std::vector<bool> awaited;    // calls that the host stops at; empty where there is none
    bool awaits_in_period = false;
  };

  const Program& program_of(std::int32_t rank) const {
    return context_.graph.programs[ranks_[static_cast<std::size_t>(rank)].program];
  }
  const Loop& loop_of(const Rank& rank) const { return loops_[rank.program]; }
  const Successors& successors_of(const Rank& rank) const { return successors_[rank.successors]; }
  std::uint32_t written_node(std::int32_t rank, std::uint32_t node) const {
    return loop_of(ranks_[static_cast<std::size_t>(rank)]).written(node);
  }
  // The first node behind the loop.
  static std::uint32_t behind(const Loop& loop) { return loop.end + loop.more * loop.period; }
  std::int64_t period_of(const Rank& rank) const;
  std::uint32_t waiting(const Rank& rank, std::uint32_t node) const;
  void extend(Rank& rank, std::uint32_t node) const;
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
  void pass_awaited(Rank& rank, std::uint32_t written);
  // When the host has issued a node that it issues.
  Time issued_at(const Rank& rank, std::uint32_t node, std::uint32_t written) const;
  void issue_ready(std::int32_t rank);
  void issue(std::int32_t rank, std::uint32_t node);
  void issue_transfer(std::int32_t rank, std::uint32_t node);
  void finish_after(std::int32_t rank, std::uint32_t node, Time duration);
  void compute_for(std::int32_t rank, std::uint32_t node, Time duration);
  Time computing_time(std::int32_t rank, std::uint32_t node, std::uint32_t written) const;
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
  Peers peers_;
  std::uint32_t target_;
  std::vector<Successors> successors_;  // programs in a row with equal dependences have the same
  std::vector<Loop> loops_;             // likewise; shorter by what was left out
  bool has_loops_ = false, entered_period_ = false;
  bool contends_ = false;  // calls for processors
  bool chains_ = false;    // are one event
  std::span<std::vector<WatchedEnd>> watched_ends_;
  Time left_out_;  // how much earlier than in a whole run all ends are
  std::vector<Rank> ranks_;
};

}  // namespace armilla
