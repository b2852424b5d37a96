#include "study/astra/trace_input.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "base/output_file.h"
#include "ir/graph_testing.h"
#include "write/trace.h"

namespace armilla {
namespace {

class TraceInput : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = path_for_test("trace_input");
    std::filesystem::create_directories(folder_);
    prefix_ = folder_ / "t";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(std::int32_t rank, const char* suffix = "et") const {
    return prefix_ + "." + std::to_string(rank) + "." + suffix;
  }

  std::filesystem::path folder_;
  std::string prefix_;
};

ChakraTrace computing(std::uint64_t micros) {
  ChakraTrace trace;
  trace.add_node(0, ChakraNodeType::compute, "work", micros);
  trace.add_node(1, ChakraNodeType::collective, "exchange");
  trace.add_data_dependence(0);
  trace.add_integer("comm_type", ChakraValueKind::int64, 0);
  trace.add_integer("comm_size", ChakraValueKind::int64, 64);
  return trace;
}

TraceGraphOptions of_ranks(std::int64_t ranks) {
  TraceGraphOptions options;
  options.dimension_sizes = {ranks};
  return options;
}

TEST_F(TraceInput, EqualFilesShareAProgram) {
  write_file(file(0), write_chakra(computing(1)));
  write_file(file(1), write_chakra(computing(2)));
  write_file(file(2), write_chakra(computing(1)));
  write_file(file(3, "et.gz"), gzipped(write_chakra(computing(2))));
  write_file(file(4), write_chakra(computing(9)));
  EXPECT_EQ(count_trace_files(prefix_), 5);
  const TraceJob job = read_trace_job(prefix_, of_ranks(4));
  EXPECT_EQ(job.graph.program_of, (std::vector<std::uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(job.graph.programs[1].payload[0], 2'000'000U);
  EXPECT_EQ(job.warnings,
            (std::vector<std::string>{file(4) + ": is not part of the run, which has 4 ranks"}));
}

TEST_F(TraceInput, AMissingFileIsNamed) {
  write_file(file(0), write_chakra(computing(1)));
  EXPECT_EQ(error_of([&] { read_trace_job(prefix_, of_ranks(3)); }),
            file(1) + ": there is no such file\n  hint: a job of 3 ranks needs " + prefix_ + ".0.et to " +
                prefix_ + ".2.et");
}

TEST_F(TraceInput, AllProblemsAreInOneError) {
  ChakraTrace broken = computing(1);
  broken.add_data_dependence(7);
  write_file(file(0), write_chakra(broken));
  broken.add_data_dependence(8);
  write_file(file(1), write_chakra(broken));
  EXPECT_EQ(error_of([&] { read_trace_job(prefix_, of_ranks(2)); }),
            file(0) + ": node 1 'exchange': waits for node 7, which does not exist\n  and " + file(1) +
                ": node 1 'exchange': waits for node 7, which does not exist\n  and " + file(1) +
                ": node 1 'exchange': waits for node 8, which does not exist\n"
                "  hint: the file may have been cut short");
  TraceInputOptions trusting;
  trusting.check = false;
  EXPECT_EQ(error_of([&] { read_trace_job(prefix_, of_ranks(2), trusting); }),
            file(0) +
                ": node 1 'exchange': waits for node 7, which does not exist\n"
                "  hint: the file may have been cut short");
}

TEST_F(TraceInput, AnUnreadableFileStopsTheRun) {
  write_file(file(0), write_chakra(computing(1)));
  write_file(file(1), "");
  EXPECT_EQ(error_of([&] { read_trace_job(prefix_, of_ranks(2)); }),
            file(1) +
                ": the file is empty\n"
                "  hint: a Chakra trace holds at least one record; was it written fully?");
}

// Many more files than threads, of different sizes, so that some are read before others that were
// begun earlier.
TEST_F(TraceInput, ReadingInParallelIsReadingOneAfterTheOther) {
  constexpr std::int32_t kRanks = 12;
  TraceGraphBuilder builder(of_ranks(kRanks));
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    ChakraTrace trace;
    const std::uint64_t nodes = 10 + rank * 7919 % 5000;
    for (std::uint64_t node = 0; node < nodes; ++node) {
      trace.add_node(node, ChakraNodeType::compute, "of " + std::to_string(rank * node % 97), node % 11);
      if (node > 0) trace.add_data_dependence(node - 1);
      trace.add_integer("is_cpu_op", ChakraValueKind::boolean, node % 3 == 0);
    }
    trace.add_node(nodes, ChakraNodeType::collective, "exchange");
    trace.add_integer("comm_type", ChakraValueKind::int64, 0);
    trace.add_integer("comm_size", ChakraValueKind::int64, 64);
    write_file(file(rank), write_chakra(trace));
    builder.add_ranks(std::span(&rank, 1), trace);
  }
  const std::string expected = dump_graph(builder.finish());
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(dump_graph(read_trace_job(prefix_, of_ranks(kRanks)).graph), expected);
}

TEST_F(TraceInput, OfSeveralUnreadableFilesTheFirstRanksIsNamed) {
  ChakraTrace large;
  for (std::uint64_t node = 0; node < 20'000; ++node) large.add_node(node, ChakraNodeType::compute, "n", 1);
  const std::string whole = write_chakra(large);
  write_file(file(0), write_chakra(computing(1)));
  write_file(file(1), whole.substr(0, whole.size() - 1));  // takes longer to refuse than the next
  write_file(file(2), "");
  for (int i = 0; i < 3; ++i) {
    const std::string error = error_of([&] { read_trace_job(prefix_, of_ranks(3)); });
    EXPECT_TRUE(error.starts_with(file(1) + ": byte ")) << error;
  }
}

// Equal sizes, ends and samples.
TEST_F(TraceInput, FilesThatLookAlikeAreToldApart) {
  const auto trace_with = [](std::uint64_t odd, std::uint64_t micros) {
    ChakraTrace trace;
    for (std::uint64_t node = 0; node < 2000; ++node)
      trace.add_node(node, ChakraNodeType::compute, "work " + std::to_string(1000 + node),
                     node == odd ? micros : 1);
    return write_chakra(trace);
  };
  const std::string first = trace_with(903, 2), second = trace_with(903, 3);
  ASSERT_EQ(first.size(), second.size());
  ASSERT_GT(first.size(), 16'384U);
  write_file(file(0), first);
  write_file(file(1), second);
  write_file(file(2), first);
  write_file(file(3), second);
  write_file(file(4), trace_with(903, 4));
  const TraceJob job = read_trace_job(prefix_, of_ranks(5));
  EXPECT_EQ(job.graph.program_of, (std::vector<std::uint32_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(job.graph.programs[1].payload[903], 3'000'000U);
}

}  // namespace
}  // namespace armilla
