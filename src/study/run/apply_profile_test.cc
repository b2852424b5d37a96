#include "study/run/apply_profile.h"

#include <gtest/gtest.h>

#include "base/config.h"
#include "read/study.h"
#include "study/run.h"
#include "write/report.h"

namespace armilla {
namespace {

Study study_of(const std::string& model, const std::string& rest) {
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
        {"gpt2-345m", "plan: {ranks: 8, pipeline: 4, schedule: pipedream-2bw, batch: 8}\n"}}) {
    const Study study = study_of(model, rest);
    const auto modelled = run_study(study);
    Study profiled = study;
    profiled.profile = parse_profile(events_of(modelled), "times.csv");
    const auto measured = run_study(profiled);
    EXPECT_EQ(measured.result.iteration, modelled.result.iteration) << model;
    EXPECT_EQ(measured.simulated, modelled.simulated) << model;
    const EventTable events = list_events(measured, *make_cost_model(study.compute, study.machine.device));
    for (const JobEvent& event : events.computations)
      EXPECT_NE(event.source, TimeSource::modelled) << event.name;
  }
}

TEST(ApplyProfile, AMeasuredTimeIsTakenWhereverTheComputationOccurs) {
  const Study study = study_of("gpt2-345m", kPlan);
  const auto modelled = run_study(study);
  const EventTable events = list_events(modelled, *make_cost_model(study.compute, study.machine.device));
  const JobEvent& first = events.computations.front();
  Study profiled = study;
  profiled.profile = {"times.csv", {{key_of(first.name, first.phase, first.work), first.time * 3}}};
  const auto measured = run_study(profiled);
  Time before, after;
  for (const RankClass& ranks : modelled.result.classes) before += ranks.compute * ranks.ranks;
  for (const RankClass& ranks : measured.result.classes) after += ranks.compute * ranks.ranks;
  EXPECT_EQ(after - before, first.time * 2 * first.count);
  EXPECT_EQ(measured.graph.works[0].flops, modelled.graph.works[0].flops);
}

TEST(ApplyProfile, OnOtherDevicesItIsScaledAsTheModelsSay) {
  const std::string plan = "plan: {ranks: 2, batch: 8, overlap: false}\n";
  Study study = study_of("resnet50", plan);
  study.machine.others = {{1, 1, study.machine.device}};
  study.machine.others[0].device.memory_bandwidth = study.machine.device.memory_bandwidth * 0.5;
  const auto modelled = run_study(study);
  const EventTable events = list_events(modelled, *make_cost_model(study.compute, study.machine.device));
  for (const JobEvent& event : events.computations) {
    if (event.work.kind == WorkKind::none) continue;
    study.profile.computations.push_back({key_of(event.name, event.phase, event.work), event.time * 2});
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
  const Study study = study_of("resnet50", "plan: {ranks: 8, batch: 32}\n");
  const auto modelled = run_study(study);
  Study profiled = study;
  profiled.profile = parse_profile(events_of(modelled), "times.csv");
  const std::size_t all = profiled.profile.computations.size();
  profiled.profile.computations.resize(all - 2);
  profiled.profile.computations[0].key.name = "no such";
  const auto some = run_study(profiled);
  const std::string expected =
      "times.csv: measured times of " + std::to_string(all - 3) + " of " + std::to_string(all) +
      " distinct computations, the other 3 are modelled; 1 of the profile does not occur here";
  EXPECT_NE(std::find(some.notes.begin(), some.notes.end(), expected), some.notes.end()) << expected;
  profiled.profile.computations.resize(1);
  const auto none = run_study(profiled);
  EXPECT_TRUE(none.warnings.front().starts_with("times.csv: measured times of 0 of "))
      << none.warnings.front();
}

}  // namespace
}  // namespace armilla
