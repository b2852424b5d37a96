#include "write/text_table.h"

#include <gmock/gmock.h>

#include <limits>

namespace armilla {
namespace {

TEST(TextTable, AlignsColumnsAndTrimsLines) {
  const TextTable table{{{"name", false}, {"bytes"}, {"where", false}},
                        {{"a", "10 B", "left"}, {"longer", "1 B", ""}}};
  EXPECT_EQ(to_text(table, 2, false),
            "  name    bytes  where\n"
            "  a        10 B  left\n"
            "  longer    1 B\n");
}

TEST(TextTable, CountsCodePointsNotBytes) {
  EXPECT_EQ(display_width("█é"), 2u);
  const TextTable table{{{"n", false}, {"x"}}, {{"é", "1"}, {"ab", "2"}}};
  EXPECT_EQ(to_text(table, 0, false), "n   x\né   1\nab  2\n");
}

TEST(TextTable, ColoursOnlyWhenAsked) {
  EXPECT_EQ(paint("x", Ink::red, false), "x");
  EXPECT_EQ(paint("x", Ink::red, true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(paint("", Ink::red, true), "");
}

TEST(TextTable, ShowsControlCharactersAsQuestionMarks) {
  EXPECT_EQ(printable("a\x1b[2J\nb"), "a?[2J?b");
  EXPECT_EQ(to_text({{{"n", false}}, {{"a\tb"}}}, 0, false), "n\na?b\n");
}

TEST(TextTable, FitsTheWidth) {
  const TextTable table{
      {{"layer", false}, {"forward"}, {"backward", true, SIZE_MAX, 1}, {"%", true, SIZE_MAX, 2}},
      {{"/encoder/layer.0/attention/self/query/MatMul", "1.234 ms", "2.345 ms", "12.3"}}};
  const auto lines = [&](std::size_t width) { return to_text(table, 2, {false, width}); };
  EXPECT_EQ(lines(100),
            "  layer                                          forward  backward     %\n"
            "  /encoder/layer.0/attention/self/query/MatMul  1.234 ms  2.345 ms  12.3\n");
  // Names give way first, down to a dozen characters, ...
  EXPECT_EQ(lines(50),
            "  layer                    forward  backward     %\n"
            "  /encoder/...ery/MatMul  1.234 ms  2.345 ms  12.3\n");
  // ... then the columns that matter least.
  EXPECT_EQ(lines(36),
            "  layer            forward  backward\n"
            "  /enco...MatMul  1.234 ms  2.345 ms\n");
  EXPECT_EQ(lines(24),
            "  layer          forward\n"
            "  /enc...atMul  1.234 ms\n");
  EXPECT_EQ(lines(10), lines(1));  // numbers stay whole
}

TEST(Shorten, LeavesOutTheMiddleOfALongName) {
  EXPECT_EQ(shorten("/layer4/conv2/Conv", 12), "/lay.../Conv");
  EXPECT_EQ(shorten("short", 12), "short");
  EXPECT_EQ(display_width(shorten("ééééééééé", 6)), 6u);
  EXPECT_EQ(shorten("ééééééééé", 6), "é...éé");
  EXPECT_EQ(shorten("long name", 3), "long name");
}

TEST(Wrap, BreaksBetweenWordsAndIndents) {
  const std::string word(40, 'w');
  EXPECT_EQ(wrap(word + " " + word + " " + word, "- "), "- " + word + " " + word + "\n  " + word + "\n");
  EXPECT_EQ(wrap("", "- "), "- \n");
  EXPECT_EQ(wrap(word + " " + word, "- ", 60), "- " + word + "\n  " + word + "\n");
  EXPECT_EQ(wrap(word + " " + word + " " + word, "- ", 300), wrap(word + " " + word + " " + word, "- "));
  // A word longer than the line stays whole.
  const std::string path(150, 'p');
  EXPECT_EQ(wrap("see " + path, "  "), "  see\n  " + path + "\n");
}

TEST(TextTable, PercentagesHaveOneDigitAndNoNegativeZero) {
  EXPECT_EQ(percent(0.1234), "12.3 %");
  EXPECT_EQ(percent_digits(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(signed_percent(0.051), "+5.1 %");
  EXPECT_EQ(signed_percent(-0.0004), "0.0 %");
  EXPECT_EQ(signed_percent_digits(-0.0006), "-0.1");
  EXPECT_EQ(signed_percent(std::numeric_limits<double>::quiet_NaN()), "unknown");
}

}  // namespace
}  // namespace armilla
