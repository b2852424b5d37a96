#include "write/astra/astra_text.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "write/format/json_text.h"
#include "write/report/documented_keys_testing.h"

namespace armilla {
namespace {

TextWorkload example_workload() {
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
  EXPECT_EQ(write_astra_text(example_workload()),
            "HYBRID_DATA_MODEL\n"
            "2\n"
            "conv1\t-1\t13003\tALLGATHER\t64\t12864\tREDUCESCATTER\t128\t32291\tALLREDUCE\t37632\t3229\n"
            "fc\t-1\t7\tALLTOALL\t1\t0\tNONE\t0\t0\tNONE\t0\t0\n");
}

TEST(AstraText, Json) {
  const Json document = Json::parse(write_text_workload_json(example_workload()));
  EXPECT_EQ(document["schema"], "armilla.text_workload/1");
  EXPECT_EQ(document["policy"], "HYBRID_DATA_MODEL");
  EXPECT_EQ(document["layers"][0], Json::parse(R"({"name": "conv1", "dependence": -1,
                            "forward": {"compute_cycles": 13003, "collective": "ALLGATHER", "bytes": 64},
                            "input_gradient": {"compute_cycles": 12864, "collective": "REDUCESCATTER", "bytes": 128},
                            "weight_gradient": {"compute_cycles": 32291, "collective": "ALLREDUCE", "bytes": 37632},
                            "update_cycles": 3229})"));
}

TEST(AstraText, EveryPolicyHasItsNumbers) {
  TextWorkload workload = example_workload();
  const auto first_line = [&] {
    const std::string text = write_astra_text(workload);
    return text.substr(0, text.find('\n'));
  };
  workload.policy = TextPolicy::hybrid_dlrm_enhanced;
  workload.last_bottom_layer = 1;
  EXPECT_EQ(first_line(), "HYBRID_DLRM_ENHANCED 1");
  workload.policy = TextPolicy::hybrid_transformer;
  workload.model_parallel_group = 4;
  EXPECT_EQ(first_line(), "HYBRID_TRANSFORMER model_parallel_NPU_group: 4");
  workload.policy = TextPolicy::hybrid_transformer_fwd_in_bckwd;
  workload.checkpoints = {0};
  workload.checkpoint_initiates = {1};
  workload.plan = {16, 12, 8, 24, 9216, 50331648};
  EXPECT_EQ(first_line(),
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 16 pp: 12 vpp: 8 ga: 24 "
            "all_gpus: 9216 checkpoints: 1 0 checkpoint_initiates: 1 1 pp_comm: 50331648");
}

TEST(AstraText, LayersOfCustomizedFilesHaveAPolicy) {
  TextWorkload workload = example_workload();
  workload.policy = TextPolicy::hybrid_customized;
  workload.layers[0].policy = TextPolicy::data;
  workload.layers[1].policy = TextPolicy::model;
  workload.layers[1].forward.group = TextGroup::data_expert;
  EXPECT_EQ(write_astra_text(workload),
            "HYBRID_CUSTOMIZED\n"
            "2\n"
            "conv1\t-1\t13003\tALLGATHER\t64\t12864\tREDUCESCATTER\t128\t32291\tALLREDUCE\t37632\t3229"
            "\tDATA\n"
            "fc\t-1\t7\tALLTOALL_DP_EP\t1\t0\tNONE\t0\t0\tNONE\t0\t0\tMODEL\n");
  EXPECT_TRUE(
      write_text_workload_csv(workload).ends_with("\nfc,-1,7,ALLTOALL_DP_EP,1,0,NONE,0,0,NONE,0,0,MODEL\n"));
}

TEST(AstraText, EveryKeyIsDocumented) {
  TextWorkload workload = example_workload();
  std::set<std::string> keys;
  const auto add_keys = [&] { keys.merge(keys_of(Json::parse(write_text_workload_json(workload)))); };
  workload.policy = TextPolicy::hybrid_dlrm;
  add_keys();
  workload.policy = TextPolicy::hybrid_transformer_fwd_in_bckwd;
  workload.model_parallel_group = 4;
  workload.checkpoints = {0};
  workload.checkpoint_initiates = {1};
  workload.plan = {1, 1, 1, 1, 8, 0};
  add_keys();
  workload.policy = TextPolicy::hybrid_customized;
  for (TextLayer& layer : workload.layers) layer.policy = TextPolicy::data;
  add_keys();
  EXPECT_EQ(keys, documented_keys("docs/formats/text_workload.md"));
}

TEST(AstraText, Csv) {
  EXPECT_EQ(
      write_text_workload_csv(example_workload()),
      "name,dependence,forward_cycles,forward_collective,forward_bytes,input_gradient_cycles,"
      "input_gradient_collective,input_gradient_bytes,weight_gradient_cycles,weight_gradient_collective,"
      "weight_gradient_bytes,update_cycles\n"
      "conv1,-1,13003,ALLGATHER,64,12864,REDUCESCATTER,128,32291,ALLREDUCE,37632,3229\n"
      "fc,-1,7,ALLTOALL,1,0,NONE,0,0,NONE,0,0\n");
}

TEST(AstraText, RefusesWhatAReaderWouldMisread) {
  TextWorkload workload = example_workload();
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
