#include "trace/text.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error_testing.h"
#include "base/source_path_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Operator weighted(const std::string& name, std::uint32_t input, std::uint32_t output,
                  std::vector<std::uint32_t> parameters, Gemm gemm, Bytes bytes) {
  Operator op;
  op.name = name;
  op.type = "Gemm";
  op.inputs = {input};
  op.outputs = {output};
  op.parameters = std::move(parameters);
  op.forward = {WorkKind::matrix, DType::fp32, Flops(2 * gemm.macs()), bytes, {gemm}};
  op.weight_is_operand = true;
  return op;
}

// Two linear layers, m = 64 samples: (k 96 -> n 32) with a bias and a ReLU, then (k 32 -> n 16).
Model perceptron() {
  Model model;
  model.source = "mlp";
  model.batch = 64;
  model.tensors = {{"x", DType::fp32, {64, 96}},
                   {"h", DType::fp32, {64, 32}},
                   {"r", DType::fp32, {64, 32}},
                   {"y", DType::fp32, {64, 16}}};
  model.inputs = {0};
  model.outputs = {3};
  model.parameters = {
      {"w1", DType::fp32, {32, 96}, 3072}, {"b1", DType::fp32, {32}, 32}, {"w2", DType::fp32, {16, 32}, 512}};
  Operator relu;
  relu.name = "relu";
  relu.type = "Relu";
  relu.inputs = {1};
  relu.outputs = {2};
  relu.forward = {WorkKind::vector, DType::fp32, Flops(2048), Bytes(16384), {}};
  model.operators = {weighted("fc 1", 0, 1, {0, 1}, {64, 32, 96}, Bytes(4 * (6144 + 3072 + 32 + 2048))), relu,
                     weighted("fc2", 2, 3, {2}, {64, 16, 32}, Bytes(4 * (2048 + 512 + 1024)))};
  model.operators[0].needs_input_gradient = false;
  derive_layers(model);
  return model;
}

TextWorkloadOptions options_of(TextPolicy policy) {
  TextWorkloadOptions options;
  options.policy = policy;
  options.npus = 16;
  options.packages = 4;
  return options;
}

// "m n k" of the layer's own product in each pass.
std::string shapes(const ShardedLayer& layer) {
  std::ostringstream text;
  for (const auto* pass : {&layer.forward, &layer.input_gradient, &layer.weight_gradient}) {
    const Gemm& gemm = pass->at(0).gemms.at(0);
    text << gemm.m << ' ' << gemm.n << ' ' << gemm.k << (pass == &layer.weight_gradient ? "" : ", ");
  }
  return text.str();
}

std::string sizes(const TextLayer& layer) {
  std::ostringstream text;
  for (const TextPass* pass : {&layer.forward, &layer.input_gradient, &layer.weight_gradient}) {
    text << text_word(pass->collective) << ' ' << pass->bytes.value
         << (pass == &layer.weight_gradient ? "" : ", ");
  }
  return text.str();
}

std::vector<LayerCycles> no_cycles(const Model& model) {
  return std::vector<LayerCycles>(model.layers.size());
}

// The rows of the generator's table, with m 64, k 96, n 32, P 16, 4 packages of 4.
TEST(ShardLayers, DividesTheProductsAsTheGenerator) {
  const Model model = perceptron();
  const auto first = [&](TextPolicy policy) { return shapes(shard_layers(model, options_of(policy))[0]); };
  EXPECT_EQ(first(TextPolicy::data), "4 32 96, 4 96 32, 96 32 4");
  EXPECT_EQ(first(TextPolicy::model), "64 2 96, 64 96 2, 96 2 64");
  EXPECT_EQ(first(TextPolicy::hybrid_data_model), "16 8 96, 16 96 8, 96 8 16");
  TextWorkloadOptions uneven = options_of(TextPolicy::hybrid_data_model);
  uneven.packages = 8;
  EXPECT_EQ(shapes(shard_layers(model, uneven)[0]), "8 16 96, 8 96 16, 96 16 8");
  uneven.policy = TextPolicy::hybrid_model_data;
  EXPECT_EQ(shapes(shard_layers(model, uneven)[0]), "32 4 96, 32 96 4, 96 4 32");
}

TEST(ShardLayers, RoundsDownButNeverToNothing) {
  TextWorkloadOptions options = options_of(TextPolicy::data);
  options.npus = 60;
  EXPECT_EQ(shapes(shard_layers(perceptron(), options)[0]), "1 32 96, 1 96 32, 96 32 1");
  options.npus = 1000;
  EXPECT_EQ(shapes(shard_layers(perceptron(), options)[0]), "1 32 96, 1 96 32, 96 32 1");
  options.policy = TextPolicy::model;
  EXPECT_EQ(shapes(shard_layers(perceptron(), options)[1]), "64 1 32, 64 32 1, 32 1 64");
}

