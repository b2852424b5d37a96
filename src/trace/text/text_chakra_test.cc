#include "trace/text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error_testing.h"
#include "base/oracle_testing.h"
#include "base/source_path_testing.h"
#include "read/astra.h"
#include "trace/text/text_graph_testing.h"
#include "write/trace.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "id name micros <dependences> attributes" of every node.
std::vector<std::string> nodes_of(const ChakraTrace& trace) {
  std::vector<std::string> lines;
  for (std::size_t node = 0; node < trace.size(); ++node) {
    std::string line =
        fmt::format("{} {} {} <", trace.id[node], trace.name_of_node(node), trace.duration_micros[node]);
    for (const std::uint64_t before : trace.data_dependences(node)) line += fmt::format(" {}", before);
    line += " >";
    for (const ChakraAttribute& attribute : trace.attributes(node)) {
      const std::string_view name = trace.strings.at(attribute.name);
      if (name == "is_cpu_op") continue;
      line += fmt::format(" {}=", name);
      if (attribute.is_list()) {
        for (std::uint32_t i = 0; i < attribute.count; ++i)
          line += fmt::format("{}", trace.list_values[attribute.value + i]);
      } else if (attribute.kind() == ChakraValueKind::string) {
        line += trace.strings.at(static_cast<std::uint32_t>(attribute.value));
      } else if (attribute.kind() == ChakraValueKind::real64) {
        line += fmt::format("{}", std::bit_cast<double>(attribute.value));
      } else {
        line += fmt::format("{}", attribute.value);
      }
    }
    lines.push_back(line);
  }
  return lines;
}

TextWorkload example() {
  TextWorkload workload;
  workload.policy = TextPolicy::hybrid_data_model;
  TextLayer& layer = workload.layers.emplace_back();
  layer.name = "fc";
  layer.forward = {2000, CollectiveKind::all_gather, Bytes(64)};
  layer.input_gradient = {1500, std::nullopt, Bytes(0)};
  layer.weight_gradient = {0, CollectiveKind::all_reduce, Bytes(32)};
  layer.update_cycles = 7;
  return workload;
}

TEST(TextChakra, HasTheGraphsNodes) {
  TextChakraOptions options;
  options.graph.dimensions = {4, 2};
  options.graph.astra1_steps = false;
  const TextChakra chakra = text_chakra(example(), options);
  EXPECT_THAT(chakra.ranks, SizeIs(8));
  EXPECT_THAT(chakra.communicators, IsEmpty());
  const std::vector<std::string> expected = {
      "0 COMP_NODE_fc_FWD 2 < >",
      "1 COMM_COLL_NODE_fc_FWD_ALL_GATHER 0 < 0 > comm_type=2 comm_size=64 involved_dim=10",
      "2 COMP_NODE_fc_FWD_UPDATE 0 < 1 > duration_ns=7 armilla_lane=none",
      "3 COMP_NODE_fc_BWD_IG 1 < 2 > duration_ns=1500",
      "4 COMM_COLL_NODE_fc_BWD_WG_ALL_REDUCE 0 < 3 > comm_type=0 comm_size=32 involved_dim=01 "
      "armilla_preference=fifo",
      "5 COMP_NODE_fc_BWD_WG_UPDATE 0 < 4 > duration_ns=7 armilla_lane=none"};
  for (const ChakraTrace& trace : chakra.ranks) EXPECT_EQ(nodes_of(trace), expected);
}

TEST(TextChakra, StepsAndFrequency) {
  TextWorkload workload = example();
  workload.policy = TextPolicy::data;
  TextChakraOptions options;
  options.graph.dimensions = {2};
  options.graph.frequency = 5e8;
  EXPECT_THAT(
      nodes_of(text_chakra(workload, options).ranks[0]),
      ElementsAre("0 COMP_NODE_fc_FWD 4 < >", "1 COMP_NODE_fc_STEP 0 < 0 > duration_ns=2 armilla_lane=none",
                  "2 COMM_COLL_NODE_fc_BWD_WG_ALL_REDUCE 0 < 1 > comm_type=0 comm_size=32",
                  "3 COMP_NODE_fc_BWD_WG_UPDATE 0 < 2 > duration_ns=14 armilla_lane=none",
                  "4 COMP_NODE_fc_STEP 0 < 1 > duration_ns=2 armilla_lane=none"));
}

