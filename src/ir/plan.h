// Plan: how the training job is spread over the machine.
//
// ranks = tensor x context x data x pipeline. Expert parallelism divides the same ranks of a pipeline stage
// another way: tensor x context x data = expert_tensor x expert x (expert data), as Megatron-Core does
// (parallel_state.py). `order` places the axes on the machine, innermost first.
// Sources of the terms: Shoeybi et al. 2019 (tensor), Huang et al. 2019 (GPipe), Narayanan et al. 2019, 2021
// (1F1B, interleaved, 2BW), Korthikanti et al. 2022 (sequence parallel, selective recompute), Rajbhandari et
// al. 2020 (ZeRO), Qi et al. 2023, 2024 (zero bubble, V), DeepSeek-AI 2024 (DualPipe), Liu et al. 2023 (ring
// attention), Jacobs et al. 2023 (Ulysses), Zhao et al. 2023 (FSDP).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/parts.h"
#include "ir/tensor.h"
#include "ir/work.h"

namespace armilla {

inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 24;  // of a job

enum class Optimizer : std::uint8_t { sgd, momentum, adam };
std::string_view name_of(Optimizer optimizer);
int state_words(Optimizer optimizer);  // optimizer values kept per parameter, 4 bytes each

enum class Recompute : std::uint8_t {
  none,
  selective,  // Plan::recompute_modules: the attention core alone (Korthikanti et al. 2022, section 5), or
              // what Megatron-Core can recompute beside (lower/shard/shard_recompute.h)
  operators,  // all but attention and every second product (torchtitan; lower/shard/shard_recompute.h)
  full,       // every block keeps its input alone
  block       // full for the first Plan::recompute_blocks blocks of each model chunk, none for the others
};
std::string_view name_of(Recompute recompute);

// Whose tensor parallelism with sequences divided (docs/models/hybrid_parallel.md).
enum class TensorMethod : std::uint8_t {
  automatic,  // dtensor under Framework::pytorch, else megatron
  megatron,   // [sequence, batch, hidden]; inputs are gathered again for weight gradients
  dtensor,    // torch.distributed.tensor.parallel: [batch, sequence, hidden]; gathered inputs are kept
  modules     // likewise, each linear layer for itself (ColwiseParallel without a PrepareModuleInput before)
};
std::string_view name_of(TensorMethod method);

// What ZeRO-1 gives each replica to update (docs/models/hybrid_parallel.md).
enum class ZeroPartition : std::uint8_t {
  elements,  // an equal part of every bucket
  tensors    // whole tensors (PyTorch's ZeroRedundancyOptimizer)
};
std::string_view name_of(ZeroPartition partition);

enum class ContextMethod : std::uint8_t {
  ring,       // keys and values go around while attention works
  all_to_all  // heads for tokens and back (DeepSpeed-Ulysses)
};
std::string_view name_of(ContextMethod method);

// How many tokens each expert-parallel position gets, relative to the mean.
enum class ExpertLoad : std::uint8_t {
  uniform,
  zipf,   // position i gets a share in proportion to 1 / (i + 1)^expert_skew
  random  // shares drawn from a normal distribution of deviation expert_skew, by Plan::seed
};
std::string_view name_of(ExpertLoad load);

// How tokens get to their experts and back.
enum class ExpertDispatch : std::uint8_t {
  automatic,     // deduplicated where the model limits the groups that a token's experts are in
  per_expert,    // a copy for every expert (Megatron-LM's all-to-all dispatcher)
  deduplicated,  // one for each rank with experts of the token, across nodes one for each node (DeepEP)
  one_hot,       // per expert, put in place by products with masks of zeros and ones (Shazeer et al. 2017,
                 // Mesh TensorFlow; MaxText without megablox); needs Plan::expert_capacity
  sorted         // per expert, repeated, gathered by their order and added up in passes of their own, as XLA
                 // does what no kernel fuses (MaxText's sparse_matmul)
};
std::string_view name_of(ExpertDispatch dispatch);
// Whether rows are put in place on their rank, which takes passes or products also where all
// experts are there.
constexpr bool dispatches_on_rank(ExpertDispatch dispatch) {
  return dispatch == ExpertDispatch::one_hot || dispatch == ExpertDispatch::sorted;
}

// How the framework on the CPU issues kernels: none starts before it has been issued.
enum class Host : std::uint8_t {
  automatic,  // eager where the device has an issue time (Device::issue_time), else compiled
  compiled,   // fused kernels, a step one program for the device (XLA, CUDA graphs): the CPU is ahead always,
              // unless Plan::issue_time is given, as for torch.compile without CUDA graphs
  eager       // operator by operator, as PyTorch does: Plan::issue_time each
};
std::string_view name_of(Host host);
// PyTorch's eager mode: fitted to vTrain's measurements of small models on A100 (docs/models/kernels.md).
inline constexpr Time kEagerIssue = Time(80'000'000);

// Whose kernels and buffers a step runs with (docs/models/memory.md).
enum class Framework : std::uint8_t {
  megatron,  // Megatron-Core: fused kernels, gathered inputs are gathered again in the backward pass
  pytorch    // autograd keeps what every operator reads; DistributedDataParallel or FSDP2 around it
};
std::string_view name_of(Framework framework);

enum class Axis : std::uint8_t { tensor, context, data, pipeline };
std::string_view name_of(Axis axis);

// How cross entropy is computed; what Framework::megatron calls so is in docs/models/memory.md.
enum class LossKernel : std::uint8_t {
  automatic,  // fused where the host is compiled, else wide
  fused,      // by a compiler
  wide,       // operator by operator in fp32, of a copy of the logits
  in_place,   // one operation on such a copy, whose gradient takes the place of the probabilities
  narrow      // operator by operator in the logits' own type
};
std::string_view name_of(LossKernel loss);

struct Plan {
  std::int64_t ranks = 1;
  std::int64_t batch = 32;         // samples per data-parallel replica and iteration, over all micro-batches
  std::int64_t micro_batches = 1;  // gradient accumulation: gradients are exchanged after the last one

