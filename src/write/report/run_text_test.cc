#include "write/report.h"

#include <gmock/gmock.h>

#include <sstream>

#include "write/report/example_run_testing.h"
#include "write/text_table.h"

namespace armilla {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunText, WholeReport) {
  EXPECT_EQ(write_run_text(example_run(), false),
            R"(mlp on lab
  model    208 parameters (832 B), 800.0 flop forward for 2 samples
  machine  TestChip
           nvlink: Switch of 2, 300.0 GB/s and 1.000 us per link
           rail: Ring of 2, 25.00 GB/s and 5.000 us per link
  plan     4 ranks = data 4
           batch 8 = 4 replicas x 1 micro-batch of 2, fp32, momentum
           gradient buckets of 25.00 MiB after a first of 1.000 MiB, exchanged during the backward
           pass
  models   compute roofline:launch=2us, network analytical

Iteration time  10.70 us     747,664 samples/s     MFU 16.7 %
  per GPU  167.5 MFLOP/s     186,916 samples/s

Time and memory of a rank  % of the iteration, of the device's memory
  role                ranks   compute     %  communication   exposed     %  idle     memory    %
  data-parallel rank      4  7.000 us  65.4       6.000 us  3.500 us  32.7   1.9  3.625 KiB  0.4
  ███████████████████████████████████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░
  █ compute  ▓ exposed communication  ░ idle

Memory of a rank  3.625 KiB, 0.4 % of 1.000 MiB: fits
  category     bytes  of all
  weights      832 B  22.4 %
  gradients    832 B  22.4 %
  optimizer    832 B  22.4 %
  activations  448 B  12.1 %
  temporary    768 B  20.7 %

Communication of a rank  of those that take part
  communication  axis   ranks  calls  bytes      time    queued  bus bandwidth  of limit
  all-reduce     world      4      2  832 B  5.900 us  599.6 ns     211.5 MB/s    46.2 %
    by reduce-scatter direct, all-reduce ring, all-gather direct

Costliest layers of 2
  layer   forward  backward   compute  of all  communication
  fc1    2.000 us  1.500 us  3.500 us  53.8 %       3.500 us
  fc2    1.000 us  2.000 us  3.000 us  46.2 %       5.000 us

Hottest links
  link                       alike      bytes      busy   bandwidth  utilisation
  rank 0 -> rank 2 (rail)        4      832 B  4.280 us  25.00 GB/s       40.0 %
  rank 0 -> switch (nvlink)      8  1.625 KiB  1.070 us  300.0 GB/s       10.0 %

Notes
  - the batch dimension of 'x' is 2
  - unverified figures of device TestChip: memory_efficiency

Warnings
  - the link rail is used in one direction only
)");
}

std::string without_colour(std::string text) {
  for (std::size_t begin = 0; (begin = text.find('\x1b')) != std::string::npos;)
    text.erase(begin, text.find('m', begin) + 1 - begin);
  return text;
}

TEST(RunText, ColourChangesNothingElse) {
  const std::string colourful = write_run_text(example_run(), true);
  EXPECT_THAT(colourful, HasSubstr("\x1b[1mTime and memory of a rank\x1b[0m"));
  EXPECT_EQ(without_colour(colourful), write_run_text(example_run(), false));
}

TEST(RunText, SaysLoudlyThatMemoryDoesNotSuffice) {
  armilla::Run run = example_run();
  run.memory.capacity = Bytes(1856);
  const std::string text = write_run_text(run, true);
  EXPECT_THAT(text, HasSubstr("3.625 KiB, \x1b[31m200.0 % of 1.812 KiB: does not fit\x1b[0m"));
  run.memory.capacity = Bytes(0);
  EXPECT_THAT(write_run_text(run, false), HasSubstr("3.625 KiB, the device's capacity is not known\n"));
}

