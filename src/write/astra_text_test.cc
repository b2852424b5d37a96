#include "write/astra_text.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "write/documented_keys.h"
#include "write/json_text.h"

namespace armilla {
namespace {

TextWorkload example() {
  TextWorkload workload;
  workload.policy = TextPolicy::hybrid_data_model;
  TextLayer& layer = workload.layers.emplace_back();
  layer.name = "conv1";
  layer.forward = {13003, CollectiveKind::all_gather, Bytes(64)};
  layer.input_gradient = {12864, CollectiveKind::reduce_scatter, Bytes(128)};
  layer.weight_gradient = {32291, CollectiveKind::all_reduce, Bytes(37632)};
  layer.update_cycles = 3229;
  TextLayer& last = workload.layers.emplace_back();
  last.name = "fc";
  last.forward = {7, CollectiveKind::all_to_all, Bytes(1)};
  return workload;
}

TEST(AstraText, WritesTwelveColumnsPerLayer) {
  EXPECT_EQ(write_astra_text(example()),
            "HYBRID_DATA_MODEL\n"
            "2\n"
            "conv1\t-1\t13003\tALLGATHER\t64\t12864\tREDUCESCATTER\t128\t32291\tALLREDUCE\t37632\t3229\n"
            "fc\t-1\t7\tALLTOALL\t1\t0\tNONE\t0\t0\tNONE\t0\t0\n");
}

TEST(AstraText, Json) {
  const Json document = Json::parse(write_text_workload_json(example()));
  EXPECT_EQ(document["schema"], "armilla.text_workload/1");
  EXPECT_EQ(document["policy"], "HYBRID_DATA_MODEL");
  EXPECT_EQ(document["layers"][0], Json::parse(R"({"name": "conv1", "dependence": -1,
                            "forward": {"compute_cycles": 13003, "collective": "ALLGATHER", "bytes": 64},
                            "input_gradient": {"compute_cycles": 12864, "collective": "REDUCESCATTER", "bytes": 128},
                            "weight_gradient": {"compute_cycles": 32291, "collective": "ALLREDUCE", "bytes": 37632},
                            "update_cycles": 3229})"));
  EXPECT_EQ(keys_of(document), documented_keys("docs/formats/text_workload.md"));
}

TEST(AstraText, Csv) {
  EXPECT_EQ(
      write_text_workload_csv(example()),
      "name,dependence,forward_cycles,forward_collective,forward_bytes,input_gradient_cycles,"
      "input_gradient_collective,input_gradient_bytes,weight_gradient_cycles,weight_gradient_collective,"
      "weight_gradient_bytes,update_cycles\n"
      "conv1,-1,13003,ALLGATHER,64,12864,REDUCESCATTER,128,32291,ALLREDUCE,37632,3229\n"
      "fc,-1,7,ALLTOALL,1,0,NONE,0,0,NONE,0,0\n");
}

TEST(AstraText, RefusesWhatAReaderWouldMisread) {
  TextWorkload workload = example();
  workload.layers[1].name = "fully connected";
  for (const auto write : {write_astra_text, write_text_workload_json, write_text_workload_csv}) {
    try {
      write(workload);
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "layer 1 'fully connected': its name is empty or contains white space\n"
                   "  hint: the format separates columns by it");
    }
  }
}

}  // namespace
}  // namespace armilla
