#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error_testing.h"
#include "read/study.h"
#include "zoo/embedded.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MachineNames, AWordOfTheNameIsEnough) {
  EXPECT_THAT(machines_meant("h100"), ElementsAre("dgx-h100"));
  EXPECT_THAT(machines_meant("DGX H100"), ElementsAre("dgx-h100"));
  EXPECT_THAT(devices_meant("h100"), ElementsAre("h100-96gb-sxm", "h100-pcie", "h100-sxm"));
  EXPECT_THAT(devices_meant("a100-sxm"), ElementsAre("a100-40gb-sxm", "a100-80gb-sxm"));
  EXPECT_THAT(devices_meant("b200"), ElementsAre("b200-hgx"));
  EXPECT_THAT(machines_meant("tpu"), ElementsAre("tpu-7x", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e"));
  EXPECT_THAT(devices_meant("h20"), ElementsAre("h20-141gb", "h20-96gb"));  // not h200
  EXPECT_THAT(machines_meant("h20"), IsEmpty());
  EXPECT_THAT(devices_meant("h2"), IsEmpty());
  EXPECT_THAT(machines_meant("x9"), IsEmpty());
  EXPECT_THAT(machines_meant(""), IsEmpty());
  EXPECT_THAT(devices_meant(std::string(100'000, 'a')), IsEmpty());
}

TEST(MachineNames, ADeviceMeansTheMachineThatHasIt) {
  EXPECT_THAT(machines_meant("h100-sxm"), ElementsAre("dgx-h100"));
  EXPECT_THAT(machines_meant("v100"), ElementsAre("dgx-1", "dgx-2"));
  EXPECT_EQ(load_machine("a100-80gb-sxm", "--machine").name, "dgx-a100");
  EXPECT_EQ(load_device("h200", "--device").name, "h200-sxm");
}

TEST(MachineNames, NumbersAloneAreNone) {
  EXPECT_THAT(machines_meant("dgx 1"), ElementsAre("dgx-1"));
  EXPECT_TRUE(machines_meant("-1").empty());
  EXPECT_TRUE(machines_meant("1").empty());
}

TEST(MachineNames, SeveralAreNamed) {
  EXPECT_EQ(error_of([] { load_machine("tpu-v5", "--machine tpu-v5"); }),
            "--machine tpu-v5: unknown machine 'tpu-v5'\n  hint: did you mean 'tpu-v5e' or 'tpu-v5p'?");
  EXPECT_EQ(error_of([] { load_device("h100", "--device h100"); }),
            "--device h100: unknown device 'h100'\n  hint: did you mean 'h100-96gb-sxm', 'h100-pcie' or "
            "'h100-sxm'?");
  EXPECT_EQ(error_of([] { load_machine("h20-96gb", "--machine h20-96gb"); }),
            "--machine h20-96gb: 'h20-96gb' is a device, and no machine of that kind is compiled in\n"
            "  hint: give another machine that device: --machine dgx-h100 --set machine.device=h20-96gb");
}

std::string figures(const Device& device) {
  std::string text = device.name + device.description + device.source;
  for (const auto& [dtype, rate] : device.matrix_rate)
    text += std::string(name_of(dtype)) + std::to_string(rate.value) + " ";
  for (const double value :
       {static_cast<double>(device.memory.value), static_cast<double>(device.reserved.value),
        static_cast<double>(device.communicator_buffers.value),
        static_cast<double>(device.product_workspace.value), device.memory_bandwidth.value,
        device.host_bandwidth.value, device.vector_rate.value, device.matrix_efficiency,
        device.vector_efficiency, device.memory_efficiency, static_cast<double>(device.launch_overhead.value),
        device.busy_power.value_or(Power(-1)).value, device.idle_power.value_or(Power(-1)).value,
        device.price.value_or(Money(-1)).value})
    text += std::to_string(value) + " ";
  for (const std::string& name : device.unverified) text += name + " ";
  return text;
}

TEST(MachineNames, EveryTextReadsBackTheSame) {
  for (const std::string& name : device_names()) {
    const Device device = read_device(Config::parse(device_text(name, name), "copy.yaml"));
    EXPECT_EQ(figures(device), figures(load_device(name, name)));
    EXPECT_FALSE(device.source.empty()) << name;
  }
  for (const std::string& name : machine_names()) {
    const std::string text = machine_text(name, name);
    EXPECT_THAT(text, HasSubstr("device:\n  name: ")) << name;  // with its figures
    const Machine copy = read_machine(Config::parse(text, "copy.yaml")), machine = load_machine(name, name);
    EXPECT_EQ(dump_machine(copy), dump_machine(machine));
    EXPECT_EQ(figures(copy.device), figures(machine.device));
    EXPECT_EQ(copy.source, machine.source);
    EXPECT_EQ(copy.unverified, machine.unverified);
    EXPECT_EQ(copy.elastic, machine.elastic);
  }
}

Machine with_settings(const std::string& machine, const std::vector<Override>& settings) {
  return read_machine(
      Config::parse("machine: " + machine + "\n", "study.yaml", settings, expand_name).at("machine"));
}

TEST(MachineNames, SettingsAreForOneMachine) {
  for (const std::string machines : {"[dgx-a100, dgx-h100]", "'dgx-a100,dgx-h100'"})
    EXPECT_THAT(error_of([&] { with_settings(machines, {"machine.device.price=9USD/h"}); }),
                HasSubstr("'dgx-a100,dgx-h100' are several machines, and --price or --set is for one"));
  EXPECT_EQ(with_settings("[dgx-a100]", {"machine.device.price=9USD/h"}).device.price, Money(9));
}

TEST(MachineNames, SettingsChangeACompiledInMachine) {
  const Machine machine =
      with_settings("h100", {"machine.dimensions.rail.bandwidth=800Gbps", "machine.dimensions.0.latency=1us",
                             "machine.device.memory=96GiB", "machine.device.matrix_rate.fp8=2PFLOPS"});
  EXPECT_EQ(machine.name, "dgx-h100 (changed)");
  EXPECT_DOUBLE_EQ(machine.dimensions[1].bandwidth.value, 100e9);
  EXPECT_EQ(machine.dimensions[0].latency, microseconds(1));
  EXPECT_EQ(machine.device.name, "h100-sxm (changed)");
  EXPECT_EQ(machine.device.memory, Bytes(std::int64_t{96} << 30));
  EXPECT_DOUBLE_EQ(machine.device.matrix_rate.at(DType::fp8).value, 2e15);
  EXPECT_EQ(with_settings("dgx-h100", {"machine.device=h200-sxm"}).device.name, "h200-sxm");
  EXPECT_EQ(
      with_settings("dgx-h100", {"machine.device=h200-sxm", "machine.device.reserved=2GiB"}).device.name,
      "h200-sxm (changed)");
}

TEST(MachineNames, WhatWasSetIsNotUnverified) {
  const Machine machine = with_settings("dgx-h100", {"machine.dimensions.rail.latency=1us"});
  EXPECT_THAT(machine.unverified, IsEmpty());
  EXPECT_THAT(with_settings("dgx-h100", {"machine.dimensions.rail.bandwidth=1Gbps"}).unverified,
              ElementsAre("rail.latency"));
}

TEST(MachineNames, SettingsThatNameNothingAreErrors) {
  const auto error = [](const std::string& setting) {
    return error_of([&] { with_settings("dgx-h100", {{setting}}); });
  };
  EXPECT_EQ(error("machine.dimensions.rial.bandwidth=1Gbps"),
            "--set machine.dimensions.rial.bandwidth=1Gbps: the list has no item 'rial'\n"
            "  hint: did you mean 'rail'?");
  EXPECT_EQ(error("machine.device.memry=1GiB"),
            "--set machine.device.memry=1GiB: unknown key 'memry'\n  hint: did you mean 'memory'?");
  EXPECT_EQ(error("machine.device.memory=1"),
            "--set machine.device.memory=1: '1' has no unit\n  hint: expected a size with its unit, such as "
            "'25MiB'");
  EXPECT_EQ(error_of([] { with_settings("dgx-h10", {"machine.elastic=true"}); }),
            "study.yaml: machine: unknown machine 'dgx-h10'\n  hint: did you mean 'dgx-h100'?");
}

TEST(MachineNames, FilesAreChangedToo) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("armilla_names_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/mine.yaml") << device_text("h100-sxm", "test");
  std::ofstream(folder + "/cluster.yaml") << "device: ./mine.yaml\ndimensions: [{name: x, kind: Ring, size: "
                                             "4, bandwidth: 1GB/s, latency: 1us}]\n";
  const Machine machine = with_settings(folder + "/cluster.yaml", {"machine.dimensions.x.size=8"});
  EXPECT_EQ(machine.dimensions[0].size, 8);
  EXPECT_EQ(machine.device.name, "h100-sxm");
  EXPECT_EQ(with_settings(folder + "/cluster.yaml", {"machine.device.memory=2GiB"}).device.memory,
            Bytes(2LL << 30));
  EXPECT_THAT(machine_text(folder + "/cluster.yaml", "test"), HasSubstr("device:\n  name: h100-sxm"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace armilla
