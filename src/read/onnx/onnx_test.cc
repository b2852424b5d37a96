#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error_testing.h"
#include "base/mapped_file.h"
#include "base/source_path_testing.h"
#include "read/onnx/builder_testing.h"
#include "read/read.h"

namespace armilla {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kModels = source_path("");

Model read_data(const std::string& name, const ModelOptions& options = {}) {
  const std::string path = kModels + "/tests/data/onnx/" + name + ".onnx";
  const MappedFile file(path);
  return read_onnx(file.bytes(), name + ".onnx", options);
}

Model read_zoo(const std::string& name) {
  const MappedFile file(kModels + "/models/" + name + ".onnx");
  return read_onnx(file.bytes(), name, {});
}

const Operator& op_of_type(const Model& model, const std::string& type) {
  const auto found = std::find_if(model.operators.begin(), model.operators.end(),
                                  [&](const Operator& op) { return op.type == type; });
  if (found == model.operators.end()) throw std::runtime_error("no operator " + type);
  return *found;
}

const Shape& output_named(const Model& model, const Operator& op) {
  return model.tensors[op.outputs[0]].shape;
}

std::vector<std::int64_t> layer_weights(const Model& model) {
  std::vector<std::int64_t> sizes;
  for (const Layer& layer : model.layers) {
    std::int64_t sum = 0;
    for (const std::uint32_t p : layer.weights) sum += model.parameters[p].elements;
    sizes.push_back(sum);
  }
  return sizes;
}

std::vector<std::string> parameter_names(const Model& model, bool trainable) {
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.trainable == trainable) names.push_back(parameter.name);
  }
  return names;
}

// Published by torchvision (parameters, "GFLOPS" = 1e9 multiply-accumulates of one image), exact figures
// ours.
struct ZooFigure {
  const char* name;
  std::int64_t parameters;
  std::int64_t macs;
  double published_gmacs;
};

class OnnxZoo : public testing::TestWithParam<ZooFigure> {};

TEST_P(OnnxZoo, HasThePublishedSizeAndArithmetic) {
  const Model model = read_zoo(GetParam().name);
  const ModelTotals sum = totals(model);
  EXPECT_EQ(sum.parameters, GetParam().parameters);
  EXPECT_EQ(sum.parameter_bytes.value, 4 * GetParam().parameters);
  EXPECT_EQ(sum.forward_macs, GetParam().macs);
  EXPECT_NEAR(static_cast<double>(sum.forward_macs) / 1e9, GetParam().published_gmacs, 0.006);
  EXPECT_GE(sum.forward_flops.value, 2 * sum.forward_macs);
  EXPECT_THAT(model.unknown, IsEmpty());
  EXPECT_THAT(model.notes, Not(Contains(HasSubstr("contradict"))));
}

INSTANTIATE_TEST_SUITE_P(Torchvision, OnnxZoo,
                         testing::Values(ZooFigure{"resnet18", 11689512, 1814073344, 1.81},
                                         ZooFigure{"resnet50", 25557032, 4089184256, 4.09},
                                         ZooFigure{"vgg16", 138357544, 15470264320, 15.47},
                                         ZooFigure{"vgg19", 143667240, 19632062464, 19.63},
                                         ZooFigure{"alexnet", 61100840, 714188480, 0.71},
                                         ZooFigure{"densenet121", 7978856, 2834161664, 2.83},
                                         ZooFigure{"mobilenet_v2", 3504872, 300774272, 0.30},
                                         ZooFigure{"inception_v3", 27161264, 5718899296, 5.72},
                                         ZooFigure{"squeezenet", 1235496, 349151936, 0.35},
                                         ZooFigure{"vit_b_16", 86567656, 17563828224, 17.56}),
                         [](const auto& test) { return test.param.name; });

