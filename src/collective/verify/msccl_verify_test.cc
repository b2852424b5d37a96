#include "collective/verify.h"

#include <gtest/gtest.h>

#include <functional>

namespace armilla {
namespace {

using Operation = MscclOperation;
constexpr MscclBuffer kInput = MscclBuffer::input, kOutput = MscclBuffer::output;

// One chunk per GPU round a ring, in one threadblock per GPU.
MscclAlgorithm msccl_ring(CollectiveKind kind, std::int32_t gpus) {
  MscclAlgorithm algorithm;
  algorithm.kind = kind;
  algorithm.in_place = true;
  algorithm.chunks_per_loop = gpus;
  for (std::int32_t gpu = 0; gpu < gpus; ++gpu) {
    MscclBlock block;
    block.send_peer = (gpu + 1) % gpus;
    block.receive_peer = (gpu + gpus - 1) % gpus;
    const MscclBuffer buffer = kind == CollectiveKind::all_gather ? kOutput : kInput;
    const auto step = [&](Operation operation, std::int32_t chunk) {
      const MscclPlace place{buffer, ((chunk % gpus) + gpus) % gpus};
      block.steps.push_back({operation, place, place, 1, -1, -1});
    };
    // Reducing begins one chunk further back, so that each GPU finishes its own.
    if (kind != CollectiveKind::all_gather) {
      step(Operation::send, gpu - 1);
      for (std::int32_t hop = 2; hop < gpus; ++hop) step(Operation::receive_reduce_copy_send, gpu - hop);
      step(Operation::receive_reduce_copy, gpu);
    }
    if (kind != CollectiveKind::reduce_scatter) {
      step(Operation::send, gpu);
      for (std::int32_t hop = 1; hop < gpus - 1; ++hop) step(Operation::receive_copy_send, gpu - hop);
      step(Operation::receive, gpu + 1);
    }
    algorithm.gpus.push_back({0, {block}});
  }
  return algorithm;
}

MscclStep& step_of(MscclAlgorithm& algorithm, std::size_t gpu, std::size_t step, std::size_t block = 0) {
  return algorithm.gpus[gpu].blocks[block].steps[step];
}

// What the verifier says about a ring of 4 that `breaks` it.
std::string msccl_verdict(CollectiveKind kind, const std::function<void(MscclAlgorithm&)>& breaks) {
  MscclAlgorithm algorithm = msccl_ring(kind, 4);
  EXPECT_EQ(verify_msccl(algorithm, kind), "");
  breaks(algorithm);
  return verify_msccl(algorithm, kind);
}

TEST(MscclVerifyTest, RingsPerformTheirCollectiveAndNoOther) {
  for (const std::int32_t gpus : {2, 3, 5, 65}) {
    EXPECT_EQ(verify_msccl(msccl_ring(CollectiveKind::all_reduce, gpus), CollectiveKind::all_reduce), "");
    EXPECT_EQ(verify_msccl(msccl_ring(CollectiveKind::all_gather, gpus), CollectiveKind::all_gather), "");
    EXPECT_EQ(verify_msccl(msccl_ring(CollectiveKind::reduce_scatter, gpus), CollectiveKind::reduce_scatter),
              "");
  }
  EXPECT_EQ(verify_msccl(msccl_ring(CollectiveKind::reduce_scatter, 3), CollectiveKind::all_reduce),
            "GPU 0 ends with chunk 1 of the output lacking the contribution of GPU 1");
  EXPECT_EQ(verify_msccl(msccl_ring(CollectiveKind::all_reduce, 3), CollectiveKind::barrier),
            "MSCCL describes no barriers");
}

// Two GPUs exchange through their scratch, out of place.
MscclAlgorithm exchange() {
  MscclAlgorithm algorithm;
  algorithm.chunks_per_loop = 2;
  for (std::int32_t gpu = 0; gpu < 2; ++gpu) {
    MscclBlock link, local;
    link.send_peer = link.receive_peer = 1 - gpu;
    link.steps = {{Operation::send, {kInput, 1 - gpu}, {}, 1, -1, -1},
                  {Operation::receive, {}, {MscclBuffer::scratch, 0}, 1, -1, -1}};
    local.id = 1;
    local.steps = {{Operation::copy, {kInput, gpu}, {kOutput, gpu}, 1, -1, -1},
                   {Operation::copy, {MscclBuffer::scratch, 0}, {kOutput, 1 - gpu}, 1, 0, 1}};
    algorithm.gpus.push_back({1, {link, local}});
  }
  return algorithm;
}

TEST(MscclVerifyTest, FollowsAllToAllAndCopies) {
  MscclAlgorithm algorithm = exchange();
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::all_to_all), "");
  step_of(algorithm, 0, 0, 1).destination.offset = 1;
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::all_to_all),
            "GPU 0 ends with nothing in chunk 0 of the output");
}

TEST(MscclVerifyTest, FindsAMissingWait) {
  MscclAlgorithm algorithm = exchange();
  step_of(algorithm, 1, 1, 1).awaited_block = -1;
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::all_to_all),
            "GPU 1, tb 1 step 1: uses a chunk that tb 0 step 1 uses too, without waiting for it");
}

// The threadblocks meet in chunk 0 of the scratch in an order that only luck decides.
TEST(MscclVerifyTest, FindsARace) {
  MscclAlgorithm algorithm = exchange();
  algorithm.gpus[0].blocks[1].steps.insert(
      algorithm.gpus[0].blocks[1].steps.begin() + 1,
      {Operation::copy, {kInput, 0}, {MscclBuffer::scratch, 0}, 1, -1, -1});
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::all_to_all),
            "GPU 0, tb 0 step 1: uses a chunk that tb 1 step 1 uses too, without waiting for it");
}

