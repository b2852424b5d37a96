#include "ir/formats/text_workload.h"

#include <gmock/gmock.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

TextWorkload valid() {
  TextWorkload workload;
  TextLayer& layer = workload.layers.emplace_back();
  layer.name = "conv1";
  layer.weight_gradient = {10, CollectiveKind::all_reduce, Bytes(4)};
  return workload;
}

std::string invalid(const TextWorkload& workload) {
  return error_of([&] { validate_text_workload(workload); });
}

TEST(TextPolicy, NamesReadBack) {
  for (const TextPolicy policy : kTextPolicies) EXPECT_EQ(text_policy(name_of(policy), "--policy"), policy);
  EXPECT_EQ(error_of([] { text_policy("HYBRID_DATA_MODLE", "--policy"); }),
            "--policy: 'HYBRID_DATA_MODLE' is not a policy of text workloads\n"
            "  hint: did you mean 'HYBRID_DATA_MODEL'?");
}

TEST(TextPolicy, LayersHaveThoseThatNeedNoNumber) {
  std::string names;
  for (const TextPolicy policy : kTextPolicies) {
    if (!is_layer_policy(policy)) names += std::string(name_of(policy)) + ' ';
  }
  EXPECT_EQ(names, "HYBRID_CUSTOMIZED HYBRID_TRANSFORMER HYBRID_TRANSFORMER_FWD_IN_BCKWD ");
}

TEST(TextWord, KnowsTheCollectivesOfTheFormat) {
  EXPECT_EQ(text_word(std::nullopt), "NONE");
  EXPECT_EQ(text_word(CollectiveKind::all_reduce), "ALLREDUCE");
  EXPECT_EQ(text_word(CollectiveKind::all_gather), "ALLGATHER");
  EXPECT_EQ(text_word(CollectiveKind::reduce_scatter), "REDUCESCATTER");
  EXPECT_EQ(text_word(CollectiveKind::all_to_all), "ALLTOALL");
  EXPECT_EQ(text_word(CollectiveKind::broadcast), "BROADCAST");
  EXPECT_EQ(text_word(CollectiveKind::reduce), "");
  EXPECT_EQ(text_suffix(TextGroup::data_expert), "_DP_EP");
}

TEST(ValidateTextWorkload, AcceptsAndRefuses) {
  EXPECT_EQ(invalid(valid()), "no error");
  EXPECT_EQ(invalid(TextWorkload{}), "text workload: has no layers");

  TextWorkload workload = valid();
  workload.layers[0].name = "conv\t1";
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv\t1': its name is empty or contains white space\n"
            "  hint: the format separates columns by it");
  workload = valid();
  workload.layers[0].forward.cycles = -1;
  EXPECT_EQ(invalid(workload), "layer 0 'conv1', forward: -1 cycles");
  workload = valid();
  workload.layers[0].update_cycles = -3;
  EXPECT_EQ(invalid(workload), "layer 0 'conv1': an update of -3 cycles");
  workload = valid();
  workload.layers[0].input_gradient = {1, CollectiveKind::reduce, Bytes(4)};
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv1', input gradient: the text format has no word for reduce\n"
            "  hint: it knows all-reduce, all-gather, reduce-scatter, all-to-all and broadcast");
  workload = valid();
  workload.layers[0].forward.cycles = INT64_MAX;
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv1', forward: 9223372036854775807 cycles\n"
            "  hint: below 2305843009213693");
}

TEST(ValidateTextWorkload, BytesAndCollectivesComeTogether) {
  TextWorkload workload = valid();
  workload.layers[0].weight_gradient.bytes = Bytes(0);
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv1', weight gradient: ALLREDUCE of 0 bytes\n"
            "  hint: a collective needs at least 1 byte, and bytes need a collective");
  workload = valid();
  workload.layers[0].forward.bytes = Bytes(8);
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv1', forward: NONE of 8 bytes\n"
            "  hint: a collective needs at least 1 byte, and bytes need a collective");
}

TEST(ValidateTextWorkload, LayerPoliciesBelongToCustomizedFiles) {
  TextWorkload workload = valid();
  workload.layers[0].policy = TextPolicy::data;
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv1': has a policy of its own\n"
            "  hint: under HYBRID_CUSTOMIZED, and only there, every layer has one");
  workload.policy = TextPolicy::hybrid_customized;
  EXPECT_EQ(invalid(workload), "no error");
  workload.layers[0].policy = TextPolicy::hybrid_transformer;
  EXPECT_EQ(invalid(workload), "layer 0 'conv1': HYBRID_TRANSFORMER is not a policy of a single layer");
  workload.layers[0].policy.reset();
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv1': has no policy of its own\n"
            "  hint: under HYBRID_CUSTOMIZED, and only there, every layer has one");
}

TEST(ValidateTextWorkload, NumbersOfTheFirstLine) {
  TextWorkload workload = valid();
  workload.layers.resize(3, workload.layers[0]);
  workload.policy = TextPolicy::hybrid_dlrm;
  workload.last_bottom_layer = 3;
  EXPECT_EQ(invalid(workload),
            "last bottom layer: layer 3 does not exist\n"
            "  hint: the layers are 0 to 2");
  workload.policy = TextPolicy::hybrid_transformer_fwd_in_bckwd;
  workload.model_parallel_group = -2;
  EXPECT_EQ(invalid(workload),
            "model_parallel_NPU_group: a group of -2\n"
            "  hint: at least 1, or 0 for none");
  workload.model_parallel_group = 1;
  workload.checkpoints = {1};
  workload.checkpoint_initiates = {2};
  EXPECT_EQ(invalid(workload), "no error");
  EXPECT_EQ(recompute_start({0, 1, 3}, 2), 1);
  EXPECT_EQ(recompute_start({0, 1, 3}, 3), 3);
  EXPECT_EQ(recompute_start({1}, 0), -1);
  workload.checkpoint_initiates = {0};
  EXPECT_EQ(invalid(workload),
            "checkpoint_initiates: no checkpoint lies before layer 0\n"
            "  hint: the layers from the nearest checkpoint up to this one run forward again");
  workload.checkpoint_initiates = {1};
  EXPECT_EQ(invalid(workload),
            "checkpoint_initiates: layer 1 is a checkpoint itself\n"
            "  hint: the layers from the nearest checkpoint up to this one run forward again");
  workload.checkpoints = {-1};
  EXPECT_EQ(invalid(workload),
            "checkpoints: layer -1 does not exist\n"
            "  hint: the layers are 0 to 2");
}

}  // namespace
}  // namespace armilla
