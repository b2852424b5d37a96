#include "write/sweep.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error_testing.h"
#include "ir/derived/headline.h"

namespace armilla {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t figure_number(std::string_view name) {
  const auto figures = headline_figures();
  return static_cast<std::size_t>(
      std::find_if(figures.begin(), figures.end(), [&](const auto& f) { return f.name == name; }) -
      figures.begin());
}

SweepRun finished(std::vector<std::string> values, double seconds) {
  SweepRun run;
  run.values = std::move(values);
  run.state = SweepState::done;
  run.figures.assign(headline_figures().size(), std::nan(""));
  run.figures[figure_number("iteration_time_s")] = seconds;
  run.figures[figure_number("memory_needed_bytes")] = 1 << 30;
  run.hash = "0123456789abcdef0123456789abcdef";
  return run;
}

// Two bandwidths, three degrees; one run refused.
SweepResult small_sweep() {
  SweepResult result;
  result.study = "study.yaml";
  result.keys = {"machine.dimensions[0].bandwidth", "plan.tensor"};
  for (const char* const bandwidth : {"100GB/s", "25GB/s"}) {
    for (const char* const tensor : {"1", "2", "4"})
      result.runs.push_back(finished({bandwidth, tensor}, 0.5));
  }
  SweepRun& failed = result.runs[4];
  failed.state = SweepState::failed;
  failed.figures.clear();
  failed.message = "plan.tensor: does not divide <the> heads";
  result.runs[1].known = true;
  return result;
}

// By amount, as ticks; what failed throughout has no line.
TEST(SweepReport, LegendsGoInTheOrderOfTheTicks) {
  SweepResult result;
  result.keys = {"plan.tensor", "plan.pipeline", "plan.bucket"};
  for (const char* const tensor : {"1", "2"}) {
    for (const char* const pipeline : {"1", "16", "2", "4"}) {
      for (const char* const bucket : {"100MiB", "5MiB"}) {
        result.runs.push_back(finished({tensor, pipeline, bucket}, 0.5));
        if (std::string(pipeline) == "4") result.runs.back().figures.clear();
      }
    }
  }
  const std::string svg = write_sweep_svg(result, {"iteration_time_s", {"plan.tensor"}});
  std::vector<std::size_t> places;
  for (const char* const name : {"pipeline 1, plan.bucket 5MiB", "pipeline 1, plan.bucket 100MiB",
                                 "pipeline 2, plan.bucket 5MiB", "pipeline 2, plan.bucket 100MiB",
                                 "pipeline 16, plan.bucket 5MiB", "pipeline 16, plan.bucket 100MiB"}) {
    places.push_back(svg.find(name));
    EXPECT_NE(places.back(), std::string::npos) << name;
  }
  EXPECT_TRUE(std::ranges::is_sorted(places));
  EXPECT_EQ(svg.find("pipeline 4"), std::string::npos);
}

TEST(SweepReport, TableShowsFailuresByReason) {
  const std::string text = write_sweep_text(small_sweep(), {});
  EXPECT_THAT(text, HasSubstr("500.0 ms"));
  EXPECT_THAT(text, HasSubstr("6 runs: 5 done, 1 failed; 1 of them known from before\n"));
  EXPECT_THAT(text, HasSubstr("  failed: plan.tensor: does not divide <the> heads (1 run)\n"));
}

TEST(SweepReport, LongTablesAreCut) {
  SweepResult result = small_sweep();
  for (int i = 0; i < 60; ++i) result.runs.push_back(finished({"1GB/s", std::to_string(i)}, 1));
  EXPECT_THAT(write_sweep_text(result, {}), HasSubstr("... and 16 more\n"));
}

TEST(SweepReport, JsonHasEveryRun) {
  const auto json = nlohmann::json::parse(write_sweep_json(small_sweep()));
  EXPECT_EQ(json["schema"], "armilla.sweep/1");
  EXPECT_EQ(json["runs"].size(), 6U);
  EXPECT_EQ(json["runs"][0]["values"]["plan.tensor"], "1");
  EXPECT_EQ(json["runs"][0]["figures"]["iteration_time_s"], 0.5);
  EXPECT_EQ(json["runs"][0]["figures"]["memory_needed_bytes"], 1 << 30);
  EXPECT_EQ(json["runs"][0]["figures"]["mfu"], nullptr);
  EXPECT_EQ(json["runs"][4]["figures"], nullptr);
  EXPECT_EQ(json["runs"][4]["state"], "failed");
  EXPECT_EQ(json["failed"], 1);
}

TEST(SweepReport, CsvHasALineForEveryRun) {
  const std::string csv = write_sweep_csv(small_sweep());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
  EXPECT_THAT(csv, testing::StartsWith(
                       "machine.dimensions[0].bandwidth,plan.tensor,state,message,iteration_time_s,"));
  EXPECT_THAT(csv, HasSubstr("\n25GB/s,2,failed,plan.tensor: does not divide <the> heads,,"));
  EXPECT_THAT(csv, HasSubstr("\n100GB/s,1,done,,0.5,"));
}

TEST(SweepPlots, OneKeyIsLines) {
  SweepPlot plot;
  plot.over = {"machine.dimensions[0].bandwidth"};
  const std::string svg = write_sweep_svg(small_sweep(), plot);
  // 25 GB/s stands left of 100 GB/s, whatever the order of the sweep; the refused run has no point.
  EXPECT_LT(svg.find(">25GB/s<"), svg.find(">100GB/s<"));
  EXPECT_THAT(svg, HasSubstr("plan.tensor 4</text>"));
  std::size_t circles = 0;
  for (std::size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++circles;
  EXPECT_EQ(circles, 5U);
}

// By what they stand for: minutes are more than seconds, bits less than bytes, B a thousand million.
TEST(SweepPlots, QuantitiesStandByTheirSize) {
  const std::vector<std::vector<const char*>> keys = {{"10s", "30s", "1min", "5min", "0.5h"},
                                                      {"300B", "1T", "15T"},
                                                      {"50Gbps", "100Gbps", "25GB/s", "1Tbps"},
                                                      {"2", "1e1", "20"}};
  for (const auto& values : keys) {
    SweepResult result;
    result.keys = {"key"};
    for (std::size_t i = values.size(); i-- > 0;) result.runs.push_back(finished({values[i]}, 0));
    const std::string svg = write_sweep_svg(result, {});
    for (std::size_t i = 1; i < values.size(); ++i)
      EXPECT_LT(svg.find(fmt::format(">{}<", values[i - 1])), svg.find(fmt::format(">{}<", values[i])))
          << values[i];
    EXPECT_THAT(svg, HasSubstr(">0.2<")) << "the axis of what is zero everywhere";
  }
  SweepResult odd;
  odd.keys = {"key"};
  odd.runs.push_back(finished({"./aaaaa\xC3\xB6xxxxxx\xC3\xB6xxxxxx"}, 1));
  EXPECT_THAT(write_sweep_svg(odd, {}), HasSubstr(">./aaaaa\xC3\xB6...xxxxxx<title>"));
  SweepResult mixed;
  mixed.keys = {"key"};
  for (const char* const value : {"2s", "1s", "1GB/s"}) mixed.runs.push_back(finished({value}, 1));
  const std::string svg = write_sweep_svg(mixed, {});
  EXPECT_LT(svg.find(">2s<"), svg.find(">1s<")) << "in the order of the sweep";
}

TEST(SweepPlots, TwoKeysAreAHeatMap) {
  const std::string svg = write_sweep_svg(small_sweep(), {});
  EXPECT_THAT(svg, HasSubstr(">failed</text>"));
  EXPECT_THAT(svg, HasSubstr(">0.5</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("<polyline")));
}

double width_of(const std::string& svg) {
  constexpr std::string_view kBefore = " width=\"";
  return std::stod(svg.substr(svg.find(kBefore) + kBefore.size()));
}

// Beside the plot, above a map and below an axis.
TEST(SweepPlots, WhatIsWrittenIsInThePicture) {
  SweepResult result;
  result.keys = {"key", "other", "third"};
  const std::string name = "others" + std::string(100, 'x');
  for (const char* const value : {"1", "2", "a value of many letters"}) {
    for (const char* const third : {"3", "4"}) result.runs.push_back(finished({value, name, third}, 1));
  }
  const double usual = width_of(write_sweep_svg(small_sweep(), {"iteration_time_s", {"plan.tensor"}}));
  EXPECT_EQ(usual, 836);
  EXPECT_GT(width_of(write_sweep_svg(result, {"iteration_time_s", {"key"}})), usual + 300);
  EXPECT_GT(width_of(write_sweep_svg(result, {"iteration_time_s", {"key", "third"}})), usual);
  result.keys = {"key"};
  for (SweepRun& run : result.runs) run.values.resize(1);
  EXPECT_GT(width_of(write_sweep_svg(result, {})), 76 + 460 + 40) << "half of the last value";
}

TEST(SweepPlots, ValuesThatAreCloseAreNotWrittenOverEachOther) {
  SweepResult result;
  result.keys = {"key"};
  for (int power = 0; power < 30; ++power)
    result.runs.push_back(finished({std::to_string(std::int64_t{1} << power)}, 1));
  const std::string svg = write_sweep_svg(result, {});
  for (const char* const shown : {">1<", ">2<", ">4<"}) EXPECT_THAT(svg, HasSubstr(shown));
  std::size_t values = 0;
  for (std::size_t at = 0; (at = svg.find("y=\"317\"", at)) != std::string::npos; ++at) ++values;
  EXPECT_GT(values, 8U);
  EXPECT_LT(values, 20U);
}

TEST(SweepPlots, WhatCannotBeDrawnIsRefused) {
  const SweepResult sweep = small_sweep();
  const auto refusal = [&](const SweepResult& result, const SweepPlot& plot) {
    return error_of([&] { write_sweep_svg(result, plot); });
  };
  EXPECT_THAT(refusal(sweep, {"tokens", {}}), HasSubstr("--plot tokens: is not a column of a sweep"));
  EXPECT_THAT(
      refusal(sweep, {"mfu", {"plan.tensr"}}),
      HasSubstr(
          "--over plan.tensr: is not a key that varies in this sweep\n  hint: did you mean 'plan.tensor'?"));
  EXPECT_THAT(refusal(sweep, {"mfu", {"plan.tensor", "plan.tensor"}}), HasSubstr("names the same key twice"));
  EXPECT_THAT(refusal(sweep, {"mfu", {}}), HasSubstr("--plot mfu: no run has this column"));
  SweepResult wide = sweep;
  for (int i = 0; i < 30; ++i) wide.runs.push_back(finished({"1GB/s", std::to_string(i)}, 1));
  EXPECT_THAT(refusal(wide, {"iteration_time_s", {"machine.dimensions[0].bandwidth"}}),
              HasSubstr("would have 30 lines"));
  for (SweepRun& run : wide.runs) run.figures.clear();
  EXPECT_THAT(error_of([&] {
                check_sweep_plot(wide, {"mfu", {"machine.dimensions[0].bandwidth"}});
              }),
              HasSubstr("would have 30 lines"))
      << "before any is run";
}

}  // namespace
}  // namespace armilla
