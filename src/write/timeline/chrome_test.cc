#include "write/timeline/chrome.h"

#include <gmock/gmock.h>

#include "write/format/json_text.h"
#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;

std::vector<Json> events(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

TEST(Chrome, NamesProcessesAndThreads) {
  const Json trace = Json::parse(write_chrome(example_run()));
  std::vector<std::string> names;
  for (const Json& event : events(trace, "M")) {
    if (event["args"].contains("name")) names.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(names,
              ElementsAre("data-parallel rank (rank 0, one of 4 alike)", "compute", "collectives",
                          "collectives (2)", "chunks on nvlink", "chunks on nvlink (2)", "chunks on rail"));
}

TEST(Chrome, SlicesCarryExactMicroseconds) {
  const std::string text = write_chrome(example_run());
  EXPECT_THAT(text, ::testing::HasSubstr(
                        R"({"ph":"X","pid":1,"tid":1,"ts":3,"dur":1.0004,"name":"fc2 weight gradient",)"
                        R"("cat":"weight gradient","args":{"layer":"fc2","phase":"weight gradient",)"
                        R"("flops":256,"bytes":416}})"));
  EXPECT_EQ(events(Json::parse(text), "X").size(), 13u);
}

TEST(Chrome, FlowsStartInsideTheGradientAndEndAtTheCollective) {
  const Json trace = Json::parse(write_chrome(example_run()));
  const std::vector<Json> starts = events(trace, "s"), ends = events(trace, "f");
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(starts[0]["id"], ends[0]["id"]);
  EXPECT_EQ(starts[0]["ts"], 3.5002);
  EXPECT_EQ(starts[0]["tid"], 1);
  EXPECT_EQ(ends[0]["ts"], 4.0004);
  EXPECT_EQ(ends[0]["tid"], 2);
  EXPECT_EQ(ends[0]["bp"], "e");
  EXPECT_EQ(ends[1]["tid"], 3);
}

TEST(Chrome, CountersTellBytes) {
  armilla::Run run = example_run();
  run.roles = {
      {"data-parallel rank", 0, 1, run.memory, {}, {{0, false, Bytes(448), {}, run.memory.gradients}}}};
  const std::vector<Json> counters = events(Json::parse(write_chrome(run)), "C");
  ASSERT_FALSE(counters.empty());
  EXPECT_EQ(counters.back()["name"], "memory");
  EXPECT_EQ(counters.back()["pid"], 1);
  EXPECT_EQ(counters.back()["args"]["bytes"], run.memory.peak().value - run.memory.temporary.value);
}

TEST(Chrome, EscapesNamesThatAreNoPlainText) {
  armilla::Run run = example_run();
  run.graph.programs[0].name[0] = run.graph.names.add("quote \" newline \n byte \xff");
  const Json trace = Json::parse(write_chrome(run));
  EXPECT_EQ(events(trace, "X")[0]["name"], "quote \" newline \n byte \xef\xbf\xbd");
}

TEST(Chrome, AnUnrecordedRunIsAnEmptyTrace) {
  armilla::Run run = example_run();
  run.result.classes.clear();
  EXPECT_EQ(write_chrome(run), "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n");
}

}  // namespace
}  // namespace armilla
