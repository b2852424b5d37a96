#include "network/flow_networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error_testing.h"

namespace armilla {
namespace {

// Four devices on each of four switches, below four others.
Machine leaf_spine(const LinkFigures& link) {
  Machine machine;
  machine.dimensions = {{"fabric", DimensionKind::switched, 16, link.bandwidth, link.latency}};
  for (int i = 0; i < 16; ++i)
    machine.graph.nodes.push_back({NetworkNodeKind::device, "d" + std::to_string(i)});
  for (int i = 0; i < 8; ++i)
    machine.graph.nodes.push_back({NetworkNodeKind::switched, "s" + std::to_string(i)});
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    machine.graph.cables.push_back({a, b, link, link, 0});
  };
  for (std::uint32_t device = 0; device < 16; ++device) join(device, 16 + device / 4);
  for (std::uint32_t leaf = 16; leaf < 20; ++leaf) {
    for (std::uint32_t spine = 20; spine < 24; ++spine) join(leaf, spine);
  }
  return machine;
}

// All to all, of a size that leaves a short frame at the end of each.
TrafficResult all_to_all(const Machine& machine, const std::string& network, std::int64_t hosts) {
  FlowJob job;
  for (std::int64_t step = 1; step < hosts; ++step) {
    for (std::int64_t from = 0; from < hosts; ++from)
      job.flows.push_back({from, (from + step) % hosts, 300'000});
  }
  job.usual_settings = true;
  return run_flows(parse_component(network, "test"), machine, {}, std::move(job));
}

// What comes to a circle of pauses says how far it was, and its hint holds.
TEST(FlowNetworks, HintsOfDeadlocksHold) {
  Machine ring;
  ring.dimensions = {{"x", DimensionKind::ring, 8, gigabytes_per_second(50), nanoseconds(500)}};
  const std::string error = error_of([&] { all_to_all(ring, "packet:buffer=64KiB", 8); });
  EXPECT_THAT(error, testing::HasSubstr("PFC deadlock after "));
  EXPECT_THAT(error,
              testing::HasSubstr("0 of 56 flows had finished\n  hint: routing=up-down has no such cycles"));
  for (const std::string way_out :
       {"packet:buffer=64KiB,routing=up-down", "packet:buffer=64KiB,cc=ndp", "packet:buffer=64KiB,cc=eqds",
        "packet:buffer=64KiB,cc=tcp-cubic", "flow"}) {
    const TrafficResult result = all_to_all(ring, way_out, 8);
    for (const FlowResult& flow : std::get<FlowsResult>(result.outcome).flows)
      ASSERT_TRUE(flow.finished) << way_out;
  }
}

// A network interface that is a node has one link for all ways: they part behind it.
TEST(FlowNetworks, ChooseWaysBehindNetworkInterfaces) {
  Machine machine = leaf_spine({gigabytes_per_second(1), nanoseconds(100), 0});
  const auto devices = static_cast<std::uint32_t>(machine.graph.devices());
  for (std::uint32_t device = 0; device < devices; ++device) {
    const auto nic = static_cast<std::uint32_t>(machine.graph.nodes.size());
    machine.graph.nodes.push_back({NetworkNodeKind::nic, "n" + std::to_string(device)});
    Cable behind = machine.graph.cables[device];
    machine.graph.cables[device].b = nic;
    behind.a = nic;
    machine.graph.cables.push_back(behind);
  }
  FlowJob job;
  for (std::int64_t from = 0; from < 4; ++from) job.flows.push_back({from, from + 4, 1'000'000});
  job.usual_settings = true;
  const auto longest = [&](const std::string& routing) {
    const TrafficResult result =
        run_flows(parse_component("packet:cc=none,routing=" + routing, "test"), machine, {}, job);
    double most = 0;
    for (const FlowResult& flow : std::get<FlowsResult>(result.outcome).flows)
      most = std::max(most, flow.fct_s);
    return most;
  };
  // All over one spine, or over four.
  EXPECT_GT(longest("first"), 3.9e-3);
  for (const std::string routing : {"spray", "adaptive", "ugal", "progressive"})
    EXPECT_LT(longest(routing), 1.5e-3) << routing;
}

// Eight round trips of the longest link would take more virtual channels than there may be.
TEST(FlowNetworks, GarnetsRoutersGoWithFewerRoundTrips) {
  const TrafficResult result =
      all_to_all(leaf_spine({gigabytes_per_second(1000), nanoseconds(4000), 0}), "flit:router=garnet", 2);
  EXPECT_THAT(result.facts,
              testing::Contains(testing::Pair(
                  "played by", testing::HasSubstr("3,908 virtual channels (which keep its longest "
                                                  "link 2 / 3 busy)"))));
}

TEST(FlowNetworks, RefuseFluidsWithoutBandwidth) {
  const LinkFigures link = {gigabytes_per_second(1), nanoseconds(100), 0};
  EXPECT_EQ(error_of([&] { all_to_all(leaf_spine(link), "flow:bandwidth-factor=0", 4); }),
            "test: bandwidth-factor: leaves no bandwidth\n  hint: more than 0, at most 1");
}

// Before they are made.
TEST(FlowNetworks, RefuseFlowsThatTakeMoreMemoryThanIsLeft) {
  const Machine machine = leaf_spine({gigabytes_per_second(1), nanoseconds(100), 0});
  const auto check = [&](const std::string& network, std::int64_t flows, std::int64_t after) {
    check_memory(parse_component(network, "test"), machine, {}, "--traffic", flows, after,
                 Bytes(1'000'000'000));
  };
  for (const std::string network : {"flow", "flit", "packet", "flow:routing=spray"}) {
    check(network, 100'000, 64);
    EXPECT_NE(error_of([&] { check(network, 10'000'000, 64); }).find("10,000,000 flows would take about"),
              std::string::npos);
  }
  // A way or several, and what is written of them.
  check("flow", 1'500'000, 64);
  EXPECT_NE(error_of([&] { check("flow:routing=spray", 1'500'000, 64); }), "no error");
  EXPECT_NE(error_of([&] { check("flow", 1'500'000, 1100); }), "no error");
}

}  // namespace
}  // namespace armilla
