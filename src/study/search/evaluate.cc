#include "study/search/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/derived/expense.h"
#include "ir/issued.h"
#include "lower/expert_exchange.h"
#include "lower/memory.h"
#include "lower/plan.h"
#include "read/read.h"
#include "sim/simulate.h"
#include "sim/undisturbed.h"
#include "study/run.h"
#include "study/run/attained_links.h"
#include "study/run/balance_stages.h"
#include "study/run/prepare.h"

namespace armilla {
namespace {

constexpr const char* kWhere = "plan";

// Whether one division of the model and the usual device say all of it.
bool is_uniform(const Study& study) {
  return study.plan.expert_load == ExpertLoad::uniform && study.machine.others.empty();
}

// The pipeline's order depends on nothing else of a plan.
std::string order_key(const Plan& plan) {
  return fmt::format("{} {} {} {}", plan.schedule, plan.pipeline, plan.virtual_stages, plan.micro_batches);
}

// What decides which ranks are in the groups of a slot: those of the innermost axis are the same whatever
// lies further out.
std::string place_of_slot(const Plan& plan) {
  const bool is_innermost = plan.order.front() == Axis::tensor && plan.context == 1 && plan.expert == 1;
  return is_innermost ? fmt::format("tensor {}", plan.tensor) : place_of_ranks(plan);
}

std::set<std::string> names_of_families(const Graph& slot) {
  std::set<std::string> names;
  for (const Issued& program : issued_by(slot)) {
    for (const IssuedItem& item : program.items) {
      if (item.kind == NodeKind::collective)
        names.insert(slot.families[slot.collectives[item.payload].family].name);
    }
  }
  return names;
}

PlanOutcome outcome_of(const Study& study, const Result& result) {
  PlanOutcome outcome;
  outcome.plan = study.plan;
  outcome.machine = study.machine.name;
  outcome.iteration = result.iteration;
  outcome.energy = energy_of(study.machine, result);
  outcome.cost = cost_of(study.machine, study.plan.ranks, result.iteration);
  for (const RankClass& ranks : result.classes) {
    const auto key = [](Time compute, Time exposed) { return std::pair(compute, exposed); };
    if (key(ranks.compute, ranks.exposed_communication) < key(outcome.compute, outcome.exposed_communication))
      continue;
    outcome.compute = ranks.compute;
    outcome.exposed_communication = ranks.exposed_communication;
  }
  return outcome;
}

}  // namespace

PlanPrepared prepared(const Study& study, const Model& model) {
  PlanPrepared made{study, {std::shared_ptr<const Model>(), &model}, nullptr};
  if (is_uniform(study))
    made.sharded = std::make_shared<const ShardedModel>(shard_model(model, study.plan, 0, kWhere));
  return made;
}

PlanEvaluator::PlanEvaluator(const Study& base)
    : base_(base),
      described_(is_described(base.model)),
      own_cost_(make_cost_model(base.compute, base.machine.device)),
      cost_(*own_cost_) {}

PlanEvaluator::PlanEvaluator(const Study& base, const CostModel& cost)
    : base_(base), described_(true), cost_(cost) {}

PlanEvaluator::~PlanEvaluator() = default;

std::shared_ptr<const Model> PlanEvaluator::model_of(const Plan& plan) {
  const std::lock_guard lock(mutex_);
  const std::int64_t micro_batch = plan.micro_batch();
  if (const auto refused = refused_models_.find(micro_batch); refused != refused_models_.end())
    throw refused->second;
  std::shared_ptr<const Model>& known = models_[micro_batch];
  if (known) return known;
  try {
    auto model = std::make_shared<Model>(read_model(base_.model, micro_batch));
    require_work(*model);
    if (model->blocks.empty()) annotate_parallelism(*model);
    known = std::move(model);
  } catch (const Error& error) {
    // It was read before the search: what stands in the way is this micro-batch, of whichever plan.
    const Error refusal(error.where, error.message, error.hint, {"plan.micro_batch"});
    refused_models_.emplace(micro_batch, refusal);
    throw refusal;
  }
  return known;
}

std::shared_ptr<const ShardedModel> PlanEvaluator::sharded_of(const Plan& plan, const Model& model) {
  const std::string key = fmt::format("{} {}", plan.micro_batch(), division_of(plan));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const ShardedModel>& known = sharded_[key];
  if (!known) known = std::make_shared<const ShardedModel>(shard_model(model, plan, 0, kWhere));
  return known;
}

std::shared_ptr<const PipelineOrder> PlanEvaluator::order_of(const Plan& plan) {
  const std::string key = order_key(plan);
  const std::lock_guard lock(mutex_);
  // Long orders are as much as a few plans have: all start again where they are too many.
  constexpr std::int64_t kMostKept = 1 << 22;
  const bool is_new = !orders_.contains(key);
  const std::int64_t slots = 2 * plan.micro_batches * plan.pipeline * plan.virtual_stages;
  if (is_new && (kept_slots_ += slots) > kMostKept) {
    orders_.clear();
    kept_slots_ = slots;
  }
  std::shared_ptr<const PipelineOrder>& known = orders_[key];
  if (!known) known = std::make_shared<const PipelineOrder>(pipeline_order(plan, 1, kWhere));
  return known;
}

PlanPrepared PlanEvaluator::prepare(const PlanRequest& request) {
  PlanPrepared made;
  made.study = base_;
  made.study.request = request;
  made.study = prepare_study(std::move(made.study), described_);
  Study& study = made.study;
  validate_plan(study.plan, kWhere);
  check_precision(study, cost_);
  attain_links(study);
  made.model = model_of(study.plan);
  check_plan_for_model(study.plan, *made.model, kWhere);
  if (request.balance_stages)
    study.plan.stage_blocks = balance_stages(*made.model, study.plan, cost_, kWhere);
  resolve_exchange(made.model->facts, study.plan);
  if (is_uniform(study)) made.sharded = sharded_of(study.plan, *made.model);
  return made;
}

Time PlanEvaluator::bound(const PlanPrepared& plan) {
  if (!plan.sharded) return {};
  const Study& study = plan.study;
  const std::shared_ptr<const PipelineOrder> order = short_order_of(study.plan);
  const StageCut stages = cut_stages(*plan.sharded, study.plan, kWhere);
  const std::lock_guard lock(mutex_);
  return least_iteration(study, paths_of(plan), stages, *order);
}

double PlanEvaluator::computing_bound(const PlanPrepared& plan) {
  if (!plan.sharded) return {};
  const Study& study = plan.study;
  const std::shared_ptr<const PipelineOrder> order = short_order_of(study.plan);
  const StageCut stages = cut_stages(*plan.sharded, study.plan, kWhere);
  const std::lock_guard lock(mutex_);
  return least_computing(study, paths_of(plan), stages, *order);
}

Time PlanEvaluator::slot_bound(const PlanPrepared& plan) {
  constexpr std::int64_t kMostSlots = 1 << 18;  // beyond, their order is not worth keeping
  if (!plan.sharded) return {};
  const Study& study = plan.study;
  const Plan& p = study.plan;
  if (p.micro_batches > kMostSlots / 2 / (p.pipeline * p.virtual_stages)) return {};
  const std::shared_ptr<const PipelineOrder> order = order_of(p);
  const StageCut stages = cut_stages(*plan.sharded, p, kWhere);
  const std::lock_guard lock(mutex_);
  return least_iteration_of_slots(study, paths_of(plan), stages, *order);
}

StagePaths& PlanEvaluator::paths_of(const PlanPrepared& plan) {
  const Study& study = plan.study;
  const Plan& p = study.plan;
  // What the exchange of weights depends on, too.
  const std::tuple key(plan.sharded.get(), place_of_ranks(p),
                       fmt::format("{} {} {} {} {} {}", p.schedule, p.zero_stage, p.hybrid_shard,
                                   p.overlap_parameters, p.offload_activations, p.offload_optimizer));
  auto paths = paths_.find(key);
  if (paths == paths_.end()) {
    LeastCommunication& communication = communication_.try_emplace(p.ranks, study).first->second;
    paths = paths_.emplace(key, StagePaths(study, *plan.sharded, cost_, communication)).first;
  }
  return paths->second;
}

MemoryUse PlanEvaluator::memory(const PlanPrepared& plan) {
  const Study& study = plan.study;
  if (!plan.sharded) return lower_study(study, cost_).memory;
  return largest_use(*plan.sharded, cut_stages(*plan.sharded, study.plan, kWhere), *order_of(study.plan),
                     study.plan, study.machine.device);
}

const PlanEvaluator::MeasuredSlot& PlanEvaluator::measured(const PlanPrepared& plan, const SlotKind& kind) {
  const Study& study = plan.study;
  const std::tuple key(plan.sharded.get(), place_of_slot(study.plan), kind);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = slots_.find(key); known != slots_.end()) return known->second;
  }
  MeasuredSlot made;
  if (const std::optional<Graph> slot = lone_slot(*plan.sharded, study.plan, kind)) {
    made.families = names_of_families(*slot);
    FoldedGraph folded(*slot, study);
    const Result result = folded.simulate(cost_);
    const RankClass& all = result.classes.front();
    // While it does not compute it communicates, and all ranks are in step.
    if (result.classes.size() == 1 && all.compute + all.exposed_communication == all.finish &&
        folded.is_undisturbed(made.families, Beside::everything))
      made.time = SlotTime{all.finish, all.compute, std::int64_t{slot->programs.front().size()}};
  }
  const std::lock_guard lock(mutex_);
  return slots_.emplace(key, std::move(made)).first->second;
}

