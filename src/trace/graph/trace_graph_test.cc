#include "trace/graph.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error_testing.h"
#include "ir/graph_testing.h"

namespace armilla {
namespace {

using Kind = ChakraValueKind;
using Type = ChakraNodeType;

ChakraTrace trace_of(std::int32_t rank) {
  ChakraTrace trace;
  trace.source = "t." + std::to_string(rank) + ".et";
  return trace;
}

void add_node_of(ChakraTrace& trace, std::uint64_t id, ChakraCollective kind, std::int64_t bytes) {
  trace.add_node(id, Type::collective, "c" + std::to_string(id), 7);
  trace.add_integer("comm_type", Kind::int64, static_cast<std::int64_t>(kind));
  trace.add_integer("comm_size", Kind::int64, bytes);
}

void add_transfer(ChakraTrace& trace, std::uint64_t id, bool sends, std::int64_t peer, std::int64_t tag) {
  trace.add_node(id, sends ? Type::send : Type::receive, sends ? "s" : "r");
  trace.add_integer(sends ? "comm_dst" : "comm_src", Kind::int32, peer);
  trace.add_integer("comm_tag", Kind::int32, tag);
  trace.add_integer("comm_size", Kind::uint64, 64);
}

TraceGraphOptions options(std::vector<std::int64_t> sizes, bool as_astra = true) {
  TraceGraphOptions result;
  result.dimension_sizes = std::move(sizes);
  result.as_astra = as_astra;
  return result;
}

// Every rank with the trace that `make` writes for it.
template <class Make>
Graph graph_of(const TraceGraphOptions& given, Make make, std::vector<std::string>* warnings = nullptr) {
  TraceGraphBuilder builder(given);
  std::int64_t ranks = 1;
  for (const std::int64_t size : given.dimension_sizes) ranks *= size;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    ChakraTrace trace = trace_of(rank);
    make(trace, rank);
    builder.add_ranks(std::span(&rank, 1), trace);
  }
  Graph graph = builder.finish();
  validate_graph(graph);
  if (warnings != nullptr) *warnings = builder.warnings();
  return graph;
}

// What goes wrong with rank 0's trace.
template <class Make>
std::string error_with(const TraceGraphOptions& given, Make make) {
  return error_of([&] {
    TraceGraphBuilder builder(given);
    ChakraTrace trace = trace_of(0);
    make(trace);
    builder.add_ranks(std::array{0}, trace);
  });
}

TEST(TraceGraph, NodesAreOrderedByIdAndWaitForBothKindsOfDependences) {
  const Graph graph = graph_of(options({1}), [](ChakraTrace& trace, std::int32_t) {
    trace.add_node(30, Type::compute, "last", 0);
    trace.add_data_dependence(20);
    trace.add_data_dependence(10);
    trace.add_control_dependence(20);
    trace.add_node(10, Type::compute, "first", 5);
    trace.add_node(20, Type::compute, "host", 6);
    trace.add_integer("is_cpu_op", Kind::boolean, 1);
  });
  EXPECT_EQ(dump_graph(graph),
            "graph of 1 ranks, 1 programs\n"
            "program rank 0\n"
            "  0 other 'first' 5000000 ps\n"
            "  1 other 'host' 6000000 ps\n"
            "  2 other 'last' 1000 ps after 0 1\n");
  EXPECT_EQ(graph.programs[0].file_id, (std::vector<std::uint64_t>{10, 20, 30}));
  EXPECT_EQ(graph.programs[0].lane, (std::vector<Lane>{Lane::device, Lane::host, Lane::device}));
}

// Ids that follow each other beyond 64 bits are in order only at first sight.
TEST(TraceGraph, IdsMayBeAnyNumbersOf64Bits) {
  const Graph graph = graph_of(options({1}), [](ChakraTrace& trace, std::int32_t) {
    trace.add_node(UINT64_MAX, Type::compute, "last", 0);
    trace.add_data_dependence(0);
    trace.add_node(0, Type::compute, "first", 0);
  });
  EXPECT_EQ(graph.programs[0].file_id, (std::vector<std::uint64_t>{0, UINT64_MAX}));
  EXPECT_EQ(graph.programs[0].dependence, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(graph.programs[0].first_dependence, (std::vector<std::uint32_t>{0, 0, 1}));
  EXPECT_EQ(error_with(options({1}),
                       [](ChakraTrace& trace) {
                         trace.add_node(UINT64_MAX - 1, Type::compute, "a", 0);
                         trace.add_node(UINT64_MAX, Type::compute, "b", 0);
                         trace.add_data_dependence(0);
                       }),
            "t.0.et: node 18446744073709551615 'b': waits for node 0, which does not exist\n"
            "  hint: the file may have been cut short");
}

TEST(TraceGraph, OnlyThePeerRoundsUpToANanosecond) {
  const auto make = [](ChakraTrace& trace, std::int32_t) {
    trace.add_node(0, Type::compute, "zero");
    trace.add_node(1, Type::compute, "short", 1);
    trace.add_real(kDurationNs, Kind::real64, 1234.5);
  };
  EXPECT_EQ(graph_of(options({1}, true), make).programs[0].payload,
            (std::vector<std::uint64_t>{1000, 1'000'000}));
  EXPECT_EQ(graph_of(options({1}, false), make).programs[0].payload,
            (std::vector<std::uint64_t>{0, 1'234'500}));
}

TEST(TraceGraph, EveryKindOfNodeIsConverted) {
  const auto make = [](ChakraTrace& trace, std::int32_t rank) {
    trace.add_node(0, Type::memory_load, "load");
    trace.add_integer("tensor_size", Kind::uint64, 99);
    trace.add_node(1, Type::memory_store, "store");
    trace.add_integer("tensor_size", Kind::uint64, 98);
    add_transfer(trace, 2, rank == 0, 1 - rank, 500'000'007);
    trace.add_node(3, Type::invalid, "nothing", 50);
    trace.add_node(4, Type::metadata, "about", 50);
    add_node_of(trace, 5, ChakraCollective::all_gather, 10);
    trace.add_integer("comm_priority", Kind::int32, 4);
    add_node_of(trace, 6, ChakraCollective::broadcast, 10);
  };
  const Graph peer = graph_of(options({2}), make);
  EXPECT_EQ(dump_graph(peer),
            "graph of 2 ranks, 2 programs\n"
            "program rank 0\n"
            "  0 other 'load' load 99 bytes of remote memory\n"
            "  1 other 'store' store 98 bytes to remote memory\n"
            "  2 other 's' send 64 bytes to rank 1, tag 7\n"
            "  3 other 'nothing' 0 ps\n"
            "  4 other 'about' 0 ps\n"
            "  5 other 'c5' all-gather 20 bytes in world\n"
            "  6 other 'c6' 7000000 ps\n"
            "program rank 1\n"
            "  0 other 'load' load 99 bytes of remote memory\n"
            "  1 other 'store' store 98 bytes to remote memory\n"
            "  2 other 'r' receive 64 bytes from rank 0, tag 7\n"
            "  3 other 'nothing' 0 ps\n"
            "  4 other 'about' 0 ps\n"
            "  5 other 'c5' all-gather 20 bytes in world\n"
            "  6 other 'c6' 7000000 ps\n");
  EXPECT_EQ(peer.programs[0].lane,
            (std::vector<Lane>{Lane::communication, Lane::communication, Lane::communication, Lane::none,
                               Lane::none, Lane::communication, Lane::communication}));
  EXPECT_EQ(peer.programs[1].lane[2], Lane::none);
  EXPECT_EQ(peer.collectives[0].priority, 4);
  const Graph native = graph_of(options({2}, false), make);
  EXPECT_EQ(native.transfers[0].tag, 500'000'007U);
  EXPECT_EQ(native.collectives[native.programs[0].payload[6]].kind, CollectiveKind::broadcast);
}

TEST(TraceGraph, ReplayTakesNothingButDurations) {
  TraceGraphOptions replay = options({2});
  replay.replay_only = true;
  const Graph graph = graph_of(replay, [](ChakraTrace& trace, std::int32_t) {
    trace.add_node(0, Type::collective, "no attributes at all", 3);
    trace.add_node(1, Type::receive, "r", 0);
  });
  EXPECT_EQ(graph.programs.size(), 1U);
  EXPECT_EQ(graph.programs[0].payload, (std::vector<std::uint64_t>{3'000'000, 1000}));
  EXPECT_EQ(graph.programs[0].lane, (std::vector<Lane>{Lane::communication, Lane::none}));
}

TEST(TraceGraph, RooflineTruncatesToNanoseconds) {
  TraceGraphOptions roofline = options({1});
  roofline.roofline = true;
  roofline.peak_flops = 2e12;
  roofline.memory_bytes_per_second = 1e12;
  TraceGraphBuilder builder(roofline);
  ChakraTrace trace = trace_of(0);
  const auto add = [&](std::uint64_t id, std::int64_t operations, std::int64_t bytes) {
    trace.add_node(id, Type::compute, "n", 9);
    trace.add_integer("num_ops", Kind::int64, operations);
    trace.add_integer("tensor_size", Kind::int64, bytes);
  };
  add(0, 4'000'000, 1000);   // the peak: 2000 ns
  add(1, 1000, 12'345'678);  // the memory: 12345.678 ns
  add(2, 0, 5000);
  add(3, 1000, 0);
  trace.add_node(4, Type::compute, "host", 9);
  trace.add_integer("is_cpu_op", Kind::boolean, 1);
  builder.add_ranks(std::array{0}, trace);
  const Graph graph = builder.finish();
  EXPECT_EQ(graph.programs[0].payload,
            (std::vector<std::uint64_t>{2'000'000, 12'345'000, 5'000, 0, 9'000'000}));
  ASSERT_EQ(builder.roofline_use().size(), 1U);
  EXPECT_DOUBLE_EQ(builder.roofline_use()[0].time, 2000 + 12345 + 5 + 9000);
  EXPECT_DOUBLE_EQ(builder.roofline_use()[0].compute_bound_time, 2000);
}

TEST(TraceGraph, GroupsComeFromDimensionsFilesAndMetadata) {
  TraceGraphOptions given = options({2, 2});
  given.communicators["left"] = {{0, 2}, "groups.json"};
  given.communicators["right"] = {{3, 1}, "groups.json"};
  given.communicators["all"] = {{0, 1, 2, 3}, "groups.json"};
  const Graph graph = graph_of(given, [](ChakraTrace& trace, std::int32_t rank) {
    trace.add_node(0, Type::metadata, "## process_group:init ##");
    trace.ios.push_back(
        {trace.strings.add(R"(['[{"pg_name": "7", "ranks": []}, {"pg_name": "8", "ranks": [0, 1, 2]}]'])"), 0,
         0});
    trace.inputs.back() = 1;
    add_node_of(trace, 1, ChakraCollective::all_reduce, 100);
    trace.add_booleans("involved_dim", std::array{false, true, true});
    add_node_of(trace, 2, ChakraCollective::all_reduce, 100);
    trace.add_text("pg_name", rank % 2 == 0 ? "left" : "right");
    for (const char* name : {"all", "7", "0", ""}) {
      add_node_of(trace, trace.size(), ChakraCollective::all_reduce, 100);
      trace.add_text("pg_name", name);
    }
    if (rank == 3) return;
    add_node_of(trace, trace.size(), ChakraCollective::all_gather, 5);
    trace.add_text("pg_name", "8");
  });
  ASSERT_EQ(graph.families.size(), 4U);
  EXPECT_EQ(graph.families[1].dimension_mask, 2U);
  EXPECT_EQ(graph.families[1].groups, (std::vector<std::vector<std::int32_t>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(graph.families[2].groups, (std::vector<std::vector<std::int32_t>>{{0, 2}, {3, 1}}));
  EXPECT_EQ(graph.families[3].groups, (std::vector<std::vector<std::int32_t>>{{0, 1, 2}}));
  EXPECT_EQ(graph.families[3].group_of[3], -1);
  // Ranks 0, 1 and 2 do the same in their groups.
  EXPECT_EQ(graph.program_of, (std::vector<std::uint32_t>{0, 0, 0, 1}));
  const Program& program = graph.programs[0];
  const auto call = [&](std::uint32_t node) { return graph.collectives[program.payload[node]]; };
  EXPECT_EQ(call(1).family, 1U);
  EXPECT_EQ(call(2).family, 2U);
  for (const std::uint32_t node : {3U, 4U, 5U, 6U}) EXPECT_EQ(call(node).family, 0U);
  EXPECT_EQ(call(7).bytes.value, 15);
}

TEST(TraceGraph, CollectivesOfNobodyTakeNoTimeAndAreMentioned) {
  std::vector<std::string> warnings;
  const Graph graph = graph_of(
      options({2}),
      [](ChakraTrace& trace, std::int32_t) {
        add_node_of(trace, 0, ChakraCollective::all_reduce, 100);
        trace.add_booleans("involved_dim", std::array{false});
      },
      &warnings);
  EXPECT_EQ(graph.programs[0].kind[0], NodeKind::delay);
  EXPECT_EQ(graph.programs[0].payload[0], 0U);
  EXPECT_EQ(warnings,
            (std::vector<std::string>{"2 collectives with groups of fewer than two ranks, which take no "
                                      "time; the first is t.0.et: node 0 'c0'"}));
}

TEST(TraceGraph, GatherAndScatterAreMessagesToAndFromTheRoot) {
  const Graph graph = graph_of(options({3}), [](ChakraTrace& trace, std::int32_t) {
    add_node_of(trace, 0, ChakraCollective::gather, 100);
    trace.add_integer("root", Kind::int64, 2);
    add_node_of(trace, 1, ChakraCollective::scatter, 50);
  });
  ASSERT_EQ(graph.custom.size(), 2U);
  const CollectiveCall& gather = graph.collectives[graph.programs[0].payload[0]];
  EXPECT_EQ(gather.root, 2);
  const CustomCollective& schedule = graph.custom[static_cast<std::size_t>(gather.custom)];
  ASSERT_EQ(schedule.members.size(), 3U);
  ASSERT_EQ(schedule.members[0].nodes.size(), 1U);
  EXPECT_EQ(schedule.members[0].nodes[0].kind, CustomNode::Kind::send);
  EXPECT_EQ(bytes_of(schedule.members[0].nodes[0], gather.bytes).value, 100);
  EXPECT_EQ(schedule.members[2].nodes.size(), 2U);
  EXPECT_EQ(schedule.members[2].nodes[1].kind, CustomNode::Kind::receive);
}

TEST(TraceGraph, CustomSchedulesAreChosenByNodeThenByKind) {
  TraceGraphOptions given = options({2});
  given.custom.resize(2);
  given.custom_of_kind[CollectiveKind::all_reduce] = 0;
  given.custom_of_node[1] = 1;
  const Graph graph = graph_of(given, [](ChakraTrace& trace, std::int32_t) {
    add_node_of(trace, 0, ChakraCollective::all_reduce, 100);
    add_node_of(trace, 1, ChakraCollective::all_reduce, 100);
    add_node_of(trace, 2, ChakraCollective::all_gather, 100);
  });
  const auto custom = [&](std::uint32_t node) {
    return graph.collectives[graph.programs[0].payload[node]].custom;
  };
  EXPECT_EQ(custom(0), 0);
  EXPECT_EQ(custom(1), 1);
  EXPECT_EQ(custom(2), -1);
}

TEST(TraceGraph, SharedTracesAreCheckedForEveryRank) {
  ChakraTrace trace = trace_of(0);
  add_transfer(trace, 0, true, 2, 1);
  const std::array<std::int32_t, 3> ranks = {0, 1, 2};
  EXPECT_EQ(error_of([&] { TraceGraphBuilder(options({3})).add_ranks(ranks, trace); }),
            "t.0.et: node 0 's': rank 2 sends to itself");
  TraceGraphBuilder builder(options({3}));
  builder.add_ranks(std::span(ranks).first(2), trace);
  EXPECT_EQ(error_of([&] { builder.finish(); }), "rank 2 has no trace");
}

TEST(TraceGraph, ErrorsNameNodeAndAttribute) {
  const TraceGraphOptions two = options({2});
  const auto compute = [](ChakraTrace& trace) { trace.add_node(4, Type::compute, "n", 1); };
  EXPECT_EQ(error_with(two, [&](ChakraTrace& t) { compute(t), t.add_data_dependence(9); }),
            "t.0.et: node 4 'n': waits for node 9, which does not exist\n"
            "  hint: the file may have been cut short");
  EXPECT_EQ(error_with(two, [&](ChakraTrace& t) { compute(t), t.add_control_dependence(4); }),
            "t.0.et: node 4 'n': waits for itself");
  EXPECT_EQ(error_with(two, [&](ChakraTrace& t) { compute(t), compute(t); }),
            "t.0.et: node 4 'n': another node has the same id");
  EXPECT_EQ(error_with(two, [](ChakraTrace& t) { t.add_node(1, Type::compute, "n", UINT64_MAX); }),
            "t.0.et: node 1 'n': lasts 18446744073709551615 microseconds, more than 26 days");
  EXPECT_EQ(error_with(two, [](ChakraTrace& t) { t.add_node(1, Type::memory_load, "n"); }),
            "t.0.et: node 1 'n': attribute 'tensor_size' is missing");
  EXPECT_EQ(error_with(two, [](ChakraTrace& t) { add_transfer(t, 1, true, 2, 0); }),
            "t.0.et: node 1 's': attribute 'comm_dst' is 2, but the job has the ranks 0 to 1");
  EXPECT_EQ(error_with(two, [](ChakraTrace& t) { add_transfer(t, 1, false, 0, 0); }),
            "t.0.et: node 1 'r': rank 0 receives from itself");
  EXPECT_EQ(error_with(two,
                       [](ChakraTrace& t) {
                         add_transfer(t, 1, true, 1, 0);
                         t.add_integer("comm_src", Kind::int32, 1);
                       }),
            "t.0.et: node 1 's': attribute 'comm_src' is 1, but this is the trace of rank 0");
  EXPECT_EQ(error_with(two,
                       [](ChakraTrace& t) {
                         add_node_of(t, 1, ChakraCollective::all_reduce, 1);
                         t.add_integer("is_cpu_op", Kind::boolean, 1);
                       }),
            "t.0.et: node 1 'c1': a communication node cannot run on the CPU (is_cpu_op is true)\n"
            "  hint: set is_cpu_op to false or leave it out");
  EXPECT_EQ(error_with(two, [](ChakraTrace& t) { add_node_of(t, 1, ChakraCollective(77), 1); }),
            "t.0.et: node 1 'c1': unknown collective type 77\n"
            "  hint: Chakra has the types 0 (ALL_REDUCE) to 9 (BARRIER)");
  EXPECT_EQ(
      error_with(two, [](ChakraTrace& t) { add_node_of(t, 1, ChakraCollective::all_gather, INT64_MAX); }),
      "t.0.et: node 1 'c1': gathers more than 2^63 bytes from 2 ranks");
  EXPECT_EQ(error_with(two, [](ChakraTrace& t) { add_node_of(t, 1, ChakraCollective::all_reduce, -1); }),
            "t.0.et: node 1 'c1': attribute 'comm_size' is -1, below 0");
  EXPECT_EQ(error_with(two,
                       [](ChakraTrace& t) {
                         add_node_of(t, 1, ChakraCollective::all_reduce, 1);
                         t.add_text("pg_name", "dp");
                       }),
            "t.0.et: node 1 'c1': communicator 'dp' does not exist\n"
            "  hint: name a file of communicator groups, or leave out pg_name for all ranks");
}

TEST(TraceGraph, RanksOutsideACommunicatorMayNotCallIt) {
  TraceGraphOptions given = options({3});
  given.communicators["dp"] = {{1, 2}, "groups.json:1:1"};
  EXPECT_EQ(error_with(given,
                       [](ChakraTrace& t) {
                         add_node_of(t, 1, ChakraCollective::all_reduce, 1);
                         t.add_text("pg_name", "dp");
                       }),
            "t.0.et: node 1 'c1': rank 0 calls communicator 'dp', but is not one of its ranks\n"
            "  hint: it is defined at groups.json:1:1");
}

}  // namespace
}  // namespace armilla
