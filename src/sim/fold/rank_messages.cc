#include "sim/fold/rank_messages.h"

#include <algorithm>
#include <bit>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

namespace armilla {
namespace {

constexpr std::size_t kMostHops = std::size_t{1} << 23;

// Use of a FullyConnected link by its owner.
struct LinkPurpose {
  std::int32_t owner = 0;
  std::uint32_t link = 0;
  std::uint32_t channel = 0;
};

// Peers, channels and groups, whatever the links.
class Finder {
 protected:
  Finder(const StudyJob& input, CollectivePlanner& planner)
      : graph_(input.graph),
        coordinates_(coordinates_of(input.study.machine, graph_.ranks)),
        issued_(input.issued),
        peers_(input.peers) {
    found_.groups = type_groups(input, coordinates_, planner);
    found_.signatures.assign(static_cast<std::size_t>(graph_.ranks), 0);
    find_peers();
    find_node_messages();
  }

  std::uint64_t& signature(std::int32_t rank) { return found_.signatures[static_cast<std::size_t>(rank)]; }

  struct Names {
    std::uint32_t channel = 0, label = 0;
  };
  void add_routed(std::int32_t source, std::int32_t destination, const Names& names, std::size_t first_hop) {
    found_.routed.push_back({source, destination, names.channel, names.label, first_hop, found_.hops.size()});
    // Beyond these (64 MB of hops, 300 MB of messages) it takes more memory, and longer to sort, than folding
    // would save.
    found_.too_many = std::max(found_.hops.size(), found_.routed.size()) > kMostHops;
  }

  void sign_groups() {
    for (const TypedGroup& group : found_.groups.groups) {
      const std::uint64_t name = mix_in(std::uint64_t{group.family} << 32 | group.type, UINT32_MAX);
      for (const std::int32_t rank : ranks_of(group)) signature(rank) += name;
    }
    for (const GroupType& type : found_.groups.types) {
      std::vector<std::vector<std::uint32_t>>& channels = group_channels_.emplace_back();
      for (const GroupWay& way : type.ways) {
        // Per position where positions differ, else one for all.
        std::vector<std::uint32_t>& first = channels.emplace_back();
        for (const std::set<std::int32_t>& peers : way.peers) {
          first.push_back(channels_);
          channels_ += static_cast<std::uint32_t>(peers.size());
        }
        // One after the other, as `visit_way` counts them.
        if (way.peers.empty()) first.push_back(channels_);
        channels_ += static_cast<std::uint32_t>(way.offsets.size());
      }
    }
  }

  // Calls `visit(source, destination, channel)` for every message of a way.
  template <class Visit>
  void visit_way(const TypedGroup& group, std::size_t w, const Visit& visit) const {
    const GroupType& type = type_of(group);
    const GroupWay& way = type.ways[w];
    const GroupLines lines = lines_along(type.shape, way.dimension);
    const std::vector<std::int32_t>& ranks = ranks_of(group);
    for (std::int64_t member = 0; member < type.shape.ranks && !found_.too_many; ++member) {
      const std::int64_t position = member / lines.stride % lines.size;
      const std::int64_t base = member - position * lines.stride;
      std::uint32_t channel =
          group_channels_[group.type][w][way.peers.empty() ? 0 : static_cast<std::size_t>(position)];
      way.visit_peers(static_cast<std::int32_t>(position), static_cast<std::int32_t>(lines.size),
                      [&](std::int32_t peer) {
                        visit(ranks[static_cast<std::size_t>(member)],
                              ranks[static_cast<std::size_t>(base + peer * lines.stride)], channel++);
                      });
    }
  }

  // Calls `route(source, destination, dimension, names)` for every message of the group's. Labels do not tell
  // the types of a family apart.
  template <class Route>
  void route_group(const TypedGroup& group, const Route& route) {
    const bool fine = found_.groups.single_type[group.family];
    const std::vector<GroupWay>& ways = type_of(group).ways;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      visit_way(group, w, [&](std::int32_t source, std::int32_t destination, std::uint32_t channel) {
        route(source, destination, ways[w].dimension,
              Names{channel, fine ? channel : UINT32_MAX - group.family});
      });
    }
  }

