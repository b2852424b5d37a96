#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "read/traffic_patterns.h"

namespace armilla {
namespace {

NetworkGraph hosts(std::size_t count) {
  NetworkGraph graph;
  graph.is_switch.assign(count, false);
  graph.is_switch.push_back(true);
  return graph;
}
std::vector<TrafficFlow> flows(const std::string& text, std::size_t count = 8) {
  return read_traffic_flows(text, "--traffic " + text, hosts(count));
}

TEST(TrafficPatterns, SendFromWhomToWhom) {
  const std::vector<TrafficFlow> incast = flows("incast:5");
  ASSERT_EQ(incast.size(), 5U);
  for (const TrafficFlow& flow : incast) {
    EXPECT_EQ(flow.destination, 0);
    EXPECT_EQ(flow.bytes, 1'000'000);
  }
  EXPECT_EQ(flows("all-to-all:bytes=5kB").size(), 56U);
  EXPECT_EQ(flows("all-to-all:4").size(), 12U);
  EXPECT_EQ(flows("shift:distance=3")[6].destination, 1);
  const std::vector<TrafficFlow> shift = flows("shift:3,bytes=7kB");
  EXPECT_EQ(shift[6].destination, 1);
  EXPECT_EQ(shift[6].bytes, 7'000);
  for (const std::int64_t seed : {1, 2, 3}) {
    std::set<std::int64_t> to;
    for (const TrafficFlow& flow : flows("permutation:" + std::to_string(seed), 50)) {
      EXPECT_NE(flow.source, flow.destination);
      to.insert(flow.destination);
    }
    EXPECT_EQ(to.size(), 50U);
  }
}

TEST(TrafficPatterns, SayWhatIsWrong) {
  EXPECT_EQ(
      error_of([] { flows("incast:8"); }),
      "--traffic incast:8: senders: 8 senders, and there are 7 hosts beside the receiver\n  hint: incast:7");
  EXPECT_EQ(error_of([] { flows("all-to-all:1GB"); }),
            "--traffic all-to-all:1GB: '1GB' has no name\n  hint: all-to-all has hosts, bytes, such as "
            "all-to-all:bytes=1MB");
  EXPECT_EQ(
      error_of([] { flows("incast:5,8"); }),
      "--traffic incast:5,8: '8' is not name=value\n  hint: write NAME:parameter=value,parameter=value");
  EXPECT_EQ(error_of([] { flows("incast:5,senders=6"); }),
            "--traffic incast:5,senders=6: senders: is given twice");
  EXPECT_EQ(error_of([] { flows("incats:8"); }).substr(0, 18), "--traffic incats:8");
  EXPECT_EQ(error_of([] { flows("shift:8"); }),
            "--traffic shift:8: distance: every host would send to itself");
  EXPECT_EQ(error_of([] { flows("shift:9"); }),
            "--traffic shift:9: distance: 9 hosts further, of 8 hosts\n  hint: from 1 to 7");
}

TEST(TrafficPatterns, ReadHtsimsConnections) {
  const std::filesystem::path path = path_for_test("connections.cm");
  std::ofstream(path) << "Nodes 8\nConnections 2\n0->7 id 1 start 2000000 size 4000\n3->2 size 5 start 0\n";
  const std::vector<TrafficFlow> read = flows(path.string());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].destination, 7);
  EXPECT_EQ(read[0].start_ns, 2000);
  EXPECT_EQ(read[1].bytes, 5);
  for (const int nodes : {8, 99}) {
    std::ofstream(path) << "Nodes " << nodes << "\n0->7 size 5\n";
    std::vector<std::string> notes;
    read_flow_file(path.string(), hosts(8), &notes);
    EXPECT_EQ(notes, nodes == 8
                         ? std::vector<std::string>{}
                         : std::vector<std::string>{path.string() +
                                                    ":1: the flows are those of 99 hosts, and there are 8"});
  }
  std::ofstream(path) << "Nodes 8\n0->8 size 5\n";
  EXPECT_EQ(error_of([&] { flows(path.string()); }),
            path.string() + ":2: '8' is not one of the 8 hosts\n  hint: they count from 0");
  // A file that breaks off, and a count that was not kept.
  std::ofstream(path) << "Nodes 8\nConnections 2\n0->7 size 4000\n";
  EXPECT_EQ(error_of([&] { flows(path.string()); }),
            path.string() +
                ":2: 2 flows are announced, and only 1 follows\n  hint: the file may have been cut off");
  std::ofstream(path) << "Connections 1\n0->7 size 4000\n1->7 size 4000\n";
  EXPECT_EQ(error_of([&] { flows(path.string()); }),
            path.string() + ":1: 1 flow is announced, and 2 follow\n  hint: Connections 2");
  std::ofstream(path) << "1\n0 1 3 100 2000 0\n0 2 3 100 2000 0\n";
  EXPECT_EQ(error_of([&] { flows(path.string()); }),
            path.string() +
                ":3: the flows after the first 1, which the first line announces, would be left out\n"
                "  hint: announce as many as there are");
  std::ofstream(path) << "5 1 4\n4\n0 4 100Gbps 1000ns 0\n";
  EXPECT_EQ(error_of([&] { flows(path.string()); }).substr(path.string().size()),
            ": is a topology of HPCC's or SimAI's ns-3, not flows of HPCC's ns-3 or of htsim\n  hint: "
            "'topology' of a machine names it, TOPOLOGY_FILE of a config.txt, and armilla net --traffic "
            "takes it");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace armilla
