// Loops over layers: of a program that passes through equal layers one after the other, forward and then
// backward, a few are kept and a loop (ir/graph.h) stands for the rest, so that folding in time
// (sim/fold/time_fold.h) leaves out what they do again. What lowering writes as loops, the rounds of a
// pipeline, is written out for that.
//
// Layers are equal when their nodes are, each with dependences as far back, but for their names, and for
// priorities of calls where `order` does not look at them. What all layers of a stretch do may be waited for
// by a computation at the end of the program, as the optimizer waits for all gradients: then each layer ends
// with a node that takes no time, which waits for its own and for that of the layer before. Such a node adds
// a round to a moment. That is noticed by nothing, as all computations follow each other and nothing else is
// left. So this is exact where times and sums are all that is asked for.
//
// Of jobs of one program only, since stages of a pipeline have not equally many layers. Cost: O(nodes +
// dependences).
#pragma once

#include <optional>

#include "ir/collective.h"
#include "ir/graph.h"

namespace armilla {

// None where that would not spare much.
std::optional<Graph> in_layer_loops(const Graph& graph, ChunkOrder order);

}  // namespace armilla
