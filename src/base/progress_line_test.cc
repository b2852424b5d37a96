#include "base/progress_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace armilla {
namespace {

TEST(Progress, TellsShareAndTimeLeft) {
  EXPECT_EQ(progress_line("simulating", 0.25, 5), "simulating 25 %, about 15 s left");
  EXPECT_EQ(progress_line("simulating", 0.04, 2.5), "simulating  4 %, about 1 min 0 s left");
  EXPECT_EQ(progress_line("simulating", 0.001, 10), "simulating  0 %, about 2 h 46 min left");
  // The end is when the line is gone, whatever is said of the share.
  EXPECT_EQ(progress_line("simulating", 1, 5), "simulating 99 %, about 0 s left");
  EXPECT_EQ(progress_line("simulating", 1.5, 5), "simulating 99 %, about 0 s left");
}

TEST(Progress, TellsWhatHasComeOfItAsFarAsTheLineHasRoom) {
  EXPECT_EQ(progress_line("simulating", 0.25, 5, "best 2 s"), "simulating 25 %, about 15 s left; best 2 s");
  EXPECT_EQ(progress_line("simulating", 0.25, 5, "best 2 s", 40), "simulating 25 %, about 15 s left; best 2");
  EXPECT_EQ(progress_line("looking", 0, 5, "3 refused"), "looking, 5 s so far; 3 refused");
}

TEST(Progress, TellsTimeWhereTheShareIsUnknown) {
  EXPECT_EQ(progress_line("reading the model", 0, 1.2), "reading the model, 2 s so far");
}

TEST(Progress, OfWhatIsQuickShowsNothing) {
  std::ostringstream out;
  {
    ProgressLine progress(out);
    progress.begin("simulating");
    progress.update(0.5);
  }
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, TakesItsLineAwayUntilTheNextStep) {
  std::ostringstream out;
  ProgressLine progress(out, std::chrono::milliseconds(1));
  progress.begin("simulating");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  progress.hide();
  const std::string first = out.str();
  EXPECT_TRUE(first.starts_with("\rsimulating, 1 s so far")) << first;
  const std::size_t width = std::string("simulating, 1 s so far").size();
  EXPECT_TRUE(first.ends_with('\r' + std::string(width, ' ') + '\r')) << first;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  progress.hide();
  EXPECT_EQ(out.str(), first);
  progress.begin("writing");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  progress.hide();
  EXPECT_TRUE(out.str().starts_with(first + "\rwriting, 1 s so far")) << out.str();
}

TEST(Progress, WithoutATerminalIsAFewWholeLines) {
  std::ostringstream out;
  {
    ProgressLine progress(out, std::chrono::milliseconds(20), 79, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(out.str(), "") << "there is no step yet";
    progress.begin("simulating");
    progress.update(0.5);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  }
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("armilla: simulating")) << text;
  EXPECT_NE(text.find("armilla: simulating 50 %, about "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" left\n")) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
  // After 20 to 40 ms, 80, 160, 320, 640.
  const auto lines = std::ranges::count(text, '\n');
  EXPECT_GE(lines, 2);
  EXPECT_LE(lines, 6);
}

TEST(Progress, NobodyIsShownNothing) {
  Progress& nobody = no_progress();
  nobody.begin("simulating");
  nobody.update(0.5);
  EXPECT_EQ(&nobody, &no_progress());
}

TEST(Progress, IsGoneBeforeOutputBegins) {
  std::ostringstream terminal;
  ProgressLine progress(terminal, std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  HidesProgress buffer(*terminal.rdbuf(), progress);
  std::ostream out(&buffer);
  out << "report" << 'x' << std::flush;
  EXPECT_TRUE(terminal.str().ends_with(" \rreportx")) << terminal.str();
}

}  // namespace
}  // namespace armilla
