// The networks of ASTRA-sim's analytical backends, reproduced to the nanosecond, truncations included.
//
//   astra2-unaware  A message takes a time of its own, whatever else is under way: hops x latency + bytes /
//                   bandwidth, truncated, in the lowest dimension in which the ends differ; the others cost
//                   nothing. (astra-network-analytical 599a047, BasicTopology.cpp, MultiDimTopology.cpp)
//   astra1          The same in the highest dimension; effective bandwidth from the number of links; NIC,
//                   router and memory terms; truncated after every term. (d27635b, HierarchicalTopology.cc)
//   astra2-aware    Whole messages are stored and forwarded; each directed link carries one at a time, first
//                   come first served, for bytes / bandwidth, truncated; it arrives after latency + bytes /
//                   bandwidth, truncated. Ways as in network/topology.h; ASTRA-sim has one dimension only,
//                   here several are crossed one after the other. (599a047, congestion_aware/Link.cpp)
//
// Cost per message: O(1) and one event without congestion; two events per hop with it. Units: GB/s of 2^30
// bytes.
//
// Apart from the analytical networks (network/dimensions/analytical.h), with which they share dimensions,
// ways and links' numbers: there a link serves what comes in one round by labels, in picoseconds; here in the
// order of scheduling, in truncated nanoseconds, with an event of its own for the link that is free again,
// whose place in its moment decides who goes next.
#pragma once

#include "network/network.h"

namespace armilla {

// All of `setup.stream_dimensions`.
std::unique_ptr<Network> make_astra1(const NetworkSetup& setup, const ParameterValues& values);
std::unique_ptr<Network> make_astra2_unaware(const NetworkSetup& setup, const ParameterValues& values);
std::unique_ptr<Network> make_astra2_aware(const NetworkSetup& setup, const ParameterValues& values);

// Another network, with what rank 0 sends counted as ASTRA-sim does.
std::unique_ptr<Network> make_counted(Semantics semantics, std::unique_ptr<Network> network,
                                      const NetworkSetup& setup);

// Of all of a rank's links in a dimension, as 1.0's Themis counts them, in GB/s.
double astra1_bandwidth(const StreamDimension& dimension);

}  // namespace armilla
