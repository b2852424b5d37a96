// Every run of the shared ASTRA-sim 2.x oracle of whole traces: finish and exposed time of every rank, to the
// nanosecond. Runs in which ASTRA-sim died or refused, and what becomes of them here, are listed below.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/oracle_testing.h"
#include "study/astra.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;

struct Astra2Row {
  std::string trace, backend, flags;
  bool finished = false;
  std::map<std::size_t, std::pair<std::uint64_t, std::uint64_t>> ranks;  // finish, exposed
};

std::vector<Astra2Row> read_rows(const fs::path& path) {
  std::vector<Astra2Row> rows;
  for (OracleRow& cells : read_oracle(path)) {
    Astra2Row& row = rows.emplace_back();
    row.trace = cells["trace"];
    row.backend = cells["backend"];
    row.flags = cells["extra_flags"];
    row.finished = cells["exit_code"] == "0";
    for (const std::string& text : split(cells["rank:finish/exposed"], ';')) {
      const std::size_t colon = text.find(':'), slash = text.find('/');
      row.ranks[std::stoul(text.substr(0, colon))] = {std::stoull(text.substr(colon + 1, slash - colon - 1)),
                                                      std::stoull(text.substr(slash + 1))};
    }
  }
  return rows;
}

std::optional<std::string> value_of(const std::string& flags, const std::string& flag) {
  const std::size_t at = flags.find("--" + flag + "=");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + flag.size() + 3;
  return flags.substr(begin, flags.find(' ', begin) - begin);
}

Astra2Request request_of(const Astra2Row& row) {
  Astra2Request request;
  request.workload = "trace";
  request.settings.semantics =
      row.backend == "congestion_aware" ? Semantics::astra2_aware : Semantics::astra2_unaware;
  request.settings.system = "system.json";
  request.settings.network = "network.yml";
  request.settings.remote_memory = "memory.json";
  request.groups = value_of(row.flags, "comm-group-configuration").value_or("empty");
  request.settings.queues_per_dimension = std::stoll(value_of(row.flags, "num-queues-per-dim").value_or("1"));
  request.settings.injection_scale = std::stod(value_of(row.flags, "injection-scale").value_or("1"));
  request.settings.rendezvous = value_of(row.flags, "rendezvous-protocol").value_or("false") != "false" ||
                                row.flags.find("--rendezvous-protocol") != std::string::npos;
  return request;
}

// Where ASTRA-sim died: it cannot be right. Refused: "mem_none" (remote memory in a system without), and
// "roofline_noattr" (num_ops is missing). The others run to the end here.
const std::map<std::string, bool> kPeerDied = {
    {"barrier", true},        {"roofline_subns_t0", true}, {"roofline_noattr", false},
    {"cpu_gpu", true},        {"mem_none", false},         {"metadata_pg", true},
    {"metadata_empty", true}, {"track_mem", true},         {"group_dbt", true},
    {"gather", true},         {"scatter", true},           {"reduce", true},
};

// The traces name their files relative to their folder.
class Astra2Oracle : public ::testing::Test {
 protected:
  ~Astra2Oracle() override { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
};

TEST_F(Astra2Oracle, EveryRowOfTheTraces) {
  for (const auto& [folder, whole] : oracles("astra2")) {
    int compared = 0;
    for (const Astra2Row& row : read_rows(folder / "traces.csv")) {
      SCOPED_TRACE(row.trace + " " + row.backend);
      fs::current_path(folder / "traces" / row.trace);
      std::optional<armilla::Run> run;
      try {
        run = run_astra2(request_of(row)).run;
      } catch (const Error& error) {
        const auto listed = kPeerDied.find(row.trace);
        EXPECT_TRUE(!row.finished && listed != kPeerDied.end() && !listed->second) << error.what();
        continue;
      }
      if (!row.finished) {
        const auto listed = kPeerDied.find(row.trace);
        EXPECT_TRUE(listed != kPeerDied.end() && listed->second);
        continue;
      }
      const Result& result = run->result;
      for (const auto& [rank, times] : row.ranks) {
        const RankClass& own = result.classes[result.class_of.empty() ? 0 : result.class_of[rank]];
        EXPECT_EQ(static_cast<std::uint64_t>(own.finish.value / 1000), times.first) << rank;
        if (times.second > times.first) continue;  // ASTRA-sim's underflow
        EXPECT_EQ(static_cast<std::uint64_t>((own.finish - own.compute).value / 1000), times.second) << rank;
      }
      ++compared;
    }
    EXPECT_GT(compared, whole ? 80 : 30);
  }
}

// The native profile takes every trace that can be run at all.
TEST_F(Astra2Oracle, TheNativeProfileRunsThemAll) {
  const fs::path folder = oracles("astra2").back().path;
  for (const Astra2Row& row : read_rows(folder / "traces.csv")) {
    if (row.backend == "congestion_aware") continue;
    SCOPED_TRACE(row.trace);
    fs::current_path(folder / "traces" / row.trace);
    Astra2Request request = request_of(row);
    request.native = true;
    const auto listed = kPeerDied.find(row.trace);
    const bool refused = listed != kPeerDied.end() && !listed->second;
    try {
      const Time time = run_astra2(request).run.result.iteration;
      // The only node of one trace takes less than a nanosecond, which the roofline truncates.
      EXPECT_EQ(time == Time(0), row.trace == "roofline_subns_t0");
      EXPECT_FALSE(refused);
    } catch (const Error& error) {
      EXPECT_TRUE(refused) << error.what();
    }
  }
}

}  // namespace
}  // namespace armilla
