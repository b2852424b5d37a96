#include "lower/hybrid.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/error_testing.h"
#include "ir/graph_testing.h"
#include "lower/jobs/lowered_job_testing.h"
#include "lower/plan.h"
#include "lower/shard/sharded_model_testing.h"
#include "read/read.h"

namespace armilla {
namespace {

LoweredJob lowered_hybrid(const SmallShape& shape, const Plan& plan, std::int64_t iterations = 1) {
  return lower_sharded({small_sharded_model(shape)}, plan, iterations);
}

TEST(Hybrid, TwoStagesUnderOneForwardOneBackward) {
  const Graph graph = lowered_hybrid({}, small_plan(2, 1, 1, 2)).graph;
  EXPECT_EQ(describe(graph, 0),
            "0 f0\n"
            "1 f1 after 0\n"
            "2 send activations 20 to 1 tag 0 after 1\n"
            "3 f0 after 1\n"
            "4 f1 after 3\n"
            "5 send activations 20 to 1 tag 0 after 4\n"
            "6 receive gradients 20 from 1 tag 1 after 1\n"
            "7 b1 after 6 4\n"
            "8 w1 after 7\n"
            "9 b0 after 8\n"
            "10 w0 after 9\n"
            "11 receive gradients 20 from 1 tag 1 after 4\n"
            "12 b1 after 11 10\n"
            "13 w1 after 12\n"
            "14 b0 after 13\n"
            "15 w0 after 14\n"
            "16 optimizer, bucket 0 after 15\n");
  EXPECT_EQ(describe(graph, 1),
            "0 receive activations 20 from 0 tag 0\n"
            "1 f2 after 0\n"
            "2 f3 after 1\n"
            "3 b3 after 2\n"
            "4 w3 after 3\n"
            "5 b2 after 4\n"
            "6 w2 after 5\n"
            "7 send gradients 20 to 0 tag 1 after 6\n"
            "8 receive activations 20 from 0 tag 0 after 2\n"
            "9 f2 after 8 6\n"
            "10 f3 after 9\n"
            "11 b3 after 10\n"
            "12 w3 after 11\n"
            "13 b2 after 12\n"
            "14 w2 after 13\n"
            "15 send gradients 20 to 0 tag 1 after 14\n"
            "16 optimizer, bucket 0 after 14\n");
}

// W keeps the rank busy while gradients travel: the input gradients alone hold up the message.
TEST(Hybrid, ZeroBubbleSendsInputGradientsBeforeWeightGradients) {
  const Graph graph = lowered_hybrid({}, small_plan(2, 1, 1, 1, "zb-h1")).graph;
  EXPECT_EQ(describe(graph, 1),
            "0 receive activations 20 from 0 tag 0\n"
            "1 f2 after 0\n"
            "2 f3 after 1\n"
            "3 b3 after 2\n"
            "4 b2 after 3\n"
            "5 send gradients 20 to 0 tag 1 after 4\n"
            "6 w3 after 4\n"
            "7 w2 after 6\n"
            "8 optimizer, bucket 0 after 7\n");
}

// How long the host needs for calls, in operators of 80 us: 160 us and 240 us for every further rank besides.
// Messages between stages are not checked.
TEST(Hybrid, HostsCheckWhatTheyIssue) {
  const auto issues = [](bool checks, Host host, Framework framework) {
    Plan plan = small_plan(2, 4, 2, 2);
    plan.check_collectives = checks;
    plan.host = host;
    plan.framework = framework;
    const Graph graph = lowered_hybrid({.reduces = true}, plan).graph;
    std::map<std::string, std::set<std::int32_t>> of_family;
    for (const CollectiveCall& call : graph.collectives)
      of_family[graph.families[call.family].name].insert(call.issues);
    return of_family;
  };
  using Issues = std::map<std::string, std::set<std::int32_t>>;
  EXPECT_EQ(issues(false, Host::eager, Framework::megatron), (Issues{{"tensor", {1}}, {"data", {1}}}));
  EXPECT_EQ(issues(true, Host::eager, Framework::megatron),
            (Issues{{"tensor", {1 + 5}}, {"data", {1 + 11}}}));
  EXPECT_EQ(issues(true, Host::eager, Framework::pytorch), (Issues{{"tensor", {3 + 5}}, {"data", {1 + 11}}}));
  EXPECT_EQ(issues(true, Host::compiled, Framework::pytorch), (Issues{{"tensor", {1}}, {"data", {1}}}));
}

std::string mixtral_of(int count) {
  return "family: mixtral\nlayers: 3\nhidden: 256\nheads: 4\nkv_heads: 4\nvocabulary: 8192\nsequence: 512\n"
         "experts: {count: " +
         std::to_string(count) + ", active: 2, feed_forward: 512}\n";
}

std::int64_t issues_of_host(const Graph& graph) {
  const Program& program = graph.programs.front();
  std::int64_t issues = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) issues += host_issues(graph, program, node);
  return issues;
}

// Two experts of a rank, two products of them, forward and for the gradients of their inputs.
TEST(Hybrid, ExpertsThatAreQuantisedOneByOneAreIssuedOneByOne) {
  const Model model = read_described_yaml(mixtral_of(4), "m", ModelOptions());
  const auto issued = [&](Scaling scaling, Host host, DType precision = DType::fp8) {
    Plan plan;
    plan.batch = 1;
    plan.ranks = plan.expert = 2;
    plan.precision = precision;
    plan.weight_dtype = plan.parameter_dtype = DType::bf16;
    plan.gradient_dtype = DType::fp32;
    plan.scaling = scaling;
    plan.host = host;
    return issues_of_host(lower_hybrid(model, plan).graph);
  };
  constexpr std::int64_t kLayers = 3, kProducts = 2, kExperts = 2, kPasses = 2;
  const std::int64_t delayed = issued(Scaling::delayed, Host::eager);
  EXPECT_EQ(issued(Scaling::current, Host::eager) - delayed, kLayers * kProducts * kExperts * kPasses);
  EXPECT_EQ(issued(Scaling::block, Host::eager), delayed) << "made together";
  EXPECT_EQ(issued(Scaling::current, Host::compiled), issued(Scaling::delayed, Host::compiled));
  EXPECT_EQ(issued(Scaling::current, Host::eager, DType::bf16),
            issued(Scaling::delayed, Host::eager, DType::bf16));
}

// Eight experts of a rank, two products of them, forward and for the gradients of inputs and of
// weights: an eager host needs an operator's time for each. The device begins with the first of them. Before
// each of the exchanges that tokens are counted for it needs that of five more.
TEST(Hybrid, HostsTakeTheirTimeForEveryExpert) {
  const Model model = read_described_yaml(mixtral_of(16), "m", ModelOptions());
  // Beyond one of every node.
  const auto more = [&](Host host, Framework framework, bool fused = false) {
    Plan plan;
    plan.batch = 1;
    plan.ranks = plan.expert = 2;
    plan.host = host;
    plan.framework = framework;
    plan.fused_experts = fused;
    const Graph graph = lower_hybrid(model, plan).graph;
    for (const Work& work : graph.works) EXPECT_EQ(work.issues, 1) << "to begin";
    return issues_of_host(graph) - static_cast<std::int64_t>(graph.programs.front().size());
  };
  constexpr std::int64_t kLayers = 3, kProducts = 2, kPasses = 3;
  constexpr std::int64_t kMore = 7, kCounts = 5;
  EXPECT_EQ(more(Host::eager, Framework::megatron), kLayers * (kProducts * kMore * kPasses + kCounts));
  EXPECT_EQ(more(Host::compiled, Framework::megatron), 0);
  EXPECT_EQ(more(Host::eager, Framework::pytorch), 0) << "one kernel for all groups";
  EXPECT_EQ(more(Host::eager, Framework::megatron, true), kLayers * kCounts) << "likewise";
}

TEST(Hybrid, SlotsKnowTheirNodes) {
  const LoweredJob job = lowered_hybrid({}, small_plan(2, 1, 1, 2));
  std::vector<std::uint32_t> firsts, ends;
  for (const NodeRange& range : job.slot_nodes[0]) {
    firsts.push_back(range.first);
    ends.push_back(range.end);
  }
  EXPECT_EQ(firsts, (std::vector<std::uint32_t>{0, 3, 6, 11}));
  EXPECT_EQ(ends, (std::vector<std::uint32_t>{3, 6, 11, 16}));
}

// The order of a rank's computations, from its slots alone.
std::string expected_computations(const LoweredJob& job, std::size_t rank) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t block) {
    text += (text.empty() ? "" : " ") + std::string(name) + std::to_string(block);
  };
  for (const PipelineSlot& slot : job.order.slots[rank]) {
    const auto stage =
        static_cast<std::size_t>(job.order.chunks[rank][static_cast<std::size_t>(slot.chunk)].stage);
    const std::int64_t first = job.stages.first[stage], end = job.stages.end[stage];
    if (slot.action == PipelineAction::forward) {
      for (std::int64_t b = first; b < end; ++b) add("f", b);
      continue;
    }
    for (std::int64_t b = end; b-- > first;) {
      if (slot.action != PipelineAction::weight_gradient) add("b", b);
      if (slot.action != PipelineAction::input_gradient) add("w", b);
    }
  }
  return text;
}

