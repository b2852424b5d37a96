#include "study/run_study.h"

#include <fmt/format.h>

#include "base/units_text.h"
#include "ir/metrics.h"
#include "lower/data_parallel.h"
#include "lower/memory.h"
#include "read/read.h"

namespace armilla {
namespace {

void add_notes(Run& run) {
  const Study& study = run.study;
  run.notes = run.model.notes;
  const Device& device = study.machine.device;
  if (!device.matrix_rate.contains(study.plan.precision)) {
    run.notes.push_back(fmt::format("device '{}' lists no matrix rate for {}: its vector rate of {} is used",
                                    device.name, name_of(study.plan.precision), to_text(device.vector_rate)));
  }
  for (const UnknownOperator& unknown : run.model.unknown) {
    run.warnings.push_back(describe(unknown, static_cast<std::int64_t>(run.model.operators.size()),
                                    totals(run.model).forward_bytes));
  }
}

void add_warnings(Run& run) {
  if (run.result.iteration == Time(0))
    run.warnings.push_back("the model has no work: an iteration takes no time");
  if (!run.memory.fits()) {
    run.warnings.push_back(fmt::format(
        "does not fit: a rank needs {}, device '{}' has {}; more micro-batches, a smaller batch or a "
        "smaller precision need less",
        to_text(run.memory.peak()), run.study.machine.device.name, to_text(run.memory.capacity)));
  }
  run.warnings.insert(run.warnings.end(), run.result.warnings.begin(), run.result.warnings.end());
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    if (summary.link_share > 1.0001) {
      run.warnings.push_back(
          fmt::format("{} ran at {:.0f}% of what its links can carry: the network model does not share links",
                      name_of(summary.kind), 100 * summary.link_share));
    }
  }
}

}  // namespace

Run run_study(const Study& study, const SimulationOptions& options) {
  validate_plan(study.plan, "plan");
  validate_machine(study.machine);
  Run run;
  run.study = study;
  // The cost model first: a wrong name should not wait for a large model to be read.
  const std::unique_ptr<CostModel> cost = make_cost_model(study.compute, study.machine.device);
  run.model =
      read_model(study.model.name, {study.model.dimensions, study.plan.batch / study.plan.micro_batches});
  run.peak_rate = cost->peak(study.plan.precision);
  run.graph = lower_data_parallel(run.model, study.plan);
  run.memory = data_parallel_memory(run.model, study.plan, study.machine.device);
  run.result = simulate(run.graph, study, *cost, options);
  add_notes(run);
  add_warnings(run);
  return run;
}

}  // namespace armilla
