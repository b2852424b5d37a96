#include "read/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"

namespace armilla {
namespace {

using testing::Contains;
using testing::Not;

constexpr const char* kDevice =
    "name: toy\n"
    "memory: 16GB\n"
    "memory_bandwidth: 900GB/s\n"
    "vector_rate: 15TFLOPS\n"
    "matrix_rate: {fp16: 125TFLOPS}\n"
    "launch_overhead: 3us\n"
    "matrix_efficiency: 70%\n"
    "unverified: [memory, matrix_rate.fp16]\n";

constexpr const char* kMachine =
    "name: pair\n"
    "device: v100-16gb-sxm2\n"
    "dimensions:\n"
    "  - {name: link, kind: Ring, size: 4, bandwidth: 150GB/s, latency: 1us}\n"
    "  - {kind: Switch, size: 8, bandwidth: 100Gbps, latency: 2us}\n"
    "unverified: [link.latency]\n";

std::string replaced_line(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

std::string device_error(const std::string& what, const std::string& with) {
  return error_of([&] { read_device(Config::parse(replaced_line(kDevice, what, with), "d.yaml")); });
}

std::string machine_error(const std::string& what, const std::string& with) {
  return error_of([&] { read_machine(Config::parse(replaced_line(kMachine, what, with), "m.yaml")); });
}

TEST(DeviceYaml, ReadsEveryFigure) {
  const Device device = read_device(Config::parse(kDevice, "d.yaml"));
  EXPECT_EQ(device.name, "toy");
  EXPECT_EQ(device.memory, Bytes(16'000'000'000));
  EXPECT_DOUBLE_EQ(device.memory_bandwidth.value, 900e9);
  EXPECT_DOUBLE_EQ(device.vector_rate.value, 15e12);
  EXPECT_DOUBLE_EQ(matrix_rate(device, DType::fp16).value, 125e12);
  EXPECT_DOUBLE_EQ(matrix_rate(device, DType::bf16).value, 15e12);
  EXPECT_DOUBLE_EQ(device.matrix_efficiency, 0.7);
  EXPECT_DOUBLE_EQ(device.vector_efficiency, 1);
  EXPECT_EQ(device.launch_overhead, microseconds(3));
  EXPECT_THAT(device.unverified, testing::ElementsAre("memory", "matrix_rate.fp16"));
}

TEST(DeviceYaml, RefusesWhatMakesNoSense) {
  EXPECT_EQ(device_error("16GB", "16"),
            "d.yaml:2:9: memory: '16' has no unit\n  hint: expected a size with its unit, such as '25MiB'");
  EXPECT_EQ(device_error("16GB", "0GB"), "d.yaml:2:9: memory: a device needs memory");
  EXPECT_EQ(device_error("900GB/s", "-900GB/s"),
            "d.yaml:3:19: memory_bandwidth: '-900GB/s' is negative\n"
            "  hint: expected a bandwidth with its unit, such as '400Gbps'");
  EXPECT_EQ(device_error("15TFLOPS", "0TFLOPS"),
            "d.yaml:4:14: vector_rate: '0TFLOPS' is too small\n  hint: the lowest value is 1 FLOPS");
  EXPECT_EQ(device_error("fp16: 125", "fp61: 125"),
            "d.yaml:5:21: matrix_rate.fp61: unknown type 'fp61'\n  hint: did you mean 'fp64'?");
  EXPECT_EQ(device_error("70%", "0"), "d.yaml:7:20: matrix_efficiency: an efficiency must be more than 0");
  EXPECT_EQ(device_error("[memory,", "[memry,"),
            "d.yaml:8:14: unverified.0: there is no figure 'memry' here\n  hint: did you mean 'memory'?");
  EXPECT_EQ(device_error("memory: 16GB\n", ""), "d.yaml:1:1: the key 'memory' is missing");
  EXPECT_EQ(
      device_error("launch_overhead", "launch_overhed"),
      "d.yaml:6:1: launch_overhed: unknown key 'launch_overhed'\n  hint: did you mean 'launch_overhead'?");
}

TEST(DeviceYaml, ReadsSystolicArrays) {
  const auto read = [](const std::string& arrays) {
    return read_device(Config::parse(kDevice + ("arrays: " + arrays + "\n"), "d.yaml"));
  };
  const Device device =
      read("{side: 256, memories: 2, attention: {forward: 0.6, backward: 0.7, block: 2048}}");
  EXPECT_EQ(device.arrays->side, 256);
  EXPECT_EQ(device.arrays->memories, 2);
  EXPECT_DOUBLE_EQ(device.arrays->attention_forward, 0.6);
  EXPECT_DOUBLE_EQ(device.arrays->attention_backward, 0.7);
  EXPECT_EQ(device.arrays->attention_block, 2048);
  EXPECT_EQ(read("{side: 128}").arrays->memories, 1);
  EXPECT_FALSE(read_device(Config::parse(kDevice, "d.yaml")).arrays);
  EXPECT_EQ(error_of([&] { read("{side: 0}"); }),
            "d.yaml:9:16: arrays.side: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_NE(error_of([&] { read("{sid: 128}"); }).find("unknown key 'sid'"), std::string::npos);
  EXPECT_NE(error_of([&] { read("{attention: {forwad: 0.6}}"); }).find("unknown key 'forwad'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { read("{memories: 9000000000000000000}"); }).find("is too large"),
            std::string::npos);
}

TEST(DeviceYaml, ReadsTheRangesOfFits) {
  const std::string rates =
      "kernels: {processors: 4, launch: 1us, matrix: {fp16: {efficiency: 0.5, range: [5e8, 1.5e14]}}, "
      "memory: {}}\n";
  const Device device = read_device(Config::parse(kDevice + rates, "d.yaml"));
  const FittedRange& range = device.kernels->matrix.at(DType::fp16).range;
  EXPECT_EQ(range.least, 5e8);
  EXPECT_EQ(range.most, 1.5e14);
  EXPECT_TRUE(range.holds(1e9));
  EXPECT_FALSE(range.holds(1e15));
  EXPECT_TRUE(device.kernels->memory.range.holds(1e300)) << "nothing is said";
  const Device unmeasured =
      read_device(Config::parse(kDevice + replaced_line(rates, "[5e8, 1.5e14]", "[0, 0]"), "d.yaml"));
  EXPECT_FALSE(unmeasured.kernels->matrix.at(DType::fp16).range.holds(1e9));
  for (const std::string wrong : {"[5e8]", "[2, 1]", "[-1, 1]", "[1, x]"}) {
    EXPECT_NE(error_of([&] {
                read_device(Config::parse(kDevice + replaced_line(rates, "[5e8, 1.5e14]", wrong), "d.yaml"));
              }).find("d.yaml:9:"),
              std::string::npos)
        << wrong;
  }
}

TEST(DeviceYaml, KernelsMayBeLikeThoseOfAnotherDevice) {
  const auto read = [](const std::string& kernels) {
    return read_device(Config::parse(kDevice + ("kernels: {like: h100-sxm" + kernels + "}\n"), "d.yaml"));
  };
  const KernelRates known = *load_device("h100-sxm", "").kernels;
  const KernelRates same = *read("").kernels;
  EXPECT_EQ(same.processors, known.processors);
  EXPECT_EQ(same.launch, known.launch);
  EXPECT_EQ(same.scan->forward, known.scan->forward);
  EXPECT_EQ(same.memory.cache, known.memory.cache);
  EXPECT_EQ(same.source, "");
  const KernelRates other =
      *read(
           ", processors: 7, matrix: {bf16: {ramp: 3}, fp16: {efficiency: 0.5}}, range: "
           "[0, 0], attention: {fp8: {range: [1, 2]}}, memory: {efficiency: 0.5}")
           .kernels;
  EXPECT_EQ(other.processors, 7);
  EXPECT_EQ(other.matrix.at(DType::bf16).ramp, 3);
  EXPECT_EQ(other.matrix.at(DType::bf16).efficiency, known.matrix.at(DType::bf16).efficiency);
  EXPECT_EQ(other.matrix.at(DType::fp16).efficiency, 0.5);
  EXPECT_EQ(other.memory.efficiency, 0.5);
  EXPECT_EQ(other.memory.norm, known.memory.norm);
  EXPECT_TRUE(other.matrix.at(DType::bf16).range.is_of_nothing());
  EXPECT_TRUE(other.scan->range.is_of_nothing());
  EXPECT_TRUE(other.memory.range.is_of_nothing());
  EXPECT_EQ(other.attention.at(DType::fp8).range.most, 2) << "it says its own";
  EXPECT_TRUE(are_of_nothing(*read(", range: [0, 0]").kernels));
  EXPECT_EQ(error_of([&] {
              read_device(Config::parse(std::string(kDevice) + "kernels: {like: tpu-v4}\n", "d.yaml"));
            }),
            "d.yaml:9:17: kernels.like: tpu-v4 has no rates of kernels\n  hint: name another device");
  const std::string self = path_for_test("like_itself.yaml").string();
  std::ofstream(self) << kDevice << "kernels: {like: " << self << "}\n";
  EXPECT_NE(error_of([&] { load_device(self, ""); }).find("name a device that has rates of its own"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              read_device(Config::parse(std::string(kDevice) + "kernels: {}\n", "d.yaml"));
            }).find("'processors' is missing"),
            std::string::npos);
}

// Kernels that have become better than those of the tables, as far as the peak.
TEST(DeviceYaml, TrainingLoopsAreNoFasterThanThePeak) {
  const auto read = [](const std::string& sustained) {
    return read_device(
        Config::parse(kDevice + ("kernels: {processors: 4, launch: 1us, matrix: {fp16: {efficiency: 0.5}}, "
                                 "sustained: " +
                                 sustained + "}\n"),
                      "d.yaml"));
  };
  EXPECT_EQ(read("2").kernels->sustained, 2);
  EXPECT_EQ(read("70%").kernels->sustained, 0.7);
  EXPECT_EQ(read("150%").kernels->sustained, 1.5);
  for (const std::string wrong : {"2.1", "0", "-1", "x"}) EXPECT_THROW(read(wrong), Error) << wrong;
}

TEST(MachineYaml, ReadsDimensions) {
  const Machine machine = read_machine(Config::parse(kMachine, "m.yaml"));
  EXPECT_EQ(machine.name, "pair");
  EXPECT_EQ(machine.device.name, "v100-16gb-sxm2");
  ASSERT_EQ(machine.dimensions.size(), 2U);
  EXPECT_EQ(machine.dimensions[0].kind, DimensionKind::ring);
  EXPECT_EQ(machine.dimensions[0].latency, microseconds(1));
  EXPECT_EQ(machine.dimensions[1].name, "dim1");
  EXPECT_DOUBLE_EQ(machine.dimensions[1].bandwidth.value, 12.5e9);
  EXPECT_EQ(rank_count(machine), 32);
  EXPECT_FALSE(machine.elastic);
}

TEST(MachineYaml, ReadsWhatIsExpectedOfTrees) {
  const std::string limited = replaced_line(kMachine, "kind: Switch",
                                            "kind: Switch, protocols: [{name: LL, launch: 1us, step: 1us}], "
                                            "tree_limit: {two: 23.6GB/s, more: 17.8GB/s}");
  const Machine machine = read_machine(Config::parse(limited, "m.yaml"));
  EXPECT_EQ(machine.dimensions[0].trees_of_two, Bandwidth(0));
  EXPECT_EQ(machine.dimensions[1].trees_of_two, gigabytes_per_second(23.6));
  EXPECT_EQ(machine.dimensions[1].trees_of_more, gigabytes_per_second(17.8));
  const std::string between = "kind: Switch, protocols: [{name: LL, launch: 1us, step: 1us}], tree_limit: ";
  EXPECT_NE(
      machine_error("kind: Switch", between + "{two: 1GB/s}").find("tree_limit: the key 'more' is missing"),
      std::string::npos);
  EXPECT_NE(machine_error("kind: Switch", between + "{two: 1GB/s, more: 1GB/s, ten: 1GB/s}")
                .find("tree_limit.ten: unknown key 'ten'"),
            std::string::npos);
  const std::string idle = "tree_limit: has no effect here\n  hint: it counts between nodes";
  EXPECT_NE(machine_error("kind: Switch", "kind: Switch, tree_limit: {two: 1GB/s, more: 1GB/s}").find(idle),
            std::string::npos);
  EXPECT_NE(machine_error("kind: Ring",
                          "kind: Ring, protocols: [{name: LL, launch: 1us, step: 1us}], "
                          "tree_limit: {two: 1GB/s, more: 1GB/s}")
                .find(idle),
            std::string::npos);
}

TEST(MachineYaml, TheDeviceMayStandInPlace) {
  const Machine machine = read_machine(
      Config::parse(replaced_line(kMachine, "v100-16gb-sxm2",
                                  "{memory: 1GB, memory_bandwidth: 1GB/s, vector_rate: 1GFLOPS}"),
                    "folder/mine.yaml"));
  EXPECT_EQ(machine.device.memory, Bytes(1'000'000'000));
  EXPECT_EQ(machine.device.name, "mine");
}

TEST(MachineYaml, RefusesWhatMakesNoSense) {
  EXPECT_EQ(machine_error("kind: Ring", "kind: Rng"),
            "m.yaml:4:24: dimensions.0.kind: unknown value 'Rng'\n  hint: did you mean 'Ring'?");
  EXPECT_EQ(machine_error("size: 4", "size: 0"),
            "m.yaml:4:36: dimensions.0.size: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(machine_error("size: 4", "size: -4"),
            "m.yaml:4:36: dimensions.0.size: -4 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(machine_error("size: 4", "size: 2000000000"),
            "m.yaml:5:5: dimensions.1: the machine has more than 2147483647 devices here");
  EXPECT_EQ(
      machine_error("size: 4", "size: 99999999999"),
      "m.yaml:4:36: dimensions.0.size: 99999999999 is too large\n  hint: the highest value is 2147483647");
  EXPECT_EQ(machine_error("150GB/s", "150"),
            "m.yaml:4:50: dimensions.0.bandwidth: '150' has no unit\n"
            "  hint: expected a bandwidth with its unit, such as '400Gbps'");
  EXPECT_EQ(machine_error(", latency: 1us", ""), "m.yaml:4:5: dimensions.0: the key 'latency' is missing");
  EXPECT_EQ(machine_error("latency: 1us", "latency: 1us, lanes: 4"),
            "m.yaml:4:73: dimensions.0.lanes: unknown key 'lanes'\n"
            "  hint: known: bandwidth, cables, efficiency, in_switch, kind, latency, name, "
            "own_block, protocols, size, tree_limit");
  EXPECT_NE(machine_error("kind: Switch",
                          "kind: Switch, in_switch: {name: nvls, launch: 1us, step: 1us, level: 1us}")
                .find("in_switch.level: unknown key 'level'"),
            std::string::npos);
  EXPECT_NE(machine_error("kind: Switch", "kind: Switch, cables: [0-1, 0-8]")
                .find("dimensions.1.cables.1: '0-8' is not a cable between two members\n"
                      "  hint: members are 0 to 7: 0-1"),
            std::string::npos);
  EXPECT_NE(machine_error("kind: Switch", "kind: Switch, cables: []").find("lists no cable"),
            std::string::npos);
  EXPECT_NE(machine_error("kind: Switch", "kind: Switch, cables: [0-1-2]").find("'0-1-2' is not a cable"),
            std::string::npos);
  EXPECT_NE(machine_error("kind: Switch", "kind: Switch, cables: [3-3]").find("is not a cable"),
            std::string::npos);
  EXPECT_NE(machine_error("kind: Switch", "kind: Switch, cables: [3]").find("cables.0: "), std::string::npos);
  EXPECT_NE(
      machine_error("kind: Ring", "kind: Ring, cables: [0-1]").find("cables take the place of a switch"),
      std::string::npos);
  EXPECT_EQ(machine_error("kind: Switch", "name: link, kind: Switch"),
            "m.yaml:5:5: dimensions.1: two dimensions are called 'link'");
  EXPECT_EQ(machine_error("v100-16gb-sxm2", "v100-16gb-sxm"),
            "m.yaml:2:9: device: unknown device 'v100-16gb-sxm'\n  hint: did you mean 'v100-16gb-sxm2'?");
  EXPECT_EQ(machine_error("v100-16gb-sxm2", "v100-16gb-sxm2\ndevices: [{ranks: 31-32, device: a10}]"),
            "m.yaml:3:19: devices.0.ranks: there is no rank 32\n  hint: ranks are 0 to 31");
  EXPECT_EQ(machine_error("v100-16gb-sxm2",
                          "v100-16gb-sxm2\nelastic: true\ndevices: [{ranks: 31-32, device: a10}]"),
            "no error");
  EXPECT_EQ(machine_error("v100-16gb-sxm2", "v100-16gb-sxm2\nelastic: true\nlargest_slice: 64"), "no error");
  EXPECT_EQ(machine_error("v100-16gb-sxm2", "v100-16gb-sxm2\nelastic: true\nlargest_slice: 3"),
            "m.yaml:4:16: largest_slice: is less than the 4 devices of the rings");
  EXPECT_EQ(
      machine_error("v100-16gb-sxm2", "v100-16gb-sxm2\nlargest_slice: 64"),
      "m.yaml:3:16: largest_slice: needs an elastic torus\n"
      "  hint: give elastic: true, and Rings of one size before the last dimension, which joins slices");
  EXPECT_EQ(machine_error("v100-16gb-sxm2", "./v100"),
            "./v100: cannot open the file: No such file or directory");
  EXPECT_EQ(machine_error("link.latency", "link.latncy"),
            "m.yaml:6:14: unverified.0: there is no figure 'link.latncy' here\n"
            "  hint: did you mean 'link.latency'?");
  EXPECT_EQ(error_of([] { read_machine(Config::parse("device: a10\ndimensions: []\n", "m.yaml")); }),
            "m.yaml:2:13: dimensions: a machine has at least one dimension");
  std::string many = "device: a10\ndimensions:\n";
  for (int i = 0; i < 17; ++i) many += "  - {kind: Ring, size: 1, bandwidth: 1GB/s, latency: 1us}\n";
  EXPECT_EQ(error_of([&] { read_machine(Config::parse(many, "m.yaml")); }),
            "m.yaml:3:3: dimensions: more than 16 dimensions");
}

TEST(MachineYaml, AnUnknownMachineIsRefusedWithTheNearest) {
  EXPECT_EQ(error_of([] { load_machine("dgx-a10", "--machine"); }),
            "--machine: unknown machine 'dgx-a10'\n  hint: did you mean 'dgx-a100'?");
}

TEST(MachineYaml, AFilesDeviceIsSoughtBesideIt) {
  const std::string folder = testing::TempDir() + "machine_yaml_test." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/toy.yaml") << kDevice;
  std::ofstream(folder + "/pair.yaml") << replaced_line(kMachine, "v100-16gb-sxm2", "toy.yaml");
  const Machine machine = load_machine(folder + "/pair.yaml", "--machine");
  std::filesystem::remove_all(folder);
  EXPECT_EQ(machine.device.name, "toy");
}

// Of every compiled-in description: it is read, named as its file, says where it is from, and its assumptions
// are marked.
TEST(MachineYaml, EveryDeviceOfTheHouse) {
  EXPECT_GE(device_names().size(), 23U);
  for (const std::string& name : device_names()) {
    SCOPED_TRACE(name);
    const Device device = load_device(name, "test");
    EXPECT_EQ(device.name, name);
    EXPECT_FALSE(device.description.empty());
    EXPECT_FALSE(device.source.empty());
    EXPECT_EQ(device.source.find("rom memory"), std::string::npos);
    EXPECT_FALSE(device.matrix_rate.empty());
    // Blackwell's fp64 matrix rate is the one below its fp32 vector rate.
    for (const auto& [dtype, rate] : device.matrix_rate) {
      if (dtype == DType::fp64) continue;
      EXPECT_GE(rate.value, device.vector_rate.value) << name_of(dtype);
    }
    for (const char* assumption :
         {"matrix_efficiency", "vector_efficiency", "memory_efficiency", "launch_overhead"})
      EXPECT_THAT(device.unverified, Contains(assumption));
  }
}

TEST(MachineYaml, EveryClusterOfTheHouse) {
  EXPECT_THAT(machine_names(), testing::IsSupersetOf({"dgx-a100", "dgx-h100", "tpu-v4", "ethernet-rack"}));
  for (const std::string& name : machine_names()) {
    SCOPED_TRACE(name);
    const Machine machine = load_machine(name, "test");
    EXPECT_EQ(machine.name, name);
    EXPECT_FALSE(machine.description.empty());
    EXPECT_FALSE(machine.source.empty());
    EXPECT_TRUE(machine.elastic);
    EXPECT_EQ(rank_count(with_ranks(machine, 144 * 16, machine.elastic, "test")), 144 * 16);
    EXPECT_EQ(rank_count(with_ranks(machine, 1, machine.elastic, "test")), 1);
  }
}

TEST(MachineYaml, FiguresOfTheBestKnown) {
  const Machine a100 = load_machine("dgx-a100", "test");
  EXPECT_EQ(a100.device.memory, Bytes(std::int64_t{80} << 30));
  EXPECT_DOUBLE_EQ(a100.device.memory_bandwidth.value, 2039e9);
  EXPECT_DOUBLE_EQ(matrix_rate(a100.device, DType::bf16).value, 312e12);
  EXPECT_DOUBLE_EQ(matrix_rate(a100.device, DType::tf32).value, 156e12);
  EXPECT_DOUBLE_EQ(matrix_rate(a100.device, DType::fp32).value, 19.5e12);
  EXPECT_EQ(a100.dimensions[0].size, 8);
  EXPECT_DOUBLE_EQ(a100.dimensions[0].bandwidth.value, 300e9);
  EXPECT_DOUBLE_EQ(a100.dimensions[1].bandwidth.value, 25e9);
  EXPECT_THAT(a100.device.unverified, Not(Contains("memory_bandwidth")));
  const Machine h100 = load_machine("dgx-h100", "test");
  EXPECT_DOUBLE_EQ(matrix_rate(h100.device, DType::fp8).value, 1979e12);
  EXPECT_DOUBLE_EQ(h100.dimensions[0].bandwidth.value, 450e9);
  EXPECT_DOUBLE_EQ(h100.dimensions[1].bandwidth.value, 50e9);
  const Machine tpu = load_machine("tpu-v4", "test");
  EXPECT_EQ(tpu.device.memory, Bytes(std::int64_t{32} << 30));
  ASSERT_EQ(tpu.dimensions.size(), 4U);  // the last joins slices
  EXPECT_EQ(tpu.dimensions[2].kind, DimensionKind::ring);
  EXPECT_THAT(load_device("h20-96gb", "test").unverified, Contains("matrix_rate.fp16"));
  EXPECT_THAT(load_device("gb300", "test").unverified, Contains("vector_rate"));
}

}  // namespace
}  // namespace armilla
