#include "ir/derived/layer_table.h"

#include <gmock/gmock.h>

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A convolution with a batch norm behind it, then a classifier that reuses nothing.
Model small_network() {
  Model model;
  model.name = "small";
  model.source = "small.onnx";
  model.batch = 2;
  model.tensors = {{"x", DType::fp32, {2, 3, 8, 8}},
                   {"c", DType::fp32, {2, 16, 8, 8}},
                   {"n", DType::fp32, {2, 16, 8, 8}},
                   {"y", DType::fp32, {2, 10}}};
  model.inputs = {0};
  model.outputs = {3};
  model.parameters = {{"conv.weight", DType::fp32, {16, 3, 3, 3}, 432},
                      {"conv.bias", DType::fp32, {16}, 16},
                      {"norm.scale", DType::fp32, {16}, 16},
                      {"norm.mean", DType::fp32, {16}, 16, false},
                      {"fc.weight", DType::fp16, {10, 1024}, 10240}};
  Operator conv{"conv", "Conv", {0}, {1}, {0, 1}, {}, true};
  conv.forward = {WorkKind::matrix, DType::fp32, Flops(110592), Bytes(1000), {{128, 16, 27}}};
  Operator norm{"norm", "BatchNormalization", {1}, {2}, {2, 3}, {}};
  norm.forward = {WorkKind::vector, DType::fp32, Flops(4096), Bytes(500), {}};
  Operator fc{"fc", "Gemm", {2}, {3}, {4}, {}, true};
  fc.forward = {WorkKind::matrix, DType::fp16, Flops(40960), Bytes(300), {{2, 10, 1024}}};
  model.operators = {conv, norm, fc};
  model.unknown = {{"Magic", 1, Bytes(7)}};
  model.notes = {"a note"};
  derive_layers(model);
  return model;
}

TEST(LayerTable, SumsTheOperatorsOfALayerAndNamesItAfterItsAnchor) {
  const LayerTable table = layer_table(small_network());
  EXPECT_EQ(table.model, "small");
  EXPECT_EQ(table.batch, 2);
  EXPECT_EQ(table.operators, 3);
  ASSERT_EQ(table.layers.size(), 2u);
  const LayerRow& conv = table.layers[0];
  EXPECT_EQ(conv.name, "conv");
  EXPECT_EQ(conv.operator_type, "Conv");
  EXPECT_EQ(conv.output_shape, (Shape{2, 16, 8, 8}));
  EXPECT_EQ(conv.forward_macs, 128 * 16 * 27);
  EXPECT_EQ(conv.forward_flops, Flops(110592 + 4096));
  EXPECT_EQ(conv.forward_bytes, Bytes(1500));
}

TEST(LayerTable, TellsWeightMatricesFromAllTrainableParameters) {
  const LayerTable table = layer_table(small_network());
  EXPECT_EQ(table.layers[0].weights, 432);
  EXPECT_EQ(table.layers[0].weight_bytes, Bytes(4 * 432));
  EXPECT_EQ(table.layers[0].parameters, 432 + 16 + 16);
  EXPECT_EQ(table.layers[0].parameter_bytes, Bytes(4 * 464));
  EXPECT_EQ(table.layers[1].weights, 10240);
  EXPECT_EQ(table.layers[1].weight_bytes, Bytes(2 * 10240));
}

