#include "read/astra.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/oracle_testing.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;

// Every test works in an empty folder of its own.
class Astra2Config : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "armilla-astra2-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    previous_ = fs::current_path();
    fs::current_path(folder_);
    write("n.yml",
          "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 25 ]\n"
          "latency: [ 500.0, 1e3 ]\n");
    write("m.json", R"({"memory-type": "NO_MEMORY_EXPANSION"})");
  }
  void TearDown() override {
    fs::current_path(previous_);
    fs::remove_all(folder_);
  }
  static void write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

  // With the two-dimensional network above.
  SystemLayer system(std::string_view text, double injection_scale = 1) {
    write("s.json", text);
    warnings_.clear();
    Astra2Settings settings;
    settings.system = "s.json";
    settings.network = "n.yml";
    settings.injection_scale = injection_scale;
    return read_astra2_config(settings, warnings_);
  }
  std::string refusal(std::string_view text, double injection_scale = 1) {
    return error_of([&] { system(text, injection_scale); });
  }
  std::string network_refusal(std::string_view text) {
    write("bad.yml", text);
    return error_of([&] { read_astra2_network("bad.yml", warnings_); });
  }
  std::string memory_refusal(std::string_view text) {
    write("bad.json", text);
    return error_of([&] { read_astra2_remote_memory("bad.json", 8, warnings_); });
  }

  std::vector<std::string> warnings_;

 private:
  fs::path folder_, previous_;
};

TEST_F(Astra2Config, EveryKeyArrives) {
  write("nodes.yml", "7: ag\n0: /abs/x\n");
  const SystemLayer read = system(R"({
 "scheduling-policy": "EXPLICIT",
 "collective-optimization": "localBWAware",
 "intra-dimension-scheduling": "SCF",
 "inter-dimension-scheduling": "themis",
 "endpoint-delay": 25,
 "active-chunks-per-dimension": 3,
 "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring", "direct12"],
 "all-gather-implementation": ["oneDirect3"],
 "reduce-scatter-implementation": ["halvingDoubling", "doubleBinaryTree"],
 "all-to-all-implementation": ["oneHalvingDoubling"],
 "all-to-all-implementation-custom": ["a2a/x"],
 "per-node-custom-implementation": "nodes.yml",
 "local-mem-bw": 1600.5,
 "peak-perf": 900,
 "roofline-enabled": 1,
 "replay-only": 0,
 "trace-enabled": 1,
 "track-local-mem": 1,
 "local-mem-trace-filename": "lmt",
 "model-shared-bus": 1,
 "L": 10, "o": 5, "g": 2.5, "G": 0.01,
 "local-reduction-delay": 2
})",
                                  0.5);
  EXPECT_EQ(read.semantics, Semantics::astra2_unaware);
  ASSERT_EQ(read.dimensions.size(), 2u);
  EXPECT_EQ(read.dimensions[1].kind, DimensionKind::switched);
  EXPECT_EQ(read.dimensions[1].size, 2);
  EXPECT_EQ(read.dimensions[1].bandwidth, 25);
  EXPECT_EQ(read.dimensions[1].latency_ns, 1000);
  EXPECT_EQ(read.scheduling, ChunkOrder::priority);
  EXPECT_EQ(read.decomposition, Decomposition::bandwidth_aware);
  EXPECT_EQ(read.intra_dimension, IntraDimensionOrder::smallest_first);
  EXPECT_EQ(read.inter_dimension, InterDimensionOrder::themis);
  EXPECT_EQ(read.endpoint_delay_ns, 12);  // 12.5, cut
  EXPECT_EQ(read.active_chunks, 3);
  EXPECT_EQ(read.splits, 4);
  const auto& all_reduce = read.algorithms.at(CollectiveKind::all_reduce);
  ASSERT_EQ(all_reduce.size(), 2u);
  EXPECT_EQ(all_reduce[0].kind, StreamAlgorithmKind::ring);
  EXPECT_EQ(all_reduce[1].kind, StreamAlgorithmKind::direct);
  EXPECT_EQ(all_reduce[1].window, 12);
  const auto& all_gather = read.algorithms.at(CollectiveKind::all_gather);
  EXPECT_TRUE(all_gather[0].flat);
  EXPECT_EQ(all_gather[0].window, 3);
  EXPECT_EQ(read.algorithms.at(CollectiveKind::reduce_scatter)[1].kind,
            StreamAlgorithmKind::double_binary_tree);
  EXPECT_TRUE(read.algorithms.at(CollectiveKind::all_to_all)[0].flat);
  EXPECT_EQ(read.custom.at(CollectiveKind::all_to_all), "a2a/x");
  EXPECT_EQ(read.custom_by_node, (std::map<std::uint64_t, std::string>{{0, "/abs/x"}, {7, "ag"}}));
  EXPECT_EQ(read.memory_bytes_per_second, 1600.5e9);
  EXPECT_EQ(read.peak_flops, 900e12);
  EXPECT_TRUE(read.roofline);
  EXPECT_FALSE(read.replay_only);
  EXPECT_TRUE(read.trace_enabled);
  EXPECT_TRUE(read.track_local_memory);
  EXPECT_EQ(read.local_memory_trace, "lmt");
  EXPECT_TRUE(read.shared_bus);
  EXPECT_EQ(read.bus_l_ns, 10);
  EXPECT_EQ(read.bus_o_ns, 5);
  EXPECT_EQ(read.bus_g_ns, 2);
  EXPECT_EQ(read.bus_gap_per_byte_ns, static_cast<double>(0.01F));
  EXPECT_EQ(read.local_reduction_delay, 2);
  EXPECT_EQ(warnings_,
            (std::vector<std::string>{
                "s.json:4:32: intra-dimension-scheduling: 'SCF' is heeded; ASTRA-sim 2 would ignore it",
                "s.json:5:32: inter-dimension-scheduling: 'themis' is heeded; ASTRA-sim 2 would ignore it"}));
}

