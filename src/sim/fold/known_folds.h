// Classes of ranks that are kept from one run to the next: plans of a search, and runs of one plan, often
// have the same groups and issue the same, so that the same ranks fare alike.
//
// Structures are compared in full: programs of ranks, groups, and what every program issues, with all that
// colours ranks (sim/fold/rank_colours.h); machine, network and what-if are one study's. Only of networks
// over dimensions. Cost: O(ranks x families + items) instead of several colourings of all ranks. The latest
// structures are kept, and fewer of large jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "ir/graph.h"
#include "sim/collective_plan.h"
#include "sim/plan/rank_classes.h"
#include "sim/plan/study_job.h"

namespace armilla {

class KnownFolds {
 public:
  // As many structures at most, of as many ranks (sim/run_memory.h).
  KnownFolds(std::size_t most, std::size_t most_ranks) : most_(most), most_ranks_(most_ranks) {}
  // As fold_ranks; stays where it is until the next call. All calls are of one study.
  const RankClasses& classes_of(const StudyJob& input, CollectivePlanner& planner);

 private:
  struct Item {
    NodeKind kind = NodeKind::collective;
    std::uint64_t bytes = 0;  // or of remote memory
    std::uint32_t family = 0, tag = 0;
    std::int32_t end = 0;  // root or peer
    CollectiveKind collective = CollectiveKind::all_reduce;
    PeerKind peer_kind = PeerKind::rank;
    ExpertRouting routing{};
    bool operator==(const Item&) const = default;
  };
  struct Structure {
    std::vector<std::uint32_t> program_of;
    std::vector<std::vector<Item>> items;                        // by program
    std::vector<std::vector<std::vector<std::int32_t>>> groups;  // by family
    bool shares_memory = false;
    RankClasses classes;

    std::size_t size() const { return program_of.size() * (groups.size() + 1); }
  };
  static std::vector<std::vector<Item>> items_of(const StudyJob& input);
  static bool is_of(const Structure& known, const StudyJob& input,
                    const std::vector<std::vector<Item>>& items);

  std::size_t most_, most_ranks_;
  std::list<Structure> known_;  // the latest one first
  RankClasses other_;           // of what is not kept
};

}  // namespace armilla
