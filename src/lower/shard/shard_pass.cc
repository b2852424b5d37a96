#include "lower/shard/shard_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "lower/expert_exchange.h"
#include "lower/pipeline_schedule.h"
#include "lower/shard/pass_writer.h"
#include "lower/shard/shard_context.h"
#include "lower/shard/shard_conversion.h"
#include "lower/shard/shard_recompute.h"
#include "lower/shard/shard_work.h"

namespace armilla {
namespace {

// Pieces that a product and the collective beside it are cut into: Transformer Engine's for scatters, and as
// many as ranks under DTensor (_symmetric_memory).
constexpr std::int64_t kPieces = 4;
std::int64_t pieces_of(const Plan& plan) {
  return tensor_method_of(plan) == TensorMethod::megatron ? kPieces : plan.tensor;
}

constexpr int kBitsUncast = 16;  // bits of what is cast

// Traffic alone is work: a copy has bytes and no arithmetic.
bool is_nothing(const Work& work) {
  return work.kind == WorkKind::none || (work.flops.value == 0 && work.bytes.value == 0);
}

class BlockWriter {
 public:
  BlockWriter(const Model& model, const Block& block, const Plan& plan, const Layout& layout,
              ShardTables& tables, bool wide)
      : model_(model),
        block_(block),
        plan_(plan),
        layout_(layout),
        tables_(tables),
        floats_(activation_dtype(plan)),
        overlaps_(plan.overlap_tensor || schedule_of(plan).overlaps_passes),
        overlaps_gradients_((plan.overlap_tensor && layout.degrees.gathers_again) ||
                            plan.overlap_tensor_gradients),
        puts_off_(schedule_of(plan).overlaps_passes),
        pieces_(pieces_of(plan)),
        entries_(entries(model, layout, block.first, block.end, floats_)) {
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      const Operator& each = model.operators[i];
      works_.push_back(shard_operator(model, each, layout, plan, may_be_narrow(each, block, plan, wide)));
    }
    for (Entry& entry : entries_) gather_narrow(entry);
    find_runs();
  }

  Pass forward() {
    PassWriter writer(overlaps_);
    write_forward(writer, block_.end);
    return writer.take();
  }

  // All of it, or all that the backward pass reads: also what the last operator that keeps its inputs gets
  // from other ranks.
  Pass whole() {
    PassWriter writer(overlaps_);
    const std::uint32_t checkpoint = end_of_checkpoint(model_, block_);
    const std::uint32_t end =
        std::min(checkpoint, stops_early(plan_) ? end_of_what_is_read(model_, block_) : block_.end);
    write_forward(writer, end);
    if (end < checkpoint && op(end).saves == Saves::inputs) {
      capture(writer, end);
      for (const Entry& entry : entries_) {
        if (entry.first == end && entry.forward && keeps_gathered(entry))
          convert(writer, end, *entry.forward, Phase::forward);
      }
      bring_home(writer, end);
    }
    return writer.take();
  }

  // Once for every part: of checkpoints inside of each other the inner one is done again after the outer one.
  // XLA, which has no checkpoints but names of what is kept, drops also here what nobody reads.
  Pass by_part() {
    PassWriter writer(overlaps_);
    const std::uint32_t end = stops_early(plan_) ? end_of_what_is_read(model_, block_) : block_.end;
    for (std::uint32_t i = block_.first; i < end;) {
      std::uint32_t next = i + 1;
      for (std::int64_t n = times_repeated(op(i), plan_.recompute_modules); n > 0; --n) {
        gather_for(writer, i);
        next = step_forward(writer, i);
      }
      i = next;
    }
    return writer.take();
  }

