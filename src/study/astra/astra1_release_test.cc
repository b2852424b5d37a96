// ASTRA-sim 1.0's orders of chunks and its two releases against its own answers: builds of the
// tutorials' tag (astra-sim tutorial-asplos2023 with astra-network-analytical 4ac1ddb; that of 2022 answers
// alike) and of the final branch (07d5d19 with d27635b) on the inputs below.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "study/astra.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Astra1Release : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "armilla-release-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    request_.settings.network = (folder_ / "network.json").string();
    request_.settings.system = (folder_ / "system.txt").string();
    request_.workload = (folder_ / "workload.txt").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  // A network of `kinds` without what only the final release needs; with it when `complete`.
  void network(const std::vector<std::string>& kinds, std::int64_t links, double gigabytes, double ns,
               bool complete) {
    std::string text = "{\"dimensions-count\": " + std::to_string(kinds.size());
    const auto each = [&](const std::string& key, const auto& value) {
      text += ", \"" + key + "\": [";
      for (std::size_t d = 0; d < kinds.size(); ++d) text += (d > 0 ? ", " : "") + value(d);
      text += "]";
    };
    const auto number = [](double value) { return [value](std::size_t) { return std::to_string(value); }; };
    each("topologies-per-dim", [&](std::size_t d) { return '"' + kinds[d] + '"'; });
    each("units-count", [](std::size_t) { return std::string("4"); });
    each("links-count", [&](std::size_t) { return std::to_string(links); });
    each("link-latency", number(ns));
    each("link-bandwidth", number(gigabytes));
    if (complete) {
      text += ", \"topology-name\": \"Hierarchical\"";
      for (const char* key : {"nic-latency", "router-latency", "hbm-latency", "hbm-scale"})
        each(key, number(0));
      each("hbm-bandwidth", number(1));
    }
    write(request_.settings.network, text + "}\n");
  }

  void system(const std::string& algorithms, int splits, const std::string& inter, const std::string& intra,
              bool boost) {
    std::string text = "scheduling-policy: LIFO\nendpoint-delay: 10\nactive-chunks-per-dimension: 1\n";
    text += "preferred-dataset-splits: " + std::to_string(splits) + "\nboost-mode: " + (boost ? "1" : "0");
    for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter"})
      text += std::string("\n") + kind + "-implementation: " + algorithms;
    text += "\ncollective-optimization: localBWAware\nintra-dimension-scheduling: " + intra +
            "\ninter-dimension-scheduling: " + inter + "\n";
    write(request_.settings.system, text);
  }

  std::int64_t finish() const {
    const std::string lines = run_astra1(request_).lines;
    const std::string key = "all passes finished at time: ";
    return std::stoll(lines.substr(lines.find(key) + key.size()));
  }

  fs::path folder_;
  Astra1Request request_;
};

// An all-reduce of 1 GiB on 4 x 4 x 4 switches, in nanoseconds.
TEST_F(Astra1Release, EveryOrderOfChunksGivesThePeersTimes) {
  struct OrderRow {
    const char *inter, *intra;
    std::int64_t plain, boosted, plain_final, boosted_final;
  };
  constexpr OrderRow kRows[] = {
      {"themis", "FIFO", 13'305'689, 13'305'689, 13'305'689, 13'305'689},
      {"themis", "RG", 13'920'909, 13'862'260, 13'920'909, 13'862'260},
      {"themis", "SCF", 13'305'689, 13'393'678, 13'305'689, 13'305'689},
      {"themis", "lessRemainingPhaseFirst", 15'912'666, 15'707'520, 15'912'666, 15'707'520},
      {"themisFlex", "FIFO", 13'304'879, 13'304'879, 13'304'879, 13'304'879},
      {"themisFlex", "RG", 13'454'997, 13'454'997, 13'454'997, 13'454'997},
      {"themisFlex", "SCF", 13'708'359, 13'708'359, 16'061'582, 16'061'582},
      {"themisFlex", "lessRemainingPhaseFirst", 14'839'476, 14'839'476, 14'839'476, 14'839'476},
      {"roundRobin", "FIFO", 13'393'377, 13'393'377, 13'393'377, 13'393'377},
      {"roundRobin", "RG", 17'992'610, 17'992'610, 17'992'610, 17'992'610},
      {"roundRobin", "SCF", 17'611'771, 17'611'771, 13'393'377, 13'393'377},
      {"roundRobin", "lessRemainingPhaseFirst", 20'980'880, 20'980'880, 20'980'880, 20'980'880}};
  write(request_.workload, "MICRO\n1\nlayer -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 1073741824 1\n");
  int number = 0;
  for (const bool complete : {false, true}) {
    network({"Switch", "Switch", "Switch"}, 1, 50, 1, complete);
    for (const OrderRow& row : kRows) {
      for (const bool boost : {false, true}) {
        if (number++ % kCaseStep != 0) continue;
        SCOPED_TRACE(std::string(row.inter) + " " + row.intra + (boost ? " boost" : "") +
                     (complete ? " final" : " tutorials"));
        system("halvingDoubling_halvingDoubling_halvingDoubling", 64, row.inter, row.intra, boost);
        EXPECT_EQ(finish(), complete ? (boost ? row.boosted_final : row.plain_final)
                                     : (boost ? row.boosted : row.plain));
      }
    }
  }
}

