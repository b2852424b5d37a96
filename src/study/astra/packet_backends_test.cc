// ASTRA-sim 2's system layer over the files of its ns-3 and htsim backends.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "base/source_path_testing.h"
#include "network/packet.h"
#include "read/astra.h"
#include "read/roce.h"
#include "study/astra.h"

namespace armilla {
namespace {

class Ns3Run : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    write("topology.txt",
          "5 1 4\n4\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 1000ns 0\n2 4 100Gbps 1000ns 0\n"
          "3 4 100Gbps 1000ns 0\n");
    write("logical.json", R"({"logical-dims": ["4"]})");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  // FLOW_FILE is never there: ASTRA-sim's ns-3 does not read it.
  std::string config(const std::string& more) const {
    return write(
        "config.txt",
        "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nSIMULATOR_STOP_TIME 0.000001\nENABLE_QCN 1\n"
        "KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n"
        "BUFFER_SIZE 32\n" +
            more);
  }
  Astra2Request request(const std::string& network, int splits) const {
    Astra2Request request;
    request.workload = source_path("tests/reference/astra2/traces/world4_endpoint1000/trace");
    request.settings.system = write(
        "system.json", R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "preferred-dataset-splits": )" +
                           std::to_string(splits) +
                           R"(, "active-chunks-per-dimension": 1, "all-reduce-implementation": ["ring"],
                              "collective-optimization": "localBWAware", "local-mem-bw": 1600})");
    request.settings.network = network;
    return request;
  }
  Astra2Request on_ns3(const std::string& settings, int splits) const {
    Astra2Request asked = request(config(settings), splits);
    asked.settings.logical_topology = (folder_ / "logical.json").string();
    return asked;
  }

  const std::filesystem::path folder_ = path_for_test("ns3-run");
};

// A step of the ring is a flow of every host to the next. Where the analytical network takes as long for it
// as these flows take, runs are equal: a message has arrived when its sender has heard so, and every message
// begins anew.
TEST_F(Ns3Run, EachMessageIsAFlowOfItsOwn) {
  for (const std::string settings :
       {"CC_MODE 12\n", "CC_MODE 1\nHAS_WIN 0\n", "CC_MODE 3\nHAS_WIN 1\nVAR_WIN 1\nINT_MULTI 4\n",
        "CC_MODE 8\nPACKET_PAYLOAD_SIZE 4000\n", "CC_MODE 12\nHAS_WIN 0\nERROR_RATE_PER_LINK 0\n"}) {
    for (const int splits : {1, 4}) {
      // HPCC goes by counters of the switches, in steps: long flows that follow each other differ by some
      // nanoseconds.
      if (splits == 1 && settings.starts_with("CC_MODE 3")) continue;
      SCOPED_TRACE(settings + std::to_string(splits));
      const Astra2Run run = run_astra2(on_ns3(settings, splits));
      ASSERT_EQ(run.run.graph.collectives.size(), 1U);

      FlowJob job = read_roce_network(config(settings)).job;
      job.settings.stop_ns = INT64_MAX;
      const std::int64_t bytes = run.run.graph.collectives.front().bytes.value / splits / 4;
      for (int host = 0; host < 4; ++host) job.flows.push_back({host, (host + 1) % 4, bytes});
      const PacketOutcome step = simulate_packets(job);
      for (const PacketFlowOutcome& flow : step.flows) ASSERT_EQ(flow.fct_ns, step.flows.front().fct_ns);

      const std::string fixed = write("fixed.yml",
                                      "topology: [FullyConnected]\nnpus_count: [4]\n"
                                      "bandwidth: [1000000000]\nlatency: [" +
                                          std::to_string(step.flows.front().fct_ns) + "]\n");
      const Astra2Run expected = run_astra2(request(fixed, splits));
      EXPECT_EQ(run.lines, expected.lines);
    }
  }
}