// A straggler is a row of its own; where every rank differs, the row is of their means.
TEST(RunText, RanksOfARoleThatDiffer) {
  armilla::Run run = example_run();
  run.result.classes.resize(2, run.result.classes[0]);
  run.result.classes[0].ranks = 3;
  run.result.classes[1].ranks = 1;
  run.result.classes[1].representative = 2;
  run.result.classes[1].compute = nanoseconds(9'000);
  run.result.class_of = {0, 0, 1, 0};
  std::string text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("\n  ranks 0-1,3      3  7.000 us  65.4 "));
  EXPECT_THAT(text, HasSubstr("\n  rank 2           1  9.000 us  84.1 "));
  run.result.classes.resize(4, run.result.classes[0]);
  for (std::uint32_t i = 0; i < 4; ++i) {
    run.result.class_of[i] = i;
    run.result.classes[i].ranks = 1;
    run.result.classes[i].compute = nanoseconds(7'000 + 100 * i);
  }
  text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("  data-parallel rank      4  7.150 us  66.8 "));
  EXPECT_THAT(
      text, HasSubstr("  means; ranks of a role differ: those of data-parallel rank compute for 7.000 us to "
                      "7.300 us\n"));
}

// The example as one of several stages.
armilla::Run hybrid_run_of(std::size_t stages) {
  armilla::Run run = example_run();
  run.model.facts.sequence = 512;
  run.study.plan.ranks = static_cast<std::int64_t>(4 * stages);
  run.study.plan.pipeline = static_cast<std::int64_t>(stages);
  run.study.plan.batch = 8;
  run.study.plan.micro_batches = 4;
  run.study.plan.zero_stage = 1;
  run.result.ranks = run.study.plan.ranks;
  run.roles.clear();
  run.graph.programs.resize(stages, run.graph.programs[0]);
  run.graph.program_of.clear();
  for (std::uint32_t i = 0; i < 4 * stages; ++i) run.graph.program_of.push_back(i / 4);
  run.result.classes.resize(stages, run.result.classes[0]);
  for (std::uint32_t i = 0; i < stages; ++i) {
    run.graph.programs[i].role = "stage " + std::to_string(i);
    run.result.classes[i].program = i;
    run.result.classes[i].representative = static_cast<std::int32_t>(4 * i);
    run.roles.push_back({run.graph.programs[i].role, i, 1, run.memory, {}, {}});
  }
  run.roles[0].use.activations = Bytes(1000);
  run.memory = run.roles[0].use;
  return run;
}

TEST(RunText, AHybridRunHasARowPerRole) {
  const std::string text = write_run_text(hybrid_run_of(2), false);
  EXPECT_THAT(text, HasSubstr("  plan     8 ranks = pipeline 2 x data 4\n"
                              "           batch 32 = 4 replicas x 4 micro-batches of 2, fp32, momentum\n"
                              "           1f1b, ZeRO-1\n"));
  EXPECT_THAT(text, HasSubstr("Iteration time  10.70 us  2,990,654 samples/s  1,531,214,953 tokens/s  "
                              "MFU 33.5 %  HFU 16.7 %\n"
                              "  per GPU  335.0 MFLOP/s     191,401,869 tokens/s\n"));
  EXPECT_THAT(
      text,
      HasSubstr("Time and memory of a rank  % of the iteration, of the device's memory\n"
                "  role     ranks   compute     %  communication   exposed     %  idle     memory    %\n"
                "  stage 0      4  7.000 us  65.4       6.000 us  3.500 us  32.7   1.9  4.164 KiB  0.4\n"
                "  stage 1      4  7.000 us  65.4       6.000 us  3.500 us  32.7   1.9  3.625 KiB  0.4\n"
                "  stage 0  ████"));
  EXPECT_THAT(text, HasSubstr("idle\n  bubble 1.9 % of the time, 2.9 % of the computing time\n"));
  EXPECT_THAT(text,
              HasSubstr("\nMemory of stage 0, which needs most  4.164 KiB, 0.4 % of 1.000 MiB: fits\n"));
  EXPECT_THAT(text, HasSubstr("Costliest layers of 2\n"));
}

