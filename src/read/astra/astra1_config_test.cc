#include "read/astra.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/oracle_testing.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSystem =
    "scheduling-policy: LIFO\nendpoint-delay: 10\nactive-chunks-per-dimension: 1\n"
    "preferred-dataset-splits: 16\nall-reduce-implementation: ring_direct4\n"
    "collective-optimization: localBWAware\n";
constexpr std::string_view kNetwork = R"({
  "topology-name": "Hierarchical",
  "topologies-per-dim": ["Ring", "Switch"],
  "dimension-type": ["N", "P"],
  "dimensions-count": 2,
  "units-count": [4, 8],
  "links-count": [2, 1],
  "link-latency": [500, 250],
  "link-bandwidth": [50, 12.5],
  "nic-latency": [0, 20],
  "router-latency": [0, 100],
  "hbm-latency": [500, 500],
  "hbm-bandwidth": [370, 370],
  "hbm-scale": [0, 1]
})";

class Astra1Config : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "armilla-astra1-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    previous_ = fs::current_path();
    fs::current_path(folder_);
    settings_.system = "s.txt";
    settings_.network = "n.json";
    write("s.txt", kSystem);
    write("n.json", kNetwork);
  }
  void TearDown() override {
    fs::current_path(previous_);
    fs::remove_all(folder_);
  }
  static void write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

  SystemLayer read() {
    warnings_.clear();
    return read_astra1_config(settings_, warnings_);
  }
  // The system file with `from` replaced.
  std::string system_refusal(std::string_view from, std::string_view to) {
    return refusal("s.txt", kSystem, from, to);
  }
  std::string network_refusal(std::string_view from, std::string_view to) {
    return refusal("n.json", kNetwork, from, to);
  }

  Astra1Settings settings_;
  std::vector<std::string> warnings_;

 private:
  std::string refusal(const std::string& path, std::string_view original, std::string_view from,
                      std::string_view to) {
    std::string text(original);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at == std::string::npos) return "";
    text.replace(at, from.size(), to);
    write(path, text);
    const std::string said = error_of([&] { read(); });
    write(path, original);
    return said;
  }
  fs::path folder_, previous_;
};

