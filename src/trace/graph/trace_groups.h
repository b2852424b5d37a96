// Who takes part in a traced collective: all ranks, those along some dimensions of the network (Chakra's
// involved_dim), or a communicator (pg_name), as ASTRA-sim 2 reads them.
//
// A communicator comes from the comm-group file or from METADATA nodes of PyTorch, whose inputs hold a JSON
// list of {pg_name, ranks} as text (no ranks: all); names may be any text. "" and an undefined "0" are all
// ranks, as is any communicator of all ranks in ascending order (as_astra: in any order). Dimensions beyond
// the list of involved_dim count as involved, entries beyond the dimensions are ignored.
// Source: astra-sim 2.x Workload.cc, CommunicatorGroup.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"
#include "ir/graph.h"

namespace armilla {

// Distinct groups of a job by number.
class TraceGroups {
 public:
  static constexpr std::uint32_t kWorld = 0;
  static constexpr std::uint32_t kNobody = UINT32_MAX;  // at most one rank: nothing to communicate

  // The product of `dimension_sizes` (innermost first) is the number of ranks.
  TraceGroups(std::vector<std::int64_t> dimension_sizes, bool as_astra);

  std::int64_t ranks() const { return ranks_; }
  std::uint32_t along(const std::vector<bool>& involved_dimensions);
  std::uint32_t of(const std::vector<std::int32_t>& members);

  std::int64_t size(std::uint32_t group) const;
  bool has(std::uint32_t group, std::int32_t rank) const;
  // Whether the group's number stands for several groups, one per position in the other dimensions.
  bool is_grid(std::uint32_t group) const { return group < groups_.size() && groups_[group].mask != 0; }
  // The members, in communicator order, as `rank` sees it; `rank` must be one of them.
  std::vector<std::int32_t> members(std::uint32_t group, std::int32_t rank) const;
  std::string describe(std::uint32_t group) const;  // "all ranks", "ranks 0, 2, 4"
  std::size_t count() const { return groups_.size(); }

  // The groups packed into families of disjoint ones, first come, first served; the family of each group.
  std::vector<GroupFamily> families(std::vector<std::uint32_t>& family_of) const;

 private:
  struct Group {
    std::uint32_t mask = 0;             // of dimensions; 0: a list
    std::vector<std::int32_t> members;  // of a list
    std::vector<std::int32_t> sorted;
  };

  std::vector<std::int64_t> sizes_;
  std::int64_t ranks_ = 1;
  bool as_astra_;
  std::vector<Group> groups_;
  std::map<std::uint32_t, std::uint32_t> by_mask_;
  std::map<std::vector<std::int32_t>, std::uint32_t> by_members_;
};

// The communicators that a trace itself defines, over those of the job. Throws Error for a process-group node
// that cannot be understood or names ranks that do not exist.
Communicators communicators_of(const ChakraTrace& trace, const Communicators& of_job, std::int64_t ranks);

// What one rank's trace calls its groups.
struct RankGroups {
  std::int32_t rank = 0;
  Communicators communicators;
  std::map<std::string, std::uint32_t> known;  // communicators used before
};
// The group of a COMM_COLL node. Throws Error for an unknown communicator and one without the rank.
std::uint32_t group_of_node(const ChakraTrace& trace, std::size_t node, RankGroups& own, TraceGroups& groups);

}  // namespace armilla
