#include "lower/shard/shard_work.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "ir/derived/backward.h"
#include "lower/expert_exchange.h"

namespace armilla {
namespace {

// What an operator reads or writes of a tensor. Regions that are divided by features need every token; the
// exchange of tokens between experts lies outside of the kernels that prepare and finish it.
Share seen_share(const Operator& op, const Layout& layout, std::uint32_t tensor, bool is_output) {
  const bool gathered = op.split != Split::tokens && op.split != Split::vocabulary;
  const bool partial_sums = is_output && (op.split == Split::row || op.split == Split::vocabulary);
  if (op.exchange == Exchange::none) return tensor_share(layout, tensor, gathered || partial_sums);
  // Loads of experts apply between dispatch and combine; the two operators themselves stand at home, where
  // every rank has its own tokens.
  Layout even;
  even.degrees = layout.degrees;
  even.degrees.load = {};
  even.tensors = {layout.tensors[tensor]};
  return tensor_share(even, 0, false);
}

// Summed in double: shares are fractions, and rounding each tensor would add up.
struct Traffic {
  double whole = 0, local = 0;
  void add(double bytes, double share) {
    whole += bytes;
    local += bytes * share;
  }
};

Traffic activation_traffic(const Model& model, const Operator& op, const Layout& layout) {
  Traffic traffic;
  const auto add = [&](std::uint32_t t, bool is_output) {
    const Tensor& tensor = model.tensors[t];
    const auto elements = static_cast<double>(element_count(tensor.shape, tensor.name));
    const Share share = seen_share(op, layout, t, is_output);
    traffic.add(elements * bits_of(tensor.dtype) / 8,
                static_cast<double>(share.part) / static_cast<double>(share.of));
  };
  for (const std::uint32_t input : op.inputs) add(input, false);
  for (const std::uint32_t output : op.outputs) add(output, true);
  return traffic;
}

Traffic parameter_traffic(const Model& model, const Operator& op, const Layout& layout) {
  Traffic traffic;
  for (const std::uint32_t p : op.parameters) {
    const Parameter& parameter = model.parameters[p];
    if (parameter.elements == 0) continue;
    traffic.add(static_cast<double>(parameter.elements) * bits_of(parameter.dtype) / 8,
                static_cast<double>(local_elements(model, layout, op, parameter)) /
                    static_cast<double>(parameter.elements));
  }
  return traffic;
}

Bytes rounded(double bytes) {
  return Bytes(static_cast<std::int64_t>(bytes + 0.5));
}

Bytes output_bytes(const Model& model, const Operator& op, const Layout& layout) {
  Bytes sum;
  for (const std::uint32_t output : op.outputs) {
    const Tensor& tensor = model.tensors[output];
    const std::int64_t elements =
        scaled(element_count(tensor.shape, tensor.name), seen_share(op, layout, output, true));
    sum += size_of(elements, tensor.dtype, tensor.name);
  }
  return sum;
}

// Tokens that pass through the operator on this rank, as a share of the whole micro-batch's.
Share rows(const Operator& op, const Layout& layout) {
  if (op.exchange != Exchange::none) return token_share(false, false, layout.degrees);
  return token_share(op.expert, op.split != Split::tokens, layout.degrees);
}

bool is_attention_product(const Operator& op) {
  return op.split == Split::heads && !op.weight_is_operand;
}

// A rank's experts see the tokens of all expert ranks, dealt to them as evenly as possible.
void shard_experts(const Operator& op, const Layout& layout, Share split, std::vector<Gemm>& gemms) {
  // Counting all products and all their rows first makes the result independent of how the even case was
  // split into two groups of GEMMs.
  const Degrees& degrees = layout.degrees;
  std::int64_t products = 0, tokens = 0;
  for (const Gemm& gemm : gemms) {
    products = checked_add(products, gemm.count, op.name);
    tokens = checked_add(tokens, checked_multiply(gemm.m, gemm.count, op.name), op.name);
  }
  products = scaled(products, largest_part(products, degrees.expert));
  tokens = scaled(tokens, rows(op, layout));
  Gemm one = gemms[0];
  (op.split == Split::row ? one.k : one.n) = scaled(op.split == Split::row ? one.k : one.n, split);
  gemms.clear();
  // As in DescribedBuilder::expert_product: a remainder of products has one row more.
  for (const bool longer : {true, false}) {
    one.m = tokens / products + static_cast<std::int64_t>(longer);
    one.count = longer ? tokens % products : products - tokens % products;
    if (one.m > 0 && one.count > 0) gemms.push_back(one);
  }
}

void shard_gemm(const Operator& op, const Layout& layout, Share split, Gemm& gemm) {
  const Degrees& degrees = layout.degrees;
  Share tokens = rows(op, layout);
  if (is_attention_product(op)) {
    // All-to-all attention: this rank has all tokens again but only its part of the heads, so the heads are
    // divided by both degrees and the sequence's share is taken back.
    if (op.core_attention && degrees.all_to_all_context) {
      const std::int64_t ways = degrees.tensor * degrees.context;
      split = op.ways > 0 ? Share{ceil_divide(op.ways, ways), op.ways} : Share{1, ways};
      tokens = tokens * Share{degrees.sequence.of, degrees.sequence.part};
    }
    gemm.count = scaled(gemm.count, split);
  } else if (op.split == Split::row) {
    gemm.k = scaled(gemm.k, split);
  } else if (gemm.count > 1) {
    // Grouped convolutions and the like are divided by whole products.
    gemm.count = scaled(gemm.count, split);
  } else {
    gemm.n = scaled(gemm.n, split);
  }
  gemm.m = scaled(gemm.m, tokens);
}

Work shard_forward(const Model& model, const Operator& op, const Layout& layout, Bytes& parameters) {
  Work work = op.forward;
  const Share split = split_share(model, op, layout);
  if (work.kind == WorkKind::matrix && !work.gemms.empty()) {
    // Arithmetic is scaled by what the products shrink to, not recomputed from them: operators may count more
    // than their products (the bias of a convolution, for one).
    const auto macs = [&] {
      std::int64_t sum = 0;
      for (const Gemm& gemm : work.gemms) {
        const std::int64_t area = checked_multiply(gemm.m, gemm.n, op.name);
        const std::int64_t depth = checked_multiply(gemm.k, gemm.count, op.name);
        sum = checked_add(sum, checked_multiply(area, depth, op.name), op.name);
      }
      return sum;
    };
    const std::int64_t whole = macs();
    const bool alike = std::all_of(work.gemms.begin(), work.gemms.end(), [&](const Gemm& gemm) {
      return gemm.n == work.gemms[0].n && gemm.k == work.gemms[0].k;
    });
    if (op.expert && alike && whole > 0) {
      shard_experts(op, layout, split, work.gemms);
    } else {
      for (Gemm& gemm : work.gemms) shard_gemm(op, layout, split, gemm);
    }
    const std::int64_t local = macs();
    if (whole > 0) work.flops = Flops(scaled(work.flops.value, Share{local, whole}));
  } else {
    Share share = rows(op, layout) * split;
    // Whole tables: the rank with most of them looks up for all expert ranks.
    if (op.expert && op.split == Split::tokens && op.ways > 0)
      share = share * largest_part(op.ways, layout.degrees.expert) * Share{layout.degrees.expert, 1};
    work.flops = Flops(scaled(work.flops.value, share));
  }
  // `bytes` of an operator need not be all of its tensors once: look-ups read a few rows. Where they are at
  // least that much, activations and weights shrink each by its own share.
  const Traffic activations = activation_traffic(model, op, layout);
  const Traffic weights = parameter_traffic(model, op, layout);
  const auto bytes = static_cast<double>(op.forward.bytes.value);
  if (activations.whole + weights.whole <= bytes && activations.whole + weights.whole > 0) {
    const double factor = bytes / (activations.whole + weights.whole);
    work.bytes = rounded(factor * (activations.local + weights.local));
    parameters = rounded(factor * weights.local);
  } else if (activations.whole > 0) {
    // Fewer bytes than the tensors have: only a part of the table was read, as large as the activations
    // demand.
    work.bytes = rounded(bytes * (activations.local / activations.whole));
  }
  return work;
}

Work in_precision(Work work, const Operator& op, const Plan& plan, bool narrow,
                  std::int64_t weight_elements) {
  if (!is_floating(work.dtype) || !is_floating(plan.precision)) return work;
  const DType kept = activation_dtype(plan);
  // Shapes and shares were counted in the model's own type; kept types of another width scale all traffic.
  if (kept != work.dtype) {
    work.bytes = Bytes(static_cast<std::int64_t>(static_cast<double>(work.bytes.value) * bits_of(kept) /
                                                 bits_of(work.dtype)));
  }
  work.dtype = kept;
  const bool is_cast = kept != plan.precision && narrow && work.kind == WorkKind::matrix;
  if (is_cast && op.core_attention && plan.fp8_attention) work.dtype = DType::fp8;
  if (is_cast && op.weight_is_operand) {
    work.dtype = plan.precision;
    if (work.dtype == DType::fp8) work.scaling = plan.scaling;
    // The cast of a weight writes the narrow copy and reads it again for the product; tf32 needs none.
    if (bits_of(plan.precision) < bits_of(kept))
      work.bytes += size_of(weight_elements, plan.precision, op.name) * 2;
  }
  return work;
}

// cuDNN's convolutions on tensor cores read and write channels last; what lies otherwise it transposes before
// and after (its kernels nchwToNhwc and nhwcToNchw): the input and the result, backward their gradients, read
// and written once each. That the product of the weight gradient transposes its two operands again is not
// counted: convolutions of one pixel, most of a network's, are products in either order.
void set_transposes(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                    OperatorWork& work) {
  if (plan.channels_last || !wants_channels_last(op, work.forward.dtype)) return;
  const DType kept = activation_dtype(plan);
  const double bytes =
      activation_traffic(model, op, layout).local * bits_of(kept) / bits_of(op.forward.dtype);
  work.transposes.kind = WorkKind::copy;
  work.transposes.dtype = kept;
  work.transposes.bytes = rounded(2 * bytes);
}

// Bytes that a framework moves per logit of `width` bytes in a cross entropy.
struct LossTraffic {
  std::int64_t forward, backward;
};

// Operator by operator PyTorch makes a copy in fp32 and its log-softmax; backward a gradient of zeros, what
// becomes of it and the probabilities, a copy in the logits' type; without these copies where it stays in
// that type. Fused by a compiler: logits are read; backward again, and their gradient written.
LossTraffic loss_traffic_of_pytorch(LossKernel loss, std::int64_t width) {
  constexpr std::int64_t kWide = 4;
  if (loss == LossKernel::fused) return {width, 2 * width};
  if (loss == LossKernel::narrow) return {2 * width, 4 * width};
  const std::int64_t copy = width == kWide ? 0 : width + kWide;
  return {copy + 2 * kWide, kWide + 3 * kWide + copy};
}

// Megatron's is PyTorch's operations on a copy in fp32, each in place: largest, difference, exponential, sum,
// quotient; backward the product with the loss's gradient and a copy in the logits' type (cross_entropy.py).
// Compiled (fused_cross_entropy.py) the copy and the largest are one kernel, the exponentials and their sum
// another, the quotient a third, and the gradient one. Transformer Engine's reads the logits twice and writes
// the gradient over them, backward multiplies that (cross_entropy.py of its Triton kernels).
LossTraffic loss_traffic_of_megatron(LossKernel loss, std::int64_t width) {
  constexpr std::int64_t kWide = 4;
  if (loss == LossKernel::fused) return {3 * width, 2 * width};
  const std::int64_t copy = width == kWide ? 0 : width + kWide;
  if (loss == LossKernel::wide) return {std::max(copy, kWide) + 4 * kWide, 2 * kWide + width};
  return {copy + (1 + 2 + 2 + 1 + 2) * kWide, 2 * kWide + copy};
}

// PyTorch's softmax reduces rows, as norms do, and attains what these do (tests/reference/measurements: 2.0
// TB/s on H100); so do kernels that a compiler makes of Megatron's. XLA and other compilers of whole steps
// move what the tensors hold.
void set_loss_traffic(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                      OperatorWork& work) {
  const bool is_pytorch = plan.framework == Framework::pytorch;
  const bool is_compiled = plan.host == Host::compiled && plan.loss == LossKernel::automatic;
  if (op.forward.kernel != Kernel::loss || (!is_pytorch && is_compiled)) return;
  constexpr std::int64_t kBits = 8;
  const Tensor& logits = model.tensors[op.inputs.front()];
  // As many as there are probabilities: of all logits where these are gathered.
  const std::int64_t elements =
      scaled(element_count(logits.shape, logits.name), seen_share(op, layout, op.outputs.back(), true));
  const std::int64_t width = bits_of(activation_dtype(plan)) / kBits;
  const LossTraffic traffic = is_pytorch ? loss_traffic_of_pytorch(loss_kernel_of(plan), width)
                                         : loss_traffic_of_megatron(plan.loss, width);
  if (is_pytorch || plan.loss == LossKernel::wide)
    work.forward.kernel = work.input_gradient.kernel = Kernel::norm;
  work.forward.bytes = Bytes(checked_multiply(elements, traffic.forward, op.name));
  work.input_gradient.bytes = Bytes(checked_multiply(elements, traffic.backward, op.name));
}

// That of attention that is not fused, too. Operator by operator PyTorch scales the scores, adds the mask,
// makes fp32 probabilities of them and a copy of these in their own type (transformers'
// eager_attention_forward); backward it widens the gradient, makes that of the scores of it and the
// probabilities, and scales it. Compilers read the scores and write the probabilities, as Megatron's kernel
// does, whose rate is that of other kernels.
void set_softmax_traffic(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                         OperatorWork& work) {
  if (plan.framework != Framework::pytorch || !op.core_attention || op.type != "Softmax") return;
  work.forward.kernel = work.input_gradient.kernel = Kernel::norm;
  if (plan.host == Host::compiled) return;
  constexpr std::int64_t kBits = 8, kWide = 4;
  const std::int64_t width = bits_of(activation_dtype(plan)) / kBits;
  const std::int64_t probabilities = width + kWide, copy = width == kWide ? 0 : width + kWide,
                     scaling = 2 * width;
  const Tensor& scores = model.tensors[op.inputs.front()];
  const std::int64_t elements =
      scaled(element_count(scores.shape, scores.name), seen_share(op, layout, op.inputs.front(), false));
  work.forward.bytes = Bytes(checked_multiply(elements, 2 * scaling + probabilities + copy, op.name));
  work.input_gradient.bytes = Bytes(checked_multiply(elements, copy + 2 * kWide + width + scaling, op.name));
}

// Bytes that PyTorch moves per element of `width` bytes where a formula is run operator by operator, each
// reading its operands from memory and writing its result there.
struct PassTraffic {
  std::int64_t forward = 0, backward = 0;
};

// Llama's RMSNorm (Llama 3's model.py, transformers' LlamaRMSNorm, PyTorch's rms_norm before release 2.9): a
// copy in fp32, its squares, their mean, the copy by the reciprocal root, the result in its own type, by the
// weight. Backward: by the weight; by what it multiplied, and summed; widened; by the root; by the copy, and
// summed; the mean's gradient spread over a row, powers of the copy, doubled, their product; the two
// gradients of the copy added, and cast.
PassTraffic norm_traffic(std::int64_t width) {
  constexpr std::int64_t kWide = 4;
  const std::int64_t cast = width == kWide ? 0 : width + kWide;
  const std::int64_t forward = cast + 2 * kWide + kWide + 2 * kWide + cast + 2 * width;
  const std::int64_t of_weight = 2 * width + 3 * width + width, of_root = 3 * kWide + kWide;
  const std::int64_t of_squares = kWide + 2 * kWide + 2 * kWide + 3 * kWide;
  return {forward, of_weight + cast + 2 * kWide + of_root + of_squares + 3 * kWide + cast};
}

// Pairs as complex numbers in fp32, turned, and cast (Llama 3's apply_rotary_emb); backward the same. Halves
// that are negated, put together and added (transformers' rotate_half) move as much.
PassTraffic rotary_traffic(std::int64_t width) {
  constexpr std::int64_t kWide = 4;
  const std::int64_t cast = width == kWide ? 0 : width + kWide;
  return {cast + 2 * kWide + cast, cast + 2 * kWide + cast};
}

// The function of the gate, and its product with the other half; backward two products and the function's.
PassTraffic gate_traffic(std::int64_t width) {
  return {2 * width + 3 * width, 2 * (3 * width) + 3 * width};
}

void set_elementwise_traffic(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                             OperatorWork& work) {
  const std::optional<Part> part = elementwise_part(model, op);
  if (!part || fused_elementwise_of(plan).has(*part)) return;
  constexpr std::int64_t kBits = 8;
  const std::int64_t width = bits_of(activation_dtype(plan)) / kBits;
  const PassTraffic traffic = *part == Part::norm     ? norm_traffic(width)
                              : *part == Part::rotary ? rotary_traffic(width)
                                                      : gate_traffic(width);
  std::int64_t results = 0;
  for (const std::uint32_t t : op.outputs) {
    const Tensor& tensor = model.tensors[t];
    results += scaled(element_count(tensor.shape, tensor.name), seen_share(op, layout, t, true));
  }
  // Of heads that are turned in part (latent attention's), the rest is put beside it as it is.
  constexpr std::int64_t kFlopsTurned = 3;
  std::int64_t copied = 0;
  if (*part == Part::rotary) {
    const std::int64_t turned = std::min(results, work.forward.flops.value / kFlopsTurned);
    copied = checked_multiply(results - turned, 2 * width, op.name);
    results = turned;
  }
  // Passes over elements, whatever they are parts of.
  work.forward.kernel = work.input_gradient.kernel = Kernel::any;
  work.forward.bytes = Bytes(checked_multiply(results, traffic.forward, op.name) + copied);
  if (work.input_gradient.kind != WorkKind::none)
    work.input_gradient.bytes = Bytes(checked_multiply(results, traffic.backward, op.name) + copied);
  // The weight's gradient is among them.
  work.weight_gradient = {};
}

// Plan::fused_experts: the product writes gate and up, which the backward pass reads, and beside them their
// activation as the next product reads it, by rows and by columns; backward the product that makes the
// activation's gradient reads gate and up and writes their gradient so, and not the activation's. What they
// are multiplied with next is not cast again. One kernel computes all groups, and loads behind its own
// arithmetic as that of a batch does (Transformer Engine, ops/fused/forward_grouped_mlp.py).
void set_fused_experts(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                       OperatorWork& work) {
  if (!layout.degrees.fuses_experts || !is_routed(op)) return;
  const bool narrow = bits_of(plan.precision) < bits_of(activation_dtype(plan));
  if (op.weight_is_operand) {
    for (Work* each : {&work.forward, &work.input_gradient}) {
      for (Gemm& gemm : each->gemms) gemm.batch_in_m = false;
    }
  }
  if (op.weight_is_operand && op.split == Split::row) {
    work.forward.scaling = Scaling::done;
  } else if (op.weight_is_operand && op.split == Split::column) {
    work.input_gradient.scaling = Scaling::done;
  } else if (op.forward.kernel == Kernel::activation) {
    const auto bytes = [&](std::uint32_t t, bool is_output, DType dtype, std::int64_t copies) {
      const Tensor& tensor = model.tensors[t];
      const std::int64_t elements =
          scaled(element_count(tensor.shape, tensor.name), seen_share(op, layout, t, is_output));
      return size_of(elements, dtype, tensor.name) * copies;
    };
    const DType kept = activation_dtype(plan), made = narrow ? plan.precision : kept;
    const std::int64_t copies = narrow ? 2 : 1;
    const std::uint32_t in = op.inputs.front(), out = op.outputs.front();
    work.forward.kernel = work.input_gradient.kernel = Kernel::any;
    work.forward.bytes = bytes(out, true, made, copies);
    work.input_gradient.bytes = bytes(in, false, kept, 1) + bytes(in, false, made, copies);
    work.input_gradient.bytes = work.input_gradient.bytes - bytes(out, true, kept, 1);
  }
}

// What gpt-oss's experts do beside their products Megatron-Core leaves to PyTorch, operator by operator.
// Clamps of the two halves of gate and up, which are put together again (weighted_bias_quick_geglu_impl of
// fused_bias_geglu.py): all is read and written twice; backward comparisons make masks of a byte, one of the
// gate and two of its factor that become one, by which gradients are selected, and the halves' are put
// together. Biases by the tokens' weights in fp32 (_apply_bias of experts.py): their product is written,
// added to the result, experts are put together, and the sum is cast; backward the gradient is widened and
// cast for the rows, multiplied and summed for biases and for weights, and experts' rows are put together.
// Compilers, and the fused experts of Transformer Engine under a graph of the whole step, fold both into the
// products.
void set_pass_traffic(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                      OperatorWork& work) {
  const bool clamps = op.type == kClampGate;
  if (!clamps && op.type != kAddExpertBias) return;
  if (layout.degrees.folds_passes) {
    work.forward = work.input_gradient = {};
    return;
  }
  constexpr std::int64_t kBits = 8, kWide = 4, kMask = 1;
  const std::int64_t width = bits_of(activation_dtype(plan)) / kBits;
  const Tensor& rows_of = model.tensors[op.outputs.front()];
  const std::int64_t elements =
      scaled(element_count(rows_of.shape, rows_of.name), seen_share(op, layout, op.outputs.front(), false));
  // Per two elements, one of the gate and one of its factor; per element of biases.
  const std::int64_t compare = width + kMask, select = kMask + 2 * width, join = 2 * width;
  const std::int64_t cast = width + kWide;
  const std::int64_t forward = clamps ? 4 * join : kWide + (width + 2 * kWide) + 2 * kWide + cast;
  const std::int64_t backward =
      clamps ? 3 * compare + 3 * kMask + 2 * select + 2 * join : 2 * cast + 2 * (3 * kWide) + join;
  const std::int64_t pairs = clamps ? elements / 2 : elements;
  work.forward.bytes = Bytes(checked_multiply(pairs, forward, op.name));
  work.input_gradient.bytes = Bytes(checked_multiply(pairs, backward, op.name));
}

// What an exchange of tokens with experts has on this rank on either side, in bytes.
struct ExchangedBytes {
  double tokens = 0, rows = 0;  // rows: of experts
};
ExchangedBytes exchanged_bytes(const Model& model, const Operator& op, const Layout& layout,
                               const Plan& plan) {
  const auto bytes = [&](std::uint32_t t, bool is_output) {
    const Tensor& tensor = model.tensors[t];
    const std::int64_t elements =
        scaled(element_count(tensor.shape, tensor.name), seen_share(op, layout, t, is_output));
    return static_cast<double>(size_of(elements, activation_dtype(plan), tensor.name).value);
  };
  const double from = bytes(op.inputs.front(), false), to = bytes(op.outputs.front(), true);
  return op.exchange == Exchange::dispatch ? ExchangedBytes{from, to} : ExchangedBytes{to, from};
}

// Each way and in each pass tokens are copied into the order of their experts, or back, at the side that has
// them together: a read of the one, a write of the other. What is sent per expert is put in order before it
// leaves, and arrives rank by rank: a rank with several experts puts it in order again, all copies read and
// written (Megatron-Core, token_dispatcher.py, sort_chunks_by_idxs). What is sent once per rank is put in
// order where it arrives alone (the same file's DeepEP and HybridEP). Gradients go the same ways back and
// read nothing of the forward pass.
void set_permutation_traffic(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                             OperatorWork& work) {
  if (plan.expert == 1 || op.exchange == Exchange::none || op.forward.kernel != Kernel::permute) return;
  if (dispatches_on_rank(plan.expert_dispatch)) return;
  const bool to_experts = op.exchange == Exchange::dispatch;
  const auto [tokens, copies] = exchanged_bytes(model, op, layout, plan);
  double moved = copies + tokens;
  const ExpertRouting routing = expert_routing(plan, model.facts, to_experts);
  if (routing.experts > 0) {
    moved = copies + tokens * expected_blocks(routing, plan.expert);
  } else if (model.facts.experts > plan.expert) {
    const Share& load = layout.degrees.load;
    moved += 2 * copies * static_cast<double>(load.part) / static_cast<double>(load.of);
  }
  work.forward.bytes = rounded(moved);
  if (work.input_gradient.kind != WorkKind::none) work.input_gradient.bytes = rounded(moved);
}

// Passes over an expert's rows: tokens are repeated, and gathered in the order of their experts; results are
// gathered in the tokens' order, and added up. Backward, rows' gradients are gathered and added up; of
// results that were added up the gradient is spread over the rows, multiplied with them for the weights'
// gradient, for which they are gathered again, and gathered itself (MaxText, moe.py: permute, unpermute,
// _sort_activations_custom).
void set_sorted_traffic(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                        OperatorWork& work) {
  if (plan.expert_dispatch != ExpertDispatch::sorted || op.exchange == Exchange::none) return;
  if (op.forward.kernel != Kernel::permute) return;
  const bool to_experts = op.exchange == Exchange::dispatch;
  const auto [tokens, rows] = exchanged_bytes(model, op, layout, plan);
  constexpr double kGathered = 2, kMade = 1, kAdded = 1, kOfWeights = 1;
  const double there = kMade + kGathered, back = kGathered + kAdded;
  const double of_results = kMade + kGathered + kOfWeights + kGathered;
  work.forward.bytes = rounded(tokens + rows * (to_experts ? there : back));
  if (work.input_gradient.kind != WorkKind::none)
    work.input_gradient.bytes = rounded(tokens + rows * (to_experts ? back : of_results));
}

// Masks of zeros and ones that say which token is which row of an expert, for every sequence apart: rows are
// products of a mask and tokens, the way back is weighted by the mask's numbers, which are the tokens'
// weights and have gradients (MaxText, moe.py, dense_matmul: BSM,BSEC->EBCM and EBCM,BSEC->BSM). A mask is
// read as often as there are products of it; how it is made is not modelled.
void set_one_hot_work(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                      OperatorWork& work) {
  if (plan.expert_dispatch != ExpertDispatch::one_hot || op.exchange == Exchange::none) return;
  if (op.forward.kernel != Kernel::permute) return;
  const bool to_experts = op.exchange == Exchange::dispatch;
  const std::int64_t groups = std::max<std::int64_t>(model.batch, 1);
  const auto rows_of = [&](std::uint32_t t, bool is_output) {
    const Tensor& tensor = model.tensors[t];
    const std::int64_t rows =
        element_count(tensor.shape, tensor.name) / std::max<std::int64_t>(tensor.shape.back(), 1);
    return ceil_divide(scaled(rows, seen_share(op, layout, t, is_output)), groups);
  };
  const std::uint32_t in = op.inputs.front(), out = op.outputs.front();
  const std::int64_t width = model.tensors[out].shape.back();
  const std::int64_t read = rows_of(in, false), written = rows_of(out, true);
  const auto products = [&](std::vector<Gemm> gemms) {
    Work made;
    made.kind = WorkKind::matrix;
    made.dtype = activation_dtype(plan);
    std::int64_t elements = 0;
    for (const Gemm& gemm : gemms) {
      made.flops += Flops(checked_multiply(2, gemm.macs(), op.name));
      elements += groups * (gemm.m * gemm.n + gemm.m * gemm.k + gemm.k * gemm.n);
    }
    made.bytes = size_of(elements, made.dtype, op.name);
    made.gemms = std::move(gemms);
    return made;
  };
  work.forward = products({{written, width, read, groups, false}});
  std::vector<Gemm> back = {{read, width, written, groups, false}};
  if (!to_experts) back.push_back({written, read, width, groups, false});
  if (op.needs_input_gradient) work.input_gradient = products(std::move(back));
}

}  // namespace

bool is_routed(const Operator& op) {
  return op.expert && !op.parts.has(Part::shared_experts);
}

bool may_be_narrow(const Operator& op, const Block& block, const Plan& plan, bool wide) {
  if (wide || block.kind == BlockKind::embedding || block.kind == BlockKind::head) return false;
  // Of experts the router is no product of Transformer Engine's.
  const bool routes = op.parts.has(Part::moe) && !op.expert && !op.parts.has(Part::shared_experts) &&
                      !op.parts.has(Part::latent);
  return !routes && !op.parts.has(Part::logits) && !op.parts.meets(plan.wide_modules);
}

bool can_fuse_experts(const Model& model) {
  constexpr std::int64_t kTile = 256;
  bool is_gated = false;
  for (const Operator& op : model.operators) {
    if (!is_routed(op)) continue;
    if (op.type == kAddExpertBias || op.type == kClampGate) return false;
    if (op.forward.kernel == Kernel::activation)
      is_gated = is_gated || elementwise_part(model, op) == Part::activation;
    if (op.weight_is_operand && std::ranges::any_of(op.forward.gemms, [](const Gemm& gemm) {
          return gemm.n % kTile != 0 || gemm.k % kTile != 0;
        }))
      return false;
  }
  return is_gated;
}

std::optional<Part> elementwise_part(const Model& model, const Operator& op) {
  if (op.inputs.empty() || op.outputs.empty()) return {};
  if (op.type == "RMSNorm" || op.type == "RMSNormalization" || op.type == "SimplifiedLayerNormalization")
    return Part::norm;
  if (op.forward.kernel == Kernel::rotary) return Part::rotary;
  const auto elements = [&](std::uint32_t t) {
    return element_count(model.tensors[t].shape, model.tensors[t].name);
  };
  const bool is_gated =
      op.forward.kernel == Kernel::activation && elements(op.outputs.front()) < elements(op.inputs.front());
  return is_gated ? std::optional(Part::activation) : std::nullopt;
}

bool wants_channels_last(const Operator& op, DType type) {
  const bool on_tensor_cores =
      type == DType::fp16 || type == DType::bf16 || type == DType::tf32 || type == DType::fp8;
  return on_tensor_cores && op.weight_is_operand && op.type.find("Conv") != std::string::npos &&
         std::ranges::any_of(op.forward.gemms, [](const Gemm& gemm) { return gemm.n > 1; });
}

OperatorWork shard_operator(const Model& model, const Operator& op, const Layout& layout, const Plan& plan,
                            bool narrow) {
  OperatorWork result;
  // Views cost nothing: no kernel runs.
  if (op.is_view || op.forward.kind == WorkKind::none) return result;
  for (const std::uint32_t p : op.parameters) {
    const Parameter& parameter = model.parameters[p];
    if (parameter.trainable)
      result.weight_elements =
          checked_add(result.weight_elements, local_elements(model, layout, op, parameter), parameter.name);
  }
  const Work forward = shard_forward(model, op, layout, result.parameters);
  const Bytes outputs = output_bytes(model, op, layout);
  const auto finish = [&](Work work) {
    return work.kind == WorkKind::none
               ? work
               : in_precision(std::move(work), op, plan, narrow, result.weight_elements);
  };
  result.forward = finish(forward);
  result.input_gradient = finish(input_gradient(op, forward, outputs));
  result.weight_gradient = finish(weight_gradient(op, forward, outputs, result.weight_elements > 0));
  // Changing the precision changed the bytes; the weights' part changes in the same ratio.
  if (forward.bytes.value > 0) {
    result.parameters =
        rounded(static_cast<double>(result.parameters.value) *
                static_cast<double>(result.forward.bytes.value) / static_cast<double>(forward.bytes.value));
  }
  set_transposes(model, op, layout, plan, result);
  set_loss_traffic(model, op, layout, plan, result);
  set_softmax_traffic(model, op, layout, plan, result);
  set_elementwise_traffic(model, op, layout, plan, result);
  set_permutation_traffic(model, op, layout, plan, result);
  set_sorted_traffic(model, op, layout, plan, result);
  set_one_hot_work(model, op, layout, plan, result);
  set_pass_traffic(model, op, layout, plan, result);
  set_fused_experts(model, op, layout, plan, result);
  return result;
}

// Equal pieces only, so that all of them are one entry in the table of works.
bool can_cut(const Work& work, std::int64_t pieces) {
  return !work.gemms.empty() && work.flops.value % pieces == 0 &&
         std::all_of(work.gemms.begin(), work.gemms.end(),
                     [&](const Gemm& gemm) { return gemm.m >= pieces && gemm.m % pieces == 0; });
}

Work cut(const Work& work, Bytes parameters, std::int64_t pieces) {
  Work piece = work;
  for (Gemm& gemm : piece.gemms) gemm.m /= pieces;
  piece.flops = work.flops / pieces;
  // Every piece reads the whole weight, but only its own tokens.
  piece.bytes = parameters + (work.bytes - std::min(parameters, work.bytes)) / pieces;
  return piece;
}

Work columns_of(const Work& work, Share share) {
  Work part = work;
  for (Gemm& gemm : part.gemms) gemm.n = scaled(gemm.n, share);
  part.flops = Flops(scaled(work.flops.value, share));
  part.bytes = Bytes(scaled(work.bytes.value, share));
  return part;
}

Work ring_step(const Work& work, std::int64_t steps, bool fused) {
  Work step = work;
  for (Gemm& gemm : step.gemms) {
    // Scores have the keys as columns, the weighted sum adds over them, gradients have them as rows:
    // whichever it is, keys outnumber the elements of a head.
    std::int64_t& keys =
        gemm.n >= gemm.k ? (gemm.n >= gemm.m ? gemm.n : gemm.m) : (gemm.k >= gemm.m ? gemm.k : gemm.m);
    keys = ceil_divide(keys, steps);
  }
  step.flops = Flops(ceil_divide(work.flops.value, steps));
  if (!fused) step.bytes = Bytes(ceil_divide(work.bytes.value, steps));
  return step;
}

Work accumulation(std::int64_t elements, const Plan& plan) {
  // Unknown types follow the plan: gradients are kept like weights, and weights like activations.
  const DType fresh = plan.weight_dtype == DType::unknown ? activation_dtype(plan) : plan.weight_dtype;
  const DType kept = plan.gradient_dtype == DType::unknown ? fresh : plan.gradient_dtype;
  Work work;
  work.kind = WorkKind::vector;
  work.dtype = kept;
  // One addition per element: the fresh gradient is read, the sum read and written.
  work.flops = Flops(elements);
  work.bytes = size_of(elements, fresh, "plan") + size_of(elements, kept, "plan") * 2;
  return work;
}

}  // namespace armilla
