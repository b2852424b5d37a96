// Every finished run of the shared ASTRA-sim 1.0 oracle: total, compute and exposed time, communication per
// phase, payload and chunk latency per dimension.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/mapped_file.h"
#include "lower/text_graph.h"
#include "lower/text_report.h"
#include "read/astra1_config.h"
#include "read/astra_text.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;
using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<Row> read_rows(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split(line, ',');
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split(line, ',');
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = i < cells.size() ? cells[i] : "";
  }
  return rows;
}

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
  const fs::path folder = fs::path(ARMILLA_SOURCE_DIR) / "../shared/oracles/astra1";
  if (!fs::exists(folder)) GTEST_SKIP() << "the shared oracles are not here";
  int compared = 0;
  for (const Row& row : read_rows(folder / "runs.csv")) {
    if (row.at("rc") != "0" || row.at("total_us").empty()) continue;
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
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace armilla
