// What commands refuse to write, before any work: over what they read, and two outputs into one file.
#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "cli/cli_testing.h"
#include "cli/command.h"

namespace armilla {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Outputs : public InEmptyFolder {
 protected:
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  // Refused, with `file` as it was.
  static void expect_kept(const std::string& file, const std::vector<std::string>& command) {
    const std::string before = contents(file);
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("armilla: error: "), HasSubstr("would be written over"),
                                   HasSubstr("\n  hint: write to another file\n")));
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(contents(file), before);
  }
  static constexpr const char* kStudy = "model: alexnet\nmachine: dgx-a100\nplan: {ranks: 2, batch: 2}\n";
};

TEST(OutputOptions, AreAllThatNameAFileToWrite) {
  std::vector<std::unique_ptr<Command>> instances;
  const std::unique_ptr<CLI::App> app = make_parser(instances);
  std::size_t outputs = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const CLI::App* const command = app->get_subcommand(std::string(commands()[i].name));
    std::vector<const CLI::App*> levels = {command};
    for (const CLI::App* below : command->get_subcommands([](const CLI::App*) { return true; }))
      levels.push_back(below);
    for (const CLI::App* level : levels) {
      for (const CLI::Option* option : level->get_options()) {
        const std::string type = option->get_type_name();
        const bool names_files = type == "FILE" || type == "DIR" || type == "FOLDER";
        const bool is_output = instances[i]->outputs().kind_of(*option).has_value();
        if (option->get_group() == "Output" && names_files) {
          EXPECT_TRUE(is_output) << command->get_name() << ' ' << option->get_name();
        }
        if (is_output) {
          EXPECT_TRUE(names_files) << command->get_name() << ' ' << option->get_name();
        }
        outputs += is_output ? 1 : 0;
      }
    }
  }
  EXPECT_GT(outputs, 30U);
}

TEST_F(Outputs, AreNotWrittenOverAStudy) {
  write("s.yaml", kStudy);
  EXPECT_EQ(run({"run", "s.yaml", "--json", "s.yaml"}).err,
            "armilla: error: s.yaml: this file is read, and would be written over\n"
            "  hint: write to another file\n");
  for (const char* command : {"run", "search", "events"})
    expect_kept("s.yaml", {command, "s.yaml", "--json", "s.yaml"});
  expect_kept("s.yaml", {"run", "s.yaml", "--trace", "./s.yaml"});
  expect_kept("s.yaml", {"search", "s.yaml", "--save", "s.yaml"});
  expect_kept("s.yaml", {"calibrate", "s.yaml", "--measured", "1ms", "-o", "s.yaml"});
}

