#include "write/text_table.h"

#include <gmock/gmock.h>

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

TEST(Shorten, KeepsTheEndOfANameWithinTheWidth) {
  EXPECT_EQ(shorten("/layer4/conv2/Conv", 12), "...onv2/Conv");
  EXPECT_EQ(shorten("short", 12), "short");
  EXPECT_EQ(display_width(shorten("ééééééééé", 6)), 6u);
  EXPECT_EQ(shorten("ééééééééé", 6), "...ééé");
}

TEST(Wrap, BreaksBetweenWordsAndIndents) {
  const std::string word(40, 'w');
  EXPECT_EQ(wrap(word + " " + word + " " + word, "- "), "- " + word + " " + word + "\n  " + word + "\n");
  EXPECT_EQ(wrap("", "- "), "- \n");
  // A word longer than the line stays whole.
  const std::string path(150, 'p');
  EXPECT_EQ(wrap("see " + path, "  "), "  see\n  " + path + "\n");
}

}  // namespace
}  // namespace armilla
