#include "read/topology.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "ir/derived/interconnect_figures.h"
#include "ir/flow_traffic.h"
#include "read/file_format.h"
#include "read/study.h"

namespace armilla {
namespace {

MachineLinks made(const std::string& text) {
  return make_topology(parse_component(text, "test"));
}

InterconnectFigures described_figures(const std::string& text) {
  const MachineLinks links = made(text);
  Machine machine;
  machine.dimensions = links.dimensions;
  machine.graph = links.graph;
  if (!machine.graph.empty()) validate_interconnect(machine.graph, text);
  return figures_of(links_of(machine));
}

TEST(Topologies, HaveTheFiguresOfTheirPapers) {
  const InterconnectFigures fat_tree = described_figures("fat-tree:k=8,bandwidth=100Gbps");
  EXPECT_EQ(fat_tree.devices, 128);
  EXPECT_EQ(fat_tree.switches, 32 + 32 + 16);
  EXPECT_EQ(fat_tree.cables, 3 * 128);
  EXPECT_EQ(fat_tree.diameter, 6);
  EXPECT_NEAR(fat_tree.bisection.value, 64 * 12.5e9, 1);
  EXPECT_NEAR(fat_tree.oversubscription, 1, 1e-12);

  const InterconnectFigures thin = described_figures("fat-tree:k=8,bandwidth=100Gbps,oversubscription=4");
  EXPECT_NEAR(thin.bisection.value, 64 * 12.5e9 / 4, 1);
  EXPECT_NEAR(thin.oversubscription, 4, 1e-12);
  EXPECT_NEAR(described_figures("fat-tree:k=8,oversubscription=1.5").oversubscription, 1.5, 1e-12);
  EXPECT_NEAR(described_figures("leaf-spine:oversubscription=2.5").oversubscription, 2.5, 1e-12);

  const InterconnectFigures leaf_spine =
      described_figures("leaf-spine:leaves=4,hosts=8,spines=4,oversubscription=2,bandwidth=100Gbps");
  EXPECT_EQ(leaf_spine.devices, 32);
  EXPECT_EQ(leaf_spine.switches, 8);
  EXPECT_NEAR(leaf_spine.oversubscription, 2, 1e-12);
  EXPECT_NEAR(leaf_spine.bisection.value, 8 * 12.5e9, 1);
  EXPECT_EQ(leaf_spine.diameter, 4);

  // a = 4, p = 2, h = 2: 9 groups, 72 devices; 5 links between any two.
  const InterconnectFigures dragonfly = described_figures("dragonfly:bandwidth=100Gbps");
  EXPECT_EQ(dragonfly.devices, 72);
  // As trying all halves says.
  EXPECT_NEAR(described_figures("dragonfly:routers=2,hosts=2,global=1").bisection.value, 200e9, 1);
  EXPECT_NEAR(described_figures("dragonfly:routers=2,hosts=2,global=1").least_bisection.value, 100e9, 1);
  EXPECT_NEAR(described_figures("mesh:x=5,y=2").least_bisection.value, 150e9, 1);
  EXPECT_NEAR(described_figures("dragonfly-plus:leaves=2,spines=2,hosts=2").least_bisection.value, 150e9, 1);
  EXPECT_EQ(dragonfly.switches, 36);
  EXPECT_EQ(dragonfly.cables, 72 + 9 * 6 + 36);
  EXPECT_EQ(dragonfly.diameter, 5);

  // 4 spine switches with a global link each: 5 groups of 16 devices, 3 links between any two leaf switches.
  const InterconnectFigures plus = described_figures("dragonfly-plus:bandwidth=100Gbps");
  EXPECT_EQ(plus.devices, 80);
  EXPECT_EQ(plus.switches, 40);
  EXPECT_EQ(plus.cables, 80 + 5 * 16 + 10);
  EXPECT_EQ(plus.diameter, 5);
  EXPECT_NEAR(plus.oversubscription, 1,
              1e-12);  // of a leaf switch; spine switches have no links away from devices

  const InterconnectFigures rails = described_figures("rail-pods:nodes=4,pods=2,spines=4,bandwidth=400Gbps");
  EXPECT_EQ(rails.devices, 64);
  EXPECT_EQ(rails.switches, 8 + 16 + 4);
  EXPECT_EQ(rails.diameter, 4);
  EXPECT_NEAR(rails.oversubscription, 1, 1e-12);
  EXPECT_NEAR(rails.bisection.value, 32 * 50e9, 1);
  EXPECT_EQ(described_figures("rail-pods:nodes=4,pcie=64GB/s").nics, 32);

  EXPECT_EQ(described_figures("torus:x=4,y=4,z=4").diameter, 6);
  EXPECT_EQ(described_figures("torus:x=2,y=3,z=2,w=2,v=4,u=2").diameter, 1 + 1 + 1 + 1 + 2 + 1);
  EXPECT_EQ(described_figures("mesh:x=2,y=3,z=2,w=2,v=4,u=2").diameter, 1 + 2 + 1 + 1 + 3 + 1);
  EXPECT_EQ(described_figures("mesh:x=4,y=4,z=4").diameter, 9);
  EXPECT_EQ(described_figures("mesh:x=4,y=4,z=4").cables, 3 * 3 * 16);
  EXPECT_EQ(described_figures("fully-connected:size=5").cables, 10);
}

// No two devices of a dragonfly's groups have more than one link, and no router too many.
TEST(Topologies, DragonflyUsesEveryGlobalLinkOnce) {
  const MachineLinks links = made("dragonfly:routers=4,hosts=2,global=2");
  std::vector<int> ports(links.graph.nodes.size());
  for (const Cable& cable : links.graph.cables) {
    ++ports[cable.a];
    ++ports[cable.b];
  }
  for (std::size_t router = 72; router < ports.size(); ++router) EXPECT_EQ(ports[router], 2 + 3 + 2);
}

TEST(Topologies, DragonflyPlusSharesGlobalLinksOut) {
  const MachineLinks links =
      made("dragonfly-plus:leaves=2,spines=3,hosts=2,global=2,latency=1us,global-latency=3us");
  std::vector<int> ports(links.graph.nodes.size()), global(links.graph.nodes.size());
  for (const Cable& cable : links.graph.cables) {
    for (const std::uint32_t end : {cable.a, cable.b}) {
      ++ports[end];
      global[end] += cable.there.latency == microseconds(3) ? 1 : 0;
    }
  }
  // 7 groups: 28 devices, 14 leaf and 21 spine switches.
  ASSERT_EQ(links.graph.nodes.size(), 28U + 14 + 21);
  for (std::size_t leaf = 28; leaf < 42; ++leaf) EXPECT_EQ(ports[leaf], 2 + 3);
  for (std::size_t spine = 42; spine < ports.size(); ++spine) {
    EXPECT_EQ(ports[spine], 2 + 2);
    EXPECT_EQ(global[spine], 2);
  }
  EXPECT_EQ(links.dimensions[0].latency, nanoseconds(3500));  // half of 1 + 1 + 3 + 1 + 1
}

TEST(Topologies, TellHowCollectivesArePlanned) {
  const MachineLinks rails = made("rail-pods:gpus=8,nodes=4,pods=2");
  ASSERT_EQ(rails.dimensions.size(), 2U);
  EXPECT_EQ(rails.dimensions[0].size, 8);
  EXPECT_EQ(rails.dimensions[1].size, 8);
  EXPECT_EQ(rails.dimensions[1].latency, microseconds(1));  // half of four links
  const MachineLinks fat_tree = made("fat-tree:k=4,latency=1us");
  ASSERT_EQ(fat_tree.dimensions.size(), 1U);
  EXPECT_EQ(fat_tree.dimensions[0].size, 16);
  EXPECT_EQ(fat_tree.dimensions[0].latency, microseconds(3));  // half of six links
  EXPECT_EQ(fat_tree.dimensions[0].bandwidth, gigabytes_per_second(50));
}

TEST(Topologies, SayWhatIsWrong) {
  EXPECT_EQ(error_of([] { made("fat-tree:k=5"); }),
            "test: k: 5 ports cannot be halved\n  hint: an even number");
  EXPECT_EQ(error_of([] { made("fat-tree:k=2000"); }),
            "test: has more than 1000000 nodes\n  hint: make it smaller");
  EXPECT_EQ(
      error_of([] { made("dragonfly:groups=10"); }),
      "test: groups: 10 groups, and 4 routers with 2 global links each reach 8 others\n  hint: at most 9");
  EXPECT_EQ(error_of([] { made("dragonfly-plus:groups=6"); }),
            "test: groups: 6 groups, and 4 spine switches with 1 global link each reach 4 others\n"
            "  hint: at most 5");
  EXPECT_EQ(error_of([] { made("fat-tre"); }).substr(0, 5), "test:");
}

Machine machine(const std::string& text) {
  return read_machine(Config::parse("device: h100-sxm\n" + text, "m.yaml", {}));
}
std::string refusal_of_topology(const std::string& text) {
  return error_of([&] { machine(text); });
}

constexpr const char* kTwoLeaves =
    "nodes:\n"
    "  - {name: leaf, kind: switch, count: 2}\n"
    "  - {name: gpu, kind: device, count: 4}\n"
    "links:\n"
    "  - {from: 'gpu[0-1]', to: leaf0, bandwidth: 50GB/s, latency: 1us}\n"
    "  - {from: [gpu2, gpu3], to: leaf1, bandwidth: 25GB/s, latency: 1us, loss: 1%}\n"
    "  - {from: leaf0, to: leaf1, bandwidth: 100GB/s, latency: 2us, back: {bandwidth: 10GB/s}}\n";

TEST(MachineLinks, AreReadNodeByNode) {
  const Machine read = machine(kTwoLeaves);
  const Interconnect& graph = read.graph;
  ASSERT_EQ(graph.nodes.size(), 6U);
  EXPECT_EQ(graph.nodes[0].name, "gpu0");
  EXPECT_EQ(graph.nodes[5].name, "leaf1");
  ASSERT_EQ(graph.cables.size(), 5U);
  EXPECT_EQ(graph.cables[1].a, 1U);
  EXPECT_EQ(graph.cables[1].b, 4U);
  EXPECT_EQ(graph.cables[2].there.loss, 0.01);
  EXPECT_EQ(graph.cables[4].there.bandwidth, gigabytes_per_second(100));
  EXPECT_EQ(graph.cables[4].back.bandwidth, gigabytes_per_second(10));
  EXPECT_EQ(graph.cables[4].back.latency, microseconds(2));
  // As collectives see it.
  ASSERT_EQ(read.dimensions.size(), 1U);
  EXPECT_EQ(read.dimensions[0].size, 4);
  EXPECT_EQ(read.dimensions[0].bandwidth, gigabytes_per_second(25));
  EXPECT_EQ(read.dimensions[0].latency, microseconds(2));
  EXPECT_NE(dump_machine(read).find("cable 4 5 dimension 0"), std::string::npos);
}

TEST(MachineLinks, AUnitInATopologyMakesNoPathOfIt) {
  const Machine read = machine("topology: 'rail-pods:gpus=2,nodes=2,pcie=64GB/s'\n");
  EXPECT_EQ(read.graph.devices(), 4);
  EXPECT_EQ(read.graph.nodes[4].kind, NetworkNodeKind::nic);
  EXPECT_EQ(refusal_of_topology("topology: ./nowhere/topology.txt\n").substr(0, 9), "./nowhere");
}

TEST(MachineLinks, MayHaveDimensionsOfTheirOwn) {
  const Machine read = machine(std::string(kTwoLeaves) +
                               "dimensions:\n"
                               "  - {name: leaf, kind: Switch, size: 2, bandwidth: 50GB/s, latency: 1us}\n"
                               "  - {name: pair, kind: Switch, size: 2, bandwidth: 10GB/s, latency: 2us}\n");
  EXPECT_EQ(read.dimensions.size(), 2U);
  EXPECT_EQ(rank_count(read), 4);
}

TEST(MachineLinks, SayWhatIsWrongAndWhere) {
  const auto links = [](const std::string& one) {
    return "nodes:\n  - {name: gpu, kind: device, count: 2}\n  - {name: s, kind: switch}\nlinks:\n  - " +
           one + "\n";
  };
  EXPECT_EQ(refusal_of_topology(links("{from: 'gpu[0-1]', to: t, bandwidth: 1GB/s, latency: 1us}")),
            "m.yaml:6:28: links.0.to: there is no node 't'\n  hint: 'nodes' lists them");
  EXPECT_EQ(
      refusal_of_topology(links("{from: gpu0, to: s, bandwidth: 1GB/s, latency: 1us}")),
      "m.yaml:3:3: nodes: no way leads from 'gpu0' to 'gpu1'\n  hint: devices do not forward: join them over "
      "switches");
  EXPECT_EQ(refusal_of_topology(links("{from: s, to: s, bandwidth: 1GB/s, latency: 1us}")),
            "m.yaml:6:5: links.0: joins 's' with itself");
  EXPECT_EQ(
      refusal_of_topology(links("{from: 'gpu[0-1]', to: s, bandwidth: 0GB/s, latency: 1us}")).substr(0, 10),
      "m.yaml:6:4");
  EXPECT_EQ(refusal_of_topology(std::string(kTwoLeaves) + "topology: fat-tree\n"),
            "m.yaml:3:3: nodes: cannot be combined with 'topology'\n  hint: give one of them");
  EXPECT_EQ(
      refusal_of_topology("topology: fat-tree\nelastic: true\n"),
      "m.yaml:3:10: elastic: an explicit topology has the size that it has\n  hint: change the topology's "
      "parameters");
  EXPECT_EQ(refusal_of_topology(
                "topology: {kind: fat-tree, k: 4}\ndimensions: [{kind: Switch, size: 32, bandwidth: 1GB/s, "
                "latency: 1us}]\n"),
            "machine 'm': its dimensions have 32 devices, its links join 16");
}

class TopologyFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  MachineLinks read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_topology_file(path_.string());
  }

