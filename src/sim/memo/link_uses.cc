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

const LinkUses::Links& LinkUses::of_call(const CollectiveCall& call, std::uint32_t group_class,
                                         const GroupMembers& group) {
  const auto [found, fresh] = of_calls_.try_emplace({call.family, group_class, CallKey(call)});
  Links& links = found->second;
  if (!fresh) return links;
  // An all-to-all of a thousand members has a million messages over some thousand links: cut down whenever
  // the list has doubled, which costs O(messages log links) in all.
  std::size_t most = 1 << 16;
  for_each_message(planner_, call, group, [&](std::size_t, const Message& message, std::int64_t) {
    ways_.add(message, links);
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
  ways_.add(message, links);
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
