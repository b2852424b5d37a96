// Links of Rings that several senders use. A message there passes others' ranks, and is a fluid that moves
// over all links of rings on its way at once, at the rate that max-min fairness gives it
// (network/flow/fluids.h), as on the network flow: a link in its way that is shared by many holds it back on
// all of them. Those of one sender over one way from one rank wait for each other, as on a connection of a
// communicator.
//
// Where ranks are folded a link stands for those of its class, and a message that crosses several of these
// counts on it as often: rates follow from capacities and such counts alone, to the last bit
// (docs/models/folding.md, on graphs).
// Cost: that of Fluids, and O(links of the way) a message.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "network/flow/fluids.h"
#include "network/links/link_table.h"
#include "network/links/senders_on_links.h"
#include "network/routing/ways.h"

namespace armilla {

class FluidRings final : public Fluids::Client {
 public:
  // Who is told when a message is through.
  class Client {
   public:
    virtual ~Client() = default;
    // Its first byte came to the end of the rings at `begin`, its last one now.
    virtual void leaves_rings(std::uint32_t flight, Time begin) = 0;
  };
  // A message on its way through rings.
  struct Passage {
    std::uint32_t flight = 0;
    std::uint16_t sender = 0;
    Bytes bytes;
    std::uint64_t ends = kNoEnds;  // where it comes from and leads, if it waits for others between these
  };
  static constexpr std::uint64_t kNoEnds = UINT64_MAX;

  // No link has more bandwidth than `largest`.
  FluidRings(EventQueue& queue, Bandwidth largest, Client& client)
      : queue_(queue), client_(client), fluids_(queue, MaxMin(largest.value), *this) {}

  // The next link of the message that is about to enter. It stays where it is.
  void take(Link& link, Bandwidth bandwidth);
  // The message with the links that were taken, whose first byte will have crossed all of them at `time` if
  // nothing is in its way.
  void enter(const Passage& passage, Time time);

  void round_over() { fluids_.round_over(); }

  void begins(std::uint32_t fluid) override;
  void is_through(std::uint32_t fluid) override;

  // `described(flight)` is a digest; `begun(time)` is told when what is under way began to move.
  template <class Described, class Begun>
  void add_state(StateDigest& state, const Described& described, const Begun& begun) const {
    fluids_.add_state(state, [&](std::uint32_t fluid) { return described(passages_[fluid].flight); });
    fluids_.for_each_moving([&](std::uint32_t fluid) { begun(fluids_.begun(fluid)); });
    // Until when reports know of the sharing of links.
    for (std::uint32_t link = 0; link < links_.size(); ++link) {
      if (const Time since = senders_.sharing(link, queue_.now()); since > Time(0))
        state.add('h', link, since.value);
    }
  }

 private:
  std::uint32_t connection_of(const Passage& passage);
  SendersOnLinks::Sums sums_of(std::uint32_t link) {
    return {links_[link]->shared_time, links_[link]->senders};
  }

  EventQueue& queue_;
  Client& client_;
  Fluids fluids_;
  std::vector<Link*> links_;  // by their numbers among the rates
  SendersOnLinks senders_;
  std::vector<MaxMin::Use> taken_;  // by the message that is about to enter
  std::vector<Passage> passages_;   // by their numbers as fluids
  std::unordered_map<ConnectionKey, std::uint32_t, ConnectionHash> connections_;
};

}  // namespace armilla