  const std::filesystem::path path_ = path_for_test("topology");
};

// A machine with fewer links than its file would be another one.
TEST_F(TopologyFile, SurplusLinksAreRefusedByName) {
  EXPECT_EQ(read("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n").surplus, "");
  EXPECT_EQ(read("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n# made by hand\n").surplus, "");
  std::ofstream(path_) << "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
  EXPECT_EQ(error_of([&] { named_topology(path_.string()); }),
            path_.string() +
                ":5: the links after the first 2, which the first line announces, would be left "
                "out\n  hint: announce them in the first line, or take them out of the file");
}

TEST_F(TopologyFile, OfHpcc) {
  const MachineLinks links =
      read("5 1 4\n0\n0 1 100Gbps 1000ns 0\n0 2 100Gbps 1us 0\n3 0 25Gbps 1us 0.5\n0 4 25Gbps 1us 0\n");
  EXPECT_EQ(links.graph.devices(), 4);
  EXPECT_EQ(links.graph.nodes[0].name, "host1");
  EXPECT_EQ(links.graph.nodes[4].name, "switch0");
  EXPECT_EQ(network_graph(links.graph).numbers, (std::vector<std::int64_t>{1, 2, 3, 4, 0}));
  EXPECT_EQ(links.graph.cables[0].a, 4U);
  EXPECT_EQ(links.graph.cables[0].b, 0U);
  EXPECT_EQ(links.graph.cables[2].there.loss, 0.5);
  EXPECT_EQ(links.dimensions[0].bandwidth, Bandwidth(25e9 / 8));
}

