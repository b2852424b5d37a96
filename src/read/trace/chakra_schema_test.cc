#include "read/trace/chakra_schema.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/trace.h"
#include "read/trace/chakra_testing.h"

namespace armilla {
namespace {

// The same two nodes in every schema: 5 of computation, then an all-to-all of 4096 bytes over two dimensions.
std::string file_0_0_1() {
  return WireText().number(1, 0).bytes(2, "COMP_NODE_a").number(3, 3).number(7, 5).number(12, 80).record() +
         WireText()
             .number(1, 1)
             .bytes(2, "COMM_COLL_NODE_b")
             .number(3, 6)
             .number(4, 0)
             .number(13, 2)
             .number(14, 1)
             .number(14, 0)
             .number(15, 3)
             .number(18, 4096)
             .record();
}

WireText old_attribute(std::string_view name, std::uint64_t type, unsigned field, std::uint64_t value) {
  return WireText().bytes(1, name).number(2, type).number(field, value);
}

// v0.0.2 (shift 0: types without METADATA) and the two forms of v0.0.3. INT's type and field differ.
std::string file_0_0_23(std::uint64_t shift, std::uint64_t int_type, unsigned int_field) {
  const auto integer = [&](std::string_view name, std::uint64_t value) {
    return old_attribute(name, int_type, int_field, value);
  };
  return WireText()
             .number(1, 0)
             .bytes(2, "a")
             .number(3, 3 + shift)
             .bytes(5, "[1]")
             .bytes(7, "['T']")
             .bytes(8, "[2]")
             .message(11, integer("runtime", 5))
             .record() +
         WireText()
             .number(1, 1)
             .bytes(2, "b")
             .number(3, 6 + shift)
             .number(4, 0)
             .message(11, integer("comm_type", 1))
             .message(11, integer("comm_size", 4096))
             .record();
}

ChakraTrace parsed(const std::string& bytes) {
  return read_chakra(bytes, "old.et");
}

void expect_the_two_nodes(const ChakraTrace& trace) {
  EXPECT_FALSE(trace.has_metadata);
  ASSERT_EQ(trace.size(), 2U);
  EXPECT_EQ(trace.type[0], ChakraNodeType::compute);
  EXPECT_EQ(trace.duration_micros[0], 5U);
  EXPECT_EQ(trace.find(0, "runtime"), nullptr);
  EXPECT_EQ(trace.type[1], ChakraNodeType::collective);
  EXPECT_EQ(trace.data_dependence, (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(integer_value(trace, 1, *trace.find(1, "comm_type")),
            static_cast<int>(ChakraCollective::all_to_all));
  EXPECT_EQ(integer_value(trace, 1, *trace.find(1, "comm_size")), 4096);
}

TEST(ChakraSchema, ReadsVersion001) {
  const ChakraTrace trace = parsed(file_0_0_1());
  EXPECT_EQ(trace.schema, "v0.0.1");
  expect_the_two_nodes(trace);
  EXPECT_EQ(integer_value(trace, 0, *trace.find(0, "num_ops")), 80);
  EXPECT_EQ(text_value(trace, 1, *trace.find(1, "pg_name")), "3");
  EXPECT_EQ(boolean_values(trace, 1, *trace.find(1, "involved_dim")), (std::vector<bool>{true, false}));
}

TEST(ChakraSchema, ReadsVersions002And003) {
  const std::string v2 = file_0_0_23(0, 1, 5), v3 = file_0_0_23(1, 2, 6), v3b = file_0_0_23(1, 3, 7);
  EXPECT_EQ(parsed(v2).schema, "v0.0.2");
  EXPECT_EQ(parsed(v3).schema, "v0.0.3");
  EXPECT_EQ(parsed(v3b).schema, "v0.0.3");
  for (const std::string& file : {v2, v3, v3b}) {
    const ChakraTrace trace = parsed(file);
    expect_the_two_nodes(trace);
    const ChakraIo& inputs = trace.ios[trace.inputs[0]];
    EXPECT_EQ(trace.strings.at(inputs.values), "[1]");
    EXPECT_EQ(trace.strings.at(inputs.types), "['T']");
    EXPECT_EQ(trace.strings.at(trace.ios[trace.outputs[0]].values), "[2]");
  }
}

TEST(ChakraSchema, ReadsEveryValueOfVersion003) {
  const auto value = [](std::string_view name, std::uint64_t type) {
    return WireText().bytes(1, name).number(2, type).bytes(3, "doc");
  };
  const std::string file = WireText().message(1, value("schema", 4).bytes(8, "x")).record() +
                           WireText()
                               .number(1, 0)
                               .bytes(2, "a")
                               .number(3, 4)
                               .message(11, value("b", 0).number(4, 1))
                               .message(11, value("f", 1).real32(5, 0.5F))
                               .message(11, value("u", 2).number(6, 7))
                               .message(11, value("i", 3).number(7, static_cast<std::uint64_t>(-7)))
                               .message(11, value("s", 4).bytes(8, "text"))
                               .message(11, value("bs", 5).number(9, 1).number(9, 0))
                               .message(11, value("fs", 6).real32(10, 1.5F))
                               .message(11, value("us", 7).number(11, 3))
                               .message(11, value("is", 8).number(12, 4))
                               .message(11, value("ss", 9).bytes(13, "p").bytes(13, "q"))
                               .record();
  const ChakraTrace trace = parsed(file);
  EXPECT_TRUE(trace.has_metadata);
  ASSERT_EQ(trace.metadata.size(), 1U);
  EXPECT_EQ(trace.strings.at(static_cast<std::uint32_t>(trace.metadata[0].value)), "x");
  ASSERT_EQ(trace.attributes(0).size(), 10U);
  EXPECT_EQ(trace.find(0, "b")->kind(), ChakraValueKind::boolean);
  EXPECT_EQ(trace.strings.at(trace.find(0, "b")->doc), "doc");
  EXPECT_EQ(real_value(trace, 0, *trace.find(0, "f")), 0.5);
  EXPECT_EQ(integer_value(trace, 0, *trace.find(0, "u")), 7);
  EXPECT_EQ(integer_value(trace, 0, *trace.find(0, "i")), -7);
  EXPECT_EQ(text_value(trace, 0, *trace.find(0, "s")), "text");
  EXPECT_EQ(boolean_values(trace, 0, *trace.find(0, "bs")), (std::vector<bool>{true, false}));
  EXPECT_EQ(trace.find(0, "ss")->count, 2U);
}

TEST(ChakraSchema, MetadataOfTheFirstHoursOfVersion004HasItsAttributesInField1) {
  const std::string file = WireText().message(1, WireText().bytes(1, "pid").number(13, 9)).record() +
                           WireText().bytes(2, "a").number(3, 4).number(7, 5).record();
  const ChakraTrace trace = parsed(file);
  EXPECT_EQ(trace.schema, "v0.0.4");
  EXPECT_EQ(trace.version, "");
  ASSERT_EQ(trace.metadata.size(), 1U);
  EXPECT_EQ(trace.metadata[0].value, 9U);
  EXPECT_EQ(trace.duration_micros[0], 5U);
}

TEST(ChakraSchema, CurrentFilesMayLackMetadata) {
  const std::string by_packing = WireText().number(1, 1).bytes(2, "a").number(3, 4).bytes(5, "\2").record();
  const std::string by_name = WireText().number(1, 1).bytes(2, "COMP_NODE").number(3, 4).record();
  for (const std::string& file : {by_packing, by_name}) {
    const ChakraTrace trace = parsed(file);
    EXPECT_EQ(trace.schema, "v0.0.4");
    EXPECT_FALSE(trace.has_metadata);
    EXPECT_EQ(trace.type[0], ChakraNodeType::compute);
  }
}

TEST(ChakraSchema, NamesWhatAnOldFileGetsWrong) {
  const std::string good = file_0_0_1();
  constexpr const char* kHint = "\n  hint: the file is damaged, was cut short, or is not a Chakra trace";
  EXPECT_EQ(error_of([&] {
              parsed(good + WireText().number(1, 2).bytes(2, "x").number(3, 9).number(12, 1).record());
            }),
            "old.et: byte 60: node 2 'x': unknown node type 9 of schema v0.0.1");
  EXPECT_EQ(error_of([&] {
              parsed(good + WireText().number(1, 2).bytes(2, "x").number(3, 6).number(13, 9).record());
            }),
            "old.et: byte 60: unknown collective type 9 of schema v0.0.1" + std::string(kHint));
}

TEST(ChakraSchema, EveryCutAndEveryFlipOfAnOldFileIsATraceOrAnError) {
  for (const std::string& file : {file_0_0_1(), file_0_0_23(0, 1, 5), file_0_0_23(1, 3, 7)}) {
    for (std::size_t at = 0; at < file.size(); ++at) {
      EXPECT_NO_FATAL_FAILURE(error_of([&] { parsed(file.substr(0, at)); }));
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = file;
        damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
        EXPECT_NO_FATAL_FAILURE(error_of([&] { parsed(damaged); }));
      }
    }
  }
}

}  // namespace
}  // namespace armilla
