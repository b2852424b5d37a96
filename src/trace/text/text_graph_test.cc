#include "trace/text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "base/error_testing.h"
#include "base/oracle_testing.h"
#include "read/astra.h"
#include "trace/text/text_graph_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kForward = 0, kInput = 1, kWeight = 2;

Time no_time(const CollectiveCall&) {
  return Time(0);
}

// Layers A, B, ... with cycles of 1, 2, 3 times 100, 1000, ... and no collectives.
TextWorkload silent(TextPolicy policy, int layers = 4) {
  TextWorkload workload;
  workload.policy = policy;
  workload.model_parallel_group = 1;
  workload.last_bottom_layer = 1;
  std::int64_t unit = 100;
  for (int i = 0; i < layers; ++i, unit *= 10) {
    TextLayer& layer = workload.layers.emplace_back();
    layer.name = std::string(1, static_cast<char>('A' + i));
    layer.forward.cycles = unit;
    layer.input_gradient.cycles = 2 * unit;
    layer.weight_gradient.cycles = 3 * unit;
    if (policy == TextPolicy::hybrid_customized) layer.policy = TextPolicy::model;
  }
  return workload;
}

TextGraph lowered(const TextWorkload& workload, std::int64_t passes = 1,
                  const std::vector<std::int64_t>& dimensions = {8}) {
  TextGraphOptions options;
  options.dimensions = dimensions;
  options.passes = passes;
  TextGraph text = text_graph(workload, options);
  validate_graph(text.graph);
  return text;
}

TextReport played(const TextWorkload& workload, std::int64_t passes, Time duration) {
  const TextGraph text = lowered(workload, passes);
  return text_report(text, play(text, [&](const CollectiveCall&) { return duration; }));
}

