#include "sim/memo/link_uses.h"

#include <algorithm>

namespace armilla {
namespace {

void keep_once(LinkUses::Links& links) {
  std::ranges::sort(links);
  const auto twice = std::ranges::unique(links);
  links.erase(twice.begin(), twice.end());
}

}  // namespace

LinkUses::LinkUses(const Machine& machine, const RankClasses& classes, CollectivePlanner& planner,
                   MessageLinks* of_graph)
    : topology_(machine), classes_(classes), planner_(planner), of_graph_(of_graph) {
  if (of_graph_ != nullptr) {
    links_.resize(of_graph_->links());
    return;
  }
  std::size_t links = 0;
  for (std::uint32_t d = 0; d < topology_.dimensions(); ++d) {
    first_.push_back(links);
    links += static_cast<std::size_t>(topology_.links_per_rank(d)) * classes.real.size();
  }
  links_.resize(links);
}

void LinkUses::add_way(const Message& message, Links& links) {
  if (of_graph_ != nullptr) {
    const std::vector<std::uint32_t>& stands_for = classes_.links.stands_for;
    for (const LinkShare& use : of_graph_->used(message.source, message.destination))
      links.push_back(stands_for.empty() ? use.link : stands_for[use.link]);
    return;
  }
  Position at = topology_.start(message);
  while (at.hops_left > 0) {
    const LinkId id = topology_.advance(message, at);
    const auto owner = static_cast<std::size_t>(classes_.simulated_rank(id.owner));
    links.push_back(static_cast<std::uint32_t>(
        first_[id.dimension] + owner * static_cast<std::size_t>(topology_.links_per_rank(id.dimension)) +
        static_cast<std::size_t>(id.number)));
  }
}

const LinkUses::Links& LinkUses::of_call(const CollectiveCall& call, std::uint32_t group_class,
                                         const GroupMembers& group) {
  const auto [found, fresh] = of_calls_.try_emplace(
      Key{call.family, group_class, call.kind, call.bytes.value, call.root, call.routing});
  Links& links = found->second;
  if (!fresh) return links;
  std::size_t most = 1 << 16;
  for_each_message(planner_, call, group, [&](std::size_t, const Message& message, std::int64_t) {
    add_way(message, links);
    if (links.size() < most) return;
    // Ways of many messages are the same few links.
    keep_once(links);
    most = std::max(most, 2 * links.size());
  });
  keep_once(links);
  return links;
}

const LinkUses::Links& LinkUses::of_message(std::int32_t source, std::int32_t destination) {
  const auto [found, fresh] = of_messages_.try_emplace({source, destination});
  Links& links = found->second;
  if (!fresh || source == destination) return links;
  Message message;
  message.source = source;
  message.destination = destination;
  add_way(message, links);
  keep_once(links);
  return links;
}

bool LinkUses::are_free(const Links& links) const {
  return std::ranges::all_of(
      links, [&](std::uint32_t link) { return links_[link].users == 0 && links_[link].holder == kNobody; });
}

void LinkUses::hold(const Links& links, std::uint32_t holder) {
  for (const std::uint32_t link : links) links_[link].holder = holder;
}

}  // namespace armilla
