#include "study/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error_testing.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

// Enough work per operator that the host stays ahead; tensor parallelism is not hidden.
std::string study_text(const std::string& plan, const std::string& machine = "dgx-h100") {
  return "model: gpt2-345m\nmachine: " + machine + "\nplan: {host: compiled, " + plan + "}\n";
}
const std::string kComputing = "ranks: 1, batch: 8, micro_batches: 1, recompute: full";
const std::string kTalking = "ranks: 8, tensor: 8, batch: 8, micro_batches: 1";

MeasuredStudy step_of(const std::string& text, Time measured) {
  const Config config = Config::parse(text, "study.yaml");
  return {"study.yaml", config, prepare_study(read_study(config)), measured, "--measured"};
}

Time predicted(Study study, double compute, double links) {
  study.machine.device.kernels->sustained *= compute;
  for (Dimension& dimension : study.machine.dimensions) dimension.efficiency *= links;
  return run_study(study).result.iteration;
}

// What a cluster with those factors would have measured.
MeasuredStudy step_with(const std::string& plan, double compute, double links) {
  MeasuredStudy step = step_of(study_text(plan), {});
  step.measured = predicted(step.study, compute, links);
  return step;
}

TEST(Calibrate, OneStepScalesComputation) {
  const Calibration found = calibrate({step_with(kComputing, 0.8, 1)});
  EXPECT_NEAR(found.compute, 0.8, 0.005);
  EXPECT_EQ(found.communication, 1);
  ASSERT_EQ(found.factors.size(), 1U);
  EXPECT_EQ(found.factors[0].key, "device.kernels.sustained");
  EXPECT_NEAR(in_seconds(found.steps[0].after) / in_seconds(found.steps[0].measured), 1, 0.001);
}

TEST(Calibrate, OtherDevicesOfTheMachineAreLeftAsTheyAre) {
  MeasuredStudy step = step_of(
      "model: gpt2-345m\n"
      "machine:\n"
      "  name: mixed\n"
      "  device: h100-sxm\n"
      "  devices: [{ranks: 1, device: a100-80gb-sxm}]\n"
      "  dimensions: [{name: rack, kind: Switch, size: 2, bandwidth: 100GB/s, latency: 2us}]\n"
      "plan: {host: compiled, ranks: 2, batch: 8, recompute: full}\n",
      {});
  step.measured = Time(run_study(step.study).result.iteration.value * 11 / 10);
  const std::vector<std::string> notes = calibrate({step}).notes;
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note.find("those that have others are left as they are") != std::string::npos;
  }));
}

TEST(Calibrate, TwoStepsTellComputationFromCommunication) {
  const Calibration found = calibrate({step_with(kComputing, 0.85, 0.5), step_with(kTalking, 0.85, 0.5)});
  EXPECT_NEAR(found.compute, 0.85, 0.02);
  EXPECT_NEAR(found.communication, 0.5, 0.05);
  // Twice the same step does not.
  const Calibration same = calibrate({step_with(kTalking, 0.85, 0.5), step_with(kTalking, 0.85, 0.5)});
  EXPECT_EQ(same.communication, 1);
  EXPECT_EQ(same.notes.size(), 1U);
}

// Slow links that computation hides on the machine as it is: nothing there says that slower ones would not.
TEST(Calibrate, FindsLinksThatAreHiddenAsTheMachineIs) {
  constexpr double kCompute = 0.8, kLinks = 0.3;
  std::vector<MeasuredStudy> steps;
  for (const std::string plan : {"global_batch: 16, zero: 3", "global_batch: 64, tensor: 2"}) {
    steps.push_back(
        step_of("model: {name: llama3-8b, layers: 4}\nmachine: dgx-h100\nplan: {host: compiled, ranks: "
                "16, micro_batch: 1, " +
                    plan + "}\n",
                {}));
    steps.back().measured = predicted(steps.back().study, kCompute, kLinks);
  }
  const Calibration found = calibrate(steps);
  EXPECT_NEAR(found.compute, kCompute, 0.01);
  EXPECT_NEAR(found.communication, kLinks, 0.01);
  EXPECT_TRUE(found.notes.empty());
}

TEST(Calibrate, MachinesOfOneNameButOtherLinksAreRefused) {
  const auto step = [](const std::string& bandwidth) {
    return step_of(
        "model: gpt2-345m\nmachine: {name: mine, device: h100-sxm, dimensions: [{name: a, kind: Switch, "
        "size: 8, "
        "bandwidth: " +
            bandwidth + ", latency: 1us}]}\nplan: {ranks: 8, tensor: 8, batch: 8, host: compiled}\n",
        milliseconds(50));
  };
  EXPECT_NE(error_of([&] {
              calibrate({step("450GB/s"), step("20GB/s")});
            }).find("their links differ"),
            std::string::npos);
}