// Two servers of two GPUs with an NVSwitch each, and one switch for all.
TEST_F(TopologyFile, OfSimai) {
  const MachineLinks links = read(
      "7 2 2 1 8 H100\n4 5 6\n"
      "0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n2 5 2880Gbps 0.000025ms 0\n3 5 2880Gbps "
      "0.000025ms 0\n"
      "0 6 200Gbps 0.0005ms 0\n1 6 200Gbps 0.0005ms 0\n2 6 200Gbps 0.0005ms 0\n3 6 200Gbps 0.0005ms 0\n");
  EXPECT_EQ(links.graph.devices(), 4);
  ASSERT_EQ(links.dimensions.size(), 2U);
  EXPECT_EQ(links.dimensions[0].size, 2);
  EXPECT_EQ(links.dimensions[0].bandwidth, gigabytes_per_second(360));
  EXPECT_EQ(links.dimensions[0].latency, nanoseconds(25));
  EXPECT_EQ(links.dimensions[1].size, 2);
  EXPECT_EQ(links.dimensions[1].bandwidth, gigabytes_per_second(25));
  EXPECT_EQ(links.graph.cables[0].dimension, 0U);
  EXPECT_EQ(links.graph.cables[4].dimension, 1U);
}

TEST_F(TopologyFile, OfHtsim) {
  const MachineLinks tree = read(
      "# comment\nNodes 128\nTiers 3\nPodsize 16\nTier 0\nDownlink_speed_Gbps 100\nRadix_Up 4\nRadix_Down 4\n"
      "Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Up 4\nRadix_Down "
      "4\nDownlink_Latency_ns "
      "1000\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 8\nDownlink_Latency_ns 1000\n");
  const InterconnectFigures figures = figures_of(tree.graph);
  EXPECT_EQ(tree.without_effect, "");
  EXPECT_EQ(figures.devices, 128);
  EXPECT_EQ(figures.switches, 32 + 32 + 16);
  EXPECT_EQ(figures.cables, 3 * 128);
  EXPECT_EQ(figures.diameter, 6);
  EXPECT_NEAR(figures.bisection.value, 64 * 12.5e9, 1);

  const MachineLinks thin = read(
      "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n"
      "Downlink_Latency_ns 1000\nSwitch_Latency_ns 300\nOversubscribed 4\nTier 1\nDownlink_speed_Gbps 100\n"
      "Radix_Down 4\nDownlink_Latency_ns 1000\nQueue_Down 200000\nQueue_Up 100000\n");
  EXPECT_NE(thin.without_effect.find(":15: Queue_Down has no effect: "), std::string::npos)
      << thin.without_effect;
  EXPECT_NEAR(figures_of(thin.graph).oversubscription, 4, 1e-12);
  // Up and down again: four links, and the latency of the leaf switch on the way up and on the way down.
  EXPECT_EQ(thin.dimensions[0].latency, nanoseconds(4600) / 2);
}