TEST_F(Astra2Config, WhatIsMissingIsWhatThePeerWasMeasuredToDo) {
  const SystemLayer read = system(R"({"boost-mode": 1, "_comment": "mine"})", 2);
  EXPECT_EQ(read.scheduling, ChunkOrder::lifo);
  EXPECT_EQ(read.decomposition, Decomposition::baseline);
  EXPECT_EQ(read.endpoint_delay_ns, 10);
  EXPECT_EQ(read.active_chunks, 1);
  EXPECT_EQ(read.splits, 0);
  EXPECT_EQ(read.memory_bytes_per_second, 0);
  EXPECT_TRUE(read.algorithms.empty());
  EXPECT_EQ(warnings_,
            (std::vector<std::string>{
                "s.json: no scheduling-policy: LIFO is taken",
                "s.json: no collective-optimization: baseline is taken",
                "s.json: no endpoint-delay: --injection-scale has no effect on the default of 10 ns, as in "
                "ASTRA-sim",
                "s.json: no local-mem-bw: the reductions of collectives take no time",
                "s.json:1:16: boost-mode: ignored, as in ASTRA-sim 2",
                "s.json:1:31: _comment: the key is taken as a comment"}));
}

TEST_F(Astra2Config, WrongSystemFilesAreRefused) {
  EXPECT_EQ(refusal(R"({"actve-chunks-per-dimension": 1})"),
            "s.json:1:2: actve-chunks-per-dimension: unknown key 'actve-chunks-per-dimension'\n"
            "  hint: did you mean 'active-chunks-per-dimension'?");
  EXPECT_EQ(refusal(""), "s.json: is empty, not an ASTRA-sim 2 system file");
  EXPECT_EQ(refusal("{\"topology\": [\"Ring\"], \"npus_count\": [8]}"),
            "s.json: is an ASTRA-sim 2 network file, not an ASTRA-sim 2 system file\n"
            "  hint: armilla astra2 --network-configuration takes it");
  EXPECT_EQ(refusal("[1]"), "s.json: is not a system configuration: it holds no keys");
  EXPECT_EQ(refusal(R"({"scheduling-policy": "lifo"})"),
            "s.json:1:23: scheduling-policy: unknown value 'lifo'\n  hint: did you mean 'LIFO'?");
  EXPECT_EQ(refusal(R"({"collective-optimization": "localBW"})"),
            "s.json:1:29: collective-optimization: unknown collective optimization 'localBW'\n"
            "  hint: did you mean 'localBWAware'?");
  EXPECT_EQ(refusal(R"({"endpoint-delay": -5})"),
            "s.json:1:20: endpoint-delay: -5 is too small\n  hint: the lowest value is 0");
  EXPECT_EQ(refusal(R"({"active-chunks-per-dimension": 0})"),
            "s.json:1:33: active-chunks-per-dimension: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(refusal(R"({"preferred-dataset-splits": 0})"),
            "s.json:1:30: preferred-dataset-splits: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(refusal(R"({"preferred-dataset-splits": "four"})"),
            "s.json:1:30: preferred-dataset-splits: 'four' is not a number\n"
            "  hint: expected a plain number, such as '0.5'");
  EXPECT_EQ(refusal(R"({"all-reduce-implementation": ["rign", "ring"]})"),
            "s.json:1:32: all-reduce-implementation.0: unknown collective algorithm 'rign'\n"
            "  hint: did you mean 'ring'?");
  EXPECT_EQ(refusal(R"({"all-reduce-implementation": ["direct0", "ring"]})"),
            "s.json:1:32: all-reduce-implementation.0: 'direct0' has 0 messages in flight\n"
            "  hint: the lowest window is 1; without a number all are in flight");
  EXPECT_EQ(refusal(R"({"all-reduce-implementation": ["ring", "ring", "ring"]})"),
            "s.json:1:31: all-reduce-implementation: lists 3 algorithms for 2 dimensions");
  EXPECT_EQ(refusal(R"({"all-reduce-implementation": ["oneRing", "ring"]})"),
            "s.json:1:31: all-reduce-implementation: an algorithm over all ranks ('one...') stands beside "
            "others\n  hint: it must be the only entry");
  EXPECT_EQ(refusal(R"({"all-reduce-implementation": "ring"})"),
            "s.json:1:31: all-reduce-implementation: one algorithm for 2 dimensions\n"
            "  hint: list one for each, innermost first");
  EXPECT_EQ(refusal(R"({"all-reduce-implementation-custom": ["a", "b"]})"),
            "s.json:1:38: all-reduce-implementation-custom: lists 2 paths\n"
            "  hint: one schedule covers all dimensions: give one path prefix");
  EXPECT_EQ(refusal(R"({"roofline-enabled": 1, "local-mem-bw": 50})"),
            "s.json: the roofline needs a 'peak-perf' of more than 0\n"
            "  hint: peak-perf is in TFLOP/s, local-mem-bw in GB/s");
  EXPECT_EQ(refusal(R"({"local-mem-bw": -1})"),
            "s.json:1:18: local-mem-bw: -1 is too small\n  hint: the lowest value is 0");
  EXPECT_EQ(refusal(R"({"endpoint-delay": 2000000000})", 2),
            "--injection-scale: makes an endpoint-delay of 4000000000 ns");
  write("nodes.yml", "one: ag\n");
  EXPECT_EQ(refusal(R"({"per-node-custom-implementation": "nodes.yml"})"),
            "nodes.yml:1:6: one: 'one' is not a whole number");
  EXPECT_EQ(refusal(R"({"per-node-custom-implementation": "none.yml"})").substr(0, 8), "none.yml");
}

