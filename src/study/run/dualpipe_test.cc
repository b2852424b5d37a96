// What DualPipe and combined 1F1B are for: all-to-alls of one pass hidden behind the computations
// of the other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"
#include "cost/cost.h"
#include "ir/derived/stage_table.h"
#include "lower/hybrid.h"
#include "read/study.h"
#include "sim/simulate.h"
#include "study/run.h"

namespace armilla {
namespace {

constexpr std::int64_t kLayers = 4, kStages = 2;

// Layers of two computations of 10 us, each followed by an all-to-all of `exchange` us; the backward pass the
// other way round with two computations in the place of each.
class ExpertLayers {
 public:
  // `strict`: every step waits for the one before, as calls in one stream do (lower/shard/pass_writer.h).
  ExpertLayers(std::int64_t exchange, bool strict) : exchange_(exchange) {
    model_.works.push_back({WorkKind::vector, DType::fp32, Flops(10'000'000), Bytes(0), {}});
    BlockShape& shape = model_.shapes.emplace_back();
    shape.input = shape.output = Bytes(1);
    shape.forward.steps = {compute("attention", Phase::forward, {}), all_to_all("dispatch", {0}),
                           compute("mlp", Phase::forward, {1}), all_to_all("combine", {2})};
    shape.backward.steps = {all_to_all("combine", {}),
                            compute("mlp", Phase::input_gradient, {0}),
                            all_to_all("dispatch", {1}),
                            compute("mlp", Phase::weight_gradient, {1}),
                            compute("attention", Phase::input_gradient, {2}),
                            compute("attention", Phase::weight_gradient, {4})};
    for (std::size_t i = 1; i < shape.backward.steps.size() && strict; ++i)
      shape.backward.steps[i].after.assign(1, static_cast<std::uint32_t>(i - 1));
    for (std::int64_t i = 0; i < kLayers; ++i)
      model_.blocks.push_back({"layer" + std::to_string(i), BlockKind::decoder, 0, 0});
  }

  Time iteration(std::string_view schedule, std::int64_t micro_batches) const {
    Plan plan;
    plan.ranks = 2 * kStages;
    plan.pipeline = kStages;
    plan.expert = 2;
    plan.micro_batches = plan.batch = micro_batches;
    plan.schedule = schedule;
    plan.weight_dtype = plan.gradient_dtype = plan.parameter_dtype = DType::fp32;
    const LoweredJob job = lower_sharded({model_}, plan);
    Study study;
    study.plan = plan;
    study.machine.device.vector_rate = FlopRate(1e12);
    study.machine.device.memory_bandwidth = gigabytes_per_second(1000);
    study.machine.dimensions = {
        {"experts", DimensionKind::fully_connected, 2, gigabytes_per_second(1), Time(0)},
        {"stages", DimensionKind::fully_connected, kStages, gigabytes_per_second(1000), Time(0)}};
    return simulate(job.graph, study, *make_cost_model(study.compute, study.machine.device)).iteration;
  }

 private:
  PassStep compute(const char* name, Phase phase, std::vector<std::uint32_t> after) {
    PassStep step;
    step.phase = phase;
    step.name = model_.names.add(name);
    step.after = std::move(after);
    return step;
  }
  // Half of the bytes stay.
  PassStep all_to_all(const char* name, std::vector<std::uint32_t> after) {
    PassStep step = compute(name, Phase::forward, std::move(after));
    step.kind = NodeKind::collective;
    step.collective = CollectiveKind::all_to_all;
    step.axis = GroupAxis::expert;
    step.bytes = Bytes(exchange_ * 2000);
    return step;
  }

