// Traces of one job changed into traces of another.
//
// - scale_ranks: a job of N ranks becomes a data-parallel job of `replicas` copies of it; rank r of copy i is
//   rank r + i N. Messages stay within their copy. Collectives of all ranks, and communicators that are the
//   same in every replica of the old job (ranks `replica_size` apart), then span all copies: these are the
//   data-parallel ones. Communicators within one replica are model-parallel: every copy gets its own. With
//   the whole job as its only replica (the default) that means: all ranks are extended, proper subsets
//   copied. Partial involved_dim lists get a further `false`: the copies are an outermost dimension of the
//   network. Sizes stay as they are: the work of a rank and its gradients do not depend on the number of
//   replicas.
// - keep_iterations: of a trace that repeats itself, only some repetitions. An iteration begins with each
// node
//   whose name is the marker; without one, the names repeat from the first node to the last, or one of the
//   first names begins parts of nearly the same nodes. Dependences on what is left out are cut.
// - merge_traces: one after another; what waits for nothing waits for all that nobody waits for in the trace
//   before. Ids go on.
// Cost: O(nodes + dependences) of the result.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"

namespace armilla {

struct TraceSet {
  std::vector<ChakraTrace> ranks;
  Communicators communicators;
};

// `replica_size` 0: all ranks. Throws Error for communicators that are neither within a replica nor the same
// in all, for names that are not in `job.communicators` ("" and "0" are all ranks), and for peers outside.
TraceSet scale_ranks(const TraceSet& job, std::int32_t replicas, std::int32_t replica_size);

// How many iterations each rank has. Throws Error when there are none or ranks differ.
std::int64_t count_iterations(std::span<const ChakraTrace> ranks, const std::string& marker);
// The iterations `first` to `last`, counted from 1.
std::vector<ChakraTrace> keep_iterations(std::span<const ChakraTrace> ranks, std::int64_t first,
                                         std::int64_t last, const std::string& marker);

// Of one rank. Metadata are those of the first.
ChakraTrace merge_traces(std::span<const ChakraTrace* const> parts);

}  // namespace armilla
