// Properties of collectives over sizes, on machines as they are shipped.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/cases_testing.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

constexpr std::int64_t kLeast = 1 << 10, kMost = std::int64_t{1} << 29;

struct Sweep {
  std::string machine;
  std::int64_t ranks;
};

std::vector<Time> times_by_size(const Sweep& sweep, CollectiveKind kind, std::string_view algorithm,
                                bool measured, std::int64_t factor) {
  std::string text = "machine: " + sweep.machine + "\nplan: {ranks: " + std::to_string(sweep.ranks) +
                     "}\ncollectives: {measured: " + (measured ? "true" : "false");
  if (!algorithm.empty()) text += ", algorithms: [" + std::string(algorithm) + "]";
  const Study study = read_machine_study(Config::parse(text + "}\n", "m.yaml", {}));
  SimulationOptions options;
  options.intervals = false;
  std::vector<Time> times;
  for (std::int64_t bytes = kLeast; bytes <= kMost; bytes *= factor)
    times.push_back(run_collective(study, kind, Bytes(bytes), options).result.iteration);
  return times;
}

const std::vector<Sweep> kSweeps = {{"dgx-a100", 8}, {"dgx-a100", 16},    {"dgx-h100", 2},
                                    {"dgx-h100", 6}, {"dgx-h100", 32},    {"mi300x", 8},
                                    {"mi300x", 64},  {"gb200-nvl72", 12}, {"hgx-staged", 16}};
using enum CollectiveKind;
constexpr CollectiveKind kMoving[] = {all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce};

// Twice the bytes never take less time, and about twice as long at most but for NCCL's changes of protocols:
// a reduction of 1 MiB among 8 A100 goes by Simple, of 512 KiB by LL, for 3.2 times as long.
TEST(CollectiveSizes, MoreBytesTakeMoreTime) {
  int number = 0;
  for (const Sweep& sweep : kSweeps) {
    for (const CollectiveKind kind : kMoving) {
      if (number++ % kCaseStep != 0) continue;
      const std::vector<Time> times = times_by_size(sweep, kind, "", true, 2);
      for (std::size_t i = 1; i < times.size(); ++i) {
        const std::string where = sweep.machine + " " + std::to_string(sweep.ranks) + " " +
                                  std::string(name_of(kind)) + " " + std::to_string(kLeast << i);
        EXPECT_GT(in_seconds(times[i]), 0.97 * in_seconds(times[i - 1])) << where;
        EXPECT_LT(in_seconds(times[i]), 3.3 * in_seconds(times[i - 1])) << where;
      }
    }
  }
}

// Where nothing is known of a library, the choice is as good as any algorithm by name that libraries have.
TEST(CollectiveSizes, NoAlgorithmByNameIsMuchFasterThanTheChoice) {
  int number = 0;
  for (const Sweep& sweep : kSweeps) {
    for (const CollectiveKind kind : kMoving) {
      if (number++ % kCaseStep != 0) continue;
      const std::vector<Time> chosen = times_by_size(sweep, kind, "", false, 8);
      for (const std::string_view name : {"ring", "halving-doubling", "double-binary-tree"}) {
        const std::vector<Time> named = times_by_size(sweep, kind, name, false, 8);
        for (std::size_t i = 0; i < chosen.size(); ++i)
          EXPECT_LT(in_seconds(chosen[i]), 1.2 * in_seconds(named[i]))
              << sweep.machine << ' ' << sweep.ranks << ' ' << name_of(kind) << ' ' << name << ' '
              << (kLeast << 3 * i);
      }
    }
  }
}

}  // namespace
}  // namespace armilla
