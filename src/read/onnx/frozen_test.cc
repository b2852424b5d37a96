// Constants that training does not change, in the spellings of exporters, and their look-alikes that it does.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "read/onnx/parameters_testing.h"

namespace armilla {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(OnnxNorms, DecomposedBatchNormTrainsItsAffinePart) {
  const auto conv = [] {
    OnnxBuilder graph;
    graph.input("x", {2, 3, 8, 8}).weight("w", {6, 3, 3, 3}).node("Conv", {"x", "w"}, {"c"});
    for (const char* name : {"mean", "var", "gamma", "beta"}) graph.weight(name, {6});
    return graph.reals("eps", {1e-5F})
        .ints("axes", {1, 2})
        .node("Add", {"var", "eps"}, {"ve"})
        .node("Sqrt", {"ve"}, {"dev"});
  };
  const auto lifted = [](OnnxBuilder& graph, const std::string& name) {
    graph.node("Unsqueeze", {name, "axes"}, {name + "_"});
  };
  // torch.export's decomposition
  OnnxBuilder core = conv();
  core.node("Reciprocal", {"dev"}, {"rstd"});
  for (const char* name : {"mean", "rstd", "gamma", "beta"}) lifted(core, name);
  core.node("Sub", {"c", "mean_"}, {"d"}).node("Mul", {"d", "rstd_"}, {"n"});
  core.node("Mul", {"n", "gamma_"}, {"m"}).node("Add", {"m", "beta_"}, {"y"}).output("y");
  // the same with a quotient
  OnnxBuilder quotient = conv();
  for (const char* name : {"mean", "dev", "gamma", "beta"}) lifted(quotient, name);
  quotient.node("Sub", {"c", "mean_"}, {"d"}).node("Div", {"d", "dev_"}, {"n"});
  quotient.node("Mul", {"n", "gamma_"}, {"m"}).node("Add", {"m", "beta_"}, {"y"}).output("y");
  // Keras': scale and shift computed ahead
  OnnxBuilder ahead = conv();
  ahead.node("Reciprocal", {"dev"}, {"rstd"}).node("Mul", {"rstd", "gamma"}, {"scale"});
  ahead.node("Mul", {"mean", "scale"}, {"ms"}).node("Sub", {"beta", "ms"}, {"shift"});
  lifted(ahead, "scale");
  lifted(ahead, "shift");
  ahead.node("Mul", {"c", "scale_"}, {"m"}).node("Add", {"m", "shift_"}, {"y"}).output("y");
  for (const OnnxBuilder& graph : {core, quotient, ahead}) {
    EXPECT_THAT(trained(graph), UnorderedElementsAre("w", "gamma", "beta"));
    EXPECT_THAT(buffers(graph), UnorderedElementsAre("mean", "var"));
  }
}

TEST(OnnxNorms, StatisticsThatWereFoldedAreKnownByTheirPlace) {
  const auto chain = [](const std::vector<std::string>& types) {
    OnnxBuilder graph;
    graph.input("x", {2, 6, 8, 8}).weight("w", {6, 6, 1, 1}).node("Conv", {"x", "w"}, {"v0"});
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::string n = std::to_string(i);
      graph.weight(types[i] + n, {6, 1, 1});
      graph.node(types[i], {"v" + n, types[i] + n}, {"v" + std::to_string(i + 1)});
    }
    return graph.node("Relu", {"v" + std::to_string(types.size())}, {"y"}).output("y");
  };
  EXPECT_THAT(trained(chain({"Sub", "Mul", "Mul", "Add"})), UnorderedElementsAre("w", "Mul2", "Add3"));
  EXPECT_THAT(trained(chain({"Sub", "Div", "Mul", "Add"})), UnorderedElementsAre("w", "Mul2", "Add3"));
  EXPECT_THAT(trained(chain({"Sub", "Mul", "Add"})), UnorderedElementsAre("w", "Mul1", "Add2"));
  EXPECT_THAT(trained(chain({"Sub", "Div"})), UnorderedElementsAre("w"));
  EXPECT_THAT(trained(chain({"Mul", "Add"})), UnorderedElementsAre("w", "Mul0", "Add1"));
}

