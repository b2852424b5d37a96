#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "write/study.h"

namespace armilla {
namespace {

std::string quoted_scalar(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

// Lines of a mapping, one inside another.
class YamlText {
 public:
  explicit YamlText(std::string comment) {
    for (char& c : comment) c = c == '\n' || c == '\r' ? ' ' : c;
    if (!comment.empty()) text_ = fmt::format("# {}\n", comment);
  }

  template <class Value>
  void put(std::string_view key, const Value& value) {
    text_ += fmt::format("{:{}}{}: {}\n", "", depth_, key, value);
  }
  void name(std::string_view key, std::string_view value) { put(key, quoted_scalar(value)); }
  // What differs from the default.
  template <class Value>
  void unless(std::string_view key, const Value& value, const Value& usual) {
    if (value != usual) put(key, value);
  }
  // In base units and to the last digit: what is read back is equal, not about the same.
  void time(std::string_view key, Time value) { put(key, fmt::format("{}ps", value.value)); }
  void bytes(std::string_view key, Bytes value) { put(key, fmt::format("{}B", value.value)); }
  void bandwidth(std::string_view key, Bandwidth value) { put(key, fmt::format("{}B/s", value.value)); }
  void rate(std::string_view key, FlopRate value) { put(key, fmt::format("{}FLOPS", value.value)); }
  void begin(std::string_view key) {
    text_ += fmt::format("{:{}}{}:\n", "", depth_, key);
    depth_ += kIndent;
  }
  void end() { depth_ -= kIndent; }
  void item(std::string_view value) { text_ += fmt::format("{:{}}- {}\n", "", depth_, value); }
  // Keys up to end() are of an item of a list.
  void begin_item(std::string_view key, std::string_view value) {
    item(fmt::format("{}: {}", key, quoted_scalar(value)));
    depth_ += kIndent;
  }
  void block(std::string_view key, std::string_view lines) {
    text_ += fmt::format("{:{}}{}: |\n", "", depth_, key);
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      text_ += fmt::format("{:{}}{}\n", "", depth_ + kIndent, lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }
  std::string take() { return std::move(text_); }

 private:
  static constexpr std::size_t kIndent = 2;
  std::string text_;
  std::size_t depth_ = 0;
};

std::string list_of(const Parts& parts) {
  if (parts.empty()) return "none";
  return fmt::format("[{}]", fmt::join(names_of(parts), ", "));
}

void put_model(const ModelSource& model, YamlText& yaml) {
  yaml.begin("model");
  yaml.name("name", model.name);
  if (!model.text.empty()) yaml.block("description", model.text);
  if (!model.dimensions.empty()) {
    yaml.begin("dimensions");
    for (const auto& [symbol, size] : model.dimensions) yaml.put(symbol, size);
    yaml.end();
  }
  yaml.unless<std::int64_t>("sequence", model.sequence, 0);
  yaml.unless<std::int64_t>("layers", model.layers, 0);
  yaml.unless<std::int64_t>("lora_rank", model.lora_rank, 0);
  yaml.end();
}

void put_range(const FittedRange& range, YamlText& yaml) {
  if (std::isfinite(range.most)) yaml.put("range", fmt::format("[{}, {}]", range.least, range.most));
}

void put_attention(std::string_view key, const AttentionRates& rates, YamlText& yaml) {
  yaml.begin(key);
  yaml.put("forward", rates.forward);
  yaml.put("backward", rates.backward);
  yaml.put("ramp", rates.ramp);
  put_range(rates.range, yaml);
  yaml.end();
}

void put_kernels(const KernelRates& rates, YamlText& yaml) {
  yaml.begin("kernels");
  yaml.put("processors", rates.processors);
  yaml.unless<std::int64_t>("threads", rates.threads, 0);
  yaml.time("launch", rates.launch);
  if (!rates.matrix.empty()) yaml.begin("matrix");
  for (const auto& [dtype, of] : rates.matrix) {
    yaml.begin(name_of(dtype));
    yaml.put("efficiency", of.efficiency);
    if (of.in_training) yaml.put("in_training", *of.in_training);
    yaml.put("ramp", of.ramp);
    yaml.put("tile_128", of.tile_128);
    yaml.put("tile_64", of.tile_64);
    put_range(of.range, yaml);
    yaml.end();
  }
  if (!rates.matrix.empty()) yaml.end();
  if (!rates.attention.empty()) yaml.begin("attention");
  for (const auto& [dtype, of] : rates.attention) put_attention(name_of(dtype), of, yaml);
  if (!rates.attention.empty()) yaml.end();
  if (rates.flash_2) put_attention("flash_2", *rates.flash_2, yaml);
  if (rates.flash_triton) put_attention("flash_triton", *rates.flash_triton, yaml);
  if (rates.scan) put_attention("scan", *rates.scan, yaml);
  const MemoryRates& memory = rates.memory;
  yaml.begin("memory");
  yaml.time("launch", memory.launch);
  for (const auto& [key, share] :
       {std::pair("efficiency", memory.efficiency), std::pair("norm", memory.norm),
        std::pair("norm_backward", memory.norm_backward), std::pair("activation", memory.activation),
        std::pair("rotary", memory.rotary), std::pair("permute", memory.permute),
        std::pair("gather", memory.gather), std::pair("loss", memory.loss), std::pair("cast", memory.cast)})
    yaml.put(key, share);
  put_range(memory.range, yaml);
  if (memory.cache.value > 0) {
    yaml.bytes("cache", memory.cache);
    yaml.bandwidth("cache_bandwidth", memory.cache_bandwidth);
  }
  yaml.end();
  yaml.put("sustained", rates.sustained);
  yaml.end();
}

void put_device(const Device& device, YamlText& yaml) {
  yaml.begin("device");
  yaml.name("name", device.name);
  yaml.bytes("memory", device.memory);
  yaml.bytes("reserved", device.reserved);
  yaml.bytes("communicator_buffers", device.communicator_buffers);
  yaml.bytes("product_workspace", device.product_workspace);
  yaml.bandwidth("memory_bandwidth", device.memory_bandwidth);
  if (device.host_bandwidth.value > 0) yaml.bandwidth("host_bandwidth", device.host_bandwidth);
  if (device.busy_power) yaml.put("busy_power", fmt::format("{}W", device.busy_power->value));
  if (device.idle_power) yaml.put("idle_power", fmt::format("{}W", device.idle_power->value));
  if (device.price) yaml.put("price", fmt::format("{}USD/h", device.price->value));
  yaml.rate("vector_rate", device.vector_rate);
  if (!device.matrix_rate.empty()) yaml.begin("matrix_rate");
  for (const auto& [dtype, rate] : device.matrix_rate) yaml.rate(name_of(dtype), rate);
  if (!device.matrix_rate.empty()) yaml.end();
  yaml.put("matrix_efficiency", device.matrix_efficiency);
  yaml.put("vector_efficiency", device.vector_efficiency);
  yaml.put("memory_efficiency", device.memory_efficiency);
  yaml.time("launch_overhead", device.launch_overhead);
  yaml.time("issue_time", device.issue_time);
  if (device.kernels) put_kernels(*device.kernels, yaml);
  if (const auto& arrays = device.arrays) {
    yaml.begin("arrays");
    yaml.put("side", arrays->side);
    yaml.put("memories", arrays->memories);
    if (arrays->attention_forward > 0 || arrays->attention_backward > 0 || arrays->attention_block > 0) {
      yaml.begin("attention");
      yaml.unless("forward", arrays->attention_forward, 0.0);
      yaml.unless("backward", arrays->attention_backward, 0.0);
      yaml.unless("block", arrays->attention_block, std::int64_t{0});
      yaml.end();
    }
    yaml.end();
  }
  yaml.end();
}

std::string protocol_text(const CollectiveProtocol& protocol, bool is_of_library) {
  std::string text =
      fmt::format("{{name: {}, launch: {}ps, step: {}ps, share: {}", quoted_scalar(protocol.name),
                  protocol.launch.value, protocol.step.value, protocol.share);
  if (is_of_library)
    text += fmt::format(", level: {}ps, chain: {}ps", protocol.level.value, protocol.chain.value);
  return text + '}';
}

void put_dimension(const Dimension& dimension, bool is_first, YamlText& yaml) {
  yaml.begin_item("name", dimension.name);
  yaml.put("kind", name_of(dimension.kind));
  yaml.put("size", dimension.size);
  yaml.bandwidth("bandwidth", dimension.bandwidth);
  yaml.time("latency", dimension.latency);
  yaml.put("efficiency", dimension.efficiency);
  if (dimension.own_block.value > 0) yaml.bandwidth("own_block", dimension.own_block);
  // Between nodes alone.
  if (!is_first && !dimension.protocols.empty() && dimension.trees_of_two.value > 0)
    yaml.put("tree_limit", fmt::format("{{two: {}B/s, more: {}B/s}}", dimension.trees_of_two.value,
                                       dimension.trees_of_more.value));
  if (!dimension.protocols.empty()) {
    yaml.begin("protocols");
    for (const CollectiveProtocol& protocol : dimension.protocols) yaml.item(protocol_text(protocol, true));
    yaml.end();
  }
  if (dimension.in_switch) yaml.put("in_switch", protocol_text(*dimension.in_switch, false));
  if (!dimension.cables.empty()) {
    std::vector<std::string> cables;
    for (const MemberCable& cable : dimension.cables)
      cables.push_back(fmt::format("{}-{}", cable.a, cable.b));
    yaml.put("cables", fmt::format("[{}]", fmt::join(cables, ", ")));
  }
  yaml.end();
}

void put_machine(const Machine& machine, YamlText& yaml) {
  yaml.begin("machine");
  yaml.name("name", machine.name);
  if (machine.elastic) yaml.put("elastic", true);
  if (machine.host_power) yaml.put("host_power", fmt::format("{}W", machine.host_power->value));
  yaml.begin("dimensions");
  // A device alone: a machine has one at least.
  if (machine.dimensions.empty())
    yaml.item("{name: none, kind: Switch, size: 1, bandwidth: 1GB/s, latency: 0ps}");
  for (std::size_t d = 0; d < machine.dimensions.size(); ++d)
    put_dimension(machine.dimensions[d], d == 0, yaml);
  yaml.end();
  put_device(machine.device, yaml);
  yaml.end();
}

void put_degrees_and_batch(const PlanRequest& request, YamlText& yaml) {
  const Plan usual;
  for (const auto& [key, value] :
       {std::pair("ranks", request.ranks), std::pair("tensor", request.tensor),
        std::pair("pipeline", request.pipeline), std::pair("context", request.context),
        std::pair("data", request.data), std::pair("batch", request.batch),
        std::pair("global_batch", request.global_batch), std::pair("micro_batch", request.micro_batch),
        std::pair("micro_batches", request.micro_batches)}) {
    if (value) yaml.put(key, *value);
  }
  const Plan& plan = request.plan;
  yaml.unless("expert", plan.expert, usual.expert);
  yaml.unless("expert_tensor", plan.expert_tensor, usual.expert_tensor);
  yaml.unless("virtual_stages", plan.virtual_stages, usual.virtual_stages);
  yaml.unless("schedule", plan.schedule, usual.schedule);
  if (request.balance_stages) yaml.put("stage_blocks", "balanced");
  if (!plan.stage_blocks.empty())
    yaml.put("stage_blocks", fmt::format("[{}]", fmt::join(plan.stage_blocks, ", ")));
  if (plan.order != usual.order) {
    std::vector<std::string_view> axes;
    for (const Axis axis : plan.order) axes.push_back(name_of(axis));
    yaml.put("order", fmt::format("{}", fmt::join(axes, "-")));
  }
}

void put_types(const PlanRequest& request, YamlText& yaml) {
  const Plan usual;
  const Plan& plan = request.plan;
  if (request.precision) yaml.put("precision", name_of(*request.precision));
  for (const auto& [key, type] :
       {std::pair("weight_type", plan.weight_dtype), std::pair("gradient_type", plan.gradient_dtype),
        std::pair("parameter_type", plan.parameter_dtype), std::pair("dispatch_type", plan.dispatch_dtype)}) {
    if (type != DType::unknown) yaml.put(key, name_of(type));
  }
  yaml.unless("state_type", name_of(plan.state_dtype), name_of(usual.state_dtype));
  yaml.unless("scaling", name_of(plan.scaling), name_of(usual.scaling));
  yaml.unless("wide_first_layers", plan.wide_first_layers, usual.wide_first_layers);
  yaml.unless("wide_last_layers", plan.wide_last_layers, usual.wide_last_layers);
  if (plan.wide_modules != usual.wide_modules) yaml.put("wide_modules", list_of(plan.wide_modules));
  yaml.unless("fp8_attention", plan.fp8_attention, usual.fp8_attention);
  yaml.unless("fused_experts", plan.fused_experts, usual.fused_experts);
}

void put_overlap(const Plan& plan, YamlText& yaml) {
  const Plan usual;
  yaml.unless("sequence_parallel", plan.sequence_parallel, usual.sequence_parallel);
  yaml.unless("tensor_method", name_of(plan.tensor_method), name_of(usual.tensor_method));
  yaml.unless("overlap_tensor", plan.overlap_tensor, usual.overlap_tensor);
  yaml.unless("overlap_tensor_gradients", plan.overlap_tensor_gradients, usual.overlap_tensor_gradients);
  yaml.unless("overlap_pipeline", plan.overlap_pipeline, usual.overlap_pipeline);
  yaml.unless("scatter_gather", plan.scatter_gather, usual.scatter_gather);
  yaml.unless("context_method", name_of(plan.context_method), name_of(usual.context_method));
  yaml.unless("expert_load", name_of(plan.expert_load), name_of(usual.expert_load));
  yaml.unless("expert_skew", plan.expert_skew, usual.expert_skew);
  yaml.unless("expert_dispatch", name_of(plan.expert_dispatch), name_of(usual.expert_dispatch));
  yaml.unless("expert_capacity", plan.expert_capacity, usual.expert_capacity);
  yaml.unless("seed", plan.seed, usual.seed);
}

void put_data(const PlanRequest& request, YamlText& yaml) {
  const Plan usual;
  const Plan& plan = request.plan;
  yaml.unless("zero", plan.zero_stage, usual.zero_stage);
  yaml.unless("zero_partition", name_of(plan.zero_partition), name_of(usual.zero_partition));
  yaml.unless("reduce_scatter", plan.reduce_scatter, usual.reduce_scatter);
  yaml.unless("hybrid_shard", plan.hybrid_shard, usual.hybrid_shard);
  if (plan.first_bucket != usual.first_bucket) yaml.bytes("first_bucket", plan.first_bucket);
  if (plan.bucket != usual.bucket) yaml.bytes("bucket", plan.bucket);
  yaml.unless("overlap", plan.overlap, usual.overlap);
  yaml.unless("overlap_parameters", plan.overlap_parameters, usual.overlap_parameters);
  yaml.unless("prefetch", plan.prefetch, usual.prefetch);
  yaml.unless("reshard", plan.reshard, usual.reshard);
  yaml.unless("no_sync", plan.no_sync, usual.no_sync);
  if (request.optimizer) yaml.put("optimizer", name_of(*request.optimizer));
  std::vector<std::string_view> offload;
  if (plan.offload_optimizer) offload.emplace_back("optimizer");
  if (plan.offload_activations) offload.emplace_back("activations");
  if (!offload.empty()) yaml.put("offload", fmt::format("[{}]", fmt::join(offload, ", ")));
  yaml.unless("accumulation_fusion", plan.accumulation_fusion, usual.accumulation_fusion);
  yaml.unless("channels_last", plan.channels_last, usual.channels_last);
}

void put_kernels_and_recomputation(const Plan& plan, YamlText& yaml) {
  const Plan usual;
  yaml.unless("framework", name_of(plan.framework), name_of(usual.framework));
  yaml.unless("host", name_of(plan.host), name_of(usual.host));
  if (plan.cuda_graph_scope != usual.cuda_graph_scope)
    yaml.put("cuda_graph_scope", list_of(plan.cuda_graph_scope));
  yaml.unless("check_collectives", plan.check_collectives, usual.check_collectives);
  if (plan.issue_time) yaml.time("issue_time", *plan.issue_time);
  if (plan.step_overhead != usual.step_overhead) yaml.time("step_overhead", plan.step_overhead);
  if (plan.fused_elementwise) yaml.put("fused_elementwise", list_of(*plan.fused_elementwise));
  yaml.unless("loss", name_of(plan.loss), name_of(usual.loss));
  yaml.unless("loss_parallel", plan.loss_parallel, usual.loss_parallel);
  yaml.unless("embedding_parallel", plan.embedding_parallel, usual.embedding_parallel);
  yaml.unless("head_parallel", plan.head_parallel, usual.head_parallel);
  yaml.unless("recompute", name_of(plan.recompute), name_of(usual.recompute));
  if (plan.recompute == Recompute::block) yaml.put("recompute_blocks", plan.recompute_blocks);
  if (plan.recompute == Recompute::selective && plan.recompute_modules != usual.recompute_modules)
    yaml.put("recompute_modules", list_of(plan.recompute_modules));
  if (plan.recompute_early_stop) yaml.put("recompute_early_stop", *plan.recompute_early_stop);
}

void put_component(std::string_view key, const ComponentChoice& choice, YamlText& yaml) {
  yaml.begin(key);
  yaml.name("model", choice.name);
  for (const auto& [name, value] : choice.parameters) yaml.name(name, value.value);
  yaml.end();
}

}  // namespace

std::string write_study_yaml(const Study& study, const std::string& comment) {
  YamlText yaml(comment);
  put_model(study.model, yaml);
  yaml.begin("plan");
  put_degrees_and_batch(study.request, yaml);
  put_types(study.request, yaml);
  put_overlap(study.request.plan, yaml);
  put_data(study.request, yaml);
  put_kernels_and_recomputation(study.request.plan, yaml);
  yaml.end();
  put_component("compute", study.compute, yaml);
  put_component("network", study.network, yaml);
  if (!study.collectives.measured) {
    yaml.begin("collectives");
    yaml.put("measured", false);
    yaml.end();
  }
  put_machine(study.machine, yaml);
  return yaml.take();
}

}  // namespace armilla
