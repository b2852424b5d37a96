// Programs with loops (ir/graph.h) instead of every micro-batch: a job is lowered for as few micro-batches as
// its pipeline takes to fill, to go round twice and to empty, and what it does in the last of those rounds
// stands for the others.
//
// A round is as many micro-batches as bring a schedule back to where it was: one, one of each direction, or a
// group of as many as there are ranks. In the order of a rank's slots it is the last stretch of one round
// that has a forward and a backward pass of each for every chunk, and follows one that is equal to it, not
// only as slots, but as nodes with dependences; so gradients that are exchanged in the last round and weights
// that are gathered in the first are outside. GPipe goes round twice, forward and then backward: it has two
// loops. Where iterations follow each other without a flush, each has its own, behind the passes with which
// the one before ends and it begins. That more rounds are indeed what more micro-batches would have brought
// is what tests compare. Cost: O(slots + nodes of a few rounds).
#pragma once

#include <cstdint>

#include "ir/plan.h"
#include "lower/hybrid.h"

namespace armilla {

// Micro-batches of a round.
std::int64_t round_of(const Plan& plan);
// Whether every rank has two equal rounds in its order, as far as slots tell.
bool has_rounds(const PipelineOrder& order, const Plan& plan);
// Lets every program of a job stand for `more` rounds more. False where it does not go round twice: then
// nothing is changed.
bool close_loops(LoweredJob& job, const Plan& plan, std::int64_t more);

}  // namespace armilla
