#include "study/run.h"

#include <gtest/gtest.h>

#include "read/read.h"
#include "read/study.h"

namespace armilla {
namespace {

TEST(LayerCosts, SumsEveryOperatorOfALayer) {
  const Model model = read_model("vgg11", {});
  const auto cost = make_cost_model({"systolic", {}, "test"}, load_device("tpu-v4", "test"));
  const LayerTable table = costed_layers(model, *cost, "systolic");
  ASSERT_EQ(table.times.size(), 11U);
  // 64 filters of 3x3x3 over 224x224 pixels on a 256x256 weight-stationary array: one fold of 2*256 + 256 +
  // 50176 - 2 cycles.
  EXPECT_EQ(table.times[0].forward_cycles, 50942);
  EXPECT_EQ(table.times[0].input_gradient_cycles, 0) << "nothing trainable lies before the first layer";
  EXPECT_GT(table.times[1].input_gradient_cycles, 0);
  for (const LayerTime& time : table.times) EXPECT_GT(time.weight_gradient, Time(0));
}

}  // namespace
}  // namespace armilla
