#include "write/trace.h"

#include <gtest/gtest.h>

#include <limits>

namespace armilla {
namespace {

TEST(ChakraJsonTest, WritesWhatProtobufWrites) {
  ChakraTrace trace;
  trace.version = "1.0.0";
  trace.add_node(0, ChakraNodeType::compute, "a\"\\\n\x01\x7f\xc3\xa9\xf0\x9f\x98\x80\xff");
  trace.add_node(7, ChakraNodeType::invalid, "", 5);
  trace.add_data_dependence(0);
  trace.add_control_dependence(12345678901);
  trace.add_integer("is_cpu_op", ChakraValueKind::boolean, 0);
  trace.add_integer("size", ChakraValueKind::uint64, -1);
  trace.add_integer("tag", ChakraValueKind::int32, -3);
  const bool dimensions[] = {true, false};
  trace.add_booleans("involved_dim", dimensions);
  trace.add_booleans("none", {});
  EXPECT_EQ(write_chakra_json(trace), R"({
  "version": "1.0.0"
}{
  "name": "a\"\\\n\u0001\u007f\u00e9\ud83d\ude00\ufffd",
  "type": "COMP_NODE"
}{
  "id": "7",
  "ctrlDeps": [
    "12345678901"
  ],
  "dataDeps": [
    "0"
  ],
  "durationMicros": "5",
  "attr": [
    {
      "name": "is_cpu_op",
      "boolVal": false
    },
    {
      "name": "size",
      "uint64Val": "18446744073709551615"
    },
    {
      "name": "tag",
      "int32Val": -3
    },
    {
      "name": "involved_dim",
      "boolList": {
        "values": [
          true,
          false
        ]
      }
    },
    {
      "name": "none",
      "boolList": {}
    }
  ]
})");
}

std::string written(ChakraValueKind kind, double value) {
  ChakraTrace trace;
  trace.has_metadata = false;
  trace.add_node(0, ChakraNodeType::invalid, "");
  trace.add_real("", kind, value);
  const std::string text = write_chakra_json(trace);
  const std::size_t begin = text.find("Val\": ") + 6;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(ChakraJsonTest, NumbersAreAsPythonPrintsThem) {
  constexpr auto kDouble = ChakraValueKind::real64;
  constexpr auto kFloat = ChakraValueKind::real32;
  EXPECT_EQ(written(kDouble, 1.2345), "1.2345");
  EXPECT_EQ(written(kDouble, 5), "5.0");
  EXPECT_EQ(written(kDouble, -0.0), "-0.0");
  EXPECT_EQ(written(kDouble, 0.0001), "0.0001");
  EXPECT_EQ(written(kDouble, 0.00001), "1e-05");
  EXPECT_EQ(written(kDouble, 1.5e-10), "1.5e-10");
  EXPECT_EQ(written(kDouble, 1e15), "1000000000000000.0");
  EXPECT_EQ(written(kDouble, 1e16), "1e+16");
  EXPECT_EQ(written(kDouble, -1.25e300), "-1.25e+300");
  EXPECT_EQ(written(kDouble, std::numeric_limits<double>::infinity()), "\"Infinity\"");
  EXPECT_EQ(written(kDouble, -std::numeric_limits<double>::infinity()), "\"-Infinity\"");
  EXPECT_EQ(written(kDouble, std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
  EXPECT_EQ(written(kFloat, 0.1F), "0.1");
  EXPECT_EQ(written(kFloat, 16777217), "16777216.0");
}

}  // namespace
}  // namespace armilla
