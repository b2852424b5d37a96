#include "study/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "base/error.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "ir/derived/metrics.h"
#include "ir/derived/rank_ranges.h"
#include "lower/merge_jobs.h"
#include "lower/pipeline_schedule.h"
#include "lower/plan.h"
#include "read/read.h"
#include "study/run/attained_links.h"

namespace armilla {
namespace {

std::int64_t devices_in(const std::vector<RankRange>& ranges) {
  std::int64_t devices = 0;
  for (const RankRange& range : ranges) devices += range.last - range.first + 1;
  return devices;
}

// Gives every job its devices: those it names, or the lowest that no job has taken or named.
// Named devices are set aside before any job takes free ones, so that the order of jobs does not matter for
// them.
class JobPlacement {
 public:
  explicit JobPlacement(const JobsStudy& study) : machine_(study.shared.machine) {
    for (const JobRequest& job : study.jobs) {
      for (const RankRange& range : job.devices) named_.push_back(range);
    }
    std::sort(named_.begin(), named_.end(),
              [](const RankRange& a, const RankRange& b) { return a.first < b.first; });
  }

  std::vector<std::int32_t> devices(const JobRequest& job, std::int64_t ranks) {
    if (!job.devices.empty() && devices_in(job.devices) != ranks) {
      throw Error(job.devices_where,
                  fmt::format("{} for the {} of '{}'", counted(devices_in(job.devices), "device"),
                              counted(ranks, "rank"), job.name),
                  "name as many devices as the plan has ranks, or leave `devices` out");
    }
    std::vector<std::int32_t> devices;
    for (const RankRange& range : job.devices) {
      for (std::int64_t device = range.first; device <= range.last; ++device)
        devices.push_back(static_cast<std::int32_t>(device));
    }
    if (job.devices.empty()) take_free(ranks, devices);
    check(job, *std::max_element(devices.begin(), devices.end()));
    for (const std::int32_t device : devices) {
      // Two jobs may name the same device: found here, where both are known by name.
      const auto [found, free] = taken_.try_emplace(device, job.name);
      if (!free) {
        throw Error(job.devices_where,
                    fmt::format("device {} already runs a rank of '{}'", device, found->second),
                    "a device runs one rank");
      }
    }
    return devices;
  }

 private:
  void check(const JobRequest& job, std::int64_t last) const {
    const std::int64_t count = rank_count(machine_);
    if (machine_.elastic || last < count) return;
    if (job.devices.empty()) {
      throw Error(
          job.devices_where,
          fmt::format("the {} of machine '{}' {} not enough for '{}' beside the jobs before it",
                      typed_count(count, "device"), machine_.name, count == 1 ? "is" : "are", job.name),
          "give a larger machine or the jobs fewer ranks");
    }
    throw Error(job.devices_where, fmt::format("device {} does not exist", last),
                fmt::format("devices of machine '{}' are 0 to {}", machine_.name, count - 1));
  }

  // The next free device lies behind all named ranges that begin at or before it.
  void take_free(std::int64_t ranks, std::vector<std::int32_t>& devices) {
    while (static_cast<std::int64_t>(devices.size()) < ranks) {
      while (next_named_ < named_.size() && named_[next_named_].last < next_) ++next_named_;
      if (next_named_ < named_.size() && named_[next_named_].first <= next_) {
        next_ = named_[next_named_].last + 1;
      } else {
        devices.push_back(static_cast<std::int32_t>(next_++));
      }
    }
  }

  const Machine& machine_;
  std::vector<RankRange> named_;  // by their first device
  std::size_t next_named_ = 0;
  std::int64_t next_ = 0;
  std::unordered_map<std::int32_t, std::string> taken_;  // by which job
};

// An elastic machine grows by whole blocks until it holds the last device.
Machine machine_for(const Machine& machine, std::int64_t devices) {
  // Whole blocks of the outermost dimension, so that the machine keeps its shape.
  if (!machine.elastic || machine.dimensions.empty()) return machine;
  std::int64_t block = 1;
  for (std::size_t d = 0; d + 1 < machine.dimensions.size(); ++d) block *= machine.dimensions[d].size;
  // Of a torus whole cubes, and where one slice does not hold them the largest slices.
  if (machine.largest_slice > 0 && devices > machine.largest_slice)
    block *= std::max<std::int64_t>(1, machine.largest_slice / block);
  return with_ranks(machine, ceil_divide(devices, block) * block, true, "jobs");
}

// The other devices of the machine as the ranks of a job that was given `devices` see them.
std::vector<OtherDevices> others_of(const Machine& machine, const std::vector<std::int32_t>& devices) {
  // Ranks of a job are numbered by themselves; runs of equal devices become one entry.
  std::vector<OtherDevices> others;
  std::uint32_t latest = 0;
  for (std::size_t rank = 0; rank < devices.size() && !machine.others.empty(); ++rank) {
    const auto at = static_cast<std::int64_t>(rank);
    const std::uint32_t number = device_number(machine, devices[rank]);
    if (number > 0 && number == latest) {
      others.back().last = at;
    } else if (number > 0) {
      others.push_back({at, at, machine.others[number - 1].device});
    }
    latest = number;
  }
  return others;
}

// The job as a study of its own, on a machine as large as it is: its plan is resolved against that.
Study prepared(const JobRequest& job) {
  Study study = job.study;
  settle_default_precision(study);
  // A job with named devices has as many as it names; otherwise as many as its plan asks of the machine.
  const std::int64_t devices = job.devices.empty() ? rank_count(study.machine) : devices_in(job.devices);
  if (!job.devices.empty() && devices > kMostRanks)
    throw Error(job.devices_where, fmt::format("{} devices", devices),
                fmt::format("a job can have at most {}", kMostRanks));
  study.plan = resolve_plan(study.request, devices, study.machine.elastic && job.devices.empty(),
                            is_described(study.model));
  settle_host(study.plan, study.machine.device);
  if (!schedule_of(study.plan).flushes) {
    throw Error(job.where, fmt::format("the schedule {} beside other jobs", study.plan.schedule),
                "it has no iteration that begins and ends; choose 1f1b");
  }
  return study;
}

std::string device_text(const std::vector<std::int32_t>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end] == devices[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end - i == 1 ? fmt::format("{}", devices[i]) : fmt::format("{}-{}", devices[i], devices[end - 1]);
    i = end;
  }
  return text;
}

Time time_of(const PlacedJob& job, const Result& result) {
  // From the job's own start to its last rank's finish: others may run longer.
  Time end = job.start;
  for (const std::int32_t device : job.devices)
    end = std::max(end, result.classes[result.class_of[static_cast<std::size_t>(device)]].finish);
  return end - job.start;
}

}  // namespace