std::optional<PlanOutcome> PlanEvaluator::simulate_slots(const PlanPrepared& plan) {
  const std::optional<Result> result = play_slots(plan);
  if (!result) return std::nullopt;
  return outcome_of(plan.study, *result);
}

std::optional<Result> PlanEvaluator::play_slots(const PlanPrepared& plan) {
  const Study& study = plan.study;
  if (!plan.sharded || !study.profile.file.empty() || study.what_if.changes_simulation()) return std::nullopt;
  Fusion fusion;
  std::set<std::string> families;
  for (SlotKind& kind : slot_kinds(*plan.sharded, study.plan)) {
    const MeasuredSlot& slot = measured(plan, kind);
    if (!slot.time) return std::nullopt;
    families.insert(slot.families.begin(), slot.families.end());
    fusion.slots.emplace(std::move(kind), *slot.time);
  }
  if (fusion.slots.empty()) return std::nullopt;
  fusion.beside_exchanges = true;
  FusedJob job = lower_fused(*plan.sharded, study.plan, fusion, study.machine.device.host_bandwidth);
  if (!job.host_is_ahead) return std::nullopt;
  std::optional<FoldedGraph> folded(std::in_place, job.graph, study);
  if (!folded->is_undisturbed(families, Beside::everything)) {
    if (!folded->is_undisturbed(families, Beside::messages)) return std::nullopt;
    folded.reset();
    fusion.beside_exchanges = false;
    job = lower_fused(*plan.sharded, study.plan, fusion, study.machine.device.host_bandwidth);
    if (!job.host_is_ahead) return std::nullopt;
    folded.emplace(job.graph, study);
  }
  Result result = folded->simulate(cost_);
  for (RankClass& ranks : result.classes) {
    ranks.compute -= job.waits[ranks.program];
    ranks.exposed_communication += job.waits[ranks.program];
  }
  return result;
}

