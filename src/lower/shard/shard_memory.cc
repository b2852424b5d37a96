#include "lower/shard/shard_memory.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/sorted.h"
#include "lower/shard/shard_conversion.h"
#include "lower/shard/shard_pass.h"
#include "lower/shard/shard_recompute.h"
#include "lower/shard/shard_work.h"
#include "lower/shard/weight_types.h"

namespace armilla {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// What a block keeps for its backward pass.
struct Kept {
  std::vector<std::uint32_t> tensors;  // as they are
  // As the copies that products in 8 bits or fewer read: of Transformer Engine's no other is kept. One for
  // each product: each makes its own.
  std::vector<std::uint32_t> narrow;

  void remove(const std::vector<std::uint32_t>& freed) {
    for (std::vector<std::uint32_t>* const kept : {&tensors, &narrow})
      std::erase_if(*kept, [&](std::uint32_t t) { return std::ranges::find(freed, t) != freed.end(); });
  }
  bool holds(std::uint32_t t) const { return std::ranges::binary_search(tensors, t); }
};

bool is_fused_attention(const Operator& op) {
  return op.core_attention && op.repeated_forward > 0;
}

// The tensors that a block's backward pass reads and the operators `counts` of them leave to it; `narrows`:
// whether an operator is such a product of an input.
template <class Counts, class Narrows>
void mark_saved(const Model& model, const Block& block, const Layout& layout, bool fuses,
                const Counts& counts, const Narrows& narrows, Kept& kept) {
  std::vector<std::uint32_t>& saved = kept.tensors;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    if (op.is_view || !counts(op)) continue;
    if (fuses && op.forward.kernel == Kernel::loss) {
      // The probabilities are made of the logits again.
      saved.push_back(layout.owner[op.inputs.front()]);
    } else if (op.saves == Saves::inputs) {
      // A view has no memory of its own: what is kept is its owner's.
      for (const std::uint32_t t : op.inputs) {
        const std::uint32_t owner = layout.owner[t];
        (narrows(op, owner) ? kept.narrow : saved).push_back(owner);
      }
      // And its result, of which it makes the gradient of the scores.
      if (is_fused_attention(op)) saved.push_back(layout.owner[op.outputs.front()]);
    } else if (op.saves == Saves::output) {
      for (const std::uint32_t t : op.outputs) saved.push_back(layout.owner[t]);
    } else if (op.saves == Saves::mask) {
      saved.push_back(layout.owner[op.outputs.back()]);
    }
  }
}

// Results of one product are parts of one tensor: queries and keys that were turned into tensors of their own
// stay as long as the values beside them do.
void mark_other_parts(const Model& model, const Block& block, const Layout& layout,
                      std::vector<std::uint32_t>& saved) {
  const auto is_saved = [&](std::uint32_t t) {
    return std::ranges::find(saved, layout.owner[t]) != saved.end();
  };
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    if (!op.weight_is_operand || op.outputs.size() < 2 || std::ranges::none_of(op.outputs, is_saved))
      continue;
    for (const std::uint32_t t : op.outputs) saved.push_back(layout.owner[t]);
  }
}

// Parts that are computed again keep what they read and did not make, but for what has no gradient (masks,
// position biases), although no operator outside of them may save it.
template <class Narrows>
void mark_around_parts(const Model& model, const Block& block, const Layout& layout, bool fuses, Parts parts,
                       const Narrows& narrows, Kept& kept) {
  const auto is_repeated = [&](const Operator& op) { return times_repeated(op, parts) > 0; };
  mark_saved(
      model, block, layout, fuses, [&](const Operator& op) { return !is_repeated(op); }, narrows, kept);
  std::vector<std::uint32_t> made, freed;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    if (!is_repeated(op)) continue;
    for (const std::uint32_t t : op.inputs) {
      const bool outside = std::ranges::find(made, layout.owner[t]) == made.end();
      if (outside && layout.derived[t] && !layout.positional[t] && is_floating(model.tensors[t].dtype))
        kept.tensors.push_back(layout.owner[t]);
    }
    for (const std::uint32_t t : op.outputs) {
      made.push_back(layout.owner[t]);
      if (frees_results(op, parts) && layout.owner[t] == t) freed.push_back(t);
    }
  }
  kept.remove(freed);
}

