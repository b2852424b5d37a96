#include "sim/fold/rank_colours.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/splitmix.h"
#include "sim/engine/compute_times.h"
#include "sim/fold/link_classes.h"
#include "sim/fold/rank_conflicts.h"
#include "sim/fold/rank_messages.h"
#include "sim/plan/algorithm_choices.h"

namespace armilla {
namespace {

// What tells an endless variety of uses of the same numbers apart.
enum Salt : std::uint64_t {
  kPosition = 1,
  kRotation,
  kExchange,
  kSent,
  kHeard,
  kAwaited,
  kRoute,
  kCrossing,
  kLink
};

std::uint64_t salted(Salt salt, std::uint64_t name, std::uint64_t colour) {
  return mix_in(mix_in(salt, name), colour);
}

// Hashes of all rotations of a sequence: polynomials in an odd number modulo 2^64, which has an inverse.
class Rotations {
 public:
  // Calls `visit(position, hash)` for the sequence begun at each position.
  template <class Value, class Visit>
  static void visit(std::size_t size, const Value& value, const Visit& visit) {
    std::uint64_t hash = 0, top = 1;
    // The first value gets the lowest power, so that a rotation takes it off by subtraction and division.
    for (std::size_t i = size; i-- > 0;) hash = hash * kBase + value(i);
    for (std::size_t i = 1; i < size; ++i) top *= kBase;
    for (std::size_t i = 0; i < size; ++i) {
      visit(i, hash);
      hash = (hash - value(i)) * inverse() + value(i) * top;
    }
  }

 private:
  static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;
  // Newton's iteration doubles the correct bits.
  static constexpr std::uint64_t inverse() {
    std::uint64_t x = kBase;
    for (int i = 0; i < 5; ++i) x *= 2 - kBase * x;
    return x;
  }
};

// Of ranks, and behind them of the links of a graph.
class Colouring {
 public:
  Colouring(const StudyJob& input, const RankMessages& messages)
      : graph_(input.graph), messages_(messages), hashes_(messages.signatures) {
    const auto ranks = static_cast<std::size_t>(graph_.ranks);
    const std::vector<double> factors = time_factors(input.study.what_if, graph_.ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::uint64_t own = std::uint64_t{graph_.program_of[rank]} << 32 |
                                device_number(input.study.machine, static_cast<std::int64_t>(rank));
      hashes_[rank] = mix_in(hashes_[rank], own);
      if (!factors.empty())
        hashes_[rank] = mix_in(hashes_[rank], std::bit_cast<std::uint64_t>(factors[rank]));
    }
    see_cables(input.study.machine);
    for (const SlowLinks& slow : input.study.what_if.links) {
      const std::int64_t last = std::min(slow.ranks.last, graph_.ranks - 1);
      const std::uint64_t factor = mix_in(
          mix_in(std::bit_cast<std::uint64_t>(slow.bandwidth), std::bit_cast<std::uint64_t>(slow.latency)),
          slow.dimension);
      for (std::int64_t rank = std::max<std::int64_t>(slow.ranks.first, 0); rank <= last; ++rank) {
        std::uint64_t& hash = hashes_[static_cast<std::size_t>(rank)];
        hash = mix_in(hash, factor);
      }
    }
    // No link must get the colour of a rank, even where the hashes of what they are agree.
    for (std::size_t link = ranks; link < hashes_.size(); ++link)
      hashes_[link] = mix_in(kLink, hashes_[link]);
    colours_.resize(hashes_.size());
    number();
  }

  const std::vector<std::uint32_t>& colours() const { return colours_; }
  std::span<const std::uint32_t> of_ranks() const {
    return std::span(colours_).first(static_cast<std::size_t>(graph_.ranks));
  }
  std::span<const std::uint32_t> of_links() const {
    return std::span(colours_).subspan(static_cast<std::size_t>(graph_.ranks));
  }

