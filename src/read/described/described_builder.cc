#include "read/described/described_builder.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace armilla {
namespace {

// Shape of x with its last dimension changed.
Shape with_width(Shape shape, std::int64_t width) {
  shape.back() = width;
  return shape;
}

}  // namespace

DescribedBuilder::DescribedBuilder(const ModelDescription& description, std::int64_t batch,
                                   std::int64_t sequence)
    : description_(description), sequence_(sequence) {
  model_.batch = batch;
}

std::string DescribedBuilder::named(std::string_view name) const {
  return block_.empty() ? std::string(name) : fmt::format("{}.{}", block_, name);
}

std::int64_t DescribedBuilder::elements_of(TensorId tensor) const {
  return element_count(model_.tensors[tensor].shape, model_.tensors[tensor].name);
}

Bytes DescribedBuilder::bytes_of(TensorId tensor) const {
  return size_of(elements_of(tensor), model_.tensors[tensor].dtype, model_.tensors[tensor].name);
}

// A block closes where the next one opens. Blocks with the same `like` get one shape number: later stages
// divide and price such a block once for all of them.
void DescribedBuilder::open_block(const std::string& name, BlockKind kind, const std::string& like) {
  const auto at = static_cast<std::uint32_t>(model_.operators.size());
  if (!model_.blocks.empty()) model_.blocks.back().end = at;
  const auto shape = shapes_.try_emplace(like, static_cast<std::uint32_t>(shapes_.size())).first->second;
  model_.blocks.push_back({name, kind, at, at, shape});
  block_ = name;
  owner_.clear();
}

TensorId DescribedBuilder::input(std::string_view name, Shape shape, DType dtype) {
  const auto id = static_cast<TensorId>(model_.tensors.size());
  model_.tensors.push_back({std::string(name), dtype, std::move(shape)});
  model_.inputs.push_back(id);
  return id;
}

TensorId DescribedBuilder::tensor(std::string_view name, Shape shape, DType dtype) {
  const auto id = static_cast<TensorId>(model_.tensors.size());
  model_.tensors.push_back({named(name), dtype, std::move(shape)});
  return id;
}

ParameterId DescribedBuilder::parameter(std::string_view name, Shape shape) {
  if (owner_.empty()) return parameter_of(block_, name, std::move(shape));
  const std::string full = fmt::format("{}.{}", owner_, name);
  const auto known = std::ranges::find(model_.parameters, full, &Parameter::name);
  return static_cast<ParameterId>(known - model_.parameters.begin());
}

ParameterId DescribedBuilder::parameter_of(std::string_view owner, std::string_view name, Shape shape) {
  const auto id = static_cast<ParameterId>(model_.parameters.size());
  std::string full = fmt::format("{}.{}", owner, name);
  const std::int64_t elements = element_count(shape, full);
  // Beside adapters nothing else is trained.
  const DType base = description_.adapters.base_dtype;
  const bool narrow = adapts() && base != DType::unknown && shape.size() > 1;
  model_.parameters.push_back(
      {std::move(full), narrow ? base : DType::bf16, std::move(shape), elements, !adapts(), adapts()});
  return id;
}

// Traffic is everything the operator touches, once: what a fused kernel moves between memory and chip. It is
// a copy until the caller sets its arithmetic.
Operator& DescribedBuilder::add(std::string_view name, std::string_view type, std::vector<TensorId> inputs,
                                std::vector<TensorId> outputs, std::vector<ParameterId> parameters) {
  Operator& op = model_.operators.emplace_back();
  op.name = named(name);
  op.type = type;
  op.parts = parts_;
  op.forward.kind = WorkKind::copy;
  op.forward.dtype = DType::bf16;
  std::int64_t bytes = 0;
  const auto count = [&](Bytes more) { bytes = checked_add(bytes, more.value, op.name); };
  for (const TensorId input : inputs) count(bytes_of(input));
  for (const TensorId output : outputs) count(bytes_of(output));
  for (const ParameterId p : parameters)
    count(size_of(model_.parameters[p].elements, model_.parameters[p].dtype, op.name));
  op.forward.bytes = Bytes(bytes);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.parameters = std::move(parameters);
  return op;
}

