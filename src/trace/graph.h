// Chakra traces of a job into one Graph, and what is wrong with them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"
#include "ir/graph.h"

namespace armilla {

// Chakra traces, one per rank -> Graph, with ASTRA-sim 2's meaning of every node.
//
// Nodes keep the order of their ids (it decides which of the ready ones goes first); what a node waits for is
// the union of its data and control dependences. By type: COMP a delay of duration_micros, or by the roofline
// ops / min(peak, bandwidth x ops / bytes) truncated to ns, on the device or (is_cpu_op) the host;
// MEM_LOAD, MEM_STORE remote memory of tensor_size bytes; COMM_SEND, COMM_RECV messages; COMM_COLL a
// collective of its group (trace/graph/trace_groups.h); INVALID, METADATA, a roofline COMP without bytes and
// a collective of fewer than two ranks nothing, at once. Chakra's kinds: REDUCE_SCATTER_BLOCK is a
// reduce-scatter; GATHER and SCATTER, of comm_size bytes per member, are messages to and from the root, as a
// custom schedule of a reduce and a broadcast. all_gather's comm_size is the shard (ir/collective.h has the
// whole). as_astra: times are whole ns and at least one; kDurationNs is ignored; BROADCAST only takes its
// duration. Not reproduced: ASTRA-sim's stop at INVALID nodes, its abort at METADATA, REDUCE, GATHER,
// SCATTER, BARRIER. Source: astra-sim 2.x Workload.cc, HardwareResource.cc, Roofline.cc. Cost: O(n log n) for
// ids out of order, else O(n); a trace is not needed once it was added.

struct TraceGraphOptions {
  std::vector<std::int64_t> dimension_sizes;  // of the network, innermost first; the product: ranks
  Communicators communicators;
  bool as_astra = false;
  bool replay_only = false;  // every node just lasts its duration
  bool roofline = false;
  double peak_flops = 0, memory_bytes_per_second = 0;  // of the roofline
  // Schedules of the user's, and which of them a collective follows, by kind or by the node's id.
  std::vector<CustomCollective> custom;
  std::map<CollectiveKind, std::int32_t> custom_of_kind;
  std::map<std::uint64_t, std::int32_t> custom_of_node;
};

// Sums over a program's COMP nodes, for ASTRA-sim's utilisation report; all times in ns.
struct RooflineUse {
  double time = 0;                 // of all COMP nodes
  double compute_bound_time = 0;   // of those that the peak limits
  double compute_utilisation = 0;  // each times the node's time
  double memory_utilisation = 0;
  double operation_intensity = 0;
};

class TraceGraphBuilder {
 public:
  explicit TraceGraphBuilder(TraceGraphOptions options);
  ~TraceGraphBuilder();
  TraceGraphBuilder(const TraceGraphBuilder&) = delete;
  TraceGraphBuilder& operator=(const TraceGraphBuilder&) = delete;

  // Each rank once, in any order; ranks with the same trace share a program. Throws Error for what a trace
  // gets wrong by itself.
  void add_ranks(std::span<const std::int32_t> ranks, const ChakraTrace& trace);

  // What the user should not overlook, such as collectives of nobody.
  const std::vector<std::string>& warnings() const;
  // Per program, with options.roofline.
  const std::vector<RooflineUse>& roofline_use() const;

  // Throws Error when a rank is missing. Once.
  Graph finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether the Chakra traces of a job fit together, before anything is simulated: what ASTRA-sim drops, waits
// for until the end of the run, or aborts on.
//
// Within a rank: ids given twice, dependences on missing nodes, on oneself and in circles, impossible
// attributes (trace/graph/trace_nodes.h). Between ranks: sends and receives that do not meet (same source,
// destination, tag and size), collectives whose members disagree in number, order, kind or size. The order of
// a rank's collectives is that in which ready nodes with the smallest id go first; where dependences put
// collectives in another order than their ids and ranks then disagree, although their ids agree, that is a
// warning. So is a send that nobody receives: it completes.
// Not checked: deadlocks between messages and collectives of several groups; the simulator reports those.
// Cost: O(n log n) in nodes and messages. Traces may be freed once added.

struct TraceProblem {
  enum class Severity : std::uint8_t { warning, error };
  Severity severity = Severity::error;
  std::string where;  // "trace.3.et: node 17 'fc1'"
  std::string message;
  std::string hint;
};

struct TraceCheckOptions {
  std::vector<std::int64_t> dimension_sizes;  // of the network, innermost first; the product: ranks
  Communicators communicators;
  bool as_astra = false;     // as in TraceGraphOptions
  bool replay_only = false;  // communication is not looked at
};

class TraceChecker {
 public:
  explicit TraceChecker(const TraceCheckOptions& options);
  ~TraceChecker();
  TraceChecker(const TraceChecker&) = delete;
  TraceChecker& operator=(const TraceChecker&) = delete;

  void add_ranks(std::span<const std::int32_t> ranks, const ChakraTrace& trace);
  // Errors first, otherwise in the order found; a flood of one kind is cut short. Once.
  std::vector<TraceProblem> finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Throws one Error that shows the first `shown` problems of severity error, if there are any.
void refuse_problems(const std::vector<TraceProblem>& problems, std::size_t shown = 5);

}  // namespace armilla
