#include "base/suggest.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(Suggest, EditDistanceIgnoresCase) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("ring", ""), 4);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("RESNET50", "resnet50"), 0);
  EXPECT_EQ(edit_distance("resnet5", "resnet50"), edit_distance("resnet50", "resnet5"));
}

TEST(Suggest, NamesTheNearest) {
  const std::vector<std::string> known = {"resnet50", "resnet101", "vgg16"};
  EXPECT_EQ(suggest("resnet5O", known), "did you mean 'resnet50'?");
  EXPECT_EQ(suggest("vg16", known), "did you mean 'vgg16'?");
}

TEST(Suggest, NamesWhatBeginsSo) {
  const std::vector<std::string> known = {"gpt2-345m", "gpt3-175b", "llama3-70b", "llama3-8b"};
  EXPECT_EQ(suggest("gpt3", known), "did you mean 'gpt3-175b'?");
  EXPECT_EQ(suggest("GPT-3", known), "did you mean 'gpt3-175b'?");
  EXPECT_EQ(suggest("llama3", known), "did you mean 'llama3-70b' or 'llama3-8b'?");
  EXPECT_EQ(suggest("gpt", known), "did you mean 'gpt2-345m' or 'gpt3-175b'?");
  EXPECT_EQ(suggest("g", known), "known: gpt2-345m, gpt3-175b, llama3-70b, llama3-8b");
  EXPECT_EQ(suggest("llama3-7b", known), "did you mean 'llama3-70b'?");
}

TEST(Suggest, ListsAllWhenNothingIsNear) {
  EXPECT_EQ(suggest("transformer", std::vector<std::string>{"vgg16", "alexnet"}), "known: vgg16, alexnet");
  EXPECT_EQ(suggest("x", std::vector<std::string>{"s", "ms"}), "known: s, ms");
  EXPECT_EQ(suggest("x", std::vector<std::string>{}), "");
}

TEST(Suggest, ListsNoMoreThanCanBeLookedThrough) {
  const std::vector<std::string> names(1000, "abcdefgh");
  const std::string hint = suggest("x", names);
  EXPECT_LT(hint.size(), 4100U);
  EXPECT_TRUE(hint.ends_with("abcdefgh, abcdefgh and 600 more")) << hint;
  EXPECT_EQ(suggest("x", std::vector<std::string>{std::string(5000, 'a')}).size(), 5007U);
}

TEST(Suggest, ALongHostileNameCostsNothing) {
  EXPECT_EQ(suggest(std::string(10'000'000, 'r'), std::vector<std::string>{"ring"}), "known: ring");
}

}  // namespace
}  // namespace armilla