  // Gives every rank of the colour one of its own.
  void split(const std::vector<std::uint32_t>& colours) {
    std::vector<bool> chosen(count_);
    for (const std::uint32_t colour : colours) chosen[colour] = true;
    for (std::uint32_t& colour : colours_) {
      if (chosen[colour]) colour = count_++;
    }
    renumber();
  }
  void split_ranks(const std::vector<bool>& ranks) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank]) colours_[rank] = count_++;
    }
    renumber();
  }

  void refine() {
    for (std::uint32_t before = 0; before != count_ && count_ < colours_.size();) {
      before = count_;
      for (std::size_t rank = 0; rank < colours_.size(); ++rank) hashes_[rank] = splitmix(colours_[rank]);
      // All sums: the order in which a rank's surroundings are listed is none that it could notice.
      for (const TypedGroup& group : messages_.groups.groups) see_group(group);
      see_nodes();
      messages_.on_graph ? see_links() : see_routes();
      number();
    }
  }

 private:
  // Members joined by cables have neighbours of their own each.
  void see_cables(const Machine& machine) {
    std::int64_t stride = 1;
    for (const Dimension& dimension : machine.dimensions) {
      for (std::size_t rank = 0; !dimension.cables.empty() && rank < graph_.program_of.size(); ++rank) {
        const std::int64_t here = static_cast<std::int64_t>(rank) / stride % dimension.size;
        hashes_[rank] = mix_in(hashes_[rank], static_cast<std::uint64_t>(here));
      }
      stride *= dimension.size;
    }
  }

  std::uint32_t colour(std::int32_t rank) const { return colours_[static_cast<std::size_t>(rank)]; }
  std::uint64_t& hash(std::int32_t rank) { return hashes_[static_cast<std::size_t>(rank)]; }

  void see_group(const TypedGroup& typed) {
    const GroupType& type = messages_.groups.types[typed.type];
    const std::vector<std::int32_t>& ranks = graph_.families[typed.family].groups[typed.group];
    if (type.is_ordered) {
      std::uint64_t all = typed.family;
      for (const std::int32_t rank : ranks) all = mix_in(all, colour(rank));
      for (std::size_t i = 0; i < ranks.size(); ++i) hash(ranks[i]) += salted(kPosition, all, i);
      return;
    }
    const std::uint32_t first = colour(ranks.front());
    // Of one colour each sees the same from where it stands: nothing to tell apart, at a fraction of the
    // cost. That is so of nearly all groups in the round that ends the refinement.
    if (std::all_of(ranks.begin(), ranks.end(), [&](std::int32_t rank) { return colour(rank) == first; }))
      return;
    for (std::size_t w = 0; w < type.ways.size(); ++w) {
      const GroupWay& way = type.ways[w];
      const GroupLines lines = lines_along(type.shape, way.dimension);
      const std::uint64_t name = mix_in(std::uint64_t{typed.family} << 32 | typed.type, w);
      for (std::int64_t member = 0; member < type.shape.ranks; ++member) {
        if (member / lines.stride % lines.size == 0) see_line(way, lines, name, ranks, member);
      }
    }
  }

  void see_line(const GroupWay& way, const GroupLines& lines, std::uint64_t name,
                const std::vector<std::int32_t>& ranks, std::int64_t base) {
    const auto rank_at = [&](std::int64_t position) {
      return ranks[static_cast<std::size_t>(base + position * lines.stride)];
    };
    if (way.addressing == Addressing::shift) {
      Rotations::visit(
          static_cast<std::size_t>(lines.size),
          [&](std::size_t i) { return splitmix(colour(rank_at(static_cast<std::int64_t>(i)))); },
          [&](std::size_t i, std::uint64_t seen) {
            hash(rank_at(static_cast<std::int64_t>(i))) += salted(kRotation, name, seen);
          });
      return;
    }
    for (const std::int32_t offset : way.offsets) {
      const std::uint64_t named = mix_in(name, static_cast<std::uint32_t>(offset));
      for (std::int64_t i = 0; i < lines.size; ++i)
        hash(rank_at(i)) += salted(kExchange, named, colour(rank_at(i ^ offset)));
    }
  }

  void see_nodes() {
    for (const NodeMessage& message : messages_.sent) {
      hash(message.source) += salted(kSent, message.channel, colour(message.destination));
      hash(message.destination) += salted(kHeard, message.channel, colour(message.source));
    }
    for (const NodeMessage& message : messages_.awaited)
      hash(message.destination) += salted(kAwaited, message.channel, colour(message.source));
  }

  void see_routes() {
    for (const RoutedMessage& message : messages_.routed) {
      const std::uint64_t source = colour(message.source);
      std::uint64_t way = message.channel;
      for (std::size_t i = message.first_hop; i < message.end_hop; ++i) {
        const Hop& hop = messages_.hops[i];
        way = mix_in(way, colour(hop.owner));
        // How many hops are left decides who goes first where two meet (network/network.h), so it is part of
        // how a link is crossed.
        const std::uint64_t place = std::uint64_t{hop.link} << 32 | (message.end_hop - i);
        hash(hop.owner) += salted(kCrossing, mix_in(message.channel, place), source);
      }
      hash(message.source) += salted(kRoute, 0, way);
    }
  }

  // Links of a graph share what crosses them, in whatever order.
  void see_links() {
    for (const RoutedMessage& message : messages_.routed) {
      const std::uint64_t source = colour(message.source);
      std::uint64_t way = salted(kSent, message.channel, colour(message.destination));
      for (std::size_t i = message.first_hop; i < message.end_hop; ++i) {
        const Hop& hop = messages_.hops[i];
        way += salted(kRoute, hop.link, colour(hop.owner));
        hash(hop.owner) += salted(kCrossing, mix_in(message.channel, hop.link), source);
      }
      // A sum over hops: on a graph a message has all links of its way at once, at shares that no order
      // changes.
      hash(message.source) += splitmix(way);
      hash(message.destination) += salted(kHeard, message.channel, source);
    }
  }

  // Numbers the hashes in the order in which ranks have them first.
  void number() {
    const std::size_t slots = std::bit_ceil(hashes_.size() * 2 + 2);
    if (table_.size() != slots) table_.resize(slots);
    std::fill(table_.begin(), table_.end(), Slot{});
    count_ = 0;
    for (std::size_t rank = 0; rank < hashes_.size(); ++rank) {
      std::size_t at = splitmix(hashes_[rank]) & (slots - 1);
      while (table_[at].used && table_[at].hash != hashes_[rank]) at = (at + 1) & (slots - 1);
      if (!table_[at].used) table_[at] = {hashes_[rank], count_++, true};
      colours_[rank] = table_[at].colour;
    }
  }
  void renumber() {
    for (std::size_t rank = 0; rank < colours_.size(); ++rank) hashes_[rank] = colours_[rank];
    number();
  }

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t colour = 0;
    bool used = false;
  };

  const Graph& graph_;
  const RankMessages& messages_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> colours_;
  std::uint32_t count_ = 0;
  std::vector<Slot> table_;
};

