// What expert parallelism sends per token: in which type, and how many copies.
//
//   to the experts   Plan::dispatch_dtype; unknown: ModelFacts::dispatch_dtype where the plan computes in fp8
//   (as
//                    DeepSeek-V3 does, section 3.3.3: activations on their way to experts, and in the
//                    backward pass the gradients of what experts return), else as activations. Types of a
//                    byte or less bring an fp32 scale for every 128 numbers.
//   back from them   as activations: sums are made of it
//   copies           one for each of the k experts, or one for each rank (and node) that has some of them
//                    (Plan::expert_dispatch; DeepSeek-V3, section 3.2.2; expected numbers:
//                    ir/expert_routing.h). Partial sums come back over the same ways, added up where copies
//                    were made.
// Uneven loads are sent per expert: where the tokens of loaded experts come from is not known.
//
// How many tokens a rank gets is known to the device alone, and what receives them is as large as they are: a
// host that issues operators one by one stops before every dispatch of a forward pass until its router is
// done (Megatron-Core's alltoall dispatcher: tokens_per_expert.cpu(), DeepEP's buffer: num_recv_tokens).
// Backward passes know the numbers. Steps that are one program (Plan::host compiled, CUDA graphs) have
// buffers of a fixed size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/expert_routing.h"
#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// Whether some expert-parallel positions get more tokens than others. A skew of 0 makes all alike.
bool is_uneven(const Plan& plan);

DType dispatch_type(const Plan& plan, const ModelFacts& facts);

// Without experts where every expert gets a copy.
ExpertRouting expert_routing(const Plan& plan, const ModelFacts& facts, bool to_experts);

// Of `numbers` activations, a copy of a token for each of its experts, on a rank's behalf.
Bytes exchanged_bytes(std::int64_t numbers, const Plan& plan, const ModelFacts& facts, bool to_experts,
                      std::string_view what);

// Of a device, that the kernels of an exchange hold (DeepEP's and NCCL's defaults).
std::int32_t exchange_processors(const Plan& plan, const ModelFacts& facts);

// Puts what is decided by the model into a plan that leaves it open; nothing where no tokens go to experts of
// other ranks.
void resolve_exchange(const ModelFacts& facts, Plan& plan);

// What is assumed of it, for the user to see.
std::vector<std::string> describe_exchange(const Plan& plan, const ModelFacts& facts);

}  // namespace armilla