  // What was gathered is gathered once for this and for the backward pass: by the latter, unless the former's
  // is kept for it.
  Pass by_operator() {
    PassWriter writer(overlaps_);
    const RepeatedOperators repeated =
        repeated_operators(model_, block_, layout_, floats_, plan_.host == Host::compiled);
    for (std::uint32_t i = block_.first; i < block_.end;) {
      capture(writer, i);
      const Share share = repeated.shares[i - block_.first];
      const bool is_whole = share.part == share.of;
      if (!layout_.degrees.gathers_again) {
        for (const Entry& entry : entries_) {
          if (entry.first == i && entry.forward && !(is_whole && gathers_in_pieces(i, entry)))
            convert(writer, i, *entry.forward, Phase::forward);
        }
      }
      if (is_whole) {
        i = step_forward(writer, i);
        continue;
      }
      if (share.part > 0) link(writer, compute(i, Phase::forward, columns_of(work(i).forward, share)));
      ++i;
    }
    return writer.take();
  }

  // Operators in reverse. Before an operator's input gradient comes what mirrors its forward exit, after it
  // what mirrors its entry; weight gradients hang beside, and those still waiting end the pass.
  Pass backward() {
    PassWriter writer(overlaps_ || overlaps_gradients_);
    for (std::uint32_t i = block_.end; i-- > block_.first;) {
      const CoreRun* run = run_of(i);
      const std::uint32_t first = run != nullptr ? run->first : i;
      capture(writer, i);
      if (run != nullptr) {
        write_run(writer, *run, true);
      } else {
        backward_operator(writer, i);
      }
      for (std::uint32_t op = i + 1; op-- > first;) leave(writer, op);
      i = first;
    }
    flush(writer);
    return writer.take();
  }

 private:
  void write_forward(PassWriter& writer, std::uint32_t end) {
    for (std::uint32_t i = block_.first; i < end;) {
      gather_for(writer, i);
      i = step_forward(writer, i);
    }
  }

  // Of an operator, but for its all-to-alls.
  void capture(PassWriter& writer, std::uint32_t i) const {
    writer.capture(op(i).parts.meets(plan_.cuda_graph_scope));
  }

  const Operator& op(std::uint32_t i) const { return model_.operators[i]; }
  const OperatorWork& work(std::uint32_t i) const { return works_[i - block_.first]; }
  std::string_view name(std::uint32_t i) const { return local_name(block_, op(i).name); }

  // Consecutive operators of the core (scores, softmax, dropout, context) form one run: keys and values go
  // around the ring once for all of them.
  void find_runs() {
    if (layout_.degrees.context == 1) return;
    for (std::uint32_t i = block_.first; i < block_.end; ++i) {
      if (!op(i).core_attention) continue;
      std::uint32_t end = i;
      while (end < block_.end && op(end).core_attention) ++end;
      runs_.push_back(core_run(model_, layout_, i, end, name(i), floats_));
      i = end;
    }
  }
  const CoreRun* run_of(std::uint32_t i) const {
    const auto found = std::find_if(runs_.begin(), runs_.end(),
                                    [&](const CoreRun& run) { return i >= run.first && i < run.end; });
    return found == runs_.end() ? nullptr : &*found;
  }

  // What is written in one step with operator i needs gathered: a run of core attention is written in one go,
  // so whatever its operators need comes before all of it.
  void gather_for(PassWriter& writer, std::uint32_t i) {
    capture(writer, i);
    const CoreRun* run = run_of(i);
    gather(writer, i, run != nullptr ? run->end - 1 : i);
  }

  // What operators first to last need gathered, but for what arrives in pieces.
  void gather(PassWriter& writer, std::uint32_t first, std::uint32_t last) {
    for (const Entry& entry : entries_) {
      if (entry.first < first || entry.first > last || !entry.forward || gathers_in_pieces(first, entry))
        continue;
      // A compiler sees that layers ask for the same.
      for (std::int64_t n = plan_.host == Host::compiled ? 1 : entry.layers; n > 0; --n)
        convert(writer, entry.first, *entry.forward, Phase::forward);
    }
  }

  PassStep compute(std::string_view step_name, Phase phase, const Work& work_of_step) {
    PassStep step;
    step.phase = phase;
    step.name = tables_.name(step_name);
    // Steps without work have no place in the tables; link() leaves them out.
    step.work = is_nothing(work_of_step) ? kNoStep : tables_.work(work_of_step);
    return step;
  }

