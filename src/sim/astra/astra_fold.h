// Which runs under ASTRA-sim's rules one rank can stand for: those in which every rank runs one program whose
// collectives look the same from everywhere. Whether ties keep the ranks together only the run itself tells
// (sim/engine/order.h).
//
// That is so for ring, direct and halving-doubling along whole dimensions of the network, without congestion
// and rendezvous: who sends to whom, over how many hops, depends on distances alone. Double binary trees,
// algorithms over flat communicators, Themis, messages, custom schedules, remote memory and shared buses tell
// ranks apart.
#pragma once

#include "ir/formats/system_layer.h"
#include "ir/graph.h"

namespace armilla {

bool can_fold(const Graph& graph, const SystemLayer& system);

}  // namespace armilla