TEST_F(Ns3Run, OtherRulesAndNetworksTakeTheFilesToo) {
  Astra2Request asked = on_ns3("CC_MODE 1\nHAS_WIN 0\n", 1);
  const Time astra = run_astra2(asked).run.result.iteration;
  asked.native = true;
  const Time native = run_astra2(asked).run.result.iteration;
  EXPECT_LT(native, astra);  // it has no endpoint delay
  EXPECT_GT(native.value, astra.value * 9 / 10);
  asked.native = false;
  asked.network = parse_component("packet:cc=hpcc,buffer=1MiB", "test");
  EXPECT_NE(run_astra2(asked).run.result.iteration, astra);
  asked.network = parse_component("flow", "test");
  const Astra2Run flow = run_astra2(asked);
  EXPECT_LT(flow.run.result.iteration, astra);  // no headers
  EXPECT_TRUE(std::ranges::any_of(flow.run.warnings, [](const std::string& warning) {
    return warning.find("Its links are taken") != std::string::npos;
  }));
}

TEST_F(Ns3Run, SaysWhatIsWrong) {
  const auto refusal = [&](const Astra2Request& asked) {
    std::string text = error_of([&] { run_astra2(asked); });
    for (std::size_t at = 0; (at = text.find(folder_.string() + "/")) != std::string::npos;)
      text.erase(at, folder_.string().size() + 1);
    return text;
  };
  Astra2Request asked = on_ns3("", 1);
  asked.settings.logical_topology.clear();
  EXPECT_EQ(
      refusal(asked),
      "--network-configuration config.txt: is of ns-3, which needs --logical-topology-configuration, too\n"
      "  hint: a file such as {\"logical-dims\": [\"8\", \"4\"]}: ranks by dimension, innermost first");
  asked = on_ns3("", 1);
  asked.settings.network =
      write("ring.yml", "topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n");
  EXPECT_EQ(refusal(asked),
            "--logical-topology-configuration logical.json: belongs to a network configuration of ns-3, and "
            "ring.yml is none\n"
            "  hint: omit it with a YAML of dimensions; a config.txt of ns-3 names its TOPOLOGY_FILE");
  asked = on_ns3("", 1);
  asked.network = parse_component("packet:routing=spray", "--network packet:routing=spray");
  EXPECT_EQ(refusal(asked).substr(0, 27), "--network packet:routing=sp");
  write("logical.json", R"({"logical-dims": ["8", "4"]})");
  EXPECT_EQ(refusal(on_ns3("", 1)), "logical.json: asks for 32 ranks, and topology.txt has 4 hosts");
  write("logical.json", R"({"logical-dims": []})");
  EXPECT_EQ(refusal(on_ns3("", 1)),
            "logical.json:1:18: logical-dims: lists 0 dimensions\n  hint: from 1 to 32");
  write("logical.json", R"({"logical-dims": ["0"]})");
  EXPECT_EQ(refusal(on_ns3("", 1)).substr(0, 17), "logical.json:1:19");
  write("logical.json", R"({"logical-dims": ["4"]})");
  write("topology.txt",
        "5 1 4\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n3 2 100Gbps 1us 0\n4 2 100Gbps 1us 0\n");
  EXPECT_EQ(refusal(on_ns3("", 1)),
            "topology.txt: node 2 is a switch, and rank 2 is to be there\n"
            "  hint: rank r is node r: number the hosts first");
}

class HtsimRun : public Ns3Run {
 protected:
  // Four leaf switches with a host each and one spine: every host is as far from every other.
  std::string topology(int hosts = 4) const {
    return write("tree.topo", "Nodes " + std::to_string(hosts) + "\nTiers 2\nPodsize " +
                                  std::to_string(hosts) +
                                  "\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 1\nRadix_Up 1\n"
                                  "Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down " +
                                  std::to_string(hosts) + "\nDownlink_Latency_ns 1000\n");
  }
  Astra2Request on_htsim(int splits, const std::vector<std::string>& options) const {
    Astra2Request asked = request(
        write("ring.yml", "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n"), splits);
    asked.settings.htsim = {true, "tcp", options};
    return asked;
  }
};