  PassStep compute(std::uint32_t i, Phase phase, const Work& work_of_step) {
    PassStep step = compute(name(i), phase, work_of_step);
    if (is_routed(op(i)) && op(i).weight_is_operand && !layout_.degrees.fuses_experts) {
      for (const Gemm& gemm : work_of_step.gemms)
        step.products = std::max(step.products, static_cast<std::int32_t>(gemm.count));
    }
    return step;
  }

  PassStep collective(std::uint32_t i, const CollectiveStep& what, Phase phase) {
    PassStep step;
    step.kind = NodeKind::collective;
    step.phase = phase;
    step.name = tables_.name(fmt::format("{}: {}", name(i), name_of(what.kind)));
    step.collective = what.kind;
    step.axis = what.axis;
    step.bytes = what.bytes;
    return step;
  }

  // Of TensorMethod::dtensor. Collectives know one dimension, the first: they gather rank by rank, and
  // scatter likewise. Where that is not the sequence, a copy puts what was gathered into the order of
  // samples, or what is to be scattered into that of ranks (PyTorch's _functional_collectives.py, gather_dim
  // and scatter_dim). Products that overlap write and read their pieces where they belong; partial sums of
  // all ranks are added up in the end (_symmetric_memory, _fused_matmul_reduce_scatter).
  Work reordering(const CollectiveStep& what) const {
    Work work;
    const bool gathers = what.kind == CollectiveKind::all_gather;
    if (!layout_.degrees.sequence_parallel || layout_.degrees.gathers_again ||
        what.axis != GroupAxis::tensor || (!gathers && what.kind != CollectiveKind::reduce_scatter) ||
        (gathers && cuts_gathers()))
      return work;
    work.kind = WorkKind::copy;
    work.dtype = floats_;
    work.bytes = what.bytes + (plan_.overlap_tensor ? what.bytes / layout_.degrees.tensor : what.bytes);
    return work;
  }

  std::optional<PassStep> reordered(std::uint32_t i, const CollectiveStep& what, Phase phase) {
    const Work work = reordering(what);
    if (is_nothing(work)) return {};
    return along(compute(fmt::format("{}: reordering", name(i)), phase, work));
  }

  // The collective of a conversion with what it needs done before or after, and weight gradients that were
  // put off beside it.
  void convert(PassWriter& writer, std::uint32_t i, const CollectiveStep& what, Phase phase) {
    const std::optional<PassStep> order = reordered(i, what, phase);
    const bool before = what.kind == CollectiveKind::reduce_scatter && !plan_.overlap_tensor;
    if (order && before) writer.link(*order);
    if (what.kind == CollectiveKind::reduce_scatter && !layout_.degrees.gathers_again) writer.catch_up();
    communicate(writer, collective(i, what, phase));
    if (order && !before) writer.link(*order);
  }

  // Rows are cast where they are multiplied, not where they come from.
  bool is_narrow(const Work& of) const {
    return of.kind == WorkKind::matrix && of.scaling != Scaling::rows &&
           (of.dtype == DType::fp8 || of.dtype == DType::fp4) && bits_of(floats_) == kBitsUncast;
  }

  // Of a tensor in 16 bits, that is cast before it is gathered: elements and scales, and both once more where
  // rows and columns are scaled apart and both are needed. Never more than as it is.
  Bytes cast_bytes(Bytes whole, DType dtype, bool both_ways) const {
    // Of 4 bits 16 elements share a scale, of 8 under block scaling 32; a scale has 8 bits.
    const std::int64_t block = dtype == DType::fp4 ? 16 : plan_.scaling == Scaling::block ? 32 : 0;
    const std::int64_t of_32 = 32 * bits_of(dtype) + (block > 0 ? 8 * 32 / block : 0);
    const std::int64_t copies = block > 0 && both_ways ? 2 : 1;
    // A remainder is counted as it is: half a kilobyte at most, and nothing overflows.
    const std::int64_t all = 32 * kBitsUncast;
    return Bytes(std::min(whole.value, whole.value / all * of_32 * copies + whole.value % all));
  }

