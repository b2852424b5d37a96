// Shortest ways between hosts, with all the equally short ones, and which of them a flow takes.
//
// Every link is two ports, one at each end: link l has ports 2l (at its a) and 2l + 1 (at its b); a port
// sends to its peer, port ^ 1. Hosts do not forward. Between two nodes only the link named last is used, as
// in ns-3's HPCC.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "ir/flow_traffic.h"

namespace armilla {

// What two hosts see of each other on an idle network.
struct PairFigures {
  std::int64_t round_trip_ns =
      0;  // delays there and back, and one payload's time on every link on the way there
  std::int64_t bits_per_second = 0;  // of the slowest link
  std::int64_t hops = 0;             // links; 0: no way
  std::int64_t bandwidth_delay_bytes() const {
    return static_cast<std::int64_t>(static_cast<WideProduct>(round_trip_ns) * bits_per_second /
                                     1'000'000'000 / 8);
  }
};

class Routes {
 public:
  // `destinations`: hosts that packets are sent to, for next_ports and pair; failed links (by number) are not
  // used.
  Routes(const NetworkGraph& graph, std::int64_t payload, std::span<const std::uint32_t> destinations,
         std::span<const std::uint32_t> failed = {});

  // Ports of `node` that lie on a shortest way to the host, in the order in which ECMP counts them.
  std::span<const std::uint32_t> next_ports(std::uint32_t node, std::uint32_t host) const;

  // From a host to one of the destinations; takes as long as there are links on the way.
  PairFigures pair(std::uint32_t source, std::uint32_t host) const;

  // Of all pairs of hosts, destinations or not. One search per switch with hosts.
  struct Largest {
    std::int64_t round_trip_ns = 0, bandwidth_delay_bytes = 0;
  };
  Largest largest() const;

 private:
  struct Neighbour {
    std::uint32_t node = 0, port = 0;
  };
  struct Reached {
    std::int32_t distance = -1;
    std::int64_t delays_ns = 0;                                     // there and back
    std::int64_t transmission_ns = 0, bits_per_second = INT64_MAX;  // on the way to the target
  };
  // A port, or, from kLists on, where a list of several or none begins: how many, and they.
  static constexpr std::uint32_t kLists = std::uint32_t{1} << 31;

  std::vector<Reached> search(std::uint32_t target, std::vector<std::vector<std::uint32_t>>* ports) const;
  // With one link more, whose end nearer to the target is `port`.
  Reached over(const Reached& reached, std::uint32_t port) const;
  static PairFigures figures(const Reached& reached);

  std::vector<bool> is_switch_;
  std::vector<GraphLink> links_;
  std::int64_t payload_;
  std::vector<std::vector<Neighbour>> near_;
  // Per host: the node that ways to it lead to, the switch that it hangs on by its only link or itself.
  std::vector<std::uint32_t> anchor_;
  std::vector<std::uint32_t> last_port_;  // per host with one link: the switch's port to it
  // Ways lead towards targets: a switch, for all hosts that hang on it by one link only, or a host with
  // several.
  std::vector<std::int32_t> target_of_;  // per node, -1: no destination's anchor
  std::size_t targets_ = 0;
  std::vector<std::uint32_t> next_;  // per node and target: flows of a host go to one after the other
  std::vector<std::uint32_t> lists_;
};

// What ECMP hashes of a flow, whichever way its packets go.
struct FlowAddress {
  std::uint32_t source = 0, destination = 0;  // hosts
  std::uint16_t source_port = 0, destination_port = 0;

  FlowAddress back() const { return {destination, source, destination_port, source_port}; }
};

inline constexpr std::uint32_t kNoPort = UINT32_MAX;

// The port by which packets leave a node towards the flow's destination, kNoPort where no way leads there.
// Switches hash with their own number, hosts with several NICs with a constant of ns-3.
std::uint32_t next_port(const NetworkGraph& graph, const Routes& routes, std::uint32_t node,
                        const FlowAddress& flow);

inline constexpr std::uint16_t kFirstSourcePort = 10'000;

// The addresses of a job's flows: source ports count from the first for each pair of hosts, in the order of
// starting.
std::vector<FlowAddress> addresses_of(std::span<const TrafficFlow> flows);

// Where packets go to and come from: the flows' sources and destinations.
std::vector<std::uint32_t> ends_of(std::span<const TrafficFlow> flows);

// MurmurHash3 (x86, 32 bits; A. Appleby, public domain) of three words.
std::uint32_t murmur3(std::uint32_t first, std::uint32_t second, std::uint32_t third, std::uint32_t seed);

// A host's address in ns-3's HPCC, which ECMP hashes: 11.x.y.1 with the number of the node in x and y.
std::uint32_t address_of(std::uint32_t host);

}  // namespace armilla
