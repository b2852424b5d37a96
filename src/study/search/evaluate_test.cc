// Plans with slots as one node each take what they take node by node, to the picosecond.
#include "study/search/evaluate_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/cases_testing.h"
#include "base/error.h"
#include "base/folder_testing.h"
#include "ir/derived/expense.h"
#include "ir/derived/metrics.h"
#include "lower/pipeline_schedule.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

class EvaluateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = path_for_test("evaluate");
    std::filesystem::create_directories(folder_);
    write("gpt.yaml", "family: gpt\nlayers: 8\nhidden: 64\nheads: 4\nvocabulary: 512\nsequence: 64\n");
    write("wide.yaml", "family: gpt\nlayers: 8\nhidden: 8192\nheads: 64\nvocabulary: 4096\nsequence: 2048\n");
    write("llama.yaml",
          "family: llama\nlayers: 9\nhidden: 1024\nheads: 8\nkv_heads: 4\nfeed_forward: 2048\nvocabulary: "
          "512\nsequence: 512\n");
    write("moe.yaml",
          "family: mixtral\nlayers: 4\nhidden: 64\nheads: 4\nkv_heads: 2\nvocabulary: 512\nsequence: "
          "64\nexperts: {count: 4, active: 2, feed_forward: 96}\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string random_study(std::mt19937& random,
                           std::initializer_list<std::string> schedules = {
                               "gpipe", "1f1b", "1f1b", "interleaved", "zb-h1", "zb-v"}) const {
    const auto one_of = [&](std::initializer_list<std::string> choices) {
      return choices.begin()[std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(random)];
    };
    const std::string schedule = one_of(schedules);
    // Under sanitizers those of many micro-batches would take most of the time.
    const std::string many = kCaseStep == 1 ? "40" : "6";
    std::string text =
        "model: " + (folder_ / (one_of({"gpt", "wide", "llama", "moe"}) + ".yaml")).string() +
        "\nmachine: " + one_of({"dgx-a100", "dgx-h100", "tpu-v4", "tpu-v5p", "azure-nc96", "dgx-1"}) +
        "\nnetwork: " +
        one_of({"analytical", "analytical:switching=store-and-forward", "analytical-unshared"}) +
        "\nplan:\n  ranks: " + one_of({"4", "8", "16", "32"}) +
        "\n  tensor: " + one_of({"1", "2", "4", "8"}) + "\n  pipeline: " + one_of({"1", "2", "4"}) +
        "\n  context: " + one_of({"1", "1", "1", "2"}) + "\n  schedule: " + schedule +
        "\n  micro_batch: " + one_of({"1", "2"}) +
        "\n  micro_batches: " + one_of({"1", "2", "4", "8", "16", many}) +
        "\n  zero: " + one_of({"0", "1", "1", "2"}) +
        "\n  recompute: " + one_of({"none", "selective", "full"}) +
        "\n  sequence_parallel: " + one_of({"true", "false"}) +
        "\n  overlap_tensor: " + one_of({"true", "false"}) +
        "\n  overlap: " + one_of({"true", "true", "false"}) +
        "\n  overlap_pipeline: " + one_of({"true", "true", "false"}) +
        "\n  scatter_gather: " + one_of({"true", "false"}) +
        "\n  overlap_parameters: " + one_of({"true", "false"}) +
        "\n  context_method: " + one_of({"ring", "all-to-all"}) +
        one_of({"", "\n  order: pipeline-tensor-context-data", "\n  order: tensor-data-context-pipeline"}) +
        one_of({"\n", "\n  host: compiled\n", "\n  host: compiled\n", "\n  issue_time: 3us\n",
                "\n  issue_time: 20us\n", "\n  issue_time: 85us\n",
                "\n  issue_time: 200us\n  check_collectives: true\n", "\n  framework: pytorch\n",
                "\n  framework: pytorch\n  issue_time: 20us\n"});
    if (schedule == "interleaved") text += "  virtual_stages: 2\n";
    return text;
  }

  static std::string with_ring_attention(std::string study) {
    const auto replace = [&](const std::string& from, const std::string& to) {
      if (const std::size_t at = study.find(from); at != std::string::npos)
        study.replace(at, from.size(), to);
    };
    replace("  context: 1\n", "  context: 2\n");
    replace("  context_method: all-to-all", "  context_method: ring");
    return study;
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << "name: small\nsource: test\n" << text;
  }

  std::filesystem::path folder_;
};

