// Real jobs, folded and with every rank: models x plans x machines x networks x what-ifs. sim/ has the same
// property for random graphs (fold_property_test.cc) and for ASTRA-sim's rules (astra_fold_test.cc).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/cases_testing.h"
#include "base/error.h"
#include "base/folder_testing.h"
#include "ir/derived/communication.h"
#include "ir/derived/metrics.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

class FoldAgreement : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = path_for_test("fold_agreement");
    std::filesystem::create_directories(folder_);
    write("gpt.yaml", "family: gpt\nlayers: 8\nhidden: 64\nheads: 4\nvocabulary: 512\nsequence: 64\n");
    write("llama.yaml",
          "family: llama\nlayers: 8\nhidden: 64\nheads: 4\nkv_heads: 2\nfeed_forward: 128\nvocabulary: "
          "512\nsequence: 64\n");
    write("moe.yaml",
          "family: mixtral\nlayers: 4\nhidden: 64\nheads: 4\nkv_heads: 2\nvocabulary: 512\nsequence: "
          "64\nexperts: {count: 4, active: 2, feed_forward: 96}\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << "name: small\nsource: test\n" << text;
  }

  std::string random_study(std::mt19937& random,
                           std::initializer_list<std::string> micro_batches = {"4", "8"},
                           const std::string& more = {}) const {
    const auto one_of = [&](std::initializer_list<std::string> choices) {
      return choices.begin()[std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(random)];
    };
    const std::string model = one_of({"gpt", "llama", "moe"});
    const std::string schedule = one_of(
        {"gpipe", "1f1b", "interleaved", "combined-1f1b", "zb-h1", "zb-v", "dualpipe", "pipedream-2bw"});
    std::string text =
        "model: " + (folder_ / (model + ".yaml")).string() +
        "\nmachine: " + one_of({"dgx-h100", "tpu-v4", "ring"}) + "\nnetwork: " +
        one_of({"analytical", "analytical:switching=store-and-forward", "analytical-unshared"}) +
        "\nplan:\n  ranks: " + one_of({"4", "8", "16"}) + "\n  tensor: " + one_of({"1", "2", "4"}) +
        "\n  pipeline: " + one_of({"1", "2", "4"}) + "\n  context: " + one_of({"1", "1", "2"}) +
        "\n  schedule: " + schedule + "\n  micro_batch: 1\n" + "  micro_batches: " + one_of(micro_batches) +
        "\n  zero: " + one_of({"0", "1", "2", "3"}) +
        "\n  recompute: " + one_of({"none", "selective", "full"}) +
        "\n  sequence_parallel: " + one_of({"true", "false"}) +
        "\n  overlap_tensor: " + one_of({"true", "false"}) +
        "\n  context_method: " + one_of({"ring", "all-to-all"}) +
        one_of({"\n", "\n  host: compiled\n", "\n  issue_time: 3us\n"}) + more;
    if (schedule == "interleaved") text += "  virtual_stages: 2\n";
    if (model == "moe")
      text += "  expert: " + one_of({"1", "2"}) + "\n  expert_load: " + one_of({"uniform", "zipf"}) +
              "\n  expert_skew: 0.6\n";
    const std::string machine = "machine: ring\n";
    if (const std::size_t at = text.find(machine); at != std::string::npos) {
      text.replace(
          at, machine.size(),
          "machine: {name: ring, elastic: true, device: a100-80gb-sxm, dimensions: [{name: ring, kind: "
          "Ring, size: 8, bandwidth: 30GB/s, latency: 700ns}]}\n");
    }
    const std::string what = one_of({"", "", "ranks: [{ranks: 1, time: 1.25}]",
                                     "links: [{dimension: nvswitch, ranks: 2, bandwidth: 0.5}]"});
    const bool has_dimension =
        what.find("nvswitch") == std::string::npos || text.find("dgx") != std::string::npos;
    if (!what.empty() && has_dimension) text += "what_if: {" + what + "}\n";
    // What libraries add to a schedule is added once, whether it was played or looked up.
    return text + one_of({"", "collectives: {measured: false}\n"});
  }

  std::filesystem::path folder_;
};

TEST_F(FoldAgreement, EveryRankFaresTheSame) {
  std::int64_t compared = 0, folded = 0;
  for (unsigned seed = 0; seed < 150; seed += kCaseStep) {
    std::mt19937 random(seed);
    const std::string text = random_study(random);
    SCOPED_TRACE(text);
    Study study;
    armilla::Run one;
    try {
      study = prepare_study(read_study(Config::parse(text, "study.yaml", {})));
      one = run_study(study);
    } catch (const Error&) {
      continue;  // not every combination is legal; what is refused is tested elsewhere
    }
    const auto all = run_study(study, {.fold = false, .every_message = seed % 2 == 1});
    ++compared;
    ASSERT_EQ(one.result.iteration, all.result.iteration);
    ASSERT_EQ(one.simulated, all.simulated);
    for (std::size_t rank = 0; rank < all.result.class_of.size(); ++rank) {
      const RankClass& a = one.result.classes[one.result.class_of[rank]];
      const RankClass& b = all.result.classes[all.result.class_of[rank]];
      ASSERT_EQ(a.finish, b.finish) << rank;
      ASSERT_EQ(a.compute, b.compute) << rank;
      ASSERT_EQ(a.communication, b.communication) << rank;
      ASSERT_EQ(a.exposed_communication, b.exposed_communication) << rank;
    }
    folded += one.result.messages < all.result.messages ? 1 : 0;
  }
  // Else the loop would have compared nothing, or runs with themselves.
  EXPECT_GT(compared, 35 / kCaseStep);
  EXPECT_GT(folded, 15 / kCaseStep);
}

