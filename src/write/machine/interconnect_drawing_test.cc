#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "write/machine.h"

namespace armilla {
namespace {

Machine two_devices() {
  Machine machine;
  Interconnect& graph = machine.graph;
  graph.nodes = {{NetworkNodeKind::device, "gpu<0>"},
                 {NetworkNodeKind::device, "gpu\"1\""},
                 {NetworkNodeKind::switched, "leaf"}};
  const LinkFigures figures = {gigabytes_per_second(50), nanoseconds(500), 0},
                    slow = {gigabytes_per_second(25), nanoseconds(500), 0};
  graph.cables = {{0, 2, figures, figures, 0}, {2, 0, figures, figures, 0}, {1, 2, figures, slow, 0}};
  return machine;
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t times = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++times;
  return times;
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

// A torus of 4 x 3 has four columns and three rows, and its links around are arcs beside them.
TEST(InterconnectDrawing, ToriAreGrids) {
  Machine torus;
  torus.dimensions = {{"x", DimensionKind::ring, 4, gigabytes_per_second(50), nanoseconds(500)},
                      {"y", DimensionKind::ring, 3, gigabytes_per_second(50), nanoseconds(500)}};
  const std::string svg = write_interconnect_svg(torus);
  const auto places = [&](std::string_view axis) {
    std::map<std::string, int> found;
    for (std::size_t at = svg.find("<rect x"); at != std::string::npos; at = svg.find("<rect x", at + 1)) {
      const std::size_t begin = svg.find(axis, at) + axis.size();
      ++found[svg.substr(begin, svg.find('"', begin) - begin)];
    }
    return found;
  };
  EXPECT_EQ(places(" x=\"").size(), 4U);
  EXPECT_EQ(places(" y=\"").size(), 3U);
  for (const auto& [y, devices] : places(" y=\"")) EXPECT_EQ(devices, 4) << y;
  EXPECT_EQ(count(svg, "<path"), 24U);
}

// Two quads whose members are joined by cables: no switch stands for them.
TEST(InterconnectDrawing, CablesAreDrawnOneByOne) {
  Machine machine;
  machine.dimensions = {{"nvlink", DimensionKind::switched, 4, gigabytes_per_second(100), nanoseconds(500)},
                        {"rail", DimensionKind::switched, 2, gigabytes_per_second(25), nanoseconds(900)}};
  machine.dimensions[0].cables = {{0, 1}, {0, 1}, {1, 2}, {2, 3}, {3, 0}};
  const std::string svg = write_interconnect_svg(machine);
  EXPECT_EQ(count(svg, "<title>switch "), 4U);  // the rails'
  EXPECT_NE(svg.find("<title>rank 0 - rank 1: 2 x 33.33 GB/s, 500.0 ns</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>rank 4 - rank 7: 33.33 GB/s, 500.0 ns</title>"), std::string::npos);
  EXPECT_EQ(count(svg, "<path"), 2U * 4 + 8);
}

}  // namespace
}  // namespace armilla
