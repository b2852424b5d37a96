#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace armilla {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() : folder_(testing::TempDir() + "mapped_file_test." + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~MappedFileTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string error_of(const std::string& path) {
    try {
      const MappedFile file(path);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }

  std::string folder_;
};

TEST_F(MappedFileTest, ShowsTheBytes) {
  std::ofstream(path("a")) << "hello";
  const MappedFile file(path("a"));
  EXPECT_EQ(std::string(file.bytes().begin(), file.bytes().end()), "hello");
}

TEST_F(MappedFileTest, WhatWasReleasedIsLoadedAgain) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i);
  std::ofstream(path("a")) << text;
  const MappedFile file(path("a"));
  EXPECT_EQ(std::string(file.bytes().begin(), file.bytes().end()), text);
  for (const std::size_t begin : {0U, 1U, 4095U, 4096U, 50'000U})
    file.release(file.bytes().subspan(begin, 40'000));
  file.release(file.bytes());
  file.release({});
  EXPECT_EQ(std::string(file.bytes().begin(), file.bytes().end()), text);
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  std::ofstream(path("empty")).flush();
  EXPECT_TRUE(MappedFile(path("empty")).bytes().empty());
}

TEST_F(MappedFileTest, RefusesWhatIsNoReadableFile) {
  EXPECT_EQ(error_of(path("none")), path("none") + ": cannot open the file: No such file or directory");
  EXPECT_EQ(error_of(folder_), folder_ + ": is a directory, not a file");
  EXPECT_EQ(error_of("/dev/null"), "/dev/null: is not a regular file");
}

TEST_F(MappedFileTest, APipeNobodyWritesToDoesNotHang) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(path("pipe")), path("pipe") + ": is not a regular file");
}

TEST_F(MappedFileTest, RefusesAnUnreadableFile) {
  std::ofstream(path("secret")) << "x";
  ::chmod(path("secret").c_str(), 0);
  if (::access(path("secret").c_str(), R_OK) == 0) GTEST_SKIP() << "this user may read every file";
  EXPECT_EQ(error_of(path("secret")), path("secret") + ": cannot open the file: Permission denied");
}

}  // namespace
}  // namespace armilla