TEST(Hybrid, ComputationsFollowTheScheduleAndFormOneChain) {
  for (const std::string_view schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
    Plan plan = small_plan(2, 1, 1, 4, schedule);
    if (schedule == "interleaved" || schedule == "zb-v") plan.virtual_stages = 2;
    SmallShape shape;
    shape.layers = 6;
    const LoweredJob job = lowered_hybrid(shape, plan);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(computations(job.graph, rank), expected_computations(job, rank)) << schedule;
      const Program& program = job.graph.programs[rank];
      std::uint32_t last = UINT32_MAX;
      for (std::uint32_t node = 0; node < program.size(); ++node) {
        if (program.kind[node] != NodeKind::compute) continue;
        const auto waits = program.dependences(node);
        EXPECT_TRUE(last == UINT32_MAX || std::count(waits.begin(), waits.end(), last) == 1) << node;
        last = node;
      }
    }
  }
}

TEST(Hybrid, StagesOfARankThatFollowEachOtherNeedNoMessage) {
  SmallShape shape;
  shape.layers = 6;
  Plan plan = small_plan(2, 1, 1, 4, "zb-v");
  plan.virtual_stages = 2;
  const Graph graph = lowered_hybrid(shape, plan).graph;
  // Rank 1 holds stages 1 and 2 of 4: it exchanges two messages a direction and micro-batch with rank 0 only.
  const Program& program = graph.programs[1];
  EXPECT_EQ(std::count(program.kind.begin(), program.kind.end(), NodeKind::send), 8);
  EXPECT_EQ(std::count(program.kind.begin(), program.kind.end(), NodeKind::receive), 8);
}