  // What products of 8 bits and less read is cast first and gathered so, forward and for weight gradients.
  void gather_narrow(Entry& entry) const {
    if (entry.conversion != Conversion::enter || entry.last_product == UINT32_MAX || !entry.forward ||
        entry.forward->axis != GroupAxis::tensor || !is_narrow(work(entry.first).forward) ||
        !is_narrow(work(entry.last_product).forward))
      return;
    const DType dtype = work(entry.first).forward.dtype;
    entry.forward->bytes = cast_bytes(entry.forward->bytes, dtype, false);
    if (entry.again) entry.again->bytes = cast_bytes(entry.again->bytes, dtype, false);
  }

  // Likewise gradients of what was scattered, which both gradients of the product read.
  Exit narrow_exit(std::uint32_t i) const {
    Exit exit = exit_of(model_, layout_, op(i), floats_);
    if (exit.backward && exit.backward->axis == GroupAxis::tensor && is_narrow(work(i).forward))
      exit.backward->bytes = cast_bytes(exit.backward->bytes, work(i).forward.dtype, true);
    return exit;
  }

  // Rounded up: all pieces together may be a few bytes more than the whole.
  CollectiveStep piece_of(CollectiveStep whole) const {
    whole.bytes = Bytes(ceil_divide(whole.bytes.value, pieces_));
    return whole;
  }

  // PyTorch cuts no gather of what is scaled by rows (its issue 149990).
  bool cuts_gathers() const {
    return plan_.overlap_tensor && !(plan_.precision == DType::fp8 && plan_.scaling == Scaling::rows);
  }

  // Only products whose one input arrives by this gather are cut.
  bool gathers_in_pieces(std::uint32_t i, const Entry& entry) const {
    return cuts_gathers() && entry.forward->kind == CollectiveKind::all_gather &&
           op(i).split == Split::column && op(i).inputs.size() == 1 && can_cut(work(i).forward, pieces_);
  }

  // The tokens' results come home before they are weighed and added up.
  void bring_home(PassWriter& writer, std::uint32_t i) {
    if (op(i).exchange == Exchange::combine) all_to_all(writer, i, op(i).inputs, Phase::forward, false);
  }

