#include "write/report.h"

#include <gmock/gmock.h>

#include "write/format/json_text.h"
#include "write/report/documented_keys_testing.h"
#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LayerTable costed_table() {
  LayerTable table = layer_table(example_model());
  table.compute = "systolic on TestChip";
  table.times = {{nanoseconds(5), nanoseconds(6), nanoseconds(7), 5, 6, 7},
                 {nanoseconds(50), nanoseconds(60), nanoseconds(70), 50, 60, 70}};
  return table;
}

TEST(LayersText, ShowsWorkPerLayer) {
  EXPECT_EQ(write_layers_text(layer_table(example_model()), false),
            "mlp, batch 2: 3 operators in 2 layers\n"
            "layer  operator  weights  parameters  dtype   size  MACs       flops    traffic  output\n"
            "fc1    Gemm          128         144  fp32   576 B   256  544.0 flop  1.000 KiB  2x16\n"
            "fc2    Gemm           64          64  fp32   256 B   128  256.0 flop      416 B  2x4\n"
            "total                192         208         832 B   384  800.0 flop  1.406 KiB\n");
}

TEST(LayersText, ShowsTimesNotesAndUnknownOperators) {
  LayerTable table = costed_table();
  table.notes = {"the batch dimension of 'x' is 2"};
  table.unknown = {{"com.acme.Magic", 2, Bytes(720)}};
  EXPECT_THAT(
      write_layers_text(table, false),
      HasSubstr("\n"
                "Compute times by systolic on TestChip\n"
                "layer   forward  input gradient  weight gradient       sum  forward cycles  input gradient"
                "  weight gradient\n"
                "fc1    5.000 ns        6.000 ns         7.000 ns  18.00 ns               5               6"
                "                7\n"
                "fc2    50.00 ns        60.00 ns         70.00 ns  180.0 ns              50              60"
                "               70\n"
                "total  55.00 ns        66.00 ns         77.00 ns  198.0 ns              55              66"
                "               77\n"
                "warning: com.acme.Magic: 2 of 3 operators, 50.0 % of the forward bytes; its arithmetic is "
                "unknown\n"
                "         and counted as none\n"
                "note: the batch dimension of 'x' is 2\n"));
}

TEST(LayersText, LeavesOutCyclesThatNobodyCounted) {
  LayerTable table = costed_table();
  for (LayerTime& time : table.times)
    time = {time.forward, time.input_gradient, time.weight_gradient, 0, 0, 0};
  EXPECT_THAT(write_layers_text(table, false), Not(HasSubstr("cycles")));
  EXPECT_THAT(write_layers_csv(table), Not(HasSubstr("cycles")));
  EXPECT_THAT(write_layers_json(table), Not(HasSubstr("cycles")));
  EXPECT_THAT(write_layers_json(table), HasSubstr("forward_s"));
}

TEST(LayersCsv, WithAndWithoutTimes) {
  EXPECT_EQ(write_layers_csv(layer_table(example_model())),
            "name,operator,weights,weight_bytes,parameters,parameter_bytes,dtype,output_shape,forward_macs,"
            "forward_flops,forward_bytes\n"
            "fc1,Gemm,128,512,144,576,fp32,2x16,256,544,1024\n"
            "fc2,Gemm,64,256,64,256,fp32,2x4,128,256,416\n");
  EXPECT_EQ(write_layers_csv(costed_table()),
            "name,operator,weights,weight_bytes,parameters,parameter_bytes,dtype,output_shape,forward_macs,"
            "forward_flops,forward_bytes,forward_s,input_gradient_s,weight_gradient_s,forward_cycles,"
            "input_gradient_cycles,weight_gradient_cycles\n"
            "fc1,Gemm,128,512,144,576,fp32,2x16,256,544,1024,0.000000005,0.000000006,0.000000007,5,6,7\n"
            "fc2,Gemm,64,256,64,256,fp32,2x4,128,256,416,0.00000005,0.00000006,0.00000007,50,60,70\n");
}

TEST(LayersJson, HasTheFixedNames) {
  const Json document = Json::parse(write_layers_json(layer_table(example_model())));
  EXPECT_EQ(document["schema"], "armilla.layers/1");
  EXPECT_EQ(document["totals"],
            Json::parse(R"({"parameters": 208, "parameter_bytes": 832, "buffer_bytes": 0, "weights": 192,
                            "weight_bytes": 768, "forward_macs": 384, "forward_flops": 800,
                            "forward_bytes": 1440})"));
  EXPECT_EQ(document["layers"][0],
            Json::parse(R"({"name": "fc1", "operator": "Gemm", "weights": 128, "weight_bytes": 512,
                            "parameters": 144, "parameter_bytes": 576, "dtype": "fp32",
                            "output_shape": [2, 16], "forward_macs": 256, "forward_flops": 544,
                            "forward_bytes": 1024})"));
  EXPECT_TRUE(document["compute"].is_null());
  EXPECT_EQ(document["outputs"],
            Json::parse(R"([{"name": "y", "kind": "tensor", "dtype": "fp32", "shape": [2, 4]}])"));
}

TEST(LayersJson, WhatIsNoTensorHasNoShape) {
  LayerTable table = layer_table(example_model());
  table.outputs = {{"parts", DType::fp16, {}, ValueKind::sequence}, {"mean", DType::fp32, {}}};
  table.layers[0].output_shape.reset();
  const Json document = Json::parse(write_layers_json(table));
  EXPECT_EQ(document["outputs"],
            Json::parse(R"([{"name": "parts", "kind": "sequence", "dtype": "fp16", "shape": null},
                            {"name": "mean", "kind": "tensor", "dtype": "fp32", "shape": []}])"));
  EXPECT_TRUE(document["layers"][0]["output_shape"].is_null());
  EXPECT_THAT(write_layers_text(table, false), Not(HasSubstr("2x16")));
}

TEST(LayersJson, EveryKeyIsDocumentedAndEveryDocumentedKeyExists) {
  LayerTable table = costed_table();
  table.unknown = {{"com.acme.Magic", 2, Bytes(720)}};
  EXPECT_EQ(keys_of(Json::parse(write_layers_json(table))), documented_keys("docs/formats/layers_json.md"));
}

}  // namespace
}  // namespace armilla
