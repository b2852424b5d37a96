// Into which phases ASTRA-sim's system layer cuts a chunk of a collective ("stream"): one phase per dimension
// and direction, each with its algorithm, its size and the queue it waits in.
//
// Sources: astra-sim 2.x Sys::generate_collective, determine_chunk_size,
// CommunicatorGroup::get_collective_plan, QueueLevels; 1.0 differs in the chunk size and in using all queues
// of a dimension both ways. Sizes: all-reduce, reduce-scatter, all-to-all: a rank's input; all-gather: its
// shard (as ASTRA-sim counts).
//
// Apart from CollectivePlanner (sim/collective_plan.h): natively a plan is a function of the call, made once
// and looked up; here it depends on what was planned before (whose turn a dimension is, Themis's loads, which
// tree was the last), on sizes that are truncated phase by phase, and on queues. What both make of it,
// schedules of `collective/`, they share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/formats/system_layer.h"
#include "ir/graph.h"
#include "sim/astra/astra_schedule.h"

namespace armilla {

inline constexpr std::int32_t kFlatPhase = -1;  // a phase over all members, not along a dimension

enum class AstraMethod : std::uint8_t {
  ring,
  direct,
  halving_doubling,
  double_binary_tree,
  scheduled,  // by a Schedule: what ASTRA-sim's algorithms cannot do (any size, any kind)
  custom
};

// Of the queues of a dimension: any in turn, those of the first half in turn, those of the second.
enum class QueueShare : std::uint8_t { any, first, second };

struct AstraPhase {
  AstraMethod method = AstraMethod::ring;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int32_t dimension = 0;  // logical, or kFlatPhase
  std::int64_t stride = 0;     // of the dimension, in ranks
  QueueShare share = QueueShare::any;
  bool local = false;  // within a communicator: endpoint delay is fixed, counters differ
  std::int32_t ranks = 2;
  std::int64_t bytes = 0;                   // at its beginning
  std::int64_t each = 0;                    // of a message, where all are alike
  std::int32_t sends = 0;                   // messages each rank sends: "stream count"
  const AstraSchedule* schedule = nullptr;  // of all but custom ones

  // The logical dimension whose queues it waits in.
  std::int32_t queue_level() const { return std::max(dimension, 0); }
};

// Bytes of the chunk once the phase is through.
std::int64_t final_bytes(const AstraPhase& phase);

class Themis;

// Makes the phases. State is ASTRA-sim's: counters per dimension, loads of the Themis scheduler.
class AstraPlanner {
 public:
  explicit AstraPlanner(const SystemLayer& system);
  AstraPlanner(const AstraPlanner&) = delete;
  AstraPlanner& operator=(const AstraPlanner&) = delete;
  ~AstraPlanner();

  const std::vector<std::int64_t>& logical_sizes() const { return sizes_; }
  const std::vector<std::int64_t>& logical_strides() const { return strides_; }

  struct ChunkSizes {
    std::int64_t total, chunk;
  };
  // `total` in ASTRA-sim's sense; raised where that raises it. Throws Error for sizes that never end
  // there.
  ChunkSizes chunk_sizes(const CollectiveCall& call, std::int64_t group_size) const;

  // Rank 0 issues a collective: Themis forgets its loads when time has moved on.
  void first_rank_issues(Time now);

  // Calls `visit(phases)` for chunk after chunk of a call of `graph` among so many ranks of a group, until
  // there is none or it says no.
  template <class Visit>
  void for_each_chunk(const Graph& graph, const CollectiveCall& call, std::int64_t group_size,
                      const Visit& visit) {
    const ChunkSizes sizes = chunk_sizes(call, group_size);
    // A communicator of all ranks has the network's dimensions, whatever its order.
    const std::uint32_t mask =
        group_size == graph.ranks ? UINT32_MAX : graph.families[call.family].dimension_mask;
    for (std::int64_t remaining = sizes.total; remaining > 0;) {
      std::vector<AstraPhase> phases = next_chunk(call, mask, group_size, sizes.chunk, remaining);
      if (phases.empty() || !visit(std::move(phases))) return;
    }
  }

  // What was done otherwise than ASTRA-sim would, one sentence each.
  const std::set<std::string>& notes() const { return notes_; }

 private:
  // The next chunk of `call`; takes its bytes out of `remaining`. `group_size` ranks of a family whose
  // groups span `mask` (0: a communicator).
  std::vector<AstraPhase> next_chunk(const CollectiveCall& call, std::uint32_t mask, std::int64_t group_size,
                                     std::int64_t chunk, std::int64_t& remaining);
  bool takes_part(std::size_t dimension, std::uint32_t mask) const {
    return sizes_[dimension] > 1 && (mask >> dimension & 1);
  }
  std::vector<StreamAlgorithm> algorithms(CollectiveKind kind) const;
  std::vector<std::size_t> dimension_order(CollectiveKind kind, std::uint32_t mask, std::int64_t chunk,
                                           std::int64_t& remaining, std::int64_t& bytes);
  std::vector<AstraPhase> grid_phases(CollectiveKind kind, std::uint32_t mask,
                                      const std::vector<std::size_t>& order, std::int64_t bytes);
  AstraPhase make_phase(CollectiveKind kind, const StreamAlgorithm& algorithm, std::int32_t dimension,
                        std::int64_t ranks, std::int64_t bytes, QueueShare share, bool local);
  void choose_method(AstraPhase& phase, const StreamAlgorithm& algorithm);
  void use_schedule(AstraPhase& phase, std::string_view algorithm, std::int32_t root = 0);

  const SystemLayer& system_;
  std::vector<std::int64_t> sizes_, strides_;  // logical
  std::vector<std::size_t> physical_;          // dimension of each logical one
  std::size_t turn_ = 0;                       // of the round-robin order
  std::map<std::pair<CollectiveKind, std::int32_t>, std::int64_t>
      trees_;  // how many trees were made, by topology
  std::unique_ptr<Themis> themis_;
  Time last_issue_{};
  // By what they were made of: method, kind, ranks and what else the method goes by; algorithm, bytes, root
  // and `each` of native ones.
  using ScheduleKey = std::tuple<AstraMethod, CollectiveKind, std::int32_t, std::int64_t, std::int32_t>;
  std::map<ScheduleKey, AstraSchedule> schedules_;
  std::map<std::tuple<CollectiveKind, std::string, std::int32_t, std::int64_t, std::int32_t, std::int64_t>,
           AstraSchedule>
      native_schedules_;
  std::set<std::string> notes_;
};

}  // namespace armilla
