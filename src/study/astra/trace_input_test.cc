#include "study/astra/trace_input.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_testing.h"
#include "base/output_file.h"
#include "write/trace.h"

namespace armilla {
namespace {

class TraceInput : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() /
        (std::string("armilla_trace_input_") + testing::UnitTest::GetInstance()->current_test_info()->name());
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

}  // namespace
}  // namespace armilla
