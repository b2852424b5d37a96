// ASTRA-sim 1.0's system layer over its Garnet networks, and over those of Armilla.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"
#include "study/astra.h"

namespace armilla {
namespace {

class GarnetRun : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string torus(std::int64_t router, std::int64_t latency, std::int64_t width) const {
    return write("garnet.txt",
                 "num-npus: 2\nnum-packages: 1\npackage-rows: 1\ntopology: Torus3D\nlocal-rings: 2\n"
                 "vertical-rings: 1\nhorizontal-rings: 1\nflit-width: 1024\npackage-packet-size: 512\n"
                 "tile-link-width: " +
                     std::to_string(width) + "\npackage-link-width: 256\nvcs-per-vnet: 50\nrouter-latency: " +
                     std::to_string(router) + "\nlocal-link-latency: " + std::to_string(latency) +
                     "\npackage-link-latency: 200\nbuffers-per-vc: 5000\n");
  }
  // One chunk of an all-reduce of so many bytes.
  Astra1Run run(const std::string& network, std::int64_t bytes, const std::string& instead = {},
                const std::string& algorithm = "ring_ring_ring") const {
    Astra1Request request;
    request.workload =
        write("work.txt", "MICRO\n1\nall -1 0 NONE 0 0 NONE 0 0 ALLREDUCE " + std::to_string(bytes) + " 0\n");
    request.settings.system =
        write("system.txt",
              "scheduling-policy: LIFO\nendpoint-delay: 0\npreferred-dataset-splits: 1\n"
              "all-reduce-implementation: " +
                  algorithm + "\ncollective-optimization: baseline\nlocal-reduction-delay: 0\n");
    request.settings.network = network;
    if (!instead.empty()) request.network = parse_component(instead, "test");
    return run_astra1(request);
  }
  // What two messages, one after the other, take beyond what the system layer takes: twice as much for two
  // more cycles each.
  Time time(std::int64_t router, std::int64_t latency, std::int64_t width, std::int64_t bytes) const {
    return run(torus(router, latency, width), bytes).run.result.iteration;
  }

  const std::filesystem::path folder_ = path_for_test("garnet-run");
};

// A ring of two sends half of the bytes twice, each at T = p + 2 + (p + l) + (k - 1) + (P - 1) k cycles, and
// bridges take four more where links are narrower than flits.
TEST_F(GarnetRun, MessagesTakeTheTimeOfTheLaw) {
  const auto law = [](std::int64_t router, std::int64_t latency, std::int64_t width, std::int64_t bytes) {
    const std::int64_t period = (1024 + width - 1) / width, flits = (bytes / 2 + 127) / 128;
    return router + 2 + router + latency + (period > 1 ? 4 : 0) + period - 1 + (flits - 1) * period;
  };
  const Time least = time(1, 10, 1024, 256);
  for (const std::int64_t router : {1, 2, 4}) {
    for (const std::int64_t latency : {10, 90}) {
      for (const std::int64_t width : {1024, 512, 300, 128}) {
        for (const std::int64_t bytes : {256, 500, 1024}) {
          const std::int64_t more = law(router, latency, width, bytes) - law(1, 10, 1024, 256);
          EXPECT_EQ(time(router, latency, width, bytes) - least, nanoseconds(2 * more))
              << router << ' ' << latency << ' ' << width << ' ' << bytes;
        }
      }
    }
  }
}

TEST_F(GarnetRun, SaysWhatItTakesFromTheFile) {
  const Astra1Run done = run(torus(1, 90, 256), 100'000);
  EXPECT_EQ(done.run.study.network.name, "flit");
  ASSERT_EQ(done.run.notes.size(), 2U);
  EXPECT_NE(done.run.notes[0].find(
                "garnet.txt: of ASTRA-sim's Garnet. The links, whose latencies include the routers', and "
                "the settings of the network flit are the file's"),
            std::string::npos);
  EXPECT_NE(done.run.notes[1].find(
                "network flit: Garnet's routers of 1 cycle at 1.000 GHz, 50 virtual channels of 4 flits; "
                "packets of up to 4 flits of 128 B"),
            std::string::npos);
  EXPECT_EQ(done.report.payload.size(), 3U);
  EXPECT_EQ(done.report.payload[0], Bytes(100'000));
}

TEST_F(GarnetRun, ParametersGoBeforeTheFiles) {
  const Astra1Run done = run(torus(1, 90, 256), 100'000, "flit:vcs=7");
  EXPECT_EQ(done.run.study.network.parameters.at("vcs").value, "7");
  EXPECT_EQ(done.run.study.network.parameters.at("router").value, "garnet");
}

// The same files over other networks: near each other where nothing is in the way.
TEST_F(GarnetRun, RunsOnEveryNetwork) {
  const std::string ring = write(
      "ring.json",
      R"({"topology-name": "Hierarchical", "topologies-per-dim": ["Ring"], "dimension-type": ["N"], "dimensions-count": 1,
      "units-count": [8], "links-count": [2], "link-latency": [500], "link-bandwidth": [50], "nic-latency": [0],
      "router-latency": [0], "hbm-latency": [0], "hbm-bandwidth": [1], "hbm-scale": [0]})");
  const auto seconds = [&](const std::string& network) {
    return in_seconds(run(ring, 8'000'000, network, "ring").run.result.iteration);
  };
  const double analytical = seconds("analytical");
  EXPECT_NEAR(seconds("flow") / analytical, 1, 1e-4);
  EXPECT_NEAR(seconds("flit") / analytical, 1, 0.01);
  EXPECT_NEAR(seconds("flit:router=garnet") / analytical, 1, 0.01);
  EXPECT_NEAR(seconds("packet:cc=none") / analytical, 1, 0.03);
}

}  // namespace
}  // namespace armilla
