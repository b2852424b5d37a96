#include "base/program.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(ProgramTest, PassesTextThrough) {
  // More than a pipe holds, so that both sides must be served at once.
  const std::string text(1 << 20, 'x');
  const auto output = run_program({"cat"}, text);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->status, 0);
  EXPECT_EQ(output->out, text);
  EXPECT_EQ(output->err, "");
}

TEST(ProgramTest, ReportsFailure) {
  const auto output = run_program({"ls", "/there/is/no/such/file"}, std::string(1 << 20, 'x'));
  ASSERT_TRUE(output);
  EXPECT_NE(output->status, 0);
  EXPECT_EQ(output->out, "");
  EXPECT_NE(output->err, "");
}

TEST(ProgramTest, ArgumentsReachNoShell) {
  const auto output = run_program({"echo", "$HOME; `ls`"}, "");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->out, "$HOME; `ls`\n");
}

TEST(ProgramTest, IsNothingWhenNotInstalled) {
  EXPECT_FALSE(run_program({"armilla-has-no-such-program"}, ""));
}

}  // namespace
}  // namespace armilla