// A table of tokens before the classifier and, tied, a second look-up behind it.
TEST(LayerTable, ALookUpInATableOfWeightsIsARowOfItsOwn) {
  Model model;
  model.tensors = {{"ids", DType::int64, {2, 5}},
                   {"e", DType::bf16, {2, 5, 8}},
                   {"y", DType::bf16, {2, 5, 4}},
                   {"f", DType::bf16, {2, 5, 8}}};
  model.parameters = {
      {"tokens", DType::bf16, {100, 8}, 800}, {"norm", DType::bf16, {8}, 8}, {"fc", DType::bf16, {4, 8}, 32}};
  Operator tokens{"tokens", "Gather", {0}, {1}, {0}, {}};
  tokens.forward = {WorkKind::copy, DType::bf16, Flops(0), Bytes(200), {}};
  Operator norm{"norm", "RMSNormalization", {1}, {1}, {1}, {}};
  Operator fc{"fc", "MatMul", {1}, {2}, {2}, {}, true};
  fc.forward = {WorkKind::matrix, DType::bf16, Flops(640), Bytes(300), {{10, 4, 8}}};
  Operator again{"again", "Gather", {0}, {3}, {0}, {}};
  again.forward = {WorkKind::copy, DType::bf16, Flops(0), Bytes(50), {}};
  model.operators = {tokens, norm, fc, again};
  derive_layers(model);

  const LayerTable table = layer_table(model);
  ASSERT_EQ(table.layers.size(), 2u);
  EXPECT_EQ(table.layers[0].name, "tokens");
  EXPECT_EQ(table.layers[0].operator_type, "Gather");
  EXPECT_EQ(table.layers[0].weights, 800);
  EXPECT_EQ(table.layers[0].parameters, 800);
  EXPECT_EQ(table.layers[0].output_shape, (Shape{2, 5, 8}));
  EXPECT_EQ(table.layers[0].forward_bytes, Bytes(200));
  EXPECT_EQ(table.layers[1].name, "fc");
  EXPECT_EQ(table.layers[1].weights, 32);
  EXPECT_EQ(table.layers[1].parameters, 40);
  EXPECT_EQ(table.layers[1].forward_bytes, Bytes(350));  // of the table already known, too
}

// Scores, softmax and context, between the keys' product, which they follow, and the output's.
TEST(LayerTable, ProductsOfActivationsAreARowOfTheirOwn) {
  Model model;
  model.tensors = {{"x", DType::bf16, {1, 5, 8}}, {"k", DType::bf16, {1, 5, 8}},
                   {"r", DType::bf16, {1, 5, 8}}, {"s", DType::bf16, {1, 5, 5}},
                   {"p", DType::bf16, {1, 5, 5}}, {"c", DType::bf16, {1, 5, 8}},
                   {"y", DType::bf16, {1, 5, 8}}};
  model.parameters = {{"k", DType::bf16, {8, 8}, 64}, {"o", DType::bf16, {8, 8}, 64}};
  const auto product = [](const char* name, std::vector<std::uint32_t> inputs, std::uint32_t output,
                          std::vector<std::uint32_t> weights, std::int64_t inner) {
    Operator op{name, "MatMul", std::move(inputs), {output}, std::move(weights), {}};
    op.weight_is_operand = !op.parameters.empty();
    op.forward = {WorkKind::matrix, DType::bf16, Flops(2 * 25 * inner), Bytes(10), {{5, 5, inner}}};
    return op;
  };
  const auto other = [](const char* name, std::uint32_t input, std::uint32_t output) {
    Operator op{name, "Softmax", {input}, {output}, {}, {}};
    op.forward = {WorkKind::vector, DType::bf16, Flops(7), Bytes(10), {}};
    return op;
  };
  model.operators = {product("k", {0}, 1, {0}, 8),         other("rotary", 1, 2),
                     product("scores", {0, 2}, 3, {}, 3),  other("softmax", 3, 4),
                     product("context", {4, 2}, 5, {}, 4), other("scale", 5, 5),
                     product("o", {5}, 6, {1}, 8)};
  derive_layers(model);

  const LayerTable table = layer_table(model);
  ASSERT_EQ(table.layers.size(), 3u);
  EXPECT_EQ(table.layers[0].name, "k");
  EXPECT_THAT(table.layers[0].operators, ElementsAre(0u, 1u, 5u));
  EXPECT_EQ(table.layers[0].forward_macs, 25 * 8);
  EXPECT_EQ(table.layers[1].name, "scores");
  EXPECT_THAT(table.layers[1].operators, ElementsAre(2u, 3u, 4u));
  EXPECT_TRUE(table.layers[1].multiplies_activations);
  EXPECT_EQ(table.layers[1].forward_macs, 25 * (3 + 4));
  EXPECT_EQ(table.layers[1].weights, 0);
  EXPECT_EQ(table.layers[2].name, "o");
}

