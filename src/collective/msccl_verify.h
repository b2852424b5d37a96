// Proof by execution that an MSCCL algorithm (ir/formats/msccl.h) performs its collective.
//
// Tokens move instead of bytes: the value of a chunk is which chunk of the result it belongs to and the set
// of members whose contributions it holds. Found are: contributions added twice or to another chunk's, use of
// a chunk that holds nothing, leaving the buffers, messages of another length than awaited or that nobody
// awaits, threadblocks that wait for each other for ever, wrong final buffers, and steps that touch one chunk
// without an order between them (by vector clocks over the threadblocks, while threadblocks x steps stays
// below kMaxClocks). Buffer sizes follow from the collective: nchunksperloop chunks, a member's share of them
// on the scattered side. Cost O(chunks moved x members / 64 + steps x threadblocks).
#pragma once

#include <cstdint>
#include <string>

#include "ir/formats/msccl.h"

namespace armilla {

inline constexpr std::int64_t kMaxClocks = 100'000'000;
inline constexpr std::int64_t kMaxChunksMoved = 50'000'000;

// Empty when `algorithm` performs `kind`, else the first violation with GPU, threadblock and step.
std::string verify_msccl(const MscclAlgorithm& algorithm, CollectiveKind kind, std::int32_t root = 0);

}  // namespace armilla
