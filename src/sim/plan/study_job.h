// A job of a study, of which is asked which ranks' messages meet whom: who is to fold ranks, find lone groups
// or name the dimensions that several senders share looks at the same facts.
#pragma once

#include <span>

#include "ir/graph.h"
#include "ir/issued.h"
#include "ir/study.h"

namespace armilla {

struct StudyJob {
  const Graph& graph;
  std::span<const Issued> issued;  // by its programs
  const Study& study;
  const Peers& peers;          // of the graph
  bool shares_memory = false;  // ranks wait for each other in remote memory
};

}  // namespace armilla
