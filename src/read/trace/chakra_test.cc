#include "read/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "base/oracle_testing.h"
#include "base/source_path_testing.h"
#include "read/encoding/gzip.h"
#include "read/trace/chakra_testing.h"

namespace armilla {
namespace {

using ValueKind = ChakraValueKind;

constexpr const char* kHint = "\n  hint: the file is damaged, was cut short, or is not a Chakra trace";

WireText attribute(std::string_view name, const WireText& value) {
  WireText text;
  text.bytes(1, name);
  return WireText(text).append(value);
}

std::string metadata() {
  return WireText().bytes(1, "0.0.4").message(2, attribute("pid", WireText().number(13, 5))).record();
}

std::string small_file() {
  const WireText compute = WireText().number(1, 4).bytes(2, "work").number(3, 4).number(7, 50).message(
      10, attribute("is_cpu_op", WireText().number(27, 0)));
  const WireText collective =
      WireText()
          .number(1, 9)
          .bytes(2, "exchange")
          .number(3, 7)
          .bytes(4, "\x04")
          .bytes(5, "\x04\x07")
          .message(8, WireText().bytes(1, "[1]").bytes(3, "['Tensor']"))
          .message(10, attribute("comm_type", WireText().number(9, 0)))
          .message(10, attribute("comm_size", WireText().real64(3, 4096)))
          .message(10, attribute("involved_dim", WireText().message(28, WireText().bytes(1, "\1\1"))));
  return metadata() + compute.record() + collective.record();
}

ChakraTrace parsed_trace(const std::string& bytes) {
  return read_chakra(bytes, "t.et");
}
std::string error_in_trace(const std::string& bytes) {
  return error_of([&] { parsed_trace(bytes); });
}

TEST(ReadChakra, ReadsAllThatANodeSays) {
  const ChakraTrace trace = parsed_trace(small_file());
  EXPECT_EQ(trace.source, "t.et");
  EXPECT_EQ(trace.schema, "v0.0.4");
  EXPECT_EQ(trace.version, "0.0.4");
  ASSERT_EQ(trace.metadata.size(), 1U);
  EXPECT_EQ(trace.metadata[0].value, 5U);
  ASSERT_EQ(trace.size(), 2U);
  EXPECT_EQ(trace.id, (std::vector<std::uint64_t>{4, 9}));
  EXPECT_EQ(trace.type[0], ChakraNodeType::compute);
  EXPECT_EQ(trace.type[1], ChakraNodeType::collective);
  EXPECT_EQ(trace.name_of_node(1), "exchange");
  EXPECT_EQ(trace.duration_micros[0], 50U);
  EXPECT_EQ(trace.control_dependence, (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(trace.data_dependence, (std::vector<std::uint64_t>{4, 7}));
  EXPECT_EQ(trace.inputs[0], 0U);
  EXPECT_EQ(trace.strings.at(trace.ios[trace.inputs[1]].types), "['Tensor']");
  EXPECT_EQ(integer_value(trace, 1, *trace.find(1, "comm_size")), 4096);
  EXPECT_EQ(boolean_values(trace, 1, *trace.find(1, "involved_dim")), (std::vector<bool>{true, true}));
}

TEST(ReadChakra, PackedAndUnpackedListsAreTheSame) {
  const WireText packed =
      WireText()
          .bytes(2, "n")
          .number(3, 4)
          .bytes(5, "\x01\x02")
          .message(10, attribute("d", WireText().message(28, WireText().bytes(1, std::string("\1\0", 2)))));
  const WireText unpacked = WireText().bytes(2, "n").number(3, 4).number(5, 1).number(5, 2).message(
      10, attribute("d", WireText().message(28, WireText().number(1, 1).number(1, 0))));
  EXPECT_TRUE(same_contents(parsed_trace(metadata() + packed.record()),
                            parsed_trace(metadata() + unpacked.record())));
}

TEST(ReadChakra, UnknownFieldsAreSkippedAndUnknownTypesNamed) {
  const WireText node = WireText().number(1, 3).bytes(2, "n").number(3, 4);
  const WireText more = WireText(node)
                            .message(11, WireText().number(1, 2))
                            .number(40, 7)
                            .message(10, attribute("any", WireText().bytes(33, "type.url")));
  const ChakraTrace trace = parsed_trace(metadata() + more.record());
  ASSERT_EQ(trace.attributes(0).size(), 1U);
  EXPECT_EQ(trace.attributes(0)[0].field, 0);
  const std::string prefix = metadata();
  EXPECT_EQ(error_in_trace(prefix + WireText().number(1, 3).bytes(2, "save").number(3, 10).record()),
            "t.et: byte 18: node 3 'save': unknown node type 10 (CHECKPOINT_NODE)\n"
            "  hint: Chakra 1.0.0 has the types 0 (INVALID_NODE) to 7 (COMM_COLL_NODE)");
}

TEST(ReadChakra, SaysWhereAFileIsDamaged) {
  const std::string file = small_file();
  EXPECT_EQ(error_in_trace(""),
            "t.et: the file is empty\n"
            "  hint: a Chakra trace holds at least one record; was it written fully?");
  EXPECT_EQ(error_in_trace("this is no trace at all, and long enough to be read as a record of 116 bytes"),
            "t.et: byte 0: a record of 116 bytes starts here, but only 75 are left" + std::string(kHint));
  EXPECT_EQ(error_in_trace(file.substr(0, file.size() - 1)),
            "t.et: byte 46: a record of 100 bytes starts here, but only 99 are left" + std::string(kHint));
  EXPECT_EQ(error_in_trace(std::string(100, '\0')),
            "t.et: byte 1: a node without any field" + std::string(kHint));
  EXPECT_EQ(error_in_trace(std::string(11, '\xff')),
            "t.et: byte 0: no record starts here: its length is cut short or has more than 64 bits" +
                std::string(kHint));
  EXPECT_EQ(error_in_trace(metadata() + WireText().number(1, 3).number(2, 3).record()),
            "t.et: byte 20: field 2 has wire type 0 where 2 belongs" + std::string(kHint));
  EXPECT_EQ(error_in_trace(metadata() + WireText().number(1, 3).varint(5 << 3 | 2).varint(9).record()),
            "t.et: byte 20: field 5 needs 9 bytes, but only 0 are left" + std::string(kHint));
}

// What does not depend on how far the file was read already.
TEST(ReadChakra, AFileThatWasCutShortSaysSoWhateverElseIsWrong) {
  const std::string wrong = WireText().number(1, 3).bytes(2, "save").number(3, 10).record();
  const std::string file = metadata() + wrong + small_file().substr(metadata().size());
  EXPECT_EQ(error_in_trace(file),
            "t.et: byte 18: node 3 'save': unknown node type 10 (CHECKPOINT_NODE)\n"
            "  hint: Chakra 1.0.0 has the types 0 (INVALID_NODE) to 7 (COMM_COLL_NODE)");
  const std::size_t last = file.size() - 101;
  EXPECT_EQ(
      error_in_trace(file.substr(0, file.size() - 1)),
      fmt::format("t.et: byte {}: a record of 100 bytes starts here, but only 99 are left{}", last, kHint));
  // Beyond the records that are looked at first, too.
  std::string large = metadata() + wrong;
  while (large.size() < 1 << 16) large += WireText().number(1, 1).bytes(2, "n").number(3, 4).record();
  EXPECT_EQ(error_in_trace(large + '\0'),
            fmt::format("t.et: byte {}: a node without any field{}", large.size(), kHint));
}

TEST(ReadChakra, MappedFilesAndUsedTracesMakeNoDifference) {
  std::mt19937 random(7);
  std::string file = metadata();
  for (std::uint64_t id = 0; file.size() < 9 << 20; ++id) {
    WireText node =
        WireText().number(1, id).number(3, 4).bytes(2, fmt::format("layer {} of {}", random() % 5000, 9));
    if (id > 0) node.bytes(5, WireText().varint(random() % id).text());
    node.message(10, attribute("is_cpu_op", WireText().number(27, random() % 2)));
    node.message(10, attribute("num_ops", WireText().number(9, random() % 3)));
    node.message(10, attribute("num_ops", WireText().number(13, random() % 3)));
    node.message(10, attribute("pg_name", WireText().bytes(29, std::to_string(random() % 3))));
    node.message(10, attribute("involved_dim", WireText().message(28, WireText().bytes(1, "\1"))));
    node.message(10, attribute("remark", WireText().bytes(29, std::string(random() % 50, 'r'))));
    file += node.record();
  }
  const ChakraTrace expected = parsed_trace(file);
  const std::string path = path_for_test("chakra_test.et");
  std::ofstream(path, std::ios::binary) << file;
  ChakraTrace used = parsed_trace(small_file());
  read_chakra_file(path, used);
  std::filesystem::remove(path);
  EXPECT_EQ(used.source, path);
  EXPECT_EQ(used.schema, expected.schema);
  EXPECT_TRUE(same_contents(used, expected));
  // Every attribute is its own, though most were seen before.
  std::mt19937 again(7);
  for (std::uint64_t id = 0; id < expected.size(); ++id) {
    again.discard(id > 0 ? 2 : 1);
    const std::span<const ChakraAttribute> found = expected.attributes(id);
    ASSERT_EQ(found.size(), 6U);
    ASSERT_EQ(found[0].value, again() % 2);
    ASSERT_EQ(found[1].value, again() % 3);
    ASSERT_EQ(found[1].kind(), ValueKind::int64);
    ASSERT_EQ(found[2].value, again() % 3);
    ASSERT_EQ(found[2].kind(), ValueKind::uint64);
    ASSERT_EQ(text_value(expected, id, found[3]), std::to_string(again() % 3));
    ASSERT_EQ(boolean_values(expected, id, found[4]), std::vector<bool>{true});
    ASSERT_EQ(text_value(expected, id, found[5]).size(), again() % 50);
  }
}

// Whatever happens to a file, the answer is a trace or an Error: no crash, no endless loop.
TEST(ReadChakra, EveryCutAndEveryFlipIsATraceOrAnError) {
  for (const std::string& file : {small_file(), small_file().substr(metadata().size())}) {
    int traces = 0;
    const auto attempt = [&](const std::string& bytes) {
      try {
        const ChakraTrace trace = parsed_trace(bytes);
        EXPECT_EQ(trace.first_attribute.size(), trace.size() + 1);
        EXPECT_EQ(trace.first_attribute.back(), trace.attribute.size());
        EXPECT_EQ(trace.first_data_dependence.back(), trace.data_dependence.size());
        EXPECT_TRUE(same_contents(trace, trace));
        ++traces;
      } catch (const Error&) {
      }
    };
    for (std::size_t size = 0; size <= file.size(); ++size) attempt(file.substr(0, size));
    EXPECT_GE(traces, 2);
    EXPECT_LE(traces, 3);  // the cuts between records
    for (std::size_t at = 0; at < file.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = file;
        damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
        attempt(damaged);
      }
      for (const char byte : {'\0', '\x7f', '\x80', '\xff'}) {
        std::string damaged = file;
        damaged[at] = byte;
        attempt(damaged);
      }
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string noise(random() % 60, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    EXPECT_NO_FATAL_FAILURE(error_in_trace(noise));
  }
}

TEST(ReadChakra, TheFuzzersCorpusIsRead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/fuzz/chakra"))) {
    EXPECT_GT(read_chakra_file(entry.path().string()).size(), 0U) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 9);
}

TEST(ReadChakra, DamagedGzipIsAnErrorAndBombsAreRefused) {
  std::string packed = small_file();
  {
    std::string out(4096, '\0');
    z_stream stream{};
    ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    packed = out;
  }
  EXPECT_TRUE(same_contents(parsed_trace(packed), parsed_trace(small_file())));
  EXPECT_EQ(error_in_trace(packed + "more"),
            fmt::format("t.et: byte {}: something else follows the packed data\n"
                        "  hint: the gzip file is damaged or was cut short",
                        packed.size()));
  EXPECT_EQ(error_in_trace(packed.substr(0, packed.size() - 3)),
            fmt::format("t.et: byte {}: the packed data ends too early\n"
                        "  hint: the gzip file is damaged or was cut short",
                        packed.size() - 3));
  for (std::size_t at = 0; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(~damaged[at]);
    EXPECT_NO_FATAL_FAILURE(error_in_trace(damaged));
    EXPECT_NE(error_in_trace(packed.substr(0, at)), "no error");
  }
  // The same member over and over unpacks to all of them.
  EXPECT_EQ(unpack_gzip(packed + packed, "t").size(), 2 * small_file().size());
}

// nodes.txt lists what the files were made from: "  id=0 type=4 name=n0 dur_us=100 data_deps=[1, 2] ...".
std::string readable(const ChakraTrace& trace, std::size_t node) {
  return fmt::format("  id={} type={} name={} dur_us={} data_deps=[{}] ctrl_deps=[{}]", trace.id[node],
                     static_cast<int>(trace.type[node]), trace.name_of_node(node),
                     trace.duration_micros[node], fmt::join(trace.data_dependences(node), ", "),
                     fmt::join(trace.control_dependences(node), ", "));
}

TEST(ReadChakra, AgreesWithTheReadableFormOfPublishedTraces) {
  for (const auto& [folder, whole] : oracles("astra2/traces")) {
    int compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream nodes(entry.path() / "nodes.txt");
      ChakraTrace trace;
      std::size_t next = 0;
      for (std::string line; std::getline(nodes, line);) {
        if (line.starts_with("rank ")) {
          EXPECT_EQ(next, trace.size()) << trace.source;
          const std::string file = (entry.path() / ("trace." + line.substr(5) + ".et")).string();
          next = 0;
          trace = std::filesystem::exists(file) ? read_chakra_file(file) : ChakraTrace();
        } else if (line.starts_with("  id=") && trace.size() > 0) {
          ASSERT_LT(next, trace.size()) << entry.path();
          EXPECT_EQ(line.substr(0, line.find(" {")), readable(trace, next++)) << trace.source;
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, whole ? 1000 : 150);
  }
}

// chakra_jsonizer wrote the JSON from the file beside it.
TEST(ReadChakra, JsonOfTheJsonizerIsTheSameTrace) {
  for (const auto& [folder, whole] : oracles("chakra")) {
    int compared = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      std::filesystem::path binary = entry.path();
      if (binary.extension() != ".json" || !std::filesystem::exists(binary.replace_extension(".et")))
        continue;
      const ChakraTrace json = read_chakra_file(entry.path().string());
      EXPECT_EQ(json.schema, "json");
      EXPECT_TRUE(same_contents(json, read_chakra_file(binary.string()))) << binary;
      ++compared;
    }
    EXPECT_GT(compared, whole ? 10 : 5);
  }
}

// A trace of the PyTorch profiler as Chakra's tools link and convert it. The figures are those of
// chakra_jsonizer.
TEST(ReadChakra, TracesOfPyTorchHaveOperatorsKernelsAndCollectives) {
  const std::filesystem::path folder = source_path("tests/reference/chakra/pytorch");
  const ChakraTrace trace = read_chakra_file((folder / "pytorch.0.et").string());
  const auto ids = [](std::span<const std::uint64_t> dependences) {
    return fmt::format("{}", fmt::join(dependences, " "));
  };
  const auto whole = [&](std::size_t node, std::string_view name) {
    const ChakraAttribute* const found = trace.find(node, name);
    return found == nullptr ? std::string() : std::to_string(integer_value(trace, node, *found));
  };
  const std::vector<OracleRow> rows = read_oracle(folder / "pytorch.0.csv");
  ASSERT_EQ(trace.size(), rows.size());
  for (std::size_t node = 0; node < trace.size(); ++node) {
    const OracleRow& row = rows[node];
    EXPECT_EQ(std::to_string(trace.id[node]), row.at("id"));
    EXPECT_EQ(name_of(trace.type[node]), row.at("type"));
    EXPECT_EQ(std::to_string(trace.duration_micros[node]), row.at("duration_us"));
    EXPECT_EQ(ids(trace.control_dependences(node)), row.at("control"));
    EXPECT_EQ(ids(trace.data_dependences(node)), row.at("data"));
    EXPECT_EQ(whole(node, "is_cpu_op"), row.at("on_cpu"));
    EXPECT_EQ(whole(node, "stream"), row.at("stream"));
    EXPECT_EQ(whole(node, "comm_type"), row.at("collective"));
    EXPECT_EQ(whole(node, "comm_size"), row.at("bytes"));
    const ChakraAttribute* const group = trace.find(node, "pg_name");
    EXPECT_EQ(group == nullptr ? "" : text_value(trace, node, *group), row.at("group"));
    EXPECT_EQ(trace.name_of_node(node), row.at("name"));
  }
}

TEST(ReadChakra, ReadsTheJsonOfTheFeeder) {
  const ChakraTrace trace = parsed_trace(
      R"({"workload_name": "w", "ngpus": 1, "workload_graph": [
        {"Id": 0, "Name": "a", "NodeType": 4, "is_cpu_op": false, "runtime": 5},
        {"Id": 1, "Name": "b", "NodeType": 7, "runtime": 0.25, "data_deps": [0], "ctrlDeps": [],
         "comm_type": 0, "comm_size": 1024}]})");
  ASSERT_EQ(trace.size(), 2U);
  EXPECT_EQ(trace.duration_micros[0], 5U);
  EXPECT_EQ(trace.data_dependences(1)[0], 0U);
  EXPECT_EQ(real_value(trace, 1, *trace.find(1, kDurationNs)), 250);
  EXPECT_EQ(integer_value(trace, 1, *trace.find(1, "comm_size")), 1024);
}

TEST(ReadChakra, JsonErrorsHaveALineAndColumn) {
  EXPECT_EQ(error_in_trace("{\"version\": \"1\"}\n{\"id\": \"1\", \"typ\": 4}"),
            "t.et:2:1: a node has no key 'typ'\n  hint: did you mean 'type'?");
  EXPECT_EQ(error_in_trace("{\"id\": 1,\n \"name\" \"x\"}"), "t.et:2:11: is not valid JSON here");
  EXPECT_EQ(error_in_trace("{\"id\": 1"),
            "t.et:1:9: is not valid JSON here\n  hint: the file ends too early");
  EXPECT_EQ(error_in_trace("{\"id\": -1}"), "t.et:1:1: 'id' is not a whole number from 0");
  EXPECT_EQ(error_in_trace("{\"id\": 1, \"type\": \"COMP_NOD\"}"),
            "t.et:1:1: unknown node type 'COMP_NOD'\n  hint: did you mean 'COMP_NODE'?");
  EXPECT_EQ(error_in_trace("{\"id\": 1}\n 7"), "t.et:2:2: an object, '{', belongs here");
  EXPECT_EQ(error_in_trace("{\"workload_graph\": [{\"Id\": 1}]}"),
            "t.et:1:1: workload_graph[0]: a node has no 'NodeType'");
  EXPECT_EQ(error_in_trace("{\"workload_graph\": 3}"), "t.et:1:1: 'workload_graph' is not a list");
  EXPECT_EQ(error_in_trace("{\"attr\": [{\"name\": \"n\", \"int32Val\": \"3000000000\"}]}"),
            "t.et:1:1: 'int32Val' is not a whole number in the range of its type");
  EXPECT_EQ(error_in_trace("{\"id\": 1e999}"),
            "t.et:1:1: the object that starts here holds an impossible value");
}

}  // namespace
}  // namespace armilla
