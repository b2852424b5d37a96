#include <gtest/gtest.h>

#include <filesystem>

#include "base/cases_testing.h"
#include "base/source_path_testing.h"
#include "cli/cli_testing.h"
#include "cli/command.h"

namespace armilla {
namespace {

using CliExamples = InEmptyFolder;

TEST_F(CliExamples, OfEveryHelpTextRun) {
  std::filesystem::copy(source_path("examples"), "examples", std::filesystem::copy_options::recursive);
  int seen = 0;
  for (const CommandInfo& info : commands()) {
    EXPECT_FALSE(info.examples.empty()) << info.name;
    const Outcome help = run({std::string(info.name), "--help"});
    EXPECT_EQ(help.code, 0) << info.name;
    for (const Example& example : info.examples) {
      EXPECT_NE(help.out.find("armilla " + std::string(example.arguments)), std::string::npos)
          << "not in the help: " << example.arguments;
      if (seen++ % kCaseStep != 0) continue;
      const Outcome outcome = run(words(example.arguments));
      EXPECT_EQ(outcome.code, 0) << example.arguments << '\n' << outcome.err;
      EXPECT_EQ(outcome.err, "") << example.arguments;
      EXPECT_NE(outcome.out, "") << example.arguments;
    }
  }
}

}  // namespace
}  // namespace armilla