TEST_F(Astra1Config, EveryKeyArrives) {
  write("s.txt",
        std::string(kSystem) +
            "reduce-scatter-implementation: oneRing\nall-gather-implementation: oneDirect\n"
            "all-to-all-implementation: direct_direct\nlocal-reduction-delay: 1\tL: 1 o: 2 g: 3 G: 0.5\n"
            "model-shared-bus: 1\nboost-mode: 1\nintra-dimension-scheduling: lessRemainingPhaseFirst\n"
            "inter-dimension-scheduling: offlineGreedyFlex\nseprate-log: 1");
  settings_.injection_scale = 1.5;
  const SystemLayer system = read();
  EXPECT_EQ(system.semantics, Semantics::astra1);
  EXPECT_EQ(rank_count(system), 32);
  EXPECT_EQ(system.dimensions[0].links, 2);
  EXPECT_EQ(system.dimensions[1].kind, DimensionKind::switched);
  EXPECT_EQ(system.dimensions[1].bandwidth, 12.5);
  EXPECT_EQ(system.dimensions[1].latency_ns, 250);
  EXPECT_EQ(system.dimensions[1].nic_latency_ns, 20);
  EXPECT_EQ(system.dimensions[1].router_latency_ns, 100);
  EXPECT_EQ(system.dimensions[1].memory_latency_ns, 500);
  EXPECT_EQ(system.dimensions[1].memory_bandwidth, 370);
  EXPECT_EQ(system.dimensions[1].memory_scale, 1);
  EXPECT_EQ(system.dimensions[1].type, "P");
  EXPECT_EQ(system.endpoint_delay_ns, 15);
  EXPECT_EQ(system.splits, 16);
  EXPECT_EQ(system.decomposition, Decomposition::bandwidth_aware);
  EXPECT_EQ(system.algorithms.at(CollectiveKind::all_reduce)[1].window, 4);
  EXPECT_TRUE(system.algorithms.at(CollectiveKind::all_gather)[0].flat);
  EXPECT_EQ(system.intra_dimension, IntraDimensionOrder::less_remaining_phase_first);
  EXPECT_EQ(system.inter_dimension, InterDimensionOrder::themis_flex);
  EXPECT_TRUE(system.shared_bus);
  EXPECT_EQ(system.bus_g_ns, 3);
  EXPECT_TRUE(system.boost);
  EXPECT_FALSE(system.tutorial_release);
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(Astra1Config, FlagsReplaceTheNetworkFile) {
  settings_.units_count = {"2", "3"};
  settings_.links_count = {"5", "1"};
  settings_.link_bandwidth = {"1.5", "2"};
  settings_.link_latency = {"7", "8"};
  const SystemLayer system = read();
  EXPECT_EQ(system.dimensions[0].size, 2);
  EXPECT_EQ(system.dimensions[1].size, 3);
  EXPECT_EQ(system.dimensions[0].links, 5);
  EXPECT_EQ(system.dimensions[0].bandwidth, 1.5);
  EXPECT_EQ(system.dimensions[1].latency_ns, 8);
  EXPECT_EQ(warnings_,
            (std::vector<std::string>{"--links-count: 1 of the 5 links of Ring dimension 0 cannot be used"}));
  settings_.units_count = {"2"};
  EXPECT_EQ(error_of([&] { read(); }), "--units-count: 1 value for 2 dimensions");
  settings_.units_count = {"2", "x"};
  EXPECT_EQ(error_of([&] { read(); }), "--units-count: 'x' is not a whole number");
}

TEST_F(Astra1Config, WrongSystemFilesAreRefused) {
  EXPECT_EQ(system_refusal("endpoint-delay:", "endpiont-delay:"),
            "s.txt:2:1: unknown key 'endpiont-delay'\n  hint: did you mean 'endpoint-delay'?");
  EXPECT_EQ(system_refusal("endpoint-delay:", "endpoint-delay"),
            "s.txt:2:1: no ':' after the key 'endpoint-delay'\n  hint: lines are 'key: value'");
  EXPECT_EQ(system_refusal(": localBWAware\n", ":"),
            "s.txt:6:1: the key 'collective-optimization' has no value");
  EXPECT_EQ(system_refusal("endpoint-delay: 10", "scheduling-policy: LIFO"),
            "s.txt:2:1: key 'scheduling-policy' is given twice");
  EXPECT_EQ(system_refusal("LIFO", "EXPLICIT"),
            "s.txt:1:20: scheduling-policy: unknown scheduling policy "
            "'EXPLICIT'\n  hint: known: LIFO, FIFO");
  EXPECT_EQ(system_refusal("ring_direct4", "ring_drect"),
            "s.txt:5:28: all-reduce-implementation: unknown collective algorithm 'drect'\n"
            "  hint: did you mean 'direct'?");
  EXPECT_EQ(system_refusal("ring_direct4", "ring_"),
            "s.txt:5:28: all-reduce-implementation: unknown collective algorithm ''\n"
            "  hint: known: ring, direct, halvingDoubling, doubleBinaryTree, oneRing, oneDirect, "
            "oneHalvingDoubling");
  EXPECT_EQ(system_refusal("preferred-dataset-splits: 16", ""),
            "s.txt: the key 'preferred-dataset-splits' is missing");
  EXPECT_EQ(system_refusal("splits: 16", "splits: 0"),
            "s.txt:4:27: preferred-dataset-splits: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(system_refusal("delay: 10", "delay: -1"),
            "s.txt:2:17: endpoint-delay: -1 is too small\n  hint: the lowest value is 0");
}

TEST_F(Astra1Config, WrongNetworksAreRefused) {
  EXPECT_EQ(network_refusal("Hierarchical", "Torus2D"),
            "n.json:2:20: topology-name: topology 'Torus2D' is not supported\n"
            "  hint: write Hierarchical, and the topology of each dimension under topologies-per-dim");
  EXPECT_EQ(network_refusal("[4, 8]", "[4, 8, 2]"), "n.json:6:18: units-count: 3 values for 2 dimensions");
  EXPECT_EQ(network_refusal("[2, 1]", "[1, 1]"),
            "n.json:7:19: links-count.0: an NPU of Ring dimension 0 needs at least 2 links");
  EXPECT_EQ(network_refusal("\"Switch\"]", "\"FullyConnected\"]"),
            "n.json:7:22: links-count.1: an NPU of FullyConnected dimension 1 needs at least 7 links");
  EXPECT_EQ(network_refusal("\"N\"", "\"PP\""),
            "n.json:4:22: dimension-type.0: only a Switch connects pods\n  hint: use the type P");
  EXPECT_EQ(network_refusal("\"N\"", "\"X\""),
            "n.json:4:22: dimension-type.0: unknown dimension type 'X'\n"
            "  hint: T: between tiles, N: in a node, P: in a pod, PP: between pods");
  EXPECT_EQ(network_refusal("\"link-latency\": [500, 250],", ""),
            "n.json:1:1: the key 'link-latency' is missing");
  EXPECT_EQ(network_refusal("nic-latency", "nik-latency"),
            "n.json:10:3: nik-latency: unknown key 'nik-latency'\n  hint: did you mean 'nic-latency'?");
  EXPECT_EQ(network_refusal("\"hbm-bandwidth\": [370, 370],", "\"hbm-bandwidth\": [370, 0],"),
            "n.json: dimension 1 has an hbm-scale but no hbm-bandwidth\n"
            "  hint: an hbm-scale of 0 switches the memory off");
  EXPECT_EQ(network_refusal("\"dimensions-count\": 2", "\"dimensions-count\": 11"),
            "n.json:5:23: dimensions-count: 11 is too large\n  hint: the highest value is 10");
}

// As the tutorials of ASTRA-sim have them.
TEST_F(Astra1Config, AbsentKeysChooseTheTutorialsRelease) {
  write("n.json", R"({"topologies-per-dim": ["Switch"], "dimension-type": ["Pod"], "units-count": [4],
                      "links-count": [1], "link-latency": [1], "link-bandwidth": [50]})");
  write("s.txt",
        "scheduling-policy: LIFO\npreferred-dataset-splits: 1\nall-reduce-implementation: ring\n"
        "collective-optimization: localBWAware\nendpoint-delay: 10\n");
  SystemLayer system = read();
  EXPECT_TRUE(system.tutorial_release);
  EXPECT_EQ(warnings_.size(), 2U);
  ASSERT_EQ(system.dimensions.size(), 1U);
  EXPECT_EQ(system.dimensions[0].type, "PP");
  EXPECT_EQ(system.dimensions[0].memory_bandwidth, 1);
  EXPECT_EQ(system.dimensions[0].nic_latency_ns, 0);
  settings_.tutorial_release = false;
  EXPECT_FALSE(read().tutorial_release);
  EXPECT_EQ(warnings_.size(), 1U);
  // 0.7 in single precision is a little less.
  settings_.injection_scale = 0.7;
  EXPECT_EQ(read().endpoint_delay_ns, 6);
  settings_.tutorial_release = true;
  EXPECT_EQ(read().endpoint_delay_ns, 7);
}

