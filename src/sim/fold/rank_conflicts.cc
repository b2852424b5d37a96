#include "sim/fold/rank_conflicts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/sorted.h"

namespace armilla {
namespace {

class Conflicts {
 public:
  Conflicts(const StudyJob& input, const RankMessages& messages, std::span<const std::uint32_t> colours)
      : graph_(input.graph), messages_(messages), peers_(input.peers), colours_(colours) {
    sizes_.resize(*std::max_element(colours.begin(), colours.end()) + std::size_t{1});
    lowest_.resize(sizes_.size(), -1);
    for (std::size_t rank = 0; rank < colours.size(); ++rank) {
      ++sizes_[colours[rank]];
      if (lowest_[colours[rank]] < 0) lowest_[colours[rank]] = static_cast<std::int32_t>(rank);
    }
  }

  std::vector<std::uint32_t> find() {
    // Where every rank has a colour of its own there is nothing left to be split.
    if (sizes_.size() < colours_.size()) {
      if (!messages_.on_graph) look_at_links();  // there nobody goes first
      look_at_arrivals();
      for (const std::int32_t rank : lowest_) look_at_matching(rank);
    }
    sort_unique(found_);
    return std::move(found_);
  }

 private:
  std::uint32_t colour(std::int32_t rank) const { return colours_[static_cast<std::size_t>(rank)]; }
  bool is_lowest(std::int32_t rank) const { return lowest_[colour(rank)] == rank; }
  std::uint32_t program(std::int32_t rank) const { return graph_.program_of[static_cast<std::size_t>(rank)]; }
  void blame(std::int32_t rank) {
    if (sizes_[colour(rank)] > 1) found_.push_back(colour(rank));
  }

  // Owner, link and hops to go, or destination; then program and label; last the source.
  using Meeting = std::tuple<std::int32_t, std::uint64_t, std::uint64_t, std::int32_t>;
  void blame_meetings(std::vector<Meeting>& meetings) {
    // Meetings of one place and label then lie side by side, those of one source, too: these do not conflict,
    // since a source sends one after the other.
    std::sort(meetings.begin(), meetings.end());
    for (std::size_t i = 1; i < meetings.size(); ++i) {
      const auto& [owner, place, label, source] = meetings[i];
      const auto& [owner_before, place_before, label_before, source_before] = meetings[i - 1];
      if (owner != owner_before || place != place_before || label != label_before || source == source_before)
        continue;
      blame(source);
      blame(source_before);
    }
  }

  std::uint64_t label(std::int32_t source, std::uint32_t name) const {
    return std::uint64_t{program(source)} << 32 | name;
  }

  // The first link of a message is its source's own.
  void look_at_links() {
    std::vector<Meeting> meetings;
    for (const RoutedMessage& message : messages_.routed) {
      for (std::size_t i = message.first_hop + 1; i < message.end_hop; ++i) {
        const Hop& hop = messages_.hops[i];
        // Ranks of one colour have alike meetings; one of each is looked at.
        if (!is_lowest(hop.owner)) continue;
        meetings.emplace_back(hop.owner, std::uint64_t{hop.link} << 32 | (message.end_hop - i),
                              label(message.source, message.label), message.source);
      }
    }
    blame_meetings(meetings);
  }

  void look_at_arrivals() {
    std::vector<Meeting> meetings;
    for (const NodeMessage& message : messages_.sent) {
      if (is_lowest(message.destination))
        meetings.emplace_back(message.destination, 0, label(message.source, message.channel), message.source);
    }
    blame_meetings(meetings);
  }

  // Peers of the rank's sends, or receives, by colour, tag and size.
  using Matching = std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::int32_t>;
  void blame_peers(std::int32_t rank, const ProgramPeers& nodes) {
    std::map<std::uint32_t, std::int32_t> of_colour;
    bool twice = false;
    for (const std::uint32_t id : nodes.transfers) {
      const std::int32_t peer = peers_.of(rank, graph_.transfers[id]);
      twice = twice || of_colour.try_emplace(colour(peer), peer).first->second != peer;
    }
    // Most ranks have no two peers of a class, and then need no table.
    if (!twice) return;
    Matching known;
    for (const std::uint32_t id : nodes.all) {
      const PointToPoint& transfer = graph_.transfers[id];
      const std::int32_t peer = peers_.of(rank, transfer);
      const std::int32_t first =
          known.try_emplace({colour(peer), transfer.tag, transfer.bytes.value}, peer).first->second;
      if (first != peer) blame(peer);
    }
  }

  bool sends(std::int32_t source, std::int32_t rank, const PointToPoint& awaited) {
    const std::uint32_t sender = program(source);
    const auto [entry, fresh] = sent_.try_emplace(sender);
    if (fresh) {
      for (const std::uint32_t id : messages_.sends[sender].all) {
        const PointToPoint& transfer = graph_.transfers[id];
        entry->second[{transfer.tag, transfer.bytes.value}].push_back(id);
      }
    }
    const auto matching = entry->second.find({awaited.tag, awaited.bytes.value});
    return matching != entry->second.end() &&
           std::any_of(matching->second.begin(), matching->second.end(),
                       [&](std::uint32_t id) { return peers_.of(source, graph_.transfers[id]) == rank; });
  }

  void look_at_matching(std::int32_t rank) {
    blame_peers(rank, messages_.sends[program(rank)]);
    blame_peers(rank, messages_.receives[program(rank)]);
    // A receive whose source sends nothing of the kind waits for what never comes. Who is to blame shows only
    // when both are played.
    for (const std::uint32_t id : messages_.receives[program(rank)].all) {
      const std::int32_t source = peers_.of(rank, graph_.transfers[id]);
      if (sends(source, rank, graph_.transfers[id])) continue;
      blame(source);
      blame(rank);
    }
  }

  const Graph& graph_;
  const RankMessages& messages_;
  const Peers& peers_;
  std::span<const std::uint32_t> colours_;
  std::vector<std::int64_t> sizes_;   // by colour
  std::vector<std::int32_t> lowest_;  // rank, by colour
  // By program, then tag and size.
  std::map<std::uint32_t, std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<std::uint32_t>>> sent_;
  std::vector<std::uint32_t> found_;
};

}  // namespace

std::vector<std::uint32_t> find_conflicts(const StudyJob& input, const RankMessages& messages,
                                          std::span<const std::uint32_t> colours) {
  return Conflicts(input, messages, colours).find();
}

}  // namespace armilla
