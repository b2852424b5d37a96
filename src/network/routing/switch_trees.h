// Trees of switches that add up what members send towards the root, and copy what comes back from it: the
// ways of messages that end or begin there (Leg).
//
// A root is a switch that leads to all members without passing a device, and of those one of the fewest links
// to the farthest, then to all together: for members of one leaf the leaf. Ways to the root are shortest
// ones; where two meet they go on as one, so that a link carries what is added up below it once, and so what
// all below it get of a sum (Graham et al., COM-HPC 2016). It belongs to the first member below it, whose
// messages load it. Switches pass on what they add up as it comes: a message takes the latency of the whole
// way to the root or from it.
//
// Of several roots that are equally good, and of parallel links, each has a tree, and a message goes over all
// of them at once, over each in proportion to its narrowest link: so all links above the leaves carry what
// they can, whatever some of them have lost.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/collective.h"
#include "network/message_links.h"
#include "network/routing/link_graph.h"

namespace armilla {

class SwitchTrees {
 public:
  explicit SwitchTrees(const LinkGraph& graph) : graph_(graph) {}

  // The number of the trees of these members, in their order. Throws Error where no switch leads to all of
  // them.
  std::uint32_t find(std::span<const std::int32_t> members, CollectiveKind kind);

  struct Branch {
    std::vector<LinkShare> links;  // that it loads; at least the member's own
    Time latency;
  };
  // Of a message to the roots, from `source`, or from them, to `destination`, on whose way `source` may lie.
  Branch branch(std::uint32_t tree, Leg leg, std::int32_t source, std::int32_t destination) const;
  // Of that message, a link of the source to the trees, or of the trees to the destination.
  std::uint32_t link_of_member(std::uint32_t tree, Leg leg, std::int32_t source,
                               std::int32_t destination) const;

 private:
  struct Way {
    std::vector<std::uint32_t> up;  // links to the root
    std::size_t own = 0;            // of these, from the member on, that are no earlier member's
    Time latency, back;             // up, and down
  };
  struct Tree {
    std::map<std::int32_t, Way> ways;  // by member
    double width = 0;                  // of its narrowest link, in bytes per second
    std::uint32_t parallel = 1;        // links between two of its nodes, at most
    double share = 1;                  // of each message
  };
  struct Trees {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::vector<Tree> all;
  };
  std::vector<std::uint32_t> roots(std::span<const std::int32_t> members) const;
  Tree grow(std::span<const std::int32_t> members, std::uint32_t root, std::uint32_t turn) const;

  const LinkGraph& graph_;
  std::vector<Trees> trees_;
  std::map<std::pair<std::vector<std::int32_t>, CollectiveKind>, std::uint32_t> known_;
};

}  // namespace armilla
