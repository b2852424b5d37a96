// Flits: packets that cross routers with virtual channels and credits, cycle by cycle (docs/models/flit.md).
// The model is that of W. J. Dally and B. Towles, Principles and Practices of Interconnection Networks
// (2004), chapters 16 to 19, with the pipeline and the measuring procedure of BookSim (Jiang et al., ISPASS
// 2013) and its random numbers.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/progress.h"
#include "ir/flit.h"
#include "ir/traffic.h"
#include "network/network.h"

namespace armilla {

// Offers the study's traffic until its figures stand. Throws Error for sizes that are none, for combinations
// that are not modelled, for what may take more than an hour (with an estimate), and when packets can wait for
// each other for ever.
RateResult simulate_flits(const FlitStudy& study, Progress& progress = no_progress());

// "8 x 8 mesh, dimension order; 4 VCs of 8 flits; uniform traffic, 0.2 flits per node and cycle in packets of
// 5".
std::string describe(const FlitStudy& study);

// Cycles from the creation of a packet to the arrival of its tail where nothing is in its way:
//   hops (rd + va + sa + st - 1) + (hops - 1) (link + 1) + 4 + flits - 1
// with the delays of routing, both allocations (together where they speculate) and traversal. A speedup of
// the router divides the first bracket, rounded down, where no stage takes more than a cycle. Nothing where
// links differ, as those of a dragonfly do.
std::optional<double> zero_load_latency(const FlitStudy& study, double hops);

// The network of whole jobs: messages are packets over routers with virtual channels and credits, one router
// for each switch and device, over the ways of network/routing/ways.h. The clock goes by the fastest link,
// which moves a flit in a cycle, or by `clock`; slower links take longer for each flit, exactly on the
// average. A link's latency, in whole cycles, holds the pipeline of the router behind it, and is at least
// that and a cycle. Where nothing is in its way a packet of P flits takes
//   p + 2 + sum over its links (latency + ceil(period) - 1) + (P - 1) x the longest period
// cycles, p being those of a router's pipeline, and a period those of a flit on a link. Of BookSim's pipeline
// that is so where links are alike; behind a slower one flits catch up with their head, which alone waits for
// its route and virtual channel. Throws Error for links that lose packets, more flit-hops than anyone would
// wait for (with an estimate), and, with the buffers that wait for each other, for a deadlock.
std::unique_ptr<Network> make_flit_network(const NetworkSetup& setup, const ParameterValues& values);

}  // namespace armilla
