#include "write/trace.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_testing.h"
#include "base/mapped_file.h"
#include "base/oracle_testing.h"
#include "read/trace.h"

namespace armilla {
namespace {

std::string contents_of_file(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

TEST(IssueChromeTest, ReproducesThePeersTimeline) {
  for (const Oracle& tools : oracles("chakra/tools")) {
    const IssueLog log = parse_issue_log(contents_of_file(tools.path / "timeline_in.csv"), "timeline_in.csv");
    EXPECT_EQ(write_issue_chrome(log, {1500, true, 2}), contents_of_file(tools.path / "timeline_out.json"));
  }
}

IssueLog small() {
  IssueLog log;
  log.ranks = 3;
  log.nodes = {{2, 7, "a\"", ChakraNodeType::collective, 1500, 4001},
               {2, 8, "b", ChakraNodeType::invalid, 0, 1}};
  return log;
}

TEST(IssueChromeTest, TimesAreMicroseconds) {
  EXPECT_EQ(
      write_issue_chrome(small(), {}),
      "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
      "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 2, \"tid\": 0, \"args\": {\"name\": \"rank "
      "2\"}},\n"
      "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 2, \"tid\": 4, \"args\": {\"name\": "
      "\"communication\"}},\n"
      "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 2, \"tid\": 5, \"args\": {\"name\": \"other\"}},\n"
      "{\"ph\": \"X\", \"pid\": 2, \"tid\": 4, \"ts\": 1.5, \"dur\": 2.501, \"name\": \"a\\\"\", \"args\": "
      "{\"node\": 7}},\n"
      "{\"ph\": \"X\", \"pid\": 2, \"tid\": 5, \"ts\": 0.0, \"dur\": 0.001, \"name\": \"b\", \"args\": "
      "{\"node\": 8}}\n"
      "]}\n");
}

TEST(IssueChromeTest, ThePeerWantsNamesThatTell) {
  EXPECT_EQ(
      error_of([] {
        write_issue_chrome(small(), {1000, true, 0});
      }),
      "node 7 'a\"' of rank 2: the name does not tell what kind of node it is\n  hint: omit --as-chakra");
}

}  // namespace
}  // namespace armilla