TEST(Hybrid, WithoutOverlapTheNextSlotWaitsForTheSend) {
  Plan plan = small_plan(2, 1, 1, 3);
  for (const bool overlap : {false, true}) {
    plan.overlap_pipeline = overlap;
    const Graph graph = lowered_hybrid({}, plan).graph;
    std::int64_t waiting = 0;
    for (const Program& program : graph.programs) {
      for (std::uint32_t node = 0; node < program.size(); ++node) {
        for (const std::uint32_t wait : program.dependences(node))
          waiting += program.kind[node] == NodeKind::compute && program.kind[wait] == NodeKind::send;
      }
    }
    // Rank 0 sends three times before its last slot; rank 1 twice.
    EXPECT_EQ(waiting, overlap ? 0 : 5);
  }
}

// Tensor ranks that send parts gather them before the pass that needs them.
TEST(Hybrid, PartsOfMessagesAreGathered) {
  Plan plan = small_plan(2, 1, 3, 4);
  const Bytes whole = lowered_hybrid({}, plan).graph.transfers.front().bytes;
  plan.scatter_gather = true;
  const Graph graph = lowered_hybrid({}, plan).graph;
  for (const PointToPoint& transfer : graph.transfers) EXPECT_EQ(transfer.bytes.value, (whole.value + 2) / 3);
  for (const Program& program : graph.programs) {
    std::int64_t gathers = 0;
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      for (const std::uint32_t wait : program.dependences(node)) {
        if (program.kind[wait] != NodeKind::receive) continue;
        ASSERT_EQ(program.kind[node], NodeKind::collective) << "nothing else waits for a part";
        const CollectiveCall& call = graph.collectives[program.payload[node]];
        EXPECT_EQ(call.kind, CollectiveKind::all_gather);
        EXPECT_EQ(call.bytes.value, (whole.value + 2) / 3 * 3);
        ++gathers;
      }
    }
    EXPECT_EQ(gathers, 4) << "one of each micro-batch";
  }
  plan.sequence_parallel = true;
  EXPECT_EQ(lowered_hybrid({}, plan).graph.transfers.front().bytes, whole) << "already a part";
}

