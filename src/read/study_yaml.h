// A study from YAML: the whole of a run in one file (docs/formats/study.schema.json lists the keys for
// editors, examples/resnet50-dgx-a100.yaml shows them).
//
//   model        a zoo name or a path, or {name, dimensions: {symbol: size}, sequence}
//   machine      a cluster's name or a path, or a whole machine (read/machine_yaml.h)
//   plan         how the job is spread (read/study/plan_yaml.h)
//   compute      "roofline" or "systolic:rows=128", or {model: systolic, rows: 128}, or a SCALE-Sim .cfg
//   network      likewise
//   collectives  algorithms (a name, or a list with one per dimension), the same per kind under the kind's
//                name, decomposition, chunks, active_chunks, order, charge_reductions
//   profile      a file of measured times (read/profile_csv.h)
//   what_if      slow ranks and links, jitter, failures (read/study/what_if_yaml.h)
//   training     tokens or samples that the whole training reads, such as 15T
//
// Relative paths are relative to the file's folder, those of overrides to the working directory. Only `model`
// and `machine` must be there; the other defaults are those of ir/plan.h and ir/collective.h. Component names
// and their parameters are checked where the components are made, and how everything fits together where the
// study is prepared (study/prepare.h).
#pragma once

#include "base/config.h"
#include "ir/jobs.h"
#include "ir/study.h"

namespace armilla {

// Whether `path` is a study rather than a model, by its content; YAML and JSON of no known kind count, so
// that their errors are those of a study. Throws Error for a file that is known to be neither.
bool holds_study(const std::string& path);
// Throws Error for a list, a single value or an empty file.
void require_study(const Config& config);

Study read_study(const Config& config);

// Of one without a model: machine, components, what_if, and of the plan only `ranks`.
Study read_machine_study(const Config& config);

// Of a study with `jobs` instead of `model` and `plan`: a list of {name, model, plan, devices: "0-63",
// start}; the other sections are shared by all.
JobsStudy read_jobs(const Config& config);

}  // namespace armilla
