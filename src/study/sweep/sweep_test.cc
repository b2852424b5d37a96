#include "study/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "ir/derived/headline.h"
#include "ir/derived/metrics.h"
#include "read/study.h"
#include "study/database/database.h"
#include "study/run.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kSmallStudy = R"(
study:
  model: {name: gpt2-345m, layers: 2, sequence: 128}
  machine: dgx-a100
  plan: {ranks: 8, global_batch: 16, micro_batch: 2}
)";

class SweepTest : public testing::Test {
 protected:
  SweepTest() { std::filesystem::remove(database_); }

  // Returns its name, in the folder of all of them.
  std::string write(const std::string& name, std::string_view text) {
    const std::string path = path_for_test(name);
    std::ofstream(path) << text;
    return std::filesystem::path(path).filename().string();
  }

  SweepRequest request_of(std::string_view text) {
    SweepRequest request;
    write("sweep_test.yaml", text);
    request.file = path_for_test("sweep_test.yaml");
    request.database = database_;
    request.version = "1.2.3";
    return request;
  }
  static SweepResult run(const SweepRequest& request, std::int64_t jobs = 2) {
    Crew crew(jobs);
    return run_sweep(request, crew);
  }
  SweepResult run(std::string_view text) { return run(request_of(text)); }
  std::string refusal(std::string_view text) {
    std::string error = error_of([&] { run(text); });
    // Where tests have their files is nobody's business.
    const std::string before = path_for_test("");
    for (std::size_t at; (at = error.find(before)) != std::string::npos;) error.erase(at, before.size());
    return error;
  }

  std::string database_ = path_for_test("sweep_test.db");
};

double time_of(const SweepRun& run) {
  return run.figures.at(0);
}

TEST_F(SweepTest, AGridIsEveryCombinationAsRunWouldHaveIt) {
  const SweepResult result =
      run(std::string(kSmallStudy) + "vary: {plan.tensor: 1..4, collectives.chunks: [1, 8]}\n");
  EXPECT_THAT(result.keys, ElementsAre("plan.tensor", "collectives.chunks"));
  ASSERT_EQ(result.runs.size(), 6U);
  EXPECT_THAT(result.runs[3].values, ElementsAre("2", "8"));
  EXPECT_EQ(result.count(SweepState::done), 6);
  for (const SweepRun& run : result.runs) {
    const Config config = Config::parse(
        "model: {name: gpt2-345m, layers: 2, sequence: 128}\nmachine: dgx-a100\n"
        "plan: {ranks: 8, global_batch: 16, micro_batch: 2}\n",
        "alone.yaml", {"plan.tensor=" + run.values[0], "collectives.chunks=" + run.values[1]}, expand_name);
    const auto alone = run_study(prepare_study(read_study(config)));
    EXPECT_EQ(std::llround(time_of(run) * 1e12), alone.result.iteration.value) << run.values[0];
    const std::vector<double> figures = headline_of(alone);
    EXPECT_THAT(run.figures, testing::Pointwise(testing::NanSensitiveDoubleEq(), figures));
  }
}

TEST_F(SweepTest, AListIsRunsOfTheirOwn) {
  const std::string other = write("other_study.yaml",
                                  "model: {name: gpt2-345m, layers: 3, sequence: 128}\nmachine: dgx-a100\n"
                                  "plan: {ranks: 8}\n");
  const SweepResult result = run(std::string(kSmallStudy) + "runs: [{plan.tensor: 8}, {study: " + other +
                                 ", plan.pipeline: 2}]\nvary: {plan.zero: [0, 1]}\n");
  EXPECT_THAT(result.keys, ElementsAre("plan.tensor", "study", "plan.pipeline", "plan.zero"));
  ASSERT_EQ(result.runs.size(), 4U);
  EXPECT_EQ(result.count(SweepState::done), 4) << result.runs[2].message;
  EXPECT_THAT(result.runs[1].values, ElementsAre("8", "", "", "1"));
  EXPECT_THAT(result.runs[2].values, ElementsAre("", other, "2", "0"));
}

