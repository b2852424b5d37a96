#include "write/trace.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

ChakraTrace small_trace() {
  ChakraTrace trace;
  trace.add_node(4, ChakraNodeType::compute, "a<b>|\"&-\\\n");
  trace.add_node(9, ChakraNodeType::collective, "c");
  trace.add_data_dependence(4);
  trace.add_control_dependence(4);
  trace.add_control_dependence(77);
  return trace;
}

TEST(DotTest, DrawsNodesAndBothKindsOfDependences) {
  EXPECT_EQ(write_dot(small_trace()),
            "digraph {\n"
            "\t4 [id=4 label=\"a\\<b\\>\\|\\\"\\&\\-\\\\\\n\" shape=record];\n"
            "\t9 [id=9 label=\"c\" shape=record];\n"
            "\t4 -> 9 [arrowhead=normal];\n"
            "\t4 -> 9 [arrowhead=tee];\n"
            "\t77 -> 9 [arrowhead=tee];\n"
            "}\n");
}

TEST(GraphmlTest, KeepsOneEdgeBetweenTwoNodes) {
  const std::string text = write_graphml(small_trace());
  EXPECT_EQ(text.substr(text.find("<graph edge")),
            "<graph edgedefault=\"directed\"><node id=\"4\">\n"
            "  <data key=\"d0\">a&lt;b&gt;|\"&amp;-\\\n</data>\n"
            "</node>\n"
            "<node id=\"9\">\n"
            "  <data key=\"d0\">c</data>\n"
            "</node>\n"
            "<node id=\"77\"/>\n"
            "<edge source=\"4\" target=\"9\">\n"
            "  <data key=\"d1\">control</data>\n"
            "</edge>\n"
            "<edge source=\"77\" target=\"9\">\n"
            "  <data key=\"d1\">control</data>\n"
            "</edge>\n"
            "</graph></graphml>");
}

TEST(GraphmlTest, AnEmptyTraceIsAnEmptyGraph) {
  const std::string text = write_graphml(ChakraTrace());
  EXPECT_EQ(text.substr(text.find(".xsd\">") + 6), "<graph edgedefault=\"directed\"></graph></graphml>");
}

}  // namespace
}  // namespace armilla
