#include "write/astra.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error_testing.h"

namespace armilla {
namespace {

// Two ranks of one program: 3 us of computation, then an all-reduce; as in ASTRA-sim's trace_enabled example.
struct Example {
  Graph graph;
  Result result;

  Example() {
    graph.ranks = 2;
    graph.program_of = {0, 0};
    graph.families = {world_family(2)};
    graph.collectives = {{CollectiveKind::all_reduce, Bytes(1 << 20)}};
    Program& program = graph.programs.emplace_back();
    program.add(NodeKind::delay, Phase::other, graph.names.add("n0"), -1, 3'000'000, {});
    const std::uint32_t first[] = {0};
    program.add(NodeKind::collective, Phase::other, graph.names.add("n1"), -1, 0, first);
    program.lane[0] = Lane::device;
    program.file_id = {10, 11};
    result.ranks = 2;
    RankClass& ranks = result.classes.emplace_back();
    ranks.ranks = 2;
    ranks.finish = nanoseconds(31'620);
    ranks.compute = nanoseconds(3'000);
    ranks.communication = nanoseconds(28'620);
    ranks.computes = {{Time(0), nanoseconds(3'000), 0}};
    ranks.collectives = {{nanoseconds(3'000), nanoseconds(31'620), 1}};
  }
};

TEST(Astra2Report, EveryRankHasItsLines) {
  Example example;
  EXPECT_EQ(astra2_finish_lines(example.graph, example.result, {}),
            "[workload] [info] sys[0] finished, 31620 cycles, exposed communication 28620 cycles.\n"
            "[statistics] [info] sys[0], Wall time: 31620\n"
            "[statistics] [info] sys[0], GPU time: 3000\n"
            "[statistics] [info] sys[0], Comm time: 28620\n"
            "[workload] [info] sys[1] finished, 31620 cycles, exposed communication 28620 cycles.\n"
            "[statistics] [info] sys[1], Wall time: 31620\n"
            "[statistics] [info] sys[1], GPU time: 3000\n"
            "[statistics] [info] sys[1], Comm time: 28620\n");
}

TEST(Astra2Report, RanksOfTheirOwnClassHaveTheirOwnTimes) {
  Example example;
  example.result.classes.push_back(example.result.classes.front());
  RankClass& other = example.result.classes[1];
  other.finish = nanoseconds(31'000);  // overlapping for 620 ns
  other.communication = nanoseconds(28'620);
  example.result.class_of = {1, 0};
  EXPECT_EQ(astra2_finish_lines(example.graph, example.result, {.utilisation = {{0.25, 0.5, 0.75, 12}}}),
            "[workload] [info] sys[0] finished, 31000 cycles, exposed communication 28000 cycles.\n"
            "[statistics] [info] sys[0], Wall time: 31000\n"
            "[statistics] [info] sys[0], GPU time: 3000\n"
            "[statistics] [info] sys[0], Comm time: 28620\n"
            "[statistics] [info] sys[0], Total compute-communication overlap: 620\n"
            "[statistics] [info] sys[0], Compute bound percentage: 25.000%\n"
            "[statistics] [info] sys[0], Average compute utilization: 50.000%\n"
            "[statistics] [info] sys[0], Average memory utilization: 75.000%\n"
            "[statistics] [info] sys[0], Average operation intensity: 12.000\n"
            "[workload] [info] sys[1] finished, 31620 cycles, exposed communication 28620 cycles.\n"
            "[statistics] [info] sys[1], Wall time: 31620\n"
            "[statistics] [info] sys[1], GPU time: 3000\n"
            "[statistics] [info] sys[1], Comm time: 28620\n"
            "[statistics] [info] sys[1], Compute bound percentage: 25.000%\n"
            "[statistics] [info] sys[1], Average compute utilization: 50.000%\n"
            "[statistics] [info] sys[1], Average memory utilization: 75.000%\n"
            "[statistics] [info] sys[1], Average operation intensity: 12.000\n");
}

TEST(Astra2Report, ReplayedCommunicationCountsAsComputationButNothingWrapsAround) {
  Example example;
  Program& program = example.graph.programs[0];
  program.kind[1] = NodeKind::delay;  // as replay-only makes it, in its lane
  program.payload[1] = 8'000'000;
  example.result.classes[0].finish = nanoseconds(8'000);
  EXPECT_EQ(astra2_finish_lines(example.graph, example.result, {.replay_only = true}).substr(0, 78),
            "[workload] [info] sys[0] finished, 8000 cycles, exposed communication 0 cycles");
  EXPECT_EQ(astra2_finish_lines(example.graph, example.result, {}).substr(0, 81),
            "[workload] [info] sys[0] finished, 8000 cycles, exposed communication 5000 cycles");
}

TEST(Astra2Report, LogFollowsThePeers) {
  Example example;
  EXPECT_EQ(astra2_log(example.graph, example.result, {}),
            astra2_finish_lines(example.graph, example.result, {}));
  EXPECT_EQ(astra2_log(example.graph, example.result, {.trace_enabled = true}),
            "[workload] [debug] issue,sys->id=0, tick=0, node->id=10, node->name=n0, node->type=4\n"
            "[workload] [debug] issue,sys->id=1, tick=0, node->id=10, node->name=n0, node->type=4\n"
            "[workload] [debug] callback,sys->id=0, tick=3000, node->id=10, node->name=n0, node->type=4\n"
            "[workload] [debug] issue,sys->id=0, tick=3000, node->id=11, node->name=n1, node->type=7\n"
            "[workload] [debug] callback,sys->id=1, tick=3000, node->id=10, node->name=n0, node->type=4\n"
            "[workload] [debug] issue,sys->id=1, tick=3000, node->id=11, node->name=n1, node->type=7\n"
            "[workload] [debug] callback,sys->id=0, tick=31620, node->id=11, node->name=n1, node->type=7\n"
            "[workload] [info] sys[0] finished, 31620 cycles, exposed communication 28620 cycles.\n"
            "[statistics] [info] sys[0], Wall time: 31620\n"
            "[statistics] [info] sys[0], GPU time: 3000\n"
            "[statistics] [info] sys[0], Comm time: 28620\n"
            "[workload] [debug] callback,sys->id=1, tick=31620, node->id=11, node->name=n1, node->type=7\n"
            "[workload] [info] sys[1] finished, 31620 cycles, exposed communication 28620 cycles.\n"
            "[statistics] [info] sys[1], Wall time: 31620\n"
            "[statistics] [info] sys[1], GPU time: 3000\n"
            "[statistics] [info] sys[1], Comm time: 28620\n");
}

TEST(Astra2Report, PeakMemoryHasAUnit) {
  EXPECT_EQ(peak_memory_line(0, 3 << 20), "[workload] [info] sys[0] peak memory usage: 3.00 MB\n");
  EXPECT_EQ(peak_memory_line(1, 1023), "[workload] [info] sys[1] peak memory usage: 1023.00 B\n");
  EXPECT_EQ(peak_memory_line(2, std::uint64_t{5} << 40),
            "[workload] [info] sys[2] peak memory usage: 5.00 TB\n");
}

// ASTRA-sim's track_mem example: n0 reads a and writes b, n1 reads b and writes c.
struct Tensors {
  ChakraTrace trace;
  Program program;

  Tensors() { trace.source = "t.0.et"; }
  void add(std::vector<std::string> inputs, std::vector<std::string> outputs) {
    const std::uint64_t id = trace.size();
    trace.add_node(id, ChakraNodeType::compute, "n" + std::to_string(id), 10);
    add_list("inputs", inputs);
    add_list("outputs", outputs);
    program.add(NodeKind::delay, Phase::other, 0, -1, 10'000'000, {});
  }
  LocalMemory track() const {
    std::vector<NodeSpan> spans;
    for (std::uint32_t node = 0; node < program.size(); ++node)
      spans.push_back({nanoseconds(10'000) * node, nanoseconds(10'000) * (node + 1), node});
    return local_memory(trace, 0, program, spans);
  }

 private:
  void add_list(std::string_view name, const std::vector<std::string>& texts) {
    ChakraAttribute attribute;
    attribute.name = trace.strings.add(name);
    attribute.field = static_cast<std::uint8_t>(ChakraValueKind::string) + 1;
    attribute.count = static_cast<std::uint32_t>(texts.size());
    attribute.value = trace.list_values.size();
    for (const std::string& text : texts) trace.list_values.push_back(trace.strings.add(text));
    trace.attribute.push_back(attribute);
    trace.first_attribute.back() = trace.end_of(trace.attribute);
  }
};

TEST(LocalMemory, TensorsLiveFromWriterToLastReader) {
  Tensors tensors;
  tensors.add({"a", "1048576"}, {"b", "2097152"});
  tensors.add({"b", "2097152"}, {"c", "100"});
  const LocalMemory memory = tensors.track();
  EXPECT_EQ(memory.peak_bytes, 3u << 20);
  EXPECT_EQ(memory.tensors, 3u);
  const auto document = nlohmann::json::parse(memory.chrome_trace);
  std::vector<std::string> lifetimes;
  std::vector<double> usage;
  for (const auto& event : document.at("traceEvents")) {
    if (event.value("cat", "") == "tensorLifetime") {
      lifetimes.push_back(event.at("name").get<std::string>() + event.at("ph").get<std::string>() +
                          std::to_string(event.at("ts").get<double>()));
    }
    if (event.at("ph") == "C") usage.push_back(event.at("args").at("Memory_MB").get<double>());
  }
  EXPECT_EQ(lifetimes, (std::vector<std::string>{"aB0.000000", "aE10.000000", "bB0.000000", "bE20.000000",
                                                 "cB10.000000"}));
  EXPECT_EQ(usage, (std::vector<double>{3, 2 + 100.0 / (1 << 20), 100.0 / (1 << 20)}));
}

TEST(LocalMemory, WrongListsAreRefused) {
  Tensors odd;
  odd.add({"a"}, {});
  EXPECT_EQ(error_of([&] { odd.track(); }),
            "t.0.et: node 0 'n0', attribute 'inputs': lists 1 text\n"
            "  hint: tensors are listed as name, bytes, name, bytes");
  Tensors wrong;
  wrong.add({}, {"a", "1e6"});
  EXPECT_EQ(error_of([&] { wrong.track(); }),
            "t.0.et: node 0 'n0', attribute 'outputs': '1e6' is not a size in bytes");
}

}  // namespace
}  // namespace armilla