TEST(ShardLayers, SpreadsTheOtherOperatorsOverAllNpus) {
  const std::vector<ShardedLayer> layers =
      shard_layers(perceptron(), options_of(TextPolicy::hybrid_data_model));
  ASSERT_THAT(layers[0].forward, SizeIs(2));
  EXPECT_EQ(layers[0].forward[1].kind, WorkKind::vector);
  EXPECT_EQ(layers[0].forward[1].flops, Flops(2048 / 16));
  EXPECT_EQ(layers[0].forward[1].bytes, Bytes(16384 / 16));
  EXPECT_THAT(layers[0].input_gradient, SizeIs(2));
  EXPECT_THAT(layers[0].weight_gradient, SizeIs(1));
}

TEST(ShardLayers, SharesOutTheTrafficOfAProductByOperand) {
  TextWorkloadOptions options = options_of(TextPolicy::hybrid_data_model);
  options.packages = 8;  // 8 data parts, 2 model parts
  const Work work = shard_layers(perceptron(), options)[0].forward[0];
  EXPECT_EQ(work.bytes, Bytes(4 * ((3072 + 32) / 2 + 2048 / 16 + 6144 / 8)));
  EXPECT_EQ(work.flops, Flops(2 * 8 * 16 * 96));
}

TEST(ShardLayers, OneNpuDoesTheWholeWork) {
  const Model model = perceptron();
  const std::vector<ShardedLayer> layers = shard_layers(model, TextWorkloadOptions{});
  EXPECT_EQ(layers[0].forward[0], model.operators[0].forward);
  EXPECT_EQ(layers[0].forward[1], model.operators[1].forward);
  EXPECT_EQ(layers[1].forward[0], model.operators[2].forward);
}

TEST(ShardLayers, ModelPartsTakeWholeGroupsFirst) {
  Model model = perceptron();
  model.operators[0].forward.gemms = {{64, 4, 9, 8}};  // a convolution in 8 groups of 4 channels
  TextWorkloadOptions options = options_of(TextPolicy::model);
  options.npus = 4;
  Gemm gemm = shard_layers(model, options)[0].forward[0].gemms[0];
  EXPECT_EQ(gemm, (Gemm{64, 4, 9, 2}));
  options.npus = 16;
  gemm = shard_layers(model, options)[0].forward[0].gemms[0];
  EXPECT_EQ(gemm, (Gemm{64, 2, 9, 1}));
}

TEST(LowerToText, SizesFollowTheGeneratorsTable) {
  const Model model = perceptron();
  const auto first = [&](TextPolicy policy) {
    return sizes(lower_to_text(model, options_of(policy), no_cycles(model)).layers[0]);
  };
  const std::int64_t m = 64, n = 32, k = 96, dt = 4;
  const auto text = [&](const std::string& forward, std::int64_t f, const std::string& input, std::int64_t i,
                        const std::string& weight, std::int64_t w) {
    return forward + " " + std::to_string(f) + ", " + input + " " + std::to_string(i) + ", " + weight + " " +
           std::to_string(w);
  };
  EXPECT_EQ(first(TextPolicy::data), text("NONE", 0, "NONE", 0, "ALLREDUCE", n * k * dt));
  EXPECT_EQ(first(TextPolicy::model),
            text("ALLGATHER", m * n * dt / 16, "REDUCESCATTER", m * k * dt, "NONE", 0));
  EXPECT_EQ(first(TextPolicy::hybrid_data_model),
            text("ALLGATHER", m * n * dt / 16, "REDUCESCATTER", m * k * dt / 4, "ALLREDUCE", k * n * dt / 4));
  TextWorkloadOptions uneven = options_of(TextPolicy::hybrid_model_data);
  uneven.packages = 2;
  EXPECT_EQ(sizes(lower_to_text(model, uneven, no_cycles(model)).layers[0]),
            text("ALLGATHER", m * n * dt / 16, "REDUCESCATTER", m * k * dt / 8, "ALLREDUCE", k * n * dt / 2));
}

TEST(LowerToText, TypeAndParametersAreOptions) {
  const Model model = perceptron();
  TextWorkloadOptions options = options_of(TextPolicy::data);
  options.dtype = DType::fp16;
  EXPECT_EQ(sizes(lower_to_text(model, options, no_cycles(model)).layers[0]),
            "NONE 0, NONE 0, ALLREDUCE 6144");
  options.all_parameters = true;
  EXPECT_EQ(sizes(lower_to_text(model, options, no_cycles(model)).layers[0]),
            "NONE 0, NONE 0, ALLREDUCE 6208");
}