  const GroupType& type_of(const TypedGroup& group) const { return found_.groups.types[group.type]; }
  const std::vector<std::int32_t>& ranks_of(const TypedGroup& group) const {
    return graph_.families[group.family].groups[group.group];
  }

  const Graph& graph_;
  Coordinates coordinates_;
  RankMessages found_;
  std::uint32_t channels_ = 0;

 private:
  ProgramPeers peers_of(const Issued& issued, NodeKind kind) const {
    ProgramPeers peers;
    std::set<std::tuple<PeerKind, std::int32_t, std::uint32_t>> known;
    for (const IssuedItem& item : issued.items) {
      if (item.kind != kind) continue;
      const auto id = static_cast<std::uint32_t>(item.payload);
      peers.all.push_back(id);
      const PointToPoint& transfer = graph_.transfers[id];
      if (known.insert({transfer.peer_kind, transfer.peer, transfer.family}).second)
        peers.transfers.push_back(id);
    }
    return peers;
  }

  void find_peers() {
    for (const Issued& by_program : issued_) {
      found_.sends.push_back(peers_of(by_program, NodeKind::send));
      found_.receives.push_back(peers_of(by_program, NodeKind::receive));
      first_channel_.push_back(channels_);
      channels_ += static_cast<std::uint32_t>(found_.sends.back().transfers.size() +
                                              found_.receives.back().transfers.size());
    }
  }

  void find_node_messages() {
    for (std::int32_t rank = 0; rank < graph_.ranks; ++rank) {
      const std::uint32_t program = graph_.program_of[static_cast<std::size_t>(rank)];
      std::uint32_t channel = first_channel_[program];
      for (const std::uint32_t transfer : found_.sends[program].transfers)
        found_.sent.push_back({rank, peers_.of(rank, graph_.transfers[transfer]), channel++});
      for (const std::uint32_t transfer : found_.receives[program].transfers) {
        const std::int32_t source = peers_.of(rank, graph_.transfers[transfer]);
        found_.awaited.push_back({source, rank, channel});
        // Two ranks that wait for peers of one class may still differ in which of the peers' sends are meant.
        signature(rank) += mix_in(channel++, channels_to(source, rank));
      }
    }
  }

  // Those over which `source` sends to `rank`.
  std::uint64_t channels_to(std::int32_t source, std::int32_t rank) const {
    const std::uint32_t program = graph_.program_of[static_cast<std::size_t>(source)];
    std::uint32_t channel = first_channel_[program];
    std::uint64_t hash = 0;
    for (const std::uint32_t transfer : found_.sends[program].transfers) {
      if (peers_.of(source, graph_.transfers[transfer]) == rank) hash = mix_in(hash, channel);
      ++channel;
    }
    return hash;
  }

  std::span<const Issued> issued_;
  const Peers& peers_;
  std::vector<std::uint32_t> first_channel_;                             // of node messages, by program
  std::vector<std::vector<std::vector<std::uint32_t>>> group_channels_;  // [type][way][position or 0], first
};

// On links of dimensions.
class FinderOverDimensions : Finder {
 public:
  FinderOverDimensions(const StudyJob& input, CollectivePlanner& planner)
      : Finder(input, planner),
        machine_(input.study.machine),
        topology_(machine_),
        users_of_(machine_.dimensions.size()),
        routed_in_(machine_.dimensions.size()) {}

  RankMessages find() {
    route_node_messages();
    sign_groups();
    find_users();
    for (const TypedGroup& group : found_.groups.groups) {
      if (!type_of(group).is_routed) continue;
      route_group(group, [&](std::int32_t source, std::int32_t destination, std::uint32_t dimension,
                             const Names& names) { route(source, destination, dimension, names); });
    }
    for (const TypedGroup& group : found_.groups.groups) {
      if (!type_of(group).is_routed) find_purposes(group);
    }
    sign_purposes();
    return std::move(found_);
  }