// As with ns-3: runs are equal where the analytical network takes as long for a step as its flows.
TEST_F(HtsimRun, EachMessageIsAFlowOfItsOwn) {
  constexpr std::int64_t kMostOfWindow = 10 * 1500;
  const Astra2Request asked = on_htsim(64, {"-topo", topology(), "-o", "log", "UNCOUPLED"});
  const Astra2Run run = run_astra2(asked);
  const std::int64_t bytes = run.run.graph.collectives.front().bytes.value / 64 / 4;
  ASSERT_LE(bytes, kMostOfWindow) << "nothing is to be lost";
  ASSERT_GT(bytes, 0);

  std::vector<std::string> warnings;
  const SystemLayer system = read_astra2_config(asked.settings, warnings);
  FlowJob job;
  job.where = "test";
  job.graph = network_graph(system.links);
  job.settings = *system.packets;
  for (int host = 0; host < 4; ++host) job.flows.push_back({host, (host + 1) % 4, bytes});
  const PacketOutcome step = simulate_packets(job);
  // A handshake that is answered at once, then the packets, one after the other over four links of 100
  // Gb/s and 1 us.
  const double headers = 54, whole = 1500 + headers, last = static_cast<double>(bytes % 1500) + headers;
  const double packets = static_cast<double>(bytes / 1500);
  const double handshake = 4 * (headers * 0.08 + 1000);
  EXPECT_NEAR(static_cast<double>(step.flows.front().fct_ns),
              handshake + (packets * whole + last) * 0.08 + 3 * (packets > 0 ? whole : last) * 0.08 + 4000,
              3 * (whole - last) * 0.08 + 20);
  for (const PacketFlowOutcome& flow : step.flows) ASSERT_EQ(flow.fct_ns, step.flows.front().fct_ns);

  const std::string fixed =
      write("fixed.yml", "topology: [FullyConnected]\nnpus_count: [4]\nbandwidth: [1000000000]\nlatency: [" +
                             std::to_string(step.flows.front().fct_ns) + "]\n");
  // A frame takes whole nanoseconds on the average only, so that flows that follow each other differ by some.
  const double expected = in_seconds(run_astra2(request(fixed, 64)).run.result.iteration);
  EXPECT_NEAR(in_seconds(run.run.result.iteration) / expected, 1, 0.001);
  EXPECT_TRUE(std::ranges::any_of(run.run.warnings, [](const std::string& warning) {
    return warning == "--htsim_opts -o log has no effect: htsim's log is not written";
  }));
}

// Long messages lose packets to queues of eight, and wait for timers of 250 ms.
TEST_F(HtsimRun, WaitsForTimers) {
  // htsim takes it: 4 links of 100 Gb/s are 40 of 10, two spines of 20, and each leaf has one to each spine.
  const std::string incast =
      "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\n"
      "Radix_Up 2\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 10\n"
      "Radix_Down 20\nDownlink_Latency_ns 1000\nQueue_Down 100000\n";
  Astra2Request asked = on_htsim(1, {"-topo", write("thin.topo", incast)});
  const armilla::Run slow = run_astra2(asked).run;
  EXPECT_GT(slow.result.iteration, milliseconds(250));
  EXPECT_EQ(slow.study.network.parameters.at("cc").value, "tcp-newreno");
  EXPECT_TRUE(std::ranges::any_of(slow.warnings, [](const std::string& warning) {
    return warning.ends_with(
        ": Queue_Down has no effect: how long queues may get is not taken from the file");
  }));
  EXPECT_TRUE(std::ranges::any_of(slow.notes, [](const std::string& note) {
    return note.starts_with("htsim's TCP: ") && note.find(" lost, and ") != std::string::npos &&
           note.find(" of 250 ms ran out") != std::string::npos;
  }));
  // Others are not those of htsim: their acknowledgements take time, too.
  asked.network = parse_component("packet:cc=dcqcn", "test");
  const Time usual = run_astra2(asked).run.result.iteration;
  EXPECT_LT(usual, milliseconds(50));
  asked.network = parse_component("packet:cc=dcqcn,payload=1500B", "test");
  EXPECT_NE(run_astra2(asked).run.result.iteration, usual) << "the usual payload is 4096 bytes";
  asked.network = parse_component("flow", "test");
  EXPECT_LT(run_astra2(asked).run.result.iteration, milliseconds(50));
  // Networks of dimensions would take the YAML's.
  for (const std::string name : {"analytical", "analytical-unshared"}) {
    asked.network = parse_component(name, "--network " + name);
    EXPECT_EQ(error_of([&] { run_astra2(asked); }),
              "--network " + name + ": the network " + name +
                  " knows dimensions, not the links of htsim's topology\n"
                  "  hint: --network flow, flit or packet, or omit --htsim-proto and --htsim_opts");
  }
}

