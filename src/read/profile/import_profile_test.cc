#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/profile.h"

namespace armilla {
namespace {

const std::string kRanks =
    "#  Rank  0 Group  0 Pid  1 on  a device  0 [0x10] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  1 Group  0 Pid  1 on  b device  0 [0x10] NVIDIA A100-SXM4-80GB\n";
const std::string kColumnsLine =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time\n";

TEST(ImportNcclTests, TakesTheTimeOutOfPlaceAndWhoTookPart) {
  const std::string text =
      "# Collective test starting: reduce_scatter_perf\n" + kRanks + kColumnsLine +
      "        (B)    (elements)                               (us)  (GB/s)\n"
      "           0             0     float     sum      -1     9.00    0.00    0.00 0 8\n"
      "     1048576        262144     float     sum      -1    24.59    1.00    2.00 0 9.9\n"
      "     1048576        262144     float     sum      -1    30.00    1.00    2.00 0 9.9\n"
      "# Avg bus bandwidth    : 2\n";
  const Profile profile = parse_nccl_tests(text, "n.txt");
  ASSERT_EQ(profile.communications.size(), 1U);
  const auto& [key, measured] = profile.communications.front();
  EXPECT_EQ(key, (CommunicationKey{"reduce-scatter", 1048576, 2, true}));
  EXPECT_EQ(measured.time, Time(24'590'000));
  EXPECT_EQ(measured.device, "NVIDIA A100-SXM4-80GB");
}

TEST(ImportNcclTests, EveryRunOfALogHasItsOwnRanks) {
  const auto rank = [](int number, int group, const std::string& host) {
    return "#  Rank  " + std::to_string(number) + " Group  " + std::to_string(group) + " Pid  1 on  " + host +
           " device  0 [0x10] NVIDIA A100-SXM4-80GB\n";
  };
  const std::string result = kColumnsLine + "1048576 262144 float sum -1 24.59 1.00 2.00 0 9.9\n";
  const auto keys = [](const std::string& text) {
    std::vector<CommunicationKey> found;
    for (const auto& [key, measured] : parse_nccl_tests(text, "n.txt").communications) found.push_back(key);
    return found;
  };
  const std::string two = rank(0, 0, "a") + rank(1, 0, "a"), four = two + rank(2, 0, "b") + rank(3, 0, "b");
  using Keys = std::vector<CommunicationKey>;
  EXPECT_EQ(keys("# Collective test starting: all_reduce_perf\n" + two + result +
                 "# Collective test starting: all_gather_perf\n" + four + result),
            (Keys{{"all-reduce", 1048576, 2, false}, {"all-gather", 1048576, 4, true}}));
  // The same size among more.
  EXPECT_EQ(keys("# Collective test starting: all_reduce_perf\n" + two + result + four + result),
            (Keys{{"all-reduce", 1048576, 2, false}, {"all-reduce", 1048576, 4, true}}));
  // NCCL_TESTS_SPLIT: two collectives of two ranks at the same time, each over two hosts or on one.
  const std::string program = "# Collective test starting: all_reduce_perf\n";
  EXPECT_EQ(keys(program + rank(0, 0, "a") + rank(1, 1, "a") + rank(2, 0, "b") + rank(3, 1, "b") + result),
            (Keys{{"all-reduce", 1048576, 2, true}}));
  EXPECT_EQ(keys(program + rank(0, 0, "a") + rank(1, 0, "a") + rank(2, 1, "b") + rank(3, 1, "b") + result),
            (Keys{{"all-reduce", 1048576, 2, false}}));
  EXPECT_NE(error_of([&] { keys(program + two + rank(2, 1, "b") + result); }).find("its groups differ"),
            std::string::npos);
}

TEST(ImportNcclTests, TimesOfWrongResultsAreRefused) {
  const auto of = [](const std::string& wrong) {
    return "# Collective test starting: all_reduce_perf\n" + kRanks + kColumnsLine +
           "1048576 262144 float sum -1 24.59 1.00 2.00 " + wrong + " 9.9\n";
  };
  EXPECT_EQ(error_of([&] { parse_nccl_tests(of("12"), "n.txt"); }),
            "n.txt:5: 12 of its results were wrong\n  hint: such a time says nothing: measure it again, or "
            "leave the "
            "line out");
  EXPECT_EQ(parse_nccl_tests(of("N/A"), "n.txt").communications.size(), 1U);
  EXPECT_EQ(parse_nccl_tests(of("0"), "n.txt").communications.size(), 1U);
}

TEST(ImportNcclTests, ALineThatIsCutOffIsNoTime) {
  const std::string text = "# Collective test starting: all_reduce_perf\n" + kRanks + kColumnsLine;
  EXPECT_EQ(error_of([&] { parse_nccl_tests(text + "2097152 524288 float sum -1 3", "n.txt"); }),
            "n.txt:5: the line is cut off: its bandwidths are missing\n  hint: leave it out");
}

TEST(ImportNcclTests, WhichCollectiveItIsMustBeKnown) {
  const std::string text = kRanks + kColumnsLine + "8 2 float sum -1 24.59 0 0 0\n";
  EXPECT_EQ(error_of([&] { parse_nccl_tests(text, "n.txt"); }),
            "n.txt:4: which collective this is of is not said\n  hint: add --collective all-reduce");
  EXPECT_EQ(parse_nccl_tests(text, "n.txt", "all-reduce").communications.front().key.name, "all-reduce");
  EXPECT_NE(error_of([&] { parse_nccl_tests(text, "n.txt", "all-reduced"); }).find("unknown communication"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { parse_nccl_tests("# Collective test starting: scatter_perf\n" + text, "n.txt"); }),
            "n.txt:5: 'scatter_perf' is not a collective that is modelled\n  hint: known: all_reduce, "
            "reduce_scatter, "
            "all_gather, alltoall, broadcast, reduce and sendrecv");
  EXPECT_NE(error_of([&] { parse_nccl_tests(kRanks + kColumnsLine, "n.txt"); }).find("has no times"),
            std::string::npos);
}

std::string trace_of(const std::string& events) {
  return R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": [)" + events +
         "]}";
}
const std::string kCall =
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "dur": 900, "args": {"External id": 7, )"
    R"("Input Dims": [[64], [32, 16], [16, 64], []], )"
    R"("Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", ""]}})";

TEST(ImportTorchProfile, ProductsTakeAsLongAsTheirKernels) {
  const std::string kernels =
      R"(,{"cat": "kernel", "name": "gemm", "dur": 10, "args": {"External id": 7}},)"
      R"({"cat": "kernel", "name": "splitk", "dur": 2.5, "args": {"External id": 7}},)"
      R"({"cat": "kernel", "name": "other", "dur": 99, "args": {"External id": 8}})";
  const Profile profile = parse_torch_profile(trace_of(kCall + kernels), "t.json");
  ASSERT_EQ(profile.computations.size(), 1U);
  const auto& [key, measured] = profile.computations.front();
  EXPECT_EQ(key, product_key({32, 64, 16, 1}, DType::bf16));
  EXPECT_EQ(measured.time, Time(12'500'000));
  EXPECT_EQ(measured.repeats, 1);
  EXPECT_EQ(measured.device, "NVIDIA H100 80GB HBM3");
}

TEST(ImportTorchProfile, WithoutKernelsTheCpuComputed) {
  const std::string calls = R"("traceEvents": [)" + kCall + "," + kCall + "]}";
  const Profile profile = parse_torch_profile("{" + calls, "t.json");
  EXPECT_EQ(profile.computations.front().measured.time, Time(900'000'000));
  EXPECT_EQ(profile.computations.front().measured.repeats, 2);
}

TEST(ImportTorchProfile, CallsOfADeviceSayNothingWithoutItsKernels) {
  EXPECT_EQ(error_of([] { parse_torch_profile(trace_of(kCall), "t.json"); }),
            "t.json: has calls, but no kernels of 'NVIDIA H100 80GB HBM3'\n"
            "  hint: take the trace with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
}

TEST(ImportTorchProfile, KernelsWithoutACallAreNobodys) {
  const std::string lone = R"({"cat": "kernel", "name": "other", "dur": 99, "args": {}},)"
                           R"({"cat": "kernel", "name": "gemm", "dur": 10, "args": {"External id": 7}},)";
  const std::string call =
      R"({"cat": "cpu_op", "name": "aten::mm", "dur": 9, "args": {"Input Dims": [[32, 16], [16, 64]], )"
      R"("Input type": ["float", "float"]}},)";
  const Profile profile = parse_torch_profile(trace_of(lone + call + kCall), "t.json");
  ASSERT_EQ(profile.computations.size(), 1U);
  EXPECT_EQ(profile.computations.front().measured.time, Time(10'000'000));
}

// Of a trace that was taken on a node of two devices.
TEST(ImportTorchProfile, TellsGroupsOfSeveralNodes) {
  const auto key_of = [](const std::string& more, std::int64_t size) {
    const std::string kernel =
        R"({"cat": "kernel", "name": "nccl", "dur": 40, "args": {"Collective name": "allreduce_coalesced", )"
        R"("In msg nelems": 4096, "Out msg nelems": 4096, "dtype": "Float", "Group size": )" +
        std::to_string(size) + more + "}}";
    const std::string text =
        R"({"deviceProperties": [{"name": "a"}, {"name": "a"}], "traceEvents": [)" + kernel + "]}";
    return parse_torch_profile(text, "t.json").communications.front().key;
  };
  EXPECT_EQ(key_of("", 2), (CommunicationKey{"all-reduce", 16384, 2, false}));
  EXPECT_TRUE(key_of("", 4).inter_node);
  EXPECT_TRUE(key_of(R"(, "Process Group Ranks": "[0, 2]")", 2).inter_node);
  EXPECT_FALSE(key_of(R"(, "Process Group Ranks": "[2, 3]")", 2).inter_node);
  EXPECT_TRUE(key_of(R"(, "Process Group Ranks": "[0, 1, ..., 63]")", 64).inter_node);
}

TEST(ImportTorchProfile, TakesNodesOfEightWhereAProcessSeesOneDevice) {
  const auto is_between = [](const std::string& more, std::int64_t size) {
    return parse_torch_profile(
               trace_of(R"({"cat": "kernel", "name": "nccl", "dur": 40, "args": {"Collective name": )"
                        R"("allreduce", "In msg nelems": 64, "dtype": "Float", "Group size": )" +
                        std::to_string(size) + more + "}}"),
               "t.json")
        .communications.front()
        .key.inter_node;
  };
  EXPECT_FALSE(is_between("", 8));
  EXPECT_TRUE(is_between("", 64));
  EXPECT_TRUE(is_between(R"(, "Process Group Ranks": "[0, 8]")", 2));
  EXPECT_FALSE(is_between(R"(, "Process Group Ranks": "[8, 9]")", 2));
}

// Of an even number the middle of the middle two; kernels of less than the microsecond that old profilers
// write are left out; products in fp8 are products.
TEST(ImportTorchProfile, TakesTheMedianOfKernels) {
  const auto call = [](int id, double micros, const std::string& name, const std::string& type) {
    return fmt::format(
        R"({{"cat": "cpu_op", "name": "{}", "dur": 9, "args": {{"External id": {}, "Input Dims": [[64, 32], )"
        R"([32, 16]], "Input type": ["{}", "{}"]}}}},)"
        R"({{"cat": "kernel", "name": "k", "dur": {}, "args": {{"External id": {}}}}})",
        name, id, type, type, micros, id);
  };
  const std::string bf16 = "c10::BFloat16", fp8 = "c10::Float8_e4m3fn";
  const Profile profile = parse_torch_profile(
      trace_of(call(1, 100, "aten::mm", bf16) + "," + call(2, 140, "aten::mm", bf16) + "," +
               call(3, 0, "aten::mm", bf16) + "," + call(4, 120, "aten::mm", bf16) + "," +
               call(5, 500, "aten::mm", bf16) + "," + call(6, 70, "aten::_scaled_mm", fp8)),
      "t.json");
  ASSERT_EQ(profile.computations.size(), 2U);
  const Measured& wide = profile.computations.front().measured;
  EXPECT_EQ(wide.time, microseconds(130));
  EXPECT_EQ(wide.spread, microseconds(20));
  EXPECT_EQ(wide.repeats, 4);
  EXPECT_EQ(profile.computations.back().key, product_key({64, 16, 32, 1}, DType::fp8));
  EXPECT_EQ(profile.computations.back().measured.time, microseconds(70));
}

TEST(ImportTorchProfile, TakesCollectivesWithTheirSizes) {
  const std::string kernel =
      R"({"cat": "kernel", "name": "ncclDevKernel_AllGather", "dur": 40, "args": {"Collective name": )"
      R"("_allgather_base", "In msg nelems": 512, "Out msg nelems": 4096, "Group size": 8, "dtype": "BFloat16"}})";
  const Profile profile = parse_torch_profile(trace_of(kernel), "t.json");
  ASSERT_EQ(profile.communications.size(), 1U);
  EXPECT_EQ(profile.communications.front().key, (CommunicationKey{"all-gather", 8192, 8, false}));
  EXPECT_EQ(profile.communications.front().measured.time, microseconds(40));
}

TEST(ImportTorchProfile, SaysWhatIsMissing) {
  EXPECT_EQ(error_of([] { parse_torch_profile(trace_of(""), "t.json"); }),
            "t.json: has neither matrix products with shapes nor collectives\n"
            "  hint: take the trace with torch.profiler.profile(record_shapes=True)");
  EXPECT_EQ(error_of([] { parse_torch_profile("{", "t.json"); }), "t.json: is broken JSON");
  EXPECT_NE(error_of([] { parse_torch_profile("[]", "t.json"); }).find("traceEvents"), std::string::npos);
}

TEST(ImportTorchProfile, SaysWhichEventCannotBe) {
  const auto error_of_events = [](const std::string& events) {
    return error_of([&] { parse_torch_profile(trace_of(events), "t.json"); });
  };
  const std::string huge =
      R"({"cat": "cpu_op", "name": "aten::mm", "dur": 9, "args": {"Input Dims": [[4611686018427387904, 16], )"
      R"([16, 64]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}})";
  EXPECT_EQ(error_of_events(kCall + "," + huge),
            "t.json: traceEvents[1]: sizes overflow 64 bits\n  hint: check the dimensions");
  EXPECT_EQ(error_of_events(R"({"cat": "kernel", "name": "gemm", "dur": -10, "args": {}})"),
            "t.json: traceEvents[0]: dur -10 is not a duration\n  hint: expected seconds, such as 0.000125");
  EXPECT_EQ(error_of_events(R"({"cat": "kernel", "name": "gemm", "dur": "10", "args": {}})"),
            "t.json: traceEvents[0]: has no number 'dur'\n  hint: is the trace what the profiler wrote?");
  const auto gathered = [](const std::string& elements, const std::string& ranks) {
    return R"({"cat": "kernel", "name": "ncclDevKernel_AllGather", "dur": 40, "args": {"Collective name": )"
           R"("all_gather", "dtype": "Float", "Out msg nelems": )" +
           elements + R"(, "Group size": )" + ranks + "}}";
  };
  EXPECT_EQ(error_of_events(gathered("8", "2")), "no error");
  EXPECT_EQ(
      error_of_events(gathered("1e300", "2")),
      "t.json: traceEvents[0]: a collective of 4e+300 bytes among 2 ranks\n  hint: is the trace what the "
      "profiler wrote?");
  EXPECT_EQ(
      error_of_events(gathered("8", "1e300")),
      "t.json: traceEvents[0]: a collective of 32 bytes among 1e+300 ranks\n  hint: is the trace what the "
      "profiler wrote?");
}

TEST(ProfileJson, ReadsMeasuredEvents) {
  const Profile profile = parse_profile_json(
      R"({"schema": "armilla.events/1", "device": "x", "computations": [
        {"name": "qkv", "phase": "forward", "products": [{"m": 1, "n": 2, "k": 3, "count": 4}], "type": "bf16",
         "flops": 48, "bytes": 9, "time_s": 1e-6, "source": "measured", "repeats": 20, "spread_s": 1e-8},
        {"name": "norm", "phase": "forward", "products": [], "type": "bf16", "flops": 1, "bytes": 9,
         "time_s": 1e-6, "source": "modelled"}],
       "communications": [{"name": "send", "bytes": 64, "ranks": 2, "inter_node": true, "time_s": 2e-6,
         "source": "measured", "device": "y"}]})",
      "p.json");
  ASSERT_EQ(profile.computations.size(), 1U);
  EXPECT_EQ(profile.computations[0].key, (ComputationKey{"qkv", Phase::forward, "4 x 1x2x3", "bf16", 48, 9}));
  EXPECT_EQ(profile.computations[0].measured, (Measured{microseconds(1), Time(10'000), 20, "x"}));
  ASSERT_EQ(profile.communications.size(), 1U);
  EXPECT_EQ(profile.communications[0].measured, (Measured{microseconds(2), {}, 0, "y"}));
  EXPECT_EQ(error_of([] {
              parse_profile_json(R"({"schema": "armilla.events/1", "computations": [{"time_s": 1}]})",
                                 "p.json");
            }),
            "p.json.computations[0]: unknown phase ''\n  hint: known: forward, input gradient, weight "
            "gradient, gradient exchange, optimizer, other");
  EXPECT_NE(error_of([] { parse_profile_json("{}", "p.json"); }).find("is not a list of events"),
            std::string::npos);
}

}  // namespace
}  // namespace armilla
