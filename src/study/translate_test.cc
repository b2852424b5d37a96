#include "study/translate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "read/machine_yaml.h"
#include "read/read.h"

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
  std::ifstream file(ARMILLA_SOURCE_DIR "/tests/data/astra1/resnet50_gradient_bytes.csv");
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

}  // namespace
}  // namespace armilla
