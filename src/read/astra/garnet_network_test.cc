#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "read/astra.h"

namespace armilla {
namespace {

class GarnetNetwork : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  // The sample of ASTRA-sim 1.0, with some keys changed, or without them where they are empty.
  SystemLayer read(const std::map<std::string, std::string>& changes) {
    std::map<std::string, std::string> keys = {{"num-npus", "8"},
                                               {"num-packages", "4"},
                                               {"package-rows", "2"},
                                               {"topology", "Torus3D"},
                                               {"local-rings", "2"},
                                               {"vertical-rings", "1"},
                                               {"horizontal-rings", "1"},
                                               {"links-per-tile", "-1"},
                                               {"flit-width", "2048"},
                                               {"local-packet-size", "4096"},
                                               {"package-packet-size", "4096"},
                                               {"tile-link-width", "256"},
                                               {"package-link-width", "256"},
                                               {"vcs-per-vnet", "50"},
                                               {"routing-algorithm", "Ring_XY"},
                                               {"router-latency", "1"},
                                               {"local-link-latency", "90"},
                                               {"package-link-latency", "200"},
                                               {"buffers-per-vc", "5000"},
                                               {"local-link-efficiency", "1.0"},
                                               {"package-link-efficiency", "1.0"}};
    for (const auto& [key, value] : changes) keys[key] = value;
    Astra1Settings settings;
    settings.network = path_.string();
    std::ofstream file(settings.network);
    for (const auto& [key, value] : keys)
      if (!value.empty()) file << key << ": " << value << "\n";
    file.close();
    SystemLayer system;
    system.semantics = Semantics::astra1;
    warnings_.clear();
    read_astra1_network(settings, system, warnings_);
    return system;
  }
  std::string refusal(const std::map<std::string, std::string>& changes) {
    const std::string error = error_of([&] { read(changes); });
    return error.substr(std::min(error.size(), path_.string().size()));
  }

