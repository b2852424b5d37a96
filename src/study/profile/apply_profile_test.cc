#include "study/profile/apply_profile.h"

#include <gtest/gtest.h>

#include "base/config.h"
#include "read/profile.h"
#include "read/study.h"
#include "study/profile/profile_times.h"
#include "study/run.h"
#include "write/report.h"

namespace armilla {
namespace {

Study study_on_dgx(const std::string& model, const std::string& rest) {
  return prepare_study(
      read_study(Config::parse("model: " + model + "\nmachine: dgx-a100\n" + rest, "study.yaml", {})));
}

// As a user would turn them into a profile.
std::string events_of(const armilla::Run& run) {
  const auto cost = make_cost_model(run.study.compute, run.study.machine.device);
  std::string text = write_events_csv(list_events(run, *cost));
  const std::string modelled = ",modelled\n";
  for (std::size_t at; (at = text.find(modelled)) != std::string::npos;)
    text.replace(at, modelled.size(), ",measured\n");
  return text;
}

const std::string kPlan = "plan: {ranks: 16, tensor: 2, pipeline: 2, micro_batches: 4, batch: 16}\n";

// What events says is what run takes.
TEST(ApplyProfile, TheModelsOwnTimesChangeNothing) {
  for (const auto& [model, rest] :
       {std::pair<std::string, std::string>{"gpt2-345m", kPlan},
        {"resnet50", "plan: {ranks: 8, batch: 32}\n"},
        {"gpt2-345m", "plan: {ranks: 8, zero: 1, batch: 8}\n"},  // parameters in buckets of one size
        {"gpt2-345m", "plan: {ranks: 8, pipeline: 4, schedule: pipedream-2bw, batch: 8}\n"}}) {
    const Study study = study_on_dgx(model, rest);
    const auto modelled = run_study(study);
    Study profiled = study;
    profiled.profile = parse_profile(events_of(modelled), "times.csv");
    const auto measured = run_study(profiled);
    EXPECT_EQ(measured.result.iteration, modelled.result.iteration) << model;
    EXPECT_EQ(measured.simulated, modelled.simulated) << model;
    const auto cost = make_cost_model(study.compute, study.machine.device);
    const EventTable events = list_events(measured, *cost);
    for (const JobEvent& event : events.computations)
      EXPECT_NE(event.source, TimeSource::modelled) << event.name;
    EXPECT_EQ(events.computations.size(), list_events(modelled, *cost).computations.size()) << model;
  }
}

TEST(ApplyProfile, AMeasuredTimeIsTakenWhereverTheComputationOccurs) {
  const Study study = study_on_dgx("gpt2-345m", kPlan);
  const auto modelled = run_study(study);
  const EventTable events = list_events(modelled, *make_cost_model(study.compute, study.machine.device));
  const JobEvent& first = events.computations.front();
  Study profiled = study;
  profiled.profile = {"times.csv", {{key_of(first.name, first.phase, first.work), {first.time * 3}}}};
  const auto measured = run_study(profiled);
  Time before, after;
  for (const RankClass& ranks : modelled.result.classes) before += ranks.compute * ranks.ranks;
  for (const RankClass& ranks : measured.result.classes) after += ranks.compute * ranks.ranks;
  EXPECT_EQ(after - before, first.time * 2 * first.count);
  EXPECT_EQ(measured.graph.works[0].flops, modelled.graph.works[0].flops);
}

TEST(ApplyProfile, OnOtherDevicesItIsScaledAsTheModelsSay) {
  const std::string plan = "plan: {ranks: 2, batch: 8, overlap: false}\n";
  Study study = study_on_dgx("resnet50", plan);
  study.machine.others = {{1, 1, study.machine.device}};
  study.machine.others[0].device.memory_bandwidth = study.machine.device.memory_bandwidth * 0.5;
  const auto modelled = run_study(study);
  const EventTable events = list_events(modelled, *make_cost_model(study.compute, study.machine.device));
  for (const JobEvent& event : events.computations) {
    if (event.work.kind == WorkKind::none) continue;
    study.profile.computations.push_back({key_of(event.name, event.phase, event.work), {event.time * 2}});
  }
  study.profile.file = "times.csv";
  const auto measured = run_study(study);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const double before = in_seconds(modelled.result.classes[modelled.result.class_of[rank]].compute);
    const double after = in_seconds(measured.result.classes[measured.result.class_of[rank]].compute);
    EXPECT_NEAR(after / before, 2, 1e-6) << rank;
  }
}

TEST(ApplyProfile, TheReportSaysWhatWasUsed) {
  const Study study = study_on_dgx("resnet50", "plan: {ranks: 8, batch: 32}\n");
  const auto modelled = run_study(study);
  Study profiled = study;
  profiled.profile = parse_profile(events_of(modelled), "times.csv");
  const std::size_t all = profiled.profile.computations.size();
  profiled.profile.computations.resize(all - 2);
  profiled.profile.computations[0].key.name = "no such";
  const auto some = run_study(profiled);
  const std::string expected = "times.csv: measured times of " + std::to_string(all - 3) + " of " +
                               std::to_string(all) +
                               " distinct computations, 1 interpolated between measured ones, the other 2 "
                               "are modelled; 1 of the profile "
                               "does not occur here";
  EXPECT_NE(std::find(some.notes.begin(), some.notes.end(), expected), some.notes.end())
      << expected << "\nbut:\n"
      << some.notes.back();
  profiled.profile.computations.resize(1);
  const auto none = run_study(profiled);
  EXPECT_TRUE(none.warnings.front().starts_with("times.csv: measured times of 0 of "))
      << none.warnings.front();
}

// As where milliseconds were taken for seconds.
TEST(ApplyProfile, TimesThatNoDeviceCanTakeAreToldOf) {
  Study study = study_on_dgx("gpt2-345m", kPlan);
  study.profile = parse_profile(events_of(run_study(study)), "times.csv");
  const auto warns = [&] {
    return std::ranges::any_of(run_study(study).warnings, [](const std::string& warning) {
      return warning.find("shorter than a100-80gb-sxm can be: '") != std::string::npos;
    });
  };
  EXPECT_FALSE(warns());
  for (MeasuredComputation& computation : study.profile.computations)
    computation.measured.time = Time(computation.measured.time.value / 1000 + 1);
  EXPECT_TRUE(warns());
}

// The device can do 1e12 flops and bytes a second at best.
Device simple_device() {
  Device device;
  device.name = "simple";
  device.matrix_rate[DType::bf16] = FlopRate(1e12);
  device.vector_rate = FlopRate(1e12);
  device.memory_bandwidth = Bandwidth(1e12);
  return device;
}

// A product of `m` rows that reaches `share` of the peak.
MeasuredComputation at_share(std::int64_t m, double share, std::string name = "fc") {
  Work work{WorkKind::matrix, DType::bf16, Flops(2 * m * 1024 * 1024), Bytes(1), {{m, 1024, 1024}}};
  const double seconds = static_cast<double>(work.flops.value) / 1e12 / share;
  return {key_of(std::move(name), Phase::forward, work), {from_seconds(seconds), {}, 1, "simple"}};
}

TEST(ProfileTimes, BetweenMeasuredSizesTheShareOfThePeakIsInterpolated) {
  const Profile profile{"p", {at_share(256, 0.2), at_share(4096, 0.8), at_share(65536, 0.9)}};
  const Device device = simple_device();
  const ProfileTimes times(profile, device);
  const auto find = [&](std::int64_t m) {
    const MeasuredComputation wanted = at_share(m, 1);
    Work work{WorkKind::matrix, DType::bf16, Flops(wanted.key.flops), Bytes(1), {{m, 1024, 1024}}};
    return times.find(wanted.key, work);
  };
  EXPECT_FALSE(find(4096)->interpolated);
  EXPECT_EQ(find(4096)->time, profile.computations[1].measured.time);
  // Half way between 256 and 4096 in the logarithm.
  ASSERT_TRUE(find(1024));
  EXPECT_TRUE(find(1024)->interpolated);
  EXPECT_NEAR(in_seconds(find(1024)->time), in_seconds(at_share(1024, 0.5).measured.time), 1e-12);
  EXPECT_FALSE(find(128)) << "below all that were measured";
  EXPECT_FALSE(find(1 << 20)) << "above";
}

TEST(ProfileTimes, OtherOperatorsPhasesTypesAndDevicesDoNotCount) {
  Profile profile{"p", {at_share(256, 0.2), at_share(4096, 0.8, "other")}};
  const Device device = simple_device();
  const MeasuredComputation wanted = at_share(1024, 1);
  const Work work{WorkKind::matrix, DType::bf16, Flops(wanted.key.flops), Bytes(1), {{1024, 1024, 1024}}};
  EXPECT_FALSE(ProfileTimes(profile, device).find(wanted.key, work));
  profile.computations[1].key.name = "fc";
  profile.computations[1].key.phase = Phase::input_gradient;
  EXPECT_FALSE(ProfileTimes(profile, device).find(wanted.key, work));
  profile.computations[1].key.phase = Phase::forward;
  EXPECT_TRUE(ProfileTimes(profile, device).find(wanted.key, work));
  profile.computations[1].measured.device = "another";
  EXPECT_FALSE(ProfileTimes(profile, device).find(wanted.key, work));
  EXPECT_EQ(ProfileTimes(profile, device).elsewhere(), 1);
  EXPECT_EQ(ProfileTimes(profile, device).size(), 1);
}

TEST(ProfileTimes, AProductIsFoundByItsShapeAlone) {
  Profile profile{"p", {{product_key({1024, 1024, 1024}, DType::bf16), {microseconds(7)}}}};
  const Device device = simple_device();
  const MeasuredComputation wanted = at_share(1024, 1);
  const Work work{WorkKind::matrix, DType::bf16, Flops(wanted.key.flops), Bytes(1), {{1024, 1024, 1024}}};
  EXPECT_EQ(ProfileTimes(profile, device).find(wanted.key, work)->time, microseconds(7));
  profile.computations.push_back(at_share(1024, 0.5));
  EXPECT_EQ(ProfileTimes(profile, device).find(wanted.key, work)->time, profile.computations[1].measured.time)
      << "what was measured for the operator goes before";
}

// As of a trace of PyTorch's, whose _scaled_mm gets operands that are cast already.
TEST(ApplyProfile, WhatIsCastBeforeAMeasuredProductIsModelled) {
  const Study study = prepare_study(read_study(
      Config::parse("model: gpt2-345m\nmachine: dgx-h100\nplan: {ranks: 1, batch: 4, precision: fp8}\n",
                    "study.yaml", {})));
  const auto cost = make_cost_model(study.compute, study.machine.device);
  const auto modelled = run_study(study);
  const auto is_product = [](const Work& work) { return work.dtype == DType::fp8 && work.gemms.size() == 1; };
  const auto first = std::ranges::find_if(modelled.graph.works, is_product);
  ASSERT_NE(first, modelled.graph.works.end());
  const Time measured = microseconds(50);
  Study profiled = study;
  profiled.profile = {"times.csv", {{product_key(first->gemms.front(), DType::fp8), {measured}}}};
  int cast = 0;
  for (const Work& work : run_study(profiled).graph.works) {
    if (!work.measured || work.interpolated) continue;
    ASSERT_EQ(work.gemms.front(), first->gemms.front());
    Work product = work;
    product.measured.reset();
    const Time whole = cost->time(product);
    product.scaling = Scaling::done;
    EXPECT_EQ(*work.measured, measured + whole - cost->time(product));
    cast += *work.measured > measured ? 1 : 0;
  }
  EXPECT_GT(cast, 0);
  // What was measured for the operator has its casts in it.
  const JobEvent event = list_events(modelled, *cost).computations.front();
  profiled.profile = {"times.csv", {{key_of(event.name, event.phase, event.work), {measured}}}};
  for (const Work& work : run_study(profiled).graph.works)
    EXPECT_TRUE(!work.measured || *work.measured == measured);
}

TEST(ApplyProfile, TheResultSaysWhichShareWasMeasured) {
  const Study study = study_on_dgx("gpt2-345m", kPlan);
  const auto modelled = run_study(study);
  EXPECT_DOUBLE_EQ(modelled.shares.modelled, 1);
  Study profiled = study;
  profiled.profile = parse_profile(events_of(modelled), "times.csv");
  // Half as many samples: the products of a micro-batch lie between those of two others.
  const auto measured = run_study(profiled);
  EXPECT_DOUBLE_EQ(measured.shares.measured, 1);
  // The errors of modelled times are not theirs.
  EXPECT_TRUE(modelled.like);
  EXPECT_FALSE(measured.like);
  const Study small =
      study_on_dgx("gpt2-345m", "plan: {ranks: 16, tensor: 2, pipeline: 2, micro_batches: 4, batch: 4}\n");
  const Study middle =
      study_on_dgx("gpt2-345m", "plan: {ranks: 16, tensor: 2, pipeline: 2, micro_batches: 4, batch: 8}\n");
  const Profile of_small = parse_profile(events_of(run_study(small)), "times.csv");
  Study between = middle;
  between.profile = profiled.profile;
  for (const MeasuredComputation& computation : of_small.computations) {
    const auto& all = between.profile.computations;
    if (std::none_of(all.begin(), all.end(), [&](const auto& known) { return known.key == computation.key; }))
      between.profile.computations.push_back(computation);
  }
  const auto run = run_study(between);
  EXPECT_GT(run.shares.interpolated, 0.9);
  EXPECT_NEAR(run.shares.measured + run.shares.interpolated + run.shares.modelled, 1, 1e-12);
  // The model is smooth here: what lies between its own times is nearly its own time.
  EXPECT_NEAR(in_seconds(run.result.iteration) / in_seconds(run_study(middle).result.iteration), 1, 0.1);
  const EventTable events = list_events(run, *make_cost_model(study.compute, study.machine.device));
  EXPECT_TRUE(std::any_of(events.computations.begin(), events.computations.end(),
                          [](const JobEvent& event) { return event.source == TimeSource::interpolated; }));
  EXPECT_LT(missing_events(events).computations.size(), events.computations.size());
}

}  // namespace
}  // namespace armilla
