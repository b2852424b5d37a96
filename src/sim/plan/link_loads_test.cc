#include "sim/link_loads.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

struct OneSwitch {
  Machine machine;
  CollectiveOptions options;
  Graph graph;

  explicit OneSwitch(DimensionKind kind = DimensionKind::switched) {
    machine.name = "test";
    machine.dimensions = {{"only", kind, 8, gigabytes_per_second(1), nanoseconds(100)}};
    graph.ranks = 8;
    graph.families = {world_family(8)};
    options.chunks = 1;
  }
};

// A ring sends 2 (n - 1) messages of C / n, which no algorithm without switches that reduce can do with less.
TEST(LinkLoads, ARingLoadsLinksWithTheLeastThereIs) {
  OneSwitch job;
  job.options.algorithms = {"ring"};
  CollectivePlanner planner(job.machine, job.options);
  LinkLoads loads(planner);
  const CollectiveCall call{.kind = CollectiveKind::all_reduce, .bytes = Bytes(8'000'000)};
  const GroupLayout& layout = planner.layout(job.graph, 0, 0);
  EXPECT_EQ(loads.busiest(call, layout), microseconds(14'000));
  EXPECT_EQ(loads.limit(call, layout), microseconds(14'000));
  const MemberTraffic traffic = traffic_per_member(planner, call, layout.shape);
  EXPECT_DOUBLE_EQ(traffic.messages, 14);
  EXPECT_DOUBLE_EQ(traffic.bytes, 14'000'000);
}

// On a Ring a direct exchange passes others: its busiest link carries more than any algorithm would have to,
// and chunks change nothing.
TEST(LinkLoads, NothingIsBelowTheLimit) {
  for (const std::int64_t chunks : {1, 8}) {
    for (const std::string algorithm : {"ring", "bidirectional-ring", "direct", "halving-doubling"}) {
      OneSwitch job(DimensionKind::ring);
      job.options.algorithms = {algorithm};
      job.options.chunks = chunks;
      CollectivePlanner planner(job.machine, job.options);
      LinkLoads loads(planner);
      const GroupLayout& layout = planner.layout(job.graph, 0, 0);
      const CollectiveCall call{.kind = CollectiveKind::all_reduce, .bytes = Bytes(1 << 20)};
      EXPECT_GE(loads.busiest(call, layout), loads.limit(call, layout)) << algorithm;
      if (algorithm == "direct") {
        EXPECT_GT(loads.busiest(call, layout), loads.limit(call, layout));
      }
    }
  }
}

}  // namespace
}  // namespace armilla