// `shares`: results of a product are parts of one tensor.
template <class Narrows>
Kept saved_tensors(const Model& model, const Block& block, const Layout& layout, bool fuses, bool shares,
                   Recompute recompute, Parts parts, const Narrows& narrows) {
  Kept kept;
  std::vector<std::uint32_t>& saved = kept.tensors;
  if (recompute == Recompute::none || !can_recompute(block)) {
    mark_saved(
        model, block, layout, fuses, [](const Operator&) { return true; }, narrows, kept);
  } else if (recompute == Recompute::selective) {
    mark_around_parts(model, block, layout, fuses, parts, narrows, kept);
  } else {
    // Others keep what comes from outside: everything read that the block did not make.
    std::vector<std::uint32_t> made;
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      const Operator& op = model.operators[i];
      for (const std::uint32_t t : op.inputs) {
        if (std::find(made.begin(), made.end(), t) == made.end()) saved.push_back(layout.owner[t]);
      }
      made.insert(made.end(), op.outputs.begin(), op.outputs.end());
    }
    Block outside = block;
    outside.first = recompute == Recompute::full ? end_of_checkpoint(model, block) : block.end;
    mark_saved(
        model, outside, layout, fuses, [](const Operator&) { return true; }, narrows, kept);
  }
  if (shares) mark_other_parts(model, block, layout, saved);
  // A tensor that several operators save is in memory once.
  sort_unique(saved);
  std::ranges::sort(kept.narrow);
  return kept;
}

// The result of attention, which is kept for attention's own backward pass: but for delayed scaling, the
// projection behind it keeps that in place of a copy (Megatron-Core's set_save_original_input).
std::vector<bool> kept_by_projections(const Model& model, const Layout& layout, const Plan& plan) {
  std::vector<bool> found(model.tensors.size());
  if (plan.precision == DType::fp8 && plan.scaling == Scaling::delayed) return found;
  for (const Operator& op : model.operators) {
    if (!op.core_attention) continue;
    for (const std::uint32_t t : op.outputs) found[layout.owner[t]] = true;
  }
  return found;
}

// Bits of an element of a copy that is kept, with its part of a scale: a byte for 32 elements in blocks
// (OCP Microscaling Formats, MXFP8), for 16 of NVFP4.
double bits_of_copies(const Plan& plan) {
  constexpr double kScale = 8, kBlock = 32, kNarrowBlock = 16;
  const double bits = bits_of(plan.precision);
  if (plan.precision == DType::fp4) return bits + kScale / kNarrowBlock;
  return plan.scaling == Scaling::block ? bits + kScale / kBlock : bits;
}

bool fuses_loss(const Plan& plan) {
  if (plan.framework == Framework::megatron) return plan.loss == LossKernel::fused;
  return loss_kernel_of(plan) == LossKernel::fused;
}

bool fuses_kernels(const Plan& plan) {
  return plan.framework == Framework::pytorch && plan.host == Host::compiled;
}

// torch.compile's: results of norms and activations, which cost little, are made again from what these keep
// (Inductor's min-cut partitioner).
std::vector<bool> made_again(const Model& model, const Layout& layout, const Plan& plan) {
  std::vector<bool> found(model.tensors.size());
  if (!fuses_kernels(plan)) return found;
  for (const Operator& op : model.operators) {
    if (op.forward.kernel != Kernel::norm && op.forward.kernel != Kernel::activation) continue;
    for (const std::uint32_t t : op.outputs) found[layout.owner[t]] = true;
  }
  return found;
}

// In the logits' type.
bool keeps_narrow_probabilities(const Plan& plan) {
  return plan.framework == Framework::pytorch && loss_kernel_of(plan) == LossKernel::narrow;
}

std::vector<bool> narrow_probabilities(const Model& model, const Plan& plan) {
  std::vector<bool> found(model.tensors.size());
  if (!keeps_narrow_probabilities(plan)) return found;
  for (const Operator& op : model.operators) {
    if (op.forward.kernel == Kernel::loss) found[op.outputs.back()] = true;
  }
  return found;
}

// A gated activation in two kernels keeps what lies between them: silu(gate) beside gate and up. A norm
// keeps its input in fp32, and what its weight multiplies.
Bytes kept_between_kernels(const Model& model, const Block& block, const Layout& layout, const Plan& plan) {
  Bytes sum;
  const Parts fused = fused_elementwise_of(plan);
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    const auto part = elementwise_part(model, op);
    if (!part || fused.has(*part)) continue;
    if (*part == Part::activation)
      sum += local_bytes(model, layout, op.outputs[0], false, activation_dtype(plan));
    if (*part == Part::norm) sum += local_bytes(model, layout, op.inputs[0], false, DType::fp32);
  }
  return sum;
}

}  // namespace

