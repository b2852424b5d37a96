#include "ir/text_workload.h"

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

TEST(TextWord, KnowsTheFourCollectivesOfTheFormat) {
  EXPECT_EQ(text_word(std::nullopt), "NONE");
  EXPECT_EQ(text_word(CollectiveKind::all_reduce), "ALLREDUCE");
  EXPECT_EQ(text_word(CollectiveKind::all_gather), "ALLGATHER");
  EXPECT_EQ(text_word(CollectiveKind::reduce_scatter), "REDUCESCATTER");
  EXPECT_EQ(text_word(CollectiveKind::all_to_all), "ALLTOALL");
  EXPECT_EQ(text_word(CollectiveKind::broadcast), "");
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
  workload.layers[0].input_gradient = {1, CollectiveKind::broadcast, Bytes(4)};
  EXPECT_EQ(invalid(workload),
            "layer 0 'conv1', input gradient: the text format has no word for broadcast\n"
            "  hint: it knows all-reduce, all-gather, reduce-scatter and all-to-all");
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

}  // namespace
}  // namespace armilla
