#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/cases_testing.h"
#include "base/oracle_testing.h"
#include "base/text.h"
#include "network/flit.h"
#include "read/traffic.h"

namespace armilla {
namespace {

// Columns that are no keys of a configuration: the answers, and what is in another form there.
const std::set<std::string> kAnswers = {"tag",
                                        "status",
                                        "plat_avg",
                                        "plat_min",
                                        "plat_max",
                                        "nlat_avg",
                                        "flat_avg",
                                        "frag_avg",
                                        "accepted_flit_rate",
                                        "injected_flit_rate",
                                        "accepted_min_node",
                                        "hops_routers_avg",
                                        "cycles",
                                        "wall_s",
                                        "nodes",
                                        "routers",
                                        "flit_hops_per_s",
                                        "router_cycles_per_s"};

std::string configuration_of(const OracleRow& row) {
  std::string text;
  for (const auto& [name, value] : row) {
    const std::string key(trimmed(name));
    if (kAnswers.count(key) == 0) text += key + " = " + value + ";\n";
  }
  return text;
}

// As BookSim prints figures.
std::string printed(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Steps of routers, roughly: what a run costs.
double cost_of(const OracleRow& row) {
  const auto number = [&](const std::string& key, double otherwise) {
    return row.at(key).empty() ? otherwise : std::stod(row.at(key));
  };
  const double cycles = number("cycles", 10000), nodes = number("nodes", 64);
  return cycles * nodes * (number("accepted_flit_rate", 1) * number("hops_routers_avg", 5) + 0.2);
}

// Every figure that BookSim prints, to its last digit: the draws, the ways and the waits are the same. Runs
// that were stopped before their end, or failed, are left out, and of the whole table all but every sixteenth
// of those that take longest, unless ARMILLA_ALL_ORACLES asks for them.
TEST(BooksimOracle, EveryFigureIsTheSame) {
  constexpr double kLong = 2e5;
  for (const auto& [path, whole] : oracles("network/booksim.csv")) {
    std::size_t compared = 0, seen = 0;
    for (const OracleRow& row : read_oracle(path)) {
      ++seen;
      if (row.at("status") == "timeout" || row.at("plat_avg").empty()) continue;
      const std::size_t step = (whole && cost_of(row) > kLong ? 16 : 1) * kCaseStep;
      if (seen % step != 0 && std::getenv("ARMILLA_ALL_ORACLES") == nullptr) continue;
      SCOPED_TRACE(path.string() + ":" + std::to_string(seen + 1) + " " + row.at("tag"));
      const BooksimConfig config = parse_booksim(configuration_of(row), "row");
      const RateResult result = simulate_flits(config.study);
      EXPECT_EQ(result.saturated, row.at("status") == "saturated");
      EXPECT_EQ(printed(result.packet_latency_avg_cycles), row.at("plat_avg"));
      EXPECT_EQ(printed(result.network_latency_avg_cycles), row.at("nlat_avg"));
      EXPECT_EQ(printed(result.accepted_flits_per_node_cycle), row.at("accepted_flit_rate"));
      if (!row.at("hops_routers_avg").empty()) {
        EXPECT_EQ(printed(result.hops_avg), row.at("hops_routers_avg"));
      }
      if (!row.at("cycles").empty()) {
        EXPECT_EQ(std::to_string(result.cycles), row.at("cycles"));
      }
      ++compared;
    }
    EXPECT_GT(compared, (whole ? 100u : 30u) / kCaseStep);
  }
}

}  // namespace
}  // namespace armilla