  // Returns the operator that comes next.
  std::uint32_t step_forward(PassWriter& writer, std::uint32_t i) {
    if (const CoreRun* run = run_of(i)) {
      write_run(writer, *run, false);
      return run->end;
    }
    const Operator& here = op(i);
    capture(writer, i);
    bring_home(writer, i);
    const Exit exit = narrow_exit(i);
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& known) {
      return known.first == i && known.forward && gathers_in_pieces(i, known);
    });
    if (entry != entries_.end()) {
      const PassStep step =
          compute(name(i), Phase::forward, cut(work(i).forward, work(i).parameters, pieces_));
      pieces_after_gather(writer, collective(i, piece_of(*entry->forward), Phase::forward), step);
    } else if (exit.forward && exit.forward->kind == CollectiveKind::reduce_scatter && plan_.overlap_tensor &&
               can_cut(work(i).forward, pieces_)) {
      const PassStep step =
          compute(name(i), Phase::forward, cut(work(i).forward, work(i).parameters, pieces_));
      pieces_before_scatter(writer, step, collective(i, piece_of(*exit.forward), Phase::forward));
      if (auto sum = reordered(i, *exit.forward, Phase::forward)) writer.link(std::move(*sum));
      return i + 1;
    } else {
      link(writer, compute(i, Phase::forward, work(i).forward));
    }
    transpose(writer, i, Phase::forward);
    if (exit.forward) convert(writer, i, *exit.forward, Phase::forward);
    if (here.exchange == Exchange::dispatch) all_to_all(writer, i, here.outputs, Phase::forward, true);
    if (is_divided_loss(model_, here, layout_)) reduce_loss(writer, i);
    return i + 1;
  }

  // By the call that launches the convolution.
  void transpose(PassWriter& writer, std::uint32_t i, Phase phase) {
    if (!is_nothing(work(i).transposes))
      link(writer, along(compute(fmt::format("{}: transposes", name(i)), phase, work(i).transposes)));
  }

  static void link(PassWriter& writer, PassStep step) {
    if (step.work != kNoStep) writer.link(std::move(step));
  }

  // One call launches all pieces, of messages and of products.
  static PassStep along(PassStep step) {
    step.along = true;
    return step;
  }

  // A product's piece starts once the tokens it works on are there. Returns the last gather.
  std::uint32_t pieces_after_gather(PassWriter& writer, const PassStep& gather,
                                    const PassStep& product) const {
    std::uint32_t gathered = writer.chain(), computed = kNoStep;
    for (std::int64_t p = 0; p < pieces_; ++p)
      gathered = writer.free(p == 0 ? gather : along(gather), {gathered});
    // Gathers follow each other, so their indices are consecutive and a product's piece finds its own by
    // counting.
    const auto first = gathered - static_cast<std::uint32_t>(pieces_ - 1);
    for (std::uint32_t piece = first; piece <= gathered; ++piece)
      computed = writer.free(along(product), {piece, computed});
    writer.set_chain(computed);
    return gathered;
  }

  // The mirror image: a piece's partial sums are scattered while the next piece is computed; scatters keep
  // their order.
  void pieces_before_scatter(PassWriter& writer, const PassStep& product, const PassStep& scatter) const {
    std::uint32_t computed = writer.chain(), scattered = kNoStep;
    for (std::int64_t p = 0; p < pieces_; ++p) {
      computed = writer.free(p == 0 ? product : along(product), {computed});
      scattered = writer.free(along(scatter), {computed, scattered});
    }
    writer.set_chain(scattered);
  }

  void write_run(PassWriter& writer, const CoreRun& run, bool backward) {
    // Under all-to-all a rank computes whole heads over all tokens, so its work is not cut into steps.
    const bool ring = !layout_.degrees.all_to_all_context;
    const std::int64_t steps = layout_.degrees.context;
    const auto step = [&](std::uint32_t i) {
      const Work& whole = backward ? work(i).input_gradient : work(i).forward;
      return compute(name(i), backward ? Phase::input_gradient : Phase::forward,
                     ring ? ring_step(whole, steps, run.end - run.first == 1) : whole);
    };
    if (backward) flush(writer);
    if (ring) {
      write_ring(writer, tables_, run, steps, backward, step);
    } else {
      write_all_to_all(writer, tables_, run, backward, step);
    }
  }

  void all_to_all(PassWriter& writer, std::uint32_t i, const std::vector<std::uint32_t>& tensors, Phase phase,
                  bool to_experts) {
    if (layout_.degrees.expert == 1) return;
    // Bytes are those of an even load; the routing or the uneven collective of the plan shifts them between
    // ranks.
    Degrees even = layout_.degrees;
    even.load = {};
    // What is sent once per rank is put in order for its experts where it arrives.
    const ExpertRouting routing = expert_routing(plan_, model_.facts, to_experts);
    if (routing.experts > 0) even.capacity = {};
    Bytes bytes;
    for (const std::uint32_t t : tensors) {
      const Tensor& tensor = model_.tensors[t];
      // Gates and indices travel with the tokens and are small; only floating activations at experts are
      // counted.
      if (!layout_.tensors[t].expert || !is_floating(tensor.dtype)) continue;
      const Share share = token_share(true, false, even);
      bytes += exchanged_bytes(scaled(element_count(tensor.shape, tensor.name), share), plan_, model_.facts,
                               to_experts, tensor.name);
    }
    if (bytes.value == 0) return;
    PassStep step = collective(i, {CollectiveKind::all_to_all, GroupAxis::expert, bytes}, phase);
    step.custom = tables_.all_to_all(bytes, to_experts);
    step.routing = routing;
    step.counted_on_device = to_experts && phase == Phase::forward && plan_.expert_capacity == 0;
    step.processors = exchange_processors(plan_, model_.facts);
    // Graphs of what comes before and after end here.
    const bool captured = writer.capture(plan_.cuda_graph_scope.has(Part::moe_layer));
    communicate(writer, std::move(step));
    writer.capture(captured);
  }

  // Weight gradients that were put off run beside what comes now.
  void communicate(PassWriter& writer, PassStep step) {
    writer.link(std::move(step));
    if (puts_off_) flush(writer);
  }

  void reduce_loss(PassWriter& writer, std::uint32_t i) {
    const auto logits = std::find_if(op(i).inputs.begin(), op(i).inputs.end(), [&](std::uint32_t t) {
      return layout_.tensors[t].home == Home::divided;
    });
    const Tensor& tensor = model_.tensors[*logits];
    // The last dimension is the vocabulary, so what is left are tokens: one number of 4 bytes for each.
    const std::int64_t vocabulary = std::max<std::int64_t>(tensor.shape.empty() ? 1 : tensor.shape.back(), 1);
    const std::int64_t tokens =
        scaled(element_count(tensor.shape, tensor.name) / vocabulary, layout_.degrees.sequence);
    const Bytes bytes = size_of(tokens, DType::fp32, tensor.name);
    for (const std::string_view what : {"largest logit", "label's logit", "sum of exponentials"}) {
      PassStep step = collective(i, {CollectiveKind::all_reduce, GroupAxis::tensor, bytes}, Phase::forward);
      step.name = tables_.name(fmt::format("{}: all-reduce of the {}", name(i), what));
      writer.link(std::move(step));
    }
  }

  void backward_operator(PassWriter& writer, std::uint32_t i) {
    const Operator& here = op(i);
    const Phase phase = here.needs_input_gradient ? Phase::input_gradient : Phase::weight_gradient;
    // Between an entry's first gradient and its last product the input gradient's reduction is still to come:
    // weight gradients wait, so that they can run beside it.
    const bool enters = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.backward && entry.last_product != UINT32_MAX && i >= entry.first_gradient &&
             i <= entry.last_product;
    });
    // Whatever was held back for an earlier entry is issued before work that belongs to none.
    if (!enters && !puts_off_) flush(writer);
    const Exit exit = narrow_exit(i);
    const bool in_pieces = exit.backward && plan_.overlap_tensor && can_cut(work(i).input_gradient, pieces_);
    if (exit.backward && !in_pieces) convert(writer, i, *exit.backward, phase);
    if (here.exchange == Exchange::dispatch)
      all_to_all(writer, i, here.outputs, Phase::input_gradient, false);
    const std::uint32_t regathered = gather_again(writer, i);
    transpose(writer, i, phase);
    std::uint32_t gradient = writer.chain();
    if (in_pieces) {
      const PassStep step =
          compute(name(i), Phase::input_gradient, cut(work(i).input_gradient, work(i).parameters, pieces_));
      gradient = pieces_after_gather(writer, collective(i, piece_of(*exit.backward), phase), step);
    } else {
      link(writer, compute(i, Phase::input_gradient, work(i).input_gradient));
    }
    pending_.push_back({i, regathered, gradient});
    // With overlap, leave() issues them once the reduction that they run beside is issued.
    if (!puts_off_ && (!enters || !overlaps_gradients_)) flush(writer);
    if (here.exchange == Exchange::combine) all_to_all(writer, i, here.inputs, Phase::input_gradient, true);
  }

  // The step that brings the operator's input back for its weight gradient.
  // Several products of the same input share one gather: queries and keys/values, gate and up.
  std::uint32_t gather_again(PassWriter& writer, std::uint32_t i) {
    for (const Regathered& known : regathered_) {
      const auto& inputs = op(i).inputs;
      if (std::any_of(inputs.begin(), inputs.end(), [&](std::uint32_t t) {
            return layout_.owner[t] == known.tensor &&
                   conversion(model_, layout_, op(i), t) == Conversion::enter;
          }))
        return known.step;
    }
    std::uint32_t step = kNoStep;
    for (const Entry& entry : entries_) {
      if (!entry.again || entry.last_product != i) continue;
      step = writer.hang(collective(i, *entry.again, Phase::weight_gradient), {writer.chain()});
      if (auto order = reordered(i, *entry.again, Phase::weight_gradient))
        step = writer.hang(std::move(*order), {step});
      regathered_.push_back({entry.tensor, step});
    }
    return step;
  }

  // Collectives that end the operator's input gradient; then the weight gradients that were held back for
  // them.
  void leave(PassWriter& writer, std::uint32_t i) {
    capture(writer, i);
    for (const Entry& entry : entries_) {
      if (entry.backward && entry.first_gradient == i) {
        for (std::int64_t n = entry.layers; n > 0; --n)
          convert(writer, i, *entry.backward, Phase::input_gradient);
        flush(writer);
      }
    }
  }

  void flush(PassWriter& writer) {
    // Without work there is no weight gradient. Where gradients are not accumulated in the product itself
    // (Megatron's gradient_accumulation_fusion), adding them to the sum is a pass of its own.
    const bool captured = writer.capture(false);
    for (const Pending& waiting : pending_) {
      capture(writer, waiting.op);
      const OperatorWork& shares = work(waiting.op);
      PassStep step = compute(waiting.op, Phase::weight_gradient, shares.weight_gradient);
      if (step.work == kNoStep) continue;
      const std::uint32_t product = writer.hang(std::move(step), {waiting.gradient, waiting.regathered});
      if (plan_.accumulation_fusion || !op(waiting.op).weight_is_operand) continue;
      writer.hang(compute(fmt::format("{}: accumulation", name(waiting.op)), Phase::weight_gradient,
                          accumulation(shares.weight_elements, plan_)),
                  {product});
    }
    pending_.clear();
    writer.capture(captured);
  }

  struct Pending {
    std::uint32_t op, regathered, gradient;
  };
  struct Regathered {
    std::uint32_t tensor, step;
  };

  const Model& model_;
  const Block& block_;
  const Plan& plan_;
  const Layout& layout_;
  ShardTables& tables_;
  DType floats_;
  bool overlaps_;            // communication with what does not need it
  bool overlaps_gradients_;  // tensor-parallel communication of the backward pass, likewise
  bool puts_off_;            // weight gradients until the next communication, which they run beside
  std::int64_t pieces_;      // of overlapped products
  std::vector<Entry> entries_;
  std::vector<OperatorWork> works_;  // of the block's operators
  std::vector<CoreRun> runs_;        // only with context parallelism
  std::vector<Pending> pending_;     // weight gradients yet to be issued
  std::vector<Regathered> regathered_;
};

}  // namespace