TensorId DescribedBuilder::elementwise(const Elementwise& what, std::vector<TensorId> inputs, Shape shape,
                                       std::vector<ParameterId> parameters) {
  const TensorId y = tensor(what.name, std::move(shape));
  const std::int64_t elements = elements_of(y);
  Operator& op = add(what.name, what.type, std::move(inputs), {y}, std::move(parameters));
  op.forward.kind = what.flops == 0 ? WorkKind::copy : WorkKind::vector;
  op.forward.flops = Flops(checked_multiply(elements, what.flops, op.name));
  op.split = what.split;
  op.ways = what.ways;
  op.saves = what.saves;
  return y;
}

void DescribedBuilder::set_matrix_work(Operator& op, std::vector<Gemm> gemms) {
  op.forward.kind = WorkKind::matrix;
  // Sizes come from users' files: products and sums are checked, so that an overflow is an error instead of a
  // wrong time.
  std::int64_t flops = 0;
  for (const Gemm& gemm : gemms) {
    // Two flops per multiply-accumulate.
    std::int64_t macs = 2;
    for (const std::int64_t size : {gemm.m, gemm.n, gemm.k, gemm.count})
      macs = checked_multiply(macs, size, op.name);
    flops = checked_add(flops, macs, op.name);
  }
  op.forward.flops = Flops(flops);
  op.forward.gemms = std::move(gemms);
}

TensorId DescribedBuilder::product(std::string_view name, TensorId x, std::int64_t out,
                                   const ProductOptions& options) {
  return products(name, x, {name}, {out}, options)[0];
}

std::vector<TensorId> DescribedBuilder::products(std::string_view name, TensorId x,
                                                 const std::vector<std::string_view>& names,
                                                 const std::vector<std::int64_t>& outs,
                                                 const ProductOptions& options) {
  // Results side by side are one product with one weight, as frameworks fuse queries, keys and values, or
  // gate and up: one GEMM of the summed width instead of several narrow ones.
  const Shape shape = shape_of(x);
  const std::int64_t in = shape.back();
  std::int64_t width = 0;
  std::vector<TensorId> results;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    width = checked_add(width, outs[i], named(name));
    results.push_back(tensor(names[i], with_width(shape, outs[i]), options.output));
  }
  std::vector<ParameterId> parameters;
  // Weights lie as {outputs, inputs}, like torch.nn.Linear's; so does the embedding table that may be tied to
  // one.
  parameters.push_back(options.tied != nullptr ? *options.tied
                                               : parameter(fmt::format("{}.weight", name), {width, in}));
  if (options.bias) parameters.push_back(parameter(fmt::format("{}.bias", name), {width}));
  // All leading dimensions are rows: a product does not care which tokens belong to which sample.
  const std::int64_t rows = elements_of(x) / in;
  Operator& op = add(name, "MatMul", {x}, results, std::move(parameters));
  set_matrix_work(op, {{rows, width, in, 1, true}});
  op.weight_is_operand = true;
  op.split = options.split;
  op.ways = options.ways;
  if (adapts()) {
    // A frozen weight's backward pass needs no input.
    op.saves = Saves::nothing;
    if (options.tied == nullptr && options.output != DType::fp32 && adapts(name))
      adapt(name, x, names, outs, options, results);
  }
  return results;
}

bool DescribedBuilder::adapts(std::string_view product) const {
  const std::vector<std::string>& targets = description_.adapters.targets;
  const std::string_view last = product.substr(product.rfind('.') + 1);
  return targets.empty() || std::ranges::find(targets, last) != targets.end();
}