TEST_F(Astra2Config, AwkwardValuesAreTakenWithAWarning) {
  SystemLayer read = system(R"({"scheduling-policy": "LIFO", "collective-optimization": "baseline",
 "local-mem-bw": 1, "endpoint-delay": 10.9, "all-gather-implementation": ["ring"],
 "all-reduce-implementation": ["direct"], "all-to-all-implementation": "oneRing"})");
  EXPECT_EQ(read.endpoint_delay_ns, 10);
  EXPECT_EQ(warnings_,
            (std::vector<std::string>{
                "s.json:2:39: endpoint-delay: 10.9 is taken as 10, as in ASTRA-sim",
                "s.json: fewer algorithms than the network's 2 dimensions for all-reduce, all-gather: the "
                "dimensions without one take no part, as in ASTRA-sim"}));
}

TEST_F(Astra2Config, NetworksOfOneDimensionMayLeaveOutTheBrackets) {
  write("one.yml", "topology: Ring\nnpus_count: 1\nbandwidth: 50\nlatency: 0\n");
  const auto dimensions = read_astra2_network("one.yml", warnings_);
  ASSERT_EQ(dimensions.size(), 1u);
  EXPECT_EQ(dimensions[0].size, 1);
  EXPECT_EQ(dimensions[0].latency_ns, 0);
}

