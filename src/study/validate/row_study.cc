#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units_text.h"
#include "ir/derived/backward.h"
#include "read/read.h"
#include "study/run.h"
#include "study/validate.h"
#include "study/validate/row_machine.h"
#include "study/validate/row_model.h"
#include "study/validate/row_plan.h"
#include "study/validate/row_recipe.h"

namespace armilla {
namespace {

std::int64_t layers_of(const MeasuredPlan& row, const ModelSource& source) {
  if (source.layers > 0) return source.layers;
  // Described by the row's own numbers, which is quicker than to make it.
  if (!source.text.empty() && row.layers > 0) return row.layers;
  return read_model(source, 1).facts.layers;
}

// Of the first operand: "bf16xbf16->fp32", "f8e4m3fnxf8e4m3fn->bf16", "torch.bfloat16", "mxfp8". XLA's f32
// are products in tf32 by default, PyTorch's in fp32.
DType operand_type(std::string_view text, const std::string& where) {
  constexpr std::string_view kLibrary = "torch.";
  if (text.starts_with(kLibrary)) text.remove_prefix(kLibrary.size());
  constexpr std::array<std::pair<std::string_view, DType>, 19> kWords = {{{"bf", DType::bf16},
                                                                          {"tf32", DType::tf32},
                                                                          {"float16", DType::fp16},
                                                                          {"half", DType::fp16},
                                                                          {"float32", DType::fp32},
                                                                          {"float8", DType::fp8},
                                                                          {"int8", DType::int8},
                                                                          {"fp16", DType::fp16},
                                                                          {"f16", DType::fp16},
                                                                          {"fp8", DType::fp8},
                                                                          {"f8", DType::fp8},
                                                                          {"mxfp8", DType::fp8},
                                                                          {"fp4", DType::fp4},
                                                                          {"nvfp4", DType::fp4},
                                                                          {"f32", DType::tf32},
                                                                          {"fp32", DType::fp32},
                                                                          {"float64", DType::fp64},
                                                                          {"fp64", DType::fp64},
                                                                          {"f64", DType::fp64}}};
  for (const auto& [word, dtype] : kWords) {
    if (text.starts_with(word)) return dtype;
  }
  throw Error(where, fmt::format("unknown type '{:.60}'", text), "for example bf16xbf16->bf16");
}

std::int64_t bytes_of(DType dtype, std::int64_t elements) {
  constexpr std::int64_t kBitsPerByte = 8;
  return elements * bits_of(dtype) / kBitsPerByte;
}

// As tables of kernels are: "attention_bwd(causal)" for "Attention_backward (causal)".
std::string spelled_operation(const std::string& operation) {
  std::string text = lower_case(operation);
  std::erase(text, ' ');
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kWords = {
      {{"backward", "bwd"}, {"forward", "fwd"}}};
  for (const auto& [word, usual] : kWords) {
    if (const std::size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), usual);
  }
  return text;
}

Work product(const MeasuredKernel& k, DType dtype, std::int64_t count) {
  Work work;
  work.kind = WorkKind::matrix;
  work.dtype = dtype;
  work.scaling = Scaling::done;  // casts of narrow operands are other kernels
  // Groups are kernels of their own, a batch is one.
  work.gemms = {{k.m, k.n, k.k, count, spelled_operation(k.operation) == "grouped_gemm"}};
  work.flops = Flops(2 * work.gemms.front().macs());
  const DType out = k.dtype.ends_with("32") ? DType::fp32 : DType::bf16;
  // Sums wider than the operands are those of weight gradients.
  if (out == DType::fp32 && bits_of(dtype) < bits_of(out)) work.kernel = Kernel::weight_gradient;
  work.bytes = Bytes(count * (bytes_of(dtype, k.m * k.k + k.n * k.k) + bytes_of(out, k.m * k.n)));
  return work;
}

bool is_causal(const std::string& operation) {
  constexpr std::array<std::string_view, 4> kDenials = {"non-causal", "noncausal", "non_causal",
                                                        "causal=false"};
  const auto has = [&](std::string_view word) { return operation.find(word) != std::string::npos; };
  return has("causal") && std::ranges::none_of(kDenials, has);
}

// Whether it is one of the words of the name: "add" in "residual_add", not in "address"; "norm" in "rmsnorm".
bool has_word(const std::string& operation, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < operation.size() && std::isalpha(static_cast<unsigned char>(operation[at])) != 0;
  };
  for (std::size_t at = operation.find(word); at != std::string::npos; at = operation.find(word, at + 1)) {
    const bool begins = at == 0 || !is_letter(at - 1) || word.starts_with("norm");
    const bool ends = !is_letter(at + word.size()) || word == "emb";
    if (begins && ends) return true;
  }
  return false;
}