TEST(MscclVerifyTest, BroadcastAndReduceHaveARoot) {
  MscclAlgorithm algorithm;
  algorithm.in_place = true;
  MscclBlock from, to;
  from.send_peer = 0;
  to.receive_peer = 1;
  from.steps = {{Operation::send, {kInput, 0}, {}, 1, -1, -1}};
  to.steps = {{Operation::receive, {}, {kInput, 0}, 1, -1, -1}};
  algorithm.gpus = {{0, {to}}, {0, {from}}};
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::broadcast, 1), "");
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::broadcast, 0),
            "GPU 1, tb 0 step 0: uses chunk 0 of the input, which holds nothing yet");
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::broadcast, 2), "the root 2 is not one of 2 GPUs");
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::reduce, 0),
            "GPU 0 ends with chunk 0 of the output lacking the contribution of GPU 0");
  algorithm.gpus[0].blocks[0].steps = {{Operation::receive_reduce_copy, {kInput, 0}, {kInput, 0}, 1, -1, -1}};
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::reduce, 0), "");
}

TEST(MscclVerifyTest, FindsSabotage) {
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_reduce,
                          [](MscclAlgorithm& algorithm) {
                            auto& steps = algorithm.gpus[1].blocks[0].steps;
                            steps.erase(steps.begin());
                          }),
            "GPU 2, tb 0 step 1: adds chunk 3 to chunk 0");
  EXPECT_EQ(msccl_verdict(
                CollectiveKind::all_reduce,
                [](MscclAlgorithm& algorithm) { step_of(algorithm, 2, 3).operation = Operation::receive; }),
            "GPU 0 ends with chunk 2 of the output lacking the contribution of GPU 2");
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_reduce,
                          [](MscclAlgorithm& algorithm) { step_of(algorithm, 0, 0).source.offset = 2; }),
            "GPU 1, tb 0 step 1: adds chunk 2 to chunk 3");
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_reduce,
                          [](MscclAlgorithm& algorithm) { step_of(algorithm, 0, 0).count = 2; }),
            "GPU 0, tb 0 step 0: uses chunk 4 of the input, which has 4");
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_reduce,
                          [](MscclAlgorithm& algorithm) { step_of(algorithm, 1, 0).count = 2; }),
            "GPU 2, tb 0 step 1: receives 1 chunk, but GPU 1 sends 2");
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_reduce,
                          [](MscclAlgorithm& algorithm) { algorithm.gpus[2].blocks[0].channel = 1; }),
            "GPU 1: tb 0 sends to GPU 2 over channel 0, but nothing there receives it");
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_reduce,
                          [](MscclAlgorithm& algorithm) {
                            auto& steps = algorithm.gpus[3].blocks[0].steps;
                            steps.push_back(steps.front());
                          }),
            "GPU 3 sends 1 message to GPU 0 over channel 0 that nobody receives");
  EXPECT_EQ(
      msccl_verdict(CollectiveKind::all_reduce,
                    [](MscclAlgorithm& algorithm) {
                      for (MscclGpu& gpu : algorithm.gpus)
                        std::swap(gpu.blocks[0].steps[0], gpu.blocks[0].steps[3]);
                    }),
      "never ends: GPU 0, tb 0 step 0 waits for GPU 3, tb 0 step 0 waits for GPU 2, tb 0 step 0 waits for "
      "GPU 1, tb 0 step 0 waits for GPU 0, tb 0 step 0");
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_gather,
                          [](MscclAlgorithm& algorithm) { step_of(algorithm, 2, 3).destination.offset = 2; }),
            "GPU 2 ends with chunk 3 in place of chunk 2 of the output");
  EXPECT_EQ(msccl_verdict(CollectiveKind::all_gather,
                          [](MscclAlgorithm& algorithm) { algorithm.chunks_per_loop = 6; }),
            "6 chunks cannot be spread evenly over 4 GPUs");
}

TEST(MscclVerifyTest, FindsAMessageThatIsNeverSent) {
  MscclAlgorithm algorithm = msccl_ring(CollectiveKind::all_gather, 2);
  algorithm.gpus[1].blocks[0].steps.erase(algorithm.gpus[1].blocks[0].steps.begin());
  EXPECT_EQ(
      verify_msccl(algorithm, CollectiveKind::all_gather),
      "never ends: GPU 0, tb 0 step 1 waits for a message from GPU 1 over channel 0 that is never sent");
}

TEST(MscclVerifyTest, FindsAContributionAddedTwice) {
  MscclAlgorithm algorithm = msccl_ring(CollectiveKind::reduce_scatter, 2);
  const MscclPlace own{kInput, 0};
  algorithm.gpus[0].blocks[0].steps.push_back({Operation::reduce, own, own, 1, -1, -1});
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::reduce_scatter),
            "GPU 0, tb 0 step 2: adds the contribution of GPU 0 to chunk 0 twice");
}

TEST(MscclVerifyTest, RefusesWhatWouldTakeTooLong) {
  MscclAlgorithm algorithm = msccl_ring(CollectiveKind::all_gather, 2);
  algorithm.gpus[0].scratch_chunks = 1 << 27;
  EXPECT_EQ(verify_msccl(algorithm, CollectiveKind::all_gather),
            "too large to be verified: 134217736 chunks of memory, 4 chunks moved");
}

}  // namespace
}  // namespace armilla
