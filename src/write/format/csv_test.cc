#include "write/format/csv.h"

#include <gmock/gmock.h>

#include <limits>

namespace armilla {
namespace {

TEST(Csv, QuotesCellsAsRfc4180) {
  Csv csv({"a", "b"});
  csv.cell("x,y").cell("say \"hi\"").end_record();
  csv.cell("two\nlines").cell("plain text").end_record();
  csv.cell("").cell("cr\r").end_record();
  EXPECT_EQ(csv.text(),
            "a,b\n"
            "\"x,y\",\"say \"\"hi\"\"\"\n"
            "\"two\nlines\",plain text\n"
            ",\"cr\r\"\n");
}

TEST(Csv, WritesNumbersInFull) {
  Csv csv({"n"});
  csv.cell(std::int64_t{-9007199254740993}).cell(0.1).cell(Bytes(7)).cell(Bandwidth(2.5e9)).end_record();
  csv.cell(std::numeric_limits<double>::infinity()).cell(std::numeric_limits<double>::quiet_NaN());
  csv.end_record();
  EXPECT_EQ(csv.text(), "n\n-9007199254740993,0.1,7,2500000000\n,\n");
}

TEST(ExactSeconds, KeepsEveryPicosecond) {
  EXPECT_EQ(exact_seconds(Time(0)), "0");
  EXPECT_EQ(exact_seconds(Time(1)), "0.000000000001");
  EXPECT_EQ(exact_seconds(microseconds(12'500)), "0.0125");
  EXPECT_EQ(exact_seconds(Time(2'000'000'000'000)), "2");
  EXPECT_EQ(exact_seconds(Time(-1'500'000'000'000)), "-1.5");
}

}  // namespace
}  // namespace armilla
