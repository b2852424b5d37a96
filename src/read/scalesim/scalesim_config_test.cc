#include "read/scalesim.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;

const std::string kGeneral = "[general]\nrun_name = tpu\n";
const std::string kArchitecture =
    "[architecture_presets]\nArrayHeight:    256\nArrayWidth: 128\nIfmapSramSzkB: 6144\nFilterSramSzkB:   64 "
    "\n"
    "OfmapSramSzkB:  2048\nIfmapOffset:    0\nFilterOffset:   10000000\nOfmapOffset: 20000000\nDataflow : "
    "ws\n"
    "Bandwidth : 10\nMemoryBanks: 1\n";
const std::string kCalc = "[run_presets]\nInterfaceBandwidth: CALC\n";
const std::string kUser = "[run_presets]\nInterfaceBandwidth: USER\n";

ScaleSimConfig parse_config(const std::string& text) {
  return parse_scalesim_config(text, "tpu.cfg");
}

TEST(ScaleSimConfig, ReadsBothModes) {
  const ScaleSimConfig calc = parse_config(kGeneral + kArchitecture + kCalc);
  EXPECT_EQ(calc.run_name, "tpu");
  EXPECT_EQ(calc.array.rows, 256);
  EXPECT_EQ(calc.array.columns, 128);
  EXPECT_EQ(calc.array.dataflow, Dataflow::weight_stationary);
  EXPECT_EQ(calc.buffers.ifmap, 6144 * 1024);
  EXPECT_EQ(calc.buffers.filter, 64 * 1024);
  EXPECT_EQ(calc.buffers.ofmap, 2048 * 1024);
  EXPECT_FALSE(calc.buffers.limited);
  EXPECT_EQ(calc.buffers.ofmap_bandwidth, 128);
  EXPECT_EQ(calc.buffers.version, ScaleSimVersion::v2);
  EXPECT_TRUE(calc.notes.empty());

  const ScaleSimConfig user = parse_config("; comment\r\n" + kGeneral + kArchitecture + kUser);
  EXPECT_TRUE(user.buffers.limited);
  EXPECT_EQ(user.buffers.ifmap_bandwidth, 10);
  EXPECT_EQ(user.buffers.filter_bandwidth, 10);
  EXPECT_EQ(user.buffers.ofmap_bandwidth, 10);
  EXPECT_EQ(user.bandwidths, "10");
}

TEST(ScaleSimConfig, KnowsVersion3) {
  const ScaleSimConfig config = parse_config(
      kGeneral + kArchitecture + kUser +
      "UseRamulatorTrace: False\n[layout]\nIfmapCustomLayout: False\nIfmapSRAMBankBandwidth: 60\n"
      "IfmapSRAMBankNum: 6\nFilterSRAMBankBandwidth: 30\nFilterSRAMBankNum: "
      "10\n[sparsity]\nSparsitySupport : "
      "false\n");
  EXPECT_EQ(config.buffers.version, ScaleSimVersion::v3);
  EXPECT_EQ(config.buffers.ifmap_bandwidth, 60);
  EXPECT_EQ(config.buffers.filter_bandwidth, 30);
  EXPECT_EQ(config.buffers.ofmap_bandwidth, 10);
}

TEST(ScaleSimConfig, KnowsVersion1) {
  const ScaleSimConfig config = parse_config(
      "[general]\nrun_name = \"edge\"\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: "
      "108\n"
      "FilterSramSz: 108\nOfmapSramSz: 54\nDataflow : os\n[network_presets]\nTopologyCsvLoc: "
      "\"./topologies/net.csv\"\n");
  EXPECT_EQ(config.run_name, "edge");
  EXPECT_EQ(config.ifmap_kib, 108);
  EXPECT_EQ(config.topology, "./topologies/net.csv");
  EXPECT_THAT(config.notes, ElementsAre("tpu.cfg: a file of SCALE-Sim v1, run by v2's rules",
                                        "tpu.cfg: has no InterfaceBandwidth, taken as CALC"));
}