 private:
  // Whether the message needs no route: one dimension, and passing nobody.
  bool is_direct(const Position& at) const {
    const Dimension& dimension = machine_.dimensions[at.dimension];
    if (at.hops_left != hops(dimension, at.here, at.there)) return false;
    return at.hops_left == 1 || !passes_others(dimension);
  }

  void route_node_messages() {
    std::vector<bool> routed(channels_);
    // A channel has routes as soon as one of its messages needs one: it names them all, and refinement
    // compares ranks by what their channels do.
    std::vector<std::uint32_t> first_in;  // the dimensions that messages begin in
    for (const NodeMessage& message : found_.sent) {
      const Position start = topology_.start({message.source, message.destination, {}, kAllDimensions});
      if (!is_direct(start)) routed[message.channel] = true;
      first_in.push_back(start.dimension);
    }
    for (std::size_t i = 0; i < found_.sent.size(); ++i) {
      const NodeMessage& message = found_.sent[i];
      if (routed[message.channel]) {
        route(message.source, message.destination, kAllDimensions, {message.channel, message.channel});
      } else {
        purpose(message.source, message.destination, first_in[i], message.channel);
        users_of_[first_in[i]].insert({UINT32_MAX, message.channel});
      }
    }
  }

  void route(std::int32_t source, std::int32_t destination, std::uint32_t dimension, const Names& names) {
    if (found_.too_many) return;
    const std::size_t first = found_.hops.size();
    const Message message{source, destination, {}, dimension};
    std::uint64_t hash = names.channel;
    topology_.for_each_link(message, [&](const LinkId& link, const Position& /*beyond*/) {
      const std::uint32_t name = link.dimension << 24 | static_cast<std::uint32_t>(link.number);
      hash = mix_in(hash, name);
      routed_in_[link.dimension] = true;
      found_.hops.push_back({link.owner, name});
    });
    signature(source) += splitmix(hash);
    add_routed(source, destination, names, first);
  }
  // A message that uses its source's own link in a dimension, and no other but one to its destination alone.
  void purpose(std::int32_t source, std::int32_t destination, std::uint32_t d, std::uint32_t channel) {
    const Dimension& dimension = machine_.dimensions[d];
    const auto size = static_cast<std::int32_t>(dimension.size);
    const std::vector<std::int32_t>& here = coordinates_[d];
    const std::int32_t ahead =
        here[static_cast<std::size_t>(destination)] - here[static_cast<std::size_t>(source)];
    const std::int32_t forward = ahead < 0 ? ahead + size : ahead;
    if (!links_every_pair(dimension)) {
      const std::uint64_t way = passes_others(dimension) ? static_cast<std::uint32_t>(forward) : 0;
      signature(source) += mix_in(channel, way << 32 | d);
      return;
    }
    purposes_.push_back({source, d << 24 | static_cast<std::uint32_t>(forward - 1), channel});
    found_.too_many = found_.too_many || purposes_.size() > kMostHops;
  }

  // A flat way that is not routed is one on a machine of one dimension.
  static std::uint32_t dimension_of(const GroupWay& way) {
    return way.dimension == kAllDimensions ? 0 : way.dimension;
  }

  void find_users() {
    for (std::uint32_t t = 0; t < found_.groups.types.size(); ++t) {
      const GroupType& type = found_.groups.types[t];
      for (std::uint32_t w = 0; !type.is_routed && w < type.ways.size(); ++w)
        users_of_[dimension_of(type.ways[w])].insert({t, w});
    }
  }

  void find_purposes(const TypedGroup& group) {
    const std::vector<GroupWay>& ways = type_of(group).ways;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const std::uint32_t d = dimension_of(ways[w]);
      // Nobody to share links with, whatever numbers they have.
      const bool alone = users_of_[d].size() == 1 && !routed_in_[d];
      if (alone || !links_every_pair(machine_.dimensions[d])) continue;
      visit_way(group, w, [&](std::int32_t source, std::int32_t destination, std::uint32_t channel) {
        purpose(source, destination, d, channel);
      });
    }
  }