TEST_F(HtsimRun, SaysWhatIsWrong) {
  const auto refusal = [&](const Astra2Request& asked) {
    std::string text = error_of([&] { run_astra2(asked); });
    for (std::size_t at = 0; (at = text.find(folder_.string() + "/")) != std::string::npos;)
      text.erase(at, folder_.string().size() + 1);
    return text;
  };
  EXPECT_EQ(refusal(on_htsim(1, {"-topo", topology(8)})),
            "tree.topo: has 8 hosts, and the network configuration 4 ranks\n  hint: htsim wants as many");
  EXPECT_EQ(refusal(on_htsim(1, {})),
            "--htsim_opts: no fat tree of htsim's has 4 hosts, and -topo names no other\n"
            "  hint: -topo FILE, or as many ranks as 2 or 16");
  EXPECT_EQ(refusal(on_htsim(1, {"-topo", topology(), "-sub", "2"})),
            "--htsim_opts: -sub 2: multipath TCP is not modelled\n  hint: -sub 1");
  EXPECT_EQ(refusal(on_htsim(1, {"-topo", topology(), "-nodes", "8"})),
            "--htsim_opts: -nodes 8 beside a network configuration of 4 ranks\n  hint: omit -nodes");
  EXPECT_EQ(refusal(on_htsim(1, {"-tpo", topology()})),
            "--htsim_opts: htsim's TCP knows no option '-tpo'\n  hint: did you mean '-topo'?");
  EXPECT_EQ(refusal(on_htsim(1, {"-topo", topology(), "--quiet"})),
            "--htsim_opts: '--quiet' comes after it, where htsim's own options stand\n"
            "  hint: put --quiet before --htsim_opts");
  EXPECT_EQ(refusal(on_htsim(1, {"-topo"})), "--htsim_opts: -topo has no value");
  EXPECT_EQ(refusal(on_htsim(1, {"--htsim_opts"})), "--htsim_opts: is given twice");
  EXPECT_EQ(refusal(on_htsim(1, {"-topo", write("no.topo", "topology: [Ring]\n")})).substr(0, 63),
            "--htsim_opts -topo no.topo: is not a topology of htsim's\n  hint");
  Astra2Request asked = on_htsim(1, {"-topo", topology()});
  asked.settings.htsim.protocol = "ndp";
  EXPECT_EQ(refusal(asked).substr(0, 57), "--htsim-proto ndp: ASTRA-sim's htsim has tcp alone\n  hint");
  asked = on_ns3("", 1);
  asked.settings.htsim = {true, "tcp", {}};
  EXPECT_EQ(refusal(asked),
            "--htsim_opts: config.txt is of ns-3\n  hint: the network configuration of htsim is a YAML of "
            "dimensions");
}

}  // namespace
}  // namespace armilla