TEST(OnnxNorms, ThoseWithoutAnAffinePartHaveNone) {
  const auto norm = [](bool followed) {
    OnnxBuilder graph;
    graph.input("x", {2, 2, 4})
        .reals("one", {1, 1})
        .reals("zero", {0, 0})
        .weight("mean", {2})
        .weight("var", {2});
    graph.node("BatchNormalization", {"x", "one", "zero", "mean", "var"}, {"n"});
    if (followed) graph.weight("s", {2, 1}).node("Mul", {"n", "s"}, {"m"});
    if (followed) graph.weight("t", {2, 1}).node("Add", {"m", "t"}, {"a"});
    return graph.node("Relu", {followed ? "a" : "n"}, {"y"}).output("y");
  };
  EXPECT_THAT(trained(norm(true)), UnorderedElementsAre("s", "t")) << "Caffe's BatchNorm and Scale";
  EXPECT_THAT(trained(norm(false)), UnorderedElementsAre("one", "zero")) << "a network not trained yet";
  OnnxBuilder made;
  made.input("x", {2, 2, 4}).node("Constant", {}, {"one"}, {{"value", BuilderTensor{{4}, 1, {}, {}}}});
  EXPECT_EQ(count(made.node("LayerNormalization", {"x", "one"}, {"y"}).output("y")), 0);
}

TEST(OnnxNorms, RunningStatisticsOfATrainingStepAreUpdated) {
  OnnxBuilder graph;
  graph.input("x", {4, 6}).weight("w", {6, 6}).node("MatMul", {"x", "w"}, {"h"}).weight("running", {6});
  graph.ints("axis", {0}).node("ReduceMean", {"h"}, {"mean"}, {{"axes", Ints{0}}, {"keepdims", kZero}});
  graph.reals("m", {0.1F}).reals("k", {0.9F}).node("Mul", {"mean", "m"}, {"new"});
  graph.node("Mul", {"running", "k"}, {"old"}).node("Add", {"new", "old"}, {"next"});
  graph.node("Sub", {"h", "mean"}, {"y"}).output("y").output("next");
  EXPECT_THAT(trained(graph), UnorderedElementsAre("w"));
  EXPECT_THAT(buffers(graph), UnorderedElementsAre("running"));
}

TEST(OnnxNorms, DecomposedLayerNormTrainsBoth) {
  OnnxBuilder graph;
  graph.input("x", {2, 5, 8}).weight("gamma", {8}).weight("beta", {8}).reals("eps", {1e-5F});
  graph.node("ReduceMean", {"x"}, {"mean"}, {{"axes", Ints{-1}}}).node("Sub", {"x", "mean"}, {"d"});
  graph.node("Mul", {"d", "d"}, {"q"}).node("ReduceMean", {"q"}, {"var"}, {{"axes", Ints{-1}}});
  graph.node("Add", {"var", "eps"}, {"ve"}).node("Sqrt", {"ve"}, {"dev"}).node("Div", {"d", "dev"}, {"n"});
  graph.node("Mul", {"n", "gamma"}, {"m"}).node("Add", {"m", "beta"}, {"y"}).output("y");
  EXPECT_THAT(trained(graph), UnorderedElementsAre("gamma", "beta"));
  EXPECT_THAT(buffers(graph), IsEmpty());
}

TEST(OnnxNorms, ALearnedQueryKeepsItsOwnStatistics) {
  OnnxBuilder graph;  // a constant tensor is normalised: mean and variance are its own
  graph.input("x", {5, 8}).weight("q", {3, 8}).weight("gamma", {8}).weight("beta", {8}).reals("eps", {1e-5F});
  graph.node("ReduceMean", {"q"}, {"mean"}, {{"axes", Ints{-1}}}).node("Sub", {"q", "mean"}, {"d"});
  graph.node("Mul", {"d", "d"}, {"s"}).node("ReduceMean", {"s"}, {"var"}, {{"axes", Ints{-1}}});
  graph.node("Add", {"var", "eps"}, {"ve"}).node("Sqrt", {"ve"}, {"dev"}).node("Div", {"d", "dev"}, {"n"});
  graph.node("Mul", {"n", "gamma"}, {"m"}).node("Add", {"m", "beta"}, {"k"}).node("Transpose", {"k"}, {"t"});
  EXPECT_THAT(trained(graph.node("MatMul", {"x", "t"}, {"y"}).output("y")),
              UnorderedElementsAre("q", "gamma", "beta"));
}