// Two hosts of two accelerators behind a switch and two interfaces, below one switch with a port for each.
constexpr const char* kInfragraph =
    "name: small\n"
    "devices:\n"
    "- name: server\n"
    "  components:\n"
    "  - {name: npu, count: 2, choice: npu}\n"
    "  - {name: nvlsw, count: 1, choice: custom}\n"
    "  - {name: card, count: 2, choice: device}\n"
    "  links: [{name: nvlink, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: "
    "450}}},\n"
    "          {name: pcie}]\n"
    "  edges:\n"
    "  - {ep1: {component: npu}, ep2: {component: nvlsw}, scheme: many2many, link: nvlink}\n"
    "  - {ep1: {component: 'npu[0:2]'}, ep2: {device: 'card[0:2]', component: 'nic[0]'}, scheme: one2one, "
    "link: pcie}\n"
    "- name: card\n"
    "  components: [{name: nic, count: 1, choice: nic}]\n"
    "  links: []\n"
    "  edges: []\n"
    "- name: switch\n"
    "  components: [{name: asic, count: 1, choice: cpu}, {name: port, count: 4, choice: port}]\n"
    "  links: [{name: ic}]\n"
    "  edges: [{ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: ic}]\n"
    "instances: [{name: host, device: server, count: 2}, {name: leaf, device: switch, count: 1}]\n"
    "links:\n"
    "- name: eth\n"
    "  physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400},\n"
    "             latency: {choice: ns, ns: 600}}\n"
    "edges:\n"
    "- {ep1: {instance: host, component: 'npu[0]'}, ep2: {instance: 'leaf[0]', component: 'port[0:2]'}, "
    "scheme: one2one, "
    "link: eth}\n"
    "- {ep1: {instance: 'host[1]', component: npu}, ep2: {instance: leaf, component: 'port[2:]'}, scheme: "
    "one2one, link: "
    "eth}\n";