// Below a name, in brackets; and a key above others is set before them, however they stand.
TEST_F(SweepTest, KeysInsideOfAMachine) {
  const SweepResult result =
      run(std::string(kSmallStudy) +
          "vary:\n  plan.ranks: [16]\n  machine.dimensions[1].bandwidth: [10GB/s, 20GB/s]\n"
          "  machine: [dgx-a100, dgx-h100]\n  plan.data: [16]\n  plan.micro_batch: [1]\n  plan.zero: [3]\n");
  ASSERT_EQ(result.count(SweepState::done), 4) << result.runs[0].message;
  EXPECT_GT(time_of(result.runs[0]), time_of(result.runs[2]));
  EXPECT_NE(time_of(result.runs[0]), time_of(result.runs[1]));
}

// A setting of all runs stands below a key that varies above it, and is one key in whatever way it
// is written.
TEST_F(SweepTest, SettingsHoldBelowWhatVaries) {
  const std::string varied =
      std::string(kSmallStudy) + "vary:\n  plan.ranks: [16]\n  plan.micro_batch: [1]\n";
  SweepRequest request = request_of(varied + "  plan.zero: [3]\n  machine: [dgx-a100, dgx-h100]\n");
  const SweepResult fast = run(request);
  request.settings = {"machine.dimensions[1].bandwidth=1Gbps"};
  const SweepResult slow = run(request);
  ASSERT_EQ(slow.count(SweepState::done), 2) << slow.runs[0].message;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_GT(time_of(slow.runs[i]), 2 * time_of(fast.runs[i]));
  const std::string text = varied + "  machine.dimensions[1].bandwidth: [10GB/s, 20GB/s]\n";
  for (const std::string key : {"machine.dimensions.1.bandwidth", "machine.dimensions.rail.bandwidth"}) {
    request = request_of(text);
    request.settings = {Override(key + "=1Gbps")};
    EXPECT_THAT(error_of([&] { run(request); }),
                HasSubstr(key + "' is 'machine.dimensions[1].bandwidth', which varies in "));
    EXPECT_THAT(refusal(text + "  " + key + ": [1GB/s]\n"),
                HasSubstr("'machine.dimensions[1].bandwidth' is '" + key + "', which varies, too"));
  }
}

// Of studies that vary no one need be named beside them.
TEST_F(SweepTest, StudiesMayBeAllThatVaries) {
  const std::string a = write("sweep_a.yaml", "model: {name: gpt2-345m, layers: 1}\nmachine: dgx-a100\n");
  const std::string b = write("sweep_b.yaml", "model: {name: gpt2-345m, layers: 2}\nmachine: dgx-a100\n");
  const SweepResult result = run("vary: {study: [" + a + ", " + b + "], plan.ranks: 0..1}\n");
  EXPECT_EQ(result.count(SweepState::done), 2) << result.runs[1].message;
  EXPECT_EQ(result.runs.size(), 4U) << "no plan is of 0 ranks";
}

TEST_F(SweepTest, WhatIsKnownIsNotRunAgain) {
  const std::string text = std::string(kSmallStudy) + "vary: {plan.tensor: [1, 2]}\n";
  const SweepResult first = run(text), second = run(text);
  EXPECT_EQ(first.known(), 0);
  EXPECT_EQ(second.known(), 2);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first.runs[i].hash, second.runs[i].hash);
    EXPECT_THAT(second.runs[i].figures,
                testing::Pointwise(testing::NanSensitiveDoubleEq(), first.runs[i].figures));
  }
  // More values: only the new ones.
  EXPECT_EQ(run(std::string(kSmallStudy) + "vary: {plan.tensor: [2, 4]}\n").known(), 1);
  // The same under another version.
  SweepRequest newer = request_of(text);
  newer.version = "1.2.4";
  const SweepResult again = run(newer);
  EXPECT_EQ(again.known(), 0);
  EXPECT_EQ(again.of_other_builds, 3);
  EXPECT_EQ(second.of_other_builds, 0);
}

