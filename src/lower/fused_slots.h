// Slots of a pipeline as one node each: what a rank does between two messages of its stages, where that takes
// the same time whenever it is done.
//
// A slot's passes begin when the computations before them and all that they wait for are done, and end with
// their last computation and communication, which the next slot and what is sent on wait for
// (lower/pipeline/stage_program.h). So slots follow each other without overlap, and the blocks in a slot do,
// too: a slot that meets nothing else on its links lasts as long as its blocks do alone (`lone_block`,
// simulated once for all plans that have it).
// In its place stands one delay of that length on the device. Others depend in part on the first forward pass
// of each chunk where parameters are gathered before it (ZeRO-1 with Plan::overlap_parameters), and on the
// last backward passes (gradients leave as they are made): between blocks. There each block is one delay up
// to its last computation, and another, on the way to the host, where it communicates beyond; but the first
// of a shape on a rank is written as before, so that the job still has one of every call. Where activations
// are offloaded, which leave and come back between blocks, every slot is written so, with the second delay on
// the device, since the way to the host is taken; but the slots that wait for parameters or send gradients
// off are written out. So is, where the exchanges take the same links or the host's, every slot that others
// depend on in part.
// Where the CPU issues nodes one by one (Program::issue_time) a delay has the times of its nodes as parts,
// each of which waits for the CPU as its node does: which is the same where every node waits for the one
// before it. Where some overlap, the first slot of a rank is written out, and the CPU must be ahead of the
// others (FusedJob::host_is_ahead), which one that stops at messages never is.
//
// Not fused: DualPipe's pairs, what never flushes, ZeRO-2 and -3, whose slots do exchange something in
// between, and experts over several ranks where a CPU issues nodes, which waits for their counts.
#pragma once

#include <compare>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "ir/graph.h"
#include "ir/plan.h"
#include "lower/hybrid.h"
#include "lower/pipeline_schedule.h"
#include "lower/sharded_model.h"

namespace armilla {

struct SlotKind {
  std::vector<std::uint32_t> shapes;  // of the blocks of the stage
  PipelineAction action = PipelineAction::forward;
  auto operator<=>(const SlotKind&) const = default;
};

struct SlotTime {
  Time duration;            // from the begin of the slot to the end of all that it does
  Time compute;             // of it; else the rank waits for communication
  Time behind;              // what is left of it after the last computation
  std::int64_t issues = 0;  // of its nodes, by a host that issues them (host_issues of ir/graph.h)
  // How long what each issue begins takes, where each node waits for the one before it (empty: some overlap),
  // and how many of them follow the last computation.
  std::vector<Time> parts{};
  std::size_t parts_behind = 0;
  bool is_chain() const { return std::ssize(parts) == issues; }
};

struct Fusion {
  std::map<SlotKind, SlotTime> slots;  // of all kinds of the plan, and of each of their blocks alone
  // Also slots beside which gradients or parameters may be exchanged: where these take other links.
  bool beside_exchanges = false;
};

// Of the plan, each once; none where its slots are no such stretches.
std::vector<SlotKind> slot_kinds(const ShardedModel& model, const Plan& plan);

// The plan's ranks, all of them doing what a slot does in a block of this shape once and nothing else:
// without programs where that is nothing. No graph where part of it does not wait for what the slot waits
// for.
std::optional<Graph> lone_block(const ShardedModel& model, const Plan& plan, std::uint32_t shape,
                                PipelineAction action);

// The last computation of a slot, or the delay that has it.
struct FusedSlotEnd {
  std::uint32_t node = 0;
  Time behind{};  // how much longer the delay lasts
};

// A job with fused slots, in loops where it has any (lower/jobs/job_loops.h).
struct FusedJob {
  Graph graph;
  // Per program: the time in which its delays compute nothing, over all of the iteration.
  std::vector<Time> waits;
  // Per program, its slots as far as they are written, and their ends.
  std::vector<std::vector<NodeRange>> slot_nodes;
  std::vector<std::vector<FusedSlotEnd>> slot_ends;
  // Whether the CPU, where it issues nodes one by one (Plan::host), has surely issued all of a slot before
  // the slot begins. Else the job may take longer than its graph.
  bool host_is_ahead = true;
};
// `fusion` must have all of slot_kinds.
FusedJob lower_fused(const ShardedModel& model, const Plan& plan, const Fusion& fusion,
                     Bandwidth host_bandwidth);

}  // namespace armilla