TEST_F(TopologyFile, OfInfragraph) {
  const MachineLinks links = read(kInfragraph);
  const Interconnect& graph = links.graph;
  EXPECT_EQ(graph.devices(), 4);
  EXPECT_EQ(graph.nodes[3].name, "host.1.npu.1");
  const InterconnectFigures figures = figures_of(graph);
  EXPECT_EQ(figures.nics, 4);
  EXPECT_EQ(figures.switches, 2 + 5);
  EXPECT_EQ(figures.cables, 2 * (2 + 2) + 4 + 4);
  const auto cable = [&](const std::string& a, const std::string& b) {
    for (const Cable& one : graph.cables) {
      if (graph.nodes[one.a].name == a && graph.nodes[one.b].name == b) return one.there;
    }
    ADD_FAILURE() << a << " and " << b << " are not joined";
    return LinkFigures{};
  };
  EXPECT_EQ(cable("host.0.npu.1", "host.0.nvlsw.0").bandwidth, gigabytes_per_second(450));
  // Nothing is said of it: as wide as the widest.
  EXPECT_EQ(cable("host.1.npu.1", "host.1.card.1.nic.0").bandwidth, gigabytes_per_second(450));
  EXPECT_EQ(cable("host.1.npu.0", "leaf.0.port.2").bandwidth, gigabytes_per_second(50));
  EXPECT_EQ(cable("host.1.npu.0", "leaf.0.port.2").latency, nanoseconds(600));
  cable("host.1.npu.0", "leaf.0.port.1");
}