TEST_F(SweepTest, RefusesWhatTakesLongerThanAnyoneWaits) {
  const std::string text =
      std::string(kSmallStudy) + "vary: {network: [analytical, packet, flit], plan.tensor: [1, 2]}\n";
  SweepRequest request = request_of(text);
  request.patience.longest = Time(1000);
  try {
    Crew crew(1);
    run_sweep(request, crew);
    ADD_FAILURE() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.where, "network flit, packet");
    EXPECT_THAT(error.message, HasSubstr("4 runs are to be simulated"));
    EXPECT_THAT(error.hint, HasSubstr("--patience 1min begins all the same"));
  }
  // Networks without packets and flits take no time worth saying.
  SweepRequest fluid =
      request_of(std::string(kSmallStudy) + "vary: {network: [flow], plan.tensor: [1, 2]}\n");
  fluid.patience.longest = Time(1000);
  EXPECT_EQ(run(fluid).count(SweepState::done), 2);
}

// One run is on one core, however many are at once; and where two simulations make a run, it takes both.
TEST_F(SweepTest, ForeseesTheLongestRun) {
  const auto least_of = [&](const std::string& text) {
    SweepRequest request = request_of(std::string(kSmallStudy) + text);
    request.patience.longest = Time(1);
    Crew crew(8);
    const std::string error = error_of([&] { run_sweep(request, crew); });
    const std::string before = "at least about ";
    const std::size_t at = error.find(before);
    EXPECT_NE(at, std::string::npos) << error;
    return at == std::string::npos ? 0 : std::stod(error.substr(at + before.size()));
  };
  const double many = least_of(
      "vary: {network: [packet], model.sequence: [16, 32, 64, 128], "
      "plan.tensor: [1, 8]}\n");
  const double longest = least_of("vary: {network: [packet], plan.tensor: [1]}\n");
  EXPECT_GT(longest, 0);
  EXPECT_GE(many, longest);
  EXPECT_GE(least_of("vary: {network: [packet], plan.tensor: [1], "
                     "what_if.jitter.deviation: [0.1]}\n"),
            1.4 * longest);
}

TEST_F(SweepTest, ARunIsItsContentsNotItsName) {
  const auto study = [&](int layers) {
    return write("named_model.yaml", "model: {name: gpt2-345m, layers: " + std::to_string(layers) +
                                         ", sequence: 128}\nmachine: dgx-a100\nplan: {ranks: 8}\n");
  };
  const std::string text = "study: " + study(2) + "\nvary: {plan.tensor: [1, 2]}\n";
  EXPECT_EQ(run(text).known(), 0);
  EXPECT_EQ(run(text).known(), 2);
  study(3);
  EXPECT_EQ(run(text).known(), 0);
  study(2);
  EXPECT_EQ(run(text).known(), 2);
}

TEST_F(SweepTest, RefusedRunsStopNoOther) {
  const std::string text = std::string(kSmallStudy) + "vary: {plan.tensor: [1, 3, 2]}\n";
  const SweepResult result = run(text);
  EXPECT_EQ(result.count(SweepState::done), 2);
  EXPECT_EQ(result.runs[1].state, SweepState::failed);
  EXPECT_THAT(result.runs[1].message, HasSubstr("tensor"));
  const SweepResult again = run(text);
  EXPECT_EQ(again.known(), 3);
  EXPECT_EQ(again.runs[1].message, result.runs[1].message);
  SweepRequest retried = request_of(text);
  retried.retry = true;
  EXPECT_EQ(run(retried).known(), 2);
}

