// Searches over small models of their own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/cases_testing.h"
#include "base/folder_testing.h"
#include "ir/search.h"
#include "read/study.h"
#include "study/search.h"

namespace armilla {

class SearchFixture : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = path_for_test("search");
    std::filesystem::create_directories(folder_);
    write("gpt.yaml", "family: gpt\nlayers: 8\nhidden: 64\nheads: 4\nvocabulary: 512\nsequence: 64\n");
    write("wide.yaml", "family: gpt\nlayers: 8\nhidden: 4096\nheads: 32\nvocabulary: 4096\nsequence: 1024\n");
    write("tables.yaml",
          "family: dlrm\ndense_features: 13\nembedding: 64\ntables: [2000000, 30, 500000, 100000, 7]\n"
          "lookups: 2\nbottom: [128, 64]\ntop: [256, 1]\n");
    write("moe.yaml",
          "family: mixtral\nlayers: 4\nhidden: 64\nheads: 4\nkv_heads: 2\nvocabulary: 512\nsequence: "
          "64\nexperts: {count: 4, active: 2, feed_forward: 96}\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A search of the study in `text`, whose model is "gpt", "wide", "moe" or "tables".
  SearchRequest request(const std::string& model, const std::string& rest) const {
    const std::string text = "model: " + (folder_ / (model + ".yaml")).string() + "\n" + rest;
    SearchRequest request;
    request.axes = search_axes(Config::parse(text, "study.yaml", {}, expand_name));
    request.read = [text](const std::vector<Override>& settings) {
      return read_study(Config::parse(text, "study.yaml", settings, expand_name));
    };
    request.threads = 1;
    return request;
  }

  // Of two plans that differ in their micro-batches: the faster one needs more memory.
  SearchRequest fast_or_small() const {
    return request("wide",
                   "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 64\n  tensor: 1\n  pipeline: 1\n"
                   "  micro_batch: [1, 8]\n  recompute: none\n  zero: 0\n  virtual_stages: 1\n"
                   "  sequence_parallel: false\n");
  }

  std::filesystem::path folder_;

 private:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << "name: small\nsource: test\n" << text;
  }
};

// What tells plans apart, and how long an iteration takes.
inline std::vector<std::string> texts(const std::vector<PlanOutcome>& plans) {
  std::vector<std::string> result;
  for (const PlanOutcome& plan : plans) {
    std::string text;
    for (const std::string& value : plan.values) text += value + " ";
    result.push_back(text + std::to_string(plan.iteration.value));
  }
  return result;
}

// Every point is counted once.
inline void expect_sum(const SearchSpaceUse& use) {
  EXPECT_EQ(use.refused + use.bounded + use.simulated + use.not_looked_at, use.points);
  std::int64_t refused = 0;
  for (const auto& [reason, refusal] : use.refusals) refused += refusal.plans;
  EXPECT_EQ(refused, use.refused);
}

// Where sanitizers slow the program down tenfold, the plans that take least to play.
inline const std::string kSmallSpace =
    std::string(
        "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 16\n  zero: [0, 3]\n"
        "  schedule: [1f1b, zb-h1]\n  recompute: [none, full]\n  micro_batch: ") +
    (kCaseStep == 1 ? "[1, 2]\n" : "4\n");

}  // namespace armilla
