#include "ir/derived/metrics.h"

#include <gtest/gtest.h>

#include "ir/derived/communication.h"

namespace armilla {
namespace {

// One rank class of two ranks: 6 us of products (12 Mflop each pass), an all-reduce of 1 MB from 4 us to 10
// us.
Run small_run() {
  Run run;
  run.study.plan.ranks = 2;
  run.study.plan.batch = 5;
  run.study.plan.precision = DType::fp16;
  Operator& op = run.model.operators.emplace_back();  // with a weight, on the model's input
  op.weight_is_operand = true;
  op.needs_input_gradient = false;
  op.parameters = {0};
  op.forward = {WorkKind::matrix, DType::fp16, Flops(12'000'000), Bytes(1), {{100, 200, 300, 1, true}}};
  run.model.parameters.emplace_back();
  run.peak_rate = teraflops(4);
  run.graph.ranks = 2;
  run.graph.program_of = {0, 0};
  run.graph.families = {world_family(2)};
  run.graph.layers = {"first", "second"};
  run.graph.works = {
      {WorkKind::matrix, DType::fp16, Flops(12'000'000), Bytes(1), {{100, 200, 300, 1, true}}}};
  run.graph.collectives = {{CollectiveKind::all_reduce, Bytes(1'000'000), 0, 0, 0}};
  Program& program = run.graph.programs.emplace_back();
  const std::uint32_t forward = program.add(NodeKind::compute, Phase::forward, 0, 0, 0, {});
  const std::uint32_t backward =
      program.add(NodeKind::compute, Phase::weight_gradient, 0, 1, 0, std::span(&forward, 1));
  program.add(NodeKind::collective, Phase::gradient_exchange, 0, 1, 0, std::span(&backward, 1));
  run.result.iteration = microseconds(10);
  run.result.ranks = 2;
  RankClass ranks;
  ranks.ranks = 2;
  ranks.compute = microseconds(6);
  ranks.communication = microseconds(6);
  ranks.exposed_communication = microseconds(3);
  ranks.computes = {{microseconds(0), microseconds(2), 0}, {microseconds(2), microseconds(6), 1}};
  ranks.collectives = {{microseconds(4), microseconds(10), 2}};
  run.result.classes = {ranks};
  CollectiveRecord record;
  record.node = 2;
  record.group_size = 2;
  record.algorithm = "ring";
  record.issued = microseconds(4);
  record.started = microseconds(5);
  record.finished = microseconds(10);
  record.link_limit = microseconds(4);
  run.result.collectives = {record};
  return run;
}

TEST(Metrics, Throughput) {
  const auto run = small_run();
  EXPECT_DOUBLE_EQ(samples_per_second(run), 1e6);
  EXPECT_DOUBLE_EQ(model_flops(run), 2 * 2 * 12e6);
  // 48 Mflop in 10 us on 2 x 4 TFLOP/s.
  EXPECT_DOUBLE_EQ(model_flops_utilization(run), 0.6);
  EXPECT_DOUBLE_EQ(hardware_flops_utilization(run), 0.6);
}

TEST(Metrics, ModelFlopsLeaveOutHiddenScoresAndWhatIsRepeated) {
  auto run = small_run();
  Operator& op = run.model.operators[0];
  EXPECT_FALSE(has_hidden_scores(run.model));
  op.weight_is_operand = false;  // two activations: both gradients are of inputs
  op.needs_input_gradient = true;
  EXPECT_DOUBLE_EQ(model_flops(run), 2 * 3 * 12e6);
  op.full_flops = Flops(24'000'000);  // a kernel that skips them
  EXPECT_TRUE(has_hidden_scores(run.model));
  EXPECT_DOUBLE_EQ(model_flops(run), 2 * 3 * 12e6);
  EXPECT_DOUBLE_EQ(full_model_flops(run), 2 * 3 * 24e6);
  op.full_flops = Flops(0);  // one that computes them
  op.masked_flops = Flops(6'000'000);
  EXPECT_DOUBLE_EQ(model_flops(run), 2 * 3 * 6e6);
  EXPECT_DOUBLE_EQ(full_model_flops(run), 2 * 3 * 12e6);
  EXPECT_EQ(visible_forward_flops(run.model), Flops(6'000'000));
  EXPECT_DOUBLE_EQ(hardware_flops(run), 2 * 2 * 12e6);  // of the graph, whatever the model says
}

TEST(Metrics, ModelFlopsLeaveOutWhatExpertsDrop) {
  auto run = small_run();
  const double all = model_flops(run);
  run.study.plan.expert_capacity = 0.25;
  EXPECT_DOUBLE_EQ(model_flops(run), all) << "no product of experts";
  run.model.operators[0].expert = true;
  EXPECT_DOUBLE_EQ(model_flops(run), all / 4);
  EXPECT_DOUBLE_EQ(full_model_flops(run), all) << "as Megatron-LM counts";
  run.study.plan.expert_capacity = 1.25;
  EXPECT_DOUBLE_EQ(model_flops(run), all) << "empty rows are not of the model";
}

// Twenty calls of half the longest time there is.
TEST(Metrics, SumsOfTimesSaturate) {
  auto run = small_run();
  CollectiveRecord& record = run.result.collectives.front();
  record.issued = Time(0);
  record.started = record.finished = kEndOfTime / 2;
  run.result.collectives.resize(20, record);
  EXPECT_EQ(summarize_collectives(run).front().queued, kEndOfTime);
  for (CollectiveRecord& each : run.result.collectives) each.started = Time(0);
  EXPECT_EQ(summarize_collectives(run).front().time, kEndOfTime);
}

TEST(Metrics, CollectivesAreSummedByKind) {
  const std::vector<CollectiveSummary> summaries = summarize_collectives(small_run());
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries[0].count, 1);
  EXPECT_EQ(summaries[0].time, microseconds(5));
  EXPECT_EQ(summaries[0].queued, microseconds(1));
  EXPECT_DOUBLE_EQ(summaries[0].bus_bandwidth.value, 1e6 / 5e-6);
  EXPECT_DOUBLE_EQ(summaries[0].link_share, 0.8);
}

TEST(Metrics, LayersAreCostedByPhase) {
  const auto run = small_run();
  const std::vector<LayerCost> costs = layer_costs(run);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[0].forward, microseconds(2));
  EXPECT_EQ(costs[1].weight_gradient, microseconds(4));
  EXPECT_EQ(costs[1].communication, microseconds(6));
}