// The operator as the decoder's builder writes it; backward as derived of it.
Work attention(const MeasuredKernel& k, DType dtype) {
  constexpr std::int64_t kHalf = 2, kNarrow = 8;
  const std::string operation = spelled_operation(k.operation);
  const bool backward = operation.find("bwd") != std::string::npos;
  const bool causal = is_causal(operation);
  const std::int64_t value_dim =
      std::max(number_after(k.notes, "head_dim_v="), number_after(k.notes, "v_head_dim="));
  const std::int64_t values = value_dim > 0 ? value_dim : k.head_dim;
  const std::int64_t window = number_after(k.notes, "window=");
  // The last query sees all keys.
  const std::int64_t hidden = causal ? std::min(k.queries, k.keys) - 1 : 0;
  const std::int64_t masked = (2 * k.keys - hidden) / kHalf, count = k.batch * k.heads;
  // cuDNN's backward kernels of 8 bits compute all that is not masked otherwise: their times grow with the
  // square of the keys.
  const bool skips = window > 0 && (bits_of(dtype) > kNarrow || !backward);
  const std::int64_t seen = skips ? std::min(window, masked) : masked;
  Operator op;
  op.forward.kind = WorkKind::matrix;
  op.forward.dtype = dtype;
  op.forward.gemms = {{k.queries, seen, k.head_dim, count, false}, {k.queries, values, seen, count, false}};
  std::int64_t macs = 0;
  for (const Gemm& gemm : op.forward.gemms) macs += gemm.macs();
  op.forward.flops = Flops(2 * macs);
  const std::int64_t output = bytes_of(dtype, count * k.queries * values);
  const std::int64_t kv_heads = k.kv_heads > 0 ? k.kv_heads : k.heads;
  op.forward.bytes = Bytes(output + bytes_of(dtype, count * k.queries * k.head_dim) +
                           bytes_of(dtype, k.batch * kv_heads * k.keys * (k.head_dim + values)));
  op.repeated_forward = static_cast<double>(k.head_dim) / static_cast<double>(k.head_dim + values);
  op.core_attention = true;
  op.forward.kernel = Kernel::attention;
  return backward ? input_gradient(op, op.forward, Bytes(output)) : op.forward;
}

struct ElementWise {
  std::string_view word;  // in the operation's name
  double passes;          // over m x n elements, reading or writing
  std::int64_t flops;     // per element
  bool of_feed_forward;   // n is the model's hidden size, the kernel works on its share of the MLP's
  Kernel kernel;
};
constexpr std::array kElementWise = {
    // vLLM's read a row twice, for its sum of squares and to scale it.
    ElementWise{"input_layernorm", 3, 5, false, Kernel::norm},
    ElementWise{"post_attention_layernorm", 3, 5, false, Kernel::norm},
    ElementWise{"norm_bwd", 3, 10, false, Kernel::norm_backward},
    ElementWise{"norm", 2, 5, false, Kernel::norm},
    ElementWise{"add", 3, 1, false, Kernel::any},
    ElementWise{"emb", 2, 0, false, Kernel::any},
    ElementWise{"attn_rope", 2, 6, false, Kernel::rotary},
    ElementWise{"mlp_act", 3, 5, true, Kernel::activation},
};

