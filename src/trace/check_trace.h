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
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"

namespace armilla {

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
  bool as_peer = false;      // as in TraceGraphOptions
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

// Rank r's trace is traces[r].
std::vector<TraceProblem> check_traces(std::span<const ChakraTrace> traces, const TraceCheckOptions& options);

// Throws one Error that shows the first `shown` problems of severity error, if there are any.
void refuse_problems(const std::vector<TraceProblem>& problems, std::size_t shown = 5);

}  // namespace armilla