// Cut or changed at any byte, a file is read or refused, nothing else.
TEST_F(Astra1Config, SurvivesDamage) {
  for (const auto& [path, original] : {std::pair{"s.txt", kSystem}, std::pair{"n.json", kNetwork}}) {
    for (std::size_t at = 0; at < original.size(); ++at) {
      std::vector<std::string> damaged = {std::string(original.substr(0, at))};
      for (const char with : {'\0', '-'}) {
        damaged.emplace_back(original);
        damaged.back()[at] = with;
      }
      for (const std::string& text : damaged) {
        write(path, text);
        const std::string said = error_of([&] { read(); });
        EXPECT_TRUE(said == "no error" || said.starts_with("s.txt") || said.starts_with("n.json")) << said;
      }
    }
    write(path, original);
  }
}

TEST_F(Astra1Config, NetworkCostsAsInThePeer) {
  SystemLayer system = read();
  // Ring: 32 NPUs x 1 link of 50 GB/s; Switch: 32 ports of 12.5 GB/s and one switch.
  EXPECT_DOUBLE_EQ(astra1_network_cost(system), 32 * 100 + 32 * 25 + 23698);
  system.dimensions[0].type = "T";
  system.dimensions[1].type = "PP";
  // Half price inside the package; 8 packages of 4 x 12.5 GB/s: one interface and link each.
  EXPECT_DOUBLE_EQ(astra1_network_cost(system), 32 * 50 + 8 * (100 + 1200) + 23698);
  system.dimensions.resize(1);
  system.dimensions[0] = {DimensionKind::fully_connected, 8, 25, 500, 14, 0, 0, 0, 0, 0, "N"};
  EXPECT_DOUBLE_EQ(astra1_network_cost(system), 28 * 2 * 50);
}