// How many ranks of a program had which times.
std::map<std::tuple<std::uint32_t, Time, Time, Time, Time>, std::int64_t> times_of(const Result& result) {
  std::map<std::tuple<std::uint32_t, Time, Time, Time, Time>, std::int64_t> times;
  for (const RankClass& ranks : result.classes)
    times[{ranks.program, ranks.finish, ranks.compute, ranks.exposed_communication, ranks.host_waits}] +=
        ranks.ranks;
  return times;
}

// Its products take longer than a host needs to issue them, but behind each message it begins anew.
TEST_F(EvaluateTest, HostsThatStopAtMessagesAreNotAhead) {
  const auto text = [](const std::string& overlap) {
    return "model: gpt3-175b\nmachine: dgx-a100\nplan:\n  ranks: 128\n  tensor: 8\n  pipeline: 16\n"
           "  global_batch: 64\n  micro_batch: 4\n  recompute: full\n  sequence_parallel: true\n"
           "  overlap_tensor: true\n  overlap_pipeline: " +
           overlap + "\n";
  };
  for (const bool overlap : {true, false}) {
    const Study study = read_study(Config::parse(text(overlap ? "true" : "false"), "study.yaml", {}));
    PlanEvaluator evaluator(study);
    const PlanPrepared plan = evaluator.prepare(study.request);
    const std::optional<PlanOutcome> slots = PlansEitherWay(evaluator).in_slots(plan);
    EXPECT_EQ(slots.has_value(), overlap);
    if (slots) {
      EXPECT_EQ(slots->iteration, PlansEitherWay(evaluator).by_nodes(plan).iteration);
    }
  }
}

// Its messages share the switch of a node with tensor groups, and meet neither stages' nor replicas', which
// are on other nodes; or stages are in one node, too.
TEST_F(EvaluateTest, SlotsHaveRingAttentionWhereItsMessagesMeetThoseOfTheSlotAlone) {
  for (const auto& [tensor, context, pipeline, in_slots] :
       {std::tuple{4, 2, 4, true}, {2, 4, 2, true}, {1, 8, 4, true}, {2, 2, 4, true}, {1, 2, 4, false}}) {
    for (const std::string host : {"compiled", "eager"}) {
      for (const std::string overlap_tensor : {"true", "false"}) {
        const std::string text = fmt::format(
            "model: {}\nmachine: dgx-h100\nplan:\n  ranks: {}\n  tensor: {}\n  context: {}\n  pipeline: {}\n"
            "  global_batch: 24\n  micro_batch: 1\n  zero: 1\n  sequence_parallel: true\n"
            "  overlap_tensor: {}\n  host: {}\n",
            (folder_ / "wide.yaml").string(), 2 * tensor * context * pipeline, tensor, context, pipeline,
            overlap_tensor, host);
        SCOPED_TRACE(text);
        const Study study = read_study(Config::parse(text, "study.yaml", {}));
        PlanEvaluator evaluator(study);
        const PlanPrepared plan = evaluator.prepare(study.request);
        const std::optional<PlanOutcome> slots = PlansEitherWay(evaluator).in_slots(plan);
        if (!in_slots || host == "compiled") {
          EXPECT_EQ(slots.has_value(), in_slots);
        }
        if (slots) {
          EXPECT_EQ(slots->iteration, PlansEitherWay(evaluator).by_nodes(plan).iteration);
          EXPECT_EQ(times_of(evaluator.play(plan)), times_of(run_study(plan.study(), {}).result));
        }
      }
    }
  }
}

