#include "read/astra.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"

namespace armilla {
namespace {

using Kind = CustomNode::Kind;

class CustomCollectiveTest : public testing::Test {
 protected:
  CustomCollectiveTest() : folder_(path_for_test("custom_collective").string() + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~CustomCollectiveTest() override { std::filesystem::remove_all(folder_); }

  // A trace in the jsonizer's form, which the reader takes under any name.
  void write(std::int32_t position, const std::string& nodes) const {
    std::ofstream(path(position)) << "{\"version\": \"1.0.0\"}" << nodes;
  }
  std::string path(std::int32_t position) const { return prefix() + "." + std::to_string(position) + ".et"; }
  std::string prefix() const { return folder_ + "ring"; }
  std::string refusal(std::int32_t members) const {
    return error_of([&] { read_custom_collective(prefix(), members); });
  }

  std::string folder_;
};

std::string node(int id, const std::string& type, const std::string& rest) {
  return "{\"id\": \"" + std::to_string(id) + "\", \"name\": \"n\", \"type\": \"" + type + "\"" +
         (rest.empty() ? "" : ", " + rest) + "}";
}
std::string attributes(const std::string& peer, int value, int bytes) {
  return "\"attr\": [{\"name\": \"" + peer + "\", \"int32Val\": " + std::to_string(value) +
         "}, {\"name\": \"comm_size\", \"int64Val\": \"" + std::to_string(bytes) + "\"}]";
}

TEST_F(CustomCollectiveTest, ReadsOneTracePerPosition) {
  write(0, node(5, "COMM_SEND_NODE", attributes("comm_dst", 1, 64)) +
               node(9, "COMP_NODE", "\"dataDeps\": [\"5\"], \"durationMicros\": \"7\""));
  write(1, node(5, "COMP_NODE", "\"ctrlDeps\": [\"3\"]") +
               node(3, "COMM_RECV_NODE", attributes("comm_src", 0, 64)));
  const CustomCollective collective = read_custom_collective(prefix(), 2);
  ASSERT_EQ(collective.members.size(), 2U);
  EXPECT_EQ(collective.kind, std::nullopt);
  const CustomProgram& first = collective.members[0];
  const CustomProgram& second = collective.members[1];
  EXPECT_EQ(first.nodes[0].kind, Kind::send);
  EXPECT_EQ(first.nodes[0].peer, 1);
  EXPECT_EQ(first.nodes[0].tag, 0U);
  EXPECT_EQ(bytes_of(first.nodes[0], Bytes(999)), Bytes(64));
  EXPECT_EQ(first.nodes[1].duration, microseconds(7));
  EXPECT_EQ(first.dependences(1)[0], 0U);
  EXPECT_EQ(second.nodes[0].duration, nanoseconds(1));
  EXPECT_EQ(second.dependences(0)[0], 1U);
  EXPECT_EQ(second.nodes[1].kind, Kind::receive);
  EXPECT_EQ(second.labels[1], "node 3");
}

TEST_F(CustomCollectiveTest, ReadsSharesOfTheCall) {
  write(0, node(0, "COMM_SEND_NODE",
                "\"attr\": [{\"name\": \"comm_dst\", \"int32Val\": 1}, {\"name\": \"msg_chunk_cnt\", "
                "\"int32Val\": 2}, {\"name\": \"total_chunk_cnt\", \"int32Val\": 8}]"));
  write(1, "");
  const CustomCollective collective = read_custom_collective(prefix(), 2);
  EXPECT_EQ(bytes_of(collective.members[0].nodes[0], Bytes(1 << 20)), Bytes(1 << 18));
  EXPECT_TRUE(collective.members[1].nodes.empty());
}

TEST_F(CustomCollectiveTest, RefusesWhatIsNoSchedule) {
  write(0, node(5, "COMM_SEND_NODE", attributes("comm_src", 1, 64)));
  EXPECT_EQ(refusal(2), path(0) + ": node 5 'n': has no attribute 'comm_dst'");
  write(0, node(5, "COMM_SEND_NODE", attributes("comm_dst", 2, 64)));
  EXPECT_EQ(refusal(2), path(0) + ": node 5 'n': comm_dst is 2, not between 0 and 1");
  write(0, node(5, "COMM_SEND_NODE", attributes("comm_dst", 0, 64)));
  EXPECT_EQ(refusal(2), path(0) + ": node 5 'n': comm_dst is the member's own position 0");
  write(0, node(5, "COMM_COLL_NODE", ""));
  EXPECT_EQ(refusal(2), path(0) +
                            ": node 5 'n': a COMM_COLL_NODE has no place in a custom collective\n"
                            "  hint: its nodes are COMM_SEND_NODE, COMM_RECV_NODE and COMP_NODE");
  write(0, node(5, "COMP_NODE", "\"dataDeps\": [\"6\"]"));
  EXPECT_EQ(refusal(2), path(0) + ": node 5 'n': depends on node 6, which does not exist");
  write(0, node(5, "COMP_NODE", "") + node(5, "COMP_NODE", ""));
  EXPECT_EQ(refusal(2), path(0) + ": node 5 'n': another node has the same id");
  write(0, node(4, "COMP_NODE", "") + node(5, "COMP_NODE", "\"dataDeps\": [\"4\", \"6\"]") +
               node(6, "COMP_NODE", "\"dataDeps\": [\"5\"]"));
  EXPECT_EQ(refusal(2), path(0) +
                            ": nodes wait for each other in a circle: node 5, which waits for node 6, which "
                            "waits for node 5");
  write(0, node(5, "COMP_NODE", "\"durationMicros\": \"99999999999999999\""));
  EXPECT_EQ(refusal(2),
            path(0) + ": node 5 'n': a duration of 99999999999999999 us is beyond what is simulated");
}

MscclAlgorithm two_gpus() {
  const std::string text =
      "<algo coll=\"allreduce\" nchunksperloop=\"4\" inplace=\"1\"><gpu id=\"0\">"
      "<tb id=\"0\" send=\"1\" recv=\"1\" chan=\"2\">"
      "<step s=\"0\" type=\"nop\" depid=\"1\" deps=\"0\"/>"
      "<step s=\"1\" type=\"rrcs\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\" cnt=\"3\"/>"
      "</tb><tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">"
      "<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" cnt=\"1\"/>"
      "</tb></gpu><gpu id=\"1\"/></algo>";
  return parse_msccl(text, "a.xml");
}

TEST(MscclScheduleTest, StepsBecomeNodesThatWaitAsTheirThreadblocksDo) {
  const CustomCollective collective = custom_collective(two_gpus());
  EXPECT_EQ(collective.kind, CollectiveKind::all_reduce);
  ASSERT_EQ(collective.members.size(), 2U);
  const CustomProgram& program = collective.members[0];
  ASSERT_EQ(program.nodes.size(), 5U);
  EXPECT_EQ(program.labels, (std::vector<std::string>{"tb 0 step 0", "tb 0 step 1", "tb 0 step 1",
                                                      "tb 0 step 1", "tb 1 step 0"}));
  EXPECT_EQ(program.nodes[0].duration, Time(0));
  EXPECT_EQ(program.nodes[1].kind, Kind::receive);
  EXPECT_EQ(program.nodes[2].duration, nanoseconds(1));
  EXPECT_EQ(program.nodes[3].kind, Kind::send);
  EXPECT_EQ(program.nodes[3].tag, 2U);
  EXPECT_EQ(bytes_of(program.nodes[3], Bytes(400)), Bytes(300));
  EXPECT_EQ(bytes_of(program.nodes[3], Bytes(401)), Bytes(301));
  EXPECT_EQ(program.dependence, (std::vector<std::uint32_t>{4, 0, 1, 2}));
  EXPECT_EQ(program.first_dependence, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 4}));
}

TEST(MscclScheduleTest, RefusesThreadblocksThatWaitForEachOther) {
  MscclAlgorithm algorithm = two_gpus();
  algorithm.gpus[0].blocks[1].steps[0].awaited_block = 0;
  algorithm.gpus[0].blocks[1].steps[0].awaited_step = 1;
  EXPECT_EQ(
      error_of([&] { custom_collective(algorithm); }),
      "a.xml: GPU 0: nodes wait for each other in a circle: tb 0 step 0, which waits for tb 1 step 0, which "
      "waits for tb 0 step 1, which waits for tb 0 step 1, which waits for tb 0 step 1, which waits for "
      "tb 0 step 0");
}

}  // namespace
}  // namespace armilla
