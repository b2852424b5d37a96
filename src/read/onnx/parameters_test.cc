// Weights, wherever they come from and whichever operator takes them.
#include <gmock/gmock.h>

#include <functional>

#include "read/onnx/parameters_testing.h"

namespace armilla {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

// The same by that function's other way: 0/n, 1/n, 2/n ...
OnnxBuilder& ranged(OnnxBuilder& graph, const std::string& name, const Shape& shape) {
  const auto constant = [&](const std::string& suffix, std::int64_t value) {
    graph.node("Constant", {}, {name + suffix}, {{"value_int", value}});
  };
  constant("_0", 0);
  constant("_1", 1);
  graph.ints(name + "_shape", shape)
      .node("ReduceProd", {name + "_shape"}, {name + "_n"}, {{"keepdims", kZero}});
  graph.node("Range", {name + "_0", name + "_n", name + "_1"}, {name + "_r"})
      .node("Cast", {name + "_r"}, {name + "_f"}, {{"to", kFloat}})
      .node("Cast", {name + "_n"}, {name + "_nf"}, {{"to", kFloat}})
      .node("Div", {name + "_f", name + "_nf"}, {name + "_flat"});
  return graph.node("Reshape", {name + "_flat", name + "_shape"}, {name});
}

using Make = OnnxBuilder& (*)(OnnxBuilder&, const std::string&, const Shape&);
OnnxBuilder& filled_half(OnnxBuilder& graph, const std::string& name, const Shape& shape) {
  return filled(graph, name, shape);
}

// Convolution, Caffe's norm and scale, attention-less transformer parts: everything made by nodes.
OnnxBuilder light_network(Make make) {
  OnnxBuilder graph;
  graph.input("x", {1, 3, 8, 8});
  make(graph, "w", {6, 3, 3, 3});
  make(graph, "b", {6});
  for (const char* name : {"s", "t", "mean", "var", "s2", "t2"}) make(graph, name, {6});
  make(graph, "fc", {216, 10});
  make(graph, "fb", {10});
  make(graph, "pos", {1, 10});
  graph.node("Conv", {"x", "w", "b"}, {"c"})
      .node("BatchNormalization", {"c", "s", "t", "mean", "var"}, {"n"})
      .ints("axes", {1, 2});
  graph.node("Unsqueeze", {"s2", "axes"}, {"s3"}).node("Mul", {"n", "s3"}, {"m"});
  graph.node("Unsqueeze", {"t2", "axes"}, {"t3"}).node("Add", {"m", "t3"}, {"a"});
  graph.node("Flatten", {"a"}, {"f"}).node("MatMul", {"f", "fc"}, {"y"}).node("Add", {"y", "fb"}, {"z"});
  return graph.node("Tanh", {"z"}, {"u"}).node("Add", {"u", "pos"}, {"v"}).output("v");
}

TEST(OnnxMadeWeights, LightNetworksKeepTheirParameters) {
  for (const Make make : {filled_half, ranged}) {
    const Model model = light_network(make).read();
    EXPECT_THAT(names(model, true), UnorderedElementsAre("w", "b", "s", "t", "s2", "t2", "fc", "fb", "pos"));
    EXPECT_THAT(names(model, false), UnorderedElementsAre("mean", "var"));
    EXPECT_EQ(totals(model).parameters, 162 + 6 + 4 * 6 + 2160 + 10 + 10);
    EXPECT_EQ(totals(model).parameter_bytes.value, 4 * totals(model).parameters);
    EXPECT_EQ(model.parameters[0].shape, (Shape{6, 3, 3, 3}));
    EXPECT_EQ(model.layers.size(), 2U);
  }
}

// x [2, 12] times a weight [12, 5] that `way` leaves in "w".
struct Way {
  const char* name;
  std::function<void(OnnxBuilder&)> make;
  std::int64_t elements = 60;
};

TEST(OnnxMadeWeights, EveryWayToAProduct) {
  const BuilderTensor some{{12, 5}, 0.25F, {}, {}};
  const std::vector<Way> ways = {
      {"constant",
       [&](auto& g) {
         g.node("Constant", {}, {"w"}, {{"value", some}});
       }},
      {"constant_of_shape",
       [](auto& g) {
         filled(g, "w", {12, 5}, 0);
       }},
      {"range",
       [](auto& g) {
         ranged(g, "w", {12, 5});
       }},
      {"expand",
       [](auto& g) {
         g.reals("one", {0.1F}).ints("s", {12, 5}).node("Expand", {"one", "s"}, {"w"});
       }},
      {"tile",
       [](auto& g) {
         g.node("Constant", {}, {"one"}, {{"value", BuilderTensor{{1, 1}, 0.1F, {}, {}}}})
             .ints("s", {12, 5})
             .node("Tile", {"one", "s"}, {"w"});
       }},
      {"random_normal",
       [](auto& g) {
         g.node("RandomNormal", {}, {"w"}, {{"shape", Ints{12, 5}}});
       }},
      {"random_scaled",
       [](auto& g) {
         g.node("RandomUniform", {}, {"r"}, {{"shape", Ints{5, 12}}})
             .reals("k", {0.02F})
             .node("Mul", {"r", "k"}, {"m"})
             .node("Transpose", {"m"}, {"w"});
       }},
      {"random_like",
       [](auto& g) {
         g.weight("l", {12, 5}).node("RandomNormalLike", {"l"}, {"w"});
       }},
      {"transpose",
       [](auto& g) {
         filled(g, "v", {5, 12}).node("Transpose", {"v"}, {"w"});
       }},
      {"half",
       [](auto& g) {
         g.weight("v", {12, 5}, 10).node("Cast", {"v"}, {"w"}, {{"to", kFloat}});
       }},
      {"integers",
       [](auto& g) {
         g.weight("v", {12, 5}, 3).node("Cast", {"v"}, {"f"}, {{"to", kFloat}});
         g.weight("zero", {5}).node("Sub", {"f", "zero"}, {"d"});
         g.weight("scale", {5}).node("Mul", {"d", "scale"}, {"w"});
       }},
      {"reshape",
       [](auto& g) {
         g.weight("v", {60}).ints("s", {12, 5}).node("Reshape", {"v", "s"}, {"w"});
       }},
      {"unsqueeze",
       [](auto& g) {
         filled(g, "v", {12, 5}).ints("a", {0}).node("Unsqueeze", {"v", "a"}, {"u"});
         g.node("Squeeze", {"u", "a"}, {"i"}).node("Identity", {"i"}, {"w"});
       }},
      {"slice",
       [](auto& g) {
         filled(g, "v", {12, 8}).ints("from", {0}).ints("to", {5}).ints("axis", {1});
         g.node("Slice", {"v", "from", "to", "axis"}, {"w"});
       },
       96},
      {"concat",
       [](auto& g) {
         filled(g, "u", {12, 2});
         filled(g, "v", {12, 3}).node("Concat", {"u", "v"}, {"w"}, {{"axis", kOne}});
       }},
      {"there_and_back",
       [](auto& g) {
         g.weight("v", {12, 5}).reals("s", {0.1F}).node("QuantizeLinear", {"v", "s"}, {"q"});
         g.node("DequantizeLinear", {"q", "s"}, {"w"});
       }},
      {"dequantized",
       [](auto& g) {
         g.weight("v", {12, 5}, 3).weight("s", {5}).node("DequantizeLinear", {"v", "s"}, {"w"});
       }},
      {"product",
       [&](auto& g) {
         g.node("Constant", {}, {"v"}, {{"value", some}}).reals("k", {3}).node("Mul", {"v", "k"}, {"w"});
       }},
      {"ones",
       [&](auto& g) {
         g.weight("v", {12, 5}).node("Constant", {}, {"k"}, {{"value", BuilderTensor{{5}, 1, {}, {}}}});
         g.node("Mul", {"v", "k"}, {"w"});
       }},
      {"weight_norm",
       [](auto& g) {
         g.weight("g", {1, 5}).weight("v", {12, 5}).node("Mul", {"v", "v"}, {"q"}).ints("a", {0});
         g.node("ReduceSum", {"q", "a"}, {"sum"}).node("Sqrt", {"sum"}, {"norm"});
         g.node("Div", {"v", "norm"}, {"u"}).node("Mul", {"u", "g"}, {"w"});
       },
       65},
  };
  for (const Way& way : ways) {
    OnnxBuilder graph;
    graph.input("x", {2, 12});
    way.make(graph);
    graph.node("MatMul", {"x", "w"}, {"y"}).output("y");
    EXPECT_EQ(count(graph), way.elements) << way.name;
    EXPECT_THAT(buffers(graph), IsEmpty()) << way.name;
  }
}

TEST(OnnxMadeWeights, WhatFollowsTheDataIsNone) {
  OnnxBuilder graph;
  graph.input("x", {2, 12}).node("Shape", {"x"}, {"s"}).node("ConstantOfShape", {"s"}, {"zeros"});
  graph.node("Transpose", {"zeros"}, {"t"}).node("MatMul", {"x", "t"}, {"y"}).output("y");
  EXPECT_EQ(count(graph), 0);
}

TEST(OnnxMadeWeights, NoiseIsNone) {
  OnnxBuilder graph;
  graph.node("RandomNormal", {}, {"z"}, {{"shape", Ints{4, 8}}}).weight("w", {8, 3}).input("x", {4, 3});
  graph.node("MatMul", {"z", "w"}, {"y"}).node("RandomNormalLike", {"y"}, {"e"});
  graph.node("Add", {"y", "e"}, {"n"}).node("Add", {"n", "x"}, {"o"}).output("o");
  const Model model = graph.read();
  EXPECT_THAT(names(model, true), UnorderedElementsAre("w"));
  EXPECT_EQ(model.operators.size(), 5U) << "noise is drawn in every pass";
}

TEST(OnnxMadeWeights, InBodiesAndFunctions) {
  OnnxBuilder branch;
  filled(branch, "w", {4, 4}).node("MatMul", {"x", "w"}, {"b"}).output("b");
  OnnxBuilder other;
  other.node("Constant", {}, {"v"}, {{"value", BuilderTensor{{4, 4}, 0.5F, {}, {}}}})
      .node("MatMul", {"x", "v"}, {"a"})
      .node("MatMul", {"a", "v"}, {"c"})
      .output("c");
  OnnxBuilder choice;
  choice.input("x", {2, 4}).input("which", {1}, 9);
  choice.node("If", {"which"}, {"y"}, {{"then_branch", branch.graph()}, {"else_branch", other.graph()}});
  EXPECT_EQ(count(choice.output("y")), 16);

  // The loop carries its second weight along unchanged.
  OnnxBuilder body;
  body.input("i", {}, 7).input("on", {}, 9).input("h", {2, 4}).input("u", {4, 4});
  filled(body, "w", {4, 4}).node("MatMul", {"h", "w"}, {"p"}).node("MatMul", {"p", "u"}, {"g"});
  body.node("Identity", {"u"}, {"u_"}).node("Identity", {"on"}, {"on_"});
  body.output("on_").output("g").output("u_");
  OnnxBuilder loop;
  loop.input("x", {2, 4}).weight("u0", {4, 4}).node("Constant", {}, {"n"}, {{"value_int", std::int64_t{3}}});
  loop.node("Loop", {"n", "", "x", "u0"}, {"y", "u1"}, {{"body", body.graph()}}).output("y");
  EXPECT_EQ(count(loop), 32);

  // One layer after the other, their weights stacked.
  OnnxBuilder layer;
  layer.input("h", {2, 4}).input("w", {4, 4}).node("MatMul", {"h", "w"}, {"g"}).output("g");
  OnnxBuilder scan;
  scan.input("x", {2, 4}).weight("stack", {6, 4, 4});
  scan.node("Scan", {"x", "stack"}, {"y"}, {{"body", layer.graph()}, {"num_scan_inputs", kOne}}).output("y");
  const Model stacked = scan.read();
  EXPECT_EQ(totals(stacked).parameters, 96);
  EXPECT_EQ(totals(stacked).forward_macs, 6 * 2 * 4 * 4);

  OnnxBuilder inner;
  inner.node("Constant", {}, {"s"}, {{"value", BuilderTensor{{2}, 0, {}, {4, 4}}}});
  inner.node("ConstantOfShape", {"s"}, {"w"}).node("MatMul", {"a", "w"}, {"b"});
  OnnxBuilder outer;
  outer.input("x", {2, 4}).function("Dense", {"a"}, {"b"}, inner);
  outer.node("Dense", {"x"}, {"y"}, {}, "local").node("Dense", {"y"}, {"z"}, {}, "local").output("z");
  EXPECT_EQ(count(outer), 32) << "each call makes its own";
}

TEST(OnnxMadeWeights, SharedOnesCountOnce) {
  OnnxBuilder tied;
  tied.input("ids", {2, 3}, 7);
  filled(tied, "table", {100, 8}).node("Gather", {"table", "ids"}, {"h"}).node("Transpose", {"table"}, {"t"});
  EXPECT_EQ(count(tied.node("MatMul", {"h", "t"}, {"y"}).output("y")), 800);
}

TEST(OnnxTiedWeights, StoredTwiceCountOnce) {
  const auto model = [](std::size_t by_row, std::size_t by_column) {
    OnnxBuilder graph;  // the last product's weight is the table turned round, as GPT-2's exports have it
    graph.input("ids", {2, 3}, 7)
        .matrix("table", {100, 64}, 64, 1)
        .matrix("head", {64, 100}, by_row, by_column);
    graph.node("Gather", {"table", "ids"}, {"h"}).node("MatMul", {"h", "head"}, {"y"}).output("y");
    return graph.read();
  };
  const Model tied = model(1, 64);
  EXPECT_EQ(totals(tied).parameters, 6400);
  EXPECT_EQ(tied.operators[1].parameters, tied.operators[0].parameters);
  EXPECT_THAT(tied.notes, testing::Contains("'head' holds the values of 'table': counted once"));
  EXPECT_EQ(totals(model(100, 1)).parameters, 12800) << "another matrix of the same size";
}

TEST(OnnxBiases, OfOneOutputAndMadeOfZerosCount) {
  OnnxBuilder one;
  one.input("x", {2, 8}).weight("w", {8, 1}).weight("b", {1}).node("MatMul", {"x", "w"}, {"m"});
  EXPECT_EQ(count(one.node("Add", {"m", "b"}, {"y"}).output("y")), 9);
  OnnxBuilder zeros;
  zeros.input("x", {2, 8}).weight("w", {8, 4}).node("MatMul", {"x", "w"}, {"m"});
  EXPECT_EQ(count(filled(zeros, "b", {4}, 0).node("Add", {"m", "b"}, {"y"}).output("y")), 36);
  OnnxBuilder epsilon;
  epsilon.input("x", {2, 8}).weight("w", {8, 4}).weight("e", {}).node("MatMul", {"x", "w"}, {"m"});
  EXPECT_EQ(count(epsilon.node("Add", {"m", "e"}, {"y"}).output("y")), 32);
}

TEST(OnnxBiases, AGemmThatMultipliesItByZeroHasNone) {
  const auto gemm = [](float beta) {
    OnnxBuilder graph;
    graph.input("x", {2, 8}).weight("w", {8, 4}).weight("b", {1});
    return graph.node("Gemm", {"x", "w", "b"}, {"y"}, {{"beta", beta}}).output("y").read();
  };
  EXPECT_EQ(totals(gemm(0)).parameters, 32);
  EXPECT_EQ(totals(gemm(0)).forward_flops.value, 2 * 2 * 8 * 4);
  EXPECT_EQ(totals(gemm(0.5F)).parameters, 33);
  EXPECT_EQ(totals(gemm(0.5F)).forward_flops.value, 2 * 2 * 8 * 4 + 2 * 4);
}

TEST(OnnxBounds, OfClipMinAndMaxAreNotTrained) {
  OnnxBuilder graph;
  graph.input("x", {2, 4}).weight("w", {4, 4}).weight("low", {4}).weight("lo", {}).weight("hi", {});
  graph.node("MatMul", {"x", "w"}, {"m"})
      .node("Max", {"m", "low"}, {"a"})
      .node("Clip", {"a", "lo", "hi"}, {"y"});
  EXPECT_THAT(trained(graph.output("y")), UnorderedElementsAre("w"));
}

TEST(OnnxQuantized, PackedWeightsCountAsTheMatrixTheyStandFor) {
  OnnxBuilder graph;
  graph.input("x", {2, 64}).weight("w", {48, 2, 16}, 2).weight("s", {48, 2});
  graph.node("MatMulNBits", {"x", "w", "s"}, {"y"},
             {{"K", std::int64_t{64}},
              {"N", std::int64_t{48}},
              {"bits", std::int64_t{4}},
              {"block_size", std::int64_t{32}}},
             "com.microsoft");
  const Model model = graph.output("y").read();
  EXPECT_EQ(totals(model).parameters, 48 * 64);
  EXPECT_EQ(totals(model).parameter_bytes.value, 48 * 2 * 16);
}

TEST(OnnxGradients, AConstantThatIsNotTrainedHasNone) {
  OnnxBuilder graph;
  graph.input("x", {2, 3, 8, 8}).weight("mean", {3, 1, 1}).weight("dev", {3, 1, 1});
  graph.node("Sub", {"x", "mean"}, {"d"}).node("Div", {"d", "dev"}, {"n"}).weight("w", {4, 3, 1, 1});
  const Model model = graph.node("Conv", {"n", "w"}, {"y"}).output("y").read();
  for (const Operator& op : model.operators) EXPECT_FALSE(op.needs_input_gradient) << op.name;
}

}  // namespace
}  // namespace armilla
