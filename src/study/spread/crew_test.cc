#include "study/spread/crew.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace armilla {
namespace {

TEST(Crew, EveryPieceIsDoneOnce) {
  for (const std::int64_t threads : {1, 4}) {
    std::vector<int> done(1000);
    std::int64_t next = 0;
    Piecework work;
    work.next = [&]() -> std::optional<std::int64_t> {
      return next < 1000 ? std::optional(next++) : std::nullopt;
    };
    work.perform = [](std::int64_t piece) { return std::to_string(piece * piece); };
    work.finish = [&](std::int64_t piece, const std::string& outcome) {
      EXPECT_EQ(outcome, std::to_string(piece * piece));
      ++done[static_cast<std::size_t>(piece)];
    };
    share_out(work, threads);
    EXPECT_EQ(done, std::vector<int>(1000, 1)) << threads << " threads";
  }
}

TEST(Crew, AnExceptionEndsTheWork) {
  std::int64_t next = 0;
  Piecework work;
  work.next = [&]() -> std::optional<std::int64_t> { return next++; };
  work.perform = [](std::int64_t piece) -> std::string {
    if (piece >= 10) throw std::runtime_error("ten");
    return {};
  };
  work.finish = [](std::int64_t, const std::string&) {};
  EXPECT_THROW(share_out(work, 3), std::runtime_error);
  EXPECT_LE(next, 13);
}

}  // namespace
}  // namespace armilla
