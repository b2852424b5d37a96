#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/cases_testing.h"
#include "base/error.h"
#include "read/study.h"
#include "study/run.h"
#include "study/search.h"
#include "study/search/space.h"

namespace armilla {
namespace {

SearchRequest search_of(const std::string& text) {
  SearchRequest request;
  request.axes = search_axes(Config::parse(text, "study.yaml", {}, expand_name));
  request.read = [text](const std::vector<Override>& settings) {
    return read_study(Config::parse(text, "study.yaml", settings, expand_name));
  };
  return request;
}

// What `armilla run` does by itself is in the default space, so the best plan is never slower.
TEST(SearchDefaults, BeatWhatRunDoes) {
  struct Case {
    const char *model, *machine;
    int ranks, batch;
  };
  constexpr Case kCases[] = {{"resnet50", "dgx-h100", 8, 256},     {"resnet18", "dgx-a100", 6, 72},
                             {"vgg11", "dgx-a100", 4, 512},        {"mobilenet_v2", "dgx-h100", 2, 48},
                             {"squeezenet", "dgx-a100", 8, 8},     {"vit_b_16", "dgx-h100", 4, 128},
                             {"bert-large", "dgx-a100", 4, 96},    {"gpt2-345m", "dgx-h100", 8, 192},
                             {"t5-large", "dgx-a100", 8, 64},      {"llama3-8b", "dgx-h100", 8, 8},
                             {"mixtral-8x7b", "dgx-h100", 16, 16}, {"dlrm", "dgx-a100", 8, 4096},
                             {"mamba-2.8b", "dgx-a100", 4, 12}};
  int number = 0;
  for (const Case& of : kCases) {
    for (const char* const fixed : {"", "  tensor: 2\n"}) {
      if (number++ % kCaseStep != 0) continue;
      const std::string text = std::string("model: {name: ") + of.model + "}\nmachine: " + of.machine +
                               "\nplan:\n  ranks: " + std::to_string(of.ranks) +
                               "\n  global_batch: " + std::to_string(of.batch) + "\n" + fixed;
      SearchRequest request = search_of(text);
      request.threads = 1;
      request.top = 1;
      std::optional<armilla::Run> run;
      try {
        run = run_study(prepare_study(request.read({})));
      } catch (const Error&) {
        continue;  // not legal
      }
      if (!run->memory.fits()) continue;
      const SearchResult found = search_plans(request);
      ASSERT_FALSE(found.ranking.empty()) << text;
      EXPECT_LE(found.ranking.front().iteration, run->result.iteration) << text;
    }
  }
}

std::vector<std::string> values_tried(const std::string& key, const std::string& study) {
  const SearchSpace space(search_of(study));
  const auto axis = std::ranges::find(space.axes(), key, &SearchAxis::key);
  return axis == space.axes().end() ? std::vector<std::string>() : axis->values;
}

TEST(SearchDefaults, TensorParallelismStaysWithinTheNode) {
  const auto degrees = [](const std::string& machine, int ranks) {
    return values_tried("plan.tensor", "model: llama3-405b\nmachine: " + machine +
                                           "\nplan:\n  ranks: " + std::to_string(ranks) + "\n");
  };
  EXPECT_THAT(degrees("dgx-h100", 64), testing::ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(degrees("dgx-h100", 4), testing::ElementsAre("1", "2", "4"));
  // 16, 32 and 64 divide the ranks, but not a rack of 72: some groups would be in two.
  EXPECT_THAT(degrees("gb200-nvl72", 576), testing::ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(degrees("gb200-nvl72", 64), testing::ElementsAre("1", "2", "4", "8", "16", "32", "64"));
}

TEST(SearchDefaults, ExpertsAreNotExchangedBetweenPartsOfNodes) {
  const auto tried = [](const std::string& key, const std::string& machine, const std::string& plan) {
    return values_tried("plan." + key,
                        "model: deepseek-v3\nmachine: " + machine + "\nplan: {ranks: 144" + plan + "}\n");
  };
  EXPECT_THAT(tried("expert", "gb200-nvl72", ""), testing::ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(tried("expert_tensor", "gb200-nvl72", ""), testing::ElementsAre("1"));
  EXPECT_THAT(tried("expert_tensor", "gb200-nvl72", ", expert: 4"), testing::ElementsAre("1", "2"));
  EXPECT_THAT(tried("expert_tensor", "gb200-nvl72", ", expert: 16"), testing::ElementsAre("1"));
  EXPECT_THAT(tried("expert", "gb200-nvl72", ", expert: [8, 16]"), testing::ElementsAre("8", "16"));
  EXPECT_THAT(tried("expert", "gb200-nvl72", ", expert: any"), testing::Contains("16"));
  EXPECT_THAT(tried("expert", "dgx-h100", ""), testing::ElementsAre("1", "2", "4", "8", "16"));
  EXPECT_THAT(tried("expert_tensor", "dgx-h100", ""), testing::ElementsAre("1", "2", "4", "8"));
}

TEST(SearchDefaults, ASearchSaysWhyItTakesLong) {
  const auto notes = [](const std::string& tensor) {
    return search_plans(
               search_of("model: gpt2-124m\n"
                         "machine: {name: m, device: h100-sxm, dimensions: [{kind: Switch, size: 6, latency: "
                         "1us, bandwidth: "
                         "100GB/s}, {kind: Switch, size: 2, latency: 1us, bandwidth: 10GB/s}]}\n"
                         "plan: {ranks: 12, global_batch: 12, micro_batch: 1, pipeline: 1, recompute: none, "
                         "zero: 0, sequence_parallel: false, tensor: " +
                         tensor + "}\n"))
        .notes;
  };
  EXPECT_THAT(notes("[2, 6]"), testing::Not(testing::Contains(testing::HasSubstr("divide a node"))));
  EXPECT_THAT(
      notes("[2, 4]"),
      testing::Contains("1 of the 2 plans simulated has groups that do not divide a node, such as of 4 "
                        "ranks in nodes of 6: most ranks are then played one by one, which takes long; "
                        "degrees that divide the node, or a smaller machine.dimensions.0.size, avoid that"));
}

TEST(SearchDefaults, LoadsOfExpertsThatThereAreNotLeaveBoundsAsTheyAre) {
  const std::string text = "model: gpt2-124m\nmachine: dgx-h100\nplan: {ranks: 4, global_batch: 8";
  const SearchResult even = search_plans(search_of(text + "}\n"));
  const SearchResult loaded = search_plans(search_of(text + ", expert_load: zipf}\n"));
  EXPECT_GT(even.space.bounded, 0);
  EXPECT_EQ(loaded.space.bounded, even.space.bounded);
  EXPECT_EQ(loaded.ranking.front().iteration, even.ranking.front().iteration);
}

TEST(SearchDefaults, AnyPartsAreNoneAndThoseOfTheModel) {
  const auto parts = [](const std::string& model) {
    return values_tried(
        "plan.recompute_modules",
        "model: " + model + "\nmachine: dgx-h100\nplan:\n  ranks: 8\n  recompute_modules: any\n");
  };
  EXPECT_THAT(parts("gpt2-124m"), testing::ElementsAre("none", "core_attn", "mlp"));
  EXPECT_THAT(parts("mixtral-8x7b"),
              testing::ElementsAre("none", "core_attn", "layernorm", "moe", "moe_act"));
  EXPECT_THAT(parts("resnet18"), testing::ElementsAre("none"));
  const SearchResult found =
      search_plans(search_of("model: gpt2-124m\nmachine: dgx-h100\n"
                             "plan: {ranks: 1, global_batch: 2, micro_batch: 1, recompute_modules: any}\n"));
  ASSERT_EQ(found.ranking.size(), 3U);
  EXPECT_EQ(found.ranking.front().plan.recompute, Recompute::none);
}

TEST(SearchDefaults, TryNothingTwiceWhereThereIsNoAttention) {
  const std::string text = "model: resnet18\nmachine: dgx-h100\nplan:\n  ranks: 4\n  zero: 0\n  tensor: 1\n";
  const SearchResult found = search_plans(search_of(text));
  EXPECT_EQ(found.space.refusals.at("equal").plans, 1);
  ASSERT_EQ(found.ranking.size(), 2U);
  EXPECT_EQ(found.ranking[0].plan.recompute, Recompute::none);
  EXPECT_EQ(found.ranking[1].plan.recompute, Recompute::full);
}

// A hint names nothing that was tried.
TEST(SearchDefaults, TellWhatIsLeftToTryWhereNothingFits) {
  const std::string text =
      "model: {name: gpt2-345m}\nmachine: dgx-a100\nplan:\n  ranks: 2\n  global_batch: 8\n";
  const auto hint = [&](const std::string& more) {
    SearchRequest request = search_of(text + more);
    request.threads = 1;
    request.memory_share = 1e-6;
    return untried_room(search_plans(request));
  };
  EXPECT_EQ(hint(""), "try plan.zero any, plan.offload any or more ranks");
  EXPECT_EQ(hint("  zero: any\n  recompute: none\n  micro_batch: 2\n"),
            "try plan.recompute any, plan.offload any, smaller micro-batches or more ranks");
  EXPECT_EQ(hint("  zero: any\n  offload: any\n  tensor: 1\n"), "try more ranks");
}

std::string refusal(const std::string& plan) {
  SearchRequest request = search_of("model: {name: gpt2-345m}\nmachine: dgx-a100\nplan:\n" + plan);
  request.threads = 1;
  return main_refusal(search_plans(request));
}

// Where what the user gave is refused however the rest is chosen, the hint is about that, not about what most
// plans of the space are refused for.
TEST(SearchDefaults, TellWhatARunSaysOfWhatWasGiven) {
  EXPECT_THAT(refusal("  ranks: 16\n  global_batch: 4\n  pipeline: [1]\n  tensor: [1]\n"),
              testing::HasSubstr("cannot be shared equally by 16 ranks"));
  // What divides the ranks among degrees that the search varies is not what stands in the way.
  EXPECT_THAT(refusal("  ranks: 8\n  global_batch: 7\n  data: 2\n"),
              testing::HasSubstr("plan.global_batch 7 cannot be shared equally by plan.data 2"));
  EXPECT_THAT(refusal("  ranks: 8\n  global_batch: 8\n  data: 4\n  micro_batch: 5\n"),
              testing::HasSubstr("plan.micro_batch 5 does not divide the batch of 2 per replica"));
  EXPECT_THAT(refusal("  ranks: 32\n  global_batch: 32\n  tensor: [32]\n"),
              testing::HasSubstr("attention heads 16"));
  EXPECT_THAT(refusal("  ranks: 48\n  global_batch: 48\n  pipeline: [48]\n"),
              testing::HasSubstr("for a model of 24 blocks"));
  EXPECT_THAT(refusal("  ranks: 8\n  global_batch: 32\n  expert_tensor: [2]\n"),
              testing::HasSubstr("for a model without experts"));
}

// Where a run would be refused for what the search varies, what could be in place of each thing
// that is fixed.
TEST(SearchDefaults, TellWhatCouldBeWhereDefaultsAreNotTheReason) {
  EXPECT_EQ(refusal("  ranks: 16\n  global_batch: 16\n  virtual_stages: 16\n"),
            "the value of plan.virtual_stages (1, 2, 3, 4, 6, 8 or 12 would do)");
  EXPECT_EQ(refusal("  ranks: 16\n  global_batch: 16\n  hybrid_shard: 3\n"),
            "the value of plan.hybrid_shard (0, 1, 2, 4, 8 or 16 would do)");
  EXPECT_EQ(refusal("  ranks: 16\n  global_batch: 64\n  micro_batch: 48\n"),
            "the value of plan.micro_batch (1, 2, 4, 8, 16, 32 or 64 would do)");
  EXPECT_THAT(
      refusal("  ranks: 8\n  global_batch: 16\n  schedule: interleaved\n  virtual_stages: 1\n"),
      testing::MatchesRegex("the value of plan.virtual_stages \\(2.* would do\\), or that of plan.schedule "
                            "\\(gpipe.* would do\\)"));
  EXPECT_THAT(refusal("  ranks: 13\n  global_batch: 64\n"),
              testing::HasSubstr("13 ranks do not fill whole groups of 8"));
}

// A list of parts is one value.
TEST(SearchDefaults, ListsOfPartsDoNotVary) {
  const SearchRequest request = search_of(
      "model: {name: gpt2-345m}\nmachine: dgx-a100\nplan:\n  ranks: 2\n  global_batch: 8\n  tensor: [1, 2]\n"
      "  fused_elementwise: [norm, rotary]\n  wide_modules: [mlp, attention]\n");
  const Plan plan = request.read({"plan.tensor=1"}).request.plan;
  EXPECT_EQ(plan.fused_elementwise, (Parts{Part::norm, Part::rotary}));
  EXPECT_EQ(plan.wide_modules, (Parts{Part::mlp, Part::attention}));
  ASSERT_EQ(request.axes.size(), 1U);
  EXPECT_EQ(request.axes[0].key, "plan.tensor");
}

TEST(SearchDefaults, TellWhatHasNoEffect) {
  SearchRequest request = search_of(
      "model: {name: gpt2-345m}\nmachine: dgx-a100\nplan:\n  ranks: 2\n  global_batch: 8\n  tensor: [1, 2]\n"
      "  pipeline: [1]\n  recompute: [none]\n  zero: [0]\n  micro_batch: [4]\n  expert_load: uniform\n");
  EXPECT_THAT(
      search_plans(request).notes,
      testing::ElementsAre(testing::HasSubstr("expert_load has no effect: the model has no experts")));
}

// Also of what a framework holds only as long as there is room.
TEST(SearchDefaults, RankWithTheMemoryOfARun) {
  const std::string text =
      "model: {name: bert-large}\nmachine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 32\n"
      "  framework: pytorch\n  zero: 1\n  tensor: [1, 2]\n  pipeline: [1]\n  recompute: [none, full]\n";
  SearchRequest request = search_of(text);
  request.threads = 1;
  request.memory_share = 0.12;
  const SearchResult found = search_plans(request);
  ASSERT_FALSE(found.ranking.empty());
  for (const PlanOutcome& plan : found.ranking) {
    const armilla::Run played = run_study(prepare_study(request.read(settings_of(found, plan))));
    EXPECT_EQ(plan.memory.needed(), played.memory.needed());
    EXPECT_EQ(plan.memory.peak(), played.memory.peak());
    EXPECT_LE(plan.memory.needed().value, 0.12 * static_cast<double>(plan.memory.capacity.value));
  }
}

}  // namespace
}  // namespace armilla