TEST_F(Astra2Config, WrongNetworksAreRefused) {
  EXPECT_EQ(network_refusal("topology: [Ring, Ring]\nnpus_count: [4]\nbandwidth: [1, 1]\nlatency: [1, 1]\n"),
            "bad.yml:2:13: npus_count: 1 value for 2 dimensions\n"
            "  hint: the key 'topology' says how many dimensions there are");
  EXPECT_EQ(network_refusal("topology: [ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n"),
            "bad.yml:1:12: topology.0: unknown topology 'ring'\n  hint: did you mean 'Ring'?");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [0]\nbandwidth: [1]\nlatency: [1]\n"),
            "bad.yml:2:14: npus_count.0: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [0]\nlatency: [1]\n"),
            "bad.yml:3:13: bandwidth.0: 0 is too small\n  hint: the lowest value is 1e-06");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [.nan]\nlatency: [1]\n"),
            "bad.yml:3:13: bandwidth.0: '.nan' is not a number\n"
            "  hint: expected a plain number, such as '0.5'");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [50GB/s]\nlatency: [1]\n"),
            "bad.yml:3:13: bandwidth.0: '50GB/s' is not a plain number");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [-1]\n"),
            "bad.yml:4:11: latency.0: -1 is too small\n  hint: the lowest value is 0");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\n"),
            "bad.yml:1:1: the key 'latency' is missing");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\nlinks: [2]\n"),
            "bad.yml:5:1: links: unknown key 'links'\n"
            "  hint: known: bandwidth, latency, npus_count, topology");
  EXPECT_EQ(network_refusal("topology: [Ring, Ring]\nnpus_count: [65536, 65536]\nbandwidth: [1, 1]\n"
                            "latency: [1, 1]\n"),
            "bad.yml:2:21: npus_count.1: more than 2147483647 NPUs");
  EXPECT_EQ(network_refusal(""), "bad.yml: is empty, not an ASTRA-sim 2 network file");
}

TEST_F(Astra2Config, RemoteMemories) {
  const auto read = [&](std::string_view text) {
    write("r.json", text);
    return read_astra2_remote_memory("r.json", 8, warnings_);
  };
  RemoteMemory memory = read(R"({"memory-type": "NO_MEMORY_EXPANSION", "remote-mem-bw": 0})");
  EXPECT_EQ(memory.kind, RemoteMemoryKind::none);
  memory = read(R"({"memory-type": "MEMORY_POOL", "remote-mem-latency": 100, "remote-mem-bw": 50.5})");
  EXPECT_EQ(memory.kind, RemoteMemoryKind::pool);
  EXPECT_EQ(memory.latency_ns, 100);
  EXPECT_EQ(memory.bytes_per_ns, 50.5);
  memory = read(R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-latency": 1,
                    "remote-mem-bw": 2, "num-nodes": 2, "num-npus-per-node": 4})");
  EXPECT_EQ(memory.kind, RemoteMemoryKind::per_node);
  EXPECT_EQ(memory.nodes, 2);
  EXPECT_EQ(memory.npus_per_node, 4);
  EXPECT_EQ(read(R"({"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-bw": 2})").kind,
            RemoteMemoryKind::per_npu);
}