  // Types by use; `unknown` is decided by resolve_plan (lower/plan.h).
  DType precision = DType::fp32;           // of matrix arithmetic; activations too, bf16 where this is fp8
  DType weight_dtype = DType::unknown;     // of the weights that are computed with
  DType gradient_dtype = DType::unknown;   // of accumulated and exchanged gradients
  DType parameter_dtype = DType::unknown;  // of gathered parameters (ZeRO); as weight_dtype
  Scaling scaling = Scaling::delayed;      // of operands of 8 bits
  // Where `precision` is narrower than 16 bits, what computes in bf16 nevertheless, as embedding and head
  // always do: so many first and last layers (Megatron-Core's num_layers_at_start_in_bf16 and _at_end_),
  // prediction layers not among them, and parts of all layers.
  std::int64_t wide_first_layers = 0, wide_last_layers = 0;
  Parts wide_modules;
  // Likewise the core of attention is not in bf16 but in fp8 (Transformer Engine's fp8_dpa,
  // fp8_dot_product_attention of Megatron-Core).
  bool fp8_attention = false;
  // Activations of routed experts, and the casts of what they make, are part of the products before them,
  // both ways, where Transformer Engine's grouped MLP can be one kernel (docs/models/kernels.md).
  bool fused_experts = false;

  std::int64_t tensor = 1, pipeline = 1, context = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;   // 0: as `tensor`
  std::int64_t virtual_stages = 1;  // model chunks per pipeline rank
  std::string schedule = "1f1b";    // of the pipeline, by name (lower/pipeline_schedule.h)
  // Blocks in each stage, in model order: pipeline x virtual_stages numbers. Empty: as even as possible.
  std::vector<std::int64_t> stage_blocks;
  bool sequence_parallel = false;
  bool overlap_tensor = false;  // tensor-parallel communication beside the matrix products it feeds
  // Of it, in the backward pass alone and whole, what is exchanged beside the products of gradients: an input
  // gathered again beside the gradient of the input, the reduction of this one beside that of the weight
  // (Korthikanti et al. 2022, section 4.2.2; Megatron-LM's async_tensor_model_parallel_allreduce).
  bool overlap_tensor_gradients = false;
  bool overlap_pipeline = true;  // stages send and receive while they compute
  // Tensor ranks send a part each of what crosses stages and gather the whole there (Narayanan et al. 2021,
  // section 4.1); otherwise each sends all of it. Sequence parallelism leaves parts anyway.
  bool scatter_gather = false;
  ContextMethod context_method = ContextMethod::ring;
  ExpertLoad expert_load = ExpertLoad::uniform;
  double expert_skew = 0;  // resolve_plan puts a default here where loads are uneven and none is given
  ExpertDispatch expert_dispatch = ExpertDispatch::automatic;
  // Every expert works on so many rows relative to the mean, padded or dropped (Lepikhin et al. 2020, section
  // 2.2); 0: on the rows that it gets.
  double expert_capacity = 0;
  DType dispatch_dtype =
      DType::unknown;  // of tokens on their way to experts; unknown: lower/expert_exchange.h
  std::uint64_t seed = 1;