  std::vector<std::string> warnings_;
  const std::filesystem::path path_ = path_for_test("garnet");
};

TEST_F(GarnetNetwork, IsTheNetworkFlitWithTheFilesSettings) {
  const SystemLayer system = read({});
  EXPECT_EQ(system.network.name, "flit");
  std::map<std::string, std::string> parameters;
  for (const auto& [name, given] : system.network.parameters) parameters[name] = given.value;
  const std::map<std::string, std::string> expected = {
      {"router", "garnet"},   {"clock", "1GHz"},       {"routing", "spray"},
      {"flit-width", "256B"}, {"packet", "4096B"},     {"payload", "1.0"},
      {"vcs", "50"},          {"router-latency", "1"}, {"buffer", "5000"}};
  EXPECT_EQ(parameters, expected);
  EXPECT_TRUE(warnings_.empty());
  ASSERT_EQ(system.dimensions.size(), 3U);
  for (const StreamDimension& dimension : system.dimensions) {
    EXPECT_EQ(dimension.kind, DimensionKind::ring);
    EXPECT_EQ(dimension.size, 2);
    EXPECT_EQ(dimension.links, 2);
    EXPECT_DOUBLE_EQ(dimension.bandwidth * (1 << 30), 32e9);  // 256 bits a nanosecond
  }
  EXPECT_EQ(system.dimensions[0].latency_ns, 1 + 90 + 4);
  EXPECT_EQ(system.dimensions[2].latency_ns, 1 + 200 + 4);
  EXPECT_EQ(system.links.cables.size(), 8U * 3);
}

TEST_F(GarnetNetwork, HasItsTopologies) {
  const SystemLayer nv = read({{"topology", "NV_Switch"}, {"links-per-tile", "3"}, {"local-rings", ""}});
  ASSERT_EQ(nv.dimensions.size(), 1U);
  EXPECT_EQ(nv.dimensions[0].kind, DimensionKind::switched);
  EXPECT_EQ(nv.dimensions[0].size, 8);
  EXPECT_EQ(nv.links.nodes.size(), 8U + 3);
  EXPECT_EQ(nv.links.cables.size(), 8U * 3);
  EXPECT_FALSE(nv.links.devices_forward);
  const Machine machine = machine_of(nv);
  EXPECT_DOUBLE_EQ(machine.dimensions[0].bandwidth.value, 3 * 32e9);

  const SystemLayer all =
      read({{"topology", "AllToAll"}, {"links-per-tile", "2"}, {"routing-algorithm", "AllToAll"}});
  ASSERT_EQ(all.dimensions.size(), 2U);
  EXPECT_EQ(all.dimensions[0].size, 2);
  EXPECT_EQ(all.dimensions[1].size, 4);
  EXPECT_EQ(all.links.cables.size(), 8U + 8 * 2);

  const SystemLayer flat = read({{"topology", "Torus2D"}, {"num-packages", "8"}});
  ASSERT_EQ(flat.dimensions.size(), 2U);
  EXPECT_EQ(flat.dimensions[0].size, 4);
  EXPECT_EQ(flat.dimensions[1].size, 2);
}

TEST_F(GarnetNetwork, TakesWholeCyclesForAFlit) {
  // 2048 bits over 300 are 7 cycles; as many as a link has, one.
  EXPECT_DOUBLE_EQ(read({{"tile-link-width", "300"}}).links.cables[0].there.bandwidth.value, 256e9 / 7);
  const SystemLayer wide = read({{"tile-link-width", "4096"}});
  EXPECT_DOUBLE_EQ(wide.links.cables[0].there.bandwidth.value, 256e9);
  EXPECT_EQ(wide.dimensions[0].latency_ns, 1 + 90);
}

TEST_F(GarnetNetwork, WarnsOfWhatItCannotKeepApart) {
  EXPECT_DOUBLE_EQ(read({{"local-rings", "3"}}).links.cables[0].there.bandwidth.value, 32e9 * 3 / 4);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(
      warnings_[0],
      testing::EndsWith(
          "local-rings: 3 rings cannot be divided evenly among the two directions: here 2 go each way, of "
          "3/4 of the links' width"));
  read({{"local-packet-size", "512"}, {"local-link-efficiency", "0.5"}});
  EXPECT_THAT(warnings_, testing::ElementsAre(
                             testing::EndsWith("local-packet-size: 4096 here, as the other links have"),
                             testing::EndsWith("local-link-efficiency: 1.0 here, as the other links have")));
}

TEST_F(GarnetNetwork, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal({{"topology", "Torus4D"}}),
            ":19:11: topology: topology 'Torus4D' is not read\n  hint: the keys name the sizes of three "
            "dimensions: "
            "Torus3D");
  EXPECT_THAT(refusal({{"topology", "Torus"}}),
              testing::HasSubstr("topology 'Torus' is not read\n  hint: did you mean"));
  EXPECT_THAT(refusal({{"num-packages", "3"}}),
              testing::EndsWith("num-packages: 8 NPUs do not fill 3 packages"));
  EXPECT_THAT(refusal({{"package-rows", "3"}}),
              testing::EndsWith("package-rows: 4 packages do not fill 3 rows"));
  EXPECT_THAT(refusal({{"topology", "Torus2D"}}),
              testing::HasSubstr("packages of 2 NPUs make a third dimension"));
  EXPECT_THAT(refusal({{"flit-width", "2047"}}),
              testing::EndsWith(
                  "flit-width: 2047 bits are not a whole number of bytes\n  hint: expected a multiple of 8"));
  EXPECT_EQ(refusal({{"vcs-per-vnet", ""}}), ": the key 'vcs-per-vnet' is missing");
  EXPECT_THAT(refusal({{"routing-algorithm", "XY"}}), testing::HasSubstr("unknown routing 'XY'"));
  EXPECT_THAT(refusal({{"flitwidth", "1"}}),
              testing::HasSubstr("unknown key 'flitwidth'\n  hint: did you mean"));
  EXPECT_THAT(refusal({{"router-latency", "0"}}), testing::HasSubstr("router-latency"));
  EXPECT_THAT(refusal({{"num-npus", "99999999"}}), testing::HasSubstr("99999999 is out of range"));
}

}  // namespace
}  // namespace armilla