bool runs_operator_by_operator(const Plan& plan) {
  return plan.framework == Framework::pytorch && plan.host != Host::compiled;
}

bool can_recompute(const Block& block) {
  // Recomputing the embedding would save nothing, and the head's backward pass follows its forward pass at
  // once.
  return block.kind != BlockKind::embedding && block.kind != BlockKind::head;
}

std::vector<Bytes> boundary_bytes(const Model& model, const std::vector<Block>& blocks, const Layout& layout,
                                  const Plan& plan) {
  // The block in which each tensor is made, and the last one that reads it, itself or through a view.
  std::vector<std::uint32_t> made(model.tensors.size(), kNone), read(model.tensors.size(), 0);
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    for (std::uint32_t i = blocks[b].first; i < blocks[b].end; ++i) {
      for (const std::uint32_t t : model.operators[i].inputs) read[layout.owner[t]] = b;
      for (const std::uint32_t t : model.operators[i].outputs) {
        if (layout.owner[t] == t) made[t] = b;
      }
    }
  }
  std::vector<Bytes> across(blocks.size() + 1);
  for (std::uint32_t t = 0; t < model.tensors.size(); ++t) {
    if (made[t] == kNone || !layout.derived[t] || read[t] <= made[t]) continue;
    // A tensor crosses every border from its maker to its last reader. Differences first, their running sum
    // after: linear in tensors and blocks, however far skip connections reach.
    const Bytes bytes = local_bytes(model, layout, t, false, activation_dtype(plan));
    across[made[t] + std::size_t{1}] += bytes;
    across[read[t] + std::size_t{1}] -= bytes;
  }
  for (std::size_t b = 1; b < across.size(); ++b) across[b] += across[b - 1];
  return across;
}

std::vector<BlockMemory> block_memory(const Model& model, const std::vector<Block>& blocks,
                                      const Layout& layout, const Plan& plan, Recompute recompute,
                                      const std::vector<bool>& wide) {
  const DType floats = activation_dtype(plan);
  std::vector<std::uint32_t> made(model.tensors.size(), kNone);
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    for (std::uint32_t i = blocks[b].first; i < blocks[b].end; ++i) {
      for (const std::uint32_t t : model.operators[i].outputs) made[t] = b;
    }
  }
  // A tensor that several blocks keep is charged once: to the first reader outside of the maker's block that
  // keeps it, and to its maker only where no one else does. At a stage border it is the reader's, who
  // received it.
  const bool fuses = fuses_loss(plan), shares = runs_operator_by_operator(plan);
  const std::vector<bool> narrow = narrow_probabilities(model, plan);
  const std::vector<bool> cheap = made_again(model, layout, plan);
  // Float8Linear of torchao keeps the wide input and casts it again.
  const bool keeps_copies =
      plan.framework == Framework::megatron && bits_of(plan.precision) < bits_of(floats);
  const std::vector<bool> stays_wide = kept_by_projections(model, layout, plan);
  std::vector<bool> counted(model.tensors.size());
  std::vector<std::pair<std::uint32_t, Bytes>> own;  // kept by the block that made them
  std::vector<BlockMemory> memory(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    std::vector<std::uint32_t> gathered;
    for (const Entry& entry : entries(model, layout, blocks[b].first, blocks[b].end, floats)) {
      if (keeps_gathered(entry)) gathered.push_back(entry.tensor);
    }
    const auto bytes_of = [&](std::uint32_t t) {
      const bool whole = std::find(gathered.begin(), gathered.end(), t) != gathered.end();
      const Bytes bytes =
          whole ? whole_bytes(model, layout, t, floats) : local_bytes(model, layout, t, false, floats);
      return narrow[t] ? bytes * bits_of(floats) / bits_of(DType::fp32) : bytes;
    };
    // What was gathered of it is no kernel's to make.
    const auto is_made_again = [&](std::uint32_t t) {
      return cheap[t] && made[t] == b && std::find(gathered.begin(), gathered.end(), t) == gathered.end();
    };
    const bool by_operator = recompute == Recompute::operators && can_recompute(blocks[b]);
    const auto narrows = [&](const Operator& op, std::uint32_t t) {
      return keeps_copies && !stays_wide[t] && op.weight_is_operand &&
             may_be_narrow(op, blocks[b], plan, wide[b]);
    };
    const auto copies_of = [&](const std::vector<std::uint32_t>& tensors) {
      Bytes sum;
      for (const std::uint32_t t : tensors)
        sum += Bytes(
            std::llround(static_cast<double>(bytes_of(t).value) * bits_of_copies(plan) / bits_of(floats)));
      return sum;
    };
    const Kept kept =
        saved_tensors(model, blocks[b], layout, fuses, shares, recompute, plan.recompute_modules, narrows);
    memory[b].saved += copies_of(kept.narrow);
    for (const std::uint32_t t : kept.tensors) {
      if (is_made_again(t) && !by_operator) continue;
      if (made[t] == b) {
        own.emplace_back(t, bytes_of(t));
      } else if (!counted[t]) {
        memory[b].saved += bytes_of(t);
        counted[t] = true;
      }
    }
    std::vector<KeptResult> results;  // that are kept beside
    if (by_operator) results = repeated_operators(model, blocks[b], layout, floats, fuses_kernels(plan)).kept;
    for (const KeptResult& result : results) {
      if (!kept.holds(result.tensor))
        memory[b].saved += Bytes(scaled(bytes_of(result.tensor).value, result.share));
    }
    const bool whole = by_operator || (recompute == Recompute::full && can_recompute(blocks[b]));
    (whole ? memory[b].restored : memory[b].saved) += kept_between_kernels(model, blocks[b], layout, plan);
    if (recompute == Recompute::none || !can_recompute(blocks[b])) continue;
    // What recompute brings back for the backward pass of one block at a time: a temporary, not kept between
    // passes.
    const Kept all = saved_tensors(model, blocks[b], layout, fuses, shares, Recompute::none, {}, narrows);
    std::vector<std::uint32_t> more;
    std::ranges::set_difference(all.narrow, kept.narrow, std::back_inserter(more));
    memory[b].restored += copies_of(more);
    for (const std::uint32_t t : all.tensors) {
      if (is_made_again(t) || kept.holds(t)) continue;
      memory[b].restored += bytes_of(t);
      const auto result = std::ranges::find(results, t, &KeptResult::tensor);
      if (result != results.end()) memory[b].restored -= Bytes(scaled(bytes_of(t).value, result->share));
    }
  }
  for (const auto& [t, bytes] : own) {
    if (!counted[t]) memory[made[t]].saved += bytes;
  }
  return memory;
}

