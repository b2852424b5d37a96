// What ASTRA-sim's algorithms do in a phase of a stream, as data: the machines of Ring.cc, AllToAll.cc
// (direct), HalvingDoubling.cc and DoubleBinaryTreeAllReduce.cc (astra-sim 2.x), and native schedules where
// those cannot perform. One interpreter executes them all (AstraEngine::go_on).
//
// Packets cross between network endpoint and memory; the first ones when the phase begins, each further one
// when as many messages as it says have been received since the last. A step sends messages and posts
// receives; it is taken when as many packets as it says have crossed since the last step. A role is through
// when all of its steps are taken and `crossings_at_end` packets have crossed since. Rows that repeat are
// listed once, and sizes that are all the same not at all, so that a schedule serves phases of every size.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/schedule.h"
#include "ir/collective.h"

namespace armilla {

struct AstraCrossing {
  std::int64_t bytes = 0;    // on the bus (sim/astra/shared_bus.h)
  std::int64_t reduced = 0;  // bytes, where it is to be reduced
  std::int32_t times = 1;
  std::int32_t receives = 1;  // before each of them, but for those at the beginning
  bool to_endpoint = false;   // from memory, else back
  bool is_reduced = false;
  bool returned = false;  // comes back to where it started
};

struct AstraTransfer {
  std::int32_t peer = 0;         // as Schedule::addressing says; a receive names its source
  std::int32_t slot = 0;         // place in the receiver's mailbox
  std::int32_t sender_slot = 0;  // of its handshake in the sender's mailbox
  bool handshakes = true;
  std::int64_t bytes = 0;
};

struct AstraStep {
  std::int32_t times = 1;
  std::int32_t crossings = 1;                                        // before it
  std::int32_t received = 0;                                         // messages of the phase, before it
  std::uint32_t first_send = 0, first_receive = 0, end_receive = 0;  // into AstraRole::transfers
};

struct AstraRole {
  std::vector<AstraStep> steps;
  std::vector<AstraTransfer> transfers;
  std::vector<AstraCrossing> crossings;  // from the front again behind the last
  std::int32_t at_begin = 1;
  std::int32_t crossings_at_end = 0;
};

struct AstraSchedule {
  Addressing addressing = Addressing::shift;
  bool turns = false;  // streams that go anticlockwise take all shifts the other way
  bool alike = true;   // all messages and packets are as large as AstraPhase::each says, else as listed
  std::int32_t slots = 1;
  std::vector<AstraRole> roles;
  std::vector<std::uint32_t> role_of;  // per position; empty: all have role 0

  const AstraRole& of(std::int32_t position) const {
    return roles[role_of.empty() ? 0 : role_of[static_cast<std::size_t>(position)]];
  }
};

// Of n ranks in a line. `sends` messages to the neighbour, one after the other.
AstraSchedule astra_ring(CollectiveKind kind, std::int32_t n, std::int32_t sends);
// To all others in turn, `window` at once; the second half of an all-reduce waits for all of the first.
// `local`: within a communicator, whose packets are counted otherwise.
AstraSchedule astra_direct(CollectiveKind kind, std::int32_t n, std::int32_t sends, std::int32_t window,
                           bool local);
// n a power of two. Ever half, or twice, as much of the phase's `bytes`.
AstraSchedule astra_halving_doubling(CollectiveKind kind, std::int32_t n, std::int64_t bytes);
// n a power of two. Two such trees exist, whose roots are the first and the last position.
AstraSchedule astra_tree(std::int32_t n, bool first_is_root);
// A native schedule, of any size and kind; packets on the bus are of `each` bytes.
AstraSchedule astra_scheduled(const Schedule& schedule, std::int64_t each);

}  // namespace armilla
