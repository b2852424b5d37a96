// Flits: packets that cross routers with virtual channels and credits, cycle by cycle (docs/models/flit.md).
// The model is that of W. J. Dally and B. Towles, Principles and Practices of Interconnection Networks
// (2004), chapters 16 to 19, with the pipeline and the measuring procedure of BookSim (Jiang et al., ISPASS
// 2013) and its random numbers.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/progress.h"
#include "base/registry.h"
#include "ir/flit.h"
#include "ir/flow_traffic.h"
#include "ir/traffic.h"
#include "network/network.h"
#include "network/routings.h"

namespace armilla {

// Offers the study's traffic until its figures stand. Throws Error for sizes that are none, for combinations
// that are not modelled, for what may take more than an hour (with an estimate), and when packets can wait
// for each other for ever.
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

// Flows alone over the same: a device's take turns, packet by packet. Throws Error likewise, and where the
// job is to be sampled.
TrafficResult flit_traffic(const FlowJob& job, const Machine& machine, std::span<const DamagedLink> damage,
                           const ParameterValues& values);

inline constexpr std::array kFlitParameters = {
    ParameterInfo{"flit-width", ParameterType::bytes, "256B", "of a flit: what a router passes in a cycle"},
    ParameterInfo{"packet", ParameterType::bytes, "4096B", "the longest packet, in whole flits"},
    ParameterInfo{"payload", ParameterType::fraction, "1", "of flits, the rest being headers"},
    ParameterInfo{"router", ParameterType::choice, "pipelined",
                  "BookSim's pipeline, whose switch is allocated by islip after the virtual channel, or "
                  "Garnet's, which does both in one cycle for packets that have a virtual channel each",
                  "pipelined|garnet"},
    ParameterInfo{"router-latency", ParameterType::count, "",
                  "cycles of a router, which a link's latency holds; else 2, of Garnet's 1"},
    ParameterInfo{"vcs", ParameterType::count, "",
                  "virtual channels of each input; else 4, or as many as the ways take to be free of "
                  "deadlock; of Garnet's for eight round trips of the longest link"},
    ParameterInfo{"buffer", ParameterType::count, "",
                  "flits of each virtual channel; else as many as keep the longest link busy"},
    ParameterInfo{"clock", ParameterType::frequency, "",
                  "of the routers; else that at which the fastest link moves a flit in a cycle"},
    ParameterInfo{"routing", ParameterType::choice, "ecmp", kRoutingHelp, kRoutings},
};

}  // namespace armilla
