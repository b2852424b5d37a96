// For tests of the command line: runs it in this process, in an empty folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_main.h"

namespace armilla {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline Outcome run(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Outcome outcome;
  outcome.code = run_main(arguments, {out, err, false, false});
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

inline std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

class InEmptyFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "armilla-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    previous_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(previous_);
    std::filesystem::remove_all(folder_);
  }
  static nlohmann::json json_of(const std::string& path) {
    std::ifstream file(path);
    return nlohmann::json::parse(file);
  }

 private:
  std::filesystem::path folder_, previous_;
};

}  // namespace armilla
