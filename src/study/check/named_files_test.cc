#include "study/named_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"

namespace armilla {
namespace {

class NamedFilesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_ = path_for_test("named_files");
};

TEST_F(NamedFilesTest, AreThoseOfArgumentsAndWhatTheseName) {
  const std::string topology = write("t.json", "{}"), profile = write("p.csv", "a,b\n");
  const std::string machine = write("m.yaml", "name: m\ntopology: {file: t.json}\ndevice: x\n");
  const std::string study = write("s.yaml", "model: alexnet\nmachine: m.yaml\n# p.csv is no input\n");
  const std::string sweep = write("sweep.yaml", "study: s.yaml\nvary: {profile: [p.csv]}\n");
  EXPECT_THAT(files_named_by({study}), testing::UnorderedElementsAre(study, machine, topology));
  EXPECT_THAT(files_named_by({sweep}),
              testing::UnorderedElementsAre(sweep, study, machine, topology, profile));
  EXPECT_THAT(files_named_by({"8", "machine=" + machine, "systolic:rows=8,layout=" + profile}),
              testing::UnorderedElementsAre(machine, topology, profile));
  EXPECT_THAT(files_named_by({"alexnet", path("none.yaml"), ""}), testing::IsEmpty());
}

TEST_F(NamedFilesTest, OfWhatPeopleReadAreNone) {
  write("out.json", "{}");
  const std::string machine =
      write("m.yaml", "name: m\ndescription: two devices, as in out.json\nsource: out.json\ndevice: x\n");
  EXPECT_THAT(files_named_by({machine}), testing::ElementsAre(machine));
}

TEST_F(NamedFilesTest, OfAPrefixAreTheTracesOfAllRanks) {
  const std::string first = write("t.0.et", ""), second = write("t.1.json", "");
  write("t.3.et", "");
  EXPECT_THAT(files_named_by({path("t")}), testing::ElementsAre(first, second));
}

TEST_F(NamedFilesTest, OfNs3AreItsTopologyAndFlowsAlone) {
  const std::string topology = write("t.txt", ""), flows = write("f.txt", "");
  write("fct.txt", "");
  const std::string config =
      write("config.txt", "TOPOLOGY_FILE t.txt\nFLOW_FILE f.txt\nFCT_OUTPUT_FILE fct.txt\nCC_MODE 1\n");
  EXPECT_THAT(files_named_by({config}), testing::UnorderedElementsAre(config, topology, flows));
}

TEST_F(NamedFilesTest, OfScaleSimIsItsTopology) {
  const std::string topology = write("t.csv", "");
  const std::string config =
      write("c.cfg", "[general]\nrun_name = t\n[run_presets]\nTopologyCsvLoc: t.csv\n");
  EXPECT_THAT(files_named_by({config}), testing::UnorderedElementsAre(config, topology));
}

TEST_F(NamedFilesTest, OfAModelsFolderAreWhatDescribesIt) {
  const std::string config = write("config.json", "{}");
  write("out.json", "{}");
  EXPECT_THAT(files_named_by({folder_.string()}), testing::ElementsAre(config));
}

TEST_F(NamedFilesTest, DamagedOnesNameNothing) {
  const std::string broken = write("s.yaml", "model: [alexnet\n"),
                    circle = write("c.yaml", "machine: c.yaml\n");
  EXPECT_THAT(files_named_by({broken, circle}), testing::UnorderedElementsAre(broken, circle));
}

}  // namespace
}  // namespace armilla
