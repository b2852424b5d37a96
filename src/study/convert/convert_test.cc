#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "base/mapped_file.h"
#include "study/convert_input.h"
#include "study/trace_formats.h"
#include "trace/synthetic.h"
#include "write/trace.h"

namespace armilla {
namespace {

class ConvertTest : public testing::Test {
 protected:
  ConvertTest() : folder_(path_for_test("convert").string() + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~ConvertTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& contents) const {
    write_file(folder_ + name, contents);
    return folder_ + name;
  }

  std::string folder_;
};

constexpr const char* kText = "DATA\n1\nfc -1 1000 NONE 0 1000 NONE 0 2000 ALLREDUCE 4096 0\n";
constexpr const char* kDigraph =
    "digraph g { node0 [label=\"{device_id=0|A|Forward|COMP_NODE|simulated_run_time=1}\"]; }";
// Both GPUs swap their halves.
constexpr const char* kXml =
    "<algo coll=\"allgather\" nchunksperloop=\"2\" inplace=\"1\">"
    "<gpu id=\"0\"><tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">"
    "<step s=\"0\" type=\"s\" srcbuf=\"o\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\"/>"
    "<step s=\"1\" type=\"r\" srcbuf=\"o\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\"/></tb></gpu>"
    "<gpu id=\"1\"><tb id=\"0\" send=\"0\" recv=\"0\" chan=\"0\">"
    "<step s=\"0\" type=\"s\" srcbuf=\"o\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\"/>"
    "<step s=\"1\" type=\"r\" srcbuf=\"o\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" "
    "cnt=\"1\"/></tb></gpu></algo>";

TEST_F(ConvertTest, KindsAreKnownByTheirFirstBytes) {
  const auto kind = [](const std::string& path) {
    const TraceReader* const reader = find_trace_reader(path);
    return reader == nullptr ? std::nullopt : std::optional(reader->kind);
  };
  ChakraTrace trace;
  trace.add_node(0, ChakraNodeType::compute, "a");
  file("job.0.et", write_chakra(trace));
  EXPECT_EQ(kind(folder_ + "job"), FileKind::chakra);
  EXPECT_EQ(kind(folder_ + "job.0.et"), FileKind::chakra);
  EXPECT_EQ(kind(file("a", kText)), FileKind::astra_text);
  EXPECT_EQ(kind(file("b", kDigraph)), FileKind::flexflow);
  EXPECT_EQ(kind(file("c", kXml)), FileKind::msccl);
  const std::string log = file("d", "[x] issue,sys->id=0, tick=0, node->id=0, node->name=n, node->type=4\n");
  EXPECT_TRUE(is_issue_log(log));
  EXPECT_EQ(kind(log), std::nullopt);
  EXPECT_EQ(kind("resnet50"), std::nullopt);
  EXPECT_FALSE(is_issue_log("resnet50"));
}

TEST_F(ConvertTest, EverythingBecomesTraces) {
  ConvertOptions options;
  options.dimensions = {2};
  const auto read = [&](const std::string& name, const std::string& contents) {
    const std::string path = file(name, contents);
    return read_convert_input(path, options);
  };
  EXPECT_EQ(read("a.txt", kText).job.ranks.size(), 2U);
  EXPECT_EQ(read("b.graph", kDigraph).job.ranks.size(), 1U);
  options.bytes = Bytes(100);
  const ConvertInput schedule = read("c.xml", kXml);
  ASSERT_EQ(schedule.job.ranks.size(), 2U);
  const ChakraTrace& first = schedule.job.ranks[0];
  EXPECT_EQ(integer_value(first, 0, *first.find(0, "comm_size")), 50);
  EXPECT_EQ(schedule.notes, (std::vector<std::string>{"verified: performs all-gather"}));
}

TEST_F(ConvertTest, RefusesAnAlgorithmThatDoesNotWork) {
  std::string text = kXml;
  text.replace(text.find("dstoff=\"1\" cnt=\"1\"/></tb></gpu>"), 10, "dstoff=\"0\"");
  const std::string path = file("c.xml", text);
  EXPECT_EQ(error_of([&] { read_convert_input(path, {}); }),
            path + ": performs no all-gather: GPU 0 ends with chunk 1 in place of chunk 0 of the output");
}

std::vector<std::string> paths(const std::vector<NamedContents>& files) {
  std::vector<std::string> result;
  for (const NamedContents& each : files) result.push_back(each.path);
  return result;
}

// An older job of more ranks would be taken for a part of this one.
TEST(TraceFormatsTest, FilesOfFurtherRanksAreRefused) {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "armilla-ranks-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::string prefix = name + "/job";
  const auto touch = [&](const std::string& file) { std::ofstream(name + "/" + file) << "old"; };
  TraceSet job;
  job.ranks = synthesize(parse_component("ring:npus=2", "test"), false);
  const TraceFormat& chakra = find_trace_format("chakra", "");
  const auto refusal = [&] { return error_of([&] { refuse_further_ranks(job, chakra, prefix); }); };
  for (const char* file : {"job.0.et", "job.1.et", "job.1.json", "job.02.et", "job.x.et", "jobs.2.et",
                           "job.2.dot", "job.communicators.json"})
    touch(file);
  EXPECT_EQ(refusal(), "no error");
  touch("job.7.json");
  EXPECT_EQ(refusal(), prefix +
                           ".7.json: belongs to an older job of more than 2 ranks: with it the two would be "
                           "read as one\n  hint: remove the files of the ranks from 2 on, or choose another "
                           "prefix");
  touch("job.2.et");
  EXPECT_THAT(refusal(),
              ::testing::HasSubstr("job.2.et: belongs to an older job of more than 2 ranks, like 1 more"));
  const TraceFormat& dot = find_trace_format("dot", "");
  EXPECT_THAT(error_of([&] { refuse_further_ranks(job, dot, prefix + ".dot"); }),
              ::testing::HasSubstr("job.2.dot: belongs to"));
  job.ranks.resize(1);
  EXPECT_EQ(error_of([&] { refuse_further_ranks(job, chakra, prefix + ".et"); }), "no error");
  fs::remove_all(name);
}

TEST(TraceFormatsTest, OneFilePerRankUnlessOneIsNamed) {
  TraceSet job;
  job.ranks = synthesize(parse_component("ring:npus=2", "test"), false);
  const TraceFormat& chakra = find_trace_format("", "out");
  EXPECT_EQ(chakra.name, "chakra");
  EXPECT_EQ(paths(trace_files(job, chakra, "out", false)),
            (std::vector<std::string>{"out.0.et", "out.1.et"}));
  const TraceFormat& dot = find_trace_format("", "out.dot");
  EXPECT_EQ(paths(trace_files(job, dot, "out.dot", false)),
            (std::vector<std::string>{"out.0.dot", "out.1.dot"}));
  job.ranks.resize(1);
  job.communicators["1"] = {{0, 1}, ""};
  EXPECT_EQ(paths(trace_files(job, dot, "out.dot", false)),
            (std::vector<std::string>{"out.dot", "out.communicators.json"}));
  EXPECT_EQ(trace_files(job, chakra, "out", true)[0].contents.substr(0, 2), "\x1f\x8b");
  std::string suffixes;
  for (const TraceFormat& format : trace_formats())
    suffixes += (suffixes.empty() ? "" : ", ") + std::string(format.suffix);
  EXPECT_THAT(suffixes, testing::StartsWith(".et, .json, .dot, "));
  EXPECT_EQ(error_of([] { find_trace_format("", "x.txt"); }),
            "x.txt: traces cannot be turned back into a workload\n"
            "  hint: known suffixes: " +
                suffixes + "; any other name is the prefix of .et files");
  EXPECT_EQ(error_of([] { find_trace_format("dto", ""); }),
            "--to: unknown format 'dto'\n  hint: did you mean 'dot'?");
}

TEST(TraceFormatsTest, GraphvizDrawsPictures) {
  ChakraTrace trace;
  trace.add_node(0, ChakraNodeType::compute, "a<b>");
  try {
    EXPECT_NE(find_trace_format("svg", "").write(trace).find("<svg"), std::string::npos);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "--to svg: Graphviz' program 'dot' is not installed\n"
                 "  hint: install the package graphviz, or write .dot or .graphml and draw it elsewhere");
  }
}

}  // namespace
}  // namespace armilla