// Keys are rotated as queries are: how many heads of them there are for one of queries, as the models
// were published.
double keys_per_query(const std::string& notes) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kGrouped = {{{"codellama-34b", 1.0 / 8},
                                                                            {"llama-2-70b", 1.0 / 8},
                                                                            {"llama-3-70b", 1.0 / 8},
                                                                            {"llama-3-8b", 1.0 / 4}}};
  const std::string lower = lower_case(notes);
  for (const auto& [model, share] : kGrouped) {
    if (lower.find(model) != std::string::npos) return share;
  }
  return 1;
}

// Of a layer of an engine that serves ("emb of ... tp=2").
bool is_of_engine(const MeasuredKernel& k) {
  return lower_case(k.notes).starts_with(lower_case(k.operation) + " of ") &&
         k.notes.find(" tp=") != std::string::npos;
}

Work element_wise(const ElementWise& kind, const MeasuredKernel& k, DType dtype) {
  std::int64_t columns = k.n;
  const std::int64_t parts = std::max<std::int64_t>(1, number_after(k.notes, "tp="));
  const std::int64_t feed_forward = number_after(k.notes, "ffn ");
  if (kind.of_feed_forward && feed_forward > 0) columns = feed_forward / parts;
  if (kind.kernel == Kernel::rotary)
    columns = static_cast<std::int64_t>(static_cast<double>(k.n / parts) * (1 + keys_per_query(k.notes)));
  const std::int64_t elements = k.m * columns;
  Work work;
  work.kind = kind.flops == 0 ? WorkKind::copy : WorkKind::vector;
  work.dtype = dtype;
  work.kernel = kind.kernel;
  // PyTorch's before its gathers were vectorised.
  if (kind.word == "emb" && is_of_engine(k)) work.kernel = Kernel::gather;
  work.flops = Flops(elements * kind.flops);
  work.bytes = Bytes(static_cast<std::int64_t>(kind.passes * static_cast<double>(bytes_of(dtype, elements))));
  return work;
}

// Whether any of the words is in what the row says of itself.
template <std::size_t N>
bool mentions_any(const MeasuredPlan& row, const std::array<std::string_view, N>& words) {
  const std::string device = lower_case(row.device);
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return names(row, word) || device.find(word) != std::string::npos;
  });
}

// XLA and CUDA graphs make a step one program for the device, so that the host is ahead always; torch.compile
// alone leaves a host that issues fused kernels. Megatron-Core's graphs are of layers where the row says so,
// and, where experts work on what they get, of all that lies in front of these, since no graph holds the wait
// for how much that is.
void set_host(const MeasuredPlan& row, Plan& plan) {
  const bool of_layers = names(row, "cuda graph per layer") || names(row, "cuda graph impl=transformer");
  if (of_layers ||
      (names(row, "cuda graph") && is_megatron(row) && plan.expert > 1 && plan.expert_capacity == 0)) {
    plan.cuda_graph_scope = {Part::attn, Part::mamba, Part::mlp_layer, Part::moe_router,
                             Part::moe_preprocess};
    return;
  }
  constexpr std::array<std::string_view, 4> kPrograms = {"maxtext", "paxml", "jax", "cuda graph"};
  constexpr std::array<std::string_view, 1> kFused = {"compile"};
  constexpr Time kCompiledIssue = Time(60'000'000);  // of what is an operator here (docs/models/kernels.md)
  if (!mentions_any(row, kPrograms) && !mentions_any(row, kFused)) return;
  plan.host = Host::compiled;
  if (mentions_any(row, kPrograms)) {
    plan.issue_time.reset();
  } else {
    plan.issue_time = kCompiledIssue;
  }
}

