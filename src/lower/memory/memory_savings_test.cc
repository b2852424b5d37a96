#include "lower/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "read/read.h"

namespace armilla {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Model transformer(const std::string& attention) {
  return read_described_yaml(
      "name: m\nfamily: gpt\nlayers: 4\nhidden: 1024\nheads: 16\nvocabulary: 32000\nsequence: 1024\n"
      "attention: " +
          attention + "\n",
      "m", {{}, 2});
}

PlanRequest request_of(const std::string& key, const std::string& flag) {
  PlanRequest request;
  request.places.emplace(key, flag);
  return request;
}

Plan plan_of_ranks(std::int64_t ranks, std::int64_t micro_batches) {
  Plan plan;
  plan.ranks = ranks;
  plan.micro_batches = micro_batches;
  plan.batch = 2 * micro_batches;
  plan.precision = plan.weight_dtype = plan.parameter_dtype = DType::bf16;
  plan.gradient_dtype = DType::fp32;
  plan.optimizer = Optimizer::adam;
  return plan;
}

TEST(MemorySavings, FlashAttentionLeavesSelectiveRecomputeNothing) {
  Plan plan = plan_of_ranks(1, 1);
  plan.recompute = Recompute::selective;
  const PlanRequest request = request_of("recompute", "--recompute selective");
  EXPECT_THAT(options_without_savings(request, transformer("flash"), plan, {}),
              ElementsAre(StartsWith("--recompute selective saves no memory: the peak is ")));
  EXPECT_THAT(
      options_without_savings(request, transformer("flash"), plan, {})[0],
      HasSubstr("with and without it (flash attention keeps nothing that could be freed); what is computed "
                "again takes time"));
  EXPECT_THAT(options_without_savings(request, transformer("unfused"), plan, {}), IsEmpty());
  plan.recompute = Recompute::full;
  EXPECT_THAT(options_without_savings(request, transformer("flash"), plan, {}), IsEmpty());
  plan.recompute = Recompute::block;
  plan.recompute_blocks = 0;
  EXPECT_THAT(options_without_savings(request_of("recompute_blocks", "--recompute-blocks 0"),
                                      transformer("flash"), plan, {}),
              ElementsAre(AllOf(StartsWith("--recompute-blocks 0 saves no memory: "),
                                EndsWith("; no block is computed again"))));
}

TEST(MemorySavings, ActivationsOfTwoBlocksStayOnTheDevice) {
  const PlanRequest request = request_of("offload", "--offload activations");
  Plan plan = plan_of_ranks(1, 4);
  plan.offload_activations = true;
  EXPECT_THAT(options_without_savings(request, transformer("flash"), plan, {}), IsEmpty());
  // B loads everything for W.
  plan.schedule = "zb-h1";
  EXPECT_THAT(options_without_savings(request, transformer("flash"), plan, {}),
              ElementsAre(StartsWith("--offload activations saves no memory: the peak is ")));
}

TEST(MemorySavings, StatesThatAreSharedOutSaveMemory) {
  const PlanRequest request = request_of("zero", "--zero 1");
  Plan plan = plan_of_ranks(8, 1);
  plan.zero_stage = 1;
  EXPECT_THAT(options_without_savings(request, transformer("flash"), plan, {}), IsEmpty());
  plan.offload_optimizer = true;  // the states are on the host, and fewer cross the link to it
  EXPECT_THAT(options_without_savings(request, transformer("flash"), plan, {}), IsEmpty());
  EXPECT_THAT(options_without_savings({}, transformer("flash"), plan_of_ranks(8, 1), {}), IsEmpty());
}

}  // namespace
}  // namespace armilla
