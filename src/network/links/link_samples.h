// What links do over time: bytes that they carry, bytes that wait for them, and pauses, in intervals that
// grow with the run.
//
// Intervals are whole powers of two of nanoseconds, at first 64 ns; whenever there would be more than
// kMostIntervals, each two become one. What is there at the beginning of an interval counts in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/flow_traffic.h"
#include "ir/traffic.h"

namespace armilla {

class LinkSampler {
 public:
  static constexpr std::size_t kMostIntervals = 256;

  // Directed links 2l and 2l + 1 are the two directions of link l, as ports are (network/routing/routes.h).
  explicit LinkSampler(const NetworkGraph& graph)
      : graph_(graph), series_(2 * graph.links.size()), queues_(series_.size()) {}

  // Bytes evenly between two moments.
  void carries(std::uint32_t link, double start_ns, double end_ns, double bytes);
  // From now on so many bytes wait.
  void waits(std::uint32_t link, std::int64_t now_ns, std::int64_t bytes);
  void paused(std::uint32_t link, std::int64_t start_ns, std::int64_t end_ns);

  // All until `end_ns`. Links that carried something, the busiest first.
  TrafficSamples samples(std::int64_t end_ns);

 private:
  struct Interval {
    double bytes = 0;
    std::int64_t queue = 0, paused_ns = 0;
  };
  struct Waiting {
    std::int64_t since_ns = 0, bytes = 0;
  };

  Interval& at(std::uint32_t link, std::int64_t ns);
  void coarsen();

  const NetworkGraph& graph_;
  std::vector<std::vector<Interval>> series_;
  std::vector<Waiting> queues_;
  int shift_ = 6;  // an interval is 2^shift_ ns
};

}  // namespace armilla