TEST_F(EvaluateTest, SlotsTakeWhatTheirNodesTake) {
  std::int64_t compared = 0, in_slots = 0, exchanging = 0, held_by_a_host = 0, offloaded = 0, in_rings = 0;
  for (unsigned seed = 0; seed < 400; seed += kCaseStep) {
    std::mt19937 random(seed);
    std::string text = random_study(random);
    if (random() % 3 == 0) text += "  offload: [activations]\n";
    if (seed % 4 == 1) text += "  step_overhead: 40us\n";
    if (seed % 4 == 2) text = with_ring_attention(std::move(text));
    SCOPED_TRACE(text);
    Study study;
    std::optional<PlanOutcome> slots;
    Result slots_of_ranks;
    PlanOutcome nodes;
    Result nodes_of_ranks;
    try {
      study = read_study(Config::parse(text, "study.yaml", {}));
      PlanEvaluator evaluator(study);
      const PlanPrepared plan = evaluator.prepare(study.request);
      ++compared;
      slots = PlansEitherWay(evaluator).in_slots(plan);
      if (!slots) continue;
      nodes = PlansEitherWay(evaluator).by_nodes(plan);
      slots_of_ranks = evaluator.play(plan);
      SimulationOptions options;
      options.intervals = false;
      const auto whole = run_study(plan.study(), options);
      ASSERT_EQ(evaluator.hardware_flops(plan), hardware_flops(whole));
      nodes_of_ranks = whole.result;
    } catch (const Error&) {
      continue;  // not every combination is legal; what is refused is tested elsewhere
    }
    ++in_slots;
    exchanging += slots->plan.data() > 1 ? 1 : 0;
    held_by_a_host +=
        std::ranges::any_of(nodes_of_ranks.classes,
                            [](const RankClass& ranks) { return ranks.host_waits > ranks.finish / 10; })
            ? 1
            : 0;
    offloaded += slots->plan.offload_activations && slots->plan.tensor > 1 ? 1 : 0;
    in_rings += slots->plan.context > 1 && slots->plan.context_method == ContextMethod::ring ? 1 : 0;
    ASSERT_EQ(slots->iteration, nodes.iteration);
    ASSERT_EQ(times_of(slots_of_ranks), times_of(nodes_of_ranks));
    ASSERT_EQ(slots->compute, nodes.compute);
    ASSERT_EQ(slots->exposed_communication, nodes.exposed_communication);
    ASSERT_EQ(slots->energy, nodes.energy);
    ASSERT_EQ(slots->cost, nodes.cost);
  }
  // Else the loop would have compared nothing.
  EXPECT_GT(compared, 100 / kCaseStep);
  EXPECT_GT(in_slots, 40 / kCaseStep);
  EXPECT_GT(exchanging, 15 / kCaseStep);
  EXPECT_GT(held_by_a_host, 12 / kCaseStep);
  if (kCaseStep == 1) {
    EXPECT_GT(offloaded, 4);
    EXPECT_GT(in_rings, 2);
  }
}