// Two layers reduce after both passes.
TEST(Hybrid, PytorchIssuesTensorCollectivesForLonger) {
  SmallShape shape;
  shape.reduces = true;
  Plan plan = small_plan(1, 1, 2, 1);
  const auto issues_under = [&](Framework framework, Host host) {
    plan.framework = framework;
    plan.host = host;
    return issues_of_host(lowered_hybrid(shape, plan).graph);
  };
  const std::int64_t few = issues_under(Framework::megatron, Host::eager);
  EXPECT_EQ(issues_under(Framework::pytorch, Host::compiled), few);
  EXPECT_EQ(issues_under(Framework::pytorch, Host::eager), few + 2 * 2 * 2);
}

TEST(Hybrid, RecomputationComesBeforeTheBackwardPassOfItsBlock) {
  SmallShape shape;
  shape.layers = 2;
  Plan plan = small_plan(1, 1, 1, 1);
  plan.recompute = Recompute::block;
  plan.recompute_blocks = 1;
  EXPECT_EQ(computations(lowered_hybrid(shape, plan).graph, 0), "f0 f1 f2 f3 b3 w3 b2 w2 r1 b1 w1 b0 w0");
  shape.recomputes = true;
  plan.recompute = Recompute::full;
  EXPECT_EQ(computations(lowered_hybrid(shape, plan).graph, 0), "f0 f1 f2 f3 b3 w3 r2 b2 w2 r1 b1 w1 b0 w0");
}

TEST(Hybrid, CollectivesOfAPassHoldUpTheNextBlockButNotTheWeightGradient) {
  SmallShape shape;
  shape.reduces = true;
  const Graph graph = lowered_hybrid(shape, small_plan(1, 1, 2, 1)).graph;
  const std::string text = dump_graph(graph);
  EXPECT_NE(text.find("  1 forward 'f' 200 flops 200 bytes after 0\n"
                      "  2 forward 'reduce' all-reduce 64 bytes in tensor after 1\n"
                      "  3 forward 'f' 200 flops 200 bytes after 2 1\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  8 input gradient 'b' 201 flops 201 bytes after 7\n"
                      "  9 input gradient 'reduce' all-reduce 64 bytes in tensor after 8\n"
                      "  10 weight gradient 'w' 202 flops 202 bytes after 8\n"
                      "  11 input gradient 'b' 201 flops 201 bytes after 9 10\n"),
            std::string::npos)
      << text;
}

TEST(Hybrid, OneRankOnAnAxisExchangesNothingOnIt) {
  SmallShape shape;
  shape.reduces = true;
  const Graph graph = lowered_hybrid(shape, small_plan(1, 1, 1, 1)).graph;
  EXPECT_TRUE(graph.collectives.empty());
  EXPECT_TRUE(graph.families.empty());
  // What waited for the reduction waits for what the reduction waited for.
  EXPECT_EQ(graph.programs[0].dependences(2)[0], 1U);
}

TEST(Hybrid, SlotsBesideEachOtherTakeTurns) {
  SmallShape shape;
  shape.layers = 6;
  shape.reduces = true;
  const LoweredJob job = lowered_hybrid(shape, small_plan(2, 1, 2, 8, "dualpipe"));
  std::int64_t pairs = 0;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const Program& program = job.graph.programs[rank];
    for (std::size_t s = 1; s < job.order.slots[rank].size(); ++s) {
      if (!job.order.slots[rank][s].beside_previous) continue;
      ++pairs;
      const NodeRange range = job.slot_nodes[rank][s];
      EXPECT_EQ(range.first, job.slot_nodes[rank][s - 1].first);
      // A reduction of one slot runs beside a computation of the other: the chain goes on while it runs.
      std::int64_t hidden = 0;
      for (std::uint32_t node = range.first; node + 1 < range.end; ++node) {
        if (program.kind[node] != NodeKind::collective || program.kind[node + 1] != NodeKind::compute)
          continue;
        const auto waits = program.dependences(node + 1);
        hidden += std::count(waits.begin(), waits.end(), node) == 0 &&
                  program.phase[node] != program.phase[node + 1];
      }
      EXPECT_GE(hidden, 2) << "slot " << s;
    }
  }
  EXPECT_GT(pairs, 0);
}

