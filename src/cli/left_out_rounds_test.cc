#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/cases_testing.h"
#include "cli/cli_testing.h"

namespace armilla {
namespace {

using LeftOutRounds = InEmptyFolder;

// What a run with these flags reports, but for what tells how it was played.
nlohmann::json reported(const std::string& flags) {
  const Outcome outcome = run(words(flags + " --quiet --json run.json"));
  EXPECT_EQ(outcome.code, 0) << flags << '\n' << outcome.err;
  if (outcome.code != 0) return {};
  std::ifstream file("run.json");
  nlohmann::json document = nlohmann::json::parse(file);
  document.at("simulation").erase("events");
  // Of sums in another order; the times that they are made of are equal.
  const auto round = [](nlohmann::json& share) { share = std::round(share.get<double>() * 1e9); };
  for (nlohmann::json& sums : document.at("collectives")) {
    for (nlohmann::json* const of : {&sums, &sums.at("per_rank")}) round(of->at("link_share"));
  }
  for (nlohmann::json& sums : document.at("messages")) round(sums.at("per_rank").at("link_share"));
  return document;
}

// A timeline has every round, so that all are played.
TEST_F(LeftOutRounds, AreReportedAsIfTheyWerePlayed) {
  const std::string job =
      "run gpt2-345m --machine dgx-a100 --ranks 8 --tp 2 --pp 4 --micro-batch 1 --micro-batches 32 ";
  int number = 0;
  for (const std::string plan :
       {"--schedule 1f1b", "--schedule gpipe", "--vpp 2 --schedule interleaved", "--schedule zb-h1",
        "--schedule dualpipe", "--vpp 2 --schedule combined-1f1b", "--schedule pipedream-2bw",
        "--schedule 1f1b --offload activations", "--schedule gpipe --recompute full"}) {
    if (number++ % kCaseStep != 0) continue;
    const nlohmann::json some = reported(job + plan),
                         all = reported(job + plan + " --trace all.pftrace --timeline-ranks 0");
    ASSERT_FALSE(some.is_null());
    EXPECT_GT(some.at("collective_calls").size(), 2000U) << plan;
    EXPECT_GT(some.at("memory_over_time").size(), 100U) << plan;
    // Without a mismatch printed: the documents are megabytes.
    EXPECT_TRUE(some == all) << plan << '\n' << nlohmann::json::diff(some, all).dump().substr(0, 1000);
  }
}

}  // namespace
}  // namespace armilla
