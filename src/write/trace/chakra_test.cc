#include "write/trace.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <map>

#include "base/error_testing.h"
#include "base/mapped_file.h"
#include "base/oracle_testing.h"
#include "read/trace.h"

namespace armilla {
namespace {

using Kind = ChakraValueKind;

std::string contents_of(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

ChakraTrace every_kind() {
  ChakraTrace trace;
  trace.version = "0.0.4";
  const auto add_metadata = [&](const char* name, Kind kind, std::uint64_t value) {
    trace.metadata.push_back({trace.strings.add(name), 0, static_cast<std::uint8_t>(kind), 0, value});
  };
  add_metadata("schema", Kind::string, trace.strings.add("1.0.2-chakra.0.0.4"));
  add_metadata("pid", Kind::uint64, 7);
  trace.add_node(0, ChakraNodeType::compute, "zero", 0);
  trace.add_node(UINT64_MAX, ChakraNodeType::collective, "wide", UINT64_MAX);
  trace.start_micros.back() = 12;
  trace.add_data_dependence(0);
  trace.add_data_dependence(300);
  trace.add_control_dependence(UINT64_MAX);
  for (const Kind kind :
       {Kind::int32, Kind::int64, Kind::sint32, Kind::sint64, Kind::sfixed32, Kind::sfixed64})
    trace.add_integer("negative", kind, -70000);
  for (const Kind kind : {Kind::uint32, Kind::uint64, Kind::fixed32, Kind::fixed64})
    trace.add_integer("positive", kind, 70000);
  trace.add_integer("least", Kind::sint64, INT64_MIN);
  trace.add_integer("zero", Kind::int64, 0);
  trace.add_integer("yes", Kind::boolean, 1);
  trace.add_real("half", Kind::real32, 0.5);
  trace.add_real("tenth", Kind::real64, 0.1);
  trace.add_text("pg_name", "");
  trace.add_booleans("involved_dim", std::array{true, false, true});
  trace.add_booleans("none", {});
  trace.add_booleans("words", std::array{false, false});
  trace.attribute.back().field = static_cast<std::uint8_t>(Kind::string) + 1;
  trace.list_values.end()[-2] = trace.strings.add("");
  trace.list_values.back() = trace.strings.add("b");
  trace.ios.push_back({trace.strings.add("[1]"), 0, trace.strings.add("['Tensor']")});
  trace.inputs.back() = 1;
  trace.ios.emplace_back();
  trace.outputs.back() = 2;  // present, but empty
  return trace;
}

TEST(WriteChakra, EveryKindOfValueSurvives) {
  const ChakraTrace trace = every_kind();
  const std::string bytes = write_chakra(trace);
  const ChakraTrace back = read_chakra(bytes, "t.et");
  EXPECT_TRUE(same_contents(trace, back));
  EXPECT_EQ(write_chakra(back), bytes);
  EXPECT_EQ(back.schema, "v0.0.4");
  EXPECT_EQ(back.source, "t.et");
}

TEST(WriteChakra, ListsOfEveryKindSurvive) {
  ChakraTrace trace;
  trace.add_node(1, ChakraNodeType::compute, "lists");
  for (unsigned kind = 3; kind <= 27; kind += 2) {
    trace.add_booleans("list", std::array{true, false});
    trace.attribute.back().field = static_cast<std::uint8_t>(kind + 1);
    const bool real = kind <= 5;
    const std::size_t first = trace.attribute.back().value;
    if (real) trace.list_values[first] = std::bit_cast<std::uint64_t>(-1.5);
  }
  const ChakraTrace back = read_chakra(write_chakra(trace), "t.et");
  EXPECT_TRUE(same_contents(trace, back));
}

TEST(WriteChakra, BytesAreThoseOfTheFormat) {
  ChakraTrace trace;
  trace.version = "v";
  trace.add_node(1, ChakraNodeType::compute, "a", 300);
  trace.add_data_dependence(5);
  trace.add_integer("i", Kind::int32, -1);
  using namespace std::string_view_literals;
  EXPECT_EQ(
      write_chakra(trace),
      "\x03\x0a\x01v"
      "\x1d\x08\x01\x12\x01"
      "a\x18\x04\x2a\x01\x05\x38\xac\x02\x52\x0e\x0a\x01i\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
}

TEST(WriteChakra, GzipIsStableAndReadBack) {
  const std::string bytes = write_chakra(every_kind());
  const std::string packed = gzipped(bytes);
  EXPECT_EQ(packed.substr(0, 8), std::string("\x1f\x8b\x08\0\0\0\0\0", 8));  // no name, no date
  EXPECT_TRUE(same_contents(read_chakra(packed, "t.et.gz"), every_kind()));
  const std::string twice = gzipped(packed);
  EXPECT_EQ(error_of([&] { read_chakra(twice, "t.et.gz"); }),
            "t.et.gz: is packed twice\n  hint: unpack it once with gunzip");
}

// Files that Chakra's own tools and ASTRA-sim's users wrote survive unchanged.
TEST(WriteChakra, PublishedFilesSurviveUnchanged) {
  std::map<bool, int> files;
  for (const char* part : {"chakra", "astra2/traces"}) {
    for (const auto& [folder, whole] : oracles(part)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".et") continue;
        const std::string path = entry.path().string();
        EXPECT_EQ(write_chakra(read_chakra_file(path)) == contents_of(path), true) << path;
        ++files[whole];
      }
    }
  }
  for (const auto& [whole, count] : files) EXPECT_GT(count, whole ? 300 : 130);
}

}  // namespace
}  // namespace armilla
