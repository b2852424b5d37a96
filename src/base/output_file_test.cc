#include "base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OutputFile : public testing::Test {
 protected:
  OutputFile() : folder_(testing::TempDir() + "output_file_test." + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~OutputFile() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string folder_;
};

TEST_F(OutputFile, WritesAndReplacesWhole) {
  write_file(path("a"), "first");
  EXPECT_EQ(read(path("a")), "first");
  write_file(path("a"), std::string(1 << 20, 'x'));
  EXPECT_EQ(read(path("a")), std::string(1 << 20, 'x'));
  EXPECT_THAT(listing(), ElementsAre("a"));
}

TEST_F(OutputFile, KeepsTheModeOfWhatItReplaces) {
  write_file(path("a"), "1");
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  write_file(path("a"), "2");
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(OutputFile, ANewFileObeysTheUmask) {
  const mode_t old = ::umask(027);
  write_file(path("a"), "1");
  ::umask(old);
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(OutputFile, AFullDiskIsReported) {
  EXPECT_EQ(error_of([] { write_file("/dev/full", "x"); }),
            "/dev/full: cannot write the file: No space left on device");
}

TEST_F(OutputFile, AMissingFolderIsReported) {
  EXPECT_EQ(error_of([&] { write_file(path("none/a"), "x"); }),
            path("none/a") +
                ": cannot write the file: No such file or directory\n"
                "  hint: the folder does not exist");
  EXPECT_EQ(error_of([&] { write_file(folder_, "x"); }), folder_ + ": cannot write the file: Is a directory");
  EXPECT_THAT(listing(), IsEmpty());
}

TEST_F(OutputFile, WhenOneFailsNoneIsWritten) {
  write_file(path("old"), "old");
  for (const std::string& bad : {path("none/b"), std::string("/dev/full")}) {
    EXPECT_NE(error_of([&] {
                write_files({{path("old"), "new"}, {path("a"), "a"}, {bad, "b"}});
              }),
              "no error");
    EXPECT_NE(error_of([&] {
                write_files({{bad, "b"}, {path("old"), "new"}, {path("a"), "a"}});
              }),
              "no error");
    EXPECT_EQ(read(path("old")), "old");
    EXPECT_THAT(listing(), ElementsAre("old"));
  }
}

TEST_F(OutputFile, APipeIsWrittenDirectlyAndOnlyWhenTheRestIsSafe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string pipe = "/dev/fd/" + std::to_string(ends[1]);
  EXPECT_NE(error_of([&] { write_files({{pipe, "lost"}, {path("none/b"), "b"}}); }), "no error");
  write_files({{pipe, "kept"}, {path("a"), "a"}});
  ::close(ends[1]);
  char buffer[16];
  const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
  ::close(ends[0]);
  ASSERT_GE(size, 0);
  EXPECT_EQ(std::string(buffer, static_cast<std::size_t>(size)), "kept");
  EXPECT_THAT(listing(), ElementsAre("a"));
}

// Beforehand, in the words of the writing, and leaving nothing behind.
TEST_F(OutputFile, TargetsAreCheckedBeforeTheWork) {
  write_file(path("old"), "old");
  check_targets({path("old"), path("new"), "-", "/dev/null", "/dev/stdout"});
  for (const std::string& bad : {path("none/a"), path("old/a"), path("none/"), folder_, folder_ + "/"}) {
    const std::string beforehand = error_of([&] { check_targets({path("new"), bad}); });
    EXPECT_EQ(beforehand, error_of([&] { write_file(bad, "x"); })) << bad;
    EXPECT_NE(beforehand, "no error");
  }
  EXPECT_EQ(error_of([] {
              check_targets({"-", "-"});
            }).substr(0, 42),
            "-: two outputs would go to standard output");
  EXPECT_NE(error_of([&] { check_targets({path("a"), folder_ + "/./a"}); }), "no error");
  check_target_folder(folder_);
  check_target_folder(path("a/b/c"));
  EXPECT_EQ(error_of([&] { check_target_folder(path("old")); }), path("old") + ": is not a folder");
  EXPECT_EQ(error_of([&] { check_target_folder(path("old/a")); }),
            path("old/a") + ": cannot make the folder: Not a directory");
  EXPECT_THAT(listing(), ElementsAre("old"));
  EXPECT_EQ(read(path("old")), "old");
}

TEST_F(OutputFile, TwoOutputsCannotShareAFile) {
  EXPECT_EQ(error_of([&] {
              write_files({{path("a"), "1"}, {folder_ + "/./a", "2"}});
            }),
            folder_ + "/./a: two outputs would go to this file\n  hint: give each its own");
  EXPECT_THAT(listing(), IsEmpty());
  write_files({{"/dev/null", "1"}, {"/dev/null", "2"}});
}

}  // namespace
}  // namespace armilla