TEST_F(TopologyFile, OfInfragraphSaysWhatIsWrongAndWhere) {
  const auto says = [&](const std::string& from, const std::string& to) {
    std::string text = kInfragraph;
    text.replace(text.find(from), from.size(), to);
    const std::string message = error_of([&] { read(text); });
    return message.substr(path_.string().size());
  };
  EXPECT_EQ(says("device: server, count", "device: servr, count"),
            ":21:34: instances.0.device: there is no device 'servr'\n  hint: 'devices' lists them");
  EXPECT_EQ(says("'port[2:]'", "'port[2:9]'"),
            ":28:81: edges.1.ep2.component: there are 4 of 'port'\n  hint: they count from 0");
  EXPECT_EQ(says("'port[2:]'", "'port[1:]'"),
            ":28:3: edges.1: joins 2 ends with 3, one by one\n  hint: as many on both sides, or many2many");
  EXPECT_EQ(says("link: pcie}", "link: pci}"),
            ":12:108: devices.0.edges.1.link: there is no link 'pci'\n  hint: 'links' lists them");
  EXPECT_EQ(
      says("gigabits_per_second, gigabits_per_second: 400",
           "gigatransfers_per_second, gigatransfers_per_second: 8"),
      ":24:25: links.0.physical.bandwidth: 'gigatransfers_per_second' says nothing of how many lanes there "
      "are\n  hint: gigabits_per_second or gigabytes_per_second");
}

TEST_F(TopologyFile, OfBooksim) {
  const MachineLinks torus = read("topology = torus;\nk = 8;\nn = 2;\nrouting_function = dim_order;\n");
  EXPECT_TRUE(torus.graph.empty());
  ASSERT_EQ(torus.dimensions.size(), 2U);
  EXPECT_EQ(torus.dimensions[1].size, 8);
  // A router takes 1 + 1 + 1 + 1 - 1 cycles, a folded link 2 + 1; a flit of 128 bits a cycle of a nanosecond.
  EXPECT_EQ(torus.dimensions[0].latency, nanoseconds(6));
  EXPECT_EQ(torus.dimensions[0].bandwidth, gigabytes_per_second(16));

  EXPECT_EQ(read("topology = mesh;\nk = 2;\nn = 6;\nrouting_function = dor;\n").graph.devices(), 64);
  const MachineLinks tree =
      read("topology = fattree;\nk = 4;\nn = 3;\nrouting_function = nca;\nchannel_width = 256;\n");
  const InterconnectFigures figures = figures_of(tree.graph);
  EXPECT_EQ(figures.devices, 64);
  EXPECT_EQ(figures.switches, 3 * 16);
  EXPECT_EQ(figures.cables, 64 + 2 * 64);
  EXPECT_EQ(figures.diameter, 6);
  EXPECT_EQ(figures.bisection, gigabytes_per_second(32 * 32));
  EXPECT_EQ(
      figures_of(read("topology = dragonflynew;\nk = 2;\nn = 1;\nrouting_function = min;\n").graph).devices,
      72);
}

TEST_F(TopologyFile, OfAstraSim) {
  const MachineLinks second = read(
      "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 100.0, 50.0 ]\nlatency: [ 500.0, 700.0 "
      "]\n");
  ASSERT_EQ(second.dimensions.size(), 2U);
  EXPECT_EQ(second.dimensions[0].kind, DimensionKind::ring);
  EXPECT_EQ(second.dimensions[1].size, 2);
  EXPECT_EQ(second.dimensions[1].bandwidth, Bandwidth(50.0 * (1 << 30)));
  EXPECT_EQ(second.dimensions[1].latency, nanoseconds(700));
}

// ASTRA-sim 1.0 counts links and bytes of 2^30: half of a ring's links go each way.
TEST_F(TopologyFile, OfAstraSimOne) {
  const MachineLinks first =
      read(R"({"topology-name": "Hierarchical", "topologies-per-dim": ["Ring", "FullyConnected", "Switch"],
    "dimension-type": ["T", "N", "P"], "dimensions-count": 3, "units-count": [4, 3, 2], "links-count": [4, 2, 1],
    "link-latency": [500, 600, 700], "link-bandwidth": [50, 25, 12.5], "nic-latency": [0, 10, 10],
    "router-latency": [0, 0, 100], "hbm-latency": [0, 0, 0], "hbm-bandwidth": [1, 1, 1], "hbm-scale": [0, 0, 0]})");
  EXPECT_TRUE(first.graph.empty());
  ASSERT_EQ(first.dimensions.size(), 3U);
  const auto check = [&](std::size_t d, DimensionKind kind, std::int64_t size, double gigabytes,
                         std::int64_t ns) {
    EXPECT_EQ(first.dimensions[d].kind, kind) << d;
    EXPECT_EQ(first.dimensions[d].size, size) << d;
    EXPECT_EQ(first.dimensions[d].bandwidth, Bandwidth(gigabytes * (1 << 30))) << d;
    EXPECT_EQ(first.dimensions[d].latency, nanoseconds(ns)) << d;
  };
  check(0, DimensionKind::ring, 4, 2 * 50, 500);
  check(1, DimensionKind::fully_connected, 3, 25, 620);
  check(2, DimensionKind::switched, 2, 12.5, 760);  // half of the interfaces' and the router's for each link
}

