#include "study/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/progress.h"
#include "base/units_text.h"
#include "ir/derived/communication.h"
#include "ir/derived/metrics.h"
#include "ir/derived/training.h"
#include "lower/expert_exchange.h"
#include "lower/hybrid.h"
#include "lower/memory.h"
#include "lower/plan.h"
#include "lower/sharded_model.h"
#include "read/read.h"
#include "study/profile/apply_profile.h"
#include "study/run/attained_links.h"
#include "study/run/balance_stages.h"
#include "study/run/chunk_note.h"
#include "study/run/compute_shares.h"
#include "study/run/like_measured.h"
#include "study/run/memory_limits.h"
#include "study/run/steady_state.h"

namespace armilla {
namespace {

void add_notes(Run& run, const CostModel& cost) {
  const Study& study = run.study;
  run.notes.insert(run.notes.begin(), run.model.notes.begin(), run.model.notes.end());
  if (study.plan.pipeline > 1 && study.plan.schedule != study.request.plan.schedule) {
    run.notes.push_back(fmt::format("{} model chunks per pipeline rank make the schedule {} {}",
                                    study.plan.virtual_stages, study.request.plan.schedule,
                                    study.plan.schedule));
  }
  const std::string batch = batch_note(study.request, study.plan, !run.model.facts.family.empty());
  if (!batch.empty()) run.notes.push_back(batch);
  const bool uneven =
      study.plan.expert > 1 && run.model.facts.experts > 0 && study.plan.expert_load != ExpertLoad::uniform;
  const bool default_skew = !study.request.places.contains("expert_skew");
  const bool default_seed =
      study.plan.expert_load == ExpertLoad::random && !study.request.places.contains("seed");
  if (uneven && (default_skew || default_seed)) {
    std::string defaults;
    if (default_skew) defaults = fmt::format("plan.expert_skew {:g}", study.plan.expert_skew);
    if (default_seed)
      defaults += fmt::format("{}plan.seed {}", defaults.empty() ? "" : " and ", study.plan.seed);
    run.notes.push_back(fmt::format("expert loads are {} with {}, the default{}",
                                    name_of(study.plan.expert_load), defaults,
                                    default_skew && default_seed ? "s" : ""));
  }
  const std::vector<std::string> idle = settings_without_effect(study.request, study.plan, run.model);
  run.notes.insert(run.notes.end(), idle.begin(), idle.end());
  // Programs of whole steps lay images out as they like.
  if (study.machine.device.issue_time > Time(0)) {
    if (std::string note = convolution_note(study.request, study.plan, run.model); !note.empty())
      run.notes.push_back(std::move(note));
  }
  if (study.compute.name == "kernels" && !study.machine.device.kernels) {
    run.notes.push_back(
        fmt::format("{} has no measured rates of kernels: {}, with the efficiencies of the device",
                    study.machine.device.name,
                    study.machine.device.arrays ? "its systolic arrays and the roofline cost them"
                                                : "the roofline costs them"));
  }
  for (std::string& note : precision_notes(study, cost)) run.notes.push_back(std::move(note));
  // A warning, not a note: an option that costs time and saves nothing is most likely a mistake.
  for (std::string& note :
       options_without_savings(study.request, run.model, study.plan, study.machine.device))
    run.warnings.push_back(std::move(note));
}

// Of the plan's precision, or of a faster type that some products are in: quantised operators keep theirs.
DType fastest_type(const Run& run, const CostModel& cost) {
  DType fastest = run.study.plan.precision;
  for (const Work& work : run.graph.works) {
    if (work.kind == WorkKind::matrix && cost.peak(work.dtype) > cost.peak(fastest)) fastest = work.dtype;
  }
  return fastest;
}

void set_peak(Run& run, const CostModel& cost) {
  // The share of peak is formed with the mean over all ranks, as other devices have other peaks.
  const Study& study = run.study;
  const DType dtype = fastest_type(run, cost);
  const double ranks = static_cast<double>(study.plan.ranks);
  double sum = cost.peak(dtype).value * ranks;
  for (const OtherDevices& other : study.machine.others) {
    const FlopRate peak = make_cost_model(study.compute, other.device)->peak(dtype);
    sum += (peak.value - cost.peak(dtype).value) * static_cast<double>(other.last - other.first + 1);
  }
  run.peak_rate = FlopRate(sum / ranks);
  if (dtype != study.plan.precision) {
    run.notes.push_back(
        fmt::format("some matrix products are in {}: MFU and HFU are shares of its peak of {}",
                    name_of(dtype), to_text(run.peak_rate)));
  }
}

void add_model_warnings(Run& run) {
  for (const UnknownOperator& unknown : run.model.unknown) {
    run.warnings.push_back(describe(unknown, static_cast<std::int64_t>(run.model.operators.size()),
                                    totals(run.model).forward_bytes));
  }
  warn_of_memory(run);
}

// After the simulation, since they need its times.
void add_result_warnings(Run& run) {
  if (std::string note = chunk_note(run); !note.empty()) run.notes.push_back(std::move(note));
  if (const std::optional<CommunicationSpread> spread = communication_spread(run)) {
    run.notes.push_back(fmt::format(
        "ranks of a role differ: those of {} communicate for {} to {}; figures by kind of communication "
        "are of the first rank of each role, those by rank of all",
        run.graph.programs[spread->program].role, to_text(spread->least), to_text(spread->most)));
  }
  if (run.result.iteration == Time(0))
    run.warnings.push_back("the model has no work: an iteration takes no time");
  run.notes.insert(run.notes.end(), run.result.notes.begin(), run.result.notes.end());
  run.warnings.insert(run.warnings.end(), run.result.warnings.begin(), run.result.warnings.end());
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    // A little over 1 is rounding; more means that a network without contention let links carry more than
    // they can.
    if (summary.link_share > 1.0001) {
      run.warnings.push_back(
          fmt::format("{} ran at {:.0f}% of what its links can carry: the network model does not share links",
                      name_of(summary.kind), 100 * summary.link_share));
    }
  }
}

// What MFU counts, and where it says nothing.
void explain_utilization(Run& run) {
  const double executed = hardware_flops_utilization(run);
  if (executed > 1.0001) {
    run.warnings.push_back(
        fmt::format("the matrix products run at {:.0f}% of the devices' peak: the profile's "
                    "times are shorter than these devices can be",
                    100 * executed));
  }
  if (!has_hidden_scores(run.model) || run.result.iteration == Time(0)) return;
  const double seconds = in_seconds(run.result.iteration) * static_cast<double>(run.study.plan.ranks);
  run.notes.push_back(fmt::format(
      "model flops and MFU leave out the attention scores that the mask hides (causal half): "
      "{} per rank; counting every score, as PaLM and Megatron-LM do, {}",
      to_text(FlopRate(model_flops(run) / seconds)), to_text(FlopRate(full_model_flops(run) / seconds))));
}

void use_profile(Run& run, const CostModel& cost) {
  const Profile& profile = run.study.profile;
  if (profile.file.empty()) return;
  const ProfileUse use = apply_profile(profile, run.study.machine.device, cost, run.model, run.graph);
  (use.measured + use.interpolated > 0 ? run.notes : run.warnings).push_back(describe(use, profile));
  if (std::string warning = warn_of_short_times(use, profile, run.study.machine.device); !warning.empty())
    run.warnings.push_back(std::move(warning));
}

LoweredJob lower_job(const Run& run, std::int64_t iterations, Written written = Written::whole) {
  return with_places(run.study.request, [&] {
    return lower_hybrid(run.model, run.study.plan, iterations, run.study.machine.device.host_bandwidth,
                        written);
  });
}

void set_job(Run& run, std::int64_t iterations, LoweredJob& job) {
  // Memory needs the job's order of slots, so it is taken before the graph moves out.
  run.iterations = iterations;
  run.roles = hybrid_memory(job, run.study.plan, run.study.machine.device);
  run.graph = std::move(job.graph);
}

LoweredJob lower_measured_job(const Run& run, const CostModel& cost, std::int64_t iterations,
                              Written written) {
  LoweredJob job = lower_job(run, iterations, written);
  const Study& study = run.study;
  if (!study.profile.file.empty())
    apply_profile(study.profile, study.machine.device, cost, run.model, job.graph);
  return job;
}

// With what was played in its window, where that was asked for (`options` say how much of it is kept).
struct SteadyPlay {
  SteadyState steady;
  std::optional<Result> in_window;
};
// Unless it is `shown` nobody asks whether the most iterations have settled.
SteadyPlay steady_state_of(const Run& run, const Study& study, const CostModel& cost,
                           const SimulationOptions& options, Written written, bool shown) {
  // Intervals are for reports; searching for the steady state needs times only.
  SimulationOptions times = options, window = options;
  times.intervals = false;
  std::map<std::int64_t, Result> results;
  const auto play = [&](std::int64_t iterations, const SimulationOptions& how) {
    return simulate(lower_measured_job(run, cost, iterations, written).graph, study, cost, how);
  };
  SteadyPlay found;
  found.steady = find_steady_state(
      [&](std::int64_t iterations) { return (results[iterations] = play(iterations, times)).iteration; },
      [&](const SteadyState& steady) {
        if (!shown && steady.iterations == kMostIterations) return false;
        window.window = steady.window();
        found.in_window.reset();
        found.in_window = play(steady.iterations, window);
        return is_equal_share(*found.in_window, results[steady.iterations], steady.iterations);
      });
  const TimeWindow last = window.window, kept = found.steady.window();
  if (last.from != kept.from || last.until != kept.until) found.in_window.reset();
  return found;
}

// Nothing separates the iterations of the asynchronous schedule: the result is of one in the steady state.
void simulate_steady_iteration(Run& run, const CostModel& cost, SimulationOptions options, Written written) {
  auto [steady, in_window] = steady_state_of(run, run.study, cost, options, written, true);
  // The graph that was lowered first has fewer iterations than it takes: it is made again with enough, and so
  // is what hangs on it.
  if (steady.iterations != run.iterations) {
    LoweredJob job = lower_measured_job(run, cost, steady.iterations, written);
    set_job(run, steady.iterations, job);
    set_memory_limits(run);
  }
  options.window = steady.window();
  run.simulated = steady.end;
  run.result = in_window ? *std::move(in_window) : simulate(run.graph, run.study, cost, options);
  keep_window(run.result, options.window, run.iterations);
  run.notes.push_back(
      fmt::format("schedule '{}' has no flush between iterations, so that gradients are of the weights of "
                  "an iteration before: the figures are of one in the steady state, cut out of {} simulated "
                  "in a row",
                  run.study.plan.schedule, run.iterations));
  if (!steady.settled) {
    run.notes.push_back(
        fmt::format("after {} their times still differ: the one shown is as long as "
                    "the mean of the last {}",
                    typed_count(run.iterations, "iteration"), run.iterations / 2));
  }
}

// The iteration of the same job on the machine as it should be.
Time ideal_iteration(const Run& run, const CostModel& cost, SimulationOptions options, Written written) {
  // What-if settings slow ranks and links down; without them it is the machine as described.
  Study ideal = run.study;
  ideal.what_if = {};
  if (run.iterations > 1) {
    options.intervals = false;
    return steady_state_of(run, ideal, cost, options, written, false).steady.period;
  }
  options.intervals = false;
  return simulate(run.graph, ideal, cost, options).iteration;
}

// Of all simulations of a run, of which the first takes that long.
PlayTime time_of_all(PlayTime first, bool steady, bool has_ideal) {
  // 4, 2 and 3 iterations at least, then 8 and 7, 16 and 15; those that are shown once more.
  const PlayTime search = steady ? PlayTime{9.0 / 4, 55.0 / 4} : PlayTime{0, 0};
  const PlayTime shown = {1, steady ? 4.0 : 1.0};
  const PlayTime ideal = !has_ideal ? PlayTime{0, 0} : steady ? search : shown;
  return {first.least * (search.least + shown.least + ideal.least),
          first.most * (search.most + shown.most + ideal.most)};
}

void lay_out_job(Run& run, const CostModel& cost, Written written) {
  Plan& plan = run.study.plan;
  const std::string where = run.study.request.where.empty() ? "plan" : run.study.request.where;
  // Stages first, since everything below is laid out by them; they are balanced by the cost model, which
  // lowering does not know.
  with_places(run.study.request, [&] {
    if (run.study.request.balance_stages) plan.stage_blocks = balance_stages(run.model, plan, cost, where);
    check_plan_for_model(plan, run.model, where);
  });
  resolve_exchange(run.model.facts, plan);
  // Asynchronous schedules need a few iterations to have any that overlaps with both neighbours.
  const std::int64_t iterations = schedule_of(plan).flushes ? 1 : kFewestIterations;
  LoweredJob job = lower_job(run, iterations, written);
  run.notes = std::move(job.notes);
  set_job(run, iterations, job);
}

// As loops wherever not every interval is asked for and every iteration is the same.
Written written_for(const Study& study, const SimulationOptions& options) {
  const bool may_loop = !(options.intervals && options.every_interval) && options.fold_time &&
                        !(study.what_if.jitter.deviation > 0);
  return may_loop ? Written::loops : Written::whole;
}

}  // namespace