  // Data parallelism. Gradients are packed into buckets in the order the backward pass produces them; a
  // bucket is exchanged once it is full (PyTorch DistributedDataParallel: bucket_cap_mb = 25 after a first
  // bucket of 1 MiB).
  Bytes first_bucket = Bytes(1 << 20);
  Bytes bucket = Bytes(25 << 20);
  bool overlap = true;             // false: gradients are exchanged only after the whole backward pass
  bool overlap_parameters = true;  // ZeRO-1/2: parameters are gathered while the next forward pass begins
  int zero_stage = 0;              // 0 to 3; 3 is FSDP's full sharding
  ZeroPartition zero_partition = ZeroPartition::elements;
  // ZeRO-1 and 2: otherwise gradients are all-reduced, of which every replica uses its part (DeepSpeed's
  // reduce_scatter). For whole tensors they always are.
  bool reduce_scatter = true;
  bool prefetch = true;           // ZeRO-3: the next block is gathered while this one computes
  bool reshard = true;            // ZeRO-3: gathered weights are freed after the forward pass
  std::int64_t hybrid_shard = 0;  // ZeRO within so many of the ranks of data x context; 0: over all of them
  // ZeRO-2 and 3: gradients are reduced after the last micro-batch alone and whole until then
  // (FSDP's no_sync).
  bool no_sync = false;
  Optimizer optimizer = Optimizer::momentum;
  DType state_dtype = DType::fp32;  // of the optimizer's states; narrower: of weights without a master copy
  bool offload_optimizer = false, offload_activations = false;  // to the CPU's memory
  bool accumulation_fusion =
      true;  // weight gradients are added to the accumulated ones by the matrix product
  // Of images (NHWC), as products of 16 bits and tf32 want them; otherwise cuDNN transposes what convolutions
  // read and write.
  bool channels_last = true;
  TensorMethod tensor_method = TensorMethod::automatic;

  Framework framework = Framework::megatron;
  Host host = Host::automatic;  // decided by prepare_study (study/run.h)
  std::optional<Time>
      issue_time;  // of an operator; none: the device's where the host is eager, 0 where compiled
  // What the host does between two steps while the device has nothing to do: it reads and logs losses, clips,
  // fetches the next batch.
  Time step_overhead{};
  // Parts of layers that a host which issues operators launches as one, each run of them in a pass
  // (Megatron-Core's cuda_graph_scope).
  Parts cuda_graph_scope;
  // Before they issue a collective the hosts of its group make sure that all issue the same one
  // (TORCH_DISTRIBUTED_DEBUG=DETAIL; docs/models/kernels.md#the-host).
  bool check_collectives = false;

