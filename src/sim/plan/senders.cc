#include "sim/plan/senders.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "network/topology.h"

namespace armilla {
namespace {

// Of the families whose collectives a program issues, each once.
std::vector<std::uint32_t> families_of(const Graph& graph, const Issued& issued) {
  std::vector<std::uint32_t> families;
  for (const IssuedItem& item : issued.items) {
    if (item.kind != NodeKind::collective || graph.collectives[item.payload].custom >= 0) continue;
    const std::uint32_t family = graph.collectives[item.payload].family;
    if (std::ranges::find(families, family) == families.end()) families.push_back(family);
  }
  return families;
}

// Whether any two neighbours of a ring have a cable that several senders use. Looked at are all ranks, of
// folded runs, too: what is not seen of one that stands for others could be true of those.
class RingUsers {
 public:
  RingUsers(const StudyJob& input, const Topology& topology, std::uint32_t dimension)
      : graph_(input.graph),
        issued_(input.issued),
        peers_(input.peers),
        topology_(topology),
        dimension_(dimension),
        size_(static_cast<std::int32_t>(topology.dimension(dimension).size)),
        user_of_(static_cast<std::size_t>(graph_.ranks), kNobody) {
    for (std::uint32_t d = 0; d < dimension; ++d)
      stride_ *= static_cast<std::int32_t>(topology.dimension(d).size);
  }