// What no file system takes for a name is no input, and no reason to fail.
TEST_F(Outputs, StandBesideArgumentsOfAnyLength) {
  constexpr int kRanks = 128;
  std::string ranks = "0";
  for (int rank = 1; rank < kRanks; ++rank) ranks += "," + std::to_string(rank);
  const Outcome outcome = run({"run", "alexnet", "--machine", "dgx-a100", "--ranks", std::to_string(kRanks),
                               "--batch", "1", "--timeline-ranks", ranks, "--trace", "q.pftrace"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(contents("q.pftrace").empty());
  EXPECT_EQ(run({"calibrate", ranks, "--measured", "1s", "-o", "x.yaml"}).code, 2);
}

// By what the file is, not by what it is called.
TEST_F(Outputs, AreNotWrittenOverAnInputByAnotherName) {
  write("s.yaml", kStudy);
  std::filesystem::create_hard_link("s.yaml", "hard.json");
  std::filesystem::create_symlink("s.yaml", "soft.json");
  EXPECT_EQ(run({"run", "s.yaml", "--json", "soft.json"}).err,
            "armilla: error: soft.json: is s.yaml, which is read, and would be written over\n"
            "  hint: write to another file\n");
  for (const char* name : {"hard.json", "soft.json", "./s.yaml", "../"}) {
    const std::string path = std::string(name) == "../"
                                 ? "../" + std::filesystem::current_path().filename().string() + "/s.yaml"
                                 : name;
    expect_kept("s.yaml", {"run", "s.yaml", "--json", path});
  }
}

TEST_F(Outputs, AreNotWrittenOverWhatInputsName) {
  std::filesystem::create_directory("in");
  write("in/m.yaml",
        "name: small\ndevice: a100-80gb-sxm\ndimensions:\n  - {name: ring, kind: Ring, size: 2, bandwidth: "
        "10GB/s, latency: 1us}\n");
  write("in/s.yaml", "model: alexnet\nmachine: m.yaml\nplan: {batch: 2}\n");
  write("in/sweep.yaml", "study: s.yaml\nvary: {plan.batch: [2, 4]}\n");
  ASSERT_EQ(run({"run", "in/s.yaml", "--quiet"}).code, 0);
  expect_kept("in/m.yaml", {"run", "in/s.yaml", "--json", "in/m.yaml"});
  expect_kept("in/m.yaml", {"sweep", "in/sweep.yaml", "--csv", "in/m.yaml"});
  expect_kept("in/s.yaml", {"sweep", "in/sweep.yaml", "--save", "in/s.yaml"});
  expect_kept("in/m.yaml", {"run", "alexnet", "--machine", "in/m.yaml", "--json", "in/m.yaml"});
  expect_kept("in/m.yaml", {"run", "alexnet", "--set", "machine=in/m.yaml", "--trace", "in/m.yaml"});
  expect_kept("in/m.yaml", {"collective", "all-reduce", "--machine", "in/m.yaml", "--json", "in/m.yaml"});
}

// Which tables a folder gets is known when they are written.
TEST_F(Outputs, OfFoldersAreNotWrittenOverInputs) {
  ASSERT_EQ(run({"layers", "alexnet", "--csv", "made.csv"}).code, 0);
  write("layers.csv", "Layer name, M, N, K,\nfc, 8, 8, 8,\n");
  expect_kept("layers.csv", {"run", "layers.csv", "--machine", "dgx-a100", "--ranks", "1", "--csv", "."});
}

TEST_F(Outputs, AreNotWrittenOverTracesAndWorkloads) {
  ASSERT_EQ(run({"translate", "--synthetic", "ring:npus=2,bytes=1KiB", "-o", "t"}).code, 0);
  expect_kept("t.1.et", {"translate", "t", "-o", "t"});
  ASSERT_EQ(run({"translate", "alexnet", "-o", "w.txt"}).code, 0);
  expect_kept("w.txt", {"translate", "w.txt", "-o", "./w.txt"});
}

// A file that is called as a model of the zoo is not what is read.
TEST_F(Outputs, MayHaveTheNameOfAModel) {
  for (int time = 0; time < 2; ++time)
    EXPECT_EQ(run({"layers", "alexnet", "--json", "alexnet", "--quiet"}).code, 0);
}

TEST_F(Outputs, OfProfilesAreNoTables) {
  write("t.csv", "kernel,time\n");
  EXPECT_THAT(run({"profile", "import", "t.csv", "t.csv"}).err, HasSubstr("would be written over"));
}

TEST_F(Outputs, GoToFilesOfTheirOwn) {
  write("s.yaml", kStudy);
  write("sweep.yaml", "study: s.yaml\nvary: {plan.batch: [2, 4]}\n");
  const auto refusal = [](const std::string& file) {
    return "armilla: error: " + file + ": two outputs would go to this file\n  hint: give each its own\n";
  };
  EXPECT_EQ(run({"search", "s.yaml", "--save", "x", "--csv", "./x"}).err, refusal("x"));
  EXPECT_EQ(run({"sweep", "sweep.yaml", "--save", "x", "--json", "x"}).err, refusal("x"));
  // The database that nobody named.
  EXPECT_EQ(run({"sweep", "sweep.yaml", "--csv", "sweep.db"}).err, refusal("sweep.db"));
  EXPECT_FALSE(std::filesystem::exists("sweep.db"));
  EXPECT_FALSE(std::filesystem::exists("x"));
}

TEST_F(Outputs, MayGoIntoTheFolderThatIsMadeForTables) {
  write("s.yaml", kStudy);
  const Outcome outcome = run({"run", "s.yaml", "--csv", "d/e", "--json", "./d/e/run.json", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists("d/e/run.json"));
  EXPECT_EQ(run({"run", "s.yaml", "--csv", "f", "--json", "f/g/run.json"}).err,
            "armilla: error: f/g/run.json: cannot write the file: No such file or directory\n"
            "  hint: the folder does not exist\n");
  EXPECT_FALSE(std::filesystem::exists("f"));
}

TEST_F(Outputs, FoldersAreLookedAtBeforeTheWork) {
  write("file", "");
  // The inputs are not there: what is said first was looked at first.
  const auto err = [](const std::vector<std::string>& more) {
    std::vector<std::string> command = {
        more.front(), "--workload-configuration", "w", "--system-configuration",
        "s",          "--network-configuration",  "n"};
    command.insert(command.end(), more.begin() + 1, more.end());
    return run(command).err;
  };
  EXPECT_EQ(err({"astra1", "--path", "file"}), "armilla: error: file: is not a folder\n");
  EXPECT_EQ(err({"astra1", "--path", "file/below"}),
            "armilla: error: file/below: cannot make the folder: Not a directory\n");
  EXPECT_EQ(err({"astra2", "--remote-memory-configuration", "m", "--logging-folder", "file"}),
            "armilla: error: file: is not a folder\n");
  EXPECT_EQ(
      err({"astra1", "--path", "-"}),
      "armilla: error: --path -: is standard output, not a folder\n  hint: a folder of that name is ./-\n");
}

}  // namespace
}  // namespace armilla