namespace {

// What a loss leaves to its backward pass, which frees it: probabilities, or the logits of one that
// makes them again.
Bytes kept_by_loss(const Model& model, const Operator& op, const Layout& layout, const Plan& plan) {
  const DType floats = activation_dtype(plan);
  if (fuses_loss(plan)) return local_bytes(model, layout, op.inputs.front(), false, floats);
  const Bytes wide = local_bytes(model, layout, op.outputs.back(), false, floats);
  return keeps_narrow_probabilities(plan) ? wide * bits_of(floats) / bits_of(DType::fp32) : wide;
}

// Beside the fp32 probabilities, which are kept: Megatron's kernel makes their gradient where they are, so
// that there are the logits before and their gradient after; compiled it also makes the exponentials in an
// array of their own (fused_cross_entropy.py), and Transformer Engine's makes the gradient where the logits
// are, which are kept. Operator by operator two gradients in fp32, of the probabilities and of what they
// were made from (the logits themselves are gone by then), over parts of the vocabulary three, a one-hot one,
// the exponentials and their sum (torch.distributed's loss_parallel); in the logits' type the caller's logits
// are there, too. A loss that is one operation to autograd makes the gradient where the probabilities are, of
// fp32 logits (nanotron's _ShardedCrossEntropy). A compiled loss keeps the logits: beside them is their
// gradient.
Bytes loss_working_set(const Model& model, const Operator& op, const Layout& layout, const Plan& plan) {
  constexpr std::int64_t kWide = 32;
  const Bytes wide = local_bytes(model, layout, op.outputs.back(), false, activation_dtype(plan));
  const Bytes logits = wide * bits_of(activation_dtype(plan)) / kWide;
  if (plan.framework == Framework::megatron) {
    if (plan.loss == LossKernel::fused) return Bytes(0);
    return plan.loss == LossKernel::wide ? logits + wide : logits;
  }
  if (loss_kernel_of(plan) == LossKernel::fused) return logits;
  if (loss_kernel_of(plan) == LossKernel::narrow) return logits * 3;
  if (loss_kernel_of(plan) == LossKernel::in_place) return logits * 2;
  const bool over_parts =
      layout.tensors[op.inputs.front()].home == Home::divided && !gathers_logits(op, layout.degrees);
  return wide * (over_parts ? 3 : 2);
}

// WeightGroup::updated of the elements of a parameter that are on this rank: what the micro-batches of all
// replicas read, no element twice. Tables that are dealt out to expert ranks are read for the samples of all
// of them. Where gradients are divided (ZeRO-2 and 3), they are parts of one dense array.
std::int64_t updated_elements(const Operator& op, const Parameter& parameter, std::int64_t elements,
                              const Plan& plan) {
  if (op.updates == 0 || parameter.elements == 0 || plan.zero_stage > 1) return 0;
  const std::int64_t readers = op.expert ? plan.expert * plan.expert_data() : plan.data() * plan.context;
  const double of_all = static_cast<double>(elements) / static_cast<double>(parameter.elements);
  const double updated = static_cast<double>(op.updates) * static_cast<double>(readers) *
                         static_cast<double>(plan.micro_batches) * of_all;
  return updated < static_cast<double>(elements) ? static_cast<std::int64_t>(std::ceil(updated)) : elements;
}

// In bytes; 0 where nothing makes the gradient of a weight as a whole before it is added. Without
// accumulation fusion that is so. With it Megatron's own products still give autograd an array of its size
// (LinearWithGradAccumulationAndAsyncCommunication), and tables make theirs: those of embeddings and heads.
Bytes gradient_at_work(const Model& model, const Block& block, const Operator& op, const Layout& layout,
                       const Plan& plan) {
  Bytes largest;
  if (plan.accumulation_fusion && (plan.framework != Framework::megatron || can_recompute(block)))
    return largest;
  for (const std::uint32_t p : op.parameters) {
    const Parameter& parameter = model.parameters[p];
    if (!parameter.trainable) continue;
    const std::int64_t elements = local_elements(model, layout, op, parameter);
    const std::int64_t updated = updated_elements(op, parameter, elements, plan);
    largest = std::max(largest, size_of(updated > 0 ? updated : elements, weight_type(plan), parameter.name));
  }
  return largest;
}

}  // namespace

