#include "trace/graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error_testing.h"

namespace armilla {
namespace {

using Kind = ChakraValueKind;
using Type = ChakraNodeType;

std::vector<ChakraTrace> ranks(int count) {
  std::vector<ChakraTrace> traces(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank)
    traces[static_cast<std::size_t>(rank)].source = "t." + std::to_string(rank) + ".et";
  return traces;
}

void add_collective(ChakraTrace& trace, std::uint64_t id, ChakraCollective kind, std::int64_t bytes) {
  trace.add_node(id, Type::collective, "c" + std::to_string(id));
  trace.add_integer("comm_type", Kind::int64, static_cast<std::int64_t>(kind));
  trace.add_integer("comm_size", Kind::int64, bytes);
}

void add_message(ChakraTrace& trace, std::uint64_t id, bool sends, std::int64_t peer, std::int64_t tag,
                 std::int64_t bytes) {
  trace.add_node(id, sends ? Type::send : Type::receive, sends ? "s" : "r");
  trace.add_integer(sends ? "comm_dst" : "comm_src", Kind::int32, peer);
  trace.add_integer("comm_tag", Kind::int32, tag);
  trace.add_integer("comm_size", Kind::uint64, bytes);
}

// Rank r's trace is traces[r].
std::vector<TraceProblem> problems_of(const std::vector<ChakraTrace>& traces,
                                      const TraceCheckOptions& options) {
  TraceChecker checker(options);
  for (std::int32_t rank = 0; const ChakraTrace& trace : traces) {
    checker.add_ranks(std::span(&rank, 1), trace);
    ++rank;
  }
  return checker.finish();
}

// "error where: message" per line.
std::string problems(const std::vector<ChakraTrace>& traces) {
  TraceCheckOptions options;
  options.dimension_sizes = {static_cast<std::int64_t>(traces.size())};
  std::string text;
  for (const TraceProblem& problem : problems_of(traces, options)) {
    text += problem.severity == TraceProblem::Severity::error ? "error " : "warning ";
    text += problem.where + ": " + problem.message + "\n";
  }
  return text;
}

TEST(CheckTrace, FindsNothingInASoundJob) {
  std::vector<ChakraTrace> traces = ranks(2);
  for (ChakraTrace& trace : traces) add_collective(trace, 5, ChakraCollective::all_reduce, 8);
  add_message(traces[0], 6, true, 1, 3, 100);
  add_message(traces[1], 7, false, 0, 3, 100);
  EXPECT_EQ(problems(traces), "");
}

TEST(CheckTrace, FindsImpossibleDependences) {
  std::vector<ChakraTrace> traces = ranks(1);
  ChakraTrace& trace = traces[0];
  trace.add_node(1, Type::compute, "a");
  trace.add_data_dependence(3);
  trace.add_node(2, Type::compute, "b");
  trace.add_data_dependence(2);
  trace.add_data_dependence(9);
  trace.add_node(3, Type::compute, "c");
  trace.add_control_dependence(4);
  trace.add_node(4, Type::compute, "d");
  trace.add_control_dependence(1);
  trace.add_node(4, Type::compute, "e");
  EXPECT_EQ(problems(traces),
            "error t.0.et: node 4 'e': another node has the same id\n"
            "error t.0.et: node 2 'b': waits for itself\n"
            "error t.0.et: node 2 'b': waits for node 9, which does not exist\n"
            "error t.0.et: its nodes wait for each other in a circle: 1 'a' waits for 3 'c' waits for 4 'd' "
            "waits for 1\n");
}

TEST(CheckTrace, ExplainsMessagesThatDoNotMeet) {
  std::vector<ChakraTrace> traces = ranks(3);
  add_message(traces[0], 1, true, 1, 8, 1'000'000);
  add_message(traces[1], 2, false, 0, 7, 1'000'000);
  add_message(traces[0], 3, true, 2, 5, 10);
  add_message(traces[2], 4, false, 0, 5, 20);
  add_message(traces[2], 5, false, 1, 1, 30);
  add_message(traces[2], 6, true, 0, 1, 40);
  EXPECT_EQ(
      problems(traces),
      "error t.1.et: node 2 'r': rank 1 waits for 1,000,000 bytes with tag 7 from rank 0, which sends tag 8 "
      "(t.0.et: node 1 's')\n"
      "error t.2.et: node 4 'r': rank 2 waits for 20 bytes with tag 5 from rank 0, which sends 10 bytes "
      "(t.0.et: node 3 's')\n"
      "error t.2.et: node 5 'r': rank 2 waits for 30 bytes with tag 1 from rank 1, which sends no such "
      "message\n"
      "warning t.2.et: node 6 's': rank 2 sends 40 bytes with tag 1 to rank 0, which receives no such "
      "message\n");
}

TEST(CheckTrace, ComparesCollectivesOfAllMembers) {
  std::vector<ChakraTrace> traces = ranks(3);
  for (ChakraTrace& trace : traces) add_collective(trace, 1, ChakraCollective::all_reduce, 8);
  add_collective(traces[0], 2, ChakraCollective::all_reduce, 16);
  add_collective(traces[1], 3, ChakraCollective::all_gather, 16);
  EXPECT_EQ(
      problems(traces),
      "error t.1.et: node 3 'c3': collective 2 among all ranks: rank 1 calls ALL_GATHER of 16 bytes, but "
      "rank 0 calls ALL_REDUCE of 16 bytes (t.0.et: node 2 'c2')\n"
      "error t.0.et: node 2 'c2': collective 2 among all ranks: rank 0 calls ALL_REDUCE of 16 bytes, but "
      "rank 2 calls no more\n");
}

TEST(CheckTrace, OrderCountsAsNodesAreIssued) {
  std::vector<ChakraTrace> traces = ranks(2);
  for (ChakraTrace& trace : traces) {
    add_collective(trace, 1, ChakraCollective::all_reduce, 8);
    add_collective(trace, 2, ChakraCollective::all_reduce, 16);
  }
  // Rank 1's dependences turn its order around.
  traces[1].data_dependence.push_back(2);
  traces[1].first_data_dependence[1] = traces[1].first_data_dependence[2] = 1;
  EXPECT_EQ(
      problems(traces),
      "warning t.1.et: node 2 'c2': collective 1 among all ranks: rank 1 calls ALL_REDUCE of 16 bytes, but "
      "rank 0 calls ALL_REDUCE of 8 bytes (t.0.et: node 1 'c1')\n");
  // Here the ids differ as well as the dependences, and the orders agree.
  traces = ranks(2);
  add_collective(traces[0], 1, ChakraCollective::all_reduce, 8);
  add_collective(traces[0], 2, ChakraCollective::all_reduce, 16);
  add_collective(traces[1], 1, ChakraCollective::all_reduce, 16);
  traces[1].add_data_dependence(2);
  add_collective(traces[1], 2, ChakraCollective::all_reduce, 8);
  EXPECT_EQ(problems(traces), "");
}

TEST(CheckTrace, AFloodIsCutShort) {
  std::vector<ChakraTrace> traces = ranks(1);
  for (std::uint64_t id = 0; id < 20; ++id) {
    traces[0].add_node(id, Type::compute, "n");
    traces[0].add_data_dependence(99);
  }
  const std::string text = problems(traces);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9);
  EXPECT_NE(text.find("error t.0.et: 12 more impossible dependences\n"), std::string::npos);
}

TEST(CheckTrace, RefusesWithTheFirstErrors) {
  std::vector<ChakraTrace> traces = ranks(1);
  traces[0].add_node(1, Type::send, "s");
  traces[0].add_node(2, Type::memory_load, "m");
  const std::vector<TraceProblem> found = problems_of(traces, {{1}, {}, false, false});
  EXPECT_EQ(error_of([&] { refuse_problems(found); }),
            "t.0.et: node 2 'm': attribute 'tensor_size' is missing\n"
            "  and t.0.et: node 1 's': attribute 'comm_dst' is missing");
  EXPECT_EQ(error_of([&] {
              refuse_problems({{TraceProblem::Severity::warning, "w", "m", ""}});
            }),
            "no error");
}

}  // namespace
}  // namespace armilla