TEST_F(Astra2Config, WrongRemoteMemoriesAreRefused) {
  EXPECT_EQ(memory_refusal(R"({"memory-type": "HBM9"})"),
            "bad.json:1:17: memory-type: unknown value 'HBM9'\n"
            "  hint: known: NO_MEMORY_EXPANSION, PER_NPU_MEMORY_EXPANSION, PER_NODE_MEMORY_EXPANSION, "
            "MEMORY_POOL");
  EXPECT_EQ(memory_refusal(R"({"remote-mem-bw": 1})"), "bad.json:1:1: the key 'memory-type' is missing");
  EXPECT_EQ(memory_refusal(R"({"memory-type": "MEMORY_POOL", "remote-mem-bw": 0})"),
            "bad.json:1:49: remote-mem-bw: 0 is too small\n  hint: the lowest value is 1e-06");
  EXPECT_EQ(memory_refusal(R"({"memory-type": "MEMORY_POOL"})"),
            "bad.json:1:1: the key 'remote-mem-bw' is missing");
  EXPECT_EQ(memory_refusal(R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 2,
 "num-nodes": 3, "num-npus-per-node": 2})"),
            "bad.json:2:15: num-nodes: 3 nodes of 2 NPUs do not hold the network's 8 NPUs");
}

// Cut or changed at any byte, a file is read or refused, nothing else.
TEST_F(Astra2Config, SurvivesDamage) {
  const std::string system_text =
      R"({"endpoint-delay": 10, "all-reduce-implementation": ["direct2", "ring"], "G": 0.5})";
  const std::string network_text =
      "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 5e1 ]\nlatency: [ 500 ]\n";
  const std::string memory_text =
      R"({"memory-type": "MEMORY_POOL", "remote-mem-latency": 10, "remote-mem-bw": 1.5})";
  const auto check = [&](const std::string& text, const std::string& name, const auto& use) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      std::vector<std::string> damaged = {text.substr(0, at)};
      for (const char with : {'\0', ']', '"', '9'}) {
        damaged.push_back(text);
        damaged.back()[at] = with;
      }
      for (const std::string& each : damaged) {
        const std::string said = use(each);
        EXPECT_TRUE(said == "no error" || said.starts_with(name)) << said;
      }
    }
  };
  check(system_text, "s.json", [&](const std::string& text) { return refusal(text); });
  check(network_text, "bad.yml", [&](const std::string& text) { return network_refusal(text); });
  check(memory_text, "bad.json", [&](const std::string& text) { return memory_refusal(text); });
}

TEST_F(Astra2Config, PathsAreAlsoLookedForBesideTheirFile) {
  fs::create_directory("inner");
  write("inner/ag.0.et", "");
  write("inner/s.json", R"({"all-gather-implementation-custom": ["ag"],
 "all-reduce-implementation-chakra": "elsewhere"})");
  SystemLayer read;
  read.dimensions.resize(1);
  read_astra2_system("inner/s.json", 1, read, warnings_);
  EXPECT_EQ(read.custom.at(CollectiveKind::all_gather), "inner/ag");
  EXPECT_EQ(read.custom.at(CollectiveKind::all_reduce), "elsewhere");
}

TEST_F(Astra2Config, EveryMeasuredConfigurationIsRead) {
  for (const auto& [traces, whole] : oracles("astra2/traces")) {
    std::size_t read = 0;
    for (const auto& entry : fs::directory_iterator(traces)) {
      if (!fs::exists(entry.path() / "system.json")) continue;
      Astra2Settings settings;
      settings.system = (entry.path() / "system.json").string();
      settings.network = (entry.path() / "network.yml").string();
      settings.remote_memory = (entry.path() / "memory.json").string();
      EXPECT_EQ(error_of([&] { read_astra2_config(settings, warnings_); }), "no error") << entry.path();
      ++read;
    }
    EXPECT_GT(read, whole ? 40u : 15u);
  }
}

}  // namespace
}  // namespace armilla