// Neither a run that is no longer than asked for is given up, nor is one that ends changed by being watched.
TEST_F(EvaluateTest, SimulationsAreGivenUpOnlyWhereTheyAreLonger) {
  std::int64_t compared = 0, given_up = 0, given_up_late = 0, overlapping = 0, unlike = 0,
               given_up_in_slots = 0;
  for (unsigned seed = 1000; seed < 1400; seed += kCaseStep) {
    std::mt19937 random(seed);
    std::string text = seed % 8 == 0 ? random_study(random, {"pipedream-2bw"}) : random_study(random);
    if (seed % 8 > 5) text += "  offload: [activations]\n";
    if (seed % 8 == 3) text += "  step_overhead: 40us\n  reduce_scatter: false\n";
    if (seed % 8 == 1) text += "what_if:\n  ranks: [{ranks: \"0\", time: 2}]\n";
    SCOPED_TRACE(text);
    try {
      const Study study = read_study(Config::parse(text, "study.yaml", {}));
      PlanEvaluator evaluator(study);
      const PlanPrepared plan = evaluator.prepare(study.request);
      const PlanOutcome whole = PlansEitherWay(evaluator).by_nodes(plan);
      ++compared;
      const std::optional<PlanOutcome> watched =
          PlansEitherWay(evaluator).by_nodes_within(plan, whole.iteration);
      ASSERT_TRUE(watched);
      ASSERT_EQ(watched->iteration, whole.iteration);
      ASSERT_EQ(watched->compute, whole.compute);
      ASSERT_EQ(watched->exposed_communication, whole.exposed_communication);
      const Time bound = evaluator.slot_bound(plan);
      if (bound == Time(0)) {
        overlapping += schedule_of(plan.plan).flushes ? 0 : 1;
        unlike += study.what_if.changes_simulation() ? 1 : 0;
        const std::optional<PlanOutcome> kept = evaluator.simulate_within(plan, Time(0));
        ASSERT_TRUE(kept);
        ASSERT_EQ(kept->iteration, whole.iteration);
        continue;
      }
      // In slots, where it can be; and then what was seen of slots says nothing wrong of nodes.
      PlanEvaluator other(study);
      const PlanPrepared same = other.prepare(study.request);
      for (int i = 0; i < 2; ++i) {
        const std::optional<PlanOutcome> kept = other.simulate_within(same, whole.iteration);
        ASSERT_TRUE(kept);
        ASSERT_EQ(kept->iteration, whole.iteration);
      }
      ASSERT_TRUE(PlansEitherWay(other).by_nodes_within(same, whole.iteration));
      given_up_in_slots +=
          PlansEitherWay(other).in_slots(same) && !other.simulate_within(same, Time(bound.value / 10 * 9))
              ? 1
              : 0;
      given_up += PlansEitherWay(evaluator).by_nodes_within(plan, Time(bound.value / 10 * 9)) ? 0 : 1;
      given_up_late +=
          PlansEitherWay(evaluator).by_nodes_within(plan, Time((bound.value + whole.iteration.value) / 2))
              ? 0
              : 1;
    } catch (const Error&) {
      continue;  // not every combination is legal
    }
  }
  EXPECT_GT(compared, 100 / kCaseStep);
  EXPECT_GT(given_up, 80 / kCaseStep);
  EXPECT_GT(given_up_late, 20 / kCaseStep);
  EXPECT_GT(given_up_in_slots, 20 / kCaseStep);
  EXPECT_GT(overlapping, 10 / kCaseStep);
  EXPECT_GT(unlike, 10 / kCaseStep);
}

// Those that differ only in what becomes of gradients, each after `plan`.
std::vector<PlanRequest> with_other_exchanges(PlanRequest request) {
  std::vector<PlanRequest> others;
  for (const bool overlap : {false, true}) {
    for (const bool offload : {false, true}) {
      request.plan.overlap = overlap;
      request.plan.offload_optimizer = offload;
      others.push_back(request);
      if (request.plan.overlap_parameters || request.plan.zero_stage > 1) continue;
      others.push_back(request);
      others.back().plan.zero_stage = 1 - request.plan.zero_stage;
    }
  }
  return others;
}

// By rank, what it computed when, as far as that was over by then.
std::map<std::int32_t, std::vector<std::pair<Time, Time>>> computed_before(Time end,
                                                                           const PlanPrepared& plan) {
  SimulationOptions options;
  options.fold = options.fold_time = false;
  for (std::int32_t rank = 0; rank < plan.plan.ranks; ++rank) options.record_ranks.push_back(rank);
  const Result result = run_study(plan.study(), options).result;
  std::map<std::int32_t, std::vector<std::pair<Time, Time>>> computed;
  for (const RankClass& rank : result.classes) {
    for (const Interval& interval : rank.computes) {
      if (interval.end < end) computed[rank.representative].emplace_back(interval.start, interval.end);
    }
  }
  return computed;
}

