#include "lower/pipeline/pass_template.h"

#include "base/sorted.h"
#include "lower/pipeline_schedule.h"
#include "lower/plan/idle_overlap.h"

namespace armilla {
namespace {

constexpr std::uint32_t kLeftOut = UINT32_MAX;

bool is_left_out(const PassStep& step, PassPart part, const Plan& plan) {
  const bool of_weights = step.phase == Phase::weight_gradient;
  if (part == PassPart::weight_gradients && !of_weights) return true;
  if (part == PassPart::without_weight_gradients && of_weights) return true;
  // A group of one rank has nothing to exchange.
  return step.kind != NodeKind::compute && group_size(plan, step.axis) <= 1;
}

// By current scaling the rows of every expert are quantised for themselves: a tensor is made in Python and
// four kernels are issued for each, which keeps an eager host as long as an operator (Transformer Engine 2.7,
// csrc/extensions/cast.cpp: only blocks of scales are allocated together, only delayed scaling has one kernel
// for all). Operands of weight gradients were quantised before.
std::int64_t experts_quantised_by(const Work& work) {
  if (work.dtype != DType::fp8 || work.scaling != Scaling::current || work.kernel == Kernel::weight_gradient)
    return 0;
  std::int64_t experts = 0;
  for (const Gemm& gemm : work.gemms) experts += is_grouped(gemm) ? gemm.count : 0;
  return experts;
}

// Transformer Engine's GroupedLinear calls cuBLAS for every expert (nvte_multi_stream_cublas_gemm), with a
// view, an operand and a hook of its own, which keeps an eager host as long as an operator
// (docs/models/kernels.md). The device begins with the first: however long each takes it, what comes behind
// waits for the later of the device and the host. Quantised they are before, all of them.
void set_issues(const PassStep& step, Work& work, const Plan& plan) {
  if (plan.host != Host::eager || issue_time_of(plan) == Time(0)) return;
  work.issues = static_cast<std::int32_t>(1 + experts_quantised_by(work));
  if (plan.framework == Framework::megatron) work.issues_behind = step.products - 1;
}

// PyTorch's collectives of tensor parallelism go through autograd and wrappers: an eager host needs for one
// what it needs for three operators. Megatron's gathers, copies and reads how many tokens go where, and the
// device does nothing until the exchange is issued, as long as for six, unless a graph does most of it
// (docs/models/kernels.md).
std::int32_t issues_of(const PassStep& step, const Plan& plan) {
  if (step.counted_on_device && plan.host == Host::eager && plan.framework == Framework::megatron &&
      !plan.cuda_graph_scope.has(Part::moe_preprocess))
    return 6;
  return keeps_exchanges_in_order(plan) && step.axis == GroupAxis::tensor ? 3 : 1;
}

// Tags of messages between stages are below this one (lower/pipeline/stage_program.cc).
constexpr std::uint32_t kFirstPassTag = 1U << 24;

class TemplateBuilder {
 public:
  TemplateBuilder(const ShardedModel& model, const Pass& pass, PassRole role, PassPart part, const Plan& plan,
                  JobTables& tables)
      : model_(model), pass_(pass), role_(role), part_(part), plan_(plan), tables_(tables) {}

  PassTemplate build() {
    for (const PassStep& step : pass_.steps) add(step);
    // What no step waits for ends the pass: the next pass waits for it. Computations are in the chain anyway.
    std::vector<bool> waited(result_.steps.size());
    for (const std::uint32_t step : result_.waits) waited[step] = true;
    for (std::uint32_t step = 0; step < waited.size(); ++step) {
      if (!waited[step] && result_.steps[step].kind != NodeKind::compute) result_.ends.push_back(step);
    }
    return std::move(result_);
  }

 private:
  // What a step waits for, in steps of the template.
  struct Needs {
    std::vector<std::uint32_t> steps;
    bool enters = false;
  };

  // A step that is left out hands its own waits on to those that waited for it. Steps refer to earlier ones
  // only, so these waits are final when they are needed.
  void add(const PassStep& step) {
    Needs needs;
    needs.enters = step.after.empty();
    for (const std::uint32_t after : step.after) {
      if (kept_[after] != kLeftOut) {
        needs.steps.push_back(kept_[after]);
      } else {
        const Needs& handed_on = left_out_[after];
        needs.steps.insert(needs.steps.end(), handed_on.steps.begin(), handed_on.steps.end());
        needs.enters |= handed_on.enters;
      }
    }
    const bool leave_out = is_left_out(step, part_, plan_);
    is_issued_ = is_issued_ && step.along;
    if (!leave_out) {
      append(step, needs);
      needs = {};
    } else {
      sort_unique(needs.steps);
    }
    kept_.push_back(leave_out ? kLeftOut : static_cast<std::uint32_t>(result_.steps.size() - 1));
    left_out_.push_back(std::move(needs));
  }

  void append(const PassStep& step, Needs needs) {
    TemplateStep made;
    made.phase = step.phase;
    made.name = tables_.name(model_.names[step.name]);
    // Where the step that would bring it is left out it comes by itself.
    made.along = step.along && is_issued_;
    is_issued_ = true;
    if (step.kind == NodeKind::collective && step.axis == GroupAxis::tensor && !step.along &&
        keeps_exchanges_in_order(plan_) && last_computation_ != kLeftOut)
      needs.steps.push_back(last_computation_);
    made.kind = step.kind;
    made.payload = payload(step, made.issues);
    if (step.kind == NodeKind::collective) made.family = family_of(step);
    place(made, needs);
  }

