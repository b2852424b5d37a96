#include "trace/surgery.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "trace/graph.h"
#include "trace/synthetic.h"

namespace armilla {
namespace {

// Rank r of 4 (pairs 0-1 and 2-3 share a model): a message to the partner, an all-gather in the pair, an
// all-reduce with the same rank of the other pair, and one of all ranks.
TraceSet job_of_4() {
  TraceSet job;
  job.communicators = {
      {"1", {{0, 1}, "f"}}, {"2", {{2, 3}, "f"}}, {"3", {{0, 2}, "f"}}, {"4", {{1, 3}, "f"}}};
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    ChakraTrace& trace = job.ranks.emplace_back();
    trace.source = "t." + std::to_string(rank) + ".et";
    const std::int32_t partner = rank ^ 1;
    const auto message = [&](ChakraNodeType type, std::int32_t from, std::int32_t to) {
      trace.add_node(trace.size(), type, "m");
      trace.add_integer("comm_src", ChakraValueKind::int32, from);
      trace.add_integer("comm_dst", ChakraValueKind::int64, to);
      trace.add_integer("comm_size", ChakraValueKind::int64, 8);
      trace.add_integer("comm_tag", ChakraValueKind::int32, 0);
    };
    message(ChakraNodeType::send, rank, partner);
    message(ChakraNodeType::receive, partner, rank);
    const auto collective = [&](const std::string& group) {
      trace.add_node(trace.size(), ChakraNodeType::collective, "c");
      trace.add_data_dependence(trace.size() - 2);
      trace.add_integer("comm_type", ChakraValueKind::int64, 0);
      trace.add_integer("comm_size", ChakraValueKind::int64, 64);
      if (!group.empty()) trace.add_text("pg_name", group);
    };
    collective(rank < 2 ? "1" : "2");
    collective(rank % 2 == 0 ? "3" : "4");
    collective("");
  }
  return job;
}

std::string problems_after(const TraceSet& job) {
  TraceCheckOptions options;
  options.dimension_sizes = {static_cast<std::int64_t>(job.ranks.size())};
  options.communicators = job.communicators;
  TraceChecker checker(options);
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(job.ranks.size()); ++rank)
    checker.add_ranks(std::span(&rank, 1), job.ranks[static_cast<std::size_t>(rank)]);
  std::string text;
  for (const TraceProblem& problem : checker.finish()) text += problem.where + ": " + problem.message + "\n";
  return text;
}

std::string text_of(const ChakraTrace& trace, std::size_t node, std::string_view name) {
  return std::string(text_value(trace, node, *trace.find(node, name)));
}