TEST_F(EvaluateTest, RunsAreAlikeUntilGradientsAreExchanged) {
  std::int64_t compared = 0, computations = 0;
  double reached = 0;
  constexpr unsigned kStep = kCaseStep == 1 ? 1 : 5;  // one in eleven has none that is legal and small
  for (unsigned seed = 3000; seed < 3200; seed += kStep) {
    std::mt19937 random(seed);
    std::string text = random_study(random);
    if (seed % 3 == 0) text += "  offload: activations\n";
    SCOPED_TRACE(text);
    try {
      const Study study = read_study(Config::parse(text, "study.yaml", {}));
      PlanEvaluator evaluator(study);
      const PlanPrepared plan = evaluator.prepare(study.request);
      const Time end = evaluator.ahead_of(plan).first_exchange;
      if (end == Time(0) || plan.plan.ranks > 8 || plan.plan.micro_batches > 8) continue;
      const auto computed = computed_before(end, plan);
      for (const PlanRequest& request : with_other_exchanges(study.request)) {
        const PlanPrepared other = evaluator.prepare(request);
        ASSERT_EQ(evaluator.ahead_of(other).first_exchange, end);
        ASSERT_EQ(computed_before(end, other), computed);
        ++compared;
      }
      for (const auto& [rank, of_rank] : computed) computations += static_cast<std::int64_t>(of_rank.size());
      reached += in_seconds(end) / in_seconds(evaluator.simulate(plan).iteration);
    } catch (const Error&) {
      continue;  // not every combination is legal
    }
  }
  EXPECT_GT(compared, 60 / kCaseStep);
  EXPECT_GT(computations, 2000 / kCaseStep);
  EXPECT_GT(reached, 4.0 / kCaseStep);
}

// What was seen of one plan gives up others, and only those that take longer.
TEST_F(EvaluateTest, WhatWasSeenOfAPlanGivesUpOthersThatTakeLonger) {
  std::int64_t given_up = 0, kept = 0, without_a_run = 0;
  for (unsigned seed = 4000; seed < 4100; seed += kCaseStep) {
    std::mt19937 random(seed);
    std::string text = random_study(random, {"1f1b", "interleaved", "gpipe"});
    if (seed % 2 == 0) text += "  offload: activations\n";
    SCOPED_TRACE(text);
    try {
      const Study study = read_study(Config::parse(text, "study.yaml", {}));
      PlanEvaluator evaluator(study);
      const PlanPrepared plan = evaluator.prepare(study.request);
      const Time iteration = PlansEitherWay(evaluator).by_nodes(plan).iteration;
      const Time longest =
          seed % 3 == 0 ? iteration : Time((evaluator.slot_bound(plan).value + iteration.value) / 2);
      PlansEitherWay(evaluator).by_nodes_within(plan, longest);
      for (const PlanRequest& request : with_other_exchanges(study.request)) {
        const PlanPrepared other = evaluator.prepare(request);
        const bool known = PlansEitherWay(evaluator).is_known_to_be_late(other, longest);
        const bool late = !PlansEitherWay(evaluator).by_nodes_within(other, longest);
        const bool longer = PlansEitherWay(evaluator).by_nodes(other).iteration > longest;
        ASSERT_TRUE(longer || !late);
        ASSERT_TRUE(late || !known);
        (late ? given_up : kept) += 1;
        without_a_run += known ? 1 : 0;
      }
    } catch (const Error&) {
      continue;  // not every combination is legal
    }
  }
  EXPECT_GT(given_up, 40 / kCaseStep);
  EXPECT_GT(kept, 40 / kCaseStep);
  EXPECT_TRUE(kCaseStep != 1 || without_a_run > 12)
      << without_a_run;  // of all cases: few of them may have none
}

