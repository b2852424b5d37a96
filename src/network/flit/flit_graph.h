// The links of a machine as a network of routers: one for each switch and network interface, and one for each
// device, whose ports are its links and as many interfaces, one for each link: what leaves by a link enters
// at its interface, what comes by a link leaves to its interface, so that a device sends and receives on all
// its links at once.
//
// Virtual channels are divided into layers, so that packets cannot wait for each other in a circle (Dally and
// Seitz, IEEE Transactions on Computers C-36(5), 1987). Links have an order: up from the devices, across,
// down; around a ring by its positions. A way whose next link comes before the last one goes on in the next
// layer, so it never comes back to a buffer that it may wait for. On a ring that is a dateline. Ways of
// up-down have an order of their own, which they never leave: they take one layer. Where all other ways cross
// dimension after dimension, each begins in the first layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/flit.h"
#include "network/flit/flit_network.h"
#include "network/routing/ways.h"

namespace armilla {

// What the network is to be: cycles are exact on the average, latencies are rounded to whole ones.
struct FlitFabric {
  double cycle_ps = 0;
  double flit_bytes = 0;
  bool whole_periods = false;  // a flit takes whole cycles on a link
  std::int64_t pipeline = 2;   // cycles of a router, from an arrival to the channel
};

class FlitGraph {
 public:
  // Looks at ways between some devices for the layers and their length. Throws Error for links that carry
  // more than a flit in a cycle, lose packets, or are too long.
  FlitGraph(Ways& ways, const FlitFabric& fabric);

  const FlitNetwork& network() const { return network_; }
  std::uint32_t layers() const { return layers_; }
  double mean_links() const { return mean_links_; }  // of ways
  // Most flits that a link moves in its round trip: what a buffer must hold to keep it busy.
  std::int64_t longest_round_trip() const { return longest_round_trip_; }
  // On the last link of a way, where nothing but its device is ahead, a packet may use all layers if it has
  // its channel to itself.
  void divide(std::int64_t virtual_channels, bool one_packet_each) {
    virtual_channels_ = virtual_channels;
    one_packet_each_ = one_packet_each;
  }

  struct Entry {
    std::uint32_t node = 0, step = 0;  // an interface, and the first of the network's steps
  };
  // Once `divide` has been told.
  Entry add(std::span<const std::uint32_t> way);

 private:
  std::uint32_t output_of(std::uint32_t link) const;
  std::uint32_t interface_of(std::uint32_t link) const;  // that of its beginning
  void make_routers();
  void connect(const FlitFabric& fabric);
  void order_links(const UpDown* up_down);
  void look_at_ways(Ways& ways);
  template <class Visit>
  std::uint32_t visit_layers(std::span<const std::uint32_t> way, const Visit& visit) const;
  VcRange vcs_of(std::uint32_t layer) const;

  const Ways& ways_;
  FlitNetwork network_;
  std::vector<std::uint32_t> place_;            // of a directed link among those that leave its node
  std::vector<std::uint32_t> first_interface_;  // per device
  std::vector<std::uint64_t> order_;            // per directed link
  bool one_packet_each_ = false;
  bool by_dimension_ = true;  // all ways cross dimension after dimension
  std::uint32_t layers_ = 1;
  double mean_links_ = 1;
  std::int64_t virtual_channels_ = 1, longest_round_trip_ = 1;
};

}  // namespace armilla