void expect_same_programs(const Graph& graph, const Graph& whole) {
  ASSERT_EQ(graph.programs.size(), whole.programs.size());
  for (std::size_t p = 0; p < graph.programs.size(); ++p) {
    const Program program = written_out(graph.programs[p]);
    const Program& other = whole.programs[p];
    ASSERT_EQ(program.issue_time, other.issue_time) << p;
    ASSERT_EQ(program.kind, other.kind) << p;
    ASSERT_EQ(program.phase, other.phase) << p;
    ASSERT_EQ(program.name, other.name) << p;
    ASSERT_EQ(program.layer, other.layer) << p;
    ASSERT_EQ(program.payload, other.payload) << p;
    ASSERT_EQ(program.lane, other.lane) << p;
    ASSERT_EQ(program.first_dependence, other.first_dependence) << p;
    ASSERT_EQ(program.dependence, other.dependence) << p;
  }
}

// Loops stand for what every micro-batch would have been, and leaving out what they do again changes nothing:
// programs, memory, times of ranks, links.
TEST_F(FoldAgreement, MicroBatchesThatRepeatFareTheSame) {
  std::int64_t compared = 0, with_loops = 0, left_out = 0;
  for (unsigned seed = 0; seed < 70; seed += kCaseStep) {
    std::mt19937 random(seed);
    const std::string more = seed % 5 == 0 ? "  offload_activations: true\n"
                             : seed % 5 == 1
                                 ? "  overlap_pipeline: false\n  overlap: false\n  scatter_gather: true\n"
                             : seed % 5 == 2 ? "  reshard: false\n  prefetch: false\n"
                                             : "";
    const std::string text = random_study(random, {"16", "23", "40", "64"}, more);
    SCOPED_TRACE(text);
    Study study;
    armilla::Run one;
    try {
      study = prepare_study(read_study(Config::parse(text, "study.yaml", {})));
      one = run_study(study, {.intervals = false});
    } catch (const Error&) {
      continue;  // as above
    }
    // Without loops.
    const auto all = run_study(study, {.fold = seed % 3 != 0, .fold_time = false, .intervals = false});
    ++compared;
    const bool loops = !one.graph.programs.front().loops.empty();
    with_loops += loops ? 1 : 0;
    left_out += one.result.classes.front().repeated.empty() ? 0 : 1;
    if (loops) {
      validate_graph(one.graph);
      expect_same_programs(one.graph, all.graph);
    }
    ASSERT_EQ(one.roles.size(), all.roles.size());
    for (std::size_t role = 0; role < one.roles.size(); ++role) {
      ASSERT_EQ(one.roles[role].use.peak(), all.roles[role].use.peak());
      ASSERT_EQ(one.roles[role].most_in_flight, all.roles[role].most_in_flight);
    }
    ASSERT_EQ(one.result.iteration, all.result.iteration);
    for (std::size_t rank = 0; rank < all.result.class_of.size(); ++rank) {
      const RankClass& a = one.result.classes[one.result.class_of[rank]];
      const RankClass& b = all.result.classes[all.result.class_of[rank]];
      ASSERT_EQ(a.finish, b.finish) << rank;
      ASSERT_EQ(a.compute, b.compute) << rank;
      ASSERT_EQ(a.communication, b.communication) << rank;
      ASSERT_EQ(a.exposed_communication, b.exposed_communication) << rank;
      ASSERT_EQ(a.host_waits, b.host_waits) << rank;
    }
    const std::vector<CollectiveSummary> ours = summarize_collectives(one),
                                         theirs = summarize_collectives(all);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].count, theirs[i].count);
      ASSERT_EQ(ours[i].time, theirs[i].time);
      ASSERT_EQ(ours[i].per_rank.most_time, theirs[i].per_rank.most_time);
    }
    ASSERT_EQ(hardware_flops(one), hardware_flops(all));
  }
  EXPECT_GT(compared, 20 / kCaseStep);
  EXPECT_GT(with_loops, 15 / kCaseStep);
  EXPECT_GT(left_out, 10 / kCaseStep);
}

// Gathers and exchanges share an axis of a torus, and messages of one sender wait there for each other.
TEST_F(FoldAgreement, MicroBatchesRepeatWhereMessagesWaitForSharedRings) {
  std::string text =
      "model: " + (folder_ / "llama.yaml").string() +
      "\nmachine: {name: torus, elastic: true, device: tpu-v5p, dimensions: [{name: x, kind: Ring, size: 2, "
      "bandwidth: 10GB/s, latency: 1us}, {name: y, kind: Ring, size: 8, bandwidth: 10GB/s, latency: 1us}]}\n"
      "plan: {ranks: 16, tensor: 4, zero: 3, micro_batch: 1, micro_batches: 40, recompute: full}\n";
  const Study study = prepare_study(read_study(Config::parse(text, "study.yaml", {})));
  const auto one = run_study(study, {.intervals = false});
  const auto all = run_study(study, {.fold_time = false, .intervals = false});
  EXPECT_FALSE(one.result.classes.front().repeated.empty());
  EXPECT_EQ(one.result.iteration, all.result.iteration);
}

}  // namespace
}  // namespace armilla