// As the simulators of the tutorials' tags print it for their dgx2.json and tpu.json.
TEST_F(Astra1Config, TheTutorialsPriceBandwidth) {
  SystemLayer system = read();
  system.tutorial_release = true;
  // Ring: 32 NPUs x 1 link of 50 GB/s; Switch: 32 ports of 12.5 GB/s.
  EXPECT_DOUBLE_EQ(astra1_network_cost(system), 32 * 4 * 50 + 32 * (4 + 13) * 12.5);
  system.dimensions[0].type = "T";
  system.dimensions[1].type = "PP";
  EXPECT_DOUBLE_EQ(astra1_network_cost(system), 32 * 50 + 32 * (7.4 + 23.7 + 47.8) * 12.5);
  system.dimensions = {{DimensionKind::switched, 16, 25, 500, 6, 0, 0, 0, 0, 0, "N"},
                       {DimensionKind::switched, 16, 6.25, 500, 1, 0, 0, 0, 0, 0, "N"}};
  EXPECT_DOUBLE_EQ(astra1_network_cost(system), 680000);
  system.dimensions = {{DimensionKind::ring, 16, 62, 500, 2, 0, 0, 0, 0, 0, "N"},
                       {DimensionKind::ring, 16, 62, 500, 2, 0, 0, 0, 0, 0, "N"}};
  EXPECT_DOUBLE_EQ(astra1_network_cost(system), 126976);
}

TEST_F(Astra1Config, EveryMeasuredConfigurationIsRead) {
  const std::string own_system = settings_.system;
  write("s.txt", "scheduling-policy: LIFO preferred-dataset-splits: 1 collective-optimization: baseline");
  for (const Oracle& oracle : oracles("astra1")) {
    std::size_t networks = 0, systems = 0;
    settings_.system = own_system;
    for (const auto& entry : fs::directory_iterator(oracle.path / "network")) {
      settings_.network = entry.path().string();
      EXPECT_EQ(error_of([&] { read(); }), "no error") << entry.path();
      ++networks;
    }
    settings_.network = (oracle.path / "network/torus4x4x4.json").string();
    for (const auto& entry : fs::directory_iterator(oracle.path / "system")) {
      settings_.system = entry.path().string();
      EXPECT_EQ(error_of([&] { read(); }), "no error") << entry.path();
      ++systems;
    }
    EXPECT_GE(networks, oracle.whole ? 14u : 12u);
    EXPECT_GE(systems, oracle.whole ? 39u : 22u);
  }
}

}  // namespace
}  // namespace armilla
