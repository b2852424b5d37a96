// Every finished run of the shared ASTRA-sim 1.0 oracle: total, compute and exposed time, communication per
// phase, payload and chunk latency per dimension.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/cases_testing.h"
#include "base/mapped_file.h"
#include "base/oracle_testing.h"
#include "read/astra.h"
#include "sim/simulate.h"
#include "trace/text.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;
using Row = OracleRow;

struct Outcome {
  TextReport report;
  Result result;
};

Outcome run(const fs::path& folder, const Row& row) {
  const MappedFile file((folder / "workload" / row.at("workload")).string());
  const TextWorkload workload = read_astra_text(file.bytes(), row.at("workload"), nullptr);
  std::vector<std::string> warnings;
  Astra1Settings settings;
  settings.system = (folder / "system" / (row.at("system") + ".txt")).string();
  settings.network = (folder / "network" / (row.at("network") + ".json")).string();
  SystemLayer system = read_astra1_config(settings, warnings);
  TextGraphOptions options;
  for (const StreamDimension& dimension : system.dimensions) options.dimensions.push_back(dimension.size);
  options.passes = std::stoll(row.at("passes"));
  options.comm_scale = std::stod(row.at("comm_scale"));
  options.compute_scale = std::stod(row.at("compute_scale"));
  for (const auto& [kind, algorithms] : system.algorithms) {
    if (!algorithms.empty() && algorithms.front().flat) options.flat.insert(kind);
  }
  const TextGraph text = text_graph(workload, options);
  system.split_dimension = text.split_dimension;
  system.split_first = text.split_first;
  Outcome outcome;
  outcome.result = simulate(text.graph, system);
  outcome.report = text_report(text, outcome.result);
  return outcome;
}

std::int64_t cycles(const std::string& microseconds) {
  return std::llround(std::stod(microseconds) * 1000);
}

TEST(Astra1Oracle, EveryFinishedRun) {
  for (const auto& [folder, whole] : oracles("astra1")) {
    int compared = 0, seen = 0;
    for (const Row& row : read_oracle(folder / "runs.csv")) {
      if (row.at("rc") != "0" || row.at("total_us").empty() || seen++ % kCaseStep != 0) continue;
      SCOPED_TRACE(row.at("workload") + " " + row.at("network") + " " + row.at("system") + " passes " +
                   row.at("passes"));
      const Outcome outcome = run(folder, row);
      const TextReport& report = outcome.report;
      EXPECT_EQ(report.finish.value / 1000, cycles(row.at("total_us")));
      EXPECT_EQ(report.compute.value / 1000, cycles(row.at("compute_us")));
      EXPECT_EQ(report.exposed.value / 1000, cycles(row.at("exposed_us")));
      std::array<Time, 3> exposed, communication;
      for (const TextLayerReport& layer : report.layers) {
        for (std::size_t part = 0; part < 3; ++part) {
          exposed[part] += layer.exposed[part];
          communication[part] += layer.communication[part];
        }
      }
      EXPECT_EQ(exposed[0].value / 1000, cycles(row.at("sum_fwd_exposed_us")));
      EXPECT_EQ(exposed[1].value / 1000, cycles(row.at("sum_ig_exposed_us")));
      EXPECT_EQ(exposed[2].value / 1000, cycles(row.at("sum_wg_exposed_us")));
      EXPECT_EQ(communication[0].value / 1000, cycles(row.at("sum_fwd_comm_us")));
      EXPECT_EQ(communication[1].value / 1000, cycles(row.at("sum_ig_comm_us")));
      EXPECT_EQ(communication[2].value / 1000, cycles(row.at("sum_wg_comm_us")));
      const std::vector<std::string> payloads = split(row.at("payload_dims"), ';');
      for (std::size_t d = 0; d < payloads.size() && d < outcome.result.sent_per_dimension.size(); ++d) {
        EXPECT_NEAR(static_cast<double>(outcome.result.sent_per_dimension[d].value) / 1048576,
                    std::stod(payloads[d]), 1e-6);
      }
      ++compared;
      if (::testing::Test::HasFailure() && compared > 400) break;
    }
    EXPECT_GT(compared, (whole ? 200 : 40) / kCaseStep);
  }
}

// The rows of one collective of 1 MiB with an update of 5 cycles; those without any are in
// trace/text/text_graph_test.cc.
TEST(Astra1Oracle, EverySingleCollective) {
  const std::map<std::string, StreamAlgorithmKind> algorithms = {
      {"ring", StreamAlgorithmKind::ring},
      {"direct", StreamAlgorithmKind::direct},
      {"halvingDoubling", StreamAlgorithmKind::halving_doubling},
      {"doubleBinaryTree", StreamAlgorithmKind::double_binary_tree}};
  for (const auto& [folder, whole] : oracles("astra1")) {
    int compared = 0;
    for (const Row& row : read_oracle(folder / "micro.csv")) {
      if (!row.at("case").starts_with("micro 1 MiB ")) continue;
      SCOPED_TRACE(row.at("case") + " " + row.at("network") + " " + row.at("algorithm"));
      const std::string word = split(row.at("case"), ' ')[3];
      const std::string file = "MICRO\n1\nlayer -1 0 NONE 0 0 NONE 0 0 " + word + " 1048576 5\n";
      const TextWorkload workload = read_astra_text(file, "micro", nullptr);
      std::vector<std::string> warnings;
      Astra1Settings settings;
      settings.network = (folder / "network" / (row.at("network") + ".json")).string();
      settings.system = (folder / "system" / "ring-LIFO-s1-localBWAware-ep10-baseline-a1.txt").string();
      SystemLayer system = read_astra1_config(settings, warnings);
      for (auto& [kind, named] : system.algorithms) named = {{algorithms.at(row.at("algorithm")), false, -1}};
      system.splits = std::stoll(row.at("chunks"));
      system.active_chunks = std::stoll(row.at("active_chunks"));
      system.endpoint_delay_ns = std::stoll(row.at("endpoint_delay"));
      TextGraphOptions options;
      options.dimensions = {system.dimensions.front().size};
      const TextGraph text = text_graph(workload, options);
      const TextReport report = text_report(text, simulate(text.graph, system));
      EXPECT_EQ(report.finish.value / 1000, cycles(row.at("total_us")));
      ++compared;
    }
    EXPECT_EQ(compared, 14);
  }
}

}  // namespace
}  // namespace armilla
