#include "read/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/error_testing.h"
#include "base/mapped_file.h"
#include "base/oracle_testing.h"

namespace armilla {
namespace {

std::string contents(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

FlexflowTraces converted(const std::string& text, const FlexflowOptions& options = {}) {
  return parse_flexflow(text, "a.graph", options);
}

TEST(FlexflowTest, ReproducesThePeersTraces) {
  for (const auto& [folder, whole] : oracles("chakra/flexflow")) {
    for (const std::string model : {"mnist_mlp.4", "alexnet.4"}) {
      if (!whole && model != "mnist_mlp.4") continue;
      FlexflowOptions options;
      options.as_chakra = true;
      options.megahertz = 1500;
      const std::string stem = (folder / model).string();
      const FlexflowTraces traces = parse_flexflow(contents(stem + ".graph"), model, options);
      ASSERT_EQ(traces.ranks.size(), 4U);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const ChakraTrace theirs = read_chakra_file(stem + "." + std::to_string(rank) + ".et");
        EXPECT_TRUE(same_contents(traces.ranks[rank], theirs)) << model << " " << rank;
      }
    }
  }
}

// Every send meets one receive, dependences exist, and no id is used twice on a rank.
TEST(FlexflowTest, TracesAreSound) {
  std::vector<std::filesystem::path> graphs;
  for (const auto& [folder, whole] : oracles("chakra/flexflow")) {
    graphs.push_back(folder / "mnist_mlp.4.graph");
    if (!whole) continue;
    graphs.push_back(folder / "alexnet.4.graph");
    graphs.push_back(folder / "multi_head_attention.16.graph");
  }
  for (const std::filesystem::path& graph : graphs) {
    const FlexflowTraces traces = parse_flexflow(contents(graph), graph, {});
    EXPECT_EQ(traces.told, 0) << graph;
    std::map<std::vector<std::int64_t>, int> open;
    for (const ChakraTrace& trace : traces.ranks) {
      const std::set<std::uint64_t> ids(trace.id.begin(), trace.id.end());
      EXPECT_EQ(ids.size(), trace.size());
      for (const std::uint64_t on : trace.data_dependence) EXPECT_TRUE(ids.contains(on)) << on;
      for (std::size_t node = 0; node < trace.size(); ++node) {
        if (trace.type[node] == ChakraNodeType::compute) continue;
        std::vector<std::int64_t> key;
        for (const char* name : {"comm_src", "comm_dst", "comm_tag", "comm_size"})
          key.push_back(integer_value(trace, node, *trace.find(node, name)));
        open[key] += trace.type[node] == ChakraNodeType::send ? 1 : -1;
      }
    }
    for (const auto& [key, count] : open) EXPECT_EQ(count, 0);
  }
}

constexpr const char* kPair =
    "digraph taskgraph {  node0 "
    "[color=red,label=\"{device_id=0|A|Forward|COMP_NODE|simulated_run_time=1.5}\","
    "shape=record];\n"
    "  node0 -> node2;\n"
    "  node2 [label=\"{device_id=7|Comm from A to B|Comm|COMM_SEND_RECV_NODE|src_device_id=0|dst_device_id=1|"
    "comm_size=64|run_time=1}\"];\n"
    "  node2 -> node1; /* and */ node0 -> node1 // told\n"
    "  node1 [label=\"{device_id=1|B|Forward|COMP_NODE|simulated_run_time=0.0005}\"];\n"
    "}\n";

TEST(FlexflowTest, TimesAreMicrosecondsAndWaitingIsTold) {
  const FlexflowTraces traces = converted(kPair);
  ASSERT_EQ(traces.ranks.size(), 2U);
  EXPECT_EQ(traces.told, 1);
  const ChakraTrace& first = traces.ranks[0];
  const ChakraTrace& second = traces.ranks[1];
  EXPECT_EQ(first.duration_micros, (std::vector<std::uint64_t>{1500, 0, 0}));
  EXPECT_EQ(first.type, (std::vector<ChakraNodeType>{ChakraNodeType::compute, ChakraNodeType::send,
                                                     ChakraNodeType::send}));
  EXPECT_EQ(first.name_of_node(1), "COMM_SEND_NODE_done_A");
  EXPECT_EQ(first.id, (std::vector<std::uint64_t>{0, 3, 2}));
  EXPECT_EQ(first.data_dependence, (std::vector<std::uint64_t>{0, 0}));
  EXPECT_EQ(second.id, (std::vector<std::uint64_t>{3, 1, 2}));
  EXPECT_EQ(second.duration_micros, (std::vector<std::uint64_t>{0, 1, 0}));
  EXPECT_EQ(second.data_dependence, (std::vector<std::uint64_t>{2, 3}));
}

std::string flexflow_refusal(const std::string& text) {
  return error_of([&] { converted(text); });
}
std::string labelled(const std::string& label) {
  return "digraph g { node0 [label=\"" + label + "\"]; }";
}

TEST(FlexflowTest, RefusesOtherGraphs) {
  EXPECT_EQ(flexflow_refusal("graph g {}"), "a.graph:1:1: is not a digraph in Graphviz' language");
  EXPECT_EQ(flexflow_refusal("digraph g {}"), "a.graph: the graph has no nodes");
  EXPECT_EQ(flexflow_refusal("digraph g { node0 [label=\"x"),
            "a.graph:1:26: the text that begins here does not end");
  EXPECT_EQ(flexflow_refusal("digraph g { node0"), "a.graph:1:18: the file ends inside the graph");
  EXPECT_EQ(flexflow_refusal("digraph g { node0 [label 3]; }"),
            "a.graph:1:26: '3' stands where '=' is expected");
  EXPECT_EQ(flexflow_refusal("digraph g { subgraph s { a } }"), "a.graph:1:13: subgraphs are not supported");
  EXPECT_EQ(flexflow_refusal("digraph g { a; }"), "a.graph:1:13: a has no label");
  EXPECT_EQ(flexflow_refusal(labelled("x")), "a.graph:1:13: the label 'x' is not a record in braces");
  EXPECT_EQ(flexflow_refusal(labelled("{a|b|c|COMP_NODE|d}")),
            "a.graph:1:13: the label has no field 'device_id='");
  EXPECT_EQ(flexflow_refusal(labelled("{device_id=0|b|c|COMP|d}")),
            "a.graph:1:13: unknown type of node 'COMP'\n  hint: known: COMP_NODE, COMM_SEND_RECV_NODE");
  EXPECT_EQ(flexflow_refusal(labelled("{device_id=99999|b|c|COMP_NODE|simulated_run_time=1}")),
            "a.graph:1:13: '99999' is not a device from 0 to 65535");
  EXPECT_EQ(flexflow_refusal(labelled("{device_id=0|b|c|COMP_NODE|simulated_run_time=-1}")),
            "a.graph:1:13: '-1' is not a time in ms from 0 to 1000000000000");
  EXPECT_EQ(flexflow_refusal("digraph g { node0 -> node1; }"),
            "a.graph:1:13: node0 -> node1: node0 has no statement of its own");
}

TEST(FlexflowTest, SurvivesDamage) {
  const std::string whole = kPair;
  int refused = 0, read = 0;
  const auto attempt = [&](const std::string& text) {
    ++(flexflow_refusal(text) == "no error" ? read : refused);
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    attempt(whole.substr(0, i));
    for (const char c : {'\0', '"', '}', '9'}) {
      std::string changed = whole;
      changed[i] = c;
      attempt(changed);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 10);
}

}  // namespace
}  // namespace armilla