// A block without a name, and an operator outside of the block's scope, keep the whole name.
std::string_view local_name(const Block& block, std::string_view name) {
  const std::size_t length = block.name.size();
  const bool inside = length > 0 && name.size() > length + 1 && name.substr(0, length) == block.name &&
                      (name[length] == '.' || name[length] == '/');
  return inside ? name.substr(length + 1) : name;
}

std::vector<std::uint32_t> core_inputs(const Model& model, const Layout& layout, std::uint32_t first,
                                       std::uint32_t end) {
  // Inputs that the run makes itself (scores) and what has no gradient (masks, position biases) do not move
  // between context ranks.
  std::vector<std::uint32_t> inputs, made;
  for (std::uint32_t i = first; i < end; ++i) {
    for (const std::uint32_t t : model.operators[i].inputs) {
      const bool outside = std::find(made.begin(), made.end(), t) == made.end() &&
                           std::find(inputs.begin(), inputs.end(), t) == inputs.end();
      if (outside && layout.derived[t] && !layout.positional[t] && is_floating(model.tensors[t].dtype))
        inputs.push_back(t);
    }
    made.insert(made.end(), model.operators[i].outputs.begin(), model.operators[i].outputs.end());
  }
  return inputs;
}

BlockPasses block_passes(const Model& model, const Block& block, const Plan& plan, const Layout& layout,
                         ShardTables& tables, bool wide) {
  BlockWriter writer(model, block, plan, layout, tables, wide);
  Pass forward = writer.forward(), repeated;
  switch (plan.recompute) {
    case Recompute::none:
      break;
    case Recompute::selective:
      repeated = writer.by_part();
      break;
    case Recompute::operators:
      repeated = writer.by_operator();
      break;
    case Recompute::full:
    case Recompute::block:
      repeated = writer.whole();
      break;
  }
  return {std::move(forward), std::move(repeated), writer.backward()};
}

}  // namespace armilla