TEST(RunText, ThePlanNamesWhatStaysWideAndHowExpertsAreFilled) {
  armilla::Run run = hybrid_run_of(2);
  run.study.plan.wide_first_layers = 1;
  run.study.plan.wide_last_layers = 14;
  run.study.plan.wide_modules = {Part::attention};
  run.study.plan.expert_capacity = 1.25;
  run.study.plan.expert_dispatch = ExpertDispatch::one_hot;
  run.study.plan.cuda_graph_scope = {Part::attn, Part::moe_router};
  EXPECT_THAT(write_run_text(run, false), HasSubstr("           1f1b, ZeRO-1\n")) << "no experts, 32 bits";
  run.study.plan.precision = DType::fp8;
  run.model.facts.experts = 8;
  EXPECT_THAT(
      write_run_text(run, false),
      HasSubstr("           1f1b, ZeRO-1, bf16 in first layer and last 14 layers and attention, expert "
                "capacity 1.25,\n           one-hot dispatch\n"));
}

TEST(RunText, ThePlanTellsHowGradientsAreExchangedAndWhatLiesBetweenSteps) {
  armilla::Run run = hybrid_run_of(2);
  run.study.plan.reduce_scatter = false;
  run.study.plan.step_overhead = milliseconds(15);
  EXPECT_THAT(write_run_text(run, false),
              HasSubstr("           1f1b, ZeRO-1, gradients all-reduced, 15.00 ms between steps\n"));
}

TEST(RunText, AHeadingSpeaksOfTheColumnsThatAreShown) {
  const std::string narrow = write_run_text(hybrid_run_of(2), TextStyle(false, 50));
  EXPECT_THAT(narrow, HasSubstr("% of the iteration\n  role "));
  EXPECT_THAT(narrow, Not(HasSubstr("of the device's memory")));
}

TEST(RunText, JobsFitTheLine) {
  armilla::Run run = example_run();
  run.jobs = {
      {"training", "llama3-8b", "0-63", 64, Time(0), milliseconds(762), milliseconds(801)},
      {"fine-tuning", "bert-large", "64-127", 64, milliseconds(1), milliseconds(46), milliseconds(47)}};
  const std::string text = write_run_text(run, TextStyle(false, 60));
  const std::size_t begin = text.find("Iteration of each job\n") + 22;
  const std::string table = text.substr(begin, text.find("\n\n", begin) - begin);
  EXPECT_THAT(table, HasSubstr("slowdown"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60U) << line;
}

TEST(RunText, RolesWithTheSameFiguresAreOneRow) {
  armilla::Run run = hybrid_run_of(4);
  run.roles[3].use.activations = Bytes(500);
  const std::string text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("\n  stages 1,2      8  7.000 us "));
  EXPECT_THAT(text, HasSubstr("\n  stage 3         4  7.000 us "));
}

TEST(RunText, ManyRolesStayOnTheScreen) {
  armilla::Run run = hybrid_run_of(64);
  for (std::size_t i = 0; i < run.roles.size(); ++i)
    run.roles[i].use.activations = Bytes(static_cast<std::int64_t>(100'000 + 1000 * i));
  const std::string text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("\n  stage 18      4 "));
  EXPECT_THAT(text, HasSubstr("\n  and 45 more rows\n"));
  // Bars of some of them, from the first to the last.
  EXPECT_THAT(text, HasSubstr("\n  stage 0   █"));
  EXPECT_THAT(text, HasSubstr("\n  stage 63  █"));
}

TEST(RunText, KindsBeyondTheWidthOfTheLineAreOneColumn) {
  armilla::Run run = hybrid_run_of(2);
  const auto program = [&]() -> Program& { return run.graph.programs[1]; };
  program().role = "pipeline rank 15, expert position 63";
  run.result.iteration = microseconds(100);
  for (const char* const axis : {"tensor", "expert_tensor", "pipeline", "context", "embedding"}) {
    GroupFamily family = run.graph.families[0];
    family.name = axis;
    run.graph.families.push_back(family);
    CollectiveCall call = run.graph.collectives[0];
    call.family = static_cast<std::uint32_t>(run.graph.families.size() - 1);
    run.graph.collectives.push_back(call);
    const std::uint32_t node =
        program().add(NodeKind::collective, Phase::forward, 0, 0, run.graph.collectives.size() - 1, {});
    const Time start = microseconds(10 + 10 * node);
    run.result.classes[1].collectives.push_back({start, start + microseconds(1 + call.family), node});
  }
  run.result.iteration = microseconds(200);
  const std::string text = write_run_text(run, false);
  const std::size_t begin = text.find("  role ");
  std::string header = text.substr(begin, text.find('\n', begin) - begin);
  EXPECT_THAT(header, HasSubstr("  other  idle "));
  EXPECT_LE(display_width(header), kReportWidth);
  EXPECT_THAT(text, HasSubstr("  pipeline 15, expert 63 "));
}

TEST(RunText, GoodputAndTheSteadyPeriodAreInTheHeadline) {
  armilla::Run run = hybrid_run_of(2);
  run.iterations = 3;
  run.simulated = microseconds(12);
  run.result.iteration = microseconds(4);
  run.goodput = Goodput();
  run.goodput->interval = run.goodput->optimal_interval = 3600;
  run.goodput->share = 0.9;
  run.goodput->failures_per_day = 0.5;
  run.goodput->iteration = 4.44e-6;
  const std::string text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("Iteration time  4.000 us "));
  EXPECT_THAT(text,
              HasSubstr("  goodput 90.0 %: 0.50 failures a day, a checkpoint every 60 min (best 60 min); "
                        "4.44 us per"));
}

