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
// Of several roots that are equally good, and of several next switches on the way to one, each has a tree,
// and a message goes over all of them at once. How much of it each gets is found by filling (Bertsekas,
// Gallager, "Data Networks", 1992, 6.5.2): all trees grow, each in proportion to its narrowest link, until a
// link is full, and those that do not cross it go on. Parallel links between two nodes carry what a tree has
// there in proportion to their bandwidths. So all links above the leaves carry what they can, whatever some
// of them have lost and however many there are.
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
  // Of more roots that are equally good so many are taken; no switch has as many ports.
  static constexpr std::size_t kMostRoots = 1024;

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
  // Links from one node to one other, all of those that lie on widest shortest ways to a root.
  struct Parallel {
    std::vector<std::uint32_t> links;
    Time latency, back;  // the longest, up and down
  };
  struct Hop {
    std::uint32_t next = kRoot;  // the hop behind it
    std::uint32_t parallel = 0;  // of parallel_
    std::int32_t owner = 0;      // the first member that comes there
    static constexpr std::uint32_t kRoot = UINT32_MAX;
  };
  struct Tree {
    std::vector<Hop> hops;  // of the members, in their order, and of switches
    double share = 1;       // of each message
  };
  struct Trees {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::map<std::int32_t, std::uint32_t> places;  // of members: their hops
    std::vector<Tree> all;
  };
  std::vector<std::uint32_t> roots(std::span<const std::int32_t> members) const;
  void grow(std::span<const std::int32_t> members, std::uint32_t root, std::size_t most,
            std::vector<Tree>& trees);
  void share_out(std::vector<Tree>& trees) const;
  // Part of `whole` that each of these, or of their opposites, carries.
  std::vector<LinkShare> split(const Hop& hop, bool up, double whole) const;

  const LinkGraph& graph_;
  std::vector<Parallel> parallel_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> parallel_known_;  // by links
  std::vector<Trees> trees_;
  std::map<std::pair<std::vector<std::int32_t>, CollectiveKind>, std::uint32_t> known_;
};

}  // namespace armilla
