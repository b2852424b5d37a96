// Schedules: what every member of a group sends and waits for to perform a collective. Pure data; nothing
// here knows a network. The runner (sim/) executes them, tests prove that they perform the collective
// (collective/verify/verify_testing.h).
//
// Where switches reduce and multicast, a step's messages may end or begin there (Leg): those to the switch
// carry what it is to add up, or nothing, to tell their receivers that it has what was sent before them;
// those from it what it holds.
//
// A member works through its steps in order. On entering a step it starts the step's sends, at most `window`
// of them in flight; the step is complete when `receives` messages addressed to it have arrived, all sends
// are started and, under a window, delivered. Members whose steps look alike from where they stand share a
// RankSchedule: peers are then relative to the member. Sizes: a buffer is cut into `pieces` blocks of
// ceil(bytes / pieces), as if it were padded to a whole number of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"

namespace armilla {

// How Transfer::peer names a member, from position p of n.
enum class Addressing : std::uint8_t {
  absolute,  // peer
  shift,     // (p + peer) mod n
  exchange,  // p xor peer
};

struct Transfer {
  std::int32_t peer = 0;
  std::int32_t step = 0;  // of the receiver, in which the message counts
  Bytes bytes;
};

struct Step {
  std::uint32_t first_send = 0, end_send = 0;  // into RankSchedule::sends
  std::int32_t receives = 0;
  std::int32_t window = 0;  // 0: no limit
  Bytes reduced;            // received bytes that are combined with local ones once the step is complete
  Leg leg = Leg::whole;     // of its messages
};

// For verification only: what a transfer carries. A block is one of Schedule::pieces of the buffer, or for
// all-to-all source * n + destination. `reduce` adds it to the receiver's block, otherwise it replaces it; to
// a switch, every message adds.
struct Payload {
  std::vector<std::int32_t> blocks;
  bool reduce = false;
};

struct RankSchedule {
  std::vector<Step> steps;
  std::vector<Transfer> sends;
  std::vector<Payload> payloads;  // parallel to sends, empty unless asked for

  std::span<const Transfer> sends_of(const Step& step) const {
    return std::span(sends).subspan(step.first_send, step.end_send - step.first_send);
  }
};

struct Schedule {
  std::int32_t ranks = 0;
  Addressing addressing = Addressing::absolute;
  std::int32_t pieces =
      0;  // a buffer is cut into; 0: one per rank; of what is scattered, a multiple of the ranks
  std::vector<RankSchedule> roles;
  std::vector<std::uint32_t> role_of;  // per member; empty: all members have role 0

  const RankSchedule& of(std::int32_t member) const {
    return roles[role_of.empty() ? 0 : role_of[static_cast<std::size_t>(member)]];
  }
  std::int32_t peer(std::int32_t member, const Transfer& transfer) const {
    switch (addressing) {
      case Addressing::shift:
        return static_cast<std::int32_t>((std::int64_t{member} + transfer.peer) % ranks);
      case Addressing::exchange:
        return member ^ transfer.peer;
      case Addressing::absolute:
        break;
    }
    return transfer.peer;
  }
  // True when every member does the same and receives in each step what it sends in it, so that members which
  // start together stay together: the condition for folding them into one.
  bool is_symmetric() const { return addressing != Addressing::absolute && role_of.empty(); }
};

}  // namespace armilla
