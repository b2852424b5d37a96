#include "study/run_study.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units_text.h"
#include "ir/metrics.h"
#include "lower/data_parallel.h"
#include "lower/hybrid.h"
#include "lower/hybrid_memory.h"
#include "lower/memory.h"
#include "lower/plan_places.h"
#include "lower/resolve_plan.h"
#include "lower/sharded_model.h"
#include "read/read.h"
#include "study/apply_profile.h"
#include "study/balance_stages.h"

namespace armilla {
namespace {

void add_notes(Run& run) {
  const Study& study = run.study;
  run.notes.insert(run.notes.begin(), run.model.notes.begin(), run.model.notes.end());
  const Device& device = study.machine.device;
  if (study.plan.schedule == PipelineSchedule::interleaved &&
      study.request.plan.schedule == PipelineSchedule::one_f_one_b) {
    run.notes.push_back(fmt::format("{} model chunks per pipeline rank make the schedule 1f1b interleaved",
                                    study.plan.virtual_stages));
  }
  if (!device.matrix_rate.contains(study.plan.precision)) {
    run.notes.push_back(fmt::format("device '{}' lists no matrix rate for {}: its vector rate of {} is used",
                                    device.name, name_of(study.plan.precision), to_text(device.vector_rate)));
  }
}

void warn_of_memory(Run& run) {
  const Study& study = run.study;
  const std::string need =
      fmt::format("does not fit: a rank needs {}, device '{}' has {}", to_text(run.memory.peak()),
                  study.machine.device.name, to_text(run.memory.capacity));
  if (!is_hybrid(run)) {
    run.warnings.push_back(need + "; more micro-batches, a smaller batch or a smaller precision need less");
    return;
  }
  std::vector<std::string> advice = memory_advice(run.model, study.plan, study.machine.device);
  if (advice.empty()) advice = {"no single change of the plan makes it fit"};
  run.warnings.push_back(need + "; what would make it fit, and the peak then: " + advice[0]);
  for (std::size_t i = 1; i < advice.size(); ++i) run.warnings.back() += "; " + advice[i];
}

// Of devices unlike the others.
void warn_of_other_memory(Run& run) {
  for (const OtherDevices& other : run.study.machine.others) {
    Bytes most = is_hybrid(run) ? Bytes() : run.memory.peak();
    for (const RoleMemory& role : run.roles) {
      const auto first = run.graph.program_of.begin() + other.first;
      const auto end = run.graph.program_of.begin() + other.last + 1;
      if (std::find(first, end, role.program) != end) most = std::max(most, role.use.peak());
    }
    if (most > other.device.memory) {
      run.warnings.push_back(fmt::format("does not fit: a rank of {} to {} needs {}, device '{}' has {}",
                                         other.first, other.last, to_text(most), other.device.name,
                                         to_text(other.device.memory)));
    }
  }
}

void add_model_warnings(Run& run) {
  for (const UnknownOperator& unknown : run.model.unknown) {
    run.warnings.push_back(describe(unknown, static_cast<std::int64_t>(run.model.operators.size()),
                                    totals(run.model).forward_bytes));
  }
  if (!run.memory.fits()) warn_of_memory(run);
  warn_of_other_memory(run);
}

void add_result_warnings(Run& run) {
  if (run.result.iteration == Time(0))
    run.warnings.push_back("the model has no work: an iteration takes no time");
  run.warnings.insert(run.warnings.end(), run.result.warnings.begin(), run.result.warnings.end());
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    if (summary.link_share > 1.0001) {
      run.warnings.push_back(
          fmt::format("{} ran at {:.0f}% of what its links can carry: the network model does not share links",
                      name_of(summary.kind), 100 * summary.link_share));
    }
  }
}

void use_profile(Run& run) {
  const Profile& profile = run.study.profile;
  if (profile.file.empty()) return;
  const ProfileUse use = apply_profile(profile, run.model, run.graph);
  (use.measured > 0 ? run.notes : run.warnings).push_back(describe(use, profile));
}

void lower_plain_data_parallel(Run& run) {
  const Study& study = run.study;
  run.graph = lower_data_parallel(run.model, study.plan);
  run.memory = data_parallel_memory(run.model, study.plan, study.machine.device);
}

LoweredJob lower_job(const Run& run, std::int64_t iterations) {
  return lower_hybrid(run.model, run.study.plan, iterations, run.study.machine.device.host_bandwidth);
}

// Nothing separates the iterations of the asynchronous schedule: its time is what one more of them takes.
Time steady_period(const Run& run, const CostModel& cost, SimulationOptions options) {
  options.intervals = false;
  LoweredJob shorter = lower_job(run, run.iterations - 1);
  if (!run.study.profile.file.empty()) apply_profile(run.study.profile, run.model, shorter.graph);
  return run.result.iteration - simulate(shorter.graph, run.study, cost, options).iteration;
}

void lower_hybrid_job(Run& run, const CostModel& cost) {
  constexpr std::int64_t kAsynchronousIterations = 3;
  Plan& plan = run.study.plan;
  const std::string where = run.study.request.where.empty() ? "plan" : run.study.request.where;
  if (run.model.blocks.empty()) annotate_parallelism(run.model);
  with_places(run.study.request, [&] { check_plan_for_model(plan, run.model, where); });
  if (run.study.request.balance_stages) plan.stage_blocks = balance_stages(run.model, plan, cost, where);
  if (plan.schedule == PipelineSchedule::pipedream_2bw) run.iterations = kAsynchronousIterations;
  LoweredJob job = lower_job(run, run.iterations);
  run.roles = hybrid_memory(job, plan, run.study.machine.device);
  const auto worst = std::max_element(run.roles.begin(), run.roles.end(), [](const auto& a, const auto& b) {
    return a.use.peak() < b.use.peak();
  });
  if (worst != run.roles.end()) run.memory = worst->use;
  run.notes = std::move(job.notes);
  run.graph = std::move(job.graph);
}

}  // namespace

Run lower_study(const Study& study, const CostModel& cost) {
  validate_plan(study.plan, "plan");
  validate_machine(study.machine);
  Run run;
  run.study = study;
  run.model =
      read_model(study.model.name, {study.model.dimensions, study.plan.micro_batch(), study.model.sequence});
  run.peak_rate = cost.peak(study.plan.precision);
  if (study.plan.is_plain_data_parallel() && run.model.facts.family.empty()) {
    lower_plain_data_parallel(run);
  } else {
    lower_hybrid_job(run, cost);
  }
  add_notes(run);
  use_profile(run);
  add_model_warnings(run);
  return run;
}

Run run_study(const Study& study, const SimulationOptions& options) {
  // The cost model first: a wrong name should not wait for a large model to be read.
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  Run run = lower_study(study, *cost);
  run.result = simulate(run.graph, run.study, *cost, options);
  if (run.iterations > 1) run.period = steady_period(run, *cost, options);
  if (study.what_if.failures.mtbf_of_node > 0) {
    run.goodput = goodput(study.what_if.failures, study.plan.ranks, in_seconds(iteration_time(run)),
                          "what_if.failures");
  }
  add_result_warnings(run);
  return run;
}

}  // namespace armilla
