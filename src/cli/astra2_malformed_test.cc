// Every bad and awkward input of the ASTRA-sim 2 oracle, on both backends: the exit code and the whole
// message, or the finish times and the warnings, as tests/malformed/expected.txt lists them. Where the whole
// oracle is beside the repository and ARMILLA_UPDATE_MALFORMED is set, that file is written instead; read
// what changed before keeping it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/oracle_testing.h"
#include "base/source_path_testing.h"
#include "cli/run_main.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;

const fs::path kExpected = source_path("tests/malformed/expected.txt");

// "case backend" -> what is expected of it, without the line end.
std::map<std::string, std::string> read_expected() {
  std::map<std::string, std::string> expected;
  std::ifstream file(kExpected);
  std::string name;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("== ")) {
      name = line.substr(3);
    } else if (!name.empty()) {
      expected[name] += (expected[name].empty() ? "" : "\n") + line;
    }
  }
  return expected;
}

std::string finish_times(const std::string& printed) {
  std::istringstream lines(printed);
  std::string times;
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.find(" cycles, exposed");
    if (end == std::string::npos) continue;
    const auto begin = line.rfind(' ', end - 1);
    times += line.substr(begin, end - begin);
  }
  return times;
}

// In a copy of the case's folder, as runs leave files behind.
std::string outcome(const fs::path& inputs, const std::string& backend) {
  std::string name = (fs::temp_directory_path() / "armilla-malformed-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return "no temporary folder";
  fs::copy(inputs, name, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const fs::path previous = fs::current_path();
  fs::current_path(name);
  std::vector<std::string> arguments = {"astra2"};
  std::ifstream file("args");
  for (std::string word; file >> word;) arguments.push_back(word);
  arguments.insert(arguments.end(), {"--backend", backend, "--json", "run.json"});
  std::ostringstream out, err;
  const int code = run_main(arguments, {out, err, false, false});
  std::string text = "exit " + std::to_string(code);
  if (code != 0) {
    text += "\n" + err.str();
    if (!out.str().empty()) text += "(and output)\n";
  } else if (fs::exists("run.json")) {
    text += "\nfinish" + finish_times(out.str()) + "\n";
    const auto document = nlohmann::json::parse(std::ifstream("run.json"));
    for (const auto& warning : document.at("warnings"))
      text += "warning: " + warning.get<std::string>() + "\n";
  } else {
    text += "\n" + out.str().substr(0, out.str().find('\n')) + "\n";  // --help
  }
  fs::current_path(previous);
  fs::remove_all(name);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

TEST(Astra2Malformed, EveryCaseIsAnsweredOrRefusedAsListed) {
  const auto expected = read_expected();
  for (const auto& [folder, whole] : oracles("astra2/malformed")) {
    std::set<std::string> cases;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (fs::exists(entry.path() / "args")) cases.insert(entry.path().filename().string());
    }
    EXPECT_GT(cases.size(), whole ? 60u : 15u);
    std::map<std::string, std::string> found;
    for (const std::string& name : cases) {
      for (const std::string backend : {"unaware", "aware"}) {
        const std::string text = outcome(folder / name, backend);
        found[name + " " + backend] = text;
        EXPECT_TRUE(text.starts_with("exit 0") || text.starts_with("exit 2")) << name << ' ' << text;
      }
    }
    if (whole && std::getenv("ARMILLA_UPDATE_MALFORMED") != nullptr) {
      std::ofstream file(kExpected);
      for (const auto& [name, text] : found) file << "== " << name << '\n' << text << '\n';
      return;
    }
    if (whole) {
      EXPECT_EQ(found.size(), expected.size());
    }
    for (const auto& [name, text] : found) {
      const auto wanted = expected.find(name);
      EXPECT_EQ(text, wanted == expected.end() ? "not listed" : wanted->second) << name;
    }
  }
}

}  // namespace
}  // namespace armilla