PlanOutcome PlanEvaluator::simulate(const PlanPrepared& plan) {
  const std::optional<PlanOutcome> outcome = simulate_slots(plan);
  return outcome ? *outcome : simulate_nodes(plan);
}

PlanOutcome PlanEvaluator::simulate_nodes(const PlanPrepared& plan) const {
  const Study& study = plan.study;
  SimulationOptions options;
  options.intervals = false;
  options.collectives = false;
  if (!plan.sharded || !schedule_of(study.plan).flushes || !study.profile.file.empty())
    return outcome_of(study, run_study(study, options).result);
  const LoweredJob job =
      lower_sharded({*plan.sharded}, study.plan, 1, study.machine.device.host_bandwidth, Written::loops);
  return outcome_of(study, armilla::simulate(job.graph, study, cost_, options));
}

std::string text_of(const Plan& plan) {
  const bool pipelined = plan.pipeline > 1, tensor = plan.tensor > 1,
             replicated = plan.context * plan.data() > 1;
  const int zero = replicated ? plan.zero_stage : 0;
  std::string order;
  for (const Axis axis : plan.order) {
    const std::int64_t degree = axis == Axis::tensor     ? plan.tensor
                                : axis == Axis::context  ? plan.context
                                : axis == Axis::pipeline ? plan.pipeline
                                                         : plan.data();
    if (degree > 1) order += fmt::format("{}-", name_of(axis));
  }
  return fmt::format(
             "{} {} {} {} | {} {} {} | {} {} {} | {} {} {} | {} {} | {} {} {} {} {} | {} {} {} | {} {}",
             plan.ranks, plan.tensor, plan.context, plan.pipeline, plan.expert, plan.experts_tensor(),
             pipelined ? plan.virtual_stages : 1, plan.batch, plan.micro_batches,
             pipelined ? plan.schedule : "", fmt::join(plan.stage_blocks, ","),
             tensor && plan.sequence_parallel, tensor && plan.overlap_tensor, name_of(plan.recompute),
             plan.recompute == Recompute::block ? plan.recompute_blocks : 0, zero,
             zero == 0 || zero == 3 || plan.overlap_parameters, zero < 3 || plan.prefetch,
             zero < 3 || plan.reshard, zero > 0 ? plan.hybrid_shard : 0, plan.offload_optimizer,
             plan.offload_activations, !pipelined || plan.overlap_pipeline, !replicated || plan.overlap,
             plan.context > 1 ? name_of(plan.context_method) : "") +
         " | " + order;
}

}  // namespace armilla
