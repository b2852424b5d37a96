#include <gtest/gtest.h>

#include "write/machine.h"

namespace armilla {
namespace {

Interconnect two_devices() {
  Interconnect graph;
  graph.nodes = {{NetworkNodeKind::device, "gpu<0>"},
                 {NetworkNodeKind::device, "gpu\"1\""},
                 {NetworkNodeKind::switched, "leaf"}};
  const LinkFigures figures = {gigabytes_per_second(50), nanoseconds(500), 0},
                    slow = {gigabytes_per_second(25), nanoseconds(500), 0};
  graph.cables = {{0, 2, figures, figures, 0}, {2, 0, figures, figures, 0}, {1, 2, figures, slow, 0}};
  return graph;
}

TEST(InterconnectDrawing, Dot) {
  EXPECT_EQ(write_interconnect_dot(two_devices()),
            "graph {\n"
            "\tlayout=neato; overlap=false;\n"
            "\t0 [label=\"gpu<0>\" shape=box];\n"
            "\t1 [label=\"gpu\\\"1\\\"\" shape=box];\n"
            "\t2 [label=\"leaf\" shape=ellipse];\n"
            "\t0 -- 2 [label=\"2 x 50.00 GB/s, 500.0 ns\"];\n"
            "\t1 -- 2 [label=\"50.00 GB/s / 25.00 GB/s, 500.0 ns\"];\n"
            "}\n");
}

TEST(InterconnectDrawing, Svg) {
  const std::string svg = write_interconnect_svg(two_devices());
  EXPECT_NE(svg.find("<title>gpu&lt;0&gt; - leaf: 2 x 50.00 GB/s, 500.0 ns</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>leaf</title>"), std::string::npos);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace armilla