// One evaluator for many plans, and one for each: what plans share is told apart by all that it depends on.
TEST_F(EvaluateTest, WhatPlansShareChangesNothing) {
  std::int64_t compared = 0, refused = 0;
  std::set<Time> bounds, slot_bounds;
  for (unsigned seed = 0; seed < 12; seed += kCaseStep) {
    std::mt19937 random(seed);
    const Study study = read_study(Config::parse(random_study(random), "study.yaml", {}));
    PlanEvaluator shared(study);
    for (int plan = 0; plan < 30; ++plan) {
      const auto one_of = [&](auto... choices) {
        const std::array all = {choices...};
        return all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
      };
      PlanRequest request = study.request;
      request.tensor = one_of(1, 2);
      request.pipeline = one_of(1, 2, 4);
      request.micro_batches = one_of(4, 8);
      request.plan.schedule = one_of("1f1b", "gpipe", "zb-h1", "interleaved", "dualpipe");
      request.plan.virtual_stages = request.plan.schedule == "interleaved" ? 2 : 1;
      request.plan.zero_stage = one_of(0, 1, 1, 2);
      request.plan.recompute = one_of(Recompute::none, Recompute::full, Recompute::block);
      request.plan.recompute_blocks = request.plan.recompute == Recompute::block ? one_of(0, 1, 2, 9) : 0;
      request.plan.sequence_parallel = one_of(false, true);
      request.plan.overlap = one_of(false, true);
      request.plan.overlap_parameters = one_of(false, true);
      request.plan.scatter_gather = one_of(false, true);
      request.plan.offload_optimizer = one_of(false, false, true);
      request.plan.offload_activations = one_of(false, false, true);
      request.plan.host = one_of(Host::compiled, Host::eager);
      request.plan.issue_time = one_of(Time(3'000'000), Time(30'000'000));
      request.balance_stages = one_of(false, false, true);
      request.plan.check_collectives = plan % 3 == 0;
      std::set<Time> own_bounds, own_slot_bounds;
      const auto told_by = [&](PlanEvaluator& evaluator) -> std::string {
        try {
          const PlanPrepared made = evaluator.prepare(request);
          const Time bound = evaluator.bound(made), slot_bound = evaluator.slot_bound(made);
          own_bounds.insert(bound);
          own_slot_bounds.insert(slot_bound);
          return fmt::format("{}: {} {} {} {} {}", text_of(made.plan), bound.value, slot_bound.value,
                             evaluator.computing_bound(made), evaluator.memory(made).needed().value,
                             evaluator.simulate(made).iteration.value);
        } catch (const Error& error) {
          return std::string("refused: ") + error.what();
        }
      };
      PlanEvaluator alone(study);
      const std::string told = told_by(alone);
      ASSERT_EQ(told_by(shared), told);
      if (told.starts_with("refused")) {
        ++refused;
        continue;
      }
      bounds.merge(own_bounds);
      slot_bounds.merge(own_slot_bounds);
      ++compared;
    }
  }
  EXPECT_GT(compared, 75 / kCaseStep);
  EXPECT_GT(refused, 30 / kCaseStep);
  EXPECT_GT(bounds.size(), 30u / kCaseStep);
  // Exchanges count in these alone.
  EXPECT_GT(slot_bounds.size(), bounds.size());
}