  // Which of fusable_parts() are one kernel each; others are run operator by operator
  // (docs/models/kernels.md). Nothing: fused_elementwise_of() below.
  std::optional<Parts> fused_elementwise;
  LossKernel loss = LossKernel::automatic;
  // Logits that tensor parallelism divides stay divided for the loss; otherwise every rank gathers all of
  // them (PyTorch's loss_parallel; ColwiseParallel(output_layouts=Replicate()) without it).
  bool loss_parallel = true;
  // Tables of embeddings are divided by the vocabulary; otherwise every tensor rank has all of them.
  bool embedding_parallel = true;
  // The output matrix likewise; otherwise every tensor rank computes all logits.
  bool head_parallel = true;

  Recompute recompute = Recompute::none;
  std::int64_t recompute_blocks = 0;
  Parts recompute_modules = {Part::core_attn};
  // Under Recompute::full and block, blocks are done again up to the last result that the backward pass
  // reads; none: Framework::pytorch does so (torch.utils.checkpoint since release 2.1).
  std::optional<bool> recompute_early_stop;

  std::vector<Axis> order = {Axis::tensor, Axis::context, Axis::data, Axis::pipeline};

  bool operator==(const Plan&) const = default;
  std::int64_t data() const { return ranks / (tensor * context * pipeline); }
  std::int64_t experts_tensor() const { return expert_tensor == 0 ? tensor : expert_tensor; }
  std::int64_t expert_data() const { return tensor * context * data() / (expert * experts_tensor()); }
  std::int64_t micro_batch() const { return batch / micro_batches; }
  std::int64_t global_batch() const { return batch * data(); }
  // Only data parallelism without sharding: PyTorch's DistributedDataParallel.
  bool is_plain_data_parallel() const {
    return tensor * context * pipeline * expert == 1 && zero_stage == 0 && recompute == Recompute::none &&
           !offload_optimizer && !offload_activations;
  }
};

LossKernel loss_kernel_of(const Plan& plan);  // never automatic

// Whether replicas update whole tensors.
bool shares_out_tensors(const Plan& plan);

TensorMethod tensor_method_of(const Plan& plan);  // never automatic

// As the plan says; else none under Framework::pytorch with an eager host, all otherwise. The host
// is decided.
Parts fused_elementwise_of(const Plan& plan);

// What the CPU needs for an operator under a plan whose host is decided; 0: it is ahead always.
Time issue_time_of(const Plan& plan);

// Ranks of tensor and context parallelism that are neighbours: those axes that come first in the order.
std::int64_t innermost_block(const Plan& plan);

// Whether blocks are done again, and only as far as the backward pass reads.
bool stops_early(const Plan& plan);

// What the user said of a plan; a degree left out is derived from the others (lower/plan.h).
struct PlanRequest {
  Plan plan;  // everything without a choice of its own below
  std::optional<std::int64_t> ranks, tensor, pipeline, context, data;
  std::optional<std::int64_t> batch, global_batch, micro_batch, micro_batches;
  std::optional<DType> precision;
  std::optional<Optimizer> optimizer;
  bool balance_stages = false;  // Plan::stage_blocks are chosen by cost (study/run/balance_stages.h)
  std::string where;            // "plan"
  std::string ranks_where;      // of `ranks`, where it was given
  std::map<std::string, std::string, std::less<>> places;  // of every key that was given
};

// The keys that the number of micro-batches comes from, for errors about it, and `others` after them.
std::vector<std::string> micro_batch_keys(std::initializer_list<std::string_view> others = {});

// Throws Error naming the numbers that clash.
void validate_plan(const Plan& plan, const std::string& where);

}  // namespace armilla