// A layer is that of the role that computes longest for it, not of the first role alone.
TEST(Metrics, LayersAreThoseOfAllRoles) {
  auto run = small_run();
  run.graph.programs.push_back(run.graph.programs[0]);
  run.graph.programs[1].layer = {1, 0, 0};
  run.result.classes.push_back(run.result.classes[0]);
  run.result.classes[1].program = 1;
  run.result.classes[1].computes[1].end = microseconds(12);
  const std::vector<LayerCost> costs = layer_costs(run);
  EXPECT_EQ(costs[0].compute(), microseconds(10));
  EXPECT_EQ(costs[0].communication, microseconds(6));
  EXPECT_EQ(costs[1].compute(), microseconds(4));
}

TEST(Metrics, IdleIsWhatIsLeft) {
  const auto run = small_run();
  EXPECT_EQ(idle(run.result.classes[0], run.result.iteration), microseconds(1));
}

TEST(Metrics, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::broadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_reduce, 1), 0);
}

TEST(Metrics, NothingIsDividedByZero) {
  auto run = small_run();
  run.result.iteration = Time(0);
  EXPECT_EQ(samples_per_second(run), 0);
  EXPECT_EQ(model_flops_utilization(run), 0);
  EXPECT_EQ(utilization({}, Time(0)), 0);
}

}  // namespace
}  // namespace armilla
