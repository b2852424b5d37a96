#include "write/run_text.h"

#include <gmock/gmock.h>

#include "write/example_run.h"
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
  plan     batch 8 = 4 ranks x 2, fp32, momentum
           gradient buckets of 25.00 MiB after a first of 1.000 MiB, exchanged during backward
  models   compute roofline:launch=2us, network analytical

Iteration time  10.70 us     747,664 samples/s     MFU 16.7 %

Time of a rank
  role                ranks   compute     %  communication   exposed     %      idle    %
  data-parallel rank      4  7.000 us  65.4       6.000 us  3.500 us  32.7  200.0 ns  1.9
  ███████████████████████████████████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░
  █ compute  ▓ exposed communication  ░ idle

Memory of a rank  peak 3.625 KiB, 0.4 % of 1.000 MiB: fits
  category     bytes  of peak
  weights      832 B   22.4 %
  gradients    832 B   22.4 %
  optimizer    832 B   22.4 %
  activations  448 B   12.1 %
  temporary    768 B   20.7 %

Collectives
  collective  ranks  calls  bytes      time    queued  bus bandwidth  of link limit
  all-reduce      4      2  832 B  7.900 us  599.6 ns     158.0 MB/s         34.5 %
    by reduce-scatter direct, all-reduce ring, all-gather direct

Costliest layers of 2
  layer   forward  backward   compute          exchange
  fc1    2.000 us  1.500 us  3.500 us  53.8 %  3.500 us
  fc2    1.000 us  2.000 us  3.000 us  46.2 %  5.000 us

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
  EXPECT_THAT(colourful, HasSubstr("\x1b[1mTime of a rank\x1b[0m"));
  EXPECT_EQ(without_colour(colourful), write_run_text(example_run(), false));
}

TEST(RunText, SaysLoudlyThatMemoryDoesNotSuffice) {
  armilla::Run run = example_run();
  run.memory.capacity = Bytes(1856);
  const std::string text = write_run_text(run, true);
  EXPECT_THAT(text, HasSubstr("peak 3.625 KiB, \x1b[31m200.0 % of 1.812 KiB: does not fit\x1b[0m"));
  run.memory.capacity = Bytes(0);
  EXPECT_THAT(write_run_text(run, false), HasSubstr("peak 3.625 KiB, the device's capacity is not known\n"));
}

TEST(RunText, ShowsTheLatestOfManyClassesOfRanks) {
  armilla::Run run = example_run();
  run.result.classes.resize(20, run.result.classes[0]);
  for (std::int32_t i = 0; i < 20; ++i) {
    run.result.classes[static_cast<std::size_t>(i)].representative = i;
    run.result.classes[static_cast<std::size_t>(i)].finish = nanoseconds(10'000 + i);
  }
  const std::string text = write_run_text(run, false);
  EXPECT_THAT(text, HasSubstr("  data-parallel rank #19 "));
  EXPECT_THAT(text, Not(HasSubstr("#11")));
  EXPECT_THAT(text, HasSubstr("  and 12 more classes of ranks, which finish no later\n"));
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
  EXPECT_THAT(text, HasSubstr("...rojection/MatMul_with_a_long_name"));
}

TEST(RunText, AnEmptyRunIsReportedWithoutNumbersThatDoNotExist) {
  const std::string text = write_run_text(armilla::Run{}, false);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf ")));
  EXPECT_THAT(text, HasSubstr("Iteration time  0 s     0.0 samples/s     MFU 0.0 %\n"));
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
