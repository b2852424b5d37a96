#include "sim/fold/link_classes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/sorted.h"
#include "sim/engine/compute_times.h"

namespace armilla {
namespace {

// Sorted by its vertex first; the runs of equal vertices are compared with that of the vertex that stands for
// them.
template <class Fact>
class Facts {
 public:
  void add(std::int32_t vertex, Fact fact) { all_.emplace_back(vertex, std::move(fact)); }

  bool are_equal(std::span<const std::int32_t> lowest, std::span<const std::uint32_t> colours) {
    std::sort(all_.begin(), all_.end());
    std::vector<std::size_t> begin(colours.size() + 1);
    for (const auto& [vertex, fact] : all_) ++begin[static_cast<std::size_t>(vertex) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    for (std::size_t vertex = 0; vertex < colours.size(); ++vertex) {
      const auto first = static_cast<std::size_t>(lowest[colours[vertex]]);
      const bool equal = std::equal(all_.begin() + static_cast<std::ptrdiff_t>(begin[vertex]),
                                    all_.begin() + static_cast<std::ptrdiff_t>(begin[vertex + 1]),
                                    all_.begin() + static_cast<std::ptrdiff_t>(begin[first]),
                                    all_.begin() + static_cast<std::ptrdiff_t>(begin[first + 1]),
                                    [](const auto& a, const auto& b) { return a.second == b.second; });
      if (!equal) return false;
    }
    return true;
  }

 private:
  std::vector<std::pair<std::int32_t, Fact>> all_;
};

class Check {
 public:
  Check(const StudyJob& input, const RankMessages& messages, const MessageLinks& links,
        std::span<const std::uint32_t> colours)
      : input_(input), messages_(messages), links_(links), colours_(colours) {
    lowest_.resize(std::ranges::max(colours) + std::size_t{1}, -1);
    for (std::size_t vertex = colours.size(); vertex-- > 0;)
      lowest_[colours[vertex]] = static_cast<std::int32_t>(vertex);
  }

  bool passes() {
    return kinds_are_equal() && peers_are_equal() && groups_are_equal() && connections_are_equal() &&
           routes_are_equal() && crossings_are_equal();
  }

 private:
  std::uint32_t colour(std::int32_t vertex) const { return colours_[static_cast<std::size_t>(vertex)]; }
  std::int32_t ranks() const { return static_cast<std::int32_t>(input_.graph.ranks); }

  // What ranks and links are by themselves. No rank is taken for a link.
  bool kinds_are_equal() const {
    const std::vector<double> factors = time_factors(input_.study.what_if, input_.graph.ranks);
    const auto rank_kind = [&](std::int32_t rank) {
      const auto r = static_cast<std::size_t>(rank);
      return std::tuple(input_.graph.program_of[r], device_number(input_.study.machine, rank),
                        factors.empty() ? 1.0 : factors[r]);
    };
    for (std::int32_t rank = 0; rank < ranks(); ++rank) {
      if (rank_kind(rank) != rank_kind(lowest_[colour(rank)])) return false;
    }
    for (std::uint32_t link = 0; link < links_.links(); ++link) {
      const std::int32_t lowest = lowest_[colour(ranks() + static_cast<std::int32_t>(link))];
      if (lowest < ranks()) return false;
      if (links_.kind(link) != links_.kind(static_cast<std::uint32_t>(lowest - ranks()))) return false;
    }
    return true;
  }

  // Whom programs' nodes wait for, and who hears from whom.
  bool peers_are_equal() const {
    Facts<std::tuple<bool, std::uint32_t, std::uint32_t>> facts;
    for (const NodeMessage& message : messages_.awaited)
      facts.add(message.destination, {false, message.channel, colour(message.source)});
    for (const RoutedMessage& message : messages_.routed)
      facts.add(message.destination, {true, message.channel, colour(message.source)});
    return facts.are_equal(lowest_, colours_);
  }

