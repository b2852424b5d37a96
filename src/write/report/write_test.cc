#include "write/write.h"

#include <gmock/gmock.h>

#include <set>

#include "base/error_testing.h"
#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(RunFormats, EachWritesItsFilesWherePathSays) {
  const armilla::Run run = example_run();
  for (const RunFormat& format : run_formats()) {
    const std::vector<NamedContents> files = format.write(run, "some/out", {});
    EXPECT_EQ(files.size(), format.name == "csv" ? 7u : 1u) << format.name;
    std::set<std::string> paths;
    for (const NamedContents& file : files) {
      EXPECT_THAT(file.path, StartsWith("some/out"));
      EXPECT_FALSE(file.contents.empty()) << format.name;
      paths.insert(file.path);
    }
    EXPECT_EQ(paths.size(), files.size());
  }
}

TEST(RunFormats, TraceFormatFollowsTheSuffix) {
  EXPECT_EQ(trace_format("a/b.pftrace").name, "perfetto");
  EXPECT_EQ(trace_format("b.json").name, "chrome");
  EXPECT_EQ(error_of([] { trace_format("trace.zip"); }),
            "trace.zip: no format is known for the suffix of this file\n"
            "  hint: known suffixes: .pftrace, .perfetto-trace, .json");
}

TEST(LayerFormats, NamesAreThoseOfTheCommandLine) {
  std::vector<std::string_view> names;
  for (const LayerFormat& format : layer_formats()) names.push_back(format.name);
  EXPECT_THAT(names, ElementsAre("text", "csv", "json"));
}

TEST(TextWorkloadFormats, FollowNameOrSuffix) {
  EXPECT_EQ(text_workload_format("", "x.txt").name, "astra-text");
  EXPECT_EQ(text_workload_format("", "x.json").name, "json");
  EXPECT_EQ(text_workload_format("csv", "x.txt").name, "csv");
  EXPECT_EQ(error_of([] { text_workload_format("", "x.et"); }),
            "x.et: no format is known for the suffix of this file\n"
            "  hint: known suffixes: .txt, .json, .csv; or name the format with --to");
  EXPECT_EQ(error_of([] { text_workload_format("astra-txt", "x"); }),
            "--to: unknown format 'astra-txt'\n  hint: did you mean 'astra-text'?");
}

}  // namespace
}  // namespace armilla