// Ranks that must be simulated themselves.
std::vector<bool> individuals(const StudyJob& input, const RankMessages& messages) {
  const Graph& graph = input.graph;
  std::vector<bool> chosen(static_cast<std::size_t>(graph.ranks));
  for (const TypedGroup& group : messages.groups.groups) {
    // What members of a custom collective do is written for each by its position, and is not looked into.
    if (!messages.groups.types[group.type].is_custom) continue;
    for (const std::int32_t rank : graph.families[group.family].groups[group.group])
      chosen[static_cast<std::size_t>(rank)] = true;
  }
  if (!input.shares_memory) return chosen;
  std::vector<bool> accesses;
  for (const Issued& by_program : input.issued) {
    accesses.push_back(std::ranges::any_of(by_program.items, [](const IssuedItem& item) {
      return item.kind == NodeKind::memory_load || item.kind == NodeKind::memory_store;
    }));
  }
  for (std::size_t rank = 0; rank < chosen.size(); ++rank)
    chosen[rank] = chosen[rank] || accesses[graph.program_of[rank]];
  return chosen;
}

RankClasses whole(const Graph& graph, std::string_view why) {
  RankClasses classes = unfolded(graph);
  classes.why_whole = why;
  return classes;
}

// Of the coarsest partition that refinement reaches and in which nothing conflicts: splitting what conflicts
// may tell others apart, so both take turns until neither changes anything.
Colouring colours_of(const StudyJob& input, const RankMessages& messages) {
  Colouring colouring(input, messages);
  const std::vector<bool> chosen = individuals(input, messages);
  if (std::find(chosen.begin(), chosen.end(), true) != chosen.end()) colouring.split_ranks(chosen);
  for (;;) {
    colouring.refine();
    const std::vector<std::uint32_t> conflicts = find_conflicts(input, messages, colouring.of_ranks());
    if (conflicts.empty()) return colouring;
    colouring.split(conflicts);
  }
}

RankClasses fold_over_dimensions(const StudyJob& input, CollectivePlanner& planner) {
  const RankMessages messages = find_messages(input, planner);
  // To look at hundreds of millions of hops would take longer than to play them.
  if (messages.too_many) return unfolded(input.graph);
  return classes_of(input.graph, colours_of(input, messages).of_ranks());
}

RankClasses fold_on_links(const StudyJob& input, CollectivePlanner& planner, MessageLinks& links) {
  const Graph& graph = input.graph;
  if (planner.choices().climb()) return whole(graph, "switches add up what they send, on trees of all ranks");
  if (!links.are_fixed()) return whole(graph, "messages take the ways that are least loaded at the moment");
  // Whose messages are not looked at.
  if (!graph.custom.empty()) return whole(graph, "they run custom collectives");
  const RankMessages messages = find_messages_on(links, input, planner);
  if (messages.too_many) return whole(graph, "they send too many messages to compare");
  const Colouring colouring = colours_of(input, messages);
  RankClasses classes = classes_of(graph, colouring.of_ranks());
  if (links.any_by_chance() && 2 * std::int64_t{classes.simulated()} > graph.ranks)
    classes.why_whole =
        "a hash takes one of several ways for each pair (with routing=spray, which takes "
        "all, one stands for those that fare alike)";
  if (classes.stands_for.empty()) return classes;
  // Hashes of 64 bits may collide: what they found is proved on the facts themselves, in one pass, before it
  // is relied on.
  if (!is_equitable(input, messages, links, colouring.colours())) return unfolded(graph);
  classes.links = link_classes_of(colouring.of_links());
  return classes;
}

}  // namespace

RankClasses fold_ranks(const StudyJob& input, CollectivePlanner& planner) {
  const Graph& graph = input.graph;
  const Study& study = input.study;
  if (graph.ranks < 2 || study.what_if.jitter.deviation > 0) return unfolded(graph);
  if (may_fold(study)) return fold_over_dimensions(input, planner);
  const auto links = message_links(study.network, study.machine, study.what_if);
  return links ? fold_on_links(input, planner, *links) : unfolded(graph);
}

}  // namespace armilla