TEST(Hybrid, RanksOfAStageShareItsProgram) {
  Plan plan = small_plan(2, 3, 2, 2);
  const LoweredJob job = lowered_hybrid({}, plan);
  ASSERT_EQ(job.graph.programs.size(), 2U);
  // Tensor fastest, then data, then pipeline.
  EXPECT_EQ(job.graph.program_of, (std::vector<std::uint32_t>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(job.graph.layers, (std::vector<std::string>{"embedding", "layer0", "layer1", "head"}));
  EXPECT_EQ(job.graph.works.size(),
            10U);  // 3 shapes of 3 works, and optimizers of 1500 elements
}

TEST(Hybrid, EveryLegalPlanCanFinish) {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  constexpr std::string_view kSchedules[] = {"gpipe", "1f1b",     "interleaved",  "zb-h1",
                                             "zb-v",  "dualpipe", "pipedream-2bw"};
  std::int64_t lowered = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string_view schedule = kSchedules[pick(7) - 1];
    Plan plan = small_plan(pick(4), pick(3), pick(2), pick(12), schedule);
    if (schedule == "interleaved") plan.virtual_stages = 1 + pick(2);
    if (schedule == "zb-v") plan.virtual_stages = 2;
    plan.zero_stage = static_cast<int>(pick(4) - 1);
    if (plan.zero_stage > 0 && plan.data() > 1 && pick(2) == 1) plan.hybrid_shard = plan.data();
    plan.overlap = pick(2) == 1;
    plan.overlap_parameters = pick(2) == 1;
    plan.overlap_pipeline = pick(2) == 1;
    plan.scatter_gather = pick(2) == 1;
    if (pick(4) == 1) plan.framework = Framework::pytorch, plan.host = Host::eager;
    plan.prefetch = pick(2) == 1;
    plan.reshard = pick(2) == 1;
    plan.offload_optimizer = pick(4) == 1;
    plan.offload_activations = pick(4) == 1;
    SmallShape shape;
    shape.layers = 5 + pick(8);
    shape.ties = pick(2) == 1;
    shape.reduces = pick(2) == 1;
    shape.recomputes = pick(3) == 1;
    shape.partial_elements = pick(2) == 1 ? 8 : 0;
    const std::int64_t iterations = pick(3);
    if (plan.zero_stage < 3) plan.reduce_scatter = pick(2) == 1;
    if (pick(3) == 1) plan.step_overhead = microseconds(5);
    try {
      const LoweredJob job = lowered_hybrid(shape, plan, iterations);
      EXPECT_EQ(UntimedExecution(job.graph).complaint(), "")
          << schedule << " p " << plan.pipeline << " v " << plan.virtual_stages << " m " << plan.micro_batches
          << " ranks " << plan.ranks << " zero " << plan.zero_stage << " iterations " << iterations;
      ++lowered;
    } catch (const Error& error) {
      EXPECT_EQ(error.where, "plan") << error.what();
    }
  }
  EXPECT_GT(lowered, 150);
}

// A schedule may need more micro-batches than fill its pipeline.
TEST(Hybrid, LoopsAreOfAsManyMicroBatchesAsTheirScheduleNeeds) {
  for (const std::int64_t stages : {2, 6, 8, 12}) {
    SmallShape shape;
    shape.layers = 2 * stages;
    const Plan plan = small_plan(stages, 1, 1, 10 * stages, "dualpipe");
    const LoweredJob job = lower_sharded({small_sharded_model(shape)}, plan, 1, Bandwidth(0), Written::loops);
    const Graph whole = lowered_hybrid(shape, plan).graph;
    for (std::size_t p = 0; p < whole.programs.size(); ++p) {
      EXPECT_EQ(job.graph.programs[p].loops.size(), 1U) << stages;
      EXPECT_EQ(job.graph.programs[p].length(), whole.programs[p].size()) << stages;
    }
  }
}

TEST(Hybrid, AbsurdGraphsAreRefused) {
  Plan plan = small_plan(2, 1, 1, 1'000'000'000);
  EXPECT_EQ(error_of([&] { lowered_hybrid({}, plan); }),
            "plan: the execution graph would have at least 8000000000 nodes\n"
            "  hint: use at most about 6250000 micro-batches; the limit is 50000000 nodes");
  plan = small_plan(2, 1, 1, 3'000'000);
  EXPECT_EQ(error_of([&] { lowered_hybrid({}, plan); }),
            "plan: the execution graph would have about 312000048 nodes\n"
            "  hint: use at most about 480769 micro-batches; the limit is 50000000 nodes");
}

TEST(Hybrid, AModelReadForAnotherMicroBatchIsRefused) {
  Model model;
  model.batch = 3;
  EXPECT_EQ(error_of([&] { lower_hybrid(model, small_plan(1, 1, 1, 4)); }),
            "plan: the model was read for 3 samples, a micro-batch has 1");
}

// Of the matrix products of all ranks.
double matrix_flops(const Graph& graph) {
  std::vector<double> of_program;
  for (const Program& program : graph.programs) {
    double& sum = of_program.emplace_back();
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] != NodeKind::compute) continue;
      const Work& work = graph.works[program.payload[node]];
      if (work.kind == WorkKind::matrix) sum += static_cast<double>(work.flops.value);
    }
  }
  double total = 0;
  for (const std::uint32_t program : graph.program_of) total += of_program[program];
  return total;
}

