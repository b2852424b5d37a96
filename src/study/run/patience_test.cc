#include "study/patience.h"

#include <gmock/gmock.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ForeseenRuns kRuns = {.what = "plan",
                            .network = "packet",
                            .least = 10,
                            .most = 300,
                            .together = {1800, 43'200},
                            .at_once = 4,
                            .fewer = "less"};

std::string refusal_of_seconds(double seconds, Time longest) {
  ForeseenRuns one = kRuns;
  one.least = one.most = 1;
  one.together.least = seconds;
  Patience patience;
  patience.longest = longest;
  return error_of([&] { check_patience(one, patience); });
}

TEST(Patience, RefusesWhatTakesLongerForSure) {
  Patience patience;
  patience.longest = Time(29 * 60 * std::int64_t{1'000'000'000'000});
  EXPECT_EQ(
      error_of([&] { check_patience(kRuns, patience); }),
      "network packet: at least 10 of 300 plans are to be simulated, 4 at once: at least about 30 min "
      "together, even where no messages meet\n"
      "  hint: --patience 30min begins all the same; --network flow takes a time that does not depend on the "
      "bytes; less");
  EXPECT_THAT(refusal_of_seconds(90'000, Time(3'600'000'000'000'000)),
              HasSubstr("1 plan is to be simulated: at least about 25 h together, even where no messages "
                        "meet\n  hint: --patience 25h begins"));
  EXPECT_THAT(refusal_of_seconds(0.3, Time(1)), HasSubstr("at least about 0.3 s together"));
}

// The flag takes 26 days at most.
TEST(Patience, NamesNoPatienceThatNobodyMayHave) {
  EXPECT_THAT(refusal_of_seconds(86'400 * 25, Time(1)), HasSubstr("hint: --patience 600h begins"));
  EXPECT_THAT(refusal_of_seconds(86'400 * 27, Time(1)), HasSubstr("hint: --network flow takes"));
}

// Only where it was asked for, and where there is something to run.
TEST(Patience, TellsWhereItHasNoEffect) {
  std::vector<std::string> told;
  Patience patience;
  patience.tell = [&](const std::string& sentence) { told.push_back(sentence); };
  check_patience({.what = "plan"}, patience);
  patience.asked = true;
  check_patience({}, patience);
  check_patience({.what = "plan", .network = "packet"}, patience);
  EXPECT_THAT(told, testing::IsEmpty());
  check_patience({.what = "plan"}, patience);
  EXPECT_THAT(told, ElementsAre("--patience has no effect: it is for the networks packet and flit"));
}

TEST(Patience, TellsOfWhatMayTakeLonger) {
  std::vector<std::string> told;
  Patience patience;
  patience.tell = [&](const std::string& sentence) { told.push_back(sentence); };
  check_patience(kRuns, patience);
  EXPECT_THAT(told,
              ElementsAre("on the network packet 300 plans may take up to about 12 h together, 4 at once, "
                          "if none can be left out: a guess, for messages of which very many meet, where "
                          "30 min is the least; Ctrl-C ends it with what it has found"));
  told.clear();
  ForeseenRuns all = kRuns;
  all.least = all.most;
  check_patience(all, patience);
  EXPECT_THAT(told, ElementsAre(HasSubstr("12 h together, 4 at once: a guess")));
  told.clear();
  // Nothing to say: all of it is within an hour, or takes no time worth saying.
  for (const PlayTime together : {PlayTime{60, 3000}, PlayTime{}}) {
    ForeseenRuns runs = kRuns;
    runs.together = together;
    check_patience(runs, patience);
  }
  EXPECT_TRUE(told.empty());
}

TEST(Patience, LooksAtSomeOfMany) {
  std::vector<std::int64_t> asked;
  const auto time_of = [](std::int64_t run) {
    const auto seconds = static_cast<double>(run);
    return PlayTime{seconds, 10 * seconds};
  };
  const SomeRuns some = look_at_some(1600, [&](std::int64_t run) -> std::optional<PlayTime> {
    asked.push_back(run);
    return run == 0 ? std::nullopt : std::optional(time_of(run));
  });
  EXPECT_THAT(asked, ElementsAre(0, 800, 400, 1200, 200, 1000, 600, 1400, 100));
  EXPECT_EQ(some.refused, 1);
  EXPECT_EQ(some.shortest().least, 100);
  EXPECT_EQ(some.longest().most, 14'000);
  EXPECT_EQ(some.mean().least, 712.5);
  EXPECT_EQ(look_at_some(8, [&](std::int64_t run) { return std::optional(time_of(run)); }).mean().least, 3.5);
  EXPECT_TRUE(look_at_some(3, [](std::int64_t) { return std::optional<PlayTime>(); }).times.empty());
}

}  // namespace
}  // namespace armilla
