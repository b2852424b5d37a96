// Loop and Scan. A body whose shapes stay as they are appears once, repeated by the trip count; where they
// change from trip to trip, every trip is written out, up to a limit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "read/onnx/flatten/flat_graph.h"
#include "read/onnx/flatten/graph_runner.h"
#include "read/onnx/flatten/scope.h"

namespace armilla {

class OnnxLoops {
 public:
  explicit OnnxLoops(OnnxGraphRunner& runner)
      : runner_(runner), flat_(runner.flat_graph()), graph_(flat_.graph()) {}

  void run_loop(const OnnxNode& node, const WireNode& wire, OnnxScope& scope, const OnnxFrame& frame);
  void run_scan(const OnnxNode& node, const WireNode& wire, OnnxScope& scope, const OnnxFrame& frame);

 private:
  // The trip count of a Loop, at most; nullopt when only its condition ends it.
  std::optional<std::int64_t> most_trips(const OnnxNode& node, const WireNode& wire, const OnnxScope& scope);
  // The body once, for all trips; false when its shapes change from trip to trip.
  bool run_loop_once(const OnnxNode& node, const WireNode& wire, const WireGraph& body,
                     std::optional<std::int64_t> trips, OnnxScope& scope, const OnnxFrame& frame);
  void unroll_loop(const OnnxNode& node, const WireNode& wire, const WireGraph& body, std::int64_t trips,
                   OnnxScope& scope, const OnnxFrame& frame);
  // Defines the outputs of a loop: the carried values as they are, the ones behind them stacked.
  struct Stacking {
    std::size_t first;  // output that is stacked
    std::int64_t trips;
    std::int64_t repeat;  // of the loop itself
    std::vector<std::int64_t> axes;
    std::optional<std::int64_t> batch;  // of a Scan of operator set 8, in front
    bool runs = true;
  };
  void hand_out(const OnnxNode& node, const WireNode& wire, OnnxScope& scope,
                const std::vector<std::uint32_t>& results, const Stacking& stacking);
  void check_carried(const OnnxNode& node, std::uint32_t before, std::uint32_t after) const;

  OnnxGraphRunner& runner_;
  OnnxFlatGraph& flat_;
  OnnxGraph& graph_;
};

}  // namespace armilla