// Inputs and outputs of one operator at once, the least a kernel needs.
Bytes largest_working_set(const Model& model, const Block& block, const Layout& layout, const Plan& plan) {
  const DType floats = activation_dtype(plan);
  // FSDP exchanges a block's gradients when it has all of them.
  const bool collects = plan.framework == Framework::pytorch && plan.zero_stage >= 2;
  Bytes largest, of_loss, kept, collected;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    if (op.is_view) continue;
    if (op.forward.kernel == Kernel::loss) {
      of_loss = std::max(of_loss, loss_working_set(model, op, layout, plan));
      kept += kept_by_loss(model, op, layout, plan);
      continue;
    }
    const bool gathered = op.split != Split::tokens;
    Bytes sum;
    for (const std::uint32_t t : op.inputs) sum += local_bytes(model, layout, t, gathered, floats);
    for (const std::uint32_t t : op.outputs) sum += local_bytes(model, layout, t, gathered, floats);
    // Copies with the channels last.
    if (!plan.channels_last && wants_channels_last(op, plan.precision)) sum += sum;
    const Bytes gradient = gradient_at_work(model, block, op, layout, plan);
    if (collects) collected += gradient;
    largest = std::max(largest, collects ? sum : sum + gradient);
  }
  largest += collected;
  // Operators before a loss run when it has kept nothing yet, and back when it keeps nothing any more.
  return std::max(of_loss, largest - std::min(largest, kept));
}

// Matrices of experts are one parameter here, and a tensor each in frameworks.
std::vector<WeightTensors> tensors_of(const Operator& op, const Parameter& parameter, std::int64_t elements,
                                      const Plan& plan) {
  if (elements == 0) return {};
  const bool of_experts = op.expert && parameter.shape.size() > 1 && parameter.shape.front() >= plan.expert;
  const std::int64_t count = of_experts ? parameter.shape.front() / plan.expert : 1;
  return {{ceil_divide(elements, count), count}};
}