TEST_F(EvaluateTest, NoPlanTakesLessEnergyThanItsBound) {
  std::int64_t plans = 0;
  double tightness = 0;
  for (unsigned seed = 0; seed < 600; seed += kCaseStep) {
    std::mt19937 random(seed);
    std::string text = random_study(random);
    if (seed % 5 == 0) text += "  stage_blocks: balanced\n";
    if (seed % 7 == 0) text += "  offload: activations\n";
    SCOPED_TRACE(text);
    try {
      // Figures of no device, so that each part of the sum is to be seen.
      Study study = read_study(Config::parse(text, "study.yaml", {}));
      study.machine.device.busy_power = Power(seed % 3 == 0 ? 100 : 1000);
      study.machine.device.idle_power = Power(100);
      study.machine.host_power = Power(seed % 2 == 0 ? 0 : 50);
      PlanEvaluator evaluator(study);
      const PlanPrepared plan = evaluator.prepare(study.request);
      const Time bound = std::max(evaluator.bound(plan), evaluator.slot_bound(plan));
      const double least =
          least_energy(study.machine, plan.plan.ranks, bound, evaluator.computing_bound(plan));
      const PlanOutcome outcome = evaluator.simulate(plan);
      ASSERT_LE(least, outcome.energy.value().value);
      tightness += least / outcome.energy->value;
      ++plans;
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_GT(plans, 150 / kCaseStep);
  EXPECT_GT(tightness / static_cast<double>(plans), 0.8);  // bounds of nothing would pass, too
}

// Nothing is known of what any algorithm would have to send of them, but of the one that is taken.
TEST_F(EvaluateTest, ExchangesOfTokensAmongManyRanksAreBounded) {
  write("many.yaml",
        "family: mixtral\nlayers: 2\nhidden: 4096\nheads: 32\nkv_heads: 8\nvocabulary: 512\nsequence: "
        "1024\nexperts: {count: 128, active: 8, feed_forward: 1024}\n");
  for (const int experts : {32, 128}) {
    const Study study = read_study(Config::parse(
        fmt::format("model: {}\nmachine: dgx-h100\nplan: {{ranks: 128, expert: {}, micro_batch: 1, "
                    "micro_batches: 4, issue_time: 0s}}\n",
                    (folder_ / "many.yaml").string(), experts),
        "study.yaml", {}));
    PlanEvaluator evaluator(study);
    const PlanPrepared plan = evaluator.prepare(study.request);
    const Time bound = evaluator.slot_bound(plan), iteration = evaluator.simulate(plan).iteration;
    EXPECT_LE(bound, iteration) << experts;
    EXPECT_GT(in_seconds(bound), 0.8 * in_seconds(iteration)) << experts;
    // What it takes about is nearer, and no bound.
    EXPECT_GE(evaluator.about(plan), evaluator.bound(plan)) << experts;
  }
}

// As the note of it says: an eager PyTorch begins no all-reduce beside what it computes before it.
TEST_F(EvaluateTest, WhatHasNoEffectChangesNothing) {
  const auto iteration = [&](const std::string& framework, bool overlap) {
    const Study study = read_study(Config::parse(
        fmt::format("model: {}\nmachine: dgx-a100\nplan: {{ranks: 4, tensor: 4, micro_batch: 4, "
                    "micro_batches: 2, recompute: full, issue_time: 1us, framework: {}, "
                    "overlap_tensor: {}}}\n",
                    (folder_ / "wide.yaml").string(), framework, overlap),
        "study.yaml", {}));
    PlanEvaluator evaluator(study);
    return evaluator.simulate(evaluator.prepare(study.request)).iteration;
  };
  EXPECT_EQ(iteration("pytorch", true), iteration("pytorch", false));
  EXPECT_LT(iteration("megatron", true), iteration("megatron", false));
}

// Checks take as long however many operators that is.
TEST_F(EvaluateTest, ChecksOfCallsLastWhateverAnOperatorTakesTheHost) {
  const auto seconds = [&](const std::string& issue, bool in_slots) {
    const Study study = read_study(Config::parse(
        fmt::format("model: {}\nmachine: dgx-a100\nplan: {{ranks: 8, tensor: 2, micro_batch: 1, "
                    "micro_batches: 8, issue_time: {}, check_collectives: true}}\n",
                    (folder_ / "gpt.yaml").string(), issue),
        "study.yaml", {}));
    PlanEvaluator evaluator(study);
    const PlanPrepared plan = evaluator.prepare(study.request);
    EXPECT_EQ(PlansEitherWay(evaluator).in_slots(plan).has_value(), in_slots) << issue;
    return in_seconds(evaluator.simulate(plan).iteration);
  };
  const double expected = seconds("1us", true);
  EXPECT_NEAR(seconds("1ns", false), expected, 0.02 * expected);
  EXPECT_NEAR(seconds("1ps", false), expected, 0.02 * expected);
}

// ZeRO of one replica divides nothing, but PyTorch's FSDP2 still copies and holds what it would
// gather and reduce.
TEST_F(EvaluateTest, StagesOfZeroOfOneReplicaAreOnePlanButUnderPyTorch) {
  const auto text = [&](const std::string& framework, int zero) {
    const Study study = read_study(Config::parse(
        fmt::format("model: {}\nmachine: dgx-a100\nplan: {{ranks: 2, tensor: 2, micro_batch: 1, "
                    "micro_batches: 2, framework: {}, zero: {}}}\n",
                    (folder_ / "gpt.yaml").string(), framework, zero),
        "study.yaml", {}));
    PlanEvaluator evaluator(study);
    return text_of(evaluator.prepare(study.request).plan);
  };
  EXPECT_EQ(text("megatron", 0), text("megatron", 2));
  EXPECT_EQ(text("pytorch", 0), text("pytorch", 1));
  EXPECT_NE(text("pytorch", 0), text("pytorch", 2));
}

}  // namespace
}  // namespace armilla