// CUDA_LAUNCH_BLOCKING=1, which BLOOM was trained with: the CPU issues a kernel when the one before is done,
// so that what it needs for one passes before every kernel.
void wait_for_kernels(Study& study, Time issue) {
  study.request.plan.host = Host::compiled;
  study.request.plan.issue_time.reset();
  study.machine.device.launch_overhead += issue;
  if (auto& kernels = study.machine.device.kernels) {
    kernels->launch += issue;
    kernels->memory.launch += issue;
  }
}

// Gradients are added up and all-reduced in the type of the parameters, in buckets of 512 Mi of them; ranks
// update whole tensors and broadcast them before the next step begins (InternEvo, hybrid_zero_optim.py;
// overlap_sync_param and reduce_bucket_size of its configurations).
void follow_internevo(Plan& plan) {
  constexpr std::int64_t kBucket = std::int64_t{512} << 20, kElement = 2;
  plan.gradient_dtype = DType::bf16;
  plan.overlap_parameters = false;
  if (plan.zero_stage == 1) plan.zero_partition = ZeroPartition::tensors;
  plan.bucket = plan.first_bucket = Bytes(kBucket * kElement);
}

// ZeRO-1 goes without DistributedDataParallel where gradients are added up in fp32: these are all-reduced
// behind the backward pass, and parameters are gathered behind the step (nanotron, make_ddp and
// sync_gradients_across_dp in trainer.py, _all_gather_params in optim/zero.py).
void follow_nanotron(Plan& plan) {
  if (plan.zero_stage == 1) plan.reduce_scatter = plan.overlap = plan.overlap_parameters = false;
}

// Parameters are gathered before a step is over (all_gather_dp_groups), and ZeRO-1 all-reduces gradients:
// those of fp16 for want of `contiguous_gradients`, which stage 1 does without, those of bf16 since it adds
// them up in fp32 (DeepSpeed, engine.py, stage_1_and_2.py and bf16_optimizer.py).
void follow_deepspeed(Plan& plan) {
  plan.overlap_parameters = false;
  if (plan.zero_stage == 1) plan.reduce_scatter = false;
}

// Of trainers; a bare loop, as that of tools/measure_device.py, has none, nor has a step that XLA compiled.
Time step_overhead_of(const MeasuredPlan& row) {
  constexpr Time kMegatron = milliseconds(15), kOther = milliseconds(45);
  if (names(row, "measure_device") || names(row, "maxtext") || names(row, "paxml")) return Time(0);
  if (is_megatron(row) || names(row, "nemo") || names(row, "2205.05198") || cites(row, {"korthikanti"}))
    return kMegatron;
  return is_plain_pytorch(row) || names(row, "internevo") ? kOther : Time(0);
}

// Megatron-LM's table of the scaling of early models (images/tables.tex) is of September 2020, two months
// before there was an A100 of 80 GB.
std::string device_of(const MeasuredPlan& row) {
  const bool is_first =
      names(row, "megatron-lm images/tables.tex") && row.device.find("A100") != std::string::npos;
  return is_first ? row.device + " 40GB" : row.device;
}

// What every prediction of a measurement is made with.
Study measured_study() {
  Study study;
  study.compute.name = "kernels";
  study.collectives.measured = true;
  return study;
}

}  // namespace