PlanRequest gpt3_request() {
  PlanRequest request;
  request.where = "plan";
  request.ranks = 128;
  request.tensor = 8;
  request.pipeline = 8;
  request.micro_batch = 1;
  request.global_batch = 16;
  request.precision = DType::bf16;
  request.plan.sequence_parallel = true;
  return request;
}

// Narayanan et al. 2021, section 5.1: with recomputation an iteration takes
// 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)) operations. Recomputation repeats no logits, flash attention
// repeats the scores and skips what is masked: all below a percent for GPT-3.
TEST(Hybrid, Gpt3TakesTheArithmeticOfThePaper) {
  ModelOptions options;
  options.batch = 1;
  const Model model = read_model("gpt3-175b", options);
  PlanRequest request = gpt3_request();
  request.plan.recompute = Recompute::full;
  const Plan plan = resolve_plan(request, 128, true, true);
  const LoweredJob job = lower_hybrid(model, plan);
  const double sequence = 2048, layers = 96, hidden = 12288, vocabulary = 51200;
  const double paper = 96 * 16 * sequence * layers * hidden * hidden *
                       (1 + sequence / (6 * hidden) + vocabulary / (16 * layers * hidden));
  EXPECT_NEAR(matrix_flops(job.graph) / paper, 1, 0.02);
}

TEST(Hybrid, DividingAModelKeepsItsArithmetic) {
  ModelOptions options;
  options.batch = 1;
  const Model model = read_model("gpt3-175b", options);
  const Plan plan = resolve_plan(gpt3_request(), 128, true, true);
  PlanRequest whole;
  whole.where = "plan";
  whole.ranks = 1;
  whole.micro_batch = whole.global_batch = 1;
  whole.precision = DType::bf16;
  const double one = matrix_flops(lower_hybrid(model, resolve_plan(whole, 1, true, true)).graph);
  // Vocabulary rows are padded to a multiple of the degree.
  EXPECT_NEAR(matrix_flops(lower_hybrid(model, plan).graph) / (16 * one), 1, 1e-3);
}

TEST(Hybrid, UnevenExpertsGetProgramsOfTheirOwn) {
  ModelOptions options;
  options.batch = 1;
  const Model model = read_model("mixtral-8x7b", options);
  PlanRequest request;
  request.where = "plan";
  request.ranks = 8;
  request.pipeline = 2;
  request.plan.expert = 4;
  request.micro_batch = 1;
  request.global_batch = 8;
  request.precision = DType::bf16;
  for (const ExpertLoad load : {ExpertLoad::uniform, ExpertLoad::zipf}) {
    request.plan.expert_load = load;
    request.plan.expert_skew = 0.5;
    const LoweredJob job = lower_hybrid(model, resolve_plan(request, 8, true, true));
    EXPECT_EQ(job.graph.programs.size(), load == ExpertLoad::uniform ? 2U : 8U);
    EXPECT_EQ(UntimedExecution(job.graph).complaint(), "");
  }
}

}  // namespace
}  // namespace armilla