// Not of the product that has them, and not of what adds them behind it.
TEST(LayerTable, BiasesOfExpertsAreNoWeights) {
  Model model;
  model.tensors = {{"x", DType::bf16, {6, 8}}, {"y", DType::bf16, {6, 5}}, {"z", DType::bf16, {6, 5}}};
  model.parameters = {{"up.weight", DType::bf16, {2, 5, 8}, 80},
                      {"up.bias", DType::bf16, {2, 5}, 10},
                      {"down.bias", DType::bf16, {2, 5}, 10}};
  Operator up{"up", "GroupedMatMul", {0}, {1}, {0, 1}, {}};
  up.weight_is_operand = true;
  up.forward = {WorkKind::matrix, DType::bf16, Flops(480), Bytes(10), {{6, 5, 8}}};
  Operator added{"down.add", "AddExpertBias", {1}, {2}, {2}, {}};
  added.forward = {WorkKind::vector, DType::bf16, Flops(7), Bytes(10), {}};
  model.operators = {up, added};
  derive_layers(model);
  const LayerTable table = layer_table(model);
  ASSERT_EQ(table.layers.size(), 1u);
  EXPECT_EQ(table.layers[0].weights, 80);
  EXPECT_EQ(table.layers[0].parameters, 100);
  EXPECT_THAT(table.layers[0].matrices, ElementsAre(0u));
  EXPECT_THAT(table.layers[0].other_parameters, ElementsAre(1u, 2u));
}

TEST(LayerTable, DTypeIsThatOfTheWeights) {
  const LayerTable table = layer_table(small_network());
  EXPECT_EQ(table.layers[0].dtype, DType::fp32);
  EXPECT_EQ(table.layers[1].dtype, DType::fp16);  // although its output is fp32
}

TEST(LayerTable, RowsAddUpToTheTotals) {
  const LayerTable table = layer_table(small_network());
  ModelTotals sum;
  for (const LayerRow& row : table.layers) {
    sum.parameters += row.parameters;
    sum.parameter_bytes += row.parameter_bytes;
    sum.forward_macs += row.forward_macs;
    sum.forward_flops += row.forward_flops;
    sum.forward_bytes += row.forward_bytes;
  }
  EXPECT_EQ(sum.parameters, table.totals.parameters);
  EXPECT_EQ(sum.parameter_bytes, table.totals.parameter_bytes);
  EXPECT_EQ(sum.forward_macs, table.totals.forward_macs);
  EXPECT_EQ(sum.forward_flops, table.totals.forward_flops);
  EXPECT_EQ(sum.forward_bytes, table.totals.forward_bytes);
  EXPECT_EQ(table.totals.buffer_bytes, Bytes(64));
}

TEST(LayerTable, KeepsWhatTheReaderReportedAndHasNoTimes) {
  const LayerTable table = layer_table(small_network());
  ASSERT_EQ(table.unknown.size(), 1u);
  EXPECT_EQ(table.unknown[0].type, "Magic");
  EXPECT_THAT(table.notes, ElementsAre("a note"));
  EXPECT_THAT(table.times, IsEmpty());
}

TEST(LayerTable, AModelWithoutWeightsIsOneLayer) {
  Model model = small_network();
  model.operators = {model.operators[1]};
  model.operators[0].inputs = {0};
  model.operators[0].outputs = {1};
  model.operators[0].parameters.clear();
  derive_layers(model);
  const LayerTable table = layer_table(model);
  ASSERT_EQ(table.layers.size(), 1u);
  EXPECT_EQ(table.layers[0].weights, 0);
  EXPECT_EQ(table.layers[0].dtype, DType::fp32);  // of the output
  EXPECT_TRUE(layer_table(Model{}).layers.empty());
}

TEST(LayerTable, TotalTimeAddsTheLayers) {
  LayerTable table = layer_table(small_network());
  table.times = {{Time(1), Time(2), Time(3), 4, 5, 6}, {Time(10), Time(20), Time(30), 40, 50, 60}};
  const LayerTime sum = total_time(table);
  EXPECT_EQ(sum.forward, Time(11));
  EXPECT_EQ(sum.input_gradient, Time(22));
  EXPECT_EQ(sum.weight_gradient, Time(33));
  EXPECT_EQ(sum.forward_cycles, 44);
  EXPECT_EQ(sum.input_gradient_cycles, 55);
  EXPECT_EQ(sum.weight_gradient_cycles, 66);
}

}  // namespace
}  // namespace armilla
