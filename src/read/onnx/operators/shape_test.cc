// Output shapes, operator by operator: the examples are small enough to check by the operator's definition.
#include <gmock/gmock.h>

#include "base/error_testing.h"
#include "read/onnx/builder_testing.h"
#include "read/read.h"

namespace armilla {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Ints = std::vector<std::int64_t>;

struct ShapeCase {
  const char* name;
  OnnxBuilder builder;
  std::vector<Shape> expected;
  int opset = 17;
};

OnnxBuilder one(const std::string& type, const std::vector<Shape>& inputs,
                const std::vector<BuilderAttribute>& attributes = {}, std::size_t outputs = 1,
                const std::string& domain = "") {
  OnnxBuilder builder;
  std::vector<std::string> names;
  for (const Shape& shape : inputs) {
    names.push_back("x" + std::to_string(names.size()));
    builder.input(names.back(), shape);
  }
  std::vector<std::string> results;
  for (std::size_t i = 0; i < outputs; ++i) {
    results.push_back("y" + std::to_string(i));
    builder.output(results.back());
  }
  builder.node(type, names, results, attributes, domain);
  return builder;
}

std::vector<Shape> outputs_of(const Model& model) {
  std::vector<Shape> shapes;
  for (const std::uint32_t t : model.outputs) {
    EXPECT_EQ(model.tensors[t].kind, ValueKind::tensor);
    shapes.push_back(model.tensors[t].shape);
  }
  return shapes;
}

class OnnxShape : public testing::TestWithParam<ShapeCase> {};

TEST_P(OnnxShape, FollowsTheDefinition) {
  EXPECT_EQ(outputs_of(GetParam().builder.read({}, GetParam().opset)), GetParam().expected);
}

const std::string kPreview = "ai.onnx.preview";
const std::string kTraining = "ai.onnx.preview.training";
const std::string kMl = "ai.onnx.ml";

std::vector<ShapeCase> signal_cases() {
  const BuilderAttribute onesided{"onesided", std::int64_t{1}};
  const BuilderAttribute inverse{"inverse", std::int64_t{1}};
  const auto dft20 = [](const Shape& x, const std::vector<BuilderAttribute>& attributes) {
    return OnnxBuilder()
        .input("x", x)
        .integer("a", 1)
        .node("DFT", {"x", "", "a"}, {"y"}, attributes)
        .output("y");
  };
  return {
      {"dft_17_default_axis", one("DFT", {{1, 10, 12, 1}}), {{1, 10, 12, 2}}},
      {"dft_17_onesided", one("DFT", {{1, 10, 12, 1}}, {onesided}), {{1, 6, 12, 2}}},
      {"dft_17_inverse", one("DFT", {{1, 10, 12, 2}}, {inverse}), {{1, 10, 12, 2}}},
      {"dft_17_real_signal", one("DFT", {{1, 6, 12, 2}}, {onesided, inverse}), {{1, 10, 12, 1}}},
      {"dft_20_axis", dft20({1, 10, 12, 1}, {onesided}), {{1, 6, 12, 2}}, 20},
      {"dft_20_real_signal", dft20({1, 6, 12, 2}, {onesided, inverse}), {{1, 10, 12, 1}}, 20},
      {"dft_20_default_axis", one("DFT", {{1, 10, 12, 1}}, {onesided}), {{1, 10, 7, 2}}, 20},
      {"hann_window", OnnxBuilder().integer("n", 12).node("HannWindow", {"n"}, {"y"}).output("y"), {{12}}},
  };
}

std::vector<ShapeCase> image_cases() {
  return {
      {"deform_conv",
       one("DeformConv", {{1, 4, 5, 5}, {6, 2, 3, 3}, {1, 18, 3, 3}}, {{"group", std::int64_t{2}}}),
       {{1, 6, 3, 3}},
       19},
      {"max_unpool",
       one("MaxUnpool", {{1, 1, 2, 2}, {1, 1, 2, 2}},
           {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}),
       {{1, 1, 4, 4}}},
      {"roi_align",
       one("RoiAlign", {{2, 3, 8, 8}, {5, 4}, {5}},
           {{"output_height", std::int64_t{4}}, {"output_width", std::int64_t{6}}}),
       {{5, 3, 4, 6}}},
      {"roi_pool", one("MaxRoiPool", {{2, 3, 8, 8}, {5, 5}}, {{"pooled_shape", Ints{2, 7}}}), {{5, 3, 2, 7}}},
      {"grid_sample", one("GridSample", {{2, 3, 8, 8}, {2, 5, 6, 2}}), {{2, 3, 5, 6}}},
      {"affine_grid",
       OnnxBuilder()
           .input("t", {2, 2, 3})
           .ints("s", {2, 3, 4, 5})
           .node("AffineGrid", {"t", "s"}, {"y"})
           .output("y"),
       {{2, 4, 5, 2}},
       20},
      {"col2im",
       OnnxBuilder()
           .input("x", {1, 5, 5})
           .ints("image", {5, 5})
           .ints("block", {1, 5})
           .node("Col2Im", {"x", "image", "block"}, {"y"})
           .output("y"),
       {{1, 1, 5, 5}},
       18},
      {"center_crop_pad",
       OnnxBuilder()
           .input("x", {20, 8, 3})
           .ints("s", {10, 9})
           .node("CenterCropPad", {"x", "s"}, {"y"}, {{"axes", Ints{0, 1}}})
           .output("y"),
       {{10, 9, 3}},
       18},
      {"determinant", one("Det", {{2, 3, 4, 4}}), {{2, 3}}},
  };
}

std::vector<ShapeCase> sequence_model_cases() {
  const BuilderAttribute q_heads{"q_num_heads", std::int64_t{4}};
  const BuilderAttribute kv_heads{"kv_num_heads", std::int64_t{2}};
  return {
      {"linear_attention",
       one("LinearAttention", {{2, 5, 32}, {2, 5, 16}, {2, 5, 12}},
           {q_heads, kv_heads, {"update_rule", "linear"}}, 2),
       {{2, 5, 24}, {2, 2, 8, 6}},
       27},
      {"causal_convolution",
       one("CausalConvWithState", {{2, 6, 9}, {6, 1, 4}}, {}, 2),
       {{2, 6, 9}, {2, 6, 3}},
       27},
      {"flex_attention",
       one("FlexAttention", {{2, 4, 5, 8}, {2, 2, 7, 8}, {2, 2, 7, 6}}, {}, 1, kPreview),
       {{2, 4, 5, 6}}},
      {"loss_of_each",
       one("NegativeLogLikelihoodLoss", {{3, 5, 6}, {3, 6}}, {{"reduction", "none"}}),
       {{3, 6}}},
      {"mean_loss", one("SoftmaxCrossEntropyLoss", {{3, 5, 6}, {3, 6}}, {}, 2), {{}, {3, 5, 6}}},
      {"gradient", one("Gradient", {{3, 4}, {4}}, {}, 2, kTraining), {{3, 4}, {4}}},
      {"adam",
       one("Adam", {{}, {}, {2}, {3}, {2}, {3}, {2}, {3}, {2}, {3}}, {}, 6, kTraining),
       {{2}, {3}, {2}, {3}, {2}, {3}}},
      {"momentum", one("Momentum", {{}, {}, {2}, {2}, {2}}, {}, 2, kTraining), {{2}, {2}}},
      {"features", one("ArrayFeatureExtractor", {{3, 4}, {2}}, {}, 1, kMl), {{3, 2}}},
      {"trees", one("TreeEnsemble", {{3, 4}}, {{"n_targets", std::int64_t{2}}}, 1, kMl), {{3, 2}}},
      {"linear_classifier",
       one("LinearClassifier", {{3, 4}}, {{"classlabels_ints", Ints{0, 1, 2}}}, 2, kMl),
       {{3}, {3, 3}}},
      {"one_hot_encoder", one("OneHotEncoder", {{3}}, {{"cats_int64s", Ints{1, 2, 3, 4}}}, 1, kMl), {{3, 4}}},
      {"tf_idf", one("TfIdfVectorizer", {{2, 6}}, {{"ngram_indexes", Ints{0, 2, 6, 1}}}), {{2, 7}}},
  };
}

INSTANTIATE_TEST_SUITE_P(Signals, OnnxShape, testing::ValuesIn(signal_cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Images, OnnxShape, testing::ValuesIn(image_cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Learning, OnnxShape, testing::ValuesIn(sequence_model_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(OnnxBounds, TheLargestSizeIsTakenAndAnnounced) {
  const Model model = OnnxBuilder()
                          .input("x", {2, 3})
                          .node("NonZero", {"x"}, {"at"})
                          .node("Transpose", {"at"}, {"y"})
                          .output("y")
                          .read();
  EXPECT_THAT(outputs_of(model), ElementsAre(Shape{6, 2}));
  EXPECT_THAT(model.notes,
              Contains("the size of one tensor depends on data; the largest possible is taken: 'at' is 2x6"));
}

TEST(OnnxBounds, WhatTheFileRecordsGoesBefore) {
  const Model model = OnnxBuilder()
                          .input("x", {2, 3})
                          .node("NonZero", {"x"}, {"at"})
                          .value_info("at", {2, 4}, 7)
                          .node("Transpose", {"at"}, {"y"})
                          .output("y")
                          .read();
  EXPECT_THAT(outputs_of(model), ElementsAre(Shape{4, 2}));
  EXPECT_THAT(model.notes, IsEmpty());
}

TEST(OnnxBounds, UniqueOfAnAxis) {
  const Model model = one("Unique", {{4, 5}}, {{"axis", std::int64_t{1}}}, 4).read();
  EXPECT_THAT(outputs_of(model), ElementsAre(Shape{4, 5}, Shape{5}, Shape{5}, Shape{5}));
  EXPECT_THAT(model.notes, Contains(HasSubstr("the sizes of 3 tensors depend on data")));
}

TEST(OnnxBounds, BoxesAreAtMostThoseAskedFor) {
  const Model model = OnnxBuilder()
                          .input("boxes", {1, 60, 4})
                          .input("scores", {1, 5, 60})
                          .integer("most", 10)
                          .node("NonMaxSuppression", {"boxes", "scores", "most"}, {"y"})
                          .output("y")
                          .read();
  EXPECT_THAT(outputs_of(model), ElementsAre(Shape{50, 3}));
}

TEST(OnnxEmpty, AnEmptyCacheIsAPrefill) {
  const OnnxBuilder builder = OnnxBuilder()
                                  .input("past", {1, 2, -1, 4})
                                  .input("key", {1, 2, 5, 4})
                                  .node("Concat", {"past", "key"}, {"all"}, {{"axis", std::int64_t{2}}})
                                  .output("all");
  EXPECT_THAT(outputs_of(builder.read({{{"s1", 0}}, {}})), ElementsAre(Shape{1, 2, 5, 4}));
  EXPECT_THAT(outputs_of(builder.read({{{"s1", 3}}, {}})), ElementsAre(Shape{1, 2, 8, 4}));
  EXPECT_EQ(error_of([&] {
              builder.read({{{"s1", -3}}, {}});
            }),
            "--dim s1=-3: a dimension must not be negative");
}

TEST(OnnxEmpty, AFixedDimensionMayBeNothing) {
  EXPECT_THAT(outputs_of(one("CastLike", {{3, 4}, {0}}).read()), ElementsAre(Shape{3, 4}));
  EXPECT_THAT(outputs_of(one("MatMul", {{3, 0}, {0, 4}}).read()), ElementsAre(Shape{3, 4}));
}

TEST(OnnxTypes, TheNarrowestIntegersAreRead) {
  for (const int type : {21, 22, 23, 24, 25, 26}) {
    const Model model = OnnxBuilder()
                            .input("x", {5}, type)
                            .node("Cast", {"x"}, {"y"}, {{"to", std::int64_t{1}}})
                            .output("y")
                            .read({}, 25);
    EXPECT_NE(model.tensors[model.inputs[0]].dtype, DType::unknown) << type;
    if (type >= 25) {
      EXPECT_EQ(model.operators[0].forward.bytes.value, 2 + 5 * 4);
    }
  }
}

TEST(OnnxConstants, AModelOfConstantsAloneHasOutputsAndNothingToDo) {
  const Model model = OnnxBuilder().ints("c", {1, 2}).node("Identity", {"c"}, {"y"}).output("y").read();
  EXPECT_THAT(outputs_of(model), ElementsAre(Shape{2}));
  EXPECT_THAT(model.operators, IsEmpty());
  EXPECT_THAT(model.notes,
              Contains("nothing in the model depends on an input, so there is nothing to simulate"));
  EXPECT_EQ(error_of([&] { require_work(model); }),
            "test.onnx: nothing in the model depends on an input, so there is nothing to simulate\n  hint: "
            "'armilla "
            "layers' shows what it holds");
}

TEST(OnnxWork, DeformConvInterpolatesWhatItMultiplies) {
  const Model model = one("DeformConv", {{1, 4, 5, 5}, {6, 4, 3, 3}, {1, 18, 3, 3}}).read({}, 19);
  const std::int64_t sampled = 9 * 4 * 9;  // positions, channels, window
  EXPECT_THAT(model.operators[0].forward.gemms, ElementsAre(Gemm{9, 6, 36, 1}));
  EXPECT_EQ(model.operators[0].forward.flops.value, 2 * 9 * 6 * 36 + 8 * sampled);
}

TEST(OnnxWork, ATransformTakesFiveNLogN) {
  // 2 * 3 transforms of 8 complex points, and half of that for real ones.
  const Model complex = one("DFT", {{2, 8, 3, 2}}).read();
  EXPECT_EQ(complex.operators[0].forward.flops.value, 6 * 5 * 8 * 3);
  const Model real = one("DFT", {{2, 8, 3, 1}}).read();
  EXPECT_EQ(real.operators[0].forward.flops.value, 6 * 5 * 8 * 3 / 2);
}

TEST(OnnxWork, LinearAttentionIsTwoProductsOfEveryToken) {
  const Model model =
      one("LinearAttention", {{2, 5, 32}, {2, 5, 16}, {2, 5, 12}},
          {{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}, {"update_rule", "linear"}})
          .read({}, 27);
  EXPECT_THAT(model.operators[0].forward.gemms,
              ElementsAre(Gemm{5, 6, 8, 8, false}, Gemm{8, 6, 5, 4, false}));
}

TEST(OnnxWork, ModifiersOfFlexAttentionAreArithmeticInsideOfIt) {
  const BuilderGraph half =
      OnnxBuilder().input("s", {2, 4, 5, 7}).node("Mul", {"s", "s"}, {"t"}).output("t").graph();
  const std::vector<Shape> qkv = {{2, 4, 5, 8}, {2, 2, 7, 8}, {2, 2, 7, 6}};
  const Model plain = one("FlexAttention", qkv, {}, 1, kPreview).read();
  const Model modified = one("FlexAttention", qkv, {{"score_mod", half}}, 1, kPreview).read();
  ASSERT_EQ(modified.operators.size(), 1U);
  EXPECT_EQ(modified.operators[0].forward.flops.value,
            plain.operators[0].forward.flops.value + 2 * 4 * 5 * 7);
  EXPECT_EQ(modified.operators[0].forward.bytes, plain.operators[0].forward.bytes);
}

}  // namespace
}  // namespace armilla
