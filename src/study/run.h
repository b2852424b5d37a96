// One whole run, from a study to its results.
#pragma once

#include <vector>

#include "cost/cost.h"
#include "ir/collective.h"
#include "ir/derived/events.h"
#include "ir/derived/layer_table.h"
#include "ir/jobs.h"
#include "ir/model.h"
#include "ir/study.h"
#include "lower/hybrid.h"
#include "lower/merge_jobs.h"
#include "sim/simulate.h"

namespace armilla {

// A study as read -> one that can be run: the plan resolved (lower/plan.h), the machine cut or grown
// to its ranks, and what the other sections say of ranks and dimensions checked against both. Looks at the
// model only as far as it takes to know of which kind it is.

// Throws Error.
Study prepare_study(Study study);

// Throws Error where a what-if names ranks or dimensions that `machine`, cut to `ranks`, does not have.
void check_what_if(const WhatIf& what_if, const Machine& machine, std::int64_t ranks);

// The plan's precision against what the devices compute in: a type that a device has no rate for is refused
// with the nearest types that it has, never simulated at another type's rate. What is only stored (weights,
// gradients, gathered parameters) can have any type.

// Throws Error where there is no rate. `device` is what the message calls it.
void require_precision(const CostModel& cost, DType dtype, const std::string& device,
                       const std::string& where);

// Every type that matrix products of the resolved plan are in, on every device of its ranks. fp8 and fp4
// plans compute attention, embeddings and heads in bf16. `cost` is that of the machine's usual device.
void check_precision(const Study& study, const Plan& plan, const CostModel& cost);

// Every type that matrix products of a model as read are in: where no plan gives another one.
void check_precision(const Model& model, const CostModel& cost, const std::string& device,
                     const std::string& where);

// Where the user leaves the precision of a described model open and some device has no bf16: the nearest type
// that all of them have (fp16, else fp32).
void settle_default_precision(Study& study);
// What there is to say of that.
std::vector<std::string> precision_notes(const Study& study, const CostModel& cost);

// One run: read the model, lower it under the plan, simulate it on the machine.
//
// Every plan is lowered by the passes of lower/hybrid.h; plain data parallelism of a model that is read from
// a graph becomes PyTorch's DistributedDataParallel. The asynchronous schedule is simulated for several
// iterations, of which the
// result is one in the steady state (study/run/steady_state.h).

// The study must be prepared. Throws Error for anything it asks for that does not exist or
// does not fit together. A model that does not fit the device's memory is an answer, not an Error: it is
// simulated all the same and warned about.
Run run_study(const Study& study, const SimulationOptions& options = {});

// How long the processor plays that, on networks that say so; else no time (sim/simulate.h). Throws Error for
// what is refused before anything is played.
PlayTime foresee_study(const Study& study, const SimulationOptions& options = {});

// All of it but the simulation: the model, the graph, the memory, and what there is to say of them. `cost` is
// the study's own, for the study's usual device.
Run lower_study(const Study& study, const CostModel& cost, Progress& progress = no_progress(),
                Written written = Written::whole);
// Without what there is to say, which takes longer than all the rest, and without the profile.
Run lower_bare_study(const Study& study, const CostModel& cost, Progress& progress = no_progress(),
                     Written written = Written::whole);

// Several jobs on one machine, each with its own model and plan, over one network.
//
// Every job is lowered by itself and placed on its devices (lower/merge_jobs.h); all are simulated together
// for one iteration each, and every job once more alone on the same devices: the difference is what the
// others cost it. Later iterations, in which jobs drift against each other, are not played.

// The jobs before they are simulated.
struct LoweredJobs {
  Run run;                        // of all together: graph, machine, notes, warnings
  std::vector<Run> jobs;          // each by itself
  std::vector<PlacedJob> placed;  // pointing into `jobs`
};

// Throws Error for what lower_study would, for devices that do not exist or that two jobs want, and for the
// asynchronous schedule, which has no iteration of its own. `cost` is the shared study's.
LoweredJobs lower_jobs(const JobsStudy& study, const CostModel& cost);

// A Run without a model, with Run::jobs. Throws Error as above.
Run run_jobs(const JobsStudy& study, const SimulationOptions& options = {});
PlayTime foresee_jobs(const JobsStudy& study, const SimulationOptions& options = {});

// One collective by itself, as nccl-tests measures it: all ranks of a machine begin it at time 0.

// `machine` is a study without a model (read_machine_study); its request may say how many ranks take part. A
// Run without a model. Throws Error as run_study does.
Run run_collective(const Study& machine, CollectiveKind kind, Bytes bytes,
                   const SimulationOptions& options = {});

// Costs of a model's layers one by one, without a plan: what `armilla layers --compute` shows and what text
// workloads are made from.

// The layer table of `model` with the time (and cycles, where the model counts them) of each layer's forward
// pass, input gradient and weight gradient: the sums over its operators.
LayerTable costed_layers(const Model& model, const CostModel& cost, const std::string& compute);

// The events (ir/derived/events.h) of a run. Cost: O(nodes + ranks x families).

EventTable list_events(const Run& run, const CostModel& cost);

}  // namespace armilla
