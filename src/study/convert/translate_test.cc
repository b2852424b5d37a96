#include "study/translate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/cases_testing.h"
#include "base/source_path_testing.h"
#include "ir/derived/layer_table.h"
#include "read/read.h"
#include "read/study.h"

namespace armilla {
namespace {

TextWorkload translated(const std::string& name, const std::string& compute) {
  const auto cost = make_cost_model(parse_component(compute, "test"), load_device("a100-80gb-sxm", "test"));
  TextWorkloadOptions options;
  options.npus = 8;
  return translate(read_model(name, {{}, 8}), options, *cost);
}

// ASTRA-sim's own ResNet-50 workload: 54 layers whose weight gradients are 4 bytes per weight.
TEST(Translate, ResNet50HasTheGradientSizesOfAstraSimsWorkload) {
  std::ifstream file(source_path("tests/data/astra1/resnet50_gradient_bytes.csv"));
  ASSERT_TRUE(file.is_open());
  std::map<std::int64_t, int> expected, given;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) ++expected[std::stoll(line.substr(line.find(',') + 1))];
  const TextWorkload workload = translated("resnet50", "systolic");
  for (const TextLayer& layer : workload.layers) ++given[layer.weight_gradient.bytes.value];
  EXPECT_EQ(workload.layers.size(), 54U);
  EXPECT_EQ(given, expected);
}

TEST(Translate, CyclesAreThoseOfTheArrayOrNanoseconds) {
  const TextWorkload cycles = translated("vgg11", "systolic");
  const TextWorkload nanoseconds_ = translated("vgg11", "roofline");
  ASSERT_EQ(cycles.layers.size(), 11U);
  EXPECT_GE(cycles.layers[0].forward.cycles, 50942);
  // The first layer moves about 26 MB of activations per sample at no more than 2.039 TB/s.
  EXPECT_GT(nanoseconds_.layers[0].forward.cycles, 10'000);
  EXPECT_LT(nanoseconds_.layers[0].forward.cycles, 1'000'000);
}

// Whatever is trained is exchanged: under every policy with gradients, with all of them and but for biases
// and norms; a tied table once.
TEST(Translate, GradientsAreThoseOfAllParameters) {
  int number = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("models"))) {
    if (entry.path().extension() == ".md") continue;
    if (number++ % kCaseStep != 0) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Model model = read_model(entry.path().string(), {{}, 1});
    std::int64_t vectors = 0;  // biases, also those of several experts in one table; norms
    for (const Parameter& parameter : model.parameters) {
      const bool is_vector = parameter.shape.size() < 2 || parameter.name.ends_with(".bias");
      vectors += parameter.trainable && is_vector ? parameter.elements : 0;
    }
    const std::int64_t parameters = totals(model).parameters;
    for (const TextPolicy policy :
         {TextPolicy::data, TextPolicy::hybrid_data_model, TextPolicy::hybrid_model_data}) {
      for (const bool all : {true, false}) {
        TextWorkloadOptions options;
        options.policy = policy;
        options.npus = 4;
        options.packages = 2;
        options.dtype = DType::fp32;
        options.all_parameters = all;
        const std::vector<LayerCycles> none(layer_rows(model).size());
        const TextWorkload workload = lower_to_text(model, options, none);
        const std::int64_t model_parts = policy == TextPolicy::data ? 1 : 2;
        std::int64_t bytes = 0;
        for (const TextLayer& layer : workload.layers) bytes += layer.weight_gradient.bytes.value;
        EXPECT_EQ(bytes * model_parts, 4 * (all ? parameters : parameters - vectors));
      }
    }
  }
}

TEST(Translate, EmbeddingsAreLayers) {
  const auto first = [](const std::string& name) { return translated(name, "roofline").layers.front(); };
  // 128,256 tokens of 4096 values of two bytes.
  EXPECT_EQ(first("llama3-8b").name, "embedding.tokens");
  EXPECT_EQ(first("llama3-8b").weight_gradient.bytes, Bytes(525'336'576 * 2));
  EXPECT_EQ(first("llama3-8b").input_gradient.collective, std::nullopt);
  EXPECT_EQ(first("dlrm").name, "embedding.tables");
  EXPECT_GT(first("gpt2-345m").weight_gradient.bytes, Bytes(0));
}

}  // namespace
}  // namespace armilla