TEST(OnnxInputs, MeanAndDeviationOfTheDataAreNotTrained) {
  OnnxBuilder graph;
  graph.input("x", {1, 3, 8, 8})
      .weight("mean", {1, 3, 1, 1})
      .weight("dev", {1, 3, 1, 1})
      .weight("w", {4, 3, 3, 3});
  graph.node("Sub", {"x", "mean"}, {"d"}).node("Div", {"d", "dev"}, {"n"}).node("Conv", {"n", "w"}, {"y"});
  EXPECT_THAT(trained(graph.output("y")), UnorderedElementsAre("w"));
}

// Attention of 4 heads over 6 positions: queries and keys from projections, `between` turns q into "r".
OnnxBuilder attention(const std::function<void(OnnxBuilder&)>& between) {
  OnnxBuilder graph;
  graph.input("x", {1, 6, 32}).weight("wq", {32, 32}).weight("wk", {32, 32}).ints("split", {1, 6, 4, 8});
  for (const std::string p : {"q", "k"}) {
    graph.node("MatMul", {"x", "w" + p}, {p + "0"}).node("Reshape", {p + "0", "split"}, {p + "1"});
    graph.node("Transpose", {p + "1"}, {p}, {{"perm", Ints{0, 2, 1, 3}}});
  }
  between(graph);
  return graph;
}
void rotate_half(OnnxBuilder& graph, const std::string& cos, const std::string& sin) {
  graph.node("Split", {"q"}, {"first", "second"},
             {{"axis", std::int64_t{3}}, {"num_outputs", std::int64_t{2}}});
  graph.node("Neg", {"second"}, {"minus"})
      .node("Concat", {"minus", "first"}, {"half"}, {{"axis", std::int64_t{3}}});
  graph.node("Mul", {"q", cos}, {"a"}).node("Mul", {"half", sin}, {"b"}).node("Add", {"a", "b"}, {"r"});
  graph.node("Transpose", {"k"}, {"kt"}, {{"perm", Ints{0, 1, 3, 2}}})
      .node("MatMul", {"r", "kt"}, {"y"})
      .output("y");
}

TEST(OnnxRotary, TablesAreBuffers) {
  const OnnxBuilder direct = attention([](OnnxBuilder& graph) {
    graph.weight("cos", {1, 1, 6, 8}).weight("sin", {1, 1, 6, 8});
    rotate_half(graph, "cos", "sin");
  });
  const OnnxBuilder picked = attention([](OnnxBuilder& graph) {
    graph.weight("cos", {64, 8}).weight("sin", {64, 8}).input("ids", {1, 6}, 7).ints("axis", {1});
    for (const std::string t : {"cos", "sin"})
      graph.node("Gather", {t, "ids"}, {t + "1"}).node("Unsqueeze", {t + "1", "axis"}, {t + "2"});
    rotate_half(graph, "cos2", "sin2");
  });
  const OnnxBuilder interleaved = attention([](OnnxBuilder& graph) {
    graph.weight("cos", {6, 4})
        .weight("sin", {6, 4})
        .ints("pairs", {1, 4, 6, 4, 2})
        .ints("all", {1, 4, 6, 8});
    graph.ints("0", {0}).ints("1", {1}).ints("4", {4}).node("Reshape", {"q", "pairs"}, {"p"});
    graph.node("Gather", {"p", "0"}, {"re1"}, {{"axis", std::int64_t{4}}})
        .node("Squeeze", {"re1", "4"}, {"re"});
    graph.node("Gather", {"p", "1"}, {"im1"}, {{"axis", std::int64_t{4}}})
        .node("Squeeze", {"im1", "4"}, {"im"});
    graph.node("Mul", {"re", "cos"}, {"rc"})
        .node("Mul", {"im", "sin"}, {"is"})
        .node("Sub", {"rc", "is"}, {"o1"});
    graph.node("Mul", {"re", "sin"}, {"rs"})
        .node("Mul", {"im", "cos"}, {"ic"})
        .node("Add", {"rs", "ic"}, {"o2"});
    graph.node("Concat", {"o1", "o2"}, {"r"}, {{"axis", std::int64_t{3}}});
    graph.node("Transpose", {"k"}, {"kt"}, {{"perm", Ints{0, 1, 3, 2}}})
        .node("MatMul", {"r", "kt"}, {"y"})
        .output("y");
  });
  for (const OnnxBuilder& graph : {direct, picked, interleaved}) {
    EXPECT_THAT(trained(graph), UnorderedElementsAre("wq", "wk"));
    EXPECT_THAT(buffers(graph), UnorderedElementsAre("cos", "sin"));
  }
}

