#include "study/run/steady_state.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/derived/communication.h"
#include "ir/derived/metrics.h"
#include "ir/derived/stage_table.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

// The times of 1, 2, ... iterations, and which of them were asked for.
struct Ends {
  std::vector<Time> ends = {};
  std::vector<std::int64_t> asked = {};
  std::int64_t even_from = 1;  // so many iterations on
  SteadyState find() {
    return find_steady_state(
        [this](std::int64_t iterations) {
          asked.push_back(iterations);
          return ends.at(static_cast<std::size_t>(iterations - 1));
        },
        [this](const SteadyState& steady) { return steady.iterations >= even_from; });
  }
};

TEST(SteadyState, IsThereOnceEveryIterationAddsTheSame) {
  Ends at_once;
  for (int n = 1; n <= 4; ++n) at_once.ends.push_back(microseconds(4 + 10 * n));
  const SteadyState four = at_once.find();
  EXPECT_EQ(four.iterations, 4);
  EXPECT_EQ(four.period, microseconds(10));
  EXPECT_TRUE(four.settled);
  EXPECT_EQ(at_once.asked, (std::vector<std::int64_t>{4, 2, 3}));
  EXPECT_EQ(four.window().from, microseconds(17));
  EXPECT_EQ(four.window().until, microseconds(27));
  Ends late;  // the first three add less
  for (int n = 1; n <= 8; ++n) late.ends.push_back(microseconds(n < 4 ? 5 * n : 15 + 10 * (n - 3)));
  const SteadyState eight = late.find();
  EXPECT_EQ(eight.iterations, 8);
  EXPECT_EQ(eight.period, microseconds(10));
  Ends uneven = at_once;  // some ranks still get ahead of others
  for (int n = 5; n <= 16; ++n) uneven.ends.push_back(microseconds(4 + 10 * n));
  uneven.even_from = 8;
  EXPECT_EQ(uneven.find().iterations, 8);
  uneven.even_from = kMostIterations + 1;
  uneven.asked.clear();
  const SteadyState never_even = uneven.find();
  EXPECT_EQ(never_even.iterations, kMostIterations);
  EXPECT_FALSE(never_even.settled);
  // Once ranks were found uneven it is those that are looked at first.
  EXPECT_EQ(uneven.asked, (std::vector<std::int64_t>{4, 2, 3, 8, 16}));
  Ends never;
  for (int n = 1; n <= 16; ++n) never.ends.push_back(microseconds(10 * n + 3 * (n % 2)));
  const SteadyState mean = never.find();
  EXPECT_EQ(mean.iterations, kMostIterations);
  EXPECT_FALSE(mean.settled);
  EXPECT_EQ(mean.period, microseconds(10));
}

TEST(SteadyState, EveryRankHasAnEqualShareOfItInTheWindow) {
  Result all, window;
  all.classes.resize(2);
  all.classes[0].compute = microseconds(40);
  all.classes[1].compute = microseconds(20);
  all.class_of = {0, 1, 0};
  window.classes.resize(1);
  window.classes[0].compute = microseconds(10);
  window.class_of = {0, 0, 0};
  EXPECT_FALSE(is_equal_share(window, all, 4));
  all.class_of = {0, 0, 0};
  EXPECT_TRUE(is_equal_share(window, all, 4));
  EXPECT_FALSE(is_equal_share(window, all, 5));
}

// Stages that nobody waits for forward a ninth micro-batch in the iterations that come first.
TEST(SteadyState, StagesThatGetAheadAreWaitedFor) {
  const std::string text =
      "model: {name: gpt2-345m, sequence: 1024}\nmachine: dgx-a100\nplan: {ranks: 16, tensor: 2, pipeline: "
      "4, "
      "schedule: ";
  const std::string rest = ", micro_batch: 1, global_batch: 16}\n";
  const auto run_of = [&](const std::string& schedule) {
    return run_study(prepare_study(read_study(Config::parse(text + schedule + rest, "s.yaml", {}))));
  };
  const auto run = run_of("pipedream-2bw"), flushed = run_of("1f1b");
  const StageTable table = stage_table(run), other = stage_table(flushed);
  ASSERT_EQ(table.stages.size(), other.stages.size());
  for (std::size_t s = 0; s < table.stages.size(); ++s)
    EXPECT_EQ(table.stages[s].compute, other.stages[s].compute) << s;
  const std::vector<CollectiveSummary> calls = summarize_collectives(run),
                                       others = summarize_collectives(flushed);
  ASSERT_EQ(calls.size(), others.size());
  for (std::size_t c = 0; c < calls.size(); ++c) {
    EXPECT_EQ(calls[c].per_rank.calls, others[c].per_rank.calls) << c;
    EXPECT_LE(calls[c].link_share, 1.0001) << c;
  }
  EXPECT_EQ(summarize_messages(run)[0].count, summarize_messages(flushed)[0].count);
}

