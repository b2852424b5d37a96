#include "study/run.h"

#include <gtest/gtest.h>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "ir/derived/metrics.h"
#include "read/study.h"

namespace armilla {
namespace {

Study ring(std::string_view more) {
  return read_machine_study(Config::parse(
      "machine: {name: ring, device: a100-80gb-sxm, elastic: true, dimensions: [{name: ring, kind: Ring, "
      "size: "
      "8, bandwidth: 50GB/s, latency: 500ns}]}\ncollectives: {algorithms: [ring], chunks: 1}\n" +
          std::string(more),
      "ring.yaml", {}));
}

// 2 (n - 1) steps of S / n bytes.
TEST(RunCollective, RingAllReduceFollowsTheClosedForm) {
  for (const std::int64_t n : {2, 8, 4096}) {
    const auto run = run_collective(ring("plan: {ranks: " + std::to_string(n) + "}\n"),
                                    CollectiveKind::all_reduce, Bytes(4096 * 50'000));
    EXPECT_EQ(run.result.iteration, 2 * (n - 1) * (nanoseconds(4096 * 1000 / n) + nanoseconds(500))) << n;
    EXPECT_EQ(run.result.ranks, n);
    EXPECT_EQ(run.result.messages, 2 * (n - 1)) << "one rank stands for all";
  }
}

TEST(RunCollective, TakesTheWholeMachineUnlessToldOtherwise) {
  const auto run = run_collective(ring(""), CollectiveKind::all_gather, Bytes(800));
  EXPECT_EQ(run.result.ranks, 8);
  EXPECT_EQ(run.workload, "all-gather of 800 B");
  EXPECT_FALSE(has_model(run));
}

TEST(RunCollective, ABarrierMovesNothing) {
  const auto run = run_collective(ring(""), CollectiveKind::barrier, Bytes(800));
  EXPECT_GT(run.result.iteration, Time(0));
  EXPECT_EQ(run.workload, "barrier");
  EXPECT_EQ(run.graph.collectives[0].bytes, Bytes(0));
}

// Members 0 to 3 in a ring of cables; 4 and 5 joined with each other; 6 and 7 alone.
Study cables(std::string_view more) {
  return read_machine_study(Config::parse(
      "machine: {name: cables, device: v100-16gb-sxm2, dimensions: [{name: net, kind: Switch, size: 8, "
      "bandwidth: 50GB/s, latency: 500ns, cables: [0-1, 1-2, 2-3, 0-3, 4-5]}]}\n" +
          std::string(more),
      "cables.yaml", {}));
}

TEST(RunCollective, WhereCablesJoinMembersLinksAreTheirs) {
  for (const int ranks : {2, 4}) {
    const auto run = run_collective(cables("plan: {ranks: " + std::to_string(ranks) + "}\n"),
                                    CollectiveKind::all_reduce, Bytes(std::int64_t{1} << 30));
    const CollectiveRecord& record = run.result.collectives.front();
    // No algorithm's limit is below that of all algorithms.
    EXPECT_GE(record.busiest_link, record.link_limit) << ranks;
    EXPECT_EQ(run.result.links.front().name, "rank 0 -> cables to rank 1 (net)");
  }
}

TEST(RunCollective, MembersWithoutACableAreWarnedOf) {
  const auto warnings = [](const Study& study) {
    return run_collective(study, CollectiveKind::all_gather, Bytes(1 << 20)).result.warnings;
  };
  EXPECT_EQ(
      warnings(cables("")),
      std::vector<std::string>{
          "no cable leads to members 6, 7 of net: what each of them sends there takes PCIe at 16.00 GB/s"});
  EXPECT_EQ(warnings(cables("network: flow\n")).size(), 2U);
  EXPECT_EQ(warnings(cables("network: flow\n"))[0],
            "the network flow sees a switch where cables join the members of net: two members get the "
            "bandwidth of all cables of one");
  EXPECT_TRUE(
      warnings(read_machine_study(Config::parse("machine: dgx-1\nplan: {ranks: 8}\n", "", {}))).empty());
}

TEST(RunCollective, ANetworkOfDimensionsSaysThatItSeesNoLinks) {
  const auto notes = [](const std::string& network) {
    return run_collective(
               read_machine_study(Config::parse(
                   "machine: {name: tree, device: h100-sxm, topology: 'leaf-spine:leaves=2,hosts=2'}\n"
                   "network: " +
                       network + "\n",
                   "", {})),
               CollectiveKind::all_gather, Bytes(1 << 20))
        .notes;
  };
  EXPECT_EQ(
      notes("analytical"),
      std::vector<std::string>{"the network analytical knows the dimensions of tree, not its links: "
                               "nothing is oversubscribed, no ways meet, and each is as long as the longest "
                               "of its dimension; flow, packet and flit take the links"});
  EXPECT_TRUE(notes("flow").empty());
}

TEST(RunCollective, WhatIsComputedOrFailsHasNoEffect) {
  const auto run =
      run_collective(ring("what_if: {ranks: [{ranks: 0, time: 2}], jitter: {deviation: 0.1}, links: "
                          "[{dimension: ring, ranks: 3, bandwidth: 0.5}]}\n"),
                     CollectiveKind::all_reduce, Bytes(800'000));
  ASSERT_GE(run.notes.size(), 2U);
  EXPECT_EQ(run.notes[0], "what_if.ranks has no effect: a collective alone computes nothing");
  EXPECT_EQ(run.notes[1], "what_if.jitter has no effect: a collective alone computes nothing");
  EXPECT_TRUE(run.study.what_if.ranks.empty());
  EXPECT_EQ(run.study.what_if.links.size(), 1U);
}

// Without a choice, no power of two is more than 6 % faster, on any of these machines at any of these sizes.
TEST(RunCollective, TheNumberOfChunksIsChosenBySize) {
  int number = 0;
  const auto time = [](const std::string& machine, CollectiveKind kind, std::int64_t bytes,
                       std::int64_t chunks, bool measured) {
    std::string text = "machine: " + machine + "\ncollectives: {measured: " + (measured ? "true" : "false");
    text += chunks > 0 ? ", chunks: " + std::to_string(chunks) + "}\n" : "}\n";
    return in_seconds(
        run_collective(read_machine_study(Config::parse(text, "", {})), kind, Bytes(bytes)).result.iteration);
  };
  for (const std::string machine : {"dgx-a100", "dgx-h100", "dgx-b200", "gb200-nvl72", "tpu-v4"}) {
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
      for (std::int64_t bytes = 1 << 16; bytes <= std::int64_t{1} << 33; bytes *= 32) {
        for (const bool measured : {false, true}) {
          if (number++ % kCaseStep != 0) continue;
          double best = time(machine, kind, bytes, 4, measured);
          for (std::int64_t chunks = 8; chunks <= 256; chunks *= 2)
            best = std::min(best, time(machine, kind, bytes, chunks, measured));
          // What sim/plan/chunk_count.h says of machines as they are, and of attained bandwidths.
          EXPECT_LE(time(machine, kind, bytes, 0, measured), (measured ? 1.08 : 1.06) * best)
              << machine << ' ' << name_of(kind) << ' ' << bytes;
        }
      }
    }
  }
}

// Of every call there.
constexpr std::string_view kUnverified = "unverified figures of machine dgx-h100: rail.latency";

TEST(RunCollective, AChoiceThatCostsTimeIsNoted) {
  const auto notes = [](const std::string& chunks) {
    std::vector<std::string> all =
        run_collective(read_machine_study(Config::parse("machine: dgx-h100\n" + chunks, "", {})),
                       CollectiveKind::all_reduce, Bytes(std::int64_t{8} << 30))
            .notes;
    EXPECT_EQ(all.back(), kUnverified);
    all.pop_back();
    return all;
  };
  EXPECT_EQ(notes("").size(), 0U);
  const std::vector<std::string> four = notes("collectives: {chunks: 4}\n");
  ASSERT_EQ(four.size(), 1U);
  EXPECT_EQ(four[0].substr(0, four[0].find(';')),
            "pipelining limits all-reduce of 8.000 GiB: its 4 chunks overlap too little across dimensions");
}

TEST(RunCollective, TheShareOfTheLinksLimitSaysWhatLimits) {
  const auto limit = [](const std::string& machine, std::int64_t bytes) {
    return run_collective(read_machine_study(Config::parse("machine: " + machine + "\n", "", {})),
                          CollectiveKind::all_reduce, Bytes(bytes))
        .result.collectives.front()
        .limit;
  };
  EXPECT_EQ(limit("dgx-h100", 1024), CollectiveLimit::latency);
  EXPECT_EQ(limit("dgx-h100", std::int64_t{8} << 30), CollectiveLimit::bandwidth);
  EXPECT_EQ(limit("dgx-2", 1024), CollectiveLimit::latency);
  EXPECT_EQ(limit("dgx-h100\ncollectives: {chunks: 8}", std::int64_t{8} << 30), CollectiveLimit::pipelining);
  EXPECT_EQ(limit("dgx-h100\ncollectives: {chunks: 65536}", std::int64_t{8} << 30), CollectiveLimit::latency);
  // One dimension, where chunks have nothing to overlap.
  const auto one = [&](std::int64_t bytes) {
    return run_collective(ring(""), CollectiveKind::all_reduce, Bytes(bytes))
        .result.collectives.front()
        .limit;
  };
  EXPECT_EQ(one(1024), CollectiveLimit::latency);
  // A ring one way round leaves half of the links idle.
  EXPECT_EQ(one(1 << 30), CollectiveLimit::algorithm);
}

// What the library takes beyond a schedule on links that carry what it attains of them.
TEST(RunCollective, MeasuredLinksAndProtocols) {
  const auto time = [](const std::string& bandwidth, bool measured, std::int64_t bytes) {
    const std::string text =
        "machine:\n  device: {memory: 1GB, memory_bandwidth: 1GB/s, vector_rate: 1GFLOPS}\n  dimensions:\n"
        "    - {name: switch, kind: Switch, size: 4, latency: 1us, efficiency: 0.5, bandwidth: " +
        bandwidth +
        ",\n       protocols: [{name: LL, launch: 1us, step: 100ns, share: 0.25},\n"
        "                   {name: Simple, launch: 11us, step: 200ns}]}\ncollectives: {measured: " +
        (measured ? "true" : "false") + "}\n";
    return in_seconds(run_collective(read_machine_study(Config::parse(text, "m.yaml", {})),
                                     CollectiveKind::all_reduce, Bytes(bytes))
                          .result.iteration);
  };
  // Of 4 ranks a ring takes 6 steps and sends 1.5 times the bytes.
  const auto beyond = [&](std::int64_t bytes) {
    return time("100GB/s", true, bytes) - time("50GB/s", false, bytes);
  };
  EXPECT_NEAR(beyond(4096), 1e-6 + 6 * 1e-7 + 1.5 * 4096 * 3 / 50e9, 1e-11);
  EXPECT_NEAR(beyond(1 << 24), 11e-6 + 6 * 2e-7, 1e-11);
  EXPECT_GT(time("100GB/s", true, 4096), time("100GB/s", false, 4096));
}

// A GPU of a DGX-1 has six cables, two of which join it to GPU 3, and one to GPU 1.
TEST(RunCollective, MembersJoinedByCablesAttainTheirRings) {
  const auto bus = [](const std::string& plan, std::int64_t ranks) {
    const Study study = read_machine_study(Config::parse(
        "machine: dgx-1\ncollectives: {measured: false}\nplan: {ranks: " + plan + "}\n", "m.yaml", {}));
    constexpr std::int64_t kLarge = std::int64_t{1} << 32;
    const Result result = run_collective(study, CollectiveKind::all_reduce, Bytes(kLarge)).result;
    EXPECT_EQ(result.collectives[0].limit, CollectiveLimit::bandwidth);
    EXPECT_LE(result.collectives[0].link_limit, result.iteration);
    const double seconds = in_seconds(result.iteration);
    return kLarge * bus_factor(CollectiveKind::all_reduce, ranks) / seconds / 1e9;
  };
  EXPECT_NEAR(bus("2", 2), 25, 0.1);
  EXPECT_NEAR(bus("3", 3), 50, 0.1);
  EXPECT_NEAR(bus("4", 4), 100, 0.3);
  EXPECT_NEAR(bus("5", 5), 40, 0.1) << "a chain";
  EXPECT_NEAR(bus("8", 8), 150, 1);
}

// Whoever is the root, who sends nothing or most; and always by rings, which is what cables attain.
TEST(RunCollective, EveryKindIsBoundByCables) {
  for (const std::string ranks : {"2", "4", "8"}) {
    const Study study = read_machine_study(Config::parse(
        "machine: dgx-1\ncollectives: {measured: false}\nplan: {ranks: " + ranks + "}\n", "m.yaml", {}));
    constexpr std::int64_t kLarge = std::int64_t{1} << 30;
    const auto run_of = [&](CollectiveKind kind) {
      return run_collective(study, kind, Bytes(kLarge)).result;
    };
    const double broadcast = in_seconds(run_of(CollectiveKind::broadcast).iteration);
    EXPECT_NEAR(in_seconds(run_of(CollectiveKind::reduce).iteration) / broadcast, 1, 0.01) << ranks;
    const Result small = run_collective(study, CollectiveKind::all_reduce, Bytes(1024)).result;
    EXPECT_TRUE(small.collectives[0].algorithm.starts_with("ring")) << small.collectives[0].algorithm;
  }
}

// Eight members: small broadcasts and reductions go by a tree, large ones by a ring.
TEST(RunCollective, BroadcastsAreNoSlowerThanByRingOrTree) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    for (const std::int64_t bytes : {std::int64_t{4096}, std::int64_t{1} << 30}) {
      const auto time = [&](const std::string& algorithm) {
        const Study study = read_machine_study(
            Config::parse("machine: dgx-a100\nplan: {ranks: 8}\n" + algorithm, "m.yaml", {}));
        return in_seconds(run_collective(study, kind, Bytes(bytes)).result.iteration);
      };
      const double ring = time("collectives: {algorithms: [ring]}\n"),
                   tree = time("collectives: {algorithms: [halving-doubling]}\n");
      EXPECT_LE(time(""), std::min(ring, tree) * 1.001) << name_of(kind) << " " << bytes;
      EXPECT_EQ(ring<tree, bytes> 4096);
    }
  }
}

Study servers(const std::string& machine, std::int64_t ranks) {
  return read_machine_study(Config::parse(
      "machine: " + machine + "\nplan: {ranks: " + std::to_string(ranks) + "}\n", "m.yaml", {}));
}

// Rings, one per NIC, share what goes between nodes, whichever kind it is.
TEST(RunCollective, BroadcastsBetweenNodesTakeAllNics) {
  constexpr Bytes kLarge{std::int64_t{1} << 30};
  int number = 0;
  for (const std::string machine : {"dgx-h100", "dgx-a100", "dgx-b200"}) {
    for (const std::int64_t nodes : {2, 3, 8}) {
      if (number++ % kCaseStep != 0) continue;
      const auto time = [&](CollectiveKind kind, std::int64_t ranks) {
        return in_seconds(run_collective(servers(machine, ranks), kind, kLarge).result.iteration);
      };
      const double all_reduce = time(CollectiveKind::all_reduce, 8 * nodes),
                   some = time(CollectiveKind::all_reduce, 8 * nodes - 4);
      for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
        // The library has NVSwitches add for all-reduces, but not for these.
        EXPECT_LT(time(kind, 8 * nodes), 1.05 * all_reduce) << machine << nodes << name_of(kind);
        EXPECT_LT(time(kind, 8 * nodes - 4), 1.05 * some) << machine << nodes << name_of(kind);
      }
    }
  }
}

TEST(RunCollective, ABarrierIsTheLibrarysSmallestAllReduce) {
  for (const std::string machine : {"dgx-h100", "dgx-1", "mi300x"}) {
    const Study study = servers(machine, 16);
    const auto seconds = [&](CollectiveKind kind, Bytes bytes) {
      return in_seconds(run_collective(study, kind, bytes).result.iteration);
    };
    // In one chunk, not in four of a byte.
    EXPECT_NEAR(seconds(CollectiveKind::barrier, Bytes(0)), seconds(CollectiveKind::all_reduce, Bytes(4)),
                1e-9)
        << machine;
  }
}

TEST(RunCollective, TheLastNodeMayTakePartInPart) {
  const armilla::Run run =
      run_collective(servers("dgx-h100", 76), CollectiveKind::all_reduce, Bytes(1 << 20));
  EXPECT_EQ(run.result.collectives.front().group_size, 76);
  EXPECT_EQ(run.notes.front(), "4 devices of the last nvswitch group take no part");
  // What is unverified is of the rail, which one node does not have.
  EXPECT_EQ(run_collective(servers("dgx-h100", 3), CollectiveKind::barrier, Bytes(0)).notes,
            std::vector<std::string>{});
  EXPECT_EQ(run_collective(servers("dgx-h100", 16), CollectiveKind::barrier, Bytes(0)).notes,
            std::vector<std::string>{std::string(kUnverified)});
  EXPECT_EQ(run_collective(servers("dgx-h100", 9), CollectiveKind::broadcast, Bytes(8)).notes.front(),
            "7 devices of the last nvswitch group take no part");
  const Study box = read_machine_study(Config::parse(
      "machine: {name: box, device: h100-sxm, dimensions: [{name: a, kind: Switch, size: 4, bandwidth: "
      "10GB/s, latency: 1us}, {name: b, kind: Switch, size: 2, bandwidth: 10GB/s, latency: 1us}]}\n"
      "plan: {ranks: 9}\n",
      "m.yaml", {}));
  EXPECT_TRUE(error_of([&] {
                run_collective(box, CollectiveKind::all_gather, Bytes(8));
              }).find("9 ranks do not fit machine 'box' of 8 devices") != std::string::npos);
  EXPECT_THROW(run_collective(servers("tpu-v4", 65), CollectiveKind::all_gather, Bytes(1 << 20)), Error);
}

// On bridged pairs and among four, NCCL's protocol leaves 0.7 of the links.
TEST(RunCollective, AProtocolsShareIsNotLatency) {
  const auto limit = [](std::int64_t bytes) {
    return run_collective(servers("azure-nc96", 4), CollectiveKind::all_reduce, Bytes(bytes))
        .result.collectives.front()
        .limit;
  };
  EXPECT_EQ(limit(1024), CollectiveLimit::latency);
  EXPECT_EQ(limit(std::int64_t{1} << 30), CollectiveLimit::algorithm);
}

TEST(RunCollective, RefusesSectionsOfAModel) {
  EXPECT_EQ(
      error_of([] { ring("model: resnet18\n"); }),
      "ring.yaml:3:1: model: unknown key 'model'\n  hint: known: collectives, compute, machine, network, "
      "plan, what_if");
}

}  // namespace
}  // namespace armilla
