#include "read/study/csv_table.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

using Fields = std::vector<std::string>;

std::string error_in_table(const std::string& text) {
  return error_of([&] { parse_csv(text, "t.csv"); });
}

TEST(CsvTable, ReadsPlainAndQuotedFields) {
  const CsvTable table = parse_csv("a,b,c\r\n1,\"x, \"\"y\"\"\",\n\"two\nlines\",,3", "t.csv");
  EXPECT_EQ(table.columns, (Fields{"a", "b", "c"}));
  ASSERT_EQ(table.records.size(), 2U);
  EXPECT_EQ(table.records[0].fields, (Fields{"1", "x, \"y\"", ""}));
  EXPECT_EQ(table.records[1].fields, (Fields{"two\nlines", "", "3"}));
  EXPECT_EQ(table.where(table.records[1]), "t.csv:3");
  EXPECT_EQ(table.find("c"), 2U);
  EXPECT_EQ(table.find("d"), std::nullopt);
}

// As spreadsheets on a Mac write them.
TEST(CsvTable, LinesMayEndInCarriageReturns) {
  const CsvTable table = parse_csv("a,b\r1,\"x\"\r\r2,y\r", "t.csv");
  EXPECT_EQ(table.columns, (Fields{"a", "b"}));
  ASSERT_EQ(table.records.size(), 2U);
  EXPECT_EQ(table.records[0].fields, (Fields{"1", "x"}));
  EXPECT_EQ(table.records[1].fields, (Fields{"2", "y"}));
  EXPECT_EQ(table.records[1].line, 4);
  // Where any line ends otherwise a return is part of a field.
  EXPECT_EQ(parse_csv("a\nx\ry\n", "t.csv").records[0].fields, Fields{"x\ry"});
}

TEST(CsvTable, LinesAreCountedAcrossQuotesAndEmptyLines) {
  const CsvTable table = parse_csv(
      "\xef\xbb\xbf"
      "a\n\n\"x\ny\"\r\n\r\nz\n",
      "t.csv");
  EXPECT_EQ(table.columns, Fields{"a"});
  ASSERT_EQ(table.records.size(), 2U);
  EXPECT_EQ(table.records[0].line, 3);
  EXPECT_EQ(table.records[1].line, 6);
}

TEST(CsvTable, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_EQ(error_in_table(""), "t.csv: is empty\n  hint: expected a line with the names of the columns");
  EXPECT_EQ(error_in_table("a,b\n1\n"), "t.csv:2: 1 field, the header has 2");
  for (const char* const text : {"a;b\n1;2\n", "a\tb\n1\t2\n"})
    EXPECT_EQ(error_in_table(text),
              "t.csv:1: no commas are between the columns\n  hint: save it as CSV with commas");
  EXPECT_EQ(error_in_table("a,b\n1,2,3"), "t.csv:2: 3 fields, the header has 2");
  EXPECT_EQ(error_in_table("a,b,a\n"), "t.csv:1: column 'a' is there twice");
  EXPECT_EQ(error_in_table("a\n\"x\n"), "t.csv:2: a quote is opened and never closed");
  EXPECT_EQ(error_in_table("a\n\"x\"y\n"),
            "t.csv:2: text behind a closing quote\n  hint: a quote inside quotes is written twice");
  EXPECT_EQ(error_of([] {
              parse_csv(
                  "\xff\xfe"
                  "a",
                  "t.csv");
            }),
            "t.csv: is not UTF-8 text\n  hint: save it as CSV in UTF-8");
  EXPECT_EQ(error_of([] { parse_csv("a,b\n", "t.csv").at("c"); }),
            "t.csv:1: column 'c' is missing\n  hint: there are: a, b");
}

}  // namespace
}  // namespace armilla
