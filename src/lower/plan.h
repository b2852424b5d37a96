// What a plan means: open fields decided, clashes refused, and what there is to say of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/machine.h"
#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// Fills in what a plan leaves open and refuses what cannot be, naming the numbers that clash and the nearest
// legal values.
//
//   ranks           as given; of all degrees where `data` is among them; else all devices of the machine
//   degrees         one left out is what the others leave of the ranks: data, else pipeline or tensor, else
//                   context; further ones are 1
//   batch           of a replica and iteration. Any two of batch (or global batch), micro-batch and
//                   micro-batches give the third. Where less is said:
//                     micro-batches  1; in a pipeline 4 per stage. Of a batch that is said: the most that
//                                    divide it, up to that number, which the schedule can use
//                     batch          micro-batch x micro-batches; the micro-batch of a model by description
//                                    is 1 sample. Of other models 32 samples, or the next multiple of the
//                                    micro-batches said
//   schedule        1f1b over several chunks is interleaved; zb-v has 2 chunks
//   precision       unknown: bf16 for models by description, fp32 for the others
//   weight_dtype    as precision; bf16 where that is fp8 or fp4, fp32 for tf32. At least fp32 for graphs
//                   under plain data parallelism, as PyTorch's autocast leaves them
//   gradient_dtype  fp32 for bf16 and fp8 models by description (Megatron accumulates in fp32) unless
//                   autograd's parameters are narrow (framework pytorch, state_dtype), else as weights
//   optimizer       adam for models by description, momentum for the others
// Sources of the rules: Megatron-Core's argument checks (arguments.py) and the papers named in ir/plan.h.

// `devices`: of the machine as given; `elastic`: it takes any number. `described`: the model is one by
// description. `group`: more ranks than that come in whole groups of so many. Throws Error.
Plan resolve_plan(const PlanRequest& request, std::int64_t devices, bool elastic, bool described,
                  std::int64_t group = 1);

// Selective recompute of a model without attention is none, and what follows from it (types) is as without
// it. `plan` is the request, resolved.
void settle_recompute(const PlanRequest& request, const ModelFacts& facts, Plan& plan);

// Plan::host and issue_time where the plan leaves them open: as on the usual device.
void settle_host(Plan& plan, const Device& device);

// What errors about a plan as a whole call it where nothing better is known.
inline constexpr std::string_view kWholePlan = "plan";

// Where the user gave the first of `keys` ("plan.micro_batch": "--micro-batch 3") that they gave at all; else
// the file that the plan stands in, or kWholePlan.
std::string place_of(const PlanRequest& request, const std::vector<std::string>& keys);

// Calls `check`; its errors about the plan as a whole are put to the keys they are about.
template <class Check>
auto with_places(const PlanRequest& request, const Check& check) {
  try {
    return check();
  } catch (const Error& error) {
    if (error.where != request.where && error.where != kWholePlan) throw;
    throw Error(place_of(request, error.keys), error.message, error.hint, error.keys);
  }
}

// What the model itself forbids: degrees that do not divide heads, experts, sequence; stages without blocks.
void check_plan_for_model(const Plan& plan, const Model& model, const std::string& where);

// What a user gave of a plan although it changes nothing: told, not refused, so that one command line can be
// swept over degrees that include 1.

// "--sequence-parallel has no effect: tensor_parallel is 1", one sentence each. `plan` is the request,
// resolved.
std::vector<std::string> settings_without_effect(const PlanRequest& request, const Plan& plan,
                                                 const Model& model);

// What was assumed of the batch and its micro-batches, and why; empty where the user said it all, or a model
// read from a file goes through in one pass. `described`: the model is one by description.
std::string batch_note(const PlanRequest& request, const Plan& plan, bool described);

// That images are taken to lie channels last, where that matters and the user did not say; otherwise empty.
std::string convolution_note(const PlanRequest& request, const Plan& plan, const Model& model);

}  // namespace armilla
