#include "study/patience.h"

#include <gmock/gmock.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ForeseenRuns kRuns = {.what = "plan",
                            .network = "packet",
                            .seconds = 600,
                            .least = 10,
                            .most = 300,
                            .at_once = 4,
                            .fewer = "less"};

TEST(Patience, RefusesWhatTakesLongerForSure) {
  Patience patience;
  patience.longest = Time(29 * 60 * std::int64_t{1'000'000'000'000});
  EXPECT_EQ(
      error_of([&] { check_patience(kRuns, patience); }),
      "network packet: a plan takes about 10 min, and at least 10 of 300 plans are to be simulated, 4 at "
      "once: "
      "at least about 30 min together\n"
      "  hint: --patience 30min begins all the same; --network flow takes a time that does not depend on the "
      "bytes; less");
  ForeseenRuns one = kRuns;
  one.least = one.most = one.at_once = 1;
  one.seconds = 90'000;
  EXPECT_THAT(
      error_of([&] { check_patience(one, patience); }),
      HasSubstr("a plan takes about 25 h, and 1 plan is to be simulated: about 25 h together\n  hint: "
                "--patience 25h begins"));
}

TEST(Patience, TellsOfWhatMayTakeLonger) {
  std::vector<std::string> told;
  Patience patience;
  patience.tell = [&](const std::string& sentence) { told.push_back(sentence); };
  check_patience(kRuns, patience);
  EXPECT_THAT(told,
              ElementsAre(HasSubstr("if none of 300 plans can be left out, about 12 h together, 4 at once")));
  // Nothing to say: all of it is within an hour, or takes no time worth saying.
  for (const auto change :
       {+[](ForeseenRuns& runs) { runs.most = 20; }, +[](ForeseenRuns& runs) { runs.seconds = 0; }}) {
    ForeseenRuns runs = kRuns;
    change(runs);
    check_patience(runs, patience);
  }
  EXPECT_EQ(told.size(), 1U);
}

TEST(Patience, LooksAtSomeOfMany) {
  std::vector<std::int64_t> asked;
  const double mean = mean_of_some(1600, [&](std::int64_t run) -> std::optional<double> {
    asked.push_back(run);
    return run == 0 ? std::nullopt : std::optional(static_cast<double>(run));
  });
  EXPECT_THAT(asked, ElementsAre(0, 800, 400, 1200, 200));
  EXPECT_EQ(mean, 650);
  EXPECT_EQ(mean_of_some(3, [](std::int64_t run) { return std::optional(static_cast<double>(run)); }), 1);
  EXPECT_EQ(mean_of_some(3, [](std::int64_t) { return std::optional<double>(); }), 0);
}

}  // namespace
}  // namespace armilla