TEST(RunText, OtherDevicesStandBesideTheUsualOne) {
  armilla::Run run = example_run();
  OtherDevices other;
  other.device.name = "a10";
  other.first = other.last = 3;
  run.study.machine.others = {other};
  EXPECT_THAT(write_run_text(run, false), HasSubstr("  machine  TestChip; rank 3: a10\n"));
  for (std::int64_t first = 4; first < 20; first += 4) {
    other.first = first;
    other.last = first + 1;
    run.study.machine.others.push_back(other);
  }
  const std::string text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("12 to 13: a10"));
  EXPECT_THAT(text, HasSubstr("; and 1\n           more\n"));
  EXPECT_THAT(text, Not(HasSubstr("16 to 17")));
}

TEST(RunText, SaysOfDevicesNeverMeasuredWhoseRatesTheyHave) {
  armilla::Run run = example_run();
  run.shares = {0, 0, 1, 0.5};
  KernelRates& rates = run.study.machine.device.kernels.emplace();
  rates.matrix[DType::bf16] = {};
  rates.memory.range = rates.matrix[DType::bf16].range = {0, 0};
  EXPECT_THAT(
      write_run_text(run, false),
      HasSubstr("  computing time: 100.0 % modelled: no kernel of TestChip was measured, its rates are "
                "another\n  device's\n"));
  // One kind of kernel that was measured makes it a question of ranges.
  rates.memory.range = {1, 1e9};
  EXPECT_THAT(
      write_run_text(run, false),
      HasSubstr("  computing time: 100.0 % modelled, of all 50.0 % extrapolated: outside the range of"));
}

TEST(RunText, LeavesOutWhatDidNotHappen) {
  armilla::Run run = example_run();
  run.result.collectives.clear();
  run.result.links.clear();
  run.result.warnings.clear();
  run.notes.clear();
  run.study.machine.device.unverified.clear();
  run.result.classes[0].computes.clear();
  const std::string text = write_run_text(run, false);
  for (const char* title : {"Collectives", "Hottest links", "Costliest layers", "Notes", "Warnings"})
    EXPECT_THAT(text, Not(HasSubstr(title)));
}