Study study_of(const MeasuredPlan& row, const std::string& where) {
  Study study = measured_study();
  const std::int64_t block = row.tensor * row.context;
  study.machine =
      machine_of({device_of(row), row.devices, row.devices_per_node, row.inter_bandwidth, row.notes, block,
                  std::max<std::int64_t>(block, row.devices / std::max<std::int64_t>(1, row.pipeline))},
                 where);
  study.model = model_of(row, where);
  study.request = request_of(row, layers_of(row, study.model), where);
  if (is_early_megatron(row)) {
    study.request.plan.overlap = false;
    // Narayanan et al. 2021, section 4.1; DeepSpeed's pipeline cuts what it sends, too. Both wait
    // for messages.
    study.request.plan.scatter_gather = true;
    study.request.plan.overlap_pipeline = false;
  }
  // torch.use_deterministic_algorithms demands CUBLAS_WORKSPACE_CONFIG, which its tests set to ":4096:8".
  constexpr std::int64_t kDeterministicWorkspace = 32 << 20;
  if (names(row, "deterministic-mode=true")) {
    Bytes& workspace = study.machine.device.product_workspace;
    workspace = std::max(workspace, Bytes(kDeterministicWorkspace));
  }
  if (names(row, "no overlap of dp")) {
    study.request.plan.overlap = study.request.plan.overlap_parameters = false;
    study.request.plan.overlap_pipeline = false;
  }
  // Weight gradients that go through autograd are added up in a pass of their own.
  if (names(row, "deepspeed") || names(row, "internevo") || is_plain_pytorch(row) ||
      names(row, "no-gradient-accumulation-fusion=true"))
    study.request.plan.accumulation_fusion = false;
  if (names(row, "internevo")) follow_internevo(study.request.plan);
  if (names(row, "nanotron")) follow_nanotron(study.request.plan);
  if (names(row, "deepspeed")) follow_deepspeed(study.request.plan);
  // Its recipes of dense models overlap tensor parallelism (tp_comm_overlap with user buffers). Not that of
  // Nemotron-H, for fp8 that scales by current maxima (Megatron-Bridge, recipes/nemotronh).
  if (names(row, "nemo") && row.tensor > 1 && row.expert <= 1 && study.request.plan.sequence_parallel &&
      !begins_with_name(row.model, "nemotron-h"))
    study.request.plan.overlap_tensor = true;
  // Korthikanti et al.'s steps (arXiv 2205.05198, section 4.2.2; Megatron-LM's default of then).
  if (row.tensor > 1 && (names(row, "2205.05198") || cites(row, {"korthikanti"})))
    study.request.plan.overlap_tensor_gradients = true;
  // Megatron-LM's own option, and its tests of it.
  if ((names(row, "tp-comm-overlap") || names(row, "_tp_overlap")) && row.tensor > 1 &&
      study.request.plan.sequence_parallel)
    study.request.plan.overlap_tensor = true;
  // So do XLA's flags in MaxText's own scripts (async collective fusion, overlap_compute_collective_tc). What
  // lies between products is shared out among tensor ranks (base.yml, logical_axis_rules: activation_embed).
  if (names(row, "maxtext") && row.tensor > 1)
    study.request.plan.overlap_tensor = study.request.plan.sequence_parallel = true;
  // Fewer layers of Python between its kernels than in plain PyTorch: fitted to vTrain's small models.
  const Time megatron_issue = Time(study.machine.device.issue_time.value * 13 / 16);
  if (is_megatron(row)) study.request.plan.issue_time = megatron_issue;
  study.request.plan.step_overhead = step_overhead_of(row);
  set_host(row, study.request.plan);
  follow_recipe(row, study.request);
  if (names(row, "bigscience") || cites(row, {"le scao", "2211.05100"}))
    wait_for_kernels(study, megatron_issue);
  return prepare_study(std::move(study));
}