TEST_F(TopologyFile, OfAstraSimsGarnet) {
  const MachineLinks torus = read(
      "num-npus: 24\nnum-packages: 12\npackage-rows: 3\ntopology: Torus3D\nlocal-rings: 4\nvertical-rings: "
      "1\n"
      "horizontal-rings: 2\nlinks-per-tile: -1\nflit-width: 1024\nlocal-packet-size: "
      "512\npackage-packet-size: 512\n"
      "tile-link-width: 1024\npackage-link-width: 256\nvcs-per-vnet: 50\nrouting-algorithm: Ring_XY\n"
      "router-latency: 2\nlocal-link-latency: 10\npackage-link-latency: 200\nbuffers-per-vc: 5000\n");
  ASSERT_EQ(torus.dimensions.size(), 3U);
  EXPECT_EQ(torus.dimensions[0].size, 2);
  EXPECT_EQ(torus.dimensions[1].size, 4);
  EXPECT_EQ(torus.dimensions[2].size, 3);
  // 128 bytes a cycle within a package, a quarter of it between packages: two pairs of rings there and in
  // rows of four.
  EXPECT_EQ(torus.dimensions[0].latency, nanoseconds(2 + 10));
  EXPECT_EQ(torus.dimensions[1].latency, nanoseconds(2 + 200 + 4));
  EXPECT_DOUBLE_EQ(torus.dimensions[0].bandwidth.value, 2 * 128e9);
  EXPECT_DOUBLE_EQ(torus.dimensions[1].bandwidth.value, 2 * 32e9);
  EXPECT_DOUBLE_EQ(torus.dimensions[2].bandwidth.value, 32e9);
  EXPECT_TRUE(torus.graph.devices_forward);
  EXPECT_EQ(torus.graph.nodes.size(), 24U);
  EXPECT_EQ(torus.graph.cables.size(), 24U * (2 + 2 + 1));
  const Cable& first = torus.graph.cables.front();
  EXPECT_DOUBLE_EQ(first.there.bandwidth.value, 128e9);
  EXPECT_EQ(figures_of(torus.graph).diameter, 1 + 2 + 1);
}

TEST_F(TopologyFile, SaysWhatIsWrongAndWhere) {
  const auto says = [&](const std::string& text) {
    const std::string message = error_of([&] { read(text); });
    return message.substr(path_.string().size());
  };
  EXPECT_EQ(says("3 1 2\n0\n0 1 1Gbps 1us 0\n0 3 1Gbps 1us 0\n"),
            ":4: the second node of link 2 of 2: 3 is out of range\n  hint: from 0 to 2");
  EXPECT_EQ(
      says("3 1 1\n0\n0 1 1Gbps 1us 0\n"),
      ": no way leads from 'host1' to 'host2'\n  hint: devices do not forward: join them over switches");
  EXPECT_EQ(says("Nodes 3\nPods 4\n"), ":2: unknown key 'Pods'");
  // What is not announced is told, not what is missing without it.
  EXPECT_EQ(
      says("3 2 0 1 1 H100\n2\n0 2 200Gbps 0.0005ms 0\n1 2 200Gbps 0.0005ms 0\n"),
      ":4: the links after the first 1, which the first line announces, are left out, and no way leads from "
      "'host0' to 'host1'\n  hint: announce them in the first line");
}

