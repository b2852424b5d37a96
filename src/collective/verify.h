// Whether schedules from outside perform their collective: MSCCL's algorithms, and those that a user wrote.
// Armilla's own are proven by tests (collective/verify/verify_testing.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/custom_collective.h"
#include "ir/formats/msccl.h"

namespace armilla {

struct CustomCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::optional<Bytes> bytes;  // as in ir/collective.h; empty: volumes are not checked
  std::int32_t root = 0;       // of broadcast and reduce
};

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
// NOT found: wrong bytes of the right length. MSCCL names its chunks: verify_msccl is exact.
// Cost O((nodes + dependences) x members / 64).
//
// Empty when nothing is wrong, else the first violation with member and node.
std::string verify_custom(const CustomCollective& collective, const CustomCall& call);

inline constexpr std::int64_t kMaxClocks = 100'000'000;
inline constexpr std::int64_t kMaxChunksMoved = 50'000'000;

// Proof by execution that an MSCCL algorithm (ir/formats/msccl.h) performs its collective.
//
// Tokens move instead of bytes: the value of a chunk is which chunk of the result it belongs to and the set
// of members whose contributions it holds. Found are: contributions added twice or to another chunk's, use of
// a chunk that holds nothing, leaving the buffers, messages of another length than awaited or that nobody
// awaits, threadblocks that wait for each other for ever, wrong final buffers, and steps that touch one chunk
// without an order between them (by vector clocks over the threadblocks, while threadblocks x steps stays
// below kMaxClocks). Buffer sizes follow from the collective: nchunksperloop chunks, a member's share of them
// on the scattered side. Cost O(chunks moved x members / 64 + steps x threadblocks).
//
// Empty when `algorithm` performs `kind`, else the first violation with GPU, threadblock and step.
std::string verify_msccl(const MscclAlgorithm& algorithm, CollectiveKind kind, std::int32_t root = 0);

}  // namespace armilla
