#include <gtest/gtest.h>

#include "base/error.h"
#include "base/error_testing.h"
#include "read/measurements.h"

namespace armilla {
namespace {

const std::string kStepColumns =
    "id,model,layers,hidden,heads,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,step_time_s\n";

TEST(MeasurementsCsv, TellsTablesApartByTheirColumns) {
  EXPECT_EQ(parse_measurements(kStepColumns + "a-1,m,2,8,2,A100,8,2,1,1,8,128,bf16,1.5\n", "t.csv").kind,
            "training");
  EXPECT_EQ(parse_measurements("model,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,peak_GiB\n"
                               "m,A100,8,2,1,1,8,128,bf16,1.5\n",
                               "m.csv")
                .kind,
            "memory");
  EXPECT_EQ(
      parse_measurements("system,gpus,collective,bytes,time_us\nA100,8,all_reduce,1024,9\n", "c.csv").kind,
      "collectives");
  EXPECT_EQ(parse_measurements("gpu,op,dtype,time_us\nA100,gemm,bf16,9\n", "k.csv").kind, "kernels");
}

TEST(MeasurementsCsv, ColumnsAreKnownInUpperAndLowerCase) {
  const MeasurementFile file = parse_measurements(
      "ID,Model,GPU,GPUs,TP,PP,Micro_Batch,Global_Batch,Seq_Len,Precision,Params_b,PEAK_GIB\n"
      "a-1,m,A100,8,2,1,1,8,128,bf16,7,1.5\n",
      "m.csv");
  EXPECT_EQ(file.kind, "memory");
  EXPECT_EQ(file.rows[0].id, "a-1");
  EXPECT_EQ(file.rows[0].value, 1.5 * 1073741824);
  const MeasuredPlan& plan = std::get<MeasuredPeak>(file.rows[0].what).plan;
  EXPECT_EQ(plan.device, "A100");
  EXPECT_EQ(plan.parameters, 7e9);
  // Another column of that name stands beside.
  const MeasurementFile both =
      parse_measurements("gpu,GPU,op,dtype,time_us\nA100,left,gemm,bf16,9\n", "k.csv");
  EXPECT_EQ(std::get<MeasuredKernel>(both.rows[0].what).device, "A100");
}

TEST(MeasurementsCsv, ModelsMayBeCalledAsOnTheHub) {
  for (const auto& [given, name] : {std::pair("meta-llama/Meta-Llama-3-8B", "Llama-3-8B"),
                                    {"mistralai/Mixtral-8x7B-v0.1", "Mixtral-8x7B-v0.1"},
                                    {"DeepSeekV3 (w/o MTP)", "DeepSeekV3 (w/o MTP)"},
                                    {"a/b/c", "a/b/c"},
                                    {"llama3-8b", "llama3-8b"}}) {
    const MeasurementFile file =
        parse_measurements(kStepColumns + "a-1," + given + ",2,8,2,A100,8,2,1,1,8,128,bf16,1.5\n", "t.csv");
    EXPECT_EQ(std::get<MeasuredStep>(file.rows[0].what).plan.model, name);
  }
}

TEST(MeasurementsCsv, ReadsUnitsAndLeavesWhatIsEmpty) {
  const MeasurementFile file =
      parse_measurements(kStepColumns + "a-1,m,2,8,2,A100,8,2,1,0.5,8.0,128,bf16,1.5\n", "t.csv");
  ASSERT_EQ(file.rows.size(), 1u);
  EXPECT_EQ(file.rows[0].where, "t.csv:2");
  EXPECT_EQ(file.rows[0].value, 1.5);
  const MeasuredPlan& plan = std::get<MeasuredStep>(file.rows[0].what).plan;
  EXPECT_EQ(plan.tensor, 2);
  EXPECT_EQ(plan.global_batch, 8);
  EXPECT_EQ(plan.micro_batch, 0.5);
  EXPECT_EQ(plan.vocabulary, 0);
  const MeasurementFile peak = parse_measurements(
      "model,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,peak_GiB\nm,A100,8,2,1,1,8,128,bf16,"
      "2\n",
      "m.csv");
  EXPECT_EQ(peak.rows[0].value, 2.0 * (1 << 30));
  EXPECT_EQ(parse_measurements("gpu,op,dtype,time_us\nA100,gemm,bf16,\n", "k.csv").rows[0].value, 0);
}

std::string refusal_of_table(const std::string& text) {
  return error_of([&] { parse_measurements(text, "x.csv"); });
}

// Of the first row, as it is told where no other can be predicted.
std::string fault_of_row(const std::string& text) {
  const Measurement row = parse_measurements(text, "x.csv").rows.at(0);
  return Error(row.where, row.fault, row.expected).what();
}

TEST(MeasurementsCsv, SaysWhatSeparatesColumns) {
  constexpr std::string_view kExpected =
      "x.csv:1: no commas are between the columns\n  hint: save it as CSV with commas";
  EXPECT_EQ(error_of([] { parse_measurements("op;gpu;dtype;time_us\n1;2;3;4\n", "x.csv"); }), kExpected);
  EXPECT_EQ(error_of([] { parse_measurements("op\tgpu\tdtype\ttime_us\n1\t2\t3\t4\n", "x.csv"); }),
            kExpected);
}

// A cell costs its row, and no other.
TEST(MeasurementsCsv, ReadsOnBehindWhatItCannotRead) {
  const MeasurementFile file = parse_measurements(
      "gpu,op,dtype,batch,m,n,k,time_us\nA100,gemm,bf16,0,8,8,8,9\nA100,gemm,bf16,1,8,8,8,9\n", "k.csv");
  ASSERT_EQ(file.rows.size(), 2u);
  EXPECT_EQ(file.rows[0].fault, "batch: '0' is too few");
  EXPECT_TRUE(std::holds_alternative<MeasuredKernel>(file.rows[0].what));
  EXPECT_EQ(file.rows[1].fault, "");
  EXPECT_EQ(file.rows[1].value, 9e-6);
}

TEST(MeasurementsCsv, BlanksAroundCellsAreNone) {
  const MeasurementFile file =
      parse_measurements(kStepColumns + " a-1 , m ,2,8,  ,A100, 8 ,2, ,1,8,128, fp16 , 1.5 \n", "t.csv");
  EXPECT_EQ(file.rows[0].fault, "");
  EXPECT_EQ(file.rows[0].id, "a-1");
  const MeasuredPlan& plan = std::get<MeasuredStep>(file.rows[0].what).plan;
  EXPECT_EQ(plan.model, "m");
  EXPECT_EQ(plan.precision, "fp16");
  EXPECT_EQ(plan.heads, 0);
  EXPECT_EQ(plan.pipeline, 1);
}

TEST(MeasurementsCsv, ALineWithOtherFieldsThanTheHeaderIsARowWithAFault) {
  const std::string row = "a-1,m,2,8,2,A100,8,2,1,1,8,128,bf16,1.5";
  const MeasurementFile file = parse_measurements(kStepColumns + row + "\nx,y\n" + row + ",9\n", "t.csv");
  ASSERT_EQ(file.rows.size(), 3u);
  EXPECT_EQ(file.rows[0].fault, "");
  EXPECT_EQ(file.rows[1].fault, "2 fields, the header has 14");
  EXPECT_EQ(file.rows[1].where, "t.csv:3");
  EXPECT_EQ(file.rows[2].fault, "15 fields, the header has 14");
}

TEST(MeasurementsCsv, ATableMayHaveStepsAndPeaks) {
  const MeasurementFile file = parse_measurements(
      "model,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,peak_GiB,step_time_s\n"
      "m,A100,8,2,1,1,8,128,bf16,2,1.5\nm,A100,8,2,1,1,8,128,bf16,2,\nm,A100,8,2,1,1,8,128,bf16,,1.5\n"
      "m,A100,8,2,1,1,8,128,bf16,,\n",
      "t.csv");
  std::string kinds;
  for (const Measurement& row : file.rows)
    kinds += std::holds_alternative<MeasuredStep>(row.what) ? 's' : 'p';
  EXPECT_EQ(kinds, "sppss");
  EXPECT_EQ(file.rows[0].value, 1.5);
  EXPECT_EQ(file.rows[1].value, 2.0 * (1 << 30));
  EXPECT_EQ(file.rows[1].where, "t.csv:2");
}

TEST(MeasurementsCsv, RefusesWhatItCannotRead) {
  EXPECT_EQ(fault_of_row(kStepColumns + "a-1,m,2,8,2,A100,8,0,1,1,8,128,bf16,1.5\n"),
            "x.csv:2: tp: '0' is too few\n  hint: expected a whole number of at least 1, or nothing");
  EXPECT_EQ(refusal_of_table("a,b\n1,2\n"),
            "x.csv:1: is not a table of measurements\n  hint: one of the columns step_time_s, peak_GiB and "
            "time_us must "
            "be there (docs/validation.md)");
  EXPECT_EQ(refusal_of_table("model,step_time_s\nm,1\n"),
            "x.csv:1: column 'gpu' is missing\n  hint: there are: model, step_time_s");
  EXPECT_EQ(refusal_of_table("size,time_us\n1,1\n"),
            "x.csv:1: neither 'collective' nor 'op' is among the columns\n  hint: times in us are of "
            "collectives or "
            "of kernels (docs/validation.md)");
  EXPECT_TRUE(
      fault_of_row(kStepColumns + "a,m,2,8,2,A100,many,2,1,1,8,128,bf16,1\n").starts_with("x.csv:2: gpus: "));
  EXPECT_EQ(fault_of_row(kStepColumns + "a,m,2,8,2,A100,8,2,1,1,8,128,bf16,-1\n"),
            "x.csv:2: step_time_s: '-1' is not a quantity\n  hint: expected a number of at least 0");
  EXPECT_EQ(fault_of_row(kStepColumns + "a,m,2.5,8,2,A100,8,2,1,1,8,128,bf16,1\n"),
            "x.csv:2: layers: '2.5' is not a count\n  hint: expected a whole number, or nothing");
  // Degrees alone tell the devices, too.
  const MeasurementFile degrees = parse_measurements(
      "model,gpu,gpus,tp,pp,dp,micro_batch,global_batch,seq_len,precision,peak_GiB\n"
      "m,A100,n/a,2,4,3,1,8,128,bf16,2\nm,A100,24,2,4,,2,,128,bf16,2\n",
      "m.csv");
  EXPECT_EQ(std::get<MeasuredPeak>(degrees.rows[0].what).plan.devices, 24);
  // Nor does a peak depend on how often a full pipeline is filled again.
  EXPECT_EQ(std::get<MeasuredPeak>(degrees.rows[1].what).plan.global_batch, 2 * 3 * 4);
  EXPECT_EQ(fault_of_row(kStepColumns + "a,m,two,8,2,A100,8,2,1,1,8,128,bf16,1\n"),
            "x.csv:2: layers: 'two' is not a count\n  hint: expected a whole number, or nothing");
  EXPECT_EQ(refusal_of_table(kStepColumns),
            "x.csv: has no rows\n  hint: expected a measurement in each line after the first");
}

}  // namespace
}  // namespace armilla
