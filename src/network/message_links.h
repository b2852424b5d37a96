// What messages use of the links of a network that folds on them (sim/fold/link_classes.h): every message of
// two ends uses the same links whenever it is sent, and what it gets there depends on what each of them
// carries, not on the order in which it came nor on names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/registry.h"
#include "ir/interconnect.h"
#include "ir/machine.h"
#include "ir/what_if.h"

namespace armilla {

// Of a message on a directed link.
struct LinkShare {
  std::uint32_t link = 0;
  std::uint32_t copies = 1;  // messages alike that the link carries so: of a folded run more than this one
  double share = 1;          // of the message: a multiple of kShareUnit, so that sums are exact
};
inline constexpr double kShareUnit = 1.0 / (1 << 30);

class MessageLinks {
 public:
  virtual ~MessageLinks() = default;
  // False where a message takes the way that is least loaded when it is sent: then nothing of this holds.
  virtual bool are_fixed() const = 0;
  virtual std::uint32_t links() const = 0;
  // Which dimension, and how fast: equal for links that serve alike.
  virtual std::tuple<std::uint32_t, double, std::int64_t> kind(std::uint32_t link) const = 0;
  // Between two ranks, each link once; quickest when asked destination by destination. Throws Error where no
  // way leads.
  virtual std::vector<LinkShare> used(std::int32_t source, std::int32_t destination) = 0;
  // Whether any of the ways used so far is one of several, taken by a hash or at random.
  virtual bool any_by_chance() const = 0;
};

// Which link carries what others carry, too.
struct LinkClasses {
  std::vector<std::uint32_t> stands_for;  // per link, the lowest of its class; empty: each is its own
  std::vector<std::int64_t> sizes;        // per link that stands for others
};
const LinkClasses& each_link_itself();

// Nothing where the network has none of that kind.
std::unique_ptr<MessageLinks> message_links(const ComponentChoice& network, const Machine& machine,
                                            const WhatIf& what_if);

}  // namespace armilla