TEST(RunText, LinesFitTheTerminalEvenWithLongNames) {
  armilla::Run run = example_run();
  run.graph.layers[0] = "/encoder/layer.0/attention/self/query/projection/MatMul_with_a_long_name";
  run.result.links[0].name = "rank 1023 -> rank 1024 (an interconnect with a remarkably long name)";
  run.graph.programs[0].role = "pipeline stage 12 of 16, data-parallel group 7 of 8";
  run.notes = {
      "the model's leading batch dimension 'N' was not given and was set to the number of samples of one "
      "micro-batch of one rank"};
  const std::string text = write_run_text(run, false);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(display_width(text.substr(begin, end - begin)), kReportWidth)
        << text.substr(begin, end - begin);
    begin = end + 1;
  }
  EXPECT_THAT(text, HasSubstr("/encoder/layer.0/atte...tMul_with_a_long_name "));
  for (const std::size_t width : {40UL, 60UL, 80UL, 140UL}) {
    const std::string lines = write_run_text(run, {false, width});
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = lines.find('\n', begin);
      EXPECT_LE(display_width(lines.substr(begin, end - begin)), width) << lines.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

TEST(RunText, PerDeviceAndForTheWholeTraining) {
  armilla::Run run = hybrid_run_of(2);
  run.result.iteration = milliseconds(1000);
  run.study.training.tokens = 15e12;
  std::string text = write_run_text(run, false);
  // 32 samples of 512 tokens a second.
  EXPECT_THAT(text,
              HasSubstr("\n  per GPU  3.584 kFLOP/s     2,048 tokens/s\n"
                        "  15T tokens take 10596.4 days: 915,527,344 iterations, 2,034,505 GPU-hours\n"));
  run.study.training = {0, 1.28e6, ""};
  run.study.machine.device.name = "tpu-v4";
  text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("  1.28M samples take 11.11 h: 40,000 iterations, 88.9 TPU-hours\n"));
}

TEST(RunText, TrainingOfAnyLength) {
  armilla::Run run = hybrid_run_of(2);
  run.result.iteration = milliseconds(10);
  const auto training = [&](TrainingGoal goal) {
    run.study.training = goal;
    return write_run_text(run, false);
  };
  EXPECT_THAT(training({1, 0, ""}),
              HasSubstr("\n  1 token takes 10 ms: 1 iteration, under 0.01 GPU-hours\n"));
  EXPECT_THAT(training({0, 1, ""}), HasSubstr("\n  1 sample takes 10 ms: 1 iteration, "));
  EXPECT_THAT(training({524288, 0, ""}), HasSubstr("\n  524,288 tokens take 320 ms: 32 iterations, "));
  EXPECT_THAT(training({1e18, 0, ""}), HasSubstr("\n  1,000,000T tokens take 19,341 years: "
                                                 "61,035,156,250,000 iterations, 1,356,336,806 GPU-hours"));
}

TEST(RunText, SaysWhatIf) {
  armilla::Run run = example_run();
  run.study.what_if.ranks = {{{3, 3}, 1.2, "a"}};
  run.ideal = microseconds(10);
  EXPECT_THAT(write_run_text(run, false),
              HasSubstr("\nWhat if\n  rank 3 takes 1.2 times as long to compute\n"
                        "  effect: the iteration takes 10.70 us, 700.0 ns (7.0 %) longer than the 10.00 us "
                        "without\n"));
  run.study.what_if.ranks[0].time = 1;
  run.ideal = run.result.iteration;
  EXPECT_THAT(write_run_text(run, false), HasSubstr("\nWhat if\n  every factor is 1: nothing differs\n"));
}

// Ring attention and pipelines use links as collectives do.
TEST(RunText, MessagesHaveARow) {
  armilla::Run run = example_run();
  run.graph.transfers = {{1, 0, Bytes(1 << 20), PeerKind::shift, 0}};
  const std::uint32_t send = run.graph.programs[0].add(NodeKind::send, Phase::forward, 0, 0, 0, {});
  run.result.classes[0].others = {{microseconds(1), microseconds(8), send}};
  EXPECT_THAT(write_run_text(run, false), HasSubstr("  send           world      2      1  1.000 MiB  7.000 "
                                                    "us               149.8 GB/s    49.9 %\n"));
}

TEST(RunText, AnEmptyRunIsReportedWithoutNumbersThatDoNotExist) {
  const std::string text = write_run_text(armilla::Run{}, false);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf ")));
  EXPECT_THAT(text, HasSubstr("Iteration time  0 s     0 samples/s     MFU 0.0 %\n"));
}

TEST(RunText, NamesCannotDriveTheTerminal) {
  armilla::Run run = example_run();
  run.model.name = "evil\x1b[2J";
  run.graph.layers[0] = "fc\x1b]0;title\x07";
  run.result.warnings = {"bad\rname"};
  const std::string text = write_run_text(run, false);
  EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos);
}

}  // namespace
}  // namespace armilla
