#include "ir/model.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace armilla {
namespace {

// input -> norm(scale) -> linear(weight 8x4, bias 4) -> relu, for 2 samples.
Model small_model() {
  Model model;
  model.name = "small";
  model.source = "small.onnx";
  model.batch = 2;
  model.tensors = {{"x", DType::fp32, {2, 8}},
                   {"n", DType::fp32, {2, 8}},
                   {"y", DType::fp32, {2, 4}},
                   {"z", DType::fp32, {2, 4}}};
  model.inputs = {0};
  model.outputs = {3};
  model.parameters = {{"scale", DType::fp32, {8}, 8, true},
                      {"mean", DType::fp32, {8}, 8, false},
                      {"weight", DType::fp32, {8, 4}, 32, true},
                      {"bias", DType::fp32, {4}, 4, true}};
  Operator norm{"norm", "BatchNormalization",
                {0},    {1},
                {0, 1}, {WorkKind::vector, DType::fp32, Flops(64), Bytes(192), {}}};
  Operator linear{"linear", "Gemm",
                  {1},      {2},
                  {2, 3},   {WorkKind::matrix, DType::fp32, Flops(136), Bytes(240), {{2, 4, 8, 1, true}}}};
  linear.weight_is_operand = true;
  Operator relu{"relu", "Relu", {2}, {3}, {}, {WorkKind::vector, DType::fp32, Flops(8), Bytes(64), {}}};
  model.operators = {norm, linear, relu};
  derive_layers(model);
  return model;
}

std::string model_error(const Model& model) {
  try {
    validate_model(model);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Model, LayersAreWeightCarryingOperatorsWithTheirNeighbours) {
  const Model model = small_model();
  ASSERT_EQ(model.layers.size(), 1U);
  EXPECT_EQ(model.layers[0].name, "linear");
  EXPECT_EQ(model.layers[0].first, 0U);
  EXPECT_EQ(model.layers[0].end, 3U);
  EXPECT_EQ(model.layers[0].weights, (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(model.layers[0].other_parameters, (std::vector<std::uint32_t>{0, 1, 3}));
}

TEST(Model, ATiedWeightBelongsToItsFirstUse) {
  Model model = small_model();
  Operator again = model.operators[1];
  again.name = "again";
  again.inputs = {1};
  again.outputs = {3};
  model.operators.push_back(again);
  derive_layers(model);
  ASSERT_EQ(model.layers.size(), 2U);
  EXPECT_EQ(model.layers[0].weights.size(), 1U);
  EXPECT_TRUE(model.layers[1].weights.empty());
  EXPECT_EQ(totals(model).parameters, 44);
}

TEST(Model, TotalsCountTrainableParametersAndBuffersApart) {
  const ModelTotals sums = totals(small_model());
  EXPECT_EQ(sums.parameters, 44);
  EXPECT_EQ(sums.parameter_bytes, Bytes(176));
  EXPECT_EQ(sums.buffer_bytes, Bytes(32));
  EXPECT_EQ(sums.forward_macs, 64);
  EXPECT_EQ(sums.forward_flops, Flops(208));
}

TEST(Model, RescalingTheBatchKeepsParameterTraffic) {
  Model model = small_model();
  rescale_batch(model, 6);
  EXPECT_EQ(model.batch, 6);
  EXPECT_EQ(model.operators[1].forward.gemms[0].m, 6);
  EXPECT_EQ(model.operators[1].forward.flops, Flops(408));
  // 240 bytes were 144 of parameters and 96 of activations.
  EXPECT_EQ(model.operators[1].forward.bytes, Bytes(144 + 3 * 96));
  EXPECT_EQ(model.tensors[3].shape, (Shape{6, 4}));
  EXPECT_NO_THROW(validate_model(model));
  EXPECT_THROW(rescale_batch(model, INT64_MAX / 2), Error);
}

TEST(Model, RescalingTheBatchLooksUpMoreRowsOfATable) {
  Model model = small_model();
  // Indices and rows of a table: 16 bytes of indices, 64 read of its 128 bytes, 64 written.
  Operator& gather = model.operators[1];
  gather.type = "Gather";
  gather.forward = {WorkKind::copy, DType::fp32, Flops(), Bytes(144), {}};
  rescale_batch(model, 6);
  EXPECT_EQ(gather.forward.bytes, Bytes(3 * 144));
}

TEST(Model, ValidationNamesWhatIsWrong) {
  EXPECT_EQ(model_error(small_model()), "");
  Model dangling = small_model();
  dangling.operators[2].inputs = {9};
  EXPECT_EQ(model_error(dangling), "relu: refers to entry 9 of 4");
  Model unordered = small_model();
  std::swap(unordered.operators[0], unordered.operators[1]);
  EXPECT_EQ(model_error(unordered), "linear: consumes 'n' before it is produced");
  Model negative = small_model();
  negative.operators[0].forward.flops = Flops(-1);
  EXPECT_EQ(model_error(negative), "norm: has negative work");
  Model uncovered = small_model();
  uncovered.layers[0].end = 2;
  EXPECT_EQ(model_error(uncovered), "small.onnx: the layers do not cover all operators");
  Model miscounted = small_model();
  miscounted.parameters[0].elements = 9;
  EXPECT_EQ(model_error(miscounted), "scale: its element count differs from its shape");
}

TEST(Model, DumpIsStable) {
  EXPECT_EQ(dump_model(small_model()),
            "model small batch 2\n"
            "parameter scale fp32 8\n"
            "parameter mean fp32 8 buffer\n"
            "parameter weight fp32 8x4\n"
            "parameter bias fp32 4\n"
            "op BatchNormalization norm flops 64 bytes 192 -> n 2x8\n"
            "op Gemm linear flops 136 bytes 240 gemm 2x4x8*1 -> y 2x4\n"
            "op Relu relu flops 8 bytes 64 -> z 2x4\n"
            "layer linear [0, 3) weights [2] other [0 1 3]\n");
}

}  // namespace
}  // namespace armilla
