#include "ir/derived/backward.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

Model one_operator(Operator op) {
  Model model;
  model.tensors = {{"x", DType::fp32, {2, 8}}, {"y", DType::fp32, {2, 4}}};
  model.inputs = {0};
  model.parameters = {{"weight", DType::fp32, {8, 4}, 32, true}, {"frozen", DType::fp32, {8, 4}, 32, false}};
  op.inputs = {0};
  op.outputs = {1};
  model.operators = {std::move(op)};
  return model;
}

Operator matrix(std::vector<std::uint32_t> parameters, bool weight_is_operand) {
  Operator op{"product",
              "Gemm",
              {},
              {},
              std::move(parameters),
              {WorkKind::matrix, DType::fp32, Flops(2 * 64 + 8), Bytes(100), {{2, 4, 8, 1, true}}}};
  op.weight_is_operand = weight_is_operand;
  return op;
}

TEST(Backward, AProductWithAWeightSplitsInTwo) {
  const Model model = one_operator(matrix({0}, true));
  const Work input = input_gradient(model, model.operators[0]);
  EXPECT_EQ(input.gemms, (std::vector<Gemm>{{2, 8, 4, 1, true}}));
  EXPECT_EQ(input.flops, Flops(2 * 64 + 8));
  EXPECT_EQ(input.bytes, Bytes(100));
  const Work weight = weight_gradient(model, model.operators[0]);
  EXPECT_EQ(weight.gemms, (std::vector<Gemm>{{8, 4, 2, 1, false}}));
}

TEST(Backward, TheFirstLayerHasNoInputGradient) {
  Operator op = matrix({0}, true);
  op.needs_input_gradient = false;
  const Model model = one_operator(op);
  EXPECT_EQ(input_gradient(model, model.operators[0]).kind, WorkKind::none);
  EXPECT_EQ(weight_gradient(model, model.operators[0]).kind, WorkKind::matrix);
}

TEST(Backward, AFrozenWeightHasNoGradient) {
  const Model model = one_operator(matrix({1}, true));
  EXPECT_EQ(weight_gradient(model, model.operators[0]).kind, WorkKind::none);
}

TEST(Backward, AProductOfActivationsHasBothUnderInputGradient) {
  const Model model = one_operator(matrix({}, false));
  const Work input = input_gradient(model, model.operators[0]);
  EXPECT_EQ(input.gemms, (std::vector<Gemm>{{2, 8, 4, 1, true}, {8, 4, 2, 1, false}}));
  EXPECT_EQ(input.flops, Flops(4 * 64 + 8));
  EXPECT_EQ(input.bytes, Bytes(200));
  EXPECT_EQ(weight_gradient(model, model.operators[0]).kind, WorkKind::none);
}

TEST(Backward, ElementwiseWorkReadsTheIncomingGradient) {
  const Model model =
      one_operator({"relu", "Relu", {}, {}, {}, {WorkKind::vector, DType::fp32, Flops(8), Bytes(64), {}}});
  const Work input = input_gradient(model, model.operators[0]);
  EXPECT_EQ(input.flops, Flops(16));
  EXPECT_EQ(input.bytes, Bytes(64 + 32));
}

TEST(Backward, AViewHasNone) {
  Operator op{"flatten", "Flatten", {}, {}, {}, {}};
  op.is_view = true;
  const Model model = one_operator(op);
  EXPECT_EQ(input_gradient(model, model.operators[0]).kind, WorkKind::none);
  EXPECT_EQ(weight_gradient(model, model.operators[0]).kind, WorkKind::none);
}

TEST(Backward, AnEmbeddingAtTheInputStillHasItsTablesGradient) {
  Operator op{"embedding", "Gather", {}, {}, {0}, {WorkKind::copy, DType::fp32, Flops(0), Bytes(64), {}}};
  op.needs_input_gradient = false;
  const Model model = one_operator(op);
  EXPECT_EQ(weight_gradient(model, model.operators[0]).bytes, Bytes(64 + 32));
}

// Flash attention, scores and weighted sum: the backward kernel repeats the scores.
TEST(Backward, RepeatedArithmeticCountsWithTheInputGradient) {
  Operator op = matrix({}, false);
  op.forward.gemms.push_back({2, 8, 4, 1, true});
  op.forward.flops = Flops(2 * 128);
  op.repeated_forward = 0.5;
  const Model model = one_operator(op);
  const Work input = input_gradient(model, model.operators[0]);
  EXPECT_EQ(input.flops, Flops(4 * 128 + 128));
  EXPECT_EQ(input.gemms.size(), 5U);
  EXPECT_EQ(input.gemms.back(), (Gemm{2, 4, 8, 1, true}));
}

TEST(Backward, AMaskSparesEveryProductTheSameShare) {
  Operator op = matrix({}, false);
  op.forward.flops = Flops(64);  // half of the product's
  const Model model = one_operator(op);
  EXPECT_EQ(input_gradient(model, model.operators[0]).flops, Flops(128));
}

TEST(Backward, AShareOfTheWorkHasItsShareOfGradients) {
  const Operator op = matrix({0}, true);
  const Work half{WorkKind::matrix, DType::bf16, Flops(64), Bytes(50), {{1, 4, 8, 1, true}}};
  EXPECT_EQ(input_gradient(op, half, Bytes(4)).gemms, (std::vector<Gemm>{{1, 8, 4, 1, true}}));
  EXPECT_EQ(weight_gradient(op, half, Bytes(4), true).flops, Flops(64));
  EXPECT_EQ(weight_gradient(op, half, Bytes(4), false).kind, WorkKind::none);
}

}  // namespace
}  // namespace armilla
