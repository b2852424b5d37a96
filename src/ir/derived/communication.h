// Who communicates how much: collectives and messages of a run, summed by kind.
//
// Two views. The sums over one rank of every role say what was simulated. `per_rank` says what a device goes
// through: means over the ranks that take part, so that no time is longer than the iteration. Its time is
// that in which at least one call is under way; calls that run at the same time count once.
//
// Bus bandwidth is nccl-tests' (ir/derived/metrics.h). A link's limit is the least time in which the busiest
// link could carry what is sent over it: of a message, its bytes over the slowest link between the two ranks.
// Both know of the ranks that were recorded, one of every role, and take its others to fare alike; where they
// do not, `communication_spread` says by how much. Cost: O(calls log calls).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/study.h"

namespace armilla {

// Means over the ranks that take part.
struct RankTraffic {
  std::int64_t ranks = 0;  // how many do
  double calls = 0;
  Bytes bytes;
  Time time;
  Time most_time;         // of any of them
  Time queued;            // from issued to started
  Bandwidth bandwidth;    // over `time`; the bus bandwidth of collectives
  double link_share = 0;  // fraction of the links' limit that was reached; 0: not known
};

struct CollectiveSummary {
  CollectiveKind kind;
  std::string algorithm;
  std::int64_t group_size = 0;
  std::int64_t count = 0;
  std::string_view axis;    // family of the groups, of runs with a model
  Bytes bytes;              // per rank, all calls
  Time time;                // sum of started-to-finished
  Time queued;              // sum of issued-to-started
  Bandwidth bus_bandwidth;  // over the summed time
  double link_share = 0;    // fraction of the link's limit reached, 0 to 1
  RankTraffic per_rank;
};
// Grouped by kind, algorithm, group size and axis, the longest first.
std::vector<CollectiveSummary> summarize_collectives(const Run& run);

// A collective when it happened: all times of its record are so much later.
struct HappenedCollective {
  const CollectiveRecord* record = nullptr;
  Time later;
};
struct HappenedCollectives {
  std::vector<HappenedCollective> all;  // in the order of their ends
  std::int64_t left_out = 0;
};
// One by one, what was recorded once for many times as often as it happened: the first `most` of each
// program. O(listed log listed + recorded).
HappenedCollectives collectives_one_by_one(const Run& run, std::int64_t most);

struct MessageSummary {
  std::string_view axis;  // as of collectives; empty: between ranks by number
  std::int64_t count = 0;
  Bytes bytes;  // sent
  Time time;    // sum of sent-to-delivered
  RankTraffic per_rank;
};
// Sends, grouped by axis, the longest first.
std::vector<MessageSummary> summarize_messages(const Run& run);

// The role whose ranks communicate for the most different times, unless they differ by less than a hundredth
// of the iteration.
struct CommunicationSpread {
  std::uint32_t program = 0;
  Time least, most;
};
std::optional<CommunicationSpread> communication_spread(const Run& run);

}  // namespace armilla
