#include "ir/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(Parts, AreASet) {
  Parts parts = {Part::moe, Part::core_attn};
  EXPECT_TRUE(parts.has(Part::moe));
  EXPECT_FALSE(parts.has(Part::moe_act));
  EXPECT_TRUE(parts.meets({Part::mlp, Part::moe}));
  EXPECT_FALSE(parts.meets({Part::mlp}));
  EXPECT_FALSE(parts.meets({}));
  parts.add(Part::moe);
  EXPECT_EQ(parts, (Parts{Part::core_attn, Part::moe}));
  EXPECT_TRUE(Parts().empty());
  EXPECT_THAT(names_of(parts), testing::ElementsAre("core_attn", "moe"));
}

// transformer_config.py of Megatron-Core, recompute_modules, but for models that are not described.
TEST(Parts, HaveMegatronsNames) {
  std::vector<std::string_view> names;
  for (const Part part : recomputable_parts()) names.push_back(name_of(part));
  EXPECT_THAT(names, testing::ElementsAre("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act",
                                          "shared_experts"));
}

}  // namespace
}  // namespace armilla