  bool are_several(const std::vector<std::vector<std::uint32_t>>& families) {
    std::vector<bool> is_issued(graph_.families.size() * issued_.size());
    for (std::size_t program = 0; program < families.size(); ++program) {
      for (const std::uint32_t family : families[program])
        is_issued[family * issued_.size() + program] = true;
    }
    for (std::uint32_t family = 0; family < graph_.families.size(); ++family) {
      for (const std::vector<std::int32_t>& group : graph_.families[family].groups) {
        const bool any = std::ranges::any_of(group, [&](std::int32_t rank) {
          return is_issued[family * issued_.size() + graph_.program_of[static_cast<std::size_t>(rank)]];
        });
        if (any && !add(group, family)) return true;
      }
    }
    for (std::int32_t rank = 0; rank < graph_.ranks; ++rank) {
      for (const IssuedItem& item : issued_[graph_.program_of[static_cast<std::size_t>(rank)]].items) {
        if (item.kind != NodeKind::send) continue;
        if (!add_message(rank, peers_.of(rank, graph_.transfers[item.payload]))) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX, kNodes = UINT32_MAX - 1;

  // From the member at a coordinate to the next one; false where another uses it.
  bool use(std::int32_t rank, std::uint32_t sender) {
    std::uint32_t& user = user_of_[static_cast<std::size_t>(rank)];
    if (user != kNobody && user != sender) return false;
    user = sender;
    return true;
  }

  // Members of a group send each other messages the shorter way: over all cables between them but those of a
  // gap that is longer than the way round it.
  bool add(const std::vector<std::int32_t>& group, std::uint32_t family) {
    lines_.clear();
    for (const std::int32_t rank : group) {
      const std::int32_t here = topology_.coordinate(rank, dimension_);
      lines_.emplace_back(rank - here * stride_, here);
    }
    std::ranges::sort(lines_);
    // Those of no grid may go anywhere in the dimension.
    const bool differ = std::ranges::any_of(
        lines_, [&](const auto& member) { return member.second != lines_.front().second; });
    const auto on_first = static_cast<std::size_t>(
        std::ranges::find_if(lines_,
                             [&](const auto& member) { return member.first != lines_.front().first; }) -
        lines_.begin());
    bool is_grid = lines_.size() % on_first == 0;  // the same members on every line
    for (std::size_t i = on_first; is_grid && i < lines_.size(); ++i) {
      is_grid = lines_[i].second == lines_[i - on_first].second &&
                (lines_[i].first == lines_[i - 1].first) == (i % on_first != 0);
    }
    if (differ && !is_grid) {
      for (std::int32_t rank = 0; rank < graph_.ranks; ++rank) {
        // All cables of all lines then are taken for the group's.
        if (!use(rank, family)) return false;
      }
      return true;
    }
    for (auto first = lines_.begin(); first != lines_.end();) {
      const auto end = std::ranges::find_if(first, lines_.end(),
                                            [&](const auto& member) { return member.first != first->first; });
      for (auto member = first; end - first > 1 && member != end; ++member) {
        const auto next = member + 1 == end ? first : member + 1;
        const std::int32_t gap = (next->second - member->second + size_) % size_;
        for (std::int32_t i = 0; 2 * gap <= size_ && i < gap; ++i) {
          if (!use(first->first + (member->second + i) % size_ * stride_, family)) return false;
        }
      }
      first = end;
    }
    return true;
  }

  bool add_message(std::int32_t source, std::int32_t destination) {
    if (source == destination) return true;
    const Message message{source, destination, {}};
    bool is_unshared = true;
    topology_.for_each_link(message, [&](const LinkId& link, const Position& beyond) {
      // A link the other way belongs to the rank behind its cable.
      if (link.dimension == dimension_)
        is_unshared = is_unshared && use(link.number == 0 ? link.owner : beyond.rank, kNodes);
    });
    return is_unshared;
  }

  const Graph& graph_;
  std::span<const Issued> issued_;
  const Peers& peers_;
  const Topology& topology_;
  std::uint32_t dimension_;
  std::int32_t size_, stride_ = 1;
  std::vector<std::uint32_t> user_of_;                        // by the rank whose cable to the next one it is
  std::vector<std::pair<std::int32_t, std::int32_t>> lines_;  // of members: the rank at 0, and coordinates
};

// Bit d: messages of nodes, sent by the ranks that are simulated, cross dimension d of the first 32.
std::uint32_t crossed_by_messages(const StudyJob& input, const Topology& topology,
                                  const RankClasses& classes) {
  const Graph& graph = input.graph;
  std::uint32_t crossed = 0;
  for (const std::int32_t rank : classes.real) {
    for (const IssuedItem& item : input.issued[graph.program_of[static_cast<std::size_t>(rank)]].items) {
      if (item.kind == NodeKind::send)
        crossed |= topology.differing(rank, input.peers.of(rank, graph.transfers[item.payload]));
    }
  }
  return crossed;
}

// By dimensions alone, whatever ranks.
std::uint32_t used_by_several(const StudyJob& input, const Topology& topology,
                              const std::vector<std::vector<std::uint32_t>>& families,
                              const RankClasses& classes, CollectivePlanner& planner) {
  const Graph& graph = input.graph;
  std::vector<std::uint32_t> crossed(graph.families.size());
  std::unordered_set<const GroupLayout*> seen;
  for (const std::int32_t rank : classes.real) {
    for (const std::uint32_t family : families[graph.program_of[static_cast<std::size_t>(rank)]]) {
      const std::int32_t group = graph.families[family].group_of[static_cast<std::size_t>(rank)];
      const GroupLayout& layout = planner.layout(graph, family, group);
      // Where members are not folded, each asks for the same.
      if (!seen.insert(&layout).second) continue;
      for (std::uint32_t d = 0; d < std::min<std::size_t>(layout.coordinates.size(), 32); ++d) {
        if (layout.coordinates[d].size() > 1) crossed[family] |= 1U << d;
      }
      for (std::size_t i = 1; i < layout.ranks.size() && !layout.is_grid(); ++i)
        crossed[family] |= topology.differing(layout.ranks.front(), layout.ranks[i]);
    }
  }
  std::uint32_t used = 0, shared = 0;
  for (const std::uint32_t dimensions : crossed) {
    shared |= used & dimensions;
    used |= dimensions;
  }
  if ((used & ~shared) == 0) return shared;
  if (!graph.custom.empty()) return shared | used;
  return shared | (used & crossed_by_messages(input, topology, classes));
}

}  // namespace

std::uint32_t shared_dimensions(const StudyJob& input, const RankClasses& classes,
                                CollectivePlanner& planner) {
  const Graph& graph = input.graph;
  const Topology topology(input.study.machine);
  std::vector<std::vector<std::uint32_t>> families;  // by program
  for (const Issued& program : input.issued) families.push_back(families_of(graph, program));
  std::uint32_t shared = used_by_several(input, topology, families, classes, planner);
  if (!graph.custom.empty()) return shared;
  for (std::uint32_t d = 0; d < std::min(topology.dimensions(), 32U); ++d) {
    if ((shared >> d & 1) == 0 || !passes_others(topology.dimension(d))) continue;
    if (!RingUsers(input, topology, d).are_several(families)) shared &= ~(1U << d);
  }
  return shared;
}

}  // namespace armilla
