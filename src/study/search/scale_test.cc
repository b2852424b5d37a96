#include "study/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/study.h"

namespace armilla {
namespace {

constexpr std::string_view kScaled =
    "model: {name: gpt2-345m, layers: 4, sequence: 128}\nmachine: dgx-a100\n"
    "plan: {ranks: RANKS, global_batch: 24, precision: fp16, tensor: [1, 2], pipeline: [1, 2], "
    "virtual_stages: 1,"
    " micro_batch: [1, 2], zero: 1, recompute: none}\n";

ScaleRequest scale_request(const std::string& ranks, bool weak) {
  std::string text(kScaled);
  text.replace(text.find("RANKS"), 5, ranks);
  ScaleRequest request;
  request.weak = weak;
  request.global_batch = 24;
  request.search.axes = search_axes(Config::parse(text, "study.yaml"));
  request.search.read = [text](const std::vector<Override>& settings) {
    return read_study(Config::parse(text, "study.yaml", settings, expand_name));
  };
  return request;
}

// At every size what a search of that size alone finds.
TEST(Scale, EverySizeHasItsBestPlan) {
  for (const bool weak : {false, true}) {
    const ScaleResult result = scale_plans(scale_request("[4, 8, 24]", weak));
    ASSERT_EQ(result.points.size(), 3U);
    EXPECT_TRUE(result.complete);
    for (const ScalePoint& point : result.points) {
      ScaleRequest alone = scale_request(std::to_string(point.ranks), false);
      const auto read = alone.search.read;
      alone.search.read = [&](std::vector<Override> settings) {
        settings.emplace_back("plan.global_batch=" + std::to_string(point.global_batch));
        return read(settings);
      };
      const SearchResult found = search_plans(alone.search);
      ASSERT_TRUE(point.best.has_value()) << point.ranks << " ranks: " << point.refusal;
      ASSERT_FALSE(found.ranking.empty()) << point.ranks;
      EXPECT_EQ(point.best->iteration, found.ranking.front().iteration) << point.ranks;
      EXPECT_EQ(point.global_batch, weak ? 6 * point.ranks : 24);
    }
    EXPECT_EQ(result.speedup(result.points[0]), 1);
    EXPECT_DOUBLE_EQ(result.efficiency(result.points[1]), result.speedup(result.points[1]) / 2);
  }
}

TEST(Scale, WhatCannotBeIsRefused) {
  const auto refusal = [](const std::string& ranks, bool weak) {
    return error_of([&] { scale_plans(scale_request(ranks, weak)); });
  };
  EXPECT_THAT(refusal("8", false), testing::HasSubstr("--ranks: names no two sizes"));
  EXPECT_THAT(refusal("[5, 8]", true), testing::HasSubstr("24 samples on 5 ranks would be 38.40 on 8 ranks"));
}

// Of all sizes together, before the first one.
TEST(Scale, RefusesWhatTakesLongerThanAnyoneWaits) {
  const auto on_packets = [](const std::string& ranks) {
    ScaleRequest request = scale_request(ranks, false);
    const auto read = request.search.read;
    request.search.read = [read](std::vector<Override> settings) {
      settings.emplace_back("network=packet");
      return read(settings);
    };
    return request;
  };
  std::int64_t plans = 0;
  Crew crew(1);
  for (const std::string ranks : {"4", "8"}) plans += foresee_search(on_packets(ranks).search, crew).most;
  ScaleRequest request = on_packets("[4, 8]");
  std::vector<std::string> told;
  request.search.patience.tell = [&](const std::string& sentence) { told.push_back(sentence); };
  request.search.patience.longest = Time(1);
  EXPECT_THAT(error_of([&] { scale_plans(request); }),
              testing::StartsWith("network packet: at least 2 of " + std::to_string(plans) +
                                  " plans are to be simulated"));
  EXPECT_TRUE(told.empty());
  // What may take longer is searched, and told of once.
  request.search.patience.longest = Time(500'000'000'000);
  EXPECT_EQ(scale_plans(request).points.size(), 2U);
  EXPECT_THAT(told,
              testing::ElementsAre(testing::HasSubstr(std::to_string(plans) + " plans may take up to")));
}

TEST(Scale, AnInterruptedOneHasTheSizesSoFar) {
  ScaleRequest request = scale_request("[4, 8]", false);
  request.search.threads = 1;
  int asked = 0, in_all = 0;
  request.search.stopped = [&] {
    ++in_all;
    return false;
  };
  EXPECT_TRUE(scale_plans(request).complete);
  request.search.stopped = [&] { return ++asked == in_all; };
  const ScaleResult result = scale_plans(request);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.points.size(), 1U);
  request.search.stopped = [] { return true; };
  const ScaleResult nothing = scale_plans(request);
  EXPECT_FALSE(nothing.complete);
  EXPECT_FALSE(nothing.has_plan());
  EXPECT_TRUE(nothing.points.empty());
}

}  // namespace
}  // namespace armilla