Run lower_bare_study(const Study& study, const CostModel& cost, Progress& progress, Written written) {
  validate_plan(study.plan, "plan");
  validate_machine(study.machine);
  // An unsupported type is refused before a large model is read.
  check_precision(study, study.plan, cost);
  Run run;
  run.study = study;
  attain_links(run.study);
  progress.begin("reading the model");
  // The model is read for one micro-batch: the plan repeats it.
  run.model = read_model(study.model, study.plan.micro_batch());
  require_work(run.model);
  // Graphs read from files come without blocks; descriptions bring theirs.
  if (run.model.blocks.empty()) annotate_parallelism(run.model);
  check_training(study.training, run.model);
  settle_recompute(study.request, run.model.facts, run.study.plan);
  progress.begin("laying out the job");
  lay_out_job(run, cost, written);
  set_memory_limits(run);
  return run;
}

Run lower_study(const Study& study, const CostModel& cost, Progress& progress, Written written) {
  Run run = lower_bare_study(study, cost, progress, written);
  set_peak(run, cost);
  add_notes(run, cost);
  use_profile(run, cost);
  add_model_warnings(run);
  return run;
}

Run run_study(const Study& study, const SimulationOptions& options) {
  // The cost model first: a wrong name should not wait for a large model to be read.
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  const Written written = written_for(study, options);
  Run run = lower_study(study, *cost, *options.progress, written);
  if (run.iterations > 1) {
    simulate_steady_iteration(run, *cost, options, written);
  } else {
    run.result = simulate(run.graph, run.study, *cost, options);
  }
  run.shares = compute_shares(run.graph, *cost);
  // Those errors are of modelled times.
  if (run.shares.measured < 0.5)
    run.like = like_measured(run.study.plan, run.model.facts, run.study.machine.device);
  if (study.what_if.changes_simulation()) run.ideal = ideal_iteration(run, *cost, options, written);
  if (study.what_if.failures.mtbf_of_node > 0) {
    run.goodput = goodput(study.what_if.failures, study.plan.ranks, in_seconds(run.result.iteration),
                          "what_if.failures");
  }
  options.progress->begin("writing the report");
  add_result_warnings(run);
  explain_utilization(run);
  return run;
}

PlayTime foresee_study(const Study& study, const SimulationOptions& options) {
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  const Run run = lower_study(study, *cost, *options.progress, written_for(study, options));
  return time_of_all(foresee(run.graph, run.study, *cost, options), run.iterations > 1,
                     study.what_if.changes_simulation());
}

}  // namespace armilla