  void place(TemplateStep made, const Needs& needs) {
    std::vector<std::uint32_t> waits;
    std::uint32_t computation = kLeftOut;
    // Communications are waited for one by one; of computations the latest is enough, since each follows the
    // one before it.
    for (const std::uint32_t other : needs.steps) {
      if (result_.steps[other].kind != NodeKind::compute) {
        waits.push_back(other);
      } else if (computation == kLeftOut || other > computation) {
        computation = other;
      }
    }
    // A computation follows the one before it anyway.
    if (made.kind != NodeKind::compute && computation != kLeftOut) waits.push_back(computation);
    if (made.kind == NodeKind::collective) keep_in_turn(made.family, waits);
    // The first computation that enters lets in all that follow it.
    made.enters = needs.enters && (made.kind != NodeKind::compute || !entered_);
    entered_ |= made.kind == NodeKind::compute && needs.enters;
    sort_unique(waits);
    made.first_wait = static_cast<std::uint32_t>(result_.waits.size());
    result_.waits.insert(result_.waits.end(), waits.begin(), waits.end());
    made.end_of_waits = static_cast<std::uint32_t>(result_.waits.size());
    if (made.kind == NodeKind::compute) last_computation_ = static_cast<std::uint32_t>(result_.steps.size());
    result_.steps.push_back(made);
  }

  // A collective that starts when another communication ends may start early or late; the next of its family
  // must not overtake it.
  void keep_in_turn(std::uint32_t family, std::vector<std::uint32_t>& waits) const {
    for (auto i = static_cast<std::uint32_t>(result_.steps.size()); i-- > 0;) {
      const TemplateStep& earlier = result_.steps[i];
      if (earlier.kind != NodeKind::collective || earlier.family != family) continue;
      for (std::uint32_t w = earlier.first_wait; w < earlier.end_of_waits; ++w) {
        if (result_.steps[result_.waits[w]].kind == NodeKind::compute) continue;
        waits.push_back(i);
        return;
      }
      return;
    }
  }

  // Passes that run beside each other must not wait for each other in one communicator.
  std::uint32_t family_of(const PassStep& step) {
    const bool own = schedule_of(plan_).overlaps_passes && role_ != PassRole::forward;
    return own ? tables_.backward_family(step.axis) : tables_.family(step.axis);
  }

  // Works, collectives and messages are entries of the job's tables; equal ones are one entry, whichever
  // block they are from.
  std::uint64_t payload(const PassStep& step, std::int32_t& issues) {
    if (step.kind == NodeKind::compute) {
      Work work = model_.works[step.work];
      set_issues(step, work, plan_);
      issues = work.issues + work.issues_behind;
      return tables_.work(work);
    }
    if (step.kind == NodeKind::collective) {
      CollectiveCall call{step.collective, step.bytes, family_of(step)};
      call.routing = step.routing;
      call.counted_on_device = step.counted_on_device;
      call.issues = issues_of(step, plan_);
      call.processors = step.processors;
      if (step.custom >= 0) {
        call.custom = static_cast<std::int32_t>(
            tables_.custom(model_.expert_loads, model_.uneven[static_cast<std::size_t>(step.custom)]));
      }
      return tables_.collective(call);
    }
    const std::int64_t size = group_size(plan_, step.axis);
    PointToPoint message;
    // Positions in the group wrap around, and C++ gives a negative remainder for a negative shift.
    message.peer = static_cast<std::int32_t>((step.shift % size + size) % size);
    // Four tags for each message of the pass: those of the forward pass, the recomputation and the backward
    // pass of a block must not be taken for each other.
    message.tag = kFirstPassTag + step.tag * 4 + static_cast<std::uint32_t>(role_);
    message.bytes = step.bytes;
    message.peer_kind = PeerKind::shift;
    message.family = tables_.family(step.axis);
    return tables_.transfer(message);
  }

  const ShardedModel& model_;
  const Pass& pass_;
  PassRole role_;
  PassPart part_;
  const Plan& plan_;
  JobTables& tables_;
  PassTemplate result_;
  std::uint32_t last_computation_ = kLeftOut;  // of the template
  bool entered_ = false;                       // by a computation
  bool is_issued_ = false;                     // what a step goes along with
  std::vector<std::uint32_t> kept_;            // per step of the pass, its place in the template or kLeftOut
  std::vector<Needs> left_out_;                // per step of the pass, what those wait for that wait for it
};

}  // namespace

PassTemplate make_template(const ShardedModel& model, const Pass& pass, PassRole role, PassPart part,
                           const Plan& plan, JobTables& tables) {
  return TemplateBuilder(model, pass, role, part, plan, tables).build();
}

const BlockTemplates& TemplateCache::of(std::uint32_t shape) {
  const auto [found, fresh] = templates_.try_emplace(shape);
  // All five at once: a schedule may use the whole backward pass, its two parts, or both (DualPipe).
  if (fresh) {
    const BlockShape& block = model_.shapes[shape];
    const auto make = [&](const Pass& pass, PassRole role, PassPart part) {
      return make_template(model_, pass, role, part, plan_, tables_);
    };
    found->second.forward = make(block.forward, PassRole::forward, PassPart::whole);
    found->second.recompute = make(block.recompute, PassRole::recompute, PassPart::whole);
    found->second.backward = make(block.backward, PassRole::backward, PassPart::whole);
    found->second.input_gradients =
        make(block.backward, PassRole::backward, PassPart::without_weight_gradients);
    found->second.weight_gradients = make(block.backward, PassRole::backward, PassPart::weight_gradients);
  }
  return found->second;
}

}  // namespace armilla
