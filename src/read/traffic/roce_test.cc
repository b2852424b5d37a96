#include "read/roce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"

namespace armilla {
namespace {

constexpr std::string_view kTopology = "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 25Gb/s 0.001ms 0.5\n";

TEST(RoceTopology, ReadsNodesAndLinks) {
  const NetworkGraph graph = parse_roce_topology(kTopology, "topology.txt");
  EXPECT_EQ(graph.is_switch, (std::vector<bool>{false, false, true}));
  ASSERT_EQ(graph.links.size(), 2U);
  EXPECT_EQ(graph.links[0].bits_per_second, 100'000'000'000);
  EXPECT_EQ(graph.links[1].bits_per_second, 25'000'000'000);
  EXPECT_EQ(graph.links[1].delay_ns, 1000);
  EXPECT_EQ(graph.links[1].loss, 0.5);
}

TEST(RoceTopology, SaysWhatIsWrongAndWhere) {
  const auto refusal = [](std::string_view text) {
    return error_of([&] { parse_roce_topology(text, "t"); });
  };
  EXPECT_EQ(refusal(""), "t:1: the number of nodes is missing");
  EXPECT_EQ(refusal("3 1 2\n2\n0 2 100Gbps 1000ns 0\n"), "t:4: the first node of link 2 of 2 is missing");
  EXPECT_EQ(refusal("3 1 1\n2\n0 3 100Gbps 1ns 0"),
            "t:3: the second node of link 1 of 1: 3 is out of range\n  hint: from 0 to 2");
  EXPECT_EQ(refusal("3 1 1\n2\n2 2 100Gbps 1ns 0"), "t:3: a link leads from node 2 to itself");
  EXPECT_EQ(refusal("3 1 1\n2\n0 2 0Gbps 1ns 0"),
            "t:3: the link between 0 and 2 has no bandwidth\n  hint: leave it out");
  EXPECT_EQ(refusal("3 1 1\n2\n0 2 fast 1ns 0"),
            "t:3: the link's rate: 'fast' is not a rate such as 100Gbps");
  EXPECT_EQ(refusal("3 1 1\n2\n0 2 1Gbps 1ly 0"),
            "t:3: the link's delay: '1ly' is not a time such as 1000ns");
}

TEST(RoceFlows, ReadsFlows) {
  const NetworkGraph graph = parse_roce_topology(kTopology, "t");
  // Nodes that stand elsewhere than the file numbers them.
  NetworkGraph numbered;
  numbered.is_switch = {false, false, true};
  numbered.numbers = {1, 2, 0};
  const TrafficFlow turned = parse_roce_flows("1\n2 1 3 100 5 0\n", "f", numbered).front();
  EXPECT_EQ(turned.source, 1);
  EXPECT_EQ(turned.destination, 0);
  EXPECT_EQ(error_of([&] { parse_roce_flows("1\n2 0 3 100 5 0\n", "f", numbered); }),
            "f:2: the flow's destination: node 0 is a switch\n  hint: flows begin and end at hosts");
  const std::vector<TrafficFlow> flows = parse_roce_flows("1\n0 1 3 100 1000000 2.000000001\n", "f", graph);
  ASSERT_EQ(flows.size(), 1U);
  EXPECT_EQ(flows[0].bytes, 1'000'000);
  EXPECT_EQ(flows[0].start_ns, 2'000'000'001);
  const auto refusal = [&](std::string_view text) {
    return error_of([&] { parse_roce_flows(text, "f", graph); });
  };
  EXPECT_EQ(refusal("1\n0 2 3 100 1 0"),
            "f:2: the flow's destination: node 2 is a switch\n  hint: flows begin and end at hosts");
  EXPECT_EQ(refusal("1\n0 0 3 100 1 0"), "f:2: a flow from host 0 to itself");
  EXPECT_EQ(refusal("1\n0 1 0 100 1 0"), "f:2: the flow's priority: 0 is out of range\n  hint: from 1 to 7");
  EXPECT_EQ(refusal("2\n0 1 3 100 1 0\n"), "f:3: the flow's source is missing");
}

class RoceConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    write("topology.txt", std::string(kTopology));
    write("flow.txt", "1\n0 1 3 100 1000000 0\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  RoceInput read(const std::string& keys) {
    write("config.txt", "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\n" + keys);
    return read_roce_config((folder_ / "config.txt").string());
  }
  std::string refusal(const std::string& keys) {
    const std::string text = error_of([&] { read(keys); });
    const std::size_t name = text.find("config.txt");
    return name == std::string::npos ? text : text.substr(name);
  }

  const std::filesystem::path folder_ = path_for_test("roce");
};

constexpr const char* kEcn =
    "KMIN_MAP 2 100000000000 400 25000000000 100\nKMAX_MAP 2 100000000000 1600 25000000000 400\n"
    "PMAX_MAP 2 100000000000 0.2 25000000000 0.1\n";

TEST_F(RoceConfigFile, TakesKeysAsNs3Does) {
  const RoceInput input =
      read(std::string(kEcn) +
           "CC_MODE 3 {HPCC}\nRATE_AI 20Mb/s\nBUFFER_SIZE 32 {MB}\nSIMULATOR_STOP_TIME 40000000000000.00\n"
           "LINK_DOWN 5 0 2\nRP_TIMER 300.9\nFUTURE_KEY 1 2 3\n");
  const PacketSettings& settings = input.job.settings;
  EXPECT_EQ(settings.congestion_control, CongestionControl::hpcc);
  EXPECT_EQ(settings.rate_step, 20e6);
  EXPECT_EQ(settings.buffer, 32 << 20);
  EXPECT_EQ(settings.stop_ns, INT64_MAX);
  EXPECT_EQ(settings.link_down_ns, 2'000'005'000);
  EXPECT_EQ(settings.increase_interval_us, 300);
  EXPECT_TRUE(settings.window);
  EXPECT_EQ(settings.ecn_of_rate.at(25'000'000'000).maximum, 400'000);
  EXPECT_EQ(settings.ecn_of_rate.at(25'000'000'000).probability, 0.1);
  EXPECT_EQ(input.notes,
            (std::vector<std::string>{"the key FUTURE_KEY is unknown and has no effect",
                                      "LINK_DOWN 5 is 2.000005 s after the start: ns-3 counts from 2 s on"}));
}

TEST_F(RoceConfigFile, SaysWhatNs3DoesUnexpectedly) {
  EXPECT_TRUE(read("ENABLE_QCN 0\nCC_MODE 12\nLINK_DOWN 0 0 0\n").notes.empty());
  const RoceInput input = read("ENABLE_QCN 0\nCC_MODE 5\n");
  EXPECT_EQ(input.job.settings.congestion_control, CongestionControl::none);
  EXPECT_EQ(input.notes,
            (std::vector<std::string>{
                "CC_MODE 5 is not a congestion control, as in ns-3: 1 is DCQCN, 3 HPCC, 7 TIMELY, "
                "8 DCTCP"}));
  write("flow.txt", "3\n0 1 3 100 3 0\n0 1 3 100 4 0\n0 1 3 100 2 0\n");
  EXPECT_TRUE(read("ENABLE_QCN 0\nL2_ACK_INTERVAL 2\n").notes.empty());
  EXPECT_EQ(read("ENABLE_QCN 0\nL2_ACK_INTERVAL 3\nL2_CHUNK_SIZE 2\n").notes.size(), 0U);
  EXPECT_EQ(
      read("ENABLE_QCN 0\nL2_ACK_INTERVAL 3\n").notes,
      (std::vector<std::string>{"a flow has fewer bytes than L2_ACK_INTERVAL 3, and is never acknowledged, "
                                "as in ns-3: it does not finish"}));
  EXPECT_EQ(read("ENABLE_QCN 0\nL2_ACK_INTERVAL 4\n").notes,
            (std::vector<std::string>{"2 flows have fewer bytes than L2_ACK_INTERVAL 4, and are never "
                                      "acknowledged, as in ns-3: they do not finish"}));
  write("flow.txt", "1\n0 1 3 100 3000 0\nthat was all\n");
  EXPECT_TRUE(read("ENABLE_QCN 0\n").notes.empty());
  write("flow.txt", "1\n0 1 3 100 3000 0\n0 1 3 100 4000 0\n");
  const RoceInput shorter = read("ENABLE_QCN 0\n");
  EXPECT_EQ(shorter.job.flows.size(), 1U);
  ASSERT_EQ(shorter.notes.size(), 1U);
  EXPECT_EQ(
      shorter.notes[0].substr(shorter.notes[0].find("flow.txt")),
      "flow.txt:3: the flows after the first 1, which the first line announces, are left out, as in ns-3");
  write("flow.txt", "0\n");
  EXPECT_THAT(error_of([&] { read("ENABLE_QCN 0\n"); }), testing::EndsWith("flow.txt: has no flows"));
  write("flow.txt", "1\n0 1 3 100 3000 0\n");
  const std::size_t links = input.job.graph.links.size();
  write("topology.txt", std::string(kTopology) + "\nthat was all\n");
  EXPECT_TRUE(read("ENABLE_QCN 0\n").notes.empty());
  write("topology.txt", std::string(kTopology) + "\n0 1 100Gbps 1us 0\n");
  const RoceInput longer = read("ENABLE_QCN 0\n");
  EXPECT_EQ(longer.job.graph.links.size(), links);
  ASSERT_EQ(longer.notes.size(), 1U);
  EXPECT_EQ(longer.notes[0].substr(longer.notes[0].find(": ")),
            ": the links after the first " + std::to_string(links) +
                ", which the first line announces, are left out, as in ns-3");
}

TEST_F(RoceConfigFile, TakesATopologyOfSimAi) {
  write("topology.txt",
        "6 2 1 2 5 H100\n4\n5 3\n0 4 2880Gbps 0.025us 0\n1 4 2880Gbps 0.025us 0\n0 5 400Gbps 0.5us 0\n"
        "1 5 400Gbps 0.5us 0\n2 3 400Gbps 0.5us 0\n");
  const RoceInput input = read("ENABLE_QCN 0\n");
  EXPECT_EQ(input.job.graph.is_switch, (std::vector<bool>{false, false, false, true, true, true}));
  EXPECT_EQ(input.job.graph.links.size(), 5U);
  EXPECT_EQ(input.job.graph.links[1].bits_per_second, 2'880'000'000'000);
  EXPECT_EQ(input.notes,
            std::vector<std::string>{
                (folder_ / "topology.txt").string() +
                " is a topology of SimAI's ns-3: its NVSwitches are switches as all others here"});
}

TEST_F(RoceConfigFile, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal("CC_MOD 1\n"), "config.txt:3: unknown key 'CC_MOD'\n  hint: did you mean 'CC_MODE'?");
  EXPECT_EQ(refusal("CC_MODE\n"), "config.txt:3: CC_MODE is missing");
  EXPECT_EQ(refusal("CC_MODE fast\n"),
            "config.txt:3: CC_MODE: 'fast' is unknown\n  hint: 1 DCQCN, 3 HPCC, 7 TIMELY, 8 DCTCP, 12 none, "
            "swift, tcp-newreno, tcp-cubic, tcp-dctcp, ndp, eqds");
  EXPECT_EQ(refusal("ENABLE_QCN 1\n"),
            "config.txt: KMIN_MAP has no entry for links of 100000000000 bit/s\n  hint: add one, or turn "
            "marking off "
            "with ENABLE_QCN 0");
  EXPECT_EQ(refusal("BUFFER_SIZE 9999\n"),
            "config.txt:3: BUFFER_SIZE (MB of a switch): 9999 is out of range\n  hint: from 1 to 4095");
  EXPECT_EQ(refusal("ENABLE_QCN 0\nLINK_DOWN 5 0 1\n"),
            "config.txt: LINK_DOWN: there is no link between 0 and 1");
  EXPECT_EQ(refusal("L2_ACK_INTERVAL 0\n"),
            "config.txt:3: L2_ACK_INTERVAL 0 turns acknowledgements off, and no flow would ever finish");
}

}  // namespace
}  // namespace armilla