// One adapter for each of the weights that the product joins, as PEFT has them: B (A x), A of {rank, in}.
void DescribedBuilder::adapt(std::string_view name, TensorId x, const std::vector<std::string_view>& names,
                             const std::vector<std::int64_t>& outs, const ProductOptions& options,
                             std::vector<TensorId>& results) {
  const std::int64_t rank = description_.adapters.rank, in = shape_of(x).back(), rows = elements_of(x) / in;
  const std::int64_t joined = static_cast<std::int64_t>(outs.size()) * options.side_by_side;
  const std::int64_t ranks = checked_multiply(joined, rank, named(name));
  // An adapter of a row-parallel product is divided like it in A, one of a column-parallel product in B.
  const bool by_rows = options.split == Split::row;
  const std::string down_name = fmt::format("{}.lora_a", name), up_name = fmt::format("{}.lora_b", name);
  const TensorId low = tensor(down_name, with_width(shape_of(x), ranks));
  const auto trained = [&](const std::string& of, Shape shape) {
    const ParameterId id = parameter(of + ".weight", std::move(shape));
    model_.parameters[id].trainable = true;
    model_.parameters[id].frozen = false;
    model_.parameters[id].dtype = DType::bf16;
    return id;
  };
  Operator& down = add(down_name, "MatMul", {x}, {low}, {trained(down_name, {ranks, in})});
  set_matrix_work(down, {{rows, ranks, in, 1, true}});
  down.weight_is_operand = true;
  down.split = by_rows ? Split::row : Split::tokens;
  down.ways = by_rows ? options.ways : 0;
  std::vector<TensorId> added;
  std::vector<Gemm> gemms;
  std::int64_t width = 0;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    added.push_back(tensor(fmt::format("{}.lora_b", names[i]), shape_of(results[i])));
    gemms.push_back({rows, outs[i] / options.side_by_side, rank, options.side_by_side, true});
    width += outs[i];
  }
  Operator& up = add(up_name, "MatMul", {low}, added, {trained(up_name, {width, rank})});
  set_matrix_work(up, std::move(gemms));
  up.weight_is_operand = true;
  up.split = by_rows ? Split::tokens : options.split;
  up.ways = by_rows ? 0 : options.ways;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const Split split = options.split == Split::column ? Split::features : Split::tokens;
    results[i] =
        elementwise({fmt::format("{}.lora_add", names[i]), "Add", 1, split, options.ways, Saves::nothing},
                    {results[i], added[i]}, Shape(shape_of(results[i])));
  }
}

TensorId DescribedBuilder::expert_product(std::string_view name, TensorId x, std::int64_t experts,
                                          std::int64_t out, Split split, bool bias) {
  const std::int64_t rows = shape_of(x)[0], in = shape_of(x).back();
  const TensorId y = tensor(name, with_width(shape_of(x), out));
  std::vector<ParameterId> parameters = {parameter(fmt::format("{}.weight", name), {experts, out, in})};
  if (bias) parameters.push_back(parameter(fmt::format("{}.bias", name), {experts, out}));
  Operator& op = add(name, "GroupedMatMul", {x}, {y}, std::move(parameters));
  // `rows % experts` experts get one row more than the others: two groups of equal products. With fewer rows
  // than experts some experts have nothing to do.
  std::vector<Gemm> gemms;
  if (const std::int64_t longer = rows % experts; longer > 0)
    gemms.push_back({rows / experts + 1, out, in, longer, true});
  if (rows >= experts) gemms.push_back({rows / experts, out, in, experts - rows % experts, true});
  set_matrix_work(op, std::move(gemms));
  op.weight_is_operand = true;
  op.split = split;
  op.expert = true;
  return y;
}

TensorId DescribedBuilder::look_up(std::string_view name, TensorId ids, ParameterId table,
                                   std::int64_t width) {
  Shape shape = shape_of(ids);
  shape.push_back(width);
  const TensorId y = tensor(name, std::move(shape));
  Operator& op = add(name, "Gather", {ids}, {y}, {table});
  // Only the rows that are asked for are read.
  op.forward.bytes =
      Bytes(checked_add(checked_multiply(bytes_of(y).value, 2, op.name), bytes_of(ids).value, op.name));
  // Ids are integers: nothing flows back to them. The table gets its weight gradient all the same.
  op.needs_input_gradient = false;
  op.split = Split::vocabulary;
  return y;
}

TensorId DescribedBuilder::norm(std::string_view name, TensorId x, Split split, std::int64_t group) {
  // A norm per head (Qwen3's of queries and keys) has one weight of a head's size for all heads.
  const bool rms = description_.norm == Norm::rmsnorm;
  const std::int64_t width = group > 0 ? group : shape_of(x).back();
  std::vector<ParameterId> parameters = {parameter(fmt::format("{}.weight", name), {width})};
  if (!rms) parameters.push_back(parameter(fmt::format("{}.bias", name), {width}));
  const TensorId y =
      elementwise({name, rms ? "RMSNorm" : "LayerNormalization", rms ? 5 : 7, split, 0, Saves::inputs}, {x},
                  shape_of(x), std::move(parameters));
  last().forward.kernel = Kernel::norm;
  return y;
}