// The figures of ModTrans (table 2): weights of each layer without its bias.
TEST(OnnxLayers, Vgg16HasTheWeightsOfModTrans) {
  EXPECT_THAT(layer_weights(read_zoo("vgg16")),
              ElementsAre(1728, 36864, 73728, 147456, 294912, 589824, 589824, 1179648, 2359296, 2359296,
                          2359296, 2359296, 2359296, 102760448, 16777216, 4096000));
}

TEST(OnnxLayers, Vgg19HasTheWeightsOfModTrans) {
  EXPECT_THAT(
      layer_weights(read_zoo("vgg19")),
      ElementsAre(1728, 36864, 73728, 147456, 294912, 589824, 589824, 589824, 1179648, 2359296, 2359296,
                  2359296, 2359296, 2359296, 2359296, 2359296, 102760448, 16777216, 4096000));
}

// ASTRA-sim 1.0's ResNet-50 workload: 54 weight layers (it lists a block's projection first, the model last).
TEST(OnnxLayers, Resnet50HasTheWeightsOfAstraSim) {
  std::vector<std::int64_t> expected = {64 * 3 * 49};
  std::int64_t channels = 64;
  for (const auto& [width, blocks] : {std::pair{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    for (int block = 0; block < blocks; ++block) {
      expected.insert(expected.end(), {channels * width, 9 * width * width, width * 4 * width});
      if (block == 0) expected.push_back(channels * 4 * width);
      channels = 4 * width;
    }
  }
  expected.push_back(2048 * 1000);
  EXPECT_EQ(expected.size(), 54U);
  EXPECT_EQ(layer_weights(read_zoo("resnet50")), expected);
}

// Real exports of small PyTorch modules; parameters as PyTorch counts them (tools/make_test_models.py).
TEST(OnnxExports, WindowsOfEveryKind) {
  const Model model = read_data("windows");
  EXPECT_EQ(totals(model).parameters, 677);
  std::map<std::string, std::vector<Gemm>> gemms;
  for (const Operator& op : model.operators) {
    for (const Gemm& gemm : op.forward.gemms) gemms[op.name].push_back(gemm);
  }
  EXPECT_THAT(gemms["/grouped/Conv"], ElementsAre(Gemm{2 * 9 * 9, 4, 2 * 9, 2}));
  EXPECT_THAT(gemms["/depthwise/Conv"], ElementsAre(Gemm{2 * 4 * 5, 1, 3, 8}));
  EXPECT_THAT(gemms["/up/ConvTranspose"], ElementsAre(Gemm{2 * 4 * 5, 3 * 16, 4, 2}));
  EXPECT_EQ(output_named(model, op_of_type(model, "ConvTranspose")), (Shape{2, 6, 9, 11}));
  // ceil((9 - 3) / 2) + 1 and ceil((11 - 3) / 2) + 1
  EXPECT_EQ(output_named(model, op_of_type(model, "MaxPool")), (Shape{2, 6, 4, 5}));
  EXPECT_THAT(gemms["/line/Conv"], ElementsAre(Gemm{2 * 18, 5, 18}));
  EXPECT_THAT(gemms["/cube/Conv"], ElementsAre(Gemm{2 * 5 * 3 * 4, 2, 8}));
}

TEST(OnnxExports, EveryOperatorSetTellsTheSame) {
  for (const char* name :
       {"cnn_opset9", "cnn_opset11", "cnn_opset13", "cnn_opset16", "cnn_unfolded", "cnn_inputs"}) {
    const Model model = read_data(name);
    // The batch norm is folded into the convolution: 8 biases in place of 16 scales and shifts.
    EXPECT_EQ(totals(model).parameters, 317 - 16 + 8) << name;
    EXPECT_EQ(totals(model).forward_macs, 2 * (16 * 8 * 27 + 16 * 8 * 2 + 8 * 5)) << name;
    EXPECT_EQ(model.batch, 2) << name;
    EXPECT_EQ(model.inputs.size(), 1U) << name;
    EXPECT_THAT(model.unknown, IsEmpty()) << name;
  }
}

TEST(OnnxExports, TrainingKeepsBatchNormAndDropout) {
  const Model model = read_data("cnn_train");
  EXPECT_EQ(totals(model).parameters, 317);
  EXPECT_THAT(parameter_names(model, false), ElementsAre("norm.running_mean", "norm.running_var"));
  EXPECT_EQ(totals(model).buffer_bytes.value, 2 * 8 * 4);
  EXPECT_FALSE(op_of_type(model, "Dropout").is_view);
  EXPECT_TRUE(op_of_type(model, "Flatten").is_view);
}

TEST(OnnxExports, SymbolicBatchIsBoundAndAnnounced) {
  const Model one = read_data("cnn_dynamic");
  EXPECT_EQ(one.batch, 1);
  EXPECT_THAT(one.notes, Contains("dimension 'batch' of input 'image' taken as the batch: 1"));
  ModelOptions options;
  options.batch = 32;
  const Model many = read_data("cnn_dynamic", options);
  EXPECT_EQ(many.batch, 32);
  EXPECT_THAT(many.notes, Contains("dimension 'batch' of input 'image' taken as the batch: 32"));
  EXPECT_EQ(totals(many).forward_macs, 32 * totals(one).forward_macs);
  const Model same = read_data("cnn_dynamic", {{{"batch", 32}}, {}});
  EXPECT_EQ(same.batch, 32);
  EXPECT_EQ(dump_model(same), dump_model(many));
}

TEST(OnnxExports, ABatchOfMinusOneIsUnknown) {
  const Model model = read_data("negative", {{}, 6});
  EXPECT_EQ(model.batch, 6);
  EXPECT_EQ(model.tensors[model.outputs[0]].shape.front(), 6);
}

TEST(OnnxExports, FixedBatchIsScaledAndAnnounced) {
  ModelOptions options;
  options.batch = 8;
  const Model model = read_data("cnn_opset13", options);
  EXPECT_EQ(model.batch, 8);
  EXPECT_THAT(model.notes, Contains("the file is made for a batch of 2; its work is scaled to 8"));
  EXPECT_EQ(totals(model).forward_macs, 4 * totals(read_data("cnn_opset13")).forward_macs);
}

TEST(OnnxExports, OtherDimensionsAreBoundByName) {
  const Model model = read_data("cnn_open", {{{"height", 16}, {"width", 8}}, 4});
  EXPECT_EQ(model.tensors[model.inputs[0]].shape, (Shape{4, 3, 16, 8}));
  EXPECT_EQ(model.tensors[model.outputs[0]].shape, (Shape{4, 5}));
}

TEST(OnnxExports, RecurrentLayers) {
  const Model model = read_data("recurrent");
  EXPECT_EQ(totals(model).parameters, 1419);
  // 7 steps of 2 samples, both directions: inputs of all steps together, hidden states step by step.
  EXPECT_THAT(op_of_type(model, "LSTM").forward.gemms, ElementsAre(Gemm{14, 20, 6, 2}, Gemm{2, 20, 5, 14}));
  EXPECT_THAT(op_of_type(model, "GRU").forward.gemms, ElementsAre(Gemm{14, 12, 10, 1}, Gemm{7, 12, 4, 2}));
  EXPECT_TRUE(op_of_type(model, "RNN").weight_is_operand);
}

TEST(OnnxExports, EinsumIsAMatrixProduct) {
  const Model model = read_data("einsum");
  ASSERT_EQ(model.operators.size(), 2U);
  EXPECT_THAT(model.operators[0].forward.gemms, ElementsAre(Gemm{5, 6, 4, 4, false}));
  EXPECT_FALSE(model.operators[0].weight_is_operand);
  // "bhid,hdo->bio" sums over h and d.
  EXPECT_THAT(model.operators[1].forward.gemms, ElementsAre(Gemm{10, 3, 8, 1, true}));
  EXPECT_TRUE(model.operators[1].weight_is_operand);
  EXPECT_EQ(totals(model).parameters, 24);
}

TEST(OnnxExports, TiedWeightsCountOnceAndAppearTwice) {
  const Model model = read_data("tied");
  EXPECT_EQ(totals(model).parameters, 1336);
  const auto tokens = std::find_if(model.parameters.begin(), model.parameters.end(), [](const Parameter& p) {
    return p.shape == Shape{11, 8};
  });
  ASSERT_NE(tokens, model.parameters.end());
  const auto index = static_cast<std::uint32_t>(tokens - model.parameters.begin());
  const auto uses = std::count_if(model.operators.begin(), model.operators.end(), [&](const Operator& op) {
    return std::count(op.parameters.begin(), op.parameters.end(), index) > 0;
  });
  EXPECT_EQ(uses, 2);
}

TEST(OnnxExports, LearnedTokensAndPositionsAreParameters) {
  const Model model = read_data("vision_tokens");
  EXPECT_EQ(totals(model).parameters, 744);
  EXPECT_THAT(parameter_names(model, true), Contains("token"));
  EXPECT_THAT(parameter_names(model, true), Contains("places"));
}

TEST(OnnxWeights, QuantizedOnesCountBehindDequantizeLinear) {
  const Model model = read_data("qdq");
  EXPECT_THAT(parameter_names(model, true), ElementsAre("w", "b"));
  EXPECT_EQ(model.parameters[0].dtype, DType::int8);
  EXPECT_TRUE(op_of_type(model, "Gemm").weight_is_operand);
  EXPECT_EQ(totals(model).parameters, 35);
}

TEST(OnnxWeights, IntegerOperators) {
  const Model model = read_data("qlinear");
  EXPECT_THAT(parameter_names(model, true), ElementsAre("w", "b", "w2"));
  EXPECT_EQ(totals(model).parameters, 72 + 4 + 28);
  EXPECT_EQ(totals(model).forward_macs, 2 * (9 * 4 * 18) + 3 * 7 * 4);
}

TEST(OnnxWeights, ConstantsCastsAndTransposesDoNotHideThem) {
  const Model model = read_data("disguised");
  EXPECT_THAT(parameter_names(model, true), ElementsAre("c", "half", "bias"));
  EXPECT_EQ(totals(model).parameters, 24 + 20 + 5);
  EXPECT_EQ(totals(model).parameter_bytes.value, 24 * 4 + 20 * 2 + 5 * 4);
}

TEST(OnnxWeights, AProductOfTwoIsWorkAndTrainsBoth) {
  const Model model = read_data("low_rank");
  EXPECT_EQ(totals(model).parameters, 64 + 16 + 16);
  EXPECT_TRUE(model.operators[0].needs_input_gradient);
  EXPECT_EQ(model.operators[0].parameters.size(), 2U);
}

TEST(OnnxOperators, OfOperatorSet23) {
  const Model model = read_data("opset23");
  EXPECT_EQ(totals(model).parameters, 24 + 6 + 6);
  EXPECT_THAT(op_of_type(model, "Attention").forward.gemms,
              ElementsAre(Gemm{6, 6, 4, 2, false}, Gemm{6, 4, 6, 2, false}));
  EXPECT_EQ(model.tensors[model.outputs[0]].shape, (Shape{1, 6, 10}));
}

TEST(OnnxOperators, FusedOnesOfOnnxruntime) {
  const Model model = read_data("microsoft");
  EXPECT_THAT(model.unknown, IsEmpty());
  EXPECT_EQ(totals(model).parameters, 80 + 48 + 16 + 192 + 24 + 64 + 16 + 96 + 12);
  EXPECT_EQ(totals(model).forward_macs, 10 * 24 * 8 + 2 * (4 * 5 * 5 * 4) + 10 * 8 * 8 + 10 * 12 * 8);
}

TEST(OnnxOperators, UnknownOnesAreListedOnceWithTheirBytes) {
  const Model model = read_data("custom");
  ASSERT_EQ(model.unknown.size(), 1U);
  EXPECT_EQ(model.unknown[0].type, "my.ops.Swirl");
  EXPECT_EQ(model.unknown[0].nodes, 2);
  EXPECT_EQ(model.unknown[0].bytes.value, 2 * 4 * (6 + 9 + 6));
  EXPECT_EQ(totals(model).parameters, 12 + 9);
}

TEST(OnnxSubgraphs, IfTakesTheBranchWithMoreArithmetic) {
  const Model model = read_data("if");
  EXPECT_EQ(totals(model).forward_macs, 2 * 9 * 4 + 2 * 4 * 4);
  EXPECT_THAT(model.notes,
              Contains("'If_2' depends on data: its else branch, the one with more arithmetic, is taken"));
}

TEST(OnnxSubgraphs, LoopMultipliesItsBody) {
  const Model model = read_data("loop");
  EXPECT_THAT(op_of_type(model, "MatMul").forward.gemms, ElementsAre(Gemm{2, 4, 4, 5}));
  EXPECT_EQ(totals(model).parameters, 16);
  EXPECT_EQ(model.tensors[model.outputs[1]].shape, (Shape{5, 2, 4}));
}

TEST(OnnxSubgraphs, ScanRunsOncePerStep) {
  const Model model = read_data("scan");
  EXPECT_THAT(op_of_type(model, "MatMul").forward.gemms, ElementsAre(Gemm{2, 4, 7, 7}));
  EXPECT_EQ(model.tensors[model.outputs[1]].shape, (Shape{7, 2, 4}));
}

TEST(OnnxSubgraphs, FunctionsAreInlined) {
  const Model model = read_data("function");
  ASSERT_EQ(model.operators.size(), 4U);
  EXPECT_EQ(model.operators[0].type, "MatMul");
  EXPECT_EQ(model.operators[3].type, "LeakyRelu");
  EXPECT_EQ(model.operators[0].name, "Block_0/MatMul_0");
  EXPECT_EQ(model.operators[2].name, "Block_1/MatMul_0");
  EXPECT_EQ(totals(model).parameters, 50);
}

TEST(OnnxGraphs, UnsortedFilesAreSorted) {
  const Model model = read_data("unsorted");
  EXPECT_EQ(model.operators[0].type, "Tanh");
  EXPECT_EQ(model.operators[1].type, "Relu");
}

TEST(OnnxGraphs, StaleShapesInTheFileAreNotBelieved) {
  const Model model = read_data("stale");
  EXPECT_EQ(model.tensors[model.outputs[0]].shape, (Shape{4, 3}));
  EXPECT_THAT(model.notes,
              ElementsAre("the file's shapes of 1 tensor contradict its operators, which are believed; "
                          "the first: 'h' is 4x3, not 1x3"));
}

TEST(OnnxGradients, NothingFlowsBackBeforeTheFirstParameter) {
  const Model model = OnnxBuilder()
                          .input("x", {2, 3})
                          .weight("w", {3, 4})
                          .node("Relu", {"x"}, {"a"})
                          .node("MatMul", {"a", "w"}, {"b"})
                          .node("Relu", {"b"}, {"c"})
                          .node("ArgMax", {"c"}, {"d"})
                          .node("Cast", {"d"}, {"e"}, {{"to", std::int64_t{1}}})
                          .output("e")
                          .read();
  std::vector<bool> needs;
  for (const Operator& op : model.operators) needs.push_back(op.needs_input_gradient);
  EXPECT_THAT(needs, ElementsAre(false, false, true, true, false));
}

struct Product {
  const char* name;
  Shape a, b;
  bool weight_left, weight_right;
  Gemm expected;
};
class OnnxMatMul : public testing::TestWithParam<Product> {};

TEST_P(OnnxMatMul, IsTheRightProduct) {
  const Product& product = GetParam();
  OnnxBuilder builder;
  if (product.weight_left) builder.weight("a", product.a);
  if (!product.weight_left) builder.input("a", product.a);
  if (product.weight_right) builder.weight("b", product.b);
  if (!product.weight_right) builder.input("b", product.b);
  const Model model = builder.node("MatMul", {"a", "b"}, {"y"}).output("y").read();
  EXPECT_THAT(model.operators[0].forward.gemms, ElementsAre(product.expected));
  EXPECT_EQ(model.operators[0].weight_is_operand, product.weight_left || product.weight_right);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, OnnxMatMul,
    testing::Values(Product{"dense", {2, 7, 3}, {3, 5}, false, true, {14, 5, 3, 1, true}},
                    Product{"experts", {4, 6, 2, 3}, {6, 3, 5}, false, true, {8, 5, 3, 6, true}},
                    Product{"weight_left", {5, 3}, {2, 3, 7}, true, false, {14, 5, 3, 1, true}},
                    Product{"attention", {2, 4, 7, 3}, {2, 4, 3, 7}, false, false, {7, 7, 3, 8, false}},
                    Product{"single_sample", {1, 4, 7, 3}, {1, 4, 3, 7}, false, false, {7, 7, 3, 4, false}},
                    Product{"shared_right", {2, 7, 3}, {1, 3, 5}, false, false, {14, 5, 3, 1, true}},
                    Product{"two_matrices", {7, 3}, {3, 5}, false, false, {7, 5, 3, 1, true}},
                    Product{"vector", {2, 3}, {3}, false, true, {2, 1, 3, 1, true}}),
    [](const auto& test) { return test.param.name; });

TEST(OnnxGemm, TransposesAndBias) {
  const Model model =
      OnnxBuilder()
          .input("x", {3, 6})
          .weight("w", {5, 3})
          .weight("b", {5})
          .node("Gemm", {"x", "w", "b"}, {"y"}, {{"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}})
          .output("y")
          .read();
  EXPECT_THAT(model.operators[0].forward.gemms, ElementsAre(Gemm{6, 5, 3}));
  EXPECT_EQ(model.operators[0].forward.flops.value, 2 * 6 * 5 * 3 + 6 * 5);
  EXPECT_EQ(model.operators[0].forward.bytes.value, 4 * (18 + 15 + 5 + 30));
}

TEST(OnnxBytes, AnEmbeddingReadsOnlyTheRowsItPicks) {
  const Model model = OnnxBuilder()
                          .input("ids", {2, 3}, 7)
                          .weight("table", {1000, 8})
                          .node("Gather", {"table", "ids"}, {"y"})
                          .output("y")
                          .read();
  EXPECT_EQ(totals(model).parameters, 8000);
  EXPECT_EQ(model.operators[0].forward.kind, WorkKind::copy);
  EXPECT_EQ(model.operators[0].forward.bytes.value, 2 * (2 * 3 * 8 * 4) + 2 * 3 * 8);
}

TEST(OnnxDimensions, ASequenceGoesToTheDimensionCalledSo) {
  std::string text = OnnxBuilder().input("x", {-1, -11, 8}).node("Relu", {"x"}, {"y"}).output("y").bytes();
  text.replace(text.find("s11"), 3, "seq");
  ModelOptions options;
  options.batch = 2;
  options.sequence = 5;
  const Model model = read_onnx(text, "test.onnx", options);
  EXPECT_THAT(model.tensors[model.inputs[0]].shape, ElementsAre(2, 5, 8));
  options.dimensions["seq"] = 6;
  EXPECT_EQ(error_of([&] { read_onnx(text, "test.onnx", options); }),
            "a sequence of 5: contradicts dimension seq=6\n  hint: give one of the two");
}

}  // namespace
}  // namespace armilla