TEST(OnnxRotary, FrequenciesAreBuffers) {
  const OnnxBuilder angles = attention([](OnnxBuilder& graph) {
    graph.weight("freq", {1, 4, 1}).input("ids", {1, 1, 6}, 7).node("Cast", {"ids"}, {"t"}, {{"to", kFloat}});
    graph.node("MatMul", {"freq", "t"}, {"f"}).node("Transpose", {"f"}, {"ft"}, {{"perm", Ints{0, 2, 1}}});
    graph.node("Concat", {"ft", "ft"}, {"e"}, {{"axis", std::int64_t{2}}});
    graph.node("Cos", {"e"}, {"cos"}).node("Sin", {"e"}, {"sin"});
    rotate_half(graph, "cos", "sin");
  });
  EXPECT_THAT(trained(angles), UnorderedElementsAre("wq", "wk"));
  const OnnxBuilder constant = attention([](OnnxBuilder& graph) {
    graph.weight("freq", {1, 8}).weight("t", {6, 1}).node("Mul", {"t", "freq"}, {"e"});
    graph.node("Cos", {"e"}, {"cos"}).node("Sin", {"e"}, {"sin"});
    rotate_half(graph, "cos", "sin");
  });
  EXPECT_THAT(trained(constant), UnorderedElementsAre("wq", "wk"));

  OnnxBuilder siren;  // a network of sines: its frequencies are weights
  siren.input("x", {5, 2}).weight("w", {2, 16}).weight("b", {16}).reals("omega", {30});
  siren.node("MatMul", {"x", "w"}, {"m"}).node("Add", {"m", "b"}, {"a"}).node("Mul", {"a", "omega"}, {"o"});
  EXPECT_THAT(trained(siren.node("Sin", {"o"}, {"y"}).output("y")), UnorderedElementsAre("w", "b"));
}

TEST(OnnxRotary, AMixOfTwoSignalsIsTrained) {
  OnnxBuilder graph;  // RWKV's: x * mu + before * (1 - mu)
  graph.input("x", {1, 6, 8}).input("before", {1, 6, 8}).weight("mu", {1, 1, 8}).reals("one", {1});
  graph.node("Sub", {"one", "mu"}, {"rest"})
      .node("Mul", {"x", "mu"}, {"a"})
      .node("Mul", {"before", "rest"}, {"b"});
  EXPECT_THAT(trained(graph.node("Add", {"a", "b"}, {"y"}).output("y")), UnorderedElementsAre("mu"));
}

// Scores of 4 heads over 6 positions in "s"; `then` turns them into "t", of which Softmax follows.
OnnxBuilder scores(const std::function<void(OnnxBuilder&)>& then) {
  return attention([&](OnnxBuilder& graph) {
    graph.node("Transpose", {"k"}, {"kt"}, {{"perm", Ints{0, 1, 3, 2}}}).node("MatMul", {"q", "kt"}, {"s0"});
    graph.reals("scale", {0.35F}).node("Mul", {"s0", "scale"}, {"s"});
    then(graph);
    graph.node("Softmax", {"t"}, {"y"}).output("y");
  });
}

