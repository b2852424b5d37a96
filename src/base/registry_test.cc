#include "base/registry.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error_testing.h"

namespace armilla {
namespace {

constexpr ParameterInfo kTable[] = {
    {"rows", ParameterType::count, "128", "rows of the array"},
    {"dataflow", ParameterType::choice, "ws", "what stays", "os|ws|is"},
    {"frequency", ParameterType::frequency, "", "clock"},
    {"overhead", ParameterType::time, "3us", "per kernel"},
    {"share", ParameterType::fraction, "0.9", "attainable"},
    {"buffer", ParameterType::bytes, "1MiB", "on chip"},
    {"link", ParameterType::bandwidth, "25GB/s", "rate"},
    {"peak", ParameterType::flop_rate, "1TFLOPS", "rate"},
    {"exact", ParameterType::boolean, "true", "switch"},
    {"factor", ParameterType::number, "1", "times"},
};

ParameterValues values_of(const std::string& text) {
  return ParameterValues("array", kTable, parse_component(text, "--compute").parameters);
}

TEST(Registry, DefaultsFillWhatIsNotGiven) {
  const ParameterValues values = values_of("array");
  EXPECT_EQ(values.count("rows"), 128);
  EXPECT_EQ(values.choice("dataflow"), "ws");
  EXPECT_FALSE(values.is_set("frequency"));
  EXPECT_EQ(values.time("overhead"), microseconds(3));
  EXPECT_DOUBLE_EQ(values.fraction("share"), 0.9);
  EXPECT_EQ(values.bytes("buffer"), Bytes(1 << 20));
  EXPECT_DOUBLE_EQ(values.bandwidth("link").value, 25e9);
  EXPECT_DOUBLE_EQ(values.flop_rate("peak").value, 1e12);
  EXPECT_TRUE(values.boolean("exact"));
  EXPECT_EQ(values.where("rows"), "default of array.rows");
  EXPECT_EQ(error_of([&] { values.frequency("frequency"); }),
            "array: the parameter 'frequency' must be given");
}

TEST(Registry, GivenValuesOverrideDefaults) {
  const ParameterValues values = values_of("array:rows=8,dataflow=os,frequency=940MHz,exact=false");
  EXPECT_EQ(values.count("rows"), 8);
  EXPECT_EQ(values.choice("dataflow"), "os");
  EXPECT_DOUBLE_EQ(values.frequency("frequency").value, 940e6);
  EXPECT_FALSE(values.boolean("exact"));
  EXPECT_EQ(values.where("rows"), "--compute: rows");
}

TEST(Registry, BadValuesAreRefusedWhereTheyStand) {
  EXPECT_EQ(error_of([] { values_of("array:row=8"); }),
            "--compute: row: 'array' has no parameter 'row'\n  hint: did you mean 'rows'?");
  EXPECT_EQ(error_of([] { values_of("array:rows=0"); }), "--compute: rows: '0' must be at least 1");
  EXPECT_EQ(error_of([] { values_of("array:rows=many"); }), "--compute: rows: 'many' is not a whole number");
  EXPECT_EQ(error_of([] { values_of("array:dataflow=rs"); }),
            "--compute: dataflow: unknown value 'rs'\n  hint: did you mean 'os'?");
  EXPECT_EQ(error_of([] { values_of("array:exact=yes"); }),
            "--compute: exact: 'yes' is neither true nor false");
  EXPECT_EQ(error_of([] { values_of("array:overhead=3"); }),
            "--compute: overhead: '3' has no unit\n  hint: expected a time with its unit, such as '500ns'");
}

TEST(Registry, EveryTypeIsCheckedAgainstItsUnits) {
  for (const char* name : {"frequency", "overhead", "share", "buffer", "link", "peak"}) {
    EXPECT_NE(error_of([&] { values_of(std::string("array:") + name + "=7 apples"); }), "no error") << name;
  }
}

TEST(Registry, ComponentTextIsParsed) {
  const ComponentChoice plain = parse_component("roofline", "--compute");
  EXPECT_EQ(plain.name, "roofline");
  EXPECT_TRUE(plain.parameters.empty());
  const ComponentChoice choice = parse_component("systolic:rows=8,columns=16", "--compute");
  EXPECT_EQ(choice.name, "systolic");
  EXPECT_EQ(choice.parameters.at("columns").value, "16");
  EXPECT_EQ(choice.where, "--compute");
}

TEST(Registry, MalformedComponentTextIsRefused) {
  EXPECT_EQ(error_of([] { parse_component("", "--compute"); }), "--compute: the name is empty");
  EXPECT_EQ(error_of([] { parse_component("a:", "--compute"); }),
            "--compute: '' is not name=value\n  hint: write NAME:parameter=value,parameter=value");
  EXPECT_EQ(error_of([] { parse_component("a:rows", "--compute"); }),
            "--compute: 'rows' is not name=value\n  hint: write NAME:parameter=value,parameter=value");
  EXPECT_EQ(error_of([] { parse_component("a:x=1,x=2", "--compute"); }), "--compute: x: is given twice");
}

TEST(Registry, FindsARecordOrSuggestsOne) {
  struct Record {
    std::string_view name;
  };
  static constexpr std::array kRecords = {Record{"roofline"}, Record{"systolic"}};
  const std::span<const Record> table(kRecords);
  EXPECT_EQ(find_component("compute model", table, "systolic", "x").name, "systolic");
  EXPECT_EQ(error_of([&] { find_component("compute model", table, "sistolic", "study.yaml:3:1: compute"); }),
            "study.yaml:3:1: compute: unknown compute model 'sistolic'\n  hint: did you mean 'systolic'?");
  EXPECT_EQ(
      error_of([&] { find_component("compute model", table, "systolic,rows=4,columns=8", "--compute"); }),
      "--compute: unknown compute model 'systolic,rows=4,columns=8'\n"
      "  hint: parameters come behind a colon: systolic:rows=4,columns=8");
}

TEST(Registry, NumbersNeedNotBeWhole) {
  EXPECT_EQ(values_of("array").number("factor"), 1);
  EXPECT_EQ(values_of("array:factor=13.01").number("factor"), 13.01);
  EXPECT_EQ(error_of([] { values_of("array:factor=0"); }), "--compute: factor: '0' must be above 0");
}

TEST(Registry, EveryTypeHasAName) {
  EXPECT_EQ(name_of(ParameterType::count), "count");
  EXPECT_EQ(name_of(ParameterType::flop_rate), "compute rate");
}

}  // namespace
}  // namespace armilla
