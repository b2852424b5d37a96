// `armilla astra1` and `astra2` on the inputs of examples/, in a folder of their own.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/source_path_testing.h"
#include "cli/cli_testing.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AstraCommands : public InEmptyFolder {
 protected:
  void SetUp() override {
    InEmptyFolder::SetUp();
    fs::copy(source_path("examples/astra1"), ".");
    fs::copy(source_path("examples/astra2"), ".");
  }

  static Outcome astra2(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"astra2",
                                          "--workload-configuration=allreduce",
                                          "--system-configuration",
                                          "system.json",
                                          "--network-configuration=ring4.yml",
                                          "--remote-memory-configuration",
                                          "no_memory.json",
                                          "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static Outcome astra1(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"astra1",
                                          "--workload-configuration",
                                          "mlp.txt",
                                          "--system-configuration=system.txt",
                                          "--network-configuration=ring8.json",
                                          "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<std::string> warnings(const std::string& path) {
    return nlohmann::json::parse(std::ifstream(path)).at("warnings");
  }
  // Sets a key of system.json.
  static void set(const std::string& key, const nlohmann::json& value) {
    auto document = nlohmann::json::parse(std::ifstream("system.json"));
    document[key] = value;
    std::ofstream("system.json") << document.dump(1);
  }
  static std::size_t count(const std::string& text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

TEST_F(AstraCommands, FlagsThatHaveNoEffectAreWarnedAbout) {
  const Outcome plain = astra2({});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(count(plain.out, " finished, "), 4u);
  const Outcome scaled = astra2({"--compute-scale=2", "--comm-scale", "3", "--logging-configuration",
                                 "l.toml", "--comm-group-configuration=my_empty.json", "--json=run.json"});
  EXPECT_EQ(scaled.out, plain.out);
  EXPECT_THAT(
      warnings("run.json"),
      ::testing::ElementsAre("--compute-scale has no effect in ASTRA-sim 2, nor here",
                             "--comm-scale has no effect in ASTRA-sim 2, nor here",
                             "--comm-group-configuration my_empty.json: the file does not exist: no groups",
                             "--logging-configuration l.toml is ignored: logs have one form"));
}

TEST_F(AstraCommands, RendezvousAndEndpointDelayCostTime) {
  const std::string plain = astra2({}).out;
  EXPECT_NE(astra2({"--rendezvous-protocol"}).out, plain);
  EXPECT_NE(astra2({"--rendezvous-protocol=true"}).out, plain);
  EXPECT_EQ(astra2({"--rendezvous-protocol", "false"}).out, plain);
  EXPECT_NE(astra2({"--injection-scale=10"}).out, plain);
  EXPECT_EQ(astra2({"--rendezvous-protocol=yes"}).err,
            "armilla: error: --rendezvous-protocol yes: expected true or false\n");
  EXPECT_EQ(astra2({"--injection-scale=-1"}).err, "armilla: error: --injection-scale -1: is negative\n");
  EXPECT_EQ(astra2({"--backend=awere"}).err,
            "armilla: error: --backend awere: unknown value\n  hint: did you mean 'aware'?\n");
}

TEST_F(AstraCommands, TracesRunOnArmillasNetworksUnderTheirOwnRules) {
  const auto time_on = [](const std::string& network) {
    EXPECT_EQ(astra2({"--network", network, "--json", "run.json"}).code, 0) << network;
    const auto document = nlohmann::json::parse(std::ifstream("run.json"));
    EXPECT_EQ(document.at("network").at("name"), network.substr(0, network.find(':')));
    return document.at("iteration_time_s").get<double>();
  };
  EXPECT_EQ(astra2({"--json", "run.json"}).code, 0);
  const double theirs = nlohmann::json::parse(std::ifstream("run.json")).at("iteration_time_s");
  // A ring's messages meet nobody: latencies round otherwise, and packets have headers.
  EXPECT_NEAR(time_on("flow"), theirs, 1e-4 * theirs);
  EXPECT_NEAR(time_on("flit"), theirs, 0.01 * theirs);
  const double packets = time_on("packet:cc=dcqcn");
  EXPECT_GT(packets, theirs);
  EXPECT_LT(packets, 1.05 * theirs);
  EXPECT_EQ(astra2({"--network=flow", "--backend=aware"}).code, 2);
  EXPECT_EQ(astra2({"--network=flaw"}).code, 2);
}

TEST_F(AstraCommands, LogsHaveEveryNodeOfEveryRank) {
  EXPECT_EQ(astra2({}).code, 0);
  EXPECT_FALSE(fs::exists("log"));
  set("trace-enabled", 1);
  const Outcome traced = astra2({"--logging-folder", "logs/of/run"});
  ASSERT_EQ(traced.code, 0) << traced.err;
  const std::string log = text_of("logs/of/run/log.log");
  EXPECT_EQ(count(log, "[debug] issue,"), 4u * 6);
  EXPECT_EQ(count(log, "[debug] callback,"), 4u * 6);
  EXPECT_EQ(count(log, " finished, "), 4u);
  EXPECT_THAT(log, HasSubstr("issue,sys->id=3, tick=210000, node->id=2, node->name=gradients of layer 2, "
                             "node->type=7\n"));
  EXPECT_EQ(astra2({}).code, 0);
  EXPECT_TRUE(fs::exists("log/log.log"));
}

TEST_F(AstraCommands, TrackingMemoryWithoutTensorsIsWarnedAbout) {
  set("track-local-mem", 1);
  set("local-mem-trace-filename", "memory");
  const Outcome tracked = astra2({"--json", "run.json"});
  ASSERT_EQ(tracked.code, 0) << tracked.err;
  EXPECT_THAT(tracked.out, HasSubstr("[workload] [info] sys[3] peak memory usage: 0.00 B\n"));
  for (const char* file : {"memory.0.json", "memory.3.json"})
    EXPECT_TRUE(nlohmann::json::parse(std::ifstream(file)).contains("traceEvents")) << file;
  EXPECT_THAT(warnings("run.json"),
              ::testing::ElementsAre("track-local-mem: no node has the attributes 'inputs' or 'outputs'"));
  set("local-mem-trace-filename", "mem_trace/of/run");  // folders that the configuration names are made
  ASSERT_EQ(astra2({}).code, 0);
  EXPECT_TRUE(fs::exists("mem_trace/of/run.3.json"));
}

TEST_F(AstraCommands, NativeRunsTheSameFiles) {
  const Outcome native = astra2({"--profile", "native", "--json", "run.json"});
  ASSERT_EQ(native.code, 0) << native.err;
  const auto document = nlohmann::json::parse(std::ifstream("run.json"));
  EXPECT_EQ(document.at("network").at("name"), "analytical");
  EXPECT_EQ(document.at("workload"), "allreduce");
  EXPECT_EQ(document.at("collective_options").at("chunks"), 4);
  // Both all-reduces cannot beat the ring's bandwidth: 12 MiB x 2 x 3/4 over two links of 50 GB/s.
  EXPECT_GT(document.at("iteration_time_s"), 120e-6 + 12 * 1048576 * 1.5 / (2 * 50 * 1073741824.0));
  EXPECT_EQ(astra1({"--profile=native"}).code, 0);
}

TEST_F(AstraCommands, ReportsOfSeveralRunsShareTheirTables) {
  const Outcome first = astra1({"--path=out/", "--run-name=one", "--total-stat-rows=2"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("pass: 0 finished at time: "));
  EXPECT_THAT(first.out, HasSubstr(", id of first layer: hidden\n"));
  const Outcome second = astra1({"--path", "out", "--run-name", "two", "--total-stat-rows", "2", "--stat-row",
                                 "1", "--compute-scale", "3"});
  ASSERT_EQ(second.code, 0) << second.err;
  const std::string table = text_of("out/backend_end_to_end.csv");
  EXPECT_EQ(count(table, "\none,"), 1u) << table;
  EXPECT_EQ(count(table, "\ntwo,"), 1u) << table;
  for (const char* file : {"out/EndToEnd.csv", "out/detailed.csv", "out/backend_dim_info.csv",
                           "out/one_dimension_utilization.csv", "out/two_dimension_utilization.csv"})
    EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_EQ(astra1({"--stat-row=1"}).err,
            "armilla: error: --stat-row 1: 1 is too large\n  hint: the highest value is 0\n");
  EXPECT_EQ(astra1({"--path=out", "--run-name=a/b"}).err,
            "armilla: error: --run-name a/b: contains a slash, a comma or a line end\n");
}

TEST_F(AstraCommands, NetworkFlagsTakeOneValuePerDimension) {
  const std::string plain = astra1({}).out;
  EXPECT_EQ(astra1({"--units-count", "8", "--link-latency=500"}).out, plain);
  EXPECT_NE(astra1({"--link-bandwidth", "50"}).out, plain);
  EXPECT_EQ(astra1({"--units-count", "4", "2"}).err,
            "armilla: error: --units-count: 2 values for 1 dimension\n");
}

}  // namespace
}  // namespace armilla