// Transformer Engine's products give autograd an array that nobody reads, one for all weights of a shape, as
// long as the job lives (get_dummy_wgrad, since its release 2.3). Products of one input are one there.
std::vector<Bytes> gradient_placeholders(const Model& model, const Block& block, const Layout& layout,
                                         const Plan& plan) {
  std::vector<Bytes> sizes;
  if (!plan.accumulation_fusion || plan.framework != Framework::megatron || !can_recompute(block))
    return sizes;
  std::vector<std::pair<std::uint32_t, std::int64_t>> products;  // by what they read
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    if (!op.weight_is_operand || op.inputs.empty()) continue;
    std::int64_t elements = 0;
    for (const std::uint32_t p : op.parameters) {
      const Parameter& parameter = model.parameters[p];
      if (!parameter.trainable || parameter.shape.size() < 2) continue;
      const std::vector<WeightTensors> tensors =
          tensors_of(op, parameter, local_elements(model, layout, op, parameter), plan);
      for (const WeightTensors& weight : tensors) elements += weight.elements;
    }
    const std::uint32_t input = layout.owner[op.inputs.front()];
    const auto same = std::ranges::find(products, input, &std::pair<std::uint32_t, std::int64_t>::first);
    if (same == products.end()) {
      products.emplace_back(input, elements);
    } else {
      same->second = checked_add(same->second, elements, op.name);
    }
  }
  for (const auto& [input, elements] : products)
    sizes.push_back(size_of(elements, weight_type(plan), "placeholder of a gradient"));
  sort_unique(sizes);
  return sizes;
}

std::vector<std::int64_t> parameter_uses(const Model& model, const std::vector<Block>& blocks) {
  // Counted per block: a weight used twice within one block is not shared between stages.
  std::vector<std::int64_t> uses(model.parameters.size());
  std::vector<std::uint32_t> last(model.parameters.size(), kNone);
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    for (std::uint32_t i = blocks[b].first; i < blocks[b].end; ++i) {
      for (const std::uint32_t p : model.operators[i].parameters) {
        if (last[p] != b) ++uses[p];
        last[p] = b;
      }
    }
  }
  return uses;
}

// `apart`: DistributedDataParallel buckets single parameters, so nothing is merged.
std::vector<WeightGroup> weight_groups(const Model& model, const Block& block, const Layout& layout,
                                       const std::vector<std::int64_t>& uses, bool apart, const Plan& plan) {
  std::vector<WeightGroup> groups;
  std::vector<std::uint32_t> seen;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    for (const std::uint32_t p : op.parameters) {
      const Parameter& parameter = model.parameters[p];
      if (!parameter.trainable || std::find(seen.begin(), seen.end(), p) != seen.end()) continue;
      seen.push_back(p);
      WeightGroup group;
      group.axis = op.expert ? GroupAxis::expert_data : GroupAxis::data;
      group.tied = uses[p] > 1 ? static_cast<std::int64_t>(p) : -1;
      group.elements = local_elements(model, layout, op, parameter);
      group.updated = updated_elements(op, parameter, group.elements, plan);
      // Norms, routers, whole tables and heads saw only this rank's tokens: their gradients are incomplete
      // until summed over the tensor group (Megatron's allreduce_layernorm_grads).
      group.tensor_partial = layout.degrees.sequence_parallel && !op.expert &&
                             (op.split == Split::tokens || tensor_degree(op, layout.degrees) == 1);
      if (shares_out_tensors(plan)) group.tensors = tensors_of(op, parameter, group.elements, plan);
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const WeightGroup& known) {
        return !apart && known.axis == group.axis && known.tied == group.tied &&
               known.tensor_partial == group.tensor_partial && (known.updated > 0) == (group.updated > 0);
      });
      if (same == groups.end()) {
        groups.push_back(group);
      } else {
        same->elements = checked_add(same->elements, group.elements, parameter.name);
        same->tensors.insert(same->tensors.end(), group.tensors.begin(), group.tensors.end());
        same->updated = checked_add(same->updated, group.updated, parameter.name);
      }
    }
  }
  return groups;
}

Bytes buffer_bytes(const Model& model, const Block& block, const Layout& layout, const Plan& plan) {
  Bytes sum;
  std::vector<std::uint32_t> seen;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Operator& op = model.operators[i];
    for (const std::uint32_t p : op.parameters) {
      const Parameter& parameter = model.parameters[p];
      if (parameter.trainable || std::find(seen.begin(), seen.end(), p) != seen.end()) continue;
      seen.push_back(p);
      const bool as_weight = parameter.frozen && bits_of(parameter.dtype) >= bits_of(DType::bf16) &&
                             plan.weight_dtype != DType::unknown;
      sum += size_of(local_elements(model, layout, op, parameter),
                     as_weight ? plan.weight_dtype : parameter.dtype, parameter.name);
    }
  }
  return sum;
}

}  // namespace armilla
