#include "study/search/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "lower/expert_exchange.h"
#include "lower/memory.h"
#include "lower/plan.h"
#include "read/read.h"
#include "sim/simulate.h"
#include "study/run.h"
#include "study/run/attained_links.h"
#include "study/run/balance_stages.h"

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

}  // namespace

PlanEvaluator::PlanEvaluator(const Study& base)
    : base_(base), cost_(make_cost_model(base.compute, base.machine.device)) {}

PlanEvaluator::~PlanEvaluator() = default;

std::shared_ptr<const Model> PlanEvaluator::model_of(const Plan& plan) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Model>& known = models_[plan.micro_batch()];
  if (!known) {
    auto model = std::make_shared<Model>(read_model(base_.model, plan.micro_batch()));
    require_work(*model);
    if (model->blocks.empty()) annotate_parallelism(*model);
    known = std::move(model);
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
  std::shared_ptr<const PipelineOrder>& known = orders_[key];
  if (!known) known = std::make_shared<const PipelineOrder>(pipeline_order(plan, 1, kWhere));
  return known;
}

PlanPrepared PlanEvaluator::prepare(const PlanRequest& request) {
  PlanPrepared made;
  made.study = base_;
  made.study.request = request;
  made.study = prepare_study(std::move(made.study));
  Study& study = made.study;
  validate_plan(study.plan, kWhere);
  check_precision(study, *cost_);
  attain_links(study);
  made.model = model_of(study.plan);
  check_plan_for_model(study.plan, *made.model, kWhere);
  if (request.balance_stages)
    study.plan.stage_blocks = balance_stages(*made.model, study.plan, *cost_, kWhere);
  resolve_exchange(made.model->facts, study.plan);
  if (is_uniform(study)) made.sharded = sharded_of(study.plan, *made.model);
  return made;
}

Time PlanEvaluator::bound(const PlanPrepared& plan) {
  if (!plan.sharded) return {};
  const Study& study = plan.study;
  const std::shared_ptr<const PipelineOrder> order = order_of(study.plan);
  const StageCut stages = cut_stages(*plan.sharded, study.plan, kWhere);
  const std::lock_guard lock(mutex_);
  const std::pair key(plan.sharded.get(), study.plan.schedule);
  auto paths = paths_.find(key);
  if (paths == paths_.end()) paths = paths_.emplace(key, StagePaths(study, *plan.sharded, *cost_)).first;
  return least_iteration(study, paths->second, stages, *order);
}

MemoryUse PlanEvaluator::memory(const PlanPrepared& plan) {
  const Study& study = plan.study;
  if (!plan.sharded) return lower_study(study, *cost_).memory;
  return largest_use(*plan.sharded, cut_stages(*plan.sharded, study.plan, kWhere), *order_of(study.plan),
                     study.plan, study.machine.device);
}

PlanOutcome PlanEvaluator::simulate(const PlanPrepared& plan) const {
  const Study& study = plan.study;
  PlanOutcome outcome;
  outcome.plan = study.plan;
  outcome.machine = study.machine.name;
  SimulationOptions options;
  options.intervals = false;
  Result result;
  if (plan.sharded && schedule_of(study.plan).flushes && study.profile.file.empty()) {
    LoweredJob job =
        lower_sharded({*plan.sharded}, study.plan, 1, study.machine.device.host_bandwidth, Written::loops);
    result = armilla::simulate(job.graph, study, *cost_, options);
  } else {
    result = run_study(study, options).result;
  }
  outcome.iteration = result.iteration;
  for (const RankClass& ranks : result.classes) {
    if (ranks.compute < outcome.compute) continue;
    outcome.compute = ranks.compute;
    outcome.exposed_communication = ranks.exposed_communication;
  }
  return outcome;
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
