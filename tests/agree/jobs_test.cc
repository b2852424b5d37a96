// One job on every network: equal where nothing is in the way, and never faster than the graph allows.
#include <gtest/gtest.h>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "ir/derived/interconnect_figures.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

constexpr const char* kSwitch = "{name: net, kind: Switch, size: 8, bandwidth: 50GB/s, latency: 1us}";
constexpr const char* kRingOf8 = "{name: net, kind: Ring, size: 8, bandwidth: 50GB/s, latency: 1us}";

armilla::Run collective_on(const std::string& machine, const std::string& network, CollectiveKind kind,
                           std::int64_t bytes) {
  const std::string text = "machine: {device: h100-sxm, " + machine + "}\nnetwork: " + network +
                           "\ncollectives: {chunks: 1, measured: false}\n";
  return run_collective(read_machine_study(Config::parse(text, "m.yaml", {})), kind, Bytes(bytes));
}

TEST(NetworkAgreement, OnCollectivesAlone) {
  int number = 0;
  for (const std::string dimension : {kSwitch, kRingOf8}) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      for (const std::int64_t bytes : {80'000, kCaseStep == 1 ? 2'200'000 : 800'000}) {
        if (number++ % kCaseStep != 0) continue;
        SCOPED_TRACE(dimension + " " + std::string(name_of(kind)) + " " + std::to_string(bytes));
        const auto time = [&](const std::string& network) {
          return in_seconds(
              collective_on("dimensions: [" + dimension + "]", network, kind, bytes).result.iteration);
        };
        const double analytical = time("analytical");
        EXPECT_NEAR(time("flow") / analytical, 1, 1e-6);
        const double packet = time("packet:payload=4KiB");
        EXPECT_GT(packet, analytical);
        EXPECT_LT(packet, analytical * (bytes > 1'000'000 ? 1.04 : 1.25));
        for (const std::string router : {"pipelined", "garnet"}) {
          const double flit = time("flit:flit-width=64B,packet=1024B,router=" + router);
          EXPECT_GT(flit, analytical) << router;
          EXPECT_LT(flit, analytical * (bytes > 1'000'000 ? 1.01 : 1.02)) << router;
        }
      }
    }
  }
}

// The links of a hierarchy written down as a graph are that hierarchy.
TEST(NetworkAgreement, AGraphIsAsGoodAsItsHierarchy) {
  const std::string graph =
      "nodes: [{name: gpu, kind: device, count: 8}, {name: s, kind: switch}]\n"
      "  , links: [{from: 'gpu[0-7]', to: s, bandwidth: 50GB/s, latency: 1us}]\n";
  for (const std::string network : {"flow", "packet", "flit"}) {
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
      const auto hierarchy =
          collective_on(std::string("dimensions: [") + kSwitch + "]", network, kind, 4'000'000);
      const auto own = collective_on(graph, network, kind, 4'000'000);
      EXPECT_EQ(own.result.iteration, hierarchy.result.iteration) << network << ' ' << name_of(kind);
      EXPECT_EQ(own.result.messages, hierarchy.result.messages);
      ASSERT_FALSE(own.result.links.empty());
      EXPECT_EQ(own.result.links.size(), hierarchy.result.links.size());
    }
  }
}

// What has to cross the thin middle takes as long as that takes.
TEST(NetworkAgreement, NothingIsFasterThanItsCut) {
  const std::string thin =
      "topology: {kind: leaf-spine, leaves: 2, hosts: 4, spines: 1, oversubscription: 4, bandwidth: 50GB/s, "
      "latency: 1us}";
  constexpr std::int64_t kBytes = 800'000;             // of one device: an eighth of it for each
  const double least = 4.0 * 4.0 * kBytes / 8 / 50e9;  // 16 pairs each way over one link of 50 GB/s
  const auto time = [&](const std::string& network) {
    return in_seconds(collective_on(thin, network, CollectiveKind::all_to_all, kBytes).result.iteration);
  };
  EXPECT_LT(time("analytical"), least) << "which knows only the devices' links";
  for (const std::string network : {"flow", "packet:cc=none", "packet:cc=hpcc"}) {
    EXPECT_GT(time(network), least) << network;
    EXPECT_LT(time(network), 1.3 * least) << network;
  }
  // Packets that wait for the middle hold up those behind them.
  for (const std::string network : {"flit", "flit:router=garnet"}) {
    EXPECT_GT(time(network), least) << network;
    EXPECT_LT(time(network), 1.5 * least) << network;
  }
}

TEST(NetworkAgreement, OnAWholeJob) {
  const auto time = [](const std::string& network) {
    Study study = prepare_study(
        read_study(Config::parse("model: " + std::string(kCaseStep == 1 ? "resnet50" : "mobilenet_v2") +
                                     "\nmachine: {device: h100-sxm, dimensions: [" + std::string(kSwitch) +
                                     "]}\nplan: {ranks: 8, batch: 64}\nnetwork: " + network + "\n",
                                 "study.yaml", {})));
    return in_seconds(run_study(study).result.iteration);
  };
  const double analytical = time("analytical");
  EXPECT_NEAR(time("flow") / analytical, 1, 0.01);
  EXPECT_NEAR(time("packet") / analytical, 1, 0.03);
  EXPECT_NEAR(time("flit") / analytical, 1, 0.01);
}

TEST(NetworkAgreement, ARunIsReproducible) {
  const std::string machine =
      "topology: {kind: rail-pods, gpus: 4, nodes: 2, pods: 2, spines: 2, oversubscription: 2}";
  constexpr std::int64_t kBytes = kCaseStep == 1 ? 3'000'000 : 600'000;
  for (const std::string network : {"flow", "packet", "flit"}) {
    const auto one = collective_on(machine, network, CollectiveKind::all_reduce, kBytes);
    const auto again = collective_on(machine, network, CollectiveKind::all_reduce, kBytes);
    EXPECT_EQ(one.result.iteration, again.result.iteration);
    EXPECT_EQ(one.result.events, again.result.events);
  }
}

}  // namespace
}  // namespace armilla
