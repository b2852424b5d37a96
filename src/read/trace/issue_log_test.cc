#include "read/trace.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

IssueLog parse_log(const std::string& text) {
  return parse_issue_log(text, "log");
}

TEST(IssueLogTest, ReadsBothPeersLines) {
  const IssueLog log = parse_log(
      "[2026-11-21] [workload] [debug] issue,sys->id=3, tick=10, node->id=7, node->name=a, b, "
      "node->type=4\r\n"
      "[workload] [info] sys[3] finished\n"
      "issue,sys=0,tick=0,node_id=7,node_name=COMP_NODE_x\n"
      "callback,sys=0,tick=5,node_id=7,node_name=COMP_NODE_x\n"
      "[debug] callback,sys->id=3, tick=12, node->id=7, node->name=a, b, node->type=4\n"
      "issue,sys=1,tick=20,node_id=1,node_name=left");
  EXPECT_EQ(log.ranks, 4);
  ASSERT_EQ(log.nodes.size(), 2U);
  EXPECT_EQ(log.nodes[0].name, "COMP_NODE_x");
  EXPECT_EQ(log.nodes[0].type, ChakraNodeType::invalid);
  EXPECT_EQ(log.nodes[0].finished, 5U);
  EXPECT_EQ(log.nodes[1].rank, 3);
  EXPECT_EQ(log.nodes[1].name, "a, b");
  EXPECT_EQ(log.nodes[1].type, ChakraNodeType::compute);
  EXPECT_EQ(log.nodes[1].issued, 10U);
  ASSERT_EQ(log.unfinished.size(), 1U);
  EXPECT_EQ(log.unfinished[0].name, "left");
}

TEST(IssueLogTest, IsFoundByItsLines) {
  EXPECT_TRUE(is_issue_log("x\n[a] issue,sys->id=0, tick=0"));
  EXPECT_FALSE(is_issue_log("tissue,sys\nissues\n"));
}

TEST(IssueLogTest, RefusesLinesThatCannotBe) {
  const auto refusal = [](const std::string& text) { return error_of([&] { parse_log(text); }); };
  EXPECT_EQ(refusal("\nissue,sys=0"), "log:2: the line ends before rank, tick, node and name were given");
  EXPECT_EQ(refusal("issue,sys=x,tick=0,id=0,name=a"), "log:1: 'sys=x' is not a rank up to 16777215");
  EXPECT_EQ(refusal("issue,sys=0,tick=-1,id=0,name=a"),
            "log:1: 'tick=-1' is not a tick up to 9223372036854775807");
  EXPECT_EQ(refusal("issue,sys=0,tick=0,id=0,a"), "log:1: 'a' is not the name of a node");
  EXPECT_EQ(refusal("callback,sys=0,tick=0,id=3,name=a"),
            "log:1: node 3 of rank 0 finishes without having been issued");
  EXPECT_EQ(refusal("issue,sys=0,tick=9,id=3,name=a\ncallback,sys=0,tick=8,id=3,name=a"),
            "log:2: node 3 of rank 0 finishes at 8, before it was issued at 9");
  EXPECT_EQ(refusal("issue,sys=0,tick=9,id=3,name=a\nissue,sys=0,tick=9,id=3,name=a"),
            "log:2: node 3 of rank 0 is issued again before it has finished");
}

}  // namespace
}  // namespace armilla
