#include "read/onnx/flatten/flat_graph.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/onnx/flatten/scope.h"

namespace armilla {
namespace {

OnnxNode node_at(const std::string& where) {
  OnnxNode node;
  node.where = where;
  node.name = "loop";
  node.type = "Loop";
  return node;
}

TEST(OnnxFlatGraph, TakesBackWhatATrialRunLeft) {
  OnnxFlatGraph flat({}, "m.onnx");
  const OnnxNode node = node_at("m.onnx: loop");
  const std::uint32_t value = flat.constant_scalar(onnx_type::kInt64, 3);
  flat.border(node, "begin", {value}, {}, 1);
  flat.count_bound([] { return std::string("'a' is 4"); });
  const OnnxFlatGraph::Mark before = flat.mark();
  flat.border(node, "begin", {value}, {}, 7);
  flat.graph().notes.emplace_back("a note");
  flat.count_contradiction([] { return std::string("'b' is 1, not 2"); });
  flat.count_bound([] { return std::string("'c' is 5"); });
  flat.take_back(before);
  const OnnxGraph graph = flat.finish();
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].name, "loop/begin");
  ASSERT_EQ(graph.notes.size(), 1U);
  EXPECT_NE(graph.notes[0].find("the size of one tensor depends on data"), std::string::npos);
  EXPECT_NE(graph.notes[0].find("'a' is 4"), std::string::npos);
}

TEST(OnnxFlatGraph, NamesNodesApart) {
  OnnxFlatGraph flat({}, "m.onnx");
  EXPECT_EQ(flat.unique_name("add"), "add");
  EXPECT_EQ(flat.unique_name("add#2"), "add#2");
  EXPECT_EQ(flat.unique_name("add"), "add#3");
}

TEST(OnnxFlatGraph, ChecksTypesWhereTheyAreSet) {
  OnnxFlatGraph flat({}, "m.onnx");
  const OnnxNode node = node_at("m.onnx: node 'x'");
  const std::uint32_t value = flat.new_value("y");
  EXPECT_NE(error_of([&] {
              flat.set_type(node, value, {999, Shape{1}});
            }).find("element type 999"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              flat.set_type(node, value, {onnx_type::kFloat, Shape(65, 1)});
            }).find("has 65 dimensions"),
            std::string::npos);
  flat.set_type(node, value, {onnx_type::kFloat, Shape{2, 3}});
  EXPECT_EQ(*flat.graph().values[value].shape, (Shape{2, 3}));
}

// Doubled again and again, what sequences refer to would outgrow any memory.
TEST(OnnxFlatGraph, BoundsWhatSequencesReferTo) {
  OnnxFlatGraph flat({}, "m.onnx");
  const std::uint32_t item = flat.constant_scalar(onnx_type::kFloat, std::nullopt);
  const std::vector<std::uint32_t> items(1 << 16, item);
  const auto fill_many = [&] {
    for (int i = 0; i < (1 << 9); ++i)
      flat.fill(flat.container(ValueKind::sequence, onnx_type::kFloat), items);
  };
  EXPECT_NE(error_of(fill_many).find("too many tensors together"), std::string::npos);
}

TEST(OnnxScope, SeesNamesOfTheGraphsAroundIt) {
  OnnxScope outer;
  outer.define("a", 1, "here");
  OnnxScope inner;
  inner.parent = &outer;
  inner.define("b", 2, "here");
  EXPECT_EQ(inner.lookup("a", "here"), 1U);
  EXPECT_NE(error_of([&] { outer.lookup("b", "here"); }).find("uses 'b', which nothing defines"),
            std::string::npos);
  EXPECT_NE(error_of([&] { inner.define("b", 3, "here"); }).find("defined already"), std::string::npos);
  inner.define("a", 4, "here");
  EXPECT_EQ(inner.lookup("a", "here"), 4U);
}

}  // namespace
}  // namespace armilla