TEST(OnnxMasks, AreNotTrained) {
  const float low = -3.4e38F;
  std::vector<float> causal;
  for (int i = 0; i < 36; ++i) causal.push_back(i % 6 > i / 6 ? low : 0);
  const std::vector<std::pair<const char*, std::function<void(OnnxBuilder&)>>> ways = {
      {"added",
       [](auto& g) {
         g.weight("m", {1, 1, 6, 6}).node("Add", {"s", "m"}, {"t"});
       }},
      {"values",
       [&](auto& g) {
         g.reals("m", causal)
             .ints("n", {6, 6})
             .node("Reshape", {"m", "n"}, {"n2"})
             .node("Add", {"s", "n2"}, {"t"});
       }},
      {"factor",
       [](auto& g) {
         g.weight("m", {1, 1, 6, 6}).weight("m2", {1, 1, 6, 6}).node("Mul", {"s", "m"}, {"u"});
         g.node("Sub", {"u", "m2"}, {"t"});
       }},
      {"where",
       [](auto& g) {
         g.weight("m", {1, 1, 6, 6}, 9).weight("low", {1, 1, 6, 6}).node("Where", {"m", "s", "low"}, {"t"});
       }},
      {"triangle",
       [&](auto& g) {
         filled(g, "f", {6, 6}, low).node("Trilu", {"f"}, {"m"}).node("Add", {"s", "m"}, {"t"});
       }},
      {"windows",  // Swin's: windows, no heads
       [](auto& g) {
         g.weight("m", {1, 1, 6, 6}).ints("five", {1, 1, 4, 6, 6}).ints("four", {1, 4, 6, 6});
         g.node("Reshape", {"s", "five"}, {"u"})
             .node("Add", {"u", "m"}, {"v"})
             .node("Reshape", {"v", "four"}, {"t"});
       }},
      {"slopes",  // ALiBi of positions that come as data
       [](auto& g) {
         g.weight("m", {1, 4, 1, 1})
             .input("mask", {1, 6}, 7)
             .node("CumSum", {"mask", "axis"}, {"c"})
             .ints("axis", {1});
         g.node("Cast", {"c"}, {"f"}, {{"to", kFloat}})
             .node("Mul", {"f", "m"}, {"a"})
             .node("Add", {"s", "a"}, {"t"});
       }},
  };
  for (const auto& [name, then] : ways)
    EXPECT_THAT(trained(scores(then)), UnorderedElementsAre("wq", "wk")) << name;
}

TEST(OnnxMasks, LearnedBiasesOfPositionsAndTemperaturesAre) {
  const std::vector<std::pair<const char*, std::function<void(OnnxBuilder&)>>> ways = {
      {"bias",
       [](auto& g) {
         g.weight("b", {1, 4, 6, 6}).node("Add", {"s", "b"}, {"t"});
       }},
      {"temperature",
       [](auto& g) {
         g.weight("b", {4, 1, 1}).node("Mul", {"s", "b"}, {"t"});
       }},
      {"picked",  // T5's and Swin's: a table of distances
       [](auto& g) {
         g.weight("b", {11, 4}).input("i", {6, 6}, 7).ints("0", {0}).node("Gather", {"b", "i"}, {"p"});
         g.node("Transpose", {"p"}, {"r"}, {{"perm", Ints{2, 0, 1}}}).node("Unsqueeze", {"r", "0"}, {"u"});
         g.node("Add", {"s", "u"}, {"t"});
       }},
  };
  for (const auto& [name, then] : ways)
    EXPECT_THAT(trained(scores(then)), UnorderedElementsAre("wq", "wk", "b")) << name;
}

