#include "ir/machine.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "base/error_testing.h"

namespace armilla {
namespace {

Machine two_levels() {
  Machine machine;
  machine.name = "pod";
  machine.device.name = "gpu";
  machine.device.vector_rate = teraflops(10);
  machine.device.memory_bandwidth = gigabytes_per_second(1000);
  machine.device.matrix_rate[DType::fp16] = teraflops(100);
  machine.dimensions = {{"inner", DimensionKind::switched, 8, gigabytes_per_second(300), nanoseconds(500)},
                        {"outer", DimensionKind::switched, 4, gigabytes_per_second(25), nanoseconds(5000)}};
  return machine;
}

std::vector<std::int64_t> sizes(const Machine& machine) {
  std::vector<std::int64_t> all;
  for (const Dimension& dimension : machine.dimensions) all.push_back(dimension.size);
  return all;
}

std::string machine_error(std::int64_t ranks, bool elastic) {
  try {
    with_ranks(two_levels(), ranks, elastic, "--ranks");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Machine, IsCutFromTheOutside) {
  EXPECT_EQ(sizes(with_ranks(two_levels(), 32, false, "")), (std::vector<std::int64_t>{8, 4}));
  EXPECT_EQ(sizes(with_ranks(two_levels(), 16, false, "")), (std::vector<std::int64_t>{8, 2}));
  EXPECT_EQ(sizes(with_ranks(two_levels(), 8, false, "")), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(sizes(with_ranks(two_levels(), 5, false, "")), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(sizes(with_ranks(two_levels(), 1, false, "")), (std::vector<std::int64_t>{}));
}

// Figures that a part does not rest on are nobody's to verify.
TEST(Machine, APartHasTheDoubtsOfItsDimensionsAlone) {
  Machine machine = two_levels();
  machine.unverified = {"host_power", "inner.latency", "outer.latency"};
  const auto note = [&](std::int64_t ranks) {
    return unverified_note(with_ranks(machine, ranks, false, ""));
  };
  EXPECT_EQ(note(32), "unverified figures of machine pod: host_power, inner.latency, outer.latency");
  EXPECT_EQ(note(8), "unverified figures of machine pod: host_power, inner.latency");
  EXPECT_EQ(note(1), "unverified figures of machine pod: host_power");
}

TEST(Machine, AnElasticOneGrowsOutwards) {
  EXPECT_EQ(sizes(with_ranks(two_levels(), 1024, true, "")), (std::vector<std::int64_t>{8, 128}));
  EXPECT_EQ(sizes(with_ranks(two_levels(), 4, true, "")), (std::vector<std::int64_t>{4}));
}

TEST(Machine, DoesNotGrowBeyondItsCables) {
  Machine machine = two_levels();
  machine.dimensions.back().cables = {{0, 1}, {1, 2}, {2, 3}};
  EXPECT_EQ(sizes(with_ranks(machine, 32, true, "")), (std::vector<std::int64_t>{8, 4}));
  EXPECT_EQ(error_of([&] { with_ranks(machine, 64, true, "--ranks"); }),
            "--ranks: 64 ranks do not fit the 32 devices that the cables of machine 'pod' join\n"
            "  hint: use fewer ranks, or give the machine a dimension above");
}

Dimension ring_of_four(const char* name) {
  Dimension ring = two_levels().dimensions.front();
  ring.name = name;
  ring.kind = DimensionKind::ring;
  ring.size = 4;
  return ring;
}

TEST(Machine, ATorusIsHandedOutInSlices) {
  Machine machine = two_levels();
  Dimension joining = machine.dimensions.back();
  joining.name = "dcn";
  joining.size = 1;
  machine.dimensions = {ring_of_four("x"), ring_of_four("y"), ring_of_four("z"), joining};
  machine.elastic = true;
  machine.largest_slice = 4096;
  machine.unverified = {"x.latency", "dcn.latency"};
  const auto shape = [&](std::int64_t ranks, std::int64_t block) {
    return sizes(with_ranks(machine, ranks, true, "", block));
  };
  EXPECT_EQ(shape(512, 1), (std::vector<std::int64_t>{8, 8, 8}));
  EXPECT_EQ(shape(3072, 16), (std::vector<std::int64_t>{16, 12, 16}));
  EXPECT_EQ(shape(6144, 1), (std::vector<std::int64_t>{12, 16, 16, 2}));
  EXPECT_EQ(shape(4, 1), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(shape(1, 1), (std::vector<std::int64_t>{}));
  EXPECT_EQ(with_ranks(machine, 512, true, "").unverified, std::vector<std::string>{"x.latency"});
  EXPECT_EQ(with_ranks(machine, 6144, true, "").unverified, machine.unverified);
  // A slice is a machine like others.
  EXPECT_EQ(sizes(with_ranks(with_ranks(machine, 512, true, ""), 64, false, "")),
            (std::vector<std::int64_t>{8, 8}));
  for (const auto& [ranks, hint] :
       {std::pair(100, "64 or 128"), {48, "32 or 64"}, {3, "2 or 4"}, {4100, "4096 or 4160"}})
    EXPECT_EQ(error_of([&, count = ranks] { with_ranks(machine, count, true, "--ranks"); }),
              "--ranks: " + std::to_string(ranks) + " ranks are not a slice of machine '" + machine.name +
                  "'\n  hint: ranks could be " + hint);
  const std::string told = dump_machine(machine);
  machine.largest_slice = 256;
  EXPECT_NE(dump_machine(machine), told);
}

TEST(Machine, LinksOfAGraphKeepTheirDimensions) {
  Machine machine = two_levels();
  machine.graph.nodes = {{NetworkNodeKind::device, "a"}, {NetworkNodeKind::device, "b"}};
  EXPECT_EQ(sizes(with_ranks(machine, 8, false, "")), (std::vector<std::int64_t>{8, 1}));
  EXPECT_EQ(sizes(with_ranks(machine, 1, false, "")), (std::vector<std::int64_t>{1, 1}));
}

TEST(Machine, RaggedAndExcessiveRankCountsAreErrors) {
  EXPECT_EQ(machine_error(12, false),
            "--ranks: 12 ranks do not fill whole groups of 8 on machine 'pod'\n  hint: the nearest counts "
            "that do are 8 and 16, or take 6 of each group: machine.dimensions.0.size=6");
  EXPECT_EQ(machine_error(30, false),
            "--ranks: 30 ranks do not fill whole groups of 8 on machine 'pod'\n  hint: the nearest counts "
            "that do are 24 and 32")
      << "there are no five groups to take 6 of";
  EXPECT_EQ(machine_error(64, false),
            "--ranks: 64 ranks do not fit machine 'pod' of 32 devices\n  hint: use at most 32 ranks or "
            "enlarge a dimension of the machine");
  EXPECT_EQ(machine_error(1004, true),
            "--ranks: 1004 ranks do not fill whole groups of 8 on machine 'pod'\n  hint: the nearest counts "
            "that do are 1000 and 1008, or take 4 of each group: machine.dimensions.0.size=4");
}

// Searches and sweeps that are gone on with know machines by it.
TEST(Machine, ItsTextHasEveryFigureOfAProtocol) {
  Machine machine;
  Dimension dimension;
  dimension.protocols = {CollectiveProtocol{}};
  machine.dimensions = {dimension};
  CollectiveProtocol& protocol = machine.dimensions.front().protocols.front();
  std::string text = dump_machine(machine);
  const auto differs = [&] { return std::exchange(text, dump_machine(machine)) != text; };
  EXPECT_FALSE(differs());
  protocol.name = "LL";
  EXPECT_TRUE(differs());
  protocol.share = 0.5;
  EXPECT_TRUE(differs());
  for (Time CollectiveProtocol::*const figure : {&CollectiveProtocol::launch, &CollectiveProtocol::step,
                                                 &CollectiveProtocol::level, &CollectiveProtocol::chain}) {
    protocol.*figure = Time(7);
    EXPECT_TRUE(differs());
  }
  for (Bandwidth Dimension::*const figure :
       {&Dimension::own_block, &Dimension::trees_of_two, &Dimension::trees_of_more}) {
    machine.dimensions.front().*figure = Bandwidth(7);
    EXPECT_TRUE(differs());
  }
}

TEST(Machine, ItsTextSaysWhetherItGrows) {
  Machine machine = two_levels();
  const std::string fixed = dump_machine(machine);
  machine.elastic = true;
  EXPECT_NE(dump_machine(machine), fixed);
}

TEST(Machine, RatesFallBackToTheVectorUnits) {
  const Device device = two_levels().device;
  EXPECT_EQ(matrix_rate(device, DType::fp16), teraflops(100));
  EXPECT_EQ(matrix_rate(device, DType::fp32), teraflops(10));
}

TEST(Machine, ValidationRefusesUselessFigures) {
  EXPECT_NO_THROW(validate_machine(two_levels()));
  Machine machine = two_levels();
  machine.dimensions[0].size = 0;
  EXPECT_THROW(validate_machine(machine), Error);
  machine = two_levels();
  machine.dimensions[1].bandwidth = Bandwidth(0);
  EXPECT_THROW(validate_machine(machine), Error);
  machine = two_levels();
  machine.dimensions[1].size = INT32_MAX;
  EXPECT_THROW(validate_machine(machine), Error);
  machine = two_levels();
  machine.device.memory_bandwidth = Bandwidth(0);
  EXPECT_THROW(validate_machine(machine), Error);
}

}  // namespace
}  // namespace armilla