TEST(TextChakra, ProcessGroupsWhereDimensionsCannotSayIt) {
  TextWorkload workload = example();
  workload.policy = TextPolicy::hybrid_transformer;
  workload.model_parallel_group = 2;
  TextChakraOptions options;
  options.graph.dimensions = {4};
  options.graph.astra1_steps = false;
  const TextChakra chakra = text_chakra(workload, options);
  ASSERT_THAT(chakra.communicators, SizeIs(4));
  EXPECT_THAT(chakra.communicators.at("1").ranks, ElementsAre(0, 1));
  EXPECT_THAT(chakra.communicators.at("2").ranks, ElementsAre(2, 3));
  EXPECT_THAT(chakra.communicators.at("4").ranks, ElementsAre(1, 3));
  EXPECT_EQ(nodes_of(chakra.ranks[3])[1],
            "1 COMM_COLL_NODE_fc_FWD_ALL_GATHER 0 < 0 > comm_type=2 comm_size=64 pg_name=2");
  EXPECT_EQ(nodes_of(chakra.ranks[3])[4],
            "4 COMM_COLL_NODE_fc_BWD_WG_ALL_REDUCE 0 < 3 > comm_type=0 comm_size=32 pg_name=4 "
            "armilla_preference=fifo");
  EXPECT_EQ(nodes_of(chakra.ranks[0])[1],
            "1 COMM_COLL_NODE_fc_FWD_ALL_GATHER 0 < 0 > comm_type=2 comm_size=64 pg_name=1");

  options.graph.dimensions = {2, 2};
  options.process_groups = true;
  EXPECT_THAT(text_chakra(workload, options).communicators, SizeIs(4));
}

TEST(TextChakra, RefusesTooMuch) {
  TextChakraOptions options;
  options.graph.dimensions = {1 << 20};
  options.graph.passes = 100;
  EXPECT_EQ(error_of([&] { text_chakra(example(), options); }),
            "passes: 1048576 ranks of 700 nodes are more than 33554432\n"
            "  hint: translate fewer passes");
}

// The length of the longest path, where every collective takes 5 us: nodes of a trace come after what they
// wait for.
double microseconds_of(const ChakraTrace& trace) {
  std::vector<double> end(trace.size());
  double longest = 0;
  for (std::size_t node = 0; node < trace.size(); ++node) {
    double time =
        trace.type[node] == ChakraNodeType::collective ? 5 : static_cast<double>(trace.duration_micros[node]);
    const ChakraAttribute* exact = trace.find(node, kDurationNs);
    if (exact) time = std::bit_cast<double>(exact->value) / 1000;
    double start = 0;
    for (const std::uint64_t before : trace.data_dependences(node)) start = std::max(start, end.at(before));
    end[node] = start + time;
    longest = std::max(longest, end[node]);
  }
  return longest;
}

TEST(TextChakra, EveryPolicyTakesAsLongAsItsGraph) {
  const std::filesystem::path folder = source_path("tests/fuzz/astra_text");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    const TextWorkload workload = read_astra_text(content_of(entry.path()), "w.txt", nullptr);
    TextChakraOptions options;
    options.graph.dimensions = {4, 4};
    options.graph.passes = 2;
    for (const bool steps : {false, true}) {
      options.graph.astra1_steps = steps;
      const TextGraph text = text_graph(workload, options.graph);
      const Time time = play(text, [](const CollectiveCall&) { return microseconds(5); }).iteration;
      EXPECT_GT(time, Time(0));
      EXPECT_NEAR(microseconds_of(text_chakra(workload, options).ranks[5]), in_microseconds(time), 1e-6);
    }
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(TextChakraAsPeer, WritesTheConvertersBytes) {
  for (const Oracle& oracle : oracles("chakra/text")) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(oracle.path)) {
      if (entry.path().extension() != ".txt") continue;
      SCOPED_TRACE(entry.path());
      const std::string text = content_of(entry.path());
      const std::string stem = entry.path().stem();
      if (!std::filesystem::exists(oracle.path / (stem + ".p2.0.et"))) {
        EXPECT_NE(error_of([&] { text_chakra_as_converter(text, "w.txt", 2, 2); }), "no error");
        continue;
      }
      const std::vector<ChakraTrace> traces = text_chakra_as_converter(text, "w.txt", 2, 2);
      for (std::size_t rank = 0; rank < traces.size(); ++rank) {
        const std::string expected = content_of(oracle.path / fmt::format("{}.p2.{}.et", stem, rank));
        EXPECT_TRUE(write_chakra(traces[rank]) == expected) << "rank " << rank;
      }
      ++files;
    }
    EXPECT_EQ(files, oracle.whole ? 7 : 4);
  }
}

