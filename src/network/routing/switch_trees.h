// Trees of switches that add up what members send towards the root, and copy what comes back from it: the
// ways of messages that end or begin there (Leg).
//
// A root is a switch that leads to all members without passing a device, and of those one of the fewest links
// to the farthest, then to all together: for members of one leaf the leaf. Ways to the root are shortest
// ones; where two meet they go on as one, so that a link carries what is added up below it once, and so what
// all below it get of a sum (Graham et al., COM-HPC 2016). It belongs to the first member below it, whose
// messages load it. Switches pass on what they add up as it comes: a message takes the latency of the whole
// way to the root or from it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "ir/collective.h"
#include "network/routing/link_graph.h"

namespace armilla {

class SwitchTrees {
 public:
  explicit SwitchTrees(const LinkGraph& graph) : graph_(graph) {}

  // The number of the tree of these members, in their order. Of several roots that are equally good, which
  // take turns by `turn`, one. Throws Error where no switch leads to all of them.
  std::uint32_t find(std::span<const std::int32_t> members, CollectiveKind kind, std::uint32_t turn);

  struct Branch {
    std::vector<std::uint32_t> links;  // that it loads; at least the member's own
    Time latency;
  };
  // Of a message to the root, from `source`, or from it, to `destination`, on whose way `source` may lie.
  Branch branch(std::uint32_t tree, Leg leg, std::int32_t source, std::int32_t destination) const;
  // Of that message, the link of the source to the tree, or of the tree to the destination.
  std::uint32_t link_of_member(std::uint32_t tree, Leg leg, std::int32_t source,
                               std::int32_t destination) const;

 private:
  struct Way {
    std::vector<std::uint32_t> up;  // links to the root
    std::size_t own = 0;            // of these, from the member on, that are no earlier member's
    Time latency, back;             // up, and down
  };
  struct Tree {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::map<std::int32_t, Way> ways;  // by member
  };
  std::vector<std::uint32_t> roots(std::span<const std::int32_t> members) const;
  Tree grow(std::span<const std::int32_t> members, CollectiveKind kind, std::uint32_t root,
            std::uint32_t turn) const;

  const LinkGraph& graph_;
  std::vector<Tree> trees_;
  std::map<std::vector<std::int32_t>, std::vector<std::uint32_t>> roots_;  // by members
  std::map<std::tuple<std::vector<std::int32_t>, CollectiveKind, std::uint32_t>, std::uint32_t> known_;
};

}  // namespace armilla