// Where links are what takes time, a step does not get longer until products are much slower.
TEST(Calibrate, FindsFactorsBehindWhatHidesThem) {
  for (const double factor : {0.5, 0.35, 0.2}) {
    const MeasuredStudy step = step_with("ranks: 64, tensor: 16, batch: 64, micro_batches: 1", factor, 1);
    const Calibration found = calibrate({step});
    EXPECT_NEAR(in_seconds(found.steps[0].after) / in_seconds(step.measured), 1, 0.001) << factor;
  }
}

TEST(Calibrate, TheMachineThatIsWrittenHasTheFactors) {
  const MeasuredStudy step = step_with(kComputing, 0.8, 1);
  const Calibration found = calibrate({step});
  const Machine machine = read_machine(Config::parse(found.machine, "machine.yaml"));
  EXPECT_EQ(machine.name, "dgx-h100 calibrated");
  EXPECT_EQ(machine.device.name, step.study.machine.device.name);
  EXPECT_NEAR(machine.device.kernels->sustained, 0.8 * step.study.machine.device.kernels->sustained, 0.005);
  EXPECT_NE(machine.source.find("Calibrated by armilla calibrate"), std::string::npos);
  EXPECT_EQ(machine.dimensions.size(), load_machine("dgx-h100", "test").dimensions.size());
  EXPECT_EQ(machine.device.source, load_machine("dgx-h100", "test").device.source);
}

TEST(Calibrate, NonsenseIsRefused) {
  const auto refusal = [](std::vector<MeasuredStudy> steps) { return error_of([&] { calibrate(steps); }); };
  MeasuredStudy step = step_of(study_text(kComputing), Time(1));
  EXPECT_NE(refusal({step}).find("even with products at the peak"), std::string::npos);
  step.measured = Time(3'600'000'000'000'000);
  EXPECT_NE(refusal({step}).find("at a tenth of the rate"), std::string::npos);
  // Once more, and three times as long.
  MeasuredStudy quick = step_with(kComputing, 0.9, 1), slow = step_with(kComputing, 0.3, 1);
  EXPECT_NE(refusal({quick, slow}).find("contradict each other"), std::string::npos);
  step.measured = Time(0);
  EXPECT_NE(refusal({step}).find("more than no time"), std::string::npos);
  EXPECT_NE(
      refusal({step_with(kComputing, 1, 1), step_of(study_text(kComputing, "dgx-a100"), microseconds(9))})
          .find("all steps that calibrate a machine are of that machine"),
      std::string::npos);
  // The CPU issues kernels slower than one sample computes.
  MeasuredStudy waiting = step_of(
      "model: gpt2-345m\nmachine: dgx-h100\nplan: {ranks: 1, batch: 1, micro_batches: 1, issue_time: 5ms}\n",
      {});
  waiting.measured = run_study(waiting.study).result.iteration;
  EXPECT_NE(refusal({waiting}).find("does not depend on how fast products are computed: the CPU issues one "
                                    "operator every 5.000 ms"),
            std::string::npos);
  // Nor is it as short as with a graph, however fast products are.
  waiting = step_of("model: gpt2-345m\nmachine: dgx-h100\nplan: {ranks: 1, batch: 16, micro_batches: 4}\n",
                    microseconds(1));
  EXPECT_NE(refusal({waiting}).find("all of its links' bandwidth: the CPU issues one operator every "),
            std::string::npos);
  EXPECT_NE(refusal({waiting}).find("plan.host: compiled"), std::string::npos);
  // Nor do times change that were measured.
  MeasuredStudy profiled = step_of(study_text(kComputing), {});
  const armilla::Run alone = run_study(profiled.study);
  profiled.measured = alone.result.iteration;
  profiled.study.profile.file = "times.csv";
  for (const JobEvent& event :
       list_events(alone, *make_cost_model(alone.study.compute, alone.study.machine.device)).computations)
    profiled.study.profile.computations.push_back(
        {key_of(event.name, event.phase, event.work), {event.time}});
  EXPECT_NE(refusal({profiled}).find("leave `profile` out"), std::string::npos);
}

TEST(YamlText, ReadsAsTheSame) {
  const std::string text =
      "a: {b: [1, \"x: y\", {c: d}], e: \"\", f: []}\n\"odd key\": 'it''s \"so\"'\nlong: >-\n  one\n  two\n";
  const Config config = Config::parse(text, "t.yaml");
  const std::string written = yaml_text(config);
  EXPECT_EQ(yaml_text(Config::parse(written, "t.yaml")), written);
  const Config again = Config::parse(written, "t.yaml");
  EXPECT_EQ(again.at("a").at("b").items()[1].text(), "x: y");
  EXPECT_EQ(again.at("a").at("b").items()[2].at("c").text(), "d");
  EXPECT_EQ(again.at("odd key").text(), "it's \"so\"");
  EXPECT_EQ(again.at("long").text(), "one two");
  EXPECT_EQ(again.at("a").at("e").text(), "");
}

}  // namespace
}  // namespace armilla