// What htsim's FatTreeTopology takes and refuses.
TEST_F(TopologyFile, OfHtsimFitsTogether) {
  const std::string header = "Nodes 4\nTiers 2\nPodsize 4\n";
  const std::string tier0 =
      "Tier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\n";
  const std::string tier1 = "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 1000\n";
  const std::string whole = header + tier0 + tier1;
  const auto with = [&](const std::string& key, const std::string& instead, const std::string& from) {
    std::string text = whole;
    text.replace(text.find(key, text.find(from)), key.size(), instead);
    return text;
  };
  const auto says = [&](const std::string& text) {
    return error_of([&] { read(text); }).substr(path_.string().size());
  };
  const auto same_figures = [&](const std::string& text) {
    const InterconnectFigures figures = figures_of(read(text).graph);
    return figures.devices == 4 && figures.switches == 4 && figures.cables == 8;
  };
  EXPECT_TRUE(same_figures(whole));
  for (const std::string& text : {std::string("# a\n# b\n\n  nodes 4\r\n\tTIERS 2\npodsize 4 # a pod\n"),
                                  std::string("Tiers 2\nPodsize 4\n# hosts\nNodes 4\n")}) {
    EXPECT_EQ(sniff(text + tier0 + tier1), FileKind::htsim_topology) << text;
    EXPECT_TRUE(same_figures(text + tier0 + tier1)) << text;
  }
  EXPECT_TRUE(same_figures(with("Up 2", "Up 2\n  Oversubscribed 1\nBundle 1", "Tier 0")));
  // htsim's own test.topo: links of half the speed come in pairs.
  const MachineLinks pairs = read(
      "Nodes 8\nTiers 3\nPodsize 4\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\n"
      "Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\n"
      "Downlink_Latency_ns 1000\nBundle 1\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\n"
      "Downlink_Latency_ns 1000\nBundle 2\n");
  EXPECT_EQ(figures_of(pairs.graph).switches, 4 + 4 + 4);
  EXPECT_EQ(pairs.graph.cables.size(), 8U + 8 + 16);

  EXPECT_EQ(says("Nodes 0\nTiers 2\n"), ":1: Nodes: 0 is out of range\n  hint: from 1 to 1000000");
  const std::string begin = "\n  hint: htsim's .topo files begin with Nodes, Tiers and Podsize";
  EXPECT_EQ(says("Nodes 16\n"), ": Tiers is missing" + begin);
  EXPECT_EQ(says("Nodes 4\nTiers 2\n" + tier0 + tier1), ": Podsize is missing" + begin);
  EXPECT_EQ(says("Nodes 4\nTiers 2\nPodsize 0\n").substr(0, 16), ":3: Podsize: 0 i");
  EXPECT_EQ(says("Nodes 4\nTiers 2\nPodsize 3\n" + tier0 + tier1), ": Podsize 3 does not divide Nodes 4");
  EXPECT_EQ(says("Nodes 4\nTiers 2\nPodsize 2\n" + tier0 + tier1),
            ": Podsize 2: two tiers are one pod\n  hint: Podsize 4, or three tiers");
  EXPECT_EQ(says(header + tier0 + tier0), ":9: Tier 0 is there twice");
  EXPECT_EQ(says("Nodes 4\nTiers 3\nPodsize 4\n" + tier0 + tier1 + "Radix_Up 2\n"),
            ": Tiers is 3, and Tier 2 is missing");
  EXPECT_EQ(says(with("Downlink_Latency_ns 1000\n", "", "Tier 1")), ":9: Tier 1 has no Downlink_Latency_ns");
  EXPECT_EQ(says(with("Radix_Up 2\n", "", "Tier 0")), ":4: Tier 0 has no Radix_Up");
  EXPECT_EQ(says(with("Gbps 100", "Gbps 0", "Tier 1")),
            ":10: Downlink_speed_Gbps: 0 is out of range\n  hint: from 1 to 1000000");
  EXPECT_EQ(says(with("Up 2", "Up 2\nRadix_Up 2", "Tier 0")), ":8: Radix_Up of Tier 0 is given twice");
  EXPECT_EQ(says(with("Up 2", "Up 2\nBundle 2", "Tier 0")),
            ":4: Tier 0 has Bundle 2: htsim's hosts have one link\n  hint: omit it");
  for (const std::string ratio : {"2", "4"}) {
    EXPECT_EQ(says(with("Up 2", "Up 2\nOversubscribed " + ratio, "Tier 0")),
              ":4: Tier 0 has Oversubscribed " + ratio +
                  ", and 2 links down over 2 links up is 1 in whole numbers\n  hint: Oversubscribed 1");
  }
  EXPECT_EQ(
      says(with("Gbps 100", "Gbps 200", "Tier 0")),
      ":4: Tier 0: the 200 Gb/s down, 100 Gb/s up and Oversubscribed 1 ask for 8 links up in all, which "
      "do not fit Radix_Up 2 and the Radix_Down 2 and Bundle 1 of Tier 1");
}

TEST(DamagedLinks, CarryAShareOrAPercentage) {
  EXPECT_EQ(parse_damage("leaf0-spine1", "test").bandwidth, 0);
  for (const char* text : {"leaf0-spine1=0.5", "leaf0-spine1=50%"}) {
    EXPECT_EQ(parse_damage(text, "test").between, "leaf0-spine1");
    EXPECT_EQ(parse_damage(text, "test").bandwidth, 0.5);
  }
  EXPECT_EQ(error_of([] { parse_damage("leaf0-spine1=150%", "test"); }),
            "test: '150%' is not a fraction between 0 and 1\n  hint: write '0.9' or '90%'");
}

}  // namespace
}  // namespace armilla