TEST_F(SweepTest, DamagedRunsAreDoneAgain) {
  const std::string text = std::string(kSmallStudy) + "vary: {plan.tensor: [1, 2, 3]}\n";
  const SweepResult first = run(text);
  const std::string one = "WHERE id = (SELECT max(id) FROM run WHERE state = 'done')";
  for (const std::string& damage :
       {"UPDATE run SET iteration_time_s = iteration_time_s + 1e-9 " + one,
        "UPDATE run SET energy_j = NULL " + one, "UPDATE run SET state = 'failed' " + one,
        "UPDATE run SET tensor = tensor + 1 " + one,
        std::string("UPDATE run SET message = '' WHERE state = 'failed'")}) {
    SCOPED_TRACE(damage);
    { Database(database_, {"database of sweeps", 0x41726d57, 4, ""}).execute(damage); }
    const SweepResult second = run(text);
    EXPECT_EQ(second.known(), 2);
    EXPECT_THAT(second.notes, testing::Contains(HasSubstr("1 run was damaged, and is done again")));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(second.runs[i].state, first.runs[i].state);
      EXPECT_THAT(second.runs[i].figures,
                  testing::Pointwise(testing::NanSensitiveDoubleEq(), first.runs[i].figures));
    }
    EXPECT_EQ(run(text).known(), 3);
  }
}

TEST_F(SweepTest, EqualRunsAreRunOnce) {
  const SweepResult result = run(std::string(kSmallStudy) + "runs: [{plan.tensor: 2}, {plan.tensor: '2'}]\n");
  EXPECT_EQ(result.count(SweepState::done), 2);
  EXPECT_EQ(result.known(), 0);
  EXPECT_EQ(result.repeated(), 1);
  EXPECT_EQ(result.runs[0].hash, result.runs[1].hash);
}

TEST_F(SweepTest, StoppedSweepsGoOn) {
  const std::string text = std::string(kSmallStudy) + "vary: {plan.tensor: 1..8, plan.zero: [0, 1]}\n";
  SweepRequest request = request_of(text);
  std::atomic<int> asked = 0;
  request.stopped = [&] { return ++asked > 60; };
  const SweepResult part = run(request, 1);
  EXPECT_FALSE(part.complete());
  const SweepResult whole = run(text);
  EXPECT_TRUE(whole.complete());
  EXPECT_EQ(whole.known(), part.count(SweepState::done));
}

TEST_F(SweepTest, TheViewHasKeysAndFigures) {
  run(std::string(kSmallStudy) + "vary: {plan.tensor: [1, 2]}\n");
  Database database(database_, {"database of sweeps", 0x41726d57, 4, ""});
  EXPECT_EQ(database.number_of("SELECT count(*) FROM sweep WHERE state = 'done' AND iteration_time_s > 0"),
            2);
  // Two jobs end in any order.
  EXPECT_EQ(database.text_of("SELECT group_concat(tensor) FROM (SELECT \"plan.tensor\" AS tensor FROM sweep "
                             "ORDER BY tensor)"),
            "1,2");
}

TEST_F(SweepTest, ValuesAreShownAsOneWritesThem) {
  const SweepResult result = run(std::string(kSmallStudy) +
                                 "vary:\n  plan: [{ranks: 8, tensor: 2, order: [tensor, context, data, "
                                 "pipeline]}]\n");
  EXPECT_THAT(result.runs[0].values,
              ElementsAre("{ranks: 8, tensor: 2, order: [tensor, context, data, pipeline]}"));
}