  std::int64_t exchange_;  // us
  ShardedModel model_;
};

// What two more micro-batches, one of each direction, take: two pairs of passes of two layers each.
Time more(std::string_view schedule, std::int64_t exchange) {
  const ExpertLayers layers(exchange, schedule != "dualpipe");
  return layers.iteration(schedule, 14) - layers.iteration(schedule, 12);
}

// MLP(B) and MLP(W) run beside dispatch(F) and dispatch(B), MLP(F) after them, attention(B) and (W) beside
// combine(F), attention(F) beside combine(B): figure 4 of the DeepSeek-V3 report. Nothing is left of the
// all-to-alls but a byte between the stages.
TEST(DualPipe, PairsHideAllToAlls) {
  constexpr double kPair = 2 * (20 + 40);
  EXPECT_NEAR(in_seconds(more("dualpipe", 10)) * 1e6, 2 * kPair, 0.01);
  EXPECT_NEAR(in_seconds(more("dualpipe", 0)) * 1e6, 2 * kPair, 0.01);
}

// Eight all-to-alls of a pair and rank share the links: what computation cannot cover is left, no more.
TEST(DualPipe, LinksAreTheLimitWhereComputationIsShort) {
  constexpr double kPair = 8 * 30;
  const double pairs = in_seconds(more("dualpipe", 30)) * 1e6;
  EXPECT_GE(pairs, 2 * kPair - 0.01);
  EXPECT_LE(pairs, 2 * (kPair + 20));
}

// Collectives are called in the stream of the computations there, which wait for each of them.
TEST(DualPipe, OtherSchedulesHideNone) {
  for (const std::string_view schedule : {"1f1b", "gpipe", "zb-h1"}) {
    EXPECT_NEAR(in_seconds(more(schedule, 10)) * 1e6, 2 * (120 + 80), 0.01) << schedule;
  }
}

// Of one copy of the weights: a micro-batch's two passes are a pair on each rank.
TEST(CombinedPasses, PairsOfOneForwardOneBackwardHideAllToAlls) {
  const auto more_of = [](std::int64_t exchange) {
    const ExpertLayers layers(exchange, false);
    const Time difference = layers.iteration("combined-1f1b", 14) - layers.iteration("combined-1f1b", 12);
    return in_seconds(difference) * 1e6;
  };
  constexpr double kPair = 2 * (20 + 40);
  EXPECT_NEAR(more_of(0), 2 * kPair, 0.01);
  EXPECT_NEAR(more_of(10), 2 * kPair, 0.01);
  EXPECT_GE(more_of(30), 2 * 8 * 30 - 0.01) << "the links are the limit";
}

class DualPipeModel : public testing::Test {
 protected:
  void SetUp() override {
    file_ = path_for_test("dualpipe.yaml");
    std::ofstream(file_)
        << "name: small\nsource: test\nfamily: deepseek\nlayers: 8\nhidden: 1024\nheads: 16\n"
           "vocabulary: 4096\nsequence: 2048\nexperts: {count: 8, active: 2, feed_forward: "
           "1024, shared_feed_forward: 1024}\nlatent_attention: {key_value_rank: 256, "
           "rope_head_dim: 64, nope_head_dim: 64, value_head_dim: 64}\n";
  }
  void TearDown() override { std::filesystem::remove(file_); }

  // What the stages wait for experts, of the iteration, on average: the one that the other waits for does
  // less, and which of the other's waits an all-to-all is under way in follows from how fast both compute.
  double share(const std::string& schedule, const std::string& stages = "pipeline: 2") const {
    const auto done = run_study(prepare_study(read_study(Config::parse(
        "model: " + file_.string() + "\nmachine: dgx-h100\nplan: {host: compiled, ranks: 16, " + stages +
            ", expert: 4, micro_batch: 1, micro_batches: "
            "16, schedule: " +
            schedule + "}\n",
        "study.yaml"))));
    const StageTable table = stage_table(done);
    for (std::size_t kind = 0; kind < table.kinds.size(); ++kind) {
      if (table.kinds[kind] != "expert") continue;
      double sum = 0;
      for (const auto& stage : table.stages) sum += in_seconds(stage.exposed[kind]);
      return sum / static_cast<double>(table.stages.size()) / in_seconds(done.result.iteration);
    }
    return 0;
  }

  std::filesystem::path file_;
};

TEST_F(DualPipeModel, WaitsLessForExperts) {
  const double sequential = share("1f1b"), paired = share("dualpipe");
  EXPECT_GT(sequential, 0.05);
  EXPECT_LT(paired, 0.3 * sequential);
}

// Also without a pipeline, where the next micro-batch's forward pass is beside a backward pass.
TEST_F(DualPipeModel, CombinedPassesWaitLess) {
  for (const char* stages : {"pipeline: 1", "pipeline: 2", "pipeline: 2, virtual_stages: 2"}) {
    const double waits = share("1f1b", stages);
    EXPECT_GT(waits, 0.05) << stages;
    EXPECT_LT(share("combined-1f1b", stages), 0.5 * waits) << stages;
  }
}

}  // namespace
}  // namespace armilla
