// Whether a user's schedule (ir/custom_collective.h) can perform a collective.
//
// Such a schedule does not say which bytes it moves, so these are necessary conditions: the k-th send meets a
// k-th receive of the same size for every (source, destination, tag); no circle of dependences and messages;
// what every member must know reaches it along dependences and messages; and, for a call of known size B
// among n, volumes that no correct schedule can undercut:
//   all-reduce      2 (n-1) B in all, every member sends and receives B
//   all-gather, reduce-scatter   (n-1) B in all, B - B/n received (all-gather) or sent by every member
//   all-to-all      B - B/n sent and received by every member
//   broadcast, reduce   B received (broadcast) or sent by every member but the root
// NOT found: wrong bytes of the right length. MSCCL names its chunks: collective/msccl_verify.h is exact.
// Cost O((nodes + dependences) x members / 64).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "ir/custom_collective.h"

namespace armilla {

struct CustomCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::optional<Bytes> bytes;  // as in ir/collective.h; empty: volumes are not checked
  std::int32_t root = 0;       // of broadcast and reduce
};

// Empty when nothing is wrong, else the first violation with member and node.
std::string verify_custom(const CustomCollective& collective, const CustomCall& call);

}  // namespace armilla