TEST(ScaleRanksTest, CopiesModelGroupsAndExtendsDataGroups) {
  const TraceSet job = job_of_4();
  ASSERT_EQ(problems_after(job), "");
  const TraceSet scaled = scale_ranks(job, 3, 2);
  ASSERT_EQ(scaled.ranks.size(), 12U);
  EXPECT_EQ(problems_after(scaled), "");
  const auto members = [&](const std::string& name) { return scaled.communicators.at(name).ranks; };
  EXPECT_EQ(members("3"), (std::vector<std::int32_t>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(members("4"), (std::vector<std::int32_t>{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(members("1"), (std::vector<std::int32_t>{0, 1}));
  const ChakraTrace& sixth = scaled.ranks[6];
  EXPECT_EQ(integer_value(sixth, 0, *sixth.find(0, "comm_src")), 6);
  EXPECT_EQ(integer_value(sixth, 0, *sixth.find(0, "comm_dst")), 7);
  EXPECT_EQ(members(text_of(sixth, 2, "pg_name")), (std::vector<std::int32_t>{6, 7}));
  EXPECT_EQ(text_of(sixth, 3, "pg_name"), "3");
}

TEST(ScaleRanksTest, OneReplicaKeepsItsGroups) {
  TraceSet job = job_of_4();
  job.communicators["world"] = {{3, 2, 1, 0}, "f"};
  const TraceSet scaled = scale_ranks(job, 2, 0);
  EXPECT_EQ(problems_after(scaled), "");
  EXPECT_EQ(scaled.communicators.at("3").ranks, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(scaled.communicators.at("3.1").ranks, (std::vector<std::int32_t>{4, 6}));
  EXPECT_EQ(scaled.communicators.at("world").ranks, (std::vector<std::int32_t>{3, 2, 1, 0, 7, 6, 5, 4}));
}

TEST(ScaleRanksTest, ReplicasAreAFurtherDimension) {
  TraceSet job;
  ChakraTrace& trace = job.ranks.emplace_back();
  const bool partial[] = {true, false}, whole[] = {true, true};
  trace.add_node(0, ChakraNodeType::collective, "a");
  trace.add_booleans("involved_dim", partial);
  trace.add_node(1, ChakraNodeType::collective, "b");
  trace.add_booleans("involved_dim", whole);
  const TraceSet scaled = scale_ranks(job, 2, 0);
  const ChakraTrace& copy = scaled.ranks[1];
  EXPECT_EQ(boolean_values(copy, 0, *copy.find(0, "involved_dim")), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(boolean_values(copy, 1, *copy.find(1, "involved_dim")), (std::vector<bool>{true, true}));
}

TEST(ScaleRanksTest, RefusesGroupsThatItCannotPlace) {
  TraceSet job = job_of_4();
  EXPECT_EQ(error_of([&] { scale_ranks(job, 2, 3); }),
            "--replica-size: 4 ranks are not a whole number of replicas of 3");
  job.communicators["5"] = {{0, 1, 2}, "groups.json"};
  EXPECT_EQ(error_of([&] { scale_ranks(job, 2, 2); }),
            "groups.json: communicator '5' is neither within a replica of 2 ranks nor the same in all\n"
            "  hint: does another --replica-size fit?");
  job = job_of_4();
  job.communicators.erase("2");
  EXPECT_EQ(error_of([&] { scale_ranks(job, 2, 2); }),
            "t.2.et: node 2 'c': communicator '2' is not known\n"
            "  hint: name the file of communicators with --communicators");
}

ChakraTrace iterations_of_3(int count) {
  ChakraTrace trace;
  trace.source = "t.et";
  for (int i = 0; i < count; ++i) {
    for (const char* name : {"begin", "a", "a"}) {
      const std::uint64_t id = trace.size() * 10;
      trace.add_node(id, ChakraNodeType::compute, name);
      if (id > 0) trace.add_data_dependence(id - 10);
    }
  }
  return trace;
}

TEST(KeepIterationsTest, FindsRepetitionsAndCutsDependences) {
  const ChakraTrace trace = iterations_of_3(4);
  EXPECT_EQ(count_iterations(std::span(&trace, 1), ""), 4);
  const ChakraTrace kept = keep_iterations(std::span(&trace, 1), 2, 3, "")[0];
  EXPECT_EQ(kept.id, (std::vector<std::uint64_t>{30, 40, 50, 60, 70, 80}));
  EXPECT_EQ(kept.data_dependence, (std::vector<std::uint64_t>{30, 40, 50, 60, 70}));
  EXPECT_EQ(kept.first_data_dependence, (std::vector<std::uint32_t>{0, 0, 1, 2, 3, 4, 5}));
}

// Readers keep a name again where they did not see that they have it.
TEST(KeepIterationsTest, NamesMayBeKeptSeveralTimes) {
  ChakraTrace trace;
  for (const char* const name : {"a", "b", "a", "b", "a", "b"}) {
    trace.add_node(trace.size(), ChakraNodeType::compute, name);
    trace.name.back() = trace.strings.append(name);
  }
  EXPECT_EQ(count_iterations(std::span(&trace, 1), ""), 3);
  EXPECT_EQ(count_iterations(std::span(&trace, 1), "b"), 3);
}

TEST(KeepIterationsTest, FindsIterationsBetweenAHeadAndATail) {
  ChakraTrace trace;
  trace.add_node(0, ChakraNodeType::compute, "head");
  for (const char* name : {"begin", "a", "b", "begin", "b", "a", "begin", "a", "tail"})
    trace.add_node(trace.size(), ChakraNodeType::compute, name);
  EXPECT_EQ(count_iterations(std::span(&trace, 1), ""), 3);
  EXPECT_EQ(keep_iterations(std::span(&trace, 1), 2, 2, "")[0].id, (std::vector<std::uint64_t>{4, 5, 6}));
}

TEST(KeepIterationsTest, FollowsAMarkerThroughIrregularIterations) {
  ChakraTrace trace = iterations_of_3(2);
  trace.add_node(1000, ChakraNodeType::compute, "tail");
  EXPECT_EQ(error_of([&] { keep_iterations(std::span(&trace, 1), 2, 2, ""); }),
            "--keep-iterations: 2:2 of 1 iteration\n  hint: the names of the nodes do not repeat; "
            "--iteration-marker names the node that begins each iteration");
  EXPECT_EQ(keep_iterations(std::span(&trace, 1), 2, 2, "begin")[0].id,
            (std::vector<std::uint64_t>{30, 40, 50, 1000}));
  EXPECT_EQ(error_of([&] { keep_iterations(std::span(&trace, 1), 1, 1, "end"); }),
            "t.et: no node is called 'end'");
  EXPECT_EQ(error_of([&] { keep_iterations(std::span(&trace, 1), 2, 3, "begin"); }),
            "--keep-iterations: 2:3 of 2 iterations\n  hint: they are counted from 1");
}

TEST(MergeTracesTest, TheNextWaitsForTheLast) {
  const ChakraTrace trace = iterations_of_3(1);
  const ChakraTrace* parts[] = {&trace, &trace, &trace};
  const ChakraTrace whole = merge_traces(parts);
  EXPECT_EQ(whole.id, (std::vector<std::uint64_t>{0, 10, 20, 21, 31, 41, 42, 52, 62}));
  EXPECT_EQ(whole.data_dependence, (std::vector<std::uint64_t>{0, 10, 20, 21, 31, 41, 42, 52}));
}

TEST(MergeTracesTest, ManyWaitForManyThroughOne) {
  ChakraTrace wide;
  for (std::uint64_t id = 0; id < 20; ++id) wide.add_node(id, ChakraNodeType::compute, "w");
  const ChakraTrace* parts[] = {&wide, &wide};
  const ChakraTrace whole = merge_traces(parts);
  EXPECT_EQ(whole.size(), 41U);
  EXPECT_EQ(whole.data_dependences(20).size(), 20U);
  EXPECT_EQ(whole.data_dependences(40)[0], 20U);
  EXPECT_EQ(whole.data_dependence.size(), 40U);
}

}  // namespace
}  // namespace armilla
