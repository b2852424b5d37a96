#include "ir/formats/chakra.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/error_testing.h"

namespace armilla {
namespace {

ChakraTrace small_trace() {
  ChakraTrace trace;
  trace.source = "t.0.et";
  trace.add_node(7, ChakraNodeType::compute, "work", 5);
  trace.add_integer("num_ops", ChakraValueKind::int64, -3);
  trace.add_real("share", ChakraValueKind::real64, 0.5);
  trace.add_node(9, ChakraNodeType::collective, "exchange");
  trace.add_data_dependence(7);
  trace.add_control_dependence(7);
  trace.add_text("pg_name", "dp");
  trace.add_booleans("involved_dim", std::array{true, false});
  return trace;
}

TEST(Chakra, AppendedPartsBelongToTheLastNode) {
  const ChakraTrace trace = small_trace();
  EXPECT_EQ(trace.size(), 2U);
  EXPECT_TRUE(trace.data_dependences(0).empty());
  ASSERT_EQ(trace.data_dependences(1).size(), 1U);
  EXPECT_EQ(trace.data_dependences(1)[0], 7U);
  EXPECT_EQ(trace.control_dependences(1).size(), 1U);
  EXPECT_EQ(trace.attributes(0).size(), 2U);
  EXPECT_EQ(trace.find(0, "pg_name"), nullptr);
  ASSERT_NE(trace.find(1, "pg_name"), nullptr);
  EXPECT_EQ(text_value(trace, 1, *trace.find(1, "pg_name")), "dp");
  EXPECT_EQ(integer_value(trace, 0, *trace.find(0, "num_ops")), -3);
  EXPECT_EQ(real_value(trace, 0, *trace.find(0, "share")), 0.5);
  EXPECT_EQ(real_value(trace, 0, *trace.find(0, "num_ops")), -3);
  EXPECT_EQ(boolean_values(trace, 1, *trace.find(1, "involved_dim")), (std::vector<bool>{true, false}));
  EXPECT_EQ(name_of(trace.type[1]), "COMM_COLL_NODE");
  EXPECT_EQ(name_of(ChakraCollective::reduce_scatter_block), "REDUCE_SCATTER_BLOCK");
}

TEST(Chakra, NumbersAreReadWhateverTheirKind) {
  ChakraTrace trace;
  trace.source = "t.0.et";
  trace.add_node(1, ChakraNodeType::compute, "a");
  trace.add_real("a", ChakraValueKind::real32, 1048576);
  trace.add_integer("b", ChakraValueKind::boolean, 1);
  trace.add_integer("c", ChakraValueKind::sfixed32, -5);
  trace.add_integer("d", ChakraValueKind::uint64, -1);
  trace.add_real("e", ChakraValueKind::real64, 1.5);
  trace.add_real("f", ChakraValueKind::real64, 0x1p63);
  trace.add_text("g", "12");
  trace.add_booleans("h", std::array{true});
  trace.add_real("i", ChakraValueKind::real64, std::numeric_limits<double>::quiet_NaN());
  const auto value = [&](std::string_view name) { return integer_value(trace, 0, *trace.find(0, name)); };
  EXPECT_EQ(value("a"), 1048576);
  EXPECT_EQ(value("b"), 1);
  EXPECT_EQ(value("c"), -5);
  EXPECT_EQ(error_of([&] { value("d"); }),
            "t.0.et: node 1 'a': attribute 'd' is 18446744073709551615, which is too large\n"
            "  hint: was a negative number written as an unsigned one?");
  EXPECT_EQ(error_of([&] { value("e"); }),
            "t.0.et: node 1 'a': attribute 'e' is 1.5, where a whole number of 64 bits belongs");
  EXPECT_EQ(error_of([&] { value("f"); }),
            "t.0.et: node 1 'a': attribute 'f' is 9.223372036854776e+18, where a whole number of 64 bits "
            "belongs");
  EXPECT_EQ(error_of([&] { value("g"); }),
            "t.0.et: node 1 'a': attribute 'g' is text, where a whole number belongs");
  EXPECT_EQ(error_of([&] { value("h"); }),
            "t.0.et: node 1 'a': attribute 'h' is a list of numbers, where a whole number belongs");
  EXPECT_EQ(error_of([&] { real_value(trace, 0, *trace.find(0, "i")); }),
            "t.0.et: node 1 'a': attribute 'i' is nan, which is not a number");
  EXPECT_EQ(error_of([&] { text_value(trace, 0, *trace.find(0, "b")); }),
            "t.0.et: node 1 'a': attribute 'b' is a number, where text belongs");
  EXPECT_EQ(error_of([&] { boolean_values(trace, 0, *trace.find(0, "g")); }),
            "t.0.et: node 1 'a': attribute 'g' is text, where a list of booleans belongs");
}

TEST(Chakra, CopiedNodesAreEqualWhateverTheNumbersOfTheirStrings) {
  const ChakraTrace original = small_trace();
  ChakraTrace copy;
  copy.strings.add("shifts the numbers of all strings");
  for (std::size_t node = 0; node < original.size(); ++node) copy.copy_node(original, node);
  EXPECT_TRUE(same_contents(original, copy));
  copy.add_text("pg_name", "dp");
  EXPECT_FALSE(same_contents(original, copy));
  ChakraTrace other = small_trace();
  other.list_values.back() = 1;
  EXPECT_FALSE(same_contents(original, other));
}

}  // namespace
}  // namespace armilla