TEST(SteadyState, OfTheResultTheWindowIsLeft) {
  Result result;
  result.iteration = microseconds(36);
  RankClass ranks;
  ranks.compute = microseconds(5);
  ranks.finish = microseconds(35);
  ranks.computes = {{microseconds(2), microseconds(7), 0},
                    {microseconds(12), microseconds(17), 1},
                    {microseconds(22), microseconds(27), 2}};
  ranks.others = {{microseconds(13), microseconds(13), 3}, {microseconds(23), microseconds(24), 4}};
  result.classes = {ranks};
  CollectiveRecord record;
  for (const int finished : {13, 14, 23, 24}) {
    record.issued = record.started = microseconds(finished - 3);
    record.finished = microseconds(finished);
    result.collectives.push_back(record);
  }
  result.links = {{"link", 0, 1, Bytes(300), microseconds(9), gigabytes_per_second(1)}};

  keep_window(result, {microseconds(13), microseconds(23)}, 3);
  EXPECT_EQ(result.iteration, microseconds(10));
  const RankClass& kept = result.classes[0];
  EXPECT_EQ(kept.compute, microseconds(5));  // of the window already
  EXPECT_EQ(kept.finish, microseconds(10));
  ASSERT_EQ(kept.computes.size(), 2U);
  EXPECT_EQ(kept.computes[0].start, Time(0));
  EXPECT_EQ(kept.computes[0].end, microseconds(4));
  EXPECT_EQ(kept.computes[1].start, microseconds(9));
  EXPECT_EQ(kept.computes[1].end, microseconds(10));
  ASSERT_EQ(kept.others.size(), 1U);  // what takes no time is in the window that begins with it
  EXPECT_EQ(kept.others[0].node, 3U);
  ASSERT_EQ(result.collectives.size(), 2U);
  EXPECT_EQ(result.collectives[0].issued, microseconds(-2));
  EXPECT_EQ(result.collectives[1].finished, microseconds(10));
  EXPECT_EQ(result.links[0].bytes, Bytes(100));
  EXPECT_EQ(result.links[0].busy, microseconds(3));
}

Study steady_study(const std::string& schedule, const std::string& rest = {}) {
  const std::string text =
      "model: gpt2-345m\n"
      "machine: {device: h100-sxm, dimensions: [{kind: Switch, size: 16, bandwidth: 450GB/s, latency: "
      "1us}]}\n"
      "plan: {host: compiled, pipeline: 4, micro_batch: 1, micro_batches: 8, schedule: " +
      schedule + rest + "}\n";
  return prepare_study(read_study(Config::parse(text, "s.yaml", {})));
}

// 2BW never waits for other stages but for the slowest; what a rank does in an iteration is what 1F1B does.
TEST(SteadyState, TheAsynchronousScheduleHasTheWorkOfOneIteration) {
  for (const std::string rest : {"", ", tensor: 2", ", zero: 1", ", zero: 2"}) {
    Study study = steady_study("pipedream-2bw", rest), flushed = steady_study("1f1b", rest);
    // What computes beside exchanges of every micro-batch would take longer by the processors that
    // these hold.
    for (Study* const each : {&study, &flushed}) each->machine.device.kernels.reset();
    const auto run = run_study(study), reference = run_study(flushed);
    EXPECT_LT(run.result.iteration, reference.result.iteration);
    EXPECT_GT(run.simulated, run.result.iteration * 3);
    const StageTable table = stage_table(run), other = stage_table(reference);
    ASSERT_EQ(table.stages.size(), other.stages.size());
    bool busy = false;
    for (std::size_t s = 0; s < table.stages.size(); ++s) {
      const StageSummary& stage = table.stages[s];
      EXPECT_EQ(stage.compute, other.stages[s].compute) << rest << s;
      Time computed;
      for (const RankClass& ranks : run.result.classes) {
        if (ranks.program != stage.program || ranks.computes.empty()) continue;
        for (const Interval& interval : ranks.computes) computed += interval.end - interval.start;
        EXPECT_EQ(computed, stage.compute) << rest << s;
        EXPECT_EQ(idle(ranks, run.result.iteration), stage.bubble) << rest << s;
      }
      EXPECT_GE(stage.bubble, Time(0));
      busy |= stage.bubble < run.result.iteration / 100;
    }
    EXPECT_TRUE(busy) << "no stage is the one that sets the pace" << rest;
    const auto cost = make_cost_model(study.compute, study.machine.device);
    EXPECT_EQ(occurrences(list_events(run, *cost)), occurrences(list_events(reference, *cost))) << rest;
    // Every collective of an iteration ends once in it.
    std::int64_t calls = 0;
    for (const Program& program : run.graph.programs)
      calls += std::count(program.kind.begin(), program.kind.end(), NodeKind::collective);
    EXPECT_EQ(static_cast<std::int64_t>(run.result.collectives.size()) * run.iterations, calls) << rest;
    // Of ranks whose programs are the same, the same bytes cross the links.
    EXPECT_EQ(run.result.links.front().bytes, reference.result.links.front().bytes) << rest;
  }
}

// Warm-up lasts longer than an iteration, ranks differ, times never settle: what is reported fits together.
TEST(SteadyState, NothingIsNegativeWhereItComesLateOrNever) {
  for (const std::string what_if :
       {"{ranks: [{ranks: 3, time: 3}]}", "{jitter: {deviation: 0.5, seed: 3}}", "{}"}) {
    const std::string text = "model: {name: gpt2-124m, sequence: 256}\nmachine: mi300x\nwhat_if: " + what_if +
                             "\nplan: {ranks: 8, pipeline: 2, micro_batches: 2, schedule: pipedream-2bw}\n";
    const auto run = run_study(prepare_study(read_study(Config::parse(text, "s.yaml", {}))));
    for (const RankClass& ranks : run.result.classes) {
      EXPECT_LE(ranks.compute, run.result.iteration) << what_if;
      EXPECT_GE(idle(ranks, run.result.iteration), Time(0)) << what_if;
    }
    for (const StageSummary& stage : stage_table(run).stages) EXPECT_GE(stage.bubble, Time(0)) << what_if;
    EXPECT_GE(bubble_fraction(run), 0) << what_if;
  }
}

}  // namespace
}  // namespace armilla
