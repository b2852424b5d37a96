#include "trace/synthetic.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_testing.h"
#include "base/source_path_testing.h"
#include "read/trace.h"
#include "trace/graph.h"

namespace armilla {
namespace {

std::vector<ChakraTrace> made(const std::string& text, bool as_chakra = false) {
  return synthesize(parse_component(text, "--synthetic"), as_chakra);
}

TEST(SyntheticTest, ReproducesThePeersFiles) {
  const std::string oracles = source_path("tests/reference/chakra/generator/");
  std::size_t compared = 0;
  for (const SyntheticInfo& info : synthetic_patterns()) {
    const std::string name(info.name);
    if (!std::filesystem::exists(oracles + name + ".0.et")) continue;
    const std::vector<ChakraTrace> traces = made(name + ":npus=2", true);
    ASSERT_EQ(traces.size(), 2U);
    for (std::size_t rank = 0; rank < 2; ++rank, ++compared) {
      const ChakraTrace theirs = read_chakra_file(oracles + name + "." + std::to_string(rank) + ".et");
      EXPECT_TRUE(same_contents(traces[rank], theirs)) << name << " " << rank;
    }
  }
  EXPECT_EQ(compared, 28U);
}

// No errors and no warnings: everything matches and nothing waits for ever.
TEST(SyntheticTest, EveryPatternIsASoundJob) {
  for (const SyntheticInfo& info : synthetic_patterns()) {
    const std::string name(info.name);
    const bool pipeline = name == "gpipe" || name == "1f1b";
    for (const char* size : {"2", "5", "8"}) {
      const std::vector<ChakraTrace> traces = made(name + (pipeline ? ":stages=" : ":npus=") + size);
      TraceCheckOptions options;
      options.dimension_sizes = {static_cast<std::int64_t>(traces.size())};
      TraceChecker checker(options);
      for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(traces.size()); ++rank)
        checker.add_ranks(std::span(&rank, 1), traces[static_cast<std::size_t>(rank)]);
      for (const TraceProblem& problem : checker.finish())
        ADD_FAILURE() << name << " of " << size << ": " << problem.where << ": " << problem.message;
    }
  }
}

std::vector<std::string> computations(const ChakraTrace& trace) {
  std::vector<std::string> names;
  for (std::size_t node = 0; node < trace.size(); ++node)
    if (trace.type[node] == ChakraNodeType::compute) names.emplace_back(trace.name_of_node(node).substr(10));
  return names;
}

TEST(SyntheticTest, PipelinesRunInTheirOrder) {
  EXPECT_EQ(computations(made("1f1b:stages=2,micro-batches=3")[0]),
            (std::vector<std::string>{"forward_0", "forward_1", "backward_0", "forward_2", "backward_1",
                                      "backward_2"}));
  EXPECT_EQ(computations(made("1f1b:stages=2,micro-batches=3")[1]),
            (std::vector<std::string>{"forward_0", "backward_0", "forward_1", "backward_1", "forward_2",
                                      "backward_2"}));
  EXPECT_EQ(computations(made("gpipe:stages=2,micro-batches=2")[0]),
            (std::vector<std::string>{"forward_0", "forward_1", "backward_1", "backward_0"}));
}

TEST(SyntheticTest, RandomJobsFollowTheirSeed) {
  const auto same = [](const std::string& a, const std::string& b) {
    return same_contents(made(a)[0], made(b)[0]);
  };
  EXPECT_TRUE(same("random:seed=5", "random:seed=5"));
  EXPECT_FALSE(same("random:seed=5", "random:seed=6"));
}

TEST(SyntheticTest, RefusesWhatCannotBeMade) {
  const auto refusal = [](const std::string& text, bool as_chakra = false) {
    return error_of([&] { made(text, as_chakra); });
  };
  EXPECT_EQ(refusal("rong"), "--synthetic: unknown synthetic pattern 'rong'\n  hint: did you mean 'ring'?");
  EXPECT_EQ(refusal("ring", true),
            "--synthetic: Chakra's generator has no pattern 'ring'\n  hint: omit --as-chakra");
  EXPECT_EQ(refusal("ring:npus=1"), "--synthetic: npus: 1 is not between 2 and 65536");
  EXPECT_EQ(refusal("ring:runtime=5ns"),
            "--synthetic: runtime: 5ns is not a whole number of microseconds\n  hint: traces count in "
            "microseconds");
  EXPECT_EQ(refusal("all-to-all:npus=5000"), "--synthetic: npus: more than 33554432 nodes");
  EXPECT_EQ(refusal("random:messages=60%,collectives=50%"),
            "--synthetic: collectives: messages and collectives are more than all events");
}

}  // namespace
}  // namespace armilla