TEST_F(SweepTest, BadFilesAreRefused) {
  const std::string study(kSmallStudy);
  EXPECT_EQ(refusal("- 1\n"),
            "sweep_test.yaml:1:1: is not a sweep: it has no keys\n"
            "  hint: a sweep has 'study' and 'vary' (docs/formats/sweep.md)");
  EXPECT_EQ(refusal("model: gpt2-345m\nmachine: dgx-a100\n"),
            "sweep_test.yaml:1:1: is a study, and not a sweep of one\n"
            "  hint: put it under 'study' and what is to vary under 'vary' (docs/formats/sweep.md)");
  EXPECT_EQ(refusal("vary: {a: [1]}\n"), "sweep_test.yaml:1:1: the key 'study' is missing");
  EXPECT_THAT(refusal("study: nowhere.yaml\nvary: {plan.tensor: [1]}\n"),
              HasSubstr("nowhere.yaml: cannot open the file: No such file or directory"));
  EXPECT_THAT(refusal(study), HasSubstr("has nothing to vary"));
  EXPECT_THAT(refusal(study + "vary: {plan.tensor: 4}\n"), HasSubstr("vary.plan.tensor: is a single value"));
  EXPECT_THAT(refusal(study + "vary: {plan.tensor: []}\n"), HasSubstr("vary.plan.tensor: the list is empty"));
  EXPECT_THAT(refusal(study + "vary: {plan.tensor: 8..2}\n"), HasSubstr("'8..2' is not a range"));
  EXPECT_THAT(refusal(study + "runs: []\n"), HasSubstr("runs: the list is empty"));
  EXPECT_THAT(refusal(study + "runs: [{plan.zero: 1}]\nvary: {plan.zero: [1]}\n"),
              HasSubstr("'plan.zero' is set by 'runs', too"));
  EXPECT_THAT(refusal(study + "varies: {}\n"), HasSubstr("unknown key 'varies'"));
  EXPECT_THAT(
      refusal(study + "vary: {a: 1..1024, b: 1..1024, c: 1..1024, d: 1..1024, e: 1..1024, f: 1..1024}\n"),
      HasSubstr("is a sweep of more than 1,000,000 runs"));
}

// The same mistake in every run is one of the sweep.
TEST_F(SweepTest, OneMistakeIsOneError) {
  EXPECT_THAT(refusal(std::string(kSmallStudy) + "vary: {plan.tenzor: [1]}\n"),
              HasSubstr("unknown key 'tenzor'\n  hint: did you mean 'tensor'?"));
  // Of each value, in a place of its own.
  EXPECT_THAT(refusal(std::string(kSmallStudy) + "vary: {plan.tenzor: [1, 2], plan.zero: [0, 1]}\n"),
              HasSubstr("vary.plan.tenzor.0: unknown key 'tenzor'\n  hint: did you mean 'tensor'?"));
  // Two files that are missing are two mistakes.
  EXPECT_EQ(run(std::string(kSmallStudy) + "vary: {model: [a.onnx, b.onnx]}\n").count(SweepState::failed),
            2u);
  SweepRequest request = request_of(std::string(kSmallStudy) + "vary: {plan.tensor: [1, 2]}\n");
  request.settings = {"plan.tensor=4"};
  EXPECT_THAT(error_of([&] { run(request); }), HasSubstr("--set plan.tensor=4: 'plan.tensor' varies in"));
}

TEST_F(SweepTest, BadDatabasesAreRefused) {
  const std::string text = std::string(kSmallStudy) + "vary: {plan.tensor: [1]}\n";
  std::ofstream(database_)
      << "no database at all, but long enough to be looked at as if it were one..........";
  EXPECT_THAT(refusal(text), HasSubstr("is not a database, so it is not a database of sweeps"));
  std::filesystem::remove(database_);
  { const Database other(database_, {"saved search", 0x41726d53, 1, "CREATE TABLE a (b);"}); }
  EXPECT_THAT(refusal(text), HasSubstr("is a saved search, and not a database of sweeps"));
  std::filesystem::remove(database_);
  { const Database newer(database_, {"database of sweeps", 0x41726d57, 7, "CREATE TABLE a (b);"}); }
  EXPECT_THAT(refusal(text),
              HasSubstr("is a database of sweeps of form 7, and this version of Armilla knows form 4"));
  std::filesystem::remove(database_);
  const Database mine(database_, {"database of sweeps", 0x41726d57, 1, "CREATE TABLE a (b);"});
  EXPECT_THAT(refusal(text), HasSubstr("is in use by another process"));
}

}  // namespace
}  // namespace armilla