std::vector<float> sinusoid(std::size_t rows, std::size_t width) {
  std::vector<float> table;
  for (std::size_t p = 0; p < rows; ++p) {
    for (std::size_t i = 0; i < width; ++i) {
      const double angle = static_cast<double>(p) /
                           std::pow(10000, static_cast<double>(i / 2 * 2) / static_cast<double>(width));
      table.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  }
  return table;
}

TEST(OnnxPositions, SinusoidsAreBuffersAndLearnedTablesAreNot) {
  const auto model = [](bool learned, bool picked) {
    OnnxBuilder graph;
    graph.input("ids", {1, 6}, 7).weight("tokens", {100, 8}).node("Gather", {"tokens", "ids"}, {"e"});
    if (learned) graph.weight("places", {6, 8});
    if (!learned)
      graph.node("Constant", {}, {"places"}, {{"value", BuilderTensor{{6, 8}, 0, sinusoid(6, 8), {}}}});
    if (picked) graph.input("at", {1, 6}, 7).node("Gather", {"places", "at"}, {"p"});
    return graph.node("Add", {"e", picked ? "p" : "places"}, {"y"}).output("y");
  };
  for (const bool picked : {false, true}) {
    EXPECT_THAT(trained(model(true, picked)), UnorderedElementsAre("tokens", "places"));
    EXPECT_THAT(trained(model(false, picked)), UnorderedElementsAre("tokens"));
    EXPECT_THAT(buffers(model(false, picked)), UnorderedElementsAre("places"));
  }
}

TEST(OnnxPositions, GridsAndAnchorsAreNotTrained) {
  OnnxBuilder graph;  // a detector's last steps
  graph.input("x", {1, 4, 6})
      .weight("w", {4, 4, 1})
      .node("Conv", {"x", "w"}, {"c"})
      .node("Sigmoid", {"c"}, {"s"});
  graph.reals("grid", {0.5F, 1.5F, 2.5F, 0.5F, 1.5F, 2.5F}).reals("strides", {8, 8, 8, 16, 16, 32});
  graph.node("Add", {"s", "grid"}, {"a"}).node("Mul", {"a", "strides"}, {"y"}).output("y");
  EXPECT_THAT(trained(graph), UnorderedElementsAre("w"));
}

TEST(OnnxPositions, ASmallMatrixOfRoundNumbersIsTrained) {
  OnnxBuilder graph;  // as in the backend test test_operator_params
  graph.input("x", {2, 2})
      .node("Constant", {}, {"p"}, {{"value", BuilderTensor{{2, 2}, 0, {1, 2, 3, 4}, {}}}});
  graph.node("Add", {"x", "p"}, {"a"}).node("Mul", {"p", "a"}, {"y"}).output("y");
  EXPECT_THAT(trained(graph), UnorderedElementsAre("p"));
}

TEST(OnnxPositions, AnExpectationOverBinsIsNotTrained) {
  OnnxBuilder graph;  // YOLO's distribution of distances: a convolution with 0, 1, 2 ...
  graph.input("x", {1, 3, 4, 5}).weight("w", {8, 3, 1, 1}).reals("bins", {0, 1, 2, 3, 4, 5, 6, 7});
  graph.ints("s", {1, 8, 1, 1}).node("Reshape", {"bins", "s"}, {"b"}).node("Conv", {"x", "w"}, {"c"});
  graph.node("Softmax", {"c"}, {"p"}, {{"axis", kOne}}).node("Conv", {"p", "b"}, {"y"}).output("y");
  EXPECT_THAT(trained(graph), UnorderedElementsAre("w"));
}

TEST(OnnxPositions, BoxesOfADetectorAreNotTrained) {
  OnnxBuilder graph;  // SSD's: centres and sizes that the offsets refer to
  graph.input("x", {1, 4, 5, 5}).weight("w", {4, 4, 1, 1}).ints("rows", {1, 25, 4}).reals("k", {0.1F});
  graph.node("Conv", {"x", "w"}, {"c"}).node("Transpose", {"c"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}});
  graph.node("Reshape", {"t", "rows"}, {"l"}).weight("centres", {1, 25, 2}).weight("sizes", {1, 25, 2});
  graph.node("Split", {"l"}, {"a", "b"}, {{"axis", std::int64_t{2}}, {"num_outputs", std::int64_t{2}}});
  graph.node("Mul", {"a", "k"}, {"a1"})
      .node("Mul", {"a1", "sizes"}, {"a2"})
      .node("Add", {"a2", "centres"}, {"a3"});
  graph.node("Exp", {"b"}, {"b1"}).node("Mul", {"b1", "sizes"}, {"b2"});
  graph.node("Concat", {"a3", "b2"}, {"y"}, {{"axis", std::int64_t{2}}}).output("y");
  EXPECT_THAT(trained(graph), UnorderedElementsAre("w"));
  EXPECT_THAT(buffers(graph), UnorderedElementsAre("centres", "sizes"));
}

}  // namespace
}  // namespace armilla
