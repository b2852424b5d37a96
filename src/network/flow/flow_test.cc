#include "network/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "base/error_testing.h"
#include "base/progress_testing.h"
#include "network/network_testing.h"
#include "network/packet.h"
#include "network/packet/packet_testing.h"

namespace armilla {
namespace {

// SimGrid's patterns on a star: 0 all to all, 1 to the next host, 2 all to the first.
FlowJob simgrid_job(int mode, std::int64_t hosts, std::int64_t bytes) {
  FlowJob job = star_job(hosts);
  for (std::int64_t from = 0; from < hosts; ++from) {
    for (std::int64_t to = 0; to < hosts; ++to) {
      if (from == to || (mode == 1 && to != (from + 1) % hosts) || (mode == 2 && to != 0)) continue;
      job.flows.push_back({from, to, bytes});
    }
  }
  return job;
}

// Every line of simgrid.txt: CM02 and LV08, with and without what acknowledgements take.
TEST(Flow, AnswersAsSimGrid) {
  const std::regex form(
      R"(network/model:(\w+)(.*) RESULT n=(\d+) mode=(\d) bytes=(\S+) flows=(\d+) simtime_us=(\S+) .*)");
  for (const Oracle& oracle : oracles("network/simgrid.txt")) {
    std::ifstream file(oracle.path);
    int lines = 0;
    for (std::string line; std::getline(file, line);) {
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(line, parts, form)) << line;
      const FlowJob job =
          simgrid_job(std::stoi(parts[4]), std::stoll(parts[3]), std::llround(std::stod(parts[5])));
      ASSERT_EQ(job.flows.size(), std::stoul(parts[6]));
      FlowSharing sharing;
      if (parts[1] == "LV08") {
        sharing.bandwidth_factor = 0.97;
        sharing.latency_factor = 13.01;
      }
      if (parts[2].str().find("crosstraffic:0") == std::string::npos) sharing.cross_traffic = 0.05;
      const FlowSharingOutcome outcome = share_flows(job, sharing);
      const std::int64_t last = *std::max_element(outcome.fct_ps.begin(), outcome.fct_ps.end());
      EXPECT_NEAR(static_cast<double>(last) / 1e6, std::stod(parts[7]), 0.00051) << line;
      ++lines;
    }
    EXPECT_GT(lines, 5) << oracle.path;
  }
}

// A long flow and a short one over one link: by hand.
TEST(Flow, SpeedsUpWhenAnotherIsDone) {
  FlowJob job = star_job(3);
  job.flows = {{1, 0, 1'000'000}, {2, 0, 250'000, 40'000}};
  const FlowSharingOutcome outcome = share_flows(job);
  // 40 us alone, then 2 Mbit of the second at 50 Gb/s (40 us), then what is left: 8 - 4 - 2 Mbit in 20 us.
  EXPECT_EQ(outcome.fct_ps[1], 42'000'000);
  EXPECT_EQ(outcome.fct_ps[0], 102'000'000);
  EXPECT_EQ(outcome.events, 4);
}

TEST(Flow, AgreesWithPacketsThatNothingHolds) {
  for (const char* topology : {"dumbbell1", "star2", "fattree_k4"}) {
    FlowJob job;
    job.where = "test";
    job.graph = ns3_graph(
        {{"topology", topology}, {"link_gbps", "100"}, {"link_delay_ns", "1000"}, {"loss_rate", "0"}});
    job.settings.ecn = false;
    job.flows = {{0, 1, 10'000'000}};
    const double packets = static_cast<double>(simulate_packets(job).flows[0].fct_ns);
    const double fluid =
        static_cast<double>(share_flows(job, {.bandwidth_factor = 1000.0 / 1036}).fct_ps[0]) / 1e3;
    EXPECT_NEAR(packets / fluid, 1, 0.01) << topology;
  }
}

// Two messages of one device to another wait for their latency until the moment at which a flow, which has
// sped up since, was once expected to be done.
TEST(Flow, KeepsTheOrderOfMessages) {
  Machine machine;
  machine.dimensions = {
      {"net", DimensionKind::switched, 6, gigabytes_per_second(1), nanoseconds(100)}};  // 1 byte per ns
  const auto sent = [](std::int32_t from, std::int32_t to, std::int64_t bytes, std::int64_t at_ns) {
    return Sent{{.source = from, .destination = to, .bytes = Bytes(bytes)}, nanoseconds(at_ns)};
  };
  // The first shares a link with the third for 400 ns, half of which each gets, and is expected at 2,200 ns
  // first; then it takes 800 ns more. The second is done at 1,700 ns.
  const Seen seen = play(machine, "flow",
                         {sent(0, 1, 1000, 0), sent(3, 4, 1500, 0), sent(2, 1, 200, 0),
                          sent(5, 0, 1000, 2000), sent(5, 0, 500, 2000)});
  const std::vector<Time> expected = {nanoseconds(1400), nanoseconds(1700), nanoseconds(600),
                                      nanoseconds(3200), nanoseconds(3700)};
  EXPECT_EQ(seen.arrivals, expected);
}

TEST(Flow, TellsHowFarItIs) {
  ToldProgress told;
  FlowJob job = star_job(3);
  job.flows = {{1, 0, 1'000'000}, {2, 0, 250'000, 40'000}};
  job.progress = &told;
  share_flows(job);
  EXPECT_EQ(told.steps, "simulating fluids");
  EXPECT_EQ(told.shares, (std::vector<double>{0.5, 1}));
}

TEST(Flow, SaysWhereNoWayLeads) {
  FlowJob job = star_job(2);
  job.graph.links.pop_back();
  job.flows = {{0, 1, 1}};
  EXPECT_EQ(
      error_of([&] { share_flows(job); }),
      "test: no way leads from host 0 to host 1\n  hint: hosts do not forward: every way goes over switches");
}

}  // namespace
}  // namespace armilla
