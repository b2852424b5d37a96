// The simulator: a Graph on a Machine -> Result. Composes the event queue, a network, the collective runner
// and a walker per rank.
//
// Every rank computes one node at a time, the ready one with the smallest id first; its collectives start
// when their dependences are done, in chunks, and overlap with computation and with each other
// (ir/collective.h, sim/engine/chunk_scheduler.h). Compute times come from the cost model, once per distinct
// Work; a call under way slows what computes beside it only by the processors it holds (CollectiveCall::
// processors). Not modelled: the memory bandwidth that it takes from kernels.
//
// Cost: O(nodes + dependences) per simulated rank and O(log 64) per message (n ranks, ring all-reduce:
// 2n(n-1) per chunk). Of ranks that must behave identically one is simulated (sim/fold/rank_colours.h), and
// of collectives that nothing disturbs one is played (sim/memo/lone_groups.h): exact, and tested to be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "cost/cost.h"
#include "ir/formats/system_layer.h"
#include "ir/play_time.h"
#include "ir/study.h"

namespace armilla {

struct WatchedEnd {
  std::uint32_t node = 0;  // of the whole program, ascending
  Time latest;             // when it ends at the latest in a run that is asked for
  Time seen{-1};           // the last end of it that the run saw, on whichever rank
};

struct SimulationOptions {
  bool fold = true;            // play one of the ranks that fare alike
  bool fold_time = true;       // leave out what a program with a loop does again (sim/fold/time_fold.h)
  bool every_message = false;  // play all, also those of collectives that could be evaluated
  // A run that would take more is refused beforehand; at some millions a second this default is minutes.
  double max_messages = 2e9;
  bool intervals = true;    // keep when every node ran; without, only busy times and collectives
  bool chunks = true;       // and when every chunk of a collective had each of its phases, for timelines
  bool collectives = true;  // tell what each collective took and what held it up
  // Each of them, also of what is done again and again (RankClass::repeated); without, computations of no
  // layer that follow each other at once are one, too.
  bool every_interval = true;
  RemoteMemory remote_memory{};              // where the native machine has any
  std::optional<PacketSettings> packets{};   // the same, of files of ns-3 (SystemLayer::packets)
  std::vector<std::int32_t> record_ranks{};  // whose intervals to keep, besides the first of every program
  TimeWindow window{};                       // in which busy times of ranks are added up
  // Per program: nodes on the device (Lane::device) whose ends are looked at. Empty: none.
  std::span<std::vector<WatchedEnd>> watched_ends{};
  Progress* progress = &no_progress();  // told how far the run is
};

// What `simulate` throws as soon as a computation ends later than SimulationOptions::watched_ends says. Those
// that end after one of a larger number, and those that are not played since they happened before, may not
// be looked at.
struct RunIsLate {};

// The machine of `study` must have as many devices as `graph` has ranks. `costs`: of the machine's usual
// device, then of every other one (Machine::others). Throws Error when a rank cannot finish (who waits for
// whom), when the simulated time passes 26 days, and for whatever the chosen components refuse.
Result simulate(const Graph& graph, const Study& study, std::span<const CostModel* const> costs,
                const SimulationOptions& options = {});
// `cost` is of the usual device; those of others are made by the study's compute model.
Result simulate(const Graph& graph, const Study& study, const CostModel& cost,
                const SimulationOptions& options = {});

// How long the processor plays what `simulate` would, on networks that say so
// (NetworkPromises::plays_bytes); else no time. Throws Error for what is refused before anything is played.
// Cost: that of making ready to play.
PlayTime foresee(const Graph& graph, const Study& study, const CostModel& cost,
                 const SimulationOptions& options = {});

// The same Graph under ASTRA-sim's rules (ir/formats/system_layer.h): one communication at a time per rank
// (2.x), streams instead of schedules (sim/astra/astra_engine.h), networks that truncate to nanoseconds
// (network/astra_network.h). NodeKind::compute does not occur there. One rank is played for all
// where that is exact (sim/astra/astra_fold.h), else every rank. Throws Error as above.
Result simulate(const Graph& graph, const SystemLayer& system, const SimulationOptions& options = {});

}  // namespace armilla