LoweredJobs lower_jobs(const JobsStudy& study, const CostModel& cost) {
  validate_machine(study.shared.machine);
  LoweredJobs lowered;
  Run& run = lowered.run;
  run.study = study.shared;
  run.workload = counted(study.jobs.size(), "job");
  run.peak_rate = cost.peak(run.study.plan.precision);
  JobPlacement placement(study);
  std::int64_t devices = 1;
  for (const JobRequest& job : study.jobs) {
    // Each job is lowered as if it had the machine to itself; sharing shows in the simulation of the merged
    // graph.
    Study own_study = prepared(job);
    lowered.placed.push_back({nullptr, job.name, placement.devices(job, own_study.plan.ranks), job.start});
    own_study.machine.others = others_of(study.shared.machine, lowered.placed.back().devices);
    lowered.jobs.push_back(lower_study(own_study, cost));
    const Run& own = lowered.jobs.back();
    for (const std::int32_t device : lowered.placed.back().devices)
      devices = std::max(devices, std::int64_t{device} + 1);
    for (const std::string& note : own.notes) run.notes.push_back(fmt::format("{}: {}", job.name, note));
    for (const std::string& warning : own.warnings)
      run.warnings.push_back(fmt::format("{}: {}", job.name, warning));
  }
  // Pointers are set last: the vector of jobs has moved them while it grew.
  for (std::size_t i = 0; i < lowered.jobs.size(); ++i) lowered.placed[i].graph = &lowered.jobs[i].graph;
  run.study.machine = machine_for(study.shared.machine, devices);
  attain_links(run.study);
  run.study.plan.ranks = rank_count(run.study.machine);
  check_what_if(run.study.what_if, run.study.machine, run.study.plan.ranks);
  run.graph = merge_jobs(lowered.placed, run.study.plan.ranks);
  return lowered;
}

Run run_jobs(const JobsStudy& study, const SimulationOptions& options) {
  const std::unique_ptr<CostModel> cost = make_cost_model(study.shared.compute, study.shared.machine.device);
  LoweredJobs lowered = lower_jobs(study, *cost);
  Run& run = lowered.run;
  run.result = simulate(run.graph, run.study, *cost, options);
  SimulationOptions alone_options = options;
  alone_options.intervals = false;
  if (run.study.what_if.changes_simulation()) {
    Study ideal = run.study;
    ideal.what_if = {};
    run.ideal = simulate(run.graph, ideal, *cost, alone_options).iteration;
  }
  for (std::size_t i = 0; i < lowered.placed.size(); ++i) {
    const PlacedJob& placed = lowered.placed[i];
    PlacedJob alone = placed;
    alone.start = Time(0);
    const Graph graph = merge_jobs(std::span(&alone, 1), run.study.plan.ranks);
    const Result result = simulate(graph, run.study, *cost, alone_options);
    run.jobs.push_back({placed.name, lowered.jobs[i].model.name, device_text(placed.devices),
                        lowered.jobs[i].graph.ranks, placed.start, time_of(alone, result),
                        time_of(placed, run.result)});
  }
  run.notes.insert(run.notes.end(), run.result.notes.begin(), run.result.notes.end());
  run.warnings.insert(run.warnings.end(), run.result.warnings.begin(), run.result.warnings.end());
  return std::move(lowered.run);
}

PlayTime foresee_jobs(const JobsStudy& study, const SimulationOptions& options) {
  const std::unique_ptr<CostModel> cost = make_cost_model(study.shared.compute, study.shared.machine.device);
  const Run run = lower_jobs(study, *cost).run;
  const PlayTime together = foresee(run.graph, run.study, *cost, options);
  // The ideal one; each job alone, where ranks that fare alike may be played as one.
  const double ideal = run.study.what_if.changes_simulation() ? 1 : 0;
  return {together.least * (1 + ideal), together.most * (2 + ideal)};
}

}  // namespace armilla
