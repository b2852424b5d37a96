// TextWorkload -> Chakra traces, one per rank, for all policies: the nodes of trace/text_graph.h with their
// dependences, so that a trace takes as long as the text file does.
//
// Cycles become real time (ASTRA-sim's 1 GHz unless told otherwise): whole microseconds in duration_micros,
// anything finer also exactly in kDurationNs. Steps (TextGraphOptions::astra1_steps) and updates are COMP
// nodes that occupy nothing (kLaneAttribute). Groups of ranks are involved_dim lists, or process groups where
// lists cannot name them: a split dimension, SimAI's groups. all_gather's comm_size is the shard, as in both
// formats. Ids start at 0 in every trace; ranks in the same groups get identical traces.
//
// What Chakra's own converter makes of the text is trace/text_chakra_astra.h.
#pragma once

#include <string>
#include <vector>

#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"
#include "trace/text_graph.h"

namespace armilla {

struct TextChakraOptions {
  TextGraphOptions graph;
  bool process_groups = false;  // instead of involved_dim, for all collectives that are not of all ranks
};

struct TextChakra {
  std::vector<ChakraTrace> ranks;
  Communicators communicators;  // that pg_name refers to; named "1", "2", ... as ASTRA-sim 2 wants them
  std::vector<std::string> warnings;
};

// Throws Error as text_graph does, and for more than 2^25 nodes in all.
TextChakra text_chakra(const TextWorkload& workload, const TextChakraOptions& options);

}  // namespace armilla