TEST(ScaleSimConfig, NamesFileLineAndKeyOfAnError) {
  EXPECT_EQ(error_of([] { parse_config(kGeneral + "[architecture_presets]\nArrayHeight: 32x\n"); }),
            "tpu.cfg:4: ArrayHeight: '32x' is not a whole number");
  EXPECT_EQ(error_of([] { parse_config(kGeneral + "[architecture_presets]\narrayheight: 0\n"); }),
            "tpu.cfg:4: ArrayHeight: 0 is out of range\n  hint: it lies between 1 and 65536");
  EXPECT_EQ(error_of([] { parse_config(kGeneral + "[architecture_presets]\nArrayHight: 1\n"); }),
            "tpu.cfg:4: unknown key 'ArrayHight'\n  hint: did you mean 'ArrayHeight'?");
  EXPECT_EQ(
      error_of([] { parse_config(kGeneral + "[architecture_presets]\nArrayHeight: 1\nArrayHeight: 2\n"); }),
      "tpu.cfg:5: ArrayHeight: is there twice");
  EXPECT_EQ(error_of([] { parse_config(kGeneral); }), "tpu.cfg: has no key 'ArrayHeight'");
  EXPECT_EQ(error_of([] { parse_config("[generel]\n"); }),
            "tpu.cfg:1: unknown section 'generel'\n  hint: did you mean 'general'?");
  EXPECT_EQ(error_of([] { parse_config(kGeneral + kGeneral); }),
            "tpu.cfg:3: section 'general' is there twice");
  EXPECT_EQ(error_of([] { parse_config(kGeneral + "ArrayHeight 32\n"); }),
            "tpu.cfg:3: 'ArrayHeight 32' is neither '[section]' nor 'key = value'");
  EXPECT_EQ(
      error_of([] { parse_config("run_name = x\n"); }),
      "tpu.cfg:1: comes before the first section\n  hint: SCALE-Sim configurations begin with '[general]'");
  EXPECT_EQ(error_of([] { parse_config(""); }),
            "tpu.cfg: is not a SCALE-Sim configuration\n  hint: expected '[general]'");
  EXPECT_EQ(
      error_of([] { parse_config(kGeneral + kArchitecture + "[run_presets]\nInterfaceBandwidth: MAX\n"); }),
      "tpu.cfg:16: InterfaceBandwidth: unknown mode 'MAX'\n  hint: known: CALC, USER");
  EXPECT_EQ(
      error_of([] { parse_config(kGeneral + kArchitecture + kCalc + "UseRamulatorTrace: True\n"); }),
      "tpu.cfg:17: UseRamulatorTrace: a SCALE-Sim feature that is not modelled\n  hint: set it to False");
  EXPECT_EQ(error_of([] {
              parse_config(kGeneral + kArchitecture + kUser +
                           "[layout]\nIfmapSRAMBankBandwidth: 10\nIfmapSRAMBankNum: 3\n");
            }),
            "tpu.cfg:18: IfmapSRAMBankBandwidth: a bandwidth of 10 cannot be divided by 3 banks");
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = path_for_test(name);
  std::ofstream(path) << text;
  return path;
}

TEST(ScaleSimConfig, IsAComputeModel) {
  const std::string path = written("tpu.cfg", kGeneral + kArchitecture + kUser);
  const ComponentChoice choice = read_compute_choice(path, "--compute");
  EXPECT_EQ(choice.name, "systolic");
  std::map<std::string, std::string> values;
  for (const auto& [name, given] : choice.parameters) values[name] = given.value;
  EXPECT_EQ(values, (std::map<std::string, std::string>{{"rows", "256"},
                                                        {"columns", "128"},
                                                        {"dataflow", "ws"},
                                                        {"dram_bandwidth", "10"},
                                                        {"ifmap_sram", "6144KiB"},
                                                        {"filter_sram", "64KiB"},
                                                        {"ofmap_sram", "2048KiB"}}));
  EXPECT_EQ(read_compute_choice("systolic:rows=8", "--compute").parameters.at("rows").value, "8");
  written("calc.cfg", kGeneral + kArchitecture + kCalc);
  EXPECT_EQ(read_compute_choice(path_for_test("calc.cfg").filename(), "compute",
                                path_for_test("").parent_path().string() + "/")
                .parameters.size(),
            3u);
}

}  // namespace
}  // namespace armilla
