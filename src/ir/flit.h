// Networks of routers that pass flits, and the traffic that is offered to them by rate: what a BookSim
// configuration says, in Armilla's words.
//
// A packet is a row of flits. Each input of a router has virtual channels with a buffer each; a packet holds
// a virtual channel of the next input from its head to its tail, and a flit moves when that buffer has room
// (credits). Delays are cycles of the routers (docs/models/flit.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace armilla {

enum class FlitTopology : std::uint8_t { mesh, torus, fat_tree, dragonfly };
enum class FlitRouting : std::uint8_t { dimension_order, nearest_common_ancestor, minimal };
enum class FlitPattern : std::uint8_t {
  uniform,
  transpose,
  tornado,
  bit_complement,
  bit_reverse,
  shuffle,
  neighbor
};
enum class FlitAllocator : std::uint8_t {
  islip,
  separable_input_first,
  separable_output_first,
  wavefront,
  pim
};

struct FlitRouter {
  std::int64_t virtual_channels = 16;  // of each input
  std::int64_t buffer = 8;             // flits of each virtual channel
  std::int64_t routing_delay = 1;      // 0: the route was found one router before
  std::int64_t vc_allocation_delay = 1, switch_allocation_delay = 1;
  std::int64_t traversal_delay = 1;  // of the switch
  std::int64_t credit_delay = 0;     // until a credit that has arrived counts
  std::int64_t speedup = 1;          // steps of the router in a cycle of the channels
  std::int64_t vc_allocator_iterations = 1, switch_allocator_iterations = 1;  // of islip and pim
  bool speculative = false;  // a head asks for the switch together with the virtual channel
  bool atomic_vcs =
      false;  // a virtual channel is free again when the buffer behind it is empty, not when the tail is sent
  bool hold_switch = false;  // a packet keeps its way through the switch while its flits follow each other
  // As Garnet's: a flit asks for the switch `routing_delay` cycles after it arrived; a head that is granted
  // it takes the first free virtual channel, in the same cycle. Inputs choose before outputs do. No other
  // delay counts but credit_delay and that of one cycle for the traversal. Virtual channels are atomic.
  bool one_step = false;
  FlitAllocator vc_allocator = FlitAllocator::islip, switch_allocator = FlitAllocator::islip;
};

struct FlitTraffic {
  FlitPattern pattern = FlitPattern::uniform;
  double packets_per_node_cycle = 0;  // each node tosses a coin every cycle
  std::int64_t packet_flits = 1;
};

// When figures count. Time is divided into samples; after the warm-up the run ends when three samples in a
// row change latency and throughput by no more than the thresholds, or with the last sample, and then waits
// for the packets that were created meanwhile.
struct FlitMeasuring {
  std::int64_t sample_cycles = 1000, warm_up_samples = 3, most_samples = 10;
  double saturated_latency =
      500;              // a mean packet latency above it means that queues grow without end; < 0: never
  bool latency = true;  // false: throughput alone: nothing is waited for, and nothing called saturated
  // Relative changes between samples; < 0: never too much. The first two count where there are no warm-up
  // samples.
  double warm_up_latency_change = 0.05, warm_up_throughput_change = 0.05;
  double latency_change = 0.05, throughput_change = 0.05;
};

struct FlitStudy {
  FlitTopology topology = FlitTopology::torus;
  FlitRouting routing = FlitRouting::dimension_order;
  // Mesh and torus: k^n routers with a node each. Fat tree: k children, n levels, k^n nodes. Dragonfly: k
  // nodes and k global links of each router, n = 1.
  std::int64_t k = 8, n = 2;
  bool long_links = true;  // those of a folded torus take two cycles, not one
  FlitRouter router;
  FlitTraffic traffic;
  FlitMeasuring measuring;
  std::int64_t seed = 0;
};

}  // namespace armilla