TensorId DescribedBuilder::dropout(std::string_view name, TensorId x) {
  if (!description_.dropout) return x;
  // The backward pass needs the mask, one byte per element.
  const TensorId y = tensor(name, shape_of(x));
  const TensorId mask = tensor(fmt::format("{}.mask", name), shape_of(x), DType::boolean);
  Operator& op = add(name, "Dropout", {x}, {y, mask});
  op.forward.kind = WorkKind::vector;
  op.forward.flops = Flops(elements_of(y));
  op.saves = Saves::mask;
  return y;
}

TensorId DescribedBuilder::residual(std::string_view scope, TensorId x, TensorId residual, bool bias) {
  // One operator for bias, dropout and addition: Megatron-LM and others run them as one fused kernel.
  const bool dropped = description_.dropout;
  const std::string name = fmt::format("{}.{}{}add", scope, bias ? "bias_" : "", dropped ? "dropout_" : "");
  std::vector<ParameterId> parameters;
  // The bias of a row-parallel product is added once, after the partial sums.
  if (bias) parameters.push_back(parameter(fmt::format("{}.bias", scope), {shape_of(x).back()}));
  std::vector<TensorId> results = {tensor(name, shape_of(x))};
  if (dropped) results.push_back(tensor(fmt::format("{}.mask", name), shape_of(x), DType::boolean));
  const TensorId y = results[0];
  Operator& op = add(name, bias || dropped ? "BiasDropoutAdd" : "Add", {x, residual}, std::move(results),
                     std::move(parameters));
  op.forward.kind = WorkKind::vector;
  op.forward.flops = Flops(checked_multiply(elements_of(y), 1 + (bias ? 1 : 0) + (dropped ? 1 : 0), op.name));
  // An addition passes gradients on as they are; only a mask has to be remembered.
  op.saves = dropped ? Saves::mask : Saves::nothing;
  return y;
}

TensorId DescribedBuilder::activation(std::string_view name, TensorId x, std::int64_t width, bool expert) {
  constexpr std::string_view kTypes[] = {"Gelu", "Relu", "SwiGLU", "GeGLU", "SwiGLU"};
  constexpr std::int64_t kFlops[] = {5, 1, 6, 6, 6};
  const auto which = static_cast<std::size_t>(description_.activation);
  if (description_.activation == Activation::clamped_swiglu) {
    x = elementwise({fmt::format("{}.clamp", name), "ClampGate", 2, Split::features, 0, Saves::inputs}, {x},
                    Shape(shape_of(x)));
    last().expert = expert;
  }
  // `x` holds gate and up side by side where the activation is gated, so its result may be half as wide.
  const TensorId y = elementwise({name, kTypes[which], kFlops[which], Split::features, 0, Saves::inputs}, {x},
                                 with_width(shape_of(x), width));
  last().forward.kernel = Kernel::activation;
  // The activation works on dispatched rows, too: divided by expert parallelism, not by the token's home.
  last().expert = expert;
  return y;
}

TensorId DescribedBuilder::loss(std::string_view name, TensorId logits, TensorId labels, Split split) {
  Shape per_row = shape_of(logits);
  per_row.pop_back();
  const TensorId y = tensor(name, std::move(per_row), DType::fp32);
  // The backward pass subtracts the labels from the probabilities, which are kept in fp32 for it.
  const TensorId probabilities = tensor(fmt::format("{}.probabilities", name), shape_of(logits), DType::fp32);
  const std::int64_t elements = elements_of(logits);
  Operator& op = add(name, "CrossEntropy", {logits, labels}, {y, probabilities});
  op.forward.kernel = Kernel::loss;
  op.forward.kind = WorkKind::vector;
  op.forward.flops = Flops(checked_multiply(elements, 5, op.name));
  op.split = split;
  op.saves = Saves::output;
  return y;
}

Model DescribedBuilder::take() {
  if (!model_.blocks.empty()) model_.blocks.back().end = static_cast<std::uint32_t>(model_.operators.size());
  return std::move(model_);
}

}  // namespace armilla
