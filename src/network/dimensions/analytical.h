// The analytical network: a message over hops 1..h arrives after
//     sum of the hops' latencies + bytes / the slowest hop's bandwidth
// when nothing else uses its links (ASTRA-sim 2.0, Won et al. 2023, section IV: latency + size/bandwidth).
// Links are shared honestly: each serves the messages of a sender first come, first served, at its full
// bandwidth, and those of several senders (Message::sender) in equal parts (network/dimensions/fair_ports.h);
// on Rings that several use every message has its max-min fair share (network/flow/fluid_rings.h). A message
// cuts through a node as its first byte arrives, or, with switching=store-and-forward, goes on when it is
// there as a whole: then size/bandwidth is paid on every hop.
// k messages that leave a port together therefore take k times as long, as they do on a wire. Not modelled:
// packets, flow control, buffers, switch-internal limits, routing around congestion. Cost: one event per
// uncontended hop after the first but for the last, one more where the last hop is contended; O(hops) per
// message.
#pragma once

#include "network/network.h"

namespace armilla {

std::unique_ptr<Network> make_analytical(const NetworkSetup& setup, const ParameterValues& values);
// Every message as if it were alone.
std::unique_ptr<Network> make_analytical_unshared(const NetworkSetup& setup, const ParameterValues& values);

}  // namespace armilla
