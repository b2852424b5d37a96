// What ASTRA-sim 1.0 reports of a text workload, from the graph and the times of its nodes
// (workload/Layer.cc, workload/Workload.cc). All figures are those of one rank; they are sums over all
// passes.
//
//   compute        as in the file, scaled
//   communication  from issue to the last chunk plus the update, summed over the collectives, queueing
//                  included
//   exposed        from the time the state machine asked for collectives to when they had finished
// Of the run: exposed is finish less compute, as there, so it also contains the further cycle of every step
// and whatever the end waits for; after the last pass only the first layer's wait is charged to a layer.
// O(nodes).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ir/result.h"
#include "trace/text_graph.h"

namespace armilla {

struct TextLayerReport {
  std::string name;
  std::array<Time, 3> compute, communication, exposed;  // by TextPart
};

struct TextReport {
  std::vector<TextLayerReport> layers;
  std::vector<Time> pass_ends;  // when the peer prints "pass: p finished"
  Time finish, compute, exposed;
};

// Throws Error when the run did not record its intervals.
TextReport text_report(const TextGraph& text, const Result& result);

}  // namespace armilla