std::string refused_as_converter(const std::string& text) {
  return error_of([&] { text_chakra_as_converter(text, "w.txt", 1, 1); });
}

TEST(TextChakraAsPeer, KeepsWhatTheConverterKeeps) {
  const std::string row = "a -1 1 NONE 3 2 FOO 4 3 NONE -5 4\n";
  EXPECT_THAT(nodes_of(text_chakra_as_converter("MICRO\n9\n" + row, "w.txt", 2, 2)[1]),
              ElementsAre("2 COMM_COLL_NODE_a_NONE 0 < > comm_type=0 comm_size=18446744073709551611",
                          "3 COMM_COLL_NODE_a_NONE 0 < > comm_type=0 comm_size=18446744073709551611"));
  // More layers declared than there are: the input gradient of the first one is exchanged, too.
  EXPECT_THAT(
      nodes_of(text_chakra_as_converter("MODEL\n2\n" + row, "w.txt", 1, 1)[0]),
      ElementsAre("0 COMP_NODE_a_FWD 1 < >", "1 COMM_COLL_NODE_a_NONE 0 < 0 > comm_type=0 comm_size=3",
                  "2 COMP_NODE_a_BWD_IG 2 < 1 >", "3 COMM_COLL_NODE_a_FOO 0 < 2 > comm_type=0 comm_size=4",
                  "4 COMP_NODE_a_BWD_WG 3 < 2 >"));
}

TEST(TextChakraAsPeer, RefusesWhatTheConverterStumblesOver) {
  const std::string row = "a -1 1 NONE 3 2 NONE 4 3 NONE 5 4\n";
  EXPECT_EQ(refused_as_converter("HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\n" + row),
            "w.txt:1:1: Chakra's converter does not know the policy 'HYBRID_TRANSFORMER'\n"
            "  hint: known: MICRO, DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, HYBRID_DLRM, "
            "HYBRID_DLRM_ENHANCED");
  EXPECT_EQ(refused_as_converter("DATA\n"), "w.txt:2:1: the file ends too early");
  EXPECT_EQ(refused_as_converter("DATA\n1\n"), "w.txt: has no layers");
  EXPECT_EQ(refused_as_converter("DATA\n2\n" + row + "\n" + row),
            "w.txt:4:1: 0 of 12 columns\n"
            "  hint: Chakra's converter takes no empty lines");
  EXPECT_EQ(refused_as_converter("DATA\n1\na -1 x NONE 3 2 NONE 4 3 NONE 5 4\n"),
            "w.txt:3:1: 'x' is not a number that Chakra's converter takes");
  EXPECT_EQ(refused_as_converter("MODEL\n1\n" + row + row),
            "w.txt:2:1: Chakra's converter stops where more layers follow than are declared");
  EXPECT_EQ(refused_as_converter("HYBRID_DLRM 1\n2\n" + row + row),
            "w.txt:1:1: the bottom MLP waits for an ALLTOALL of the first layer that there is not\n"
            "  hint: Chakra's converter stops here, too");
  EXPECT_EQ(refused_as_converter("HYBRID_DLRM\n2\n" + row + row),
            "w.txt:1:1: the index of the last bottom layer is missing");
  EXPECT_EQ(error_of([] { text_chakra_as_converter("DATA\n1\n", "w.txt", 0, 1); }),
            "ranks: 0 ranks\n  hint: 1 to 65536");
}

}  // namespace
}  // namespace armilla