  // A rank's own messages share its FullyConnected links or not, whatever their numbers; where routed ones
  // cross them, too, numbers count.
  void sign_purposes() {
    std::vector<LinkPurpose> shared;
    for (const LinkPurpose& use : purposes_) {
      const std::uint32_t d = use.link >> 24;
      if (routed_in_[d]) {
        signature(use.owner) += mix_in(use.channel, use.link);
      } else {
        signature(use.owner) += mix_in(use.channel, d);
        if (users_of_[d].size() > 1) shared.push_back(use);
      }
    }
    std::sort(shared.begin(), shared.end(), [](const LinkPurpose& a, const LinkPurpose& b) {
      return std::tie(a.owner, a.link, a.channel) < std::tie(b.owner, b.link, b.channel);
    });
    for (std::size_t i = 0; i < shared.size();) {
      const LinkPurpose& first = shared[i];
      std::uint64_t hash = 0;
      for (; i < shared.size() && shared[i].owner == first.owner && shared[i].link == first.link; ++i)
        hash = mix_in(hash, shared[i].channel);
      signature(first.owner) += mix_in(hash, first.link >> 24);
    }
  }

  const Machine& machine_;
  Topology topology_;
  // Per dimension, the ways (type, way) and node messages (none, channel) on ranks' own links.
  std::vector<std::set<std::pair<std::uint32_t, std::uint32_t>>> users_of_;
  std::vector<bool> routed_in_;  // per dimension
  std::vector<LinkPurpose> purposes_;
};

// On links of a graph, where all messages have a route.
class FinderOverGraph : Finder {
 public:
  FinderOverGraph(const StudyJob& input, CollectivePlanner& planner, MessageLinks& links)
      : Finder(input, planner), links_(links) {
    found_.on_graph = true;
  }

  RankMessages find() {
    for (const NodeMessage& message : found_.sent)
      add(message.source, message.destination, {message.channel, message.channel});
    sign_groups();
    for (const TypedGroup& group : found_.groups.groups) {
      route_group(group, [&](std::int32_t source, std::int32_t destination, std::uint32_t,
                             const Names& names) { add(source, destination, names); });
    }
    find_ways();
    if (found_.too_many) return std::move(found_);
    sign_connections();
    for (std::uint32_t link = 0; link < links_.links(); ++link) {
      const auto& [dimension, bandwidth, latency] = links_.kind(link);
      found_.signatures.push_back(mix_in(mix_in(std::bit_cast<std::uint64_t>(bandwidth), dimension),
                                         static_cast<std::uint64_t>(latency)));
    }
    return std::move(found_);
  }

 private:
  void add(std::int32_t source, std::int32_t destination, const Names& names) {
    if (!found_.too_many) add_routed(source, destination, names, found_.hops.size());
  }

  // Of all messages together, because links are quickest asked destination by destination.
  void find_ways() {
    std::ranges::sort(found_.routed, {}, [](const RoutedMessage& message) {
      return std::tuple(message.destination, message.source, message.channel);
    });
    for (RoutedMessage& message : found_.routed) {
      if (found_.too_many) return;
      message.first_hop = found_.hops.size();
      for (const LinkShare& use : links_.used(message.source, message.destination)) {
        found_.hops.push_back({static_cast<std::int32_t>(graph_.ranks + use.link),
                               static_cast<std::uint32_t>(use.share / kShareUnit)});
      }
      message.end_hop = found_.hops.size();
      found_.too_many = found_.hops.size() > kMostHops;
    }
  }

  // Messages to one destination come one after the other. They lie side by side here.
  void sign_connections() {
    for (auto first = found_.routed.begin(); first != found_.routed.end();) {
      std::uint64_t hash = 0;
      auto next = first;
      for (; next != found_.routed.end() && next->source == first->source &&
             next->destination == first->destination;
           ++next)
        hash = mix_in(hash, next->channel);
      signature(first->source) += splitmix(hash);
      first = next;
    }
  }

  MessageLinks& links_;
};

}  // namespace

RankMessages find_messages(const StudyJob& input, CollectivePlanner& planner) {
  return FinderOverDimensions(input, planner).find();
}

RankMessages find_messages_on(MessageLinks& links, const StudyJob& input, CollectivePlanner& planner) {
  return FinderOverGraph(input, planner, links).find();
}

}  // namespace armilla