  // Groups: of one type, with members of the same classes; in an order where that counts.
  bool groups_are_equal() const {
    std::map<std::vector<std::uint32_t>, std::size_t> contents;
    Facts<std::tuple<std::uint32_t, std::uint32_t, std::size_t, std::size_t>> facts;
    for (const TypedGroup& group : messages_.groups.groups) {
      const std::vector<std::int32_t>& members = input_.graph.families[group.family].groups[group.group];
      const bool is_ordered = messages_.groups.types[group.type].is_ordered;
      std::vector<std::uint32_t> content;
      for (const std::int32_t rank : members) content.push_back(colour(rank));
      if (!is_ordered) {
        sort_unique(content);
      }
      const std::size_t number = contents.try_emplace(std::move(content), contents.size()).first->second;
      for (std::size_t i = 0; i < members.size(); ++i)
        facts.add(members[i], {group.family, group.type, number, is_ordered ? i : 0});
    }
    return facts.are_equal(lowest_, colours_);
  }

  // Which channels of a rank share a destination, where their messages come one after the other.
  bool connections_are_equal() const {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::uint32_t>> channels;
    for (const RoutedMessage& message : messages_.routed)
      channels[{message.source, message.destination}].push_back(message.channel);
    Facts<std::vector<std::uint32_t>> facts;
    for (auto& [ends, together] : channels) {
      std::sort(together.begin(), together.end());
      facts.add(ends.first, std::move(together));
    }
    return facts.are_equal(lowest_, colours_);
  }

  using Uses = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // classes of links, shares
  Uses uses_of(const RoutedMessage& message) const {
    Uses uses;
    for (std::size_t i = message.first_hop; i < message.end_hop; ++i)
      uses.emplace_back(colour(messages_.hops[i].owner), messages_.hops[i].link);
    std::sort(uses.begin(), uses.end());
    return uses;
  }

  // Every channel leads to one class over links of the same classes.
  bool routes_are_equal() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, Uses>> known;
    Facts<std::uint32_t> channels;
    for (const RoutedMessage& message : messages_.routed) {
      channels.add(message.source, message.channel);
      std::pair<std::uint32_t, Uses> route(colour(message.destination), uses_of(message));
      const auto [found, fresh] =
          known.try_emplace({message.channel, colour(message.source)}, std::move(route));
      if (!fresh && found->second != std::pair(colour(message.destination), uses_of(message))) return false;
    }
    return channels.are_equal(lowest_, colours_);
  }

  // Every link of a class carries as much of every channel and class.
  bool crossings_are_equal() const {
    Facts<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> facts;
    for (const RoutedMessage& message : messages_.routed) {
      for (std::size_t i = message.first_hop; i < message.end_hop; ++i) {
        const Hop& hop = messages_.hops[i];
        facts.add(hop.owner, {message.channel, colour(message.source), hop.link});
      }
    }
    return facts.are_equal(lowest_, colours_);
  }

  const StudyJob& input_;
  const RankMessages& messages_;
  const MessageLinks& links_;
  std::span<const std::uint32_t> colours_;
  std::vector<std::int32_t> lowest_;  // vertex, by colour
};

}  // namespace

bool is_equitable(const StudyJob& input, const RankMessages& messages, const MessageLinks& links,
                  std::span<const std::uint32_t> colours) {
  return Check(input, messages, links, colours).passes();
}

LinkClasses link_classes_of(std::span<const std::uint32_t> colours) {
  LinkClasses classes;
  classes.stands_for.resize(colours.size());
  classes.sizes.resize(colours.size());
  std::map<std::uint32_t, std::uint32_t> lowest;
  for (std::uint32_t link = 0; link < colours.size(); ++link) {
    classes.stands_for[link] = lowest.try_emplace(colours[link], link).first->second;
    ++classes.sizes[classes.stands_for[link]];
  }
  return classes;
}

}  // namespace armilla
