// Shape arithmetic: constants folded through the operators that exporters use for it, and shape rules.
#include <gmock/gmock.h>

#include "base/error.h"
#include "read/onnx/builder_testing.h"
#include "read/read.h"

namespace armilla {
namespace {

using Ints = std::vector<std::int64_t>;

// Appends Reshape(x, shape) to the graph and returns the shape that comes out of it.
Shape reshaped(OnnxBuilder builder, const std::string& shape, int opset = 17) {
  const Model model = builder.node("Reshape", {"x", shape}, {"y"}).output("y").read({}, opset);
  return model.tensors[model.outputs[0]].shape;
}

OnnxBuilder base() {
  return OnnxBuilder().input("x", {2, 3, 4, 5}).node("Shape", {"x"}, {"s"});
}

Shape output_shape(const OnnxBuilder& builder, int opset = 17) {
  const Model model = builder.read({}, opset);
  return model.tensors[model.outputs[0]].shape;
}

TEST(OnnxFold, GatherUnsqueezeConcat) {
  auto graph = base();
  graph.ints("one", {1})
      .ints("rest", {-1})
      .node("Gather", {"s", "one"}, {"c"})
      .node("Concat", {"c", "rest"}, {"t"}, {{"axis", std::int64_t{0}}});
  EXPECT_EQ(reshaped(graph, "t"), (Shape{3, 40}));
}

TEST(OnnxFold, SliceBackwards) {
  auto graph = base();
  graph.ints("from", {-1}).ints("to", {INT64_MIN}).ints("axis", {0}).ints("step", {-1});
  graph.node("Slice", {"s", "from", "to", "axis", "step"}, {"t"});
  EXPECT_EQ(reshaped(graph, "t"), (Shape{5, 4, 3, 2}));
}

TEST(OnnxFold, Arithmetic) {
  auto graph = base();
  graph.ints("f", {1, 3, 2, 5}).ints("m", {2, 1, 2, 1});
  graph.node("Div", {"s", "f"}, {"a"}).node("Mul", {"a", "m"}, {"b"});  // 2 1 2 1 -> 4 1 4 1
  graph.ints("k", {1, 6, 0, 0}).node("Sub", {"k", "k"}, {"zero"}).node("Equal", {"k", "zero"}, {"is_zero"});
  graph.node("Where", {"is_zero", "s", "k"}, {"t"});  // 1 6 4 5
  EXPECT_EQ(reshaped(graph, "t"), (Shape{1, 6, 4, 5}));
  graph.ints("eight", {8, 15}).node("Max", {"eight", "eight"}, {"u"});
  EXPECT_EQ(reshaped(graph, "u"), (Shape{8, 15}));
}

TEST(OnnxFold, ProductOfAShapeAndCastsThroughFloat) {
  auto graph = base();
  graph.node("ReduceProd", {"s"}, {"n"}, {{"keepdims", std::int64_t{1}}});
  graph.node("Cast", {"n"}, {"f"}, {{"to", std::int64_t{1}}})
      .node("Sqrt", {"f"}, {"q"})
      .node("Floor", {"q"}, {"r"});
  graph.node("Cast", {"r"}, {"i"}, {{"to", std::int64_t{7}}});  // floor(sqrt(120)) = 10
  graph.ints("rest", {-1}).node("Concat", {"i", "rest"}, {"t"}, {{"axis", std::int64_t{0}}});
  EXPECT_EQ(reshaped(graph, "t"), (Shape{10, 12}));
}

TEST(OnnxFold, PadsAsTorchWritesThem) {
  // constant_pad_nd: pads of the last dimensions come first and are turned round.
  auto graph = OnnxBuilder().input("x", {1, 2, 5, 6}).ints("pads", {1, 2, 3, 4});
  graph.ints("n", {4}).node("ConstantOfShape", {"n"}, {"zeros"});
  graph.node("Cast", {"zeros"}, {"izeros"}, {{"to", std::int64_t{7}}});
  graph.node("Concat", {"pads", "izeros"}, {"all"}, {{"axis", std::int64_t{0}}}).ints("two", {-1, 2});
  graph.node("Reshape", {"all", "two"}, {"table"})
      .ints("from", {-1})
      .ints("to", {INT64_MIN})
      .ints("axis", {0});
  graph.ints("step", {-1}).node("Slice", {"table", "from", "to", "axis", "step"}, {"turned"});
  graph.node("Transpose", {"turned"}, {"columns"}, {{"perm", Ints{1, 0}}}).ints("flat", {-1});
  graph.node("Reshape", {"columns", "flat"}, {"p"}).node("Pad", {"x", "p"}, {"y"}).output("y");
  EXPECT_EQ(output_shape(graph), (Shape{1, 2, 5 + 3 + 4, 6 + 1 + 2}));
}

TEST(OnnxFold, RangeAndNonZeroAsOpset9WritesThem) {
  auto graph = OnnxBuilder().input("x", {2, 3}).node("Shape", {"x"}, {"s"}).ints("one", {1});
  graph.node("Gather", {"s", "one"}, {"n"}).node("ConstantOfShape", {"n"}, {"ones"});
  graph.ints("fill", {1}).node("Expand", {"fill", "n"}, {"filled"}).node("NonZero", {"filled"}, {"i"});
  graph.node("Transpose", {"i"}, {"t"}, {{"perm", Ints{1, 0}}})
      .node("Cast", {"t"}, {"f"}, {{"to", std::int64_t{1}}});
  graph.node("MatMul", {"x", "f"}, {"y"}).output("y");
  EXPECT_EQ(output_shape(graph), (Shape{2, 1}));
}

TEST(OnnxFold, OverflowIsNotFolded) {
  auto graph = base();
  graph.ints("big", {INT64_MAX})
      .node("Add", {"big", "big"}, {"t"})
      .node("Reshape", {"x", "t"}, {"y"})
      .output("y");
  try {
    graph.read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message,
              "the shape of its output 'y' cannot be inferred: it depends on the values of 't', which "
              "are not known");
  }
}

struct Rule {
  const char* name;
  OnnxBuilder graph;
  Shape expected;
  int opset = 17;
};

// Inputs become attributes and the reverse from one operator set to the next.
TEST(OnnxShapes, AcrossOperatorSets) {
  const std::int64_t one = 1;
  const std::int64_t zero = 0;
  const auto x = [] { return OnnxBuilder().input("x", {2, 1, 12}); };
  const std::vector<Rule> rules = {
      {"squeeze_attribute", x().node("Squeeze", {"x"}, {"y"}, {{"axes", Ints{1}}}), {2, 12}, 11},
      {"squeeze_input", x().ints("a", {-2}).node("Squeeze", {"x", "a"}, {"y"}), {2, 12}, 13},
      {"unsqueeze_both_ends",
       x().ints("a", {0, -1}).node("Unsqueeze", {"x", "a"}, {"y"}),
       {1, 2, 1, 12, 1},
       13},
      {"reduce_attribute",
       x().node("ReduceMean", {"x"}, {"y"}, {{"axes", Ints{-1}}, {"keepdims", zero}}),
       {2, 1},
       13},
      {"reduce_input", x().ints("a", {2}).node("ReduceMean", {"x", "a"}, {"y"}), {2, 1, 1}, 18},
      {"reduce_noop", x().node("ReduceSum", {"x"}, {"y"}, {{"noop_with_empty_axes", one}}), {2, 1, 12}, 13},
      {"split_uneven",
       x().node("Split", {"x"}, {"y", "z"}, {{"axis", std::int64_t{2}}, {"num_outputs", std::int64_t{2}}}),
       {2, 1, 6},
       18},
      {"slice_attribute",
       x().node("Slice", {"x"}, {"y"}, {{"starts", Ints{2}}, {"ends", Ints{-3}}, {"axes", Ints{2}}}),
       {2, 1, 7},
       9},
      {"pad_axes",
       x().ints("p", {1, 2}).ints("a", {0}).node("Pad", {"x", "p", "", "a"}, {"y"}),
       {5, 1, 12},
       18},
      {"top_k", x().ints("k", {5}).node("TopK", {"x", "k"}, {"y", "i"}), {2, 1, 5}, 11},
      {"flatten_end", x().node("Flatten", {"x"}, {"y"}, {{"axis", std::int64_t{3}}}), {24, 1}, 13},
      {"shape_slice",
       x().node("Shape", {"x"}, {"s"}, {{"start", one}})
           .node("Reshape", {"x", "s2"}, {"y"})
           .ints("s2", {4, 6}),
       {4, 6},
       15},
      {"legacy_broadcast",
       x().weight("b", {1}).node("Add", {"x", "b"}, {"y"}, {{"broadcast", one}, {"axis", one}}),
       {2, 1, 12},
       6},
      {"upsample",
       OnnxBuilder().input("x", {1, 2, 3, 4}).reals("s", {1, 1, 2.5, 2}).node("Upsample", {"x", "s"}, {"y"}),
       {1, 2, 7, 8},
       9},
      {"resize_scales",
       OnnxBuilder()
           .input("x", {1, 2, 3, 4})
           .reals("s", {1, 1, 2.5, 2})
           .node("Resize", {"x", "", "s"}, {"y"}),
       {1, 2, 7, 8},
       13},
      {"resize_sizes",
       OnnxBuilder()
           .input("x", {1, 2, 3, 4})
           .ints("z", {9, 8})
           .node("Resize", {"x", "", "", "z"}, {"y"}, {{"axes", Ints{2, 3}}}),
       {1, 2, 9, 8},
       18},
      {"resize_aspect",
       OnnxBuilder()
           .input("x", {1, 2, 3, 4})
           .ints("z", {9, 8})
           .node("Resize", {"x", "", "", "z"}, {"y"},
                 {{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", std::string("not_larger")}}),
       {1, 2, 6, 8},
       18},
      {"same_upper",
       OnnxBuilder()
           .input("x", {1, 2, 7})
           .weight("w", {3, 2, 4})
           .node("Conv", {"x", "w"}, {"y"}, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2}}}),
       {1, 3, 4},
       11},
      {"gather_nd", x().ints("i", {1}).node("GatherND", {"x", "i"}, {"y"}), {1, 12}, 12},
      {"depth_to_space",
       OnnxBuilder()
           .input("x", {1, 8, 2, 3})
           .node("DepthToSpace", {"x"}, {"y"}, {{"blocksize", std::int64_t{2}}}),
       {1, 2, 4, 6},
       13},
      {"einsum_ellipsis",
       OnnxBuilder()
           .input("x", {2, 3, 4})
           .weight("w", {4, 5})
           .node("Einsum", {"x", "w"}, {"y"}, {{"equation", std::string("...i,ij->...j")}}),
       {2, 3, 5},
       12},
      {"einsum_implicit",
       OnnxBuilder()
           .input("x", {2, 3})
           .weight("w", {3, 4})
           .node("Einsum", {"x", "w"}, {"y"}, {{"equation", std::string("ij, jk")}}),
       {2, 4},
       12},
      {"center_crop_pad",
       x().ints("s", {2, 2, 12}).node("CenterCropPad", {"x", "s"}, {"y"}).value_info("y", {2, 2, 12}),
       {2, 2, 12},
       18},
      {"dft_input_axis",
       OnnxBuilder()
           .input("x", {1, 9, 1})
           .ints("n", {16})
           .node("DFT", {"x", "n"}, {"y"}, {{"onesided", one}}),
       {1, 9, 2},
       20},
      {"stft",
       OnnxBuilder()
           .input("x", {2, 100, 1})
           .ints("s", {10})
           .ints("l", {20})
           .node("STFT", {"x", "s", "", "l"}, {"y"}),
       {2, 9, 11, 2},
       17},
      {"grid_sample",
       OnnxBuilder().input("x", {1, 2, 3, 4}).input("g", {1, 6, 7, 2}).node("GridSample", {"x", "g"}, {"y"}),
       {1, 2, 6, 7},
       17},
  };
  for (Rule rule : rules) {
    rule.graph.output("y");
    EXPECT_EQ(output_shape(rule.graph, rule.opset), rule.expected) << rule.name;
  }
}

}  // namespace
}  // namespace armilla