TEST(LowerToText, CarriesCyclesNamesAndUpdates) {
  Model model = perceptron();
  model.layers[1].name.clear();
  const TextWorkload workload =
      lower_to_text(model, options_of(TextPolicy::model), std::vector<LayerCycles>{{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(workload.policy, TextPolicy::model);
  EXPECT_EQ(workload.layers[0].name, "fc_1");
  EXPECT_EQ(workload.layers[1].name, "layer_1");
  EXPECT_EQ(workload.layers[1].forward.cycles, 4);
  EXPECT_EQ(workload.layers[1].input_gradient.cycles, 5);
  EXPECT_EQ(workload.layers[1].weight_gradient.cycles, 6);
  EXPECT_EQ(workload.layers[0].dependence, -1);
  EXPECT_EQ(workload.layers[0].update_cycles, 100);
}

TEST(LowerToText, FrozenLayersExchangeNoGradient) {
  Model model = perceptron();
  model.parameters[2].trainable = false;
  derive_layers(model);
  ASSERT_THAT(model.layers, SizeIs(1));  // what has no trainable weights is no layer of its own
  model.parameters[0].trainable = model.parameters[1].trainable = false;
  derive_layers(model);
  const std::vector<ShardedLayer> shards = shard_layers(model, options_of(TextPolicy::data));
  EXPECT_THAT(shards[0].weight_gradient, IsEmpty());
  EXPECT_EQ(sizes(lower_to_text(model, options_of(TextPolicy::data), no_cycles(model)).layers[0]),
            "NONE 0, NONE 0, NONE 0");
}

TEST(LowerToText, RefusesOptionsThatClash) {
  const Model model = perceptron();
  const auto error = [&](const TextWorkloadOptions& options) {
    return error_of([&] { lower_to_text(model, options, no_cycles(model)); });
  };
  TextWorkloadOptions options = options_of(TextPolicy::hybrid_data_model);
  options.packages = 3;
  EXPECT_EQ(error(options), "packages: 3 packages do not divide 16 NPUs");
  options.packages = 0;
  EXPECT_EQ(error(options), "packages: 0 packages do not divide 16 NPUs");
  options.npus = 0;
  EXPECT_EQ(error(options), "npus: 0 NPUs\n  hint: between 1 and 16777216");
  options = options_of(TextPolicy::data);
  options.dtype = DType::text;
  EXPECT_EQ(error(options), "dtype: 'string' has no size");
  options = options_of(TextPolicy::data);
  options.update_cycles = -1;
  EXPECT_EQ(error(options), "update: -1 cycles");
  EXPECT_EQ(error_of([&] { lower_to_text(model, TextWorkloadOptions{}, std::vector<LayerCycles>(1)); }),
            "mlp: cycles for 1 of 2 layers");
}

struct OracleLayer {
  std::string name;
  std::int64_t channels_in = 0, channels_out = 0, kernel = 0, bytes = 0;
  LayerCycles cycles;
};

std::vector<OracleLayer> oracle_layers(const std::filesystem::path& path) {
  std::vector<OracleLayer> layers;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line) && !line.starts_with("total")) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    layers.push_back({cells[1],
                      std::stoll(cells[3]),
                      std::stoll(cells[4]),
                      std::stoll(cells[5]),
                      std::stoll(cells[10]),
                      {std::stoll(cells[6]), std::stoll(cells[7]), std::stoll(cells[8])}});
  }
  return layers;
}

TEST(LowerToText, ResNet50HasTheSizesOfAstraSimsOwnWorkload) {
  const std::vector<OracleLayer> layers =
      oracle_layers(source_path("tests/reference/astra1/resnet50_layers.csv"));
  ASSERT_THAT(layers, SizeIs(54));
  // A chain of the oracle's layers, each with a batch norm's scale and shift, which its workload leaves out.
  Model model;
  model.tensors = {{"t0", DType::fp32, {1}}};
  std::vector<LayerCycles> cycles;
  for (const OracleLayer& layer : layers) {
    const auto input = static_cast<std::uint32_t>(model.tensors.size() - 1);
    const auto p = static_cast<std::uint32_t>(model.parameters.size());
    const Shape shape = {layer.channels_out, layer.channels_in, layer.kernel, layer.kernel};
    model.tensors.push_back({layer.name + ":out", DType::fp32, {1}});
    model.parameters.push_back({layer.name + ":w", DType::fp32, shape, element_count(shape, layer.name)});
    model.parameters.push_back({layer.name + ":norm", DType::fp32, {2}, 2});
    model.operators.push_back(weighted(layer.name, input, input + 1, {p, p + 1}, {1, 1, 1}, Bytes(0)));
    cycles.push_back(layer.cycles);
  }
  derive_layers(model);
  const TextWorkload workload = lower_to_text(model, TextWorkloadOptions{}, cycles);
  ASSERT_EQ(workload.layers.size(), layers.size());
  std::int64_t total = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(workload.layers[i].name, layers[i].name);
    EXPECT_EQ(workload.layers[i].weight_gradient.bytes.value, layers[i].bytes) << layers[i].name;
    EXPECT_EQ(workload.layers[i].weight_gradient.cycles, layers[i].cycles.weight_gradient);
    total += workload.layers[i].weight_gradient.bytes.value;
  }
  EXPECT_EQ(total, 102'011'648);
}

}  // namespace
}  // namespace armilla