// Rows "nocomm" of the measured oracle astra1/micro.csv.
TEST(TextGraph, StepsCostACycleEachAsMeasuredInThePeer) {
  const auto nanoseconds_of = [](const TextWorkload& workload, std::int64_t passes) {
    const TextReport report = played(workload, passes, Time(0));
    EXPECT_EQ(report.finish - report.exposed, report.compute);
    return report.finish.value / 1000;
  };
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::data), 1), 666'411);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::data), 2), 1'332'822);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::model), 1), 666'612);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::hybrid_data_model), 1), 666'612);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::hybrid_model_data), 2), 1'333'224);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::hybrid_customized), 1), 666'612);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::hybrid_transformer), 1), 666'612);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::hybrid_dlrm), 1), 666'411);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::hybrid_dlrm_enhanced), 1), 666'411);
  EXPECT_EQ(nanoseconds_of(silent(TextPolicy::distributed_inference), 3), 333'312);
  TextWorkload recompute = silent(TextPolicy::hybrid_transformer_fwd_in_bckwd);
  recompute.checkpoints = {0};
  recompute.checkpoint_initiates = {3};
  EXPECT_EQ(nanoseconds_of(recompute, 1), 677'716);
  recompute.checkpoints = {2, 0};
  recompute.checkpoint_initiates = {3, 1};
  EXPECT_EQ(nanoseconds_of(recompute, 1), 676'716);
}

TEST(TextGraph, StepsAndScalesAndFrequency) {
  TextGraphOptions options;
  options.dimensions = {8};
  options.astra1_steps = false;
  options.compute_scale = 0.5;
  const TextGraph text = text_graph(silent(TextPolicy::data, 1), options);
  EXPECT_EQ(play(text, no_time).iteration, nanoseconds(50 + 150));
  EXPECT_EQ(text.graph.programs[0].size(), 2);
  options.frequency = 2e9;
  EXPECT_EQ(play(text_graph(silent(TextPolicy::data, 1), options), no_time).iteration, nanoseconds(100));
  options.frequency = 3e9;
  EXPECT_EQ(play(text_graph(silent(TextPolicy::data, 1), options), no_time).iteration,
            picoseconds(16667 + 50000));
}

// Without any computation the front must not grow with the number of layers.
TEST(TextGraph, DependencesStayFewWithoutComputations) {
  TextWorkload workload;
  workload.policy = TextPolicy::data;
  for (int i = 0; i < 500; ++i) {
    TextLayer& layer = workload.layers.emplace_back();
    layer.name = "a";
    layer.weight_gradient = {0, CollectiveKind::all_reduce, Bytes(8)};
  }
  TextGraphOptions options;
  options.dimensions = {8};
  options.astra1_steps = false;
  options.passes = 3;
  const TextGraph text = text_graph(workload, options);
  EXPECT_LT(text.graph.programs[0].dependence.size(), 500 * 3 * 10);
  const TextReport report =
      text_report(text, play(text, [](const CollectiveCall&) { return nanoseconds(7); }));
  EXPECT_EQ(report.finish, nanoseconds(21));
  EXPECT_EQ(report.layers[0].exposed[kWeight], nanoseconds(21));
  EXPECT_EQ(report.layers[1].exposed[kWeight], nanoseconds(0));
}

// One all-reduce after layer 1's forward pass, row 12 of astra1/micro.csv (its chunks take 41,324 ns).
TEST(TextGraph, AForwardCollectiveBlocks) {
  TextWorkload workload = silent(TextPolicy::model, 2);
  workload.layers[1].forward.collective = CollectiveKind::all_reduce;
  workload.layers[1].forward.bytes = Bytes(1 << 20);
  workload.layers[1].update_cycles = 7;
  const TextReport report = played(workload, 1, nanoseconds(41'324));
  EXPECT_EQ(report.finish, nanoseconds(47'937));
  EXPECT_EQ(report.layers[1].exposed[kForward], nanoseconds(41'331));
  EXPECT_EQ(report.layers[1].communication[kForward], nanoseconds(41'331));
}

TEST(TextGraph, WeightGradientsAreWaitedForInTheNextPassAndAtTheEnd) {
  TextWorkload workload = silent(TextPolicy::data, 2);
  for (TextLayer& layer : workload.layers) {
    layer.weight_gradient.collective = CollectiveKind::all_reduce;
    layer.weight_gradient.bytes = Bytes(100);
    layer.update_cycles = 10;
  }
  // Pass 0: f 100 1000, w1 3000 -> W1 issued at 4102, g1 2000, w0 300 -> W0 issued at 6404, pass 1 at 6405.
  // W0 is done at 16414; f0 waits 10009, f1 waits nothing, since W1 was done at 14112.
  const TextReport report = played(workload, 2, nanoseconds(10'000));
  EXPECT_THAT(report.pass_ends, ElementsAre(nanoseconds(6404), nanoseconds(16'414 + 6404)));
  EXPECT_EQ(report.layers[0].communication[kWeight], nanoseconds(20'020));
  EXPECT_EQ(report.layers[0].exposed[kWeight], nanoseconds(10'009 + 10'009));
  EXPECT_EQ(report.layers[1].exposed[kWeight], nanoseconds(0));
  EXPECT_EQ(report.finish, nanoseconds(16'414 + 6404 + 10'010));
  EXPECT_EQ(report.compute, nanoseconds(2 * 6400));
}

TEST(TextGraph, InputGradientsOverlapTheirOwnWeightGradient) {
  TextWorkload workload = silent(TextPolicy::hybrid_transformer, 2);
  workload.model_parallel_group = 8;
  for (TextLayer& layer : workload.layers) {
    layer.input_gradient.collective = CollectiveKind::all_reduce;
    layer.input_gradient.bytes = Bytes(100);
  }
  const TextReport report = played(workload, 1, nanoseconds(3500));
  // Layer 1 waits 3500 - 1 - 3000, layer 0, which the transformers issue too, 3500 - 1 - 300.
  EXPECT_EQ(report.layers[1].exposed[kInput], nanoseconds(499));
  EXPECT_EQ(report.layers[0].exposed[kInput], nanoseconds(3199));
  EXPECT_EQ(report.finish, nanoseconds(6600 + 6 + 499 + 3199));

  TextGraphOptions options;
  options.dimensions = {8};
  options.blocking_input_gradient = true;
  const TextGraph text = text_graph(workload, options);
  EXPECT_EQ(play(text, [](const CollectiveCall&) { return nanoseconds(3500); }).iteration,
            nanoseconds(6600 + 6 + 7000));
  EXPECT_EQ(text.graph.collectives[0].preference, ChunkPreference::lifo);

  workload.policy = TextPolicy::model;  // which does not issue that of layer 0
  EXPECT_EQ(played(workload, 1, nanoseconds(3500)).finish, nanoseconds(6600 + 6 + 499));
}

TEST(TextGraph, DlrmExchangesItsEmbedding) {
  TextWorkload workload = silent(TextPolicy::hybrid_dlrm, 3);
  workload.layers[0].forward.collective = workload.layers[0].input_gradient.collective =
      CollectiveKind::all_to_all;
  workload.layers[0].forward.bytes = workload.layers[0].input_gradient.bytes = Bytes(100);
  // F0 issued at 100, awaited at the end of f1 = 1101; G0 issued after g2, awaited at the end of w0.
  const Time long_time = nanoseconds(20'000);
  TextReport report = played(workload, 1, long_time);
  EXPECT_EQ(report.layers[0].exposed[kForward], nanoseconds(20'000 - 1001));
  const Time overlapped = nanoseconds(1 + 3000 + 1 + 2000 + 1 + 300);
  EXPECT_EQ(report.layers[0].exposed[kInput], long_time - overlapped);
  const Time two_passes = played(workload, 2, long_time).finish;
  EXPECT_EQ(two_passes, report.finish + report.finish);

  workload.policy = TextPolicy::hybrid_dlrm_enhanced;  // does not wait for it
  report = played(workload, 2, long_time);
  EXPECT_EQ(report.layers[0].exposed[kInput], nanoseconds(0));
  EXPECT_LT(report.finish, two_passes - nanoseconds(10'000));
  const TextGraph text = lowered(workload);
  EXPECT_EQ(text.graph.collectives[0].preference, ChunkPreference::highest);
}

TEST(TextGraph, MicroIssuesAllAtOnceAndChargesTheFirstToFinish) {
  TextWorkload workload = silent(TextPolicy::micro, 2);
  for (TextLayer& layer : workload.layers)
    layer.weight_gradient = {5, CollectiveKind::all_reduce, Bytes(100)};
  const TextGraph text = lowered(workload, 3);
  EXPECT_EQ(text.graph.programs[0].size(), 3);
  EXPECT_THAT(text.graph.programs[0].dependence, IsEmpty());
  std::int64_t chunks = 4;
  const TextReport report =
      text_report(text, play(text, [&](const CollectiveCall&) { return nanoseconds(100 * --chunks); }));
  EXPECT_EQ(report.finish, nanoseconds(300));
  EXPECT_EQ(report.layers[0].exposed[kWeight], nanoseconds(100));
  EXPECT_EQ(report.layers[0].communication[kWeight], nanoseconds(600));
  EXPECT_EQ(report.compute, nanoseconds(0));
}

TextWorkload communicating(TextPolicy policy) {
  TextWorkload workload = silent(policy, 2);
  for (TextLayer& layer : workload.layers) {
    layer.forward = {1, CollectiveKind::all_gather, Bytes(10)};
    layer.input_gradient = {1, CollectiveKind::all_to_all, Bytes(20)};
    layer.weight_gradient = {1, CollectiveKind::all_reduce, Bytes(30)};
  }
  return workload;
}

// "layer part family kind bytes" of every collective.
std::vector<std::string> issued(const TextGraph& text) {
  std::vector<std::string> lines;
  for (const TextCollective& collective : text.collectives) {
    const CollectiveCall& call = text.graph.collectives[text.graph.programs[0].payload[collective.node]];
    lines.push_back(fmt::format("{} {} {} {} {}", collective.layer, static_cast<int>(collective.part),
                                text.graph.families[call.family].name, name_of(call.kind), call.bytes.value));
  }
  return lines;
}

TEST(TextGraph, PoliciesChooseDimensions) {
  EXPECT_THAT(issued(lowered(communicating(TextPolicy::data), 1, {4, 1, 2})),
              ElementsAre("1 2 world all-reduce 30", "0 2 world all-reduce 30"));
  EXPECT_THAT(issued(lowered(communicating(TextPolicy::model), 1, {4, 2})),
              ElementsAre("0 0 world all-gather 80", "1 0 world all-gather 80", "1 1 world all-to-all 20"));
  EXPECT_THAT(issued(lowered(communicating(TextPolicy::hybrid_data_model), 1, {4, 2, 2})),
              ElementsAre("0 0 dimensions 0 all-gather 40", "1 0 dimensions 0 all-gather 40",
                          "1 1 dimensions 0 all-to-all 20", "1 2 dimensions 1 2 all-reduce 30",
                          "0 2 dimensions 1 2 all-reduce 30"));
  EXPECT_THAT(issued(lowered(communicating(TextPolicy::hybrid_model_data), 1, {4})),
              ElementsAre("1 2 world all-reduce 30", "0 2 world all-reduce 30"));
  EXPECT_THAT(issued(lowered(communicating(TextPolicy::distributed_inference), 1, {4})),
              ElementsAre("0 0 world all-gather 40", "1 0 world all-gather 40"));
  EXPECT_THAT(issued(lowered(communicating(TextPolicy::data), 1, {1})), IsEmpty());
  TextWorkload customized = communicating(TextPolicy::hybrid_customized);
  customized.layers[0].policy = TextPolicy::data;
  customized.layers[1].policy = TextPolicy::hybrid_model_data;
  EXPECT_THAT(issued(lowered(customized, 1, {4, 2})),
              ElementsAre("1 0 dimensions 1 all-gather 20", "1 1 dimensions 1 all-to-all 20",
                          "1 2 dimensions 0 all-reduce 30", "0 2 world all-reduce 30"));
}

TEST(TextGraph, TheEmbeddingOfDlrmSpansAllDimensions) {
  TextWorkload workload = communicating(TextPolicy::hybrid_dlrm);
  workload.layers[0].forward.collective = workload.layers[1].forward.collective = CollectiveKind::all_to_all;
  workload.last_bottom_layer = 0;
  EXPECT_THAT(issued(lowered(workload, 1, {4, 2})),
              ElementsAre("0 0 world all-to-all 10", "1 2 world all-reduce 30", "0 1 world all-to-all 20",
                          "0 2 world all-reduce 30"));
}

TEST(TextGraph, AModelParallelGroupMaySplitADimension) {
  TextWorkload workload = communicating(TextPolicy::hybrid_transformer);
  const auto family_of = [&](std::int64_t group, const std::vector<std::int64_t>& dimensions) {
    workload.model_parallel_group = group;
    const TextGraph text = lowered(workload, 1, dimensions);
    return fmt::format("{} {}: {} | {}", text.split_dimension, text.split_first, text.graph.families[0].name,
                       text.graph.families.size() > 1 ? text.graph.families[1].name : "-");
  };
  EXPECT_EQ(family_of(4, {4, 2}), "-1 0: dimensions 0 | dimensions 1");
  EXPECT_EQ(family_of(2, {4, 2}), "0 2: dimensions 0 | dimensions 1 2");
  EXPECT_EQ(family_of(8, {4, 4}), "1 2: dimensions 0 1 | dimensions 2");
  EXPECT_EQ(family_of(8, {4, 2}), "-1 0: world | -");
  EXPECT_EQ(family_of(1, {4, 2}), "-1 0: world | -");
  workload.model_parallel_group = 2;
  const TextGraph text = lowered(workload, 1, {4, 2});
  EXPECT_THAT(logical_dimensions({4, 2}, text), ElementsAre(2, 2, 2));
  EXPECT_THAT(text.graph.families[1].groups[1], ElementsAre(1, 3, 5, 7));
  workload.model_parallel_group = 3;
  EXPECT_EQ(error_of([&] {
              lowered(workload, 1, {4, 2});
            }),
            "model_parallel_NPU_group: a group of 3 does not divide the dimensions 4x2\n"
            "  hint: it is a product of the first sizes and of a divisor of the next");
  workload.model_parallel_group = 6;
  EXPECT_EQ(error_of([&] {
              lowered(workload, 1, {4, 3});
            }),
            "model_parallel_NPU_group: a group of 6 does not divide the dimensions 4x3\n"
            "  hint: it is a product of the first sizes and of a divisor of the next");
  workload.model_parallel_group = 16;
  EXPECT_EQ(error_of([&] {
              lowered(workload, 1, {4, 2});
            }),
            "model_parallel_NPU_group: 16 NPUs in a group of 8\n"
            "  hint: ASTRA-sim 1.0 would silently run pure data parallelism; so does a group of 1");
  workload.model_parallel_group = 0;
  EXPECT_EQ(error_of([&] {
              lowered(workload, 1, {4, 2});
            }),
            "model_parallel_NPU_group: HYBRID_TRANSFORMER needs the size of its model-parallel groups\n"
            "  hint: write 'model_parallel_NPU_group: N' behind the policy; 1 is pure data parallelism");
}

TEST(TextGraph, FlatAlgorithmsSeeOneDimension) {
  TextGraphOptions options;
  options.dimensions = {4, 2};
  options.flat = {CollectiveKind::all_gather, CollectiveKind::all_reduce};
  EXPECT_THAT(
      issued(text_graph(communicating(TextPolicy::hybrid_data_model), options)),
      ElementsAre("0 0 world all-gather 80", "1 0 world all-gather 80", "1 1 dimensions 0 all-to-all 20"));
}

TEST(TextGraph, SimAiHasGroupsOfRanks) {
  TextWorkload workload = communicating(TextPolicy::hybrid_transformer);
  workload.model_parallel_group = 2;
  workload.plan.ep = 2;
  workload.plan.pp = 2;
  workload.layers[0].forward.group = TextGroup::expert;
  workload.layers[0].weight_gradient.group = TextGroup::data_expert;
  workload.layers[1].input_gradient = {1, CollectiveKind::broadcast, Bytes(5)};
  TextGraphOptions options;
  options.dimensions = {16};
  options.simai = true;
  const TextGraph text = text_graph(workload, options);
  EXPECT_THAT(issued(text), ElementsAre("0 0 expert all-gather 8192", "1 0 tensor all-gather 8192",
                                        "1 2 data all-reduce 30", "0 1 tensor all-to-all 20",
                                        "0 2 data of experts all-reduce 30"));
  EXPECT_THAT(text.graph.families[0].groups[0], ElementsAre(0, 2));
  EXPECT_THAT(text.graph.families[2].groups[0], ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(text.graph.families[3].groups[0], ElementsAre(0, 4));
  EXPECT_THAT(text.warnings, ElementsAre("BROADCAST is NONE to SimAI"));
  options.simai = false;
  EXPECT_THAT(text_graph(workload, options).warnings,
              ElementsAre("ALLGATHER_EP is NONE to ASTRA-sim 1.0", "BROADCAST is NONE to ASTRA-sim 1.0",
                          "ALLREDUCE_DP_EP is NONE to ASTRA-sim 1.0"));
  options.simai = true;
  options.dimensions = {12};
  EXPECT_EQ(error_of([&] { text_graph(workload, options); }),
            "dimensions: 12 ranks for groups of 2 model-parallel, 2 expert-parallel and 2 pipeline ranks\n"
            "  hint: their product divides the number of ranks");
}

// ASTRA-sim goes on at the first initiator behind the checkpoint, even if another one asked.
TEST(TextGraph, ARecomputeAcrossAnInitiatorSkipsLayers) {
  TextWorkload workload = silent(TextPolicy::hybrid_transformer_fwd_in_bckwd);
  workload.checkpoints = {0};
  workload.checkpoint_initiates = {1, 3};
  const TextGraph text = lowered(workload);
  EXPECT_THAT(
      text.warnings,
      ElementsAre("layer 3 initiates a recompute from checkpoint 0, but layer 1 between them initiates "
                  "one too: as in ASTRA-sim 1.0, layers 2 to 3 have no backward pass"));
  EXPECT_EQ(text.compute[3][kInput], Time(0));
  EXPECT_EQ(text.compute[1][kInput], nanoseconds(2000));
  EXPECT_EQ(text.compute[0][kForward], nanoseconds(200));
}

TEST(TextGraph, RefusesOptions) {
  const auto refused = [](TextGraphOptions options) {
    return error_of([&] { text_graph(communicating(TextPolicy::data), options); });
  };
  EXPECT_EQ(refused({}),
            "dimensions: 0 of them\n"
            "  hint: text workloads run on 1 to 10, counting a split one twice");
  EXPECT_EQ(refused({.dimensions = {4, 0}}),
            "dimensions: sizes 4x0\n"
            "  hint: each at least 1, all together at most 16777216 ranks");
  EXPECT_EQ(refused({.dimensions = {4}, .passes = 0}), "passes: 0 passes\n  hint: at least 1");
  EXPECT_EQ(refused({.dimensions = {4}, .comm_scale = 0.01}),
            "layer 1 'B', weight gradient: ALLREDUCE of 30 bytes times 0.01 is nothing\n"
            "  hint: a collective of no bytes never ends in ASTRA-sim 1.0");
  EXPECT_EQ(refused({.dimensions = {4}, .compute_scale = NAN}),
            "compute scale: nan\n  hint: a number of at least 0");
  EXPECT_EQ(refused({.dimensions = {4}, .frequency = 0}),
            "frequency: 0 Hz\n  hint: above 0 and at most 1 THz");
  EXPECT_EQ(refused({.dimensions = {4}, .passes = 100'000'000}),
            "passes: the graph of 100000000 passes has more than 16777216 nodes\n"
            "  hint: simulate fewer passes");
}

TEST(TextReport, RefusesARunWithoutIntervals) {
  const TextGraph text = lowered(silent(TextPolicy::data));
  Result result;
  EXPECT_EQ(error_of([&] { text_report(text, result); }), "report: the run has no ranks");
  result.classes.emplace_back();
  EXPECT_EQ(error_of([&] { text_report(text, result); }), "report: the run did not record its intervals");
}

// The chunks of a collective on a ring of ASTRA-sim 1.0's analytical network, from the closed forms of its
// description: endpoint delay 10 cycles, 2 links of 25 GB/s and 500 ns.
std::vector<Time> on_a_ring(std::int64_t ranks, std::int64_t splits, const CollectiveCall& call) {
  const auto round = [](std::int64_t bytes, bool reduces) {
    return 510 + static_cast<std::int64_t>(static_cast<double>(bytes) / (25 * 1.073741824 * 2)) +
           (reduces ? bytes / 500'000 * 3 : 0);
  };
  const bool gathers = call.kind == CollectiveKind::all_gather;
  std::int64_t rest = gathers ? call.bytes.value / ranks : call.bytes.value;
  const std::int64_t chunk = rest / splits;
  std::vector<Time> times;
  for (; rest > 0; rest -= chunk) {
    const std::int64_t bytes = gathers ? std::min(chunk, rest) : std::min(chunk, rest) / ranks;
    std::int64_t cycles = 10;
    if (call.kind == CollectiveKind::all_to_all)
      cycles += ranks * (ranks - 1) / 2 * round(bytes, false);
    else if (call.kind == CollectiveKind::all_reduce)
      cycles += (ranks - 1) * (round(bytes, true) + round(bytes, false));
    else
      cycles += (ranks - 1) * round(bytes, call.kind == CollectiveKind::reduce_scatter);
    times.push_back(nanoseconds(cycles));
  }
  return times;
}

struct OracleRun {
  std::string workload, network, system;
  std::int64_t passes = 1;
  double comm_scale = 1, compute_scale = 1;
  std::vector<double> microseconds;  // total, compute, exposed; exposed by fwd wg ig; comm by fwd wg ig
};

std::vector<OracleRun> oracle_runs(const std::filesystem::path& path) {
  std::vector<OracleRun> runs;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (cells.size() < 17 || cells[7] != "0" || cells[8].empty()) continue;
    OracleRun& run = runs.emplace_back(OracleRun{
        cells[0], cells[2], cells[3], std::stol(cells[4]), std::stod(cells[5]), std::stod(cells[6]), {}});
    for (std::size_t i = 8; i < 17; ++i) run.microseconds.push_back(std::stod(cells[i]));
  }
  return runs;
}

TextWorkload read_workload(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return read_astra_text(text, path.filename(), nullptr);
}

// Rings are where one queue is the whole engine: a group that splits the ring is left to the engine's tests.
TEST(TextReport, AgreesWithTheMeasuredRunsOnRings) {
  const std::map<std::string, std::pair<bool, std::int64_t>> systems = {
      {"ring-LIFO-s1-localBWAware-ep10-baseline-a1", {true, 1}},
      {"ring-LIFO-s4-localBWAware-ep10-baseline-a1", {true, 4}},
      {"ring-LIFO-s32-localBWAware-ep10-baseline-a1", {true, 32}},
      {"ring-FIFO-s4-localBWAware-ep10-baseline-a1", {false, 4}}};
  for (const auto& [folder, whole] : oracles("astra1")) {
    std::set<std::string> compared;
    int runs = 0;
    for (const OracleRun& run : oracle_runs(folder / "runs.csv")) {
      const auto system = systems.find(run.system);
      if (system == systems.end() || !run.network.starts_with("ring") ||
          run.network.find('_') != std::string::npos)
        continue;
      const auto [lifo, splits] = system->second;
      SCOPED_TRACE(fmt::format("{} {} {} {} passes, scales {} {}", run.workload, run.network, run.system,
                               run.passes, run.comm_scale, run.compute_scale));
      TextGraphOptions options;
      options.dimensions = {std::stol(run.network.substr(4))};
      options.passes = run.passes;
      options.compute_scale = run.compute_scale;
      options.comm_scale = run.comm_scale;
      const TextGraph text = text_graph(read_workload(folder / "workload" / run.workload), options);
      if (text.split_dimension >= 0) continue;
      const TextReport report =
          text_report(text, OneQueue(text, lifo, [&](const CollectiveCall& call) {
                              return on_a_ring(options.dimensions[0], system->second.second, call);
                            }).play());
      std::vector<std::int64_t> measured, reported;
      for (const double time : run.microseconds) measured.push_back(std::llround(time * 1000));
      const auto add = [&](Time time) { reported.push_back(time.value / 1000); };
      add(report.finish);
      add(report.compute);
      add(report.exposed);
      for (const auto figure : {&TextLayerReport::exposed, &TextLayerReport::communication}) {
        for (const std::size_t part : {kForward, kWeight, kInput}) {
          Time sum;
          for (const TextLayerReport& layer : report.layers) sum += (layer.*figure)[part];
          add(sum);
        }
      }
      EXPECT_EQ(measured, reported);
      compared.insert(run.workload);
      ++runs;
    }
    EXPECT_THAT(compared, testing::SizeIs(testing::Ge(whole ? 10 : 9)));
    EXPECT_GE(runs, whole ? 40 : 25);
  }
}

}  // namespace
}  // namespace armilla