// Counts above 2^24 are rounded by the tutorials' single precision even at a scale of 1.
TEST_F(Astra1Release, ScalesAndBlockingGradientsAreThoseOfTheRelease) {
  write(request_.workload,
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 2 0 2 "
        "checkpoint_initiates: 2 3 1\n4\n"
        "first -1 36290323 NONE 0 36290323 ALLREDUCE 8388608 36290323 ALLREDUCE 18874367 1\n"
        "second -1 9072581 ALLREDUCE 8388608 50000001 ALLGATHER 524288 9072581 ALLREDUCE 18874368 1\n"
        "third -1 70000003 NONE 0 36290323 ALLREDUCE 8388608 36290323 ALLREDUCE 40000001 1\n"
        "fourth -1 9072581 ALLREDUCE 8388608 16777217 NONE 0 33554435 ALLREDUCE 18874368 1\n");
  system("ring_ring", 4, "baseline", "FIFO", true);
  const auto times = [&] {
    std::vector<std::int64_t> all;
    for (const double scale : {1.0, 0.41, 0.7}) {
      request_.compute_scale = scale;
      all.push_back(finish());
    }
    return all;
  };
  using ::testing::ElementsAre;
  network({"Ring", "Ring"}, 2, 62, 500, false);
  EXPECT_THAT(times(), ElementsAre(485'961'512, 199'639'622, 340'374'102));
  request_.settings.tutorial_release = false;
  EXPECT_THAT(times(), ElementsAre(485'733'004, 199'411'106, 340'145'589));
  network({"Ring", "Ring"}, 2, 62, 500, true);
  request_.settings.tutorial_release.reset();
  EXPECT_THAT(times(), ElementsAre(485'733'004, 199'411'106, 340'145'589));
  request_.settings.tutorial_release = true;
  EXPECT_THAT(times(), ElementsAre(485'961'512, 199'639'622, 340'374'102));
}

TEST_F(Astra1Release, FilesThatOnlyTheTutorialsReadSaySo) {
  write(request_.workload, "MICRO\n1\nlayer -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 1048576 1\n");
  system("ring", 1, "baseline", "FIFO", false);
  network({"Ring"}, 2, 62, 500, false);
  const std::string path = request_.settings.network;
  EXPECT_THAT(run_astra1(request_).run.warnings,
              ::testing::ElementsAre(
                  path + ": absent keys are as in ASTRA-sim 1.0's tutorials: topology-name Hierarchical, "
                         "nic-latency 0, router-latency 0, hbm-latency 0, hbm-scale 0, hbm-bandwidth 1",
                  path + ": only the tutorials' release of ASTRA-sim 1.0 reads this file: its rules are "
                         "followed (--release final: those of the final release)"));
  network({"Ring"}, 2, 62, 500, true);
  EXPECT_THAT(run_astra1(request_).run.warnings, ::testing::IsEmpty());
  std::ofstream(request_.settings.system, std::ios::app) << "gap-denominator: 4\n";
  EXPECT_THAT(run_astra1(request_).run.warnings.at(0),
              HasSubstr("a key of ASTRA-sim 1.0's tutorials alone: their release is simulated"));
  request_.settings.tutorial_release = false;
  EXPECT_THAT(error_of([&] { run_astra1(request_); }),
              HasSubstr("ASTRA-sim 1.0's final release has no such key"));
}

}  // namespace
}  // namespace armilla