// By its bandwidth or its kind.
bool names_network(const std::string& system) {
  constexpr std::array<std::string_view, 9> kWords = {"gb/s", "gbps", "gbit",     "infiniband", "hdr",
                                                      "ndr",  "efa",  "ethernet", "roce"};
  const std::string lower = lower_case(system);
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

// As NCCL's API and nccl-tests write it, too: "AllReduce", "alltoall", "sendrecv".
std::string collective_name(const std::string& text) {
  std::vector<std::string_view> names = {"send-recv"};
  for (const CollectiveKind kind : kCollectiveKinds) names.push_back(name_of(kind));
  const auto letters = [](std::string_view name) {
    std::string kept = lower_case(std::string(name));
    std::erase_if(kept, [](char c) { return c == '_' || c == '-' || c == ' '; });
    return kept;
  };
  for (const std::string_view name : names) {
    if (letters(name) == letters(text)) return std::string(name);
  }
  return text;
}

Study study_of(const MeasuredCollective& row, const std::string& where) {
  Study study = measured_study();
  if (row.nodes == 0) {
    const Machine machine = machine_of({row.system, row.devices, 0, 0}, where);
    if (row.devices > 1 && machine.dimensions.size() > 1)
      throw Error(where, fmt::format("in how many nodes {} are is not known", counted(row.devices, "device")),
                  "give nodes");
  }
  const std::int64_t nodes = std::max<std::int64_t>(1, row.nodes);
  if (row.devices < 1) throw Error(where, "the number of GPUs is not known", "give gpus");
  if (row.devices == 1) throw Error(where, "one GPU alone exchanges nothing", "give the gpus that take part");
  if (row.devices % nodes != 0)
    throw Error(where,
                fmt::format("{} GPUs cannot be shared equally by {}", row.devices, counted(nodes, "node")),
                "every node has as many");
  const auto [server, most] = server_of(row.system, where);
  if (most > 0 && row.devices / nodes > most)
    throw Error(
        where,
        fmt::format("{} GPUs are more than {} of {} can have", row.devices, counted(nodes, "node"), server),
        fmt::format("a node of {} has {} GPUs: correct gpus or nodes", server, most));
  // Adapters between nodes that nobody names are of the machine that was fitted to such rows, where
  // there is one.
  const bool unnamed = nodes > 1 && !names_network(row.system);
  study.machine = machine_of(
      {row.system + (unnamed ? " on unnamed adapters" : ""), row.devices, row.devices / nodes, 0}, where);
  study.request.ranks = row.devices;
  // A message between two devices sets up no rings: it starts as the quickest protocol, moves bytes
  // as the widest.
  if (collective_name(row.kind) == "send-recv") {
    for (Dimension& dimension : study.machine.dimensions) {
      if (dimension.protocols.empty()) continue;
      CollectiveProtocol& protocol = dimension.protocols.front();
      protocol.share = 1;
      protocol.step = protocol.level = Time(0);
      dimension.protocols.resize(1);
    }
  }
  return study;
}

double sender_seconds(const Study& study, std::int64_t bytes, double delivered) {
  constexpr std::size_t kCalls =
      11;  // vidur/profiling/collectives/collectives_wrapper.py, whose rank 0 sends
  // What a sender may be ahead of the receiver on NCCL's two channels to a peer: 8 chunks of 128 KiB on
  // either side (NCCL_P2P_NET_CHUNKSIZE), and what Linux's sockets hold, 4 MiB to be sent and, of 6 MiB for
  // what has come, the half that is payload (tcp_wmem, tcp_rmem, tcp_adv_win_scale in ip-sysctl).
  constexpr double kMebibyte = 1 << 20, kChannels = 2, kAhead = kChannels * (1 + 1 + 4 + 3) * kMebibyte;
  const Dimension& network = study.machine.dimensions.back();
  const double line = network.bandwidth.value, attained = line * network.efficiency;
  const auto size = static_cast<double>(bytes);
  const double start = std::max(0.0, delivered - size / attained);
  std::array<double, kCalls> calls{};
  double end = 0, sent = 0;
  for (double& call : calls) {
    sent += size;
    const double next = std::max(end + start + size / line, start + (sent - kAhead) / attained);
    call = next - std::exchange(end, next);
  }
  std::ranges::nth_element(calls, calls.begin() + kCalls / 2);
  return calls[kCalls / 2];
}

Work within_layer(Work work, const MeasuredKernel& kernel, const Device& device) {
  constexpr std::int64_t kThreadsOfRow = 1024;  // vLLM's layernorm_kernels.cu
  const bool norm = work.kernel == Kernel::norm;
  // What is bound by instructions gains nothing: activations and rotations take as long from either.
  if (!is_of_engine(kernel) || !device.kernels || device.kernels->memory.cache.value == 0 ||
      !(norm || work.kernel == Kernel::any) || work.kind == WorkKind::matrix)
    return work;
  const MemoryRates& rates = device.kernels->memory;
  auto bytes = static_cast<double>(work.bytes.value);
  if (norm && device.kernels->threads >= kThreadsOfRow) {
    const std::int64_t at_once = device.kernels->processors * (device.kernels->threads / kThreadsOfRow);
    const std::int64_t waves = (kernel.m + at_once - 1) / at_once;
    bytes *= static_cast<double>(waves * at_once) / static_cast<double>(kernel.m);
  }
  const double share = norm ? rates.norm : rates.efficiency;
  const double of_memory = rates.cache_bandwidth.value / device.memory_bandwidth.value;
  const double saved = share / std::max(share, rates.efficiency) - share / of_memory;
  bytes -= std::min(bytes, static_cast<double>(rates.cache.value)) * saved;
  work.bytes = Bytes(std::llround(bytes));
  return work;
}

// Of more operations or bytes than can be counted.
void check_size(const MeasuredKernel& k, const std::string& where) {
  constexpr double kMost = 1e17;
  const auto real = [](std::int64_t size) { return static_cast<double>(std::max<std::int64_t>(1, size)); };
  const double product = real(k.batch) * real(k.m) * real(k.n) * real(k.k);
  const double scores = real(k.batch) * real(k.heads) * real(k.queries) * real(k.keys) * real(k.head_dim);
  if (product > kMost || scores > kMost)
    throw Error(where, fmt::format("a kernel of {:.3g} multiplications", std::max(product, scores)),
                fmt::format("expected at most {:.0e}", kMost));
}

Work work_of(const MeasuredKernel& kernel, const std::string& where) {
  const std::string operation = spelled_operation(kernel.operation);
  check_size(kernel, where);
  const DType dtype = operand_type(lower_case(kernel.dtype), where);
  const auto needs = [&](std::initializer_list<std::int64_t> sizes) {
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
      throw Error(where, fmt::format("sizes of '{:.60}' are missing", operation));
  };
  if (operation == "gemm" || operation == "grouped_gemm") {
    needs({kernel.m, kernel.n, kernel.k});
    return product(kernel, dtype, kernel.batch);
  }
  if (operation.starts_with("attention_")) {
    needs({kernel.heads, kernel.head_dim, kernel.queries, kernel.keys});
    if (kernel.kv_heads > 0 && kernel.heads % kernel.kv_heads != 0)
      throw Error(
          where,
          fmt::format("{} over {} of keys and values", typed_count(kernel.heads, "head"), kernel.kv_heads),
          "as many share each of these");
    return attention(kernel, dtype);
  }
  for (const ElementWise& kind : kElementWise) {
    if (!has_word(operation, kind.word)) continue;
    needs({kernel.m, kernel.n});
    return element_wise(kind, kernel, dtype);
  }
  throw Error(
      where, fmt::format("no model has a kernel '{:.60}'", operation),
      "known are gemm, grouped_gemm, attention_fwd, attention_bwd, norms, add, emb, attn_rope, mlp_act");
}

std::optional<Work> timed_before(const MeasuredKernel& k) {
  if (k.notes.find("sgl_kernel_fp8") == std::string::npos) return std::nullopt;
  constexpr std::int64_t kReadAndWritten =
      2 + 1;  // once: what a row's largest element was found in is cached
  Work cast;
  cast.kind = WorkKind::copy;
  cast.dtype = DType::bf16;
  cast.bytes = Bytes(k.batch * k.m * k.k * kReadAndWritten);
  return cast;
}

}  // namespace armilla
