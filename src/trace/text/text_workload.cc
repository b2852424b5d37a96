#include "trace/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/units_text.h"
#include "ir/derived/backward.h"
#include "ir/derived/layer_table.h"

namespace armilla {
namespace {

// D and M of the header (trace/text.h).
struct Divisors {
  std::int64_t data = 1, model = 1;
};

Divisors divisors_of(const TextWorkloadOptions& options) {
  constexpr std::int64_t kMostNpus = std::int64_t{1} << 24;
  if (options.npus < 1 || options.npus > kMostNpus)
    throw Error("npus", fmt::format("{} NPUs", options.npus), fmt::format("between 1 and {}", kMostNpus));
  if (options.update_cycles < 0) throw Error("update", fmt::format("{} cycles", options.update_cycles));
  if (options.dtype != DType::unknown && bits_of(options.dtype) == 0)
    throw Error("dtype", fmt::format("'{}' has no size", name_of(options.dtype)));
  switch (options.policy) {
    case TextPolicy::data:
      return {options.npus, 1};
    case TextPolicy::model:
      return {1, options.npus};
    case TextPolicy::hybrid_data_model:
    case TextPolicy::hybrid_model_data:
      break;
    default:
      throw Error("policy", fmt::format("{} cannot be derived from a model", name_of(options.policy)),
                  "known: DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA");
  }
  if (options.packages < 1 || options.npus % options.packages != 0) {
    throw Error("packages", fmt::format("{} do not divide {}", typed_count(options.packages, "package"),
                                        typed_count(options.npus, "NPU")));
  }
  const std::int64_t per_package = options.npus / options.packages;
  return options.policy == TextPolicy::hybrid_data_model ? Divisors{options.packages, per_package}
                                                         : Divisors{per_package, options.packages};
}

// A part of something that exists is never nothing.
std::int64_t part(std::int64_t whole, std::int64_t parts) {
  return whole > 0 ? std::max<std::int64_t>(1, whole / parts) : 0;
}

// Groups of a convolution and heads of an attention stay whole as long as there are enough of them.
Gemm shard(Gemm gemm, Divisors parts) {
  // Samples are rows of a product, or products of their own (attention).
  std::int64_t& samples = gemm.batch_in_m ? gemm.m : gemm.count;
  samples = part(samples, parts.data);
  // Of several products the model parts divide the number first, then what is left of them the columns.
  const std::int64_t over_count = std::clamp<std::int64_t>(gemm.count, 1, parts.model);
  gemm.count = part(gemm.count, over_count);
  gemm.n = part(gemm.n, parts.model / over_count);
  return gemm;
}

std::int64_t total_macs(const Work& work) {
  std::int64_t sum = 0;
  for (const Gemm& gemm : work.gemms) sum += gemm.macs();
  return sum;
}

// Weights are spread over the model parts, inputs over the data parts, outputs over both; every pass of a
// product with weights moves all three.
// `take` gives no more than there is: an operator may read less than its tensors hold.
Bytes shard_traffic(const Model& model, const Operator& op, Bytes traffic, Divisors parts) {
  const std::int64_t all = parts.data * parts.model;
  if (!op.weight_is_operand) return Bytes(part(traffic.value, all));
  Bytes rest = traffic;
  const auto take = [&](Bytes wanted) {
    const Bytes taken = std::min(wanted, rest);
    rest -= taken;
    return taken.value;
  };
  std::int64_t weights = 0, outputs = 0;
  for (const std::uint32_t p : op.parameters) {
    const Parameter& parameter = model.parameters[p];
    weights += take(size_of(parameter.elements, parameter.dtype, op.name));
  }
  for (const std::uint32_t output : op.outputs) {
    const Tensor& tensor = model.tensors[output];
    outputs += take(size_of(element_count(tensor.shape, op.name), tensor.dtype, op.name));
  }
  return Bytes(part(weights, parts.model) + part(outputs, all) + part(rest.value, parts.data));
}

// `whole` is a pass of the operator on one NPU, `gemms` the products of the same pass of its shard.
Work shard(const Model& model, const Operator& op, const Work& whole, std::vector<Gemm> gemms,
           Divisors parts) {
  Work work = whole;
  // What the products do not count (bias, softmax) is spread over all NPUs.
  const std::int64_t around = whole.flops.value - 2 * total_macs(whole);
  work.gemms = std::move(gemms);
  work.flops = Flops(2 * total_macs(work) + part(around, parts.data * parts.model));
  work.bytes = shard_traffic(model, op, whole.bytes, parts);
  return work;
}

void add_operator(ShardedLayer& layer, const Model& model, const Operator& original, bool is_anchor,
                  Divisors parts) {
  Operator op = original;
  // The generator knows no first layer: it computes and exchanges an input gradient for each.
  // A gradient that nobody needs is computed all the same, as the generator writes it.
  op.needs_input_gradient = op.needs_input_gradient || (is_anchor && op.weight_is_operand);
  Operator part_of_op = op;
  for (Gemm& gemm : part_of_op.forward.gemms) gemm = shard(gemm, parts);
  const auto add = [&](std::vector<Work>& works, const Work& whole, const Work& sharded) {
    if (whole.kind != WorkKind::none) works.push_back(shard(model, op, whole, sharded.gemms, parts));
  };
  add(layer.forward, op.forward, part_of_op.forward);
  add(layer.input_gradient, input_gradient(model, op), input_gradient(model, part_of_op));
  add(layer.weight_gradient, weight_gradient(model, op), weight_gradient(model, part_of_op));
}

Bytes bytes_of(std::int64_t elements, DType own, const TextWorkloadOptions& options,
               const std::string& where) {
  return size_of(elements, options.dtype == DType::unknown ? own : options.dtype, where);
}

Bytes tensors_bytes(const Model& model, const std::vector<std::uint32_t>& tensors,
                    const TextWorkloadOptions& options) {
  if (tensors.empty()) return Bytes(0);
  const Tensor& tensor = model.tensors[tensors[0]];
  return bytes_of(element_count(tensor.shape, tensor.name), tensor.dtype, options, tensor.name);
}

Bytes gradient_bytes(const Model& model, const LayerRow& row, const TextWorkloadOptions& options) {
  Bytes sum;
  const auto add = [&](const std::vector<std::uint32_t>& indices) {
    for (const std::uint32_t p : indices) {
      const Parameter& parameter = model.parameters[p];
      if (!parameter.trainable) continue;
      const Bytes bytes = bytes_of(parameter.elements, parameter.dtype, options, parameter.name);
      sum = Bytes(checked_add(sum.value, bytes.value, row.name));
    }
  };
  add(row.matrices);
  if (options.all_parameters) add(row.other_parameters);
  return sum;
}

// A collective of nothing is none: ASTRA-sim 1.0 would never end it.
TextPass pass(std::int64_t cycles, CollectiveKind kind, Bytes whole, std::int64_t parts, bool communicates) {
  const Bytes bytes(part(whole.value, parts));
  if (!communicates || bytes.value == 0) return {cycles, std::nullopt, Bytes(0)};
  return {cycles, kind, bytes};
}

// Words of the text are separated by blanks and tabs.
std::string text_name(const std::string& name, std::size_t index) {
  if (name.empty()) return fmt::format("layer_{}", index);
  std::string text = name;
  std::replace_if(text.begin(), text.end(), is_text_separator, '_');
  return text;
}

}  // namespace

std::vector<ShardedLayer> shard_layers(const Model& model, const TextWorkloadOptions& options) {
  const Divisors parts = divisors_of(options);
  std::vector<ShardedLayer> shards;
  for (const LayerRow& row : layer_rows(model)) {
    ShardedLayer& sharded = shards.emplace_back();
    for (const std::uint32_t i : row.operators)
      add_operator(sharded, model, model.operators[i], i == row.operators.front(), parts);
  }
  return shards;
}

TextWorkload lower_to_text(const Model& model, const TextWorkloadOptions& options,
                           std::span<const LayerCycles> cycles) {
  const Divisors parts = divisors_of(options);
  const std::vector<LayerRow> rows = layer_rows(model);
  if (cycles.size() != rows.size())
    throw Error(model.source,
                fmt::format("cycles for {} of {}", cycles.size(), typed_count(rows.size(), "layer")));
  const bool activations = options.policy != TextPolicy::data;
  const bool gradients = options.policy != TextPolicy::model;
  TextWorkload workload;
  workload.policy = options.policy;
  workload.layers.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LayerRow& row = rows[i];
    const Operator& anchor = model.operators[row.operators.front()];
    TextLayer& text = workload.layers.emplace_back();
    text.name = text_name(row.name, i);
    // Heads are divided as the products around them are: nothing is exchanged for the core of attention.
    const bool exchanges = activations && !row.multiplies_activations;
    text.forward = pass(cycles[i].forward, CollectiveKind::all_gather,
                        tensors_bytes(model, anchor.outputs, options), options.npus, exchanges);
    // A look-up's input are ids.
    text.input_gradient =
        pass(cycles[i].input_gradient, CollectiveKind::reduce_scatter,
             tensors_bytes(model, anchor.inputs, options), parts.data, exchanges && !row.looks_up);
    text.weight_gradient = pass(cycles[i].weight_gradient, CollectiveKind::all_reduce,
                                gradient_bytes(model, row, options), parts.model, gradients);
    text.update_cycles = options.update_cycles;
  }
  validate_text_workload(workload);
  return workload;
}

}  // namespace armilla
