// Whose messages move over links, where several senders (Message::sender) do: how long each link has messages
// of more than one, and of how many. Cost: O(senders on the link) per message and link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "network/network.h"

namespace armilla {

class SendersOnLinks {
 public:
  // What reports say of a link (LinkUse).
  struct Sums {
    Time& shared;
    std::int32_t& senders;
  };

  explicit SendersOnLinks(std::size_t links = 0) : on_(links) {}
  void add_link() { on_.emplace_back(); }

  // Of all links of a message's way.
  void enter(std::span<const std::uint32_t> way, std::uint16_t sender, Time now,
             std::vector<NetworkSums::Carried>& sums) {
    for (const std::uint32_t link : way) enter(link, sender, now, {sums[link].shared, sums[link].senders});
  }
  void leave(std::span<const std::uint32_t> way, std::uint16_t sender, Time now,
             std::vector<NetworkSums::Carried>& sums) {
    for (const std::uint32_t link : way) leave(link, sender, now, {sums[link].shared, sums[link].senders});
  }
  // `sums` with what is not over yet.
  void bring_up(std::vector<NetworkSums::Carried>& sums, Time now) const {
    for (std::uint32_t link = 0; link < sums.size(); ++link)
      sums[link].shared = later(sums[link].shared, sharing(link, now));
  }

  void enter(std::uint32_t link, std::uint16_t sender, Time now, const Sums& sums) {
    OnLink& on = on_[link];
    const auto known = std::ranges::find(on.senders, sender, &Sender::name);
    if (known != on.senders.end()) {
      ++known->messages;
      return;
    }
    bring_up(on, now, sums);
    on.senders.push_back({sender, 1});
  }
  void leave(std::uint32_t link, std::uint16_t sender, Time now, const Sums& sums) {
    OnLink& on = on_[link];
    const auto known = std::ranges::find(on.senders, sender, &Sender::name);
    if (--known->messages > 0) return;
    bring_up(on, now, sums);
    on.senders.erase(known);
  }
  // So far, if they are sharing it.
  Time sharing(std::uint32_t link, Time now) const {
    return on_[link].senders.size() > 1 ? now - on_[link].since : Time(0);
  }

 private:
  struct Sender {
    std::uint16_t name = 0;
    std::uint32_t messages = 0;
  };
  struct OnLink {
    std::vector<Sender> senders;
    Time since;  // as many
  };
  // Those that come and go at one moment do not share, in whatever order.
  static void bring_up(OnLink& on, Time now, const Sums& sums) {
    if (on.senders.size() > 1 && now > on.since) {
      sums.shared = later(sums.shared, now - on.since);
      sums.senders = std::max(sums.senders, static_cast<std::int32_t>(on.senders.size()));
    }
    on.since = now;
  }
  std::vector<OnLink> on_;
};

}  // namespace armilla
