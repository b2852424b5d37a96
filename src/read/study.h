// Readers of Armilla's own configuration: studies, machines and devices.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "ir/jobs.h"
#include "ir/machine.h"
#include "ir/study.h"

namespace armilla {

// Machines and devices from YAML: machines/devices/NAME.yaml, machines/clusters/NAME.yaml (both compiled in),
// a user's own file, or the `machine:` section of a study. The keys are those of ir/machine.h;
// machines/README.md lists them. Every figure has its unit; a relative path is relative to the folder of the
// file it stands in.

// `in_turn`: how many devices have named the next as what they are like.
Device read_device(const Config& config, int in_turn = 0);
// `device:` inside is a device name, a path or a whole device mapping. `warnings`: what a file of its links
// says that has no effect.
Machine read_machine(const Config& config, std::vector<std::string>* warnings = nullptr);

// Names of the compiled-in ones, sorted.
std::vector<std::string> device_names();
std::vector<std::string> machine_names();
// The compiled-in ones that a name can mean: the one called so; else those whose names have all its words
// ("h100": dgx-h100; h100-pcie, h100-sxm); else, of machines, those with such a device. Case does not matter.
std::vector<std::string> devices_meant(std::string_view name);
std::vector<std::string> machines_meant(std::string_view name);
// A name that means one of the compiled-in ones, or the path of a YAML file. Throws Error with "did you
// mean".
Device load_device(const std::string& name_or_path, const std::string& where, int in_turn = 0);
Machine load_machine(const std::string& name_or_path, const std::string& where,
                     std::vector<std::string>* warnings = nullptr);

// The YAML of a device, and of a machine with its device's figures in place; names and paths as above.
std::string device_text(const std::string& name_or_path, const std::string& where);
std::string machine_text(const std::string& name_or_path, const std::string& where);
// What `machine:` and its `device:` of a study stand for, and where names of models, networks and compute
// models stand in their long form, so that overrides can change what is below them (base/config.h).
std::optional<NamedText> expand_name(const std::string& path, const std::string& value,
                                     const std::string& folder);

// The value's text: a name as it stands, a path seen from the folder of the file that it is written in.
std::string name_or_path(const Config& config);

// A study from YAML: the whole of a run in one file (docs/formats/study.schema.json lists the keys for
// editors, examples/resnet50-dgx-a100.yaml shows them).
//
//   model        a zoo name or a path, or {name, dimensions: {symbol: size}, sequence, layers}
//   machine      a cluster's name or a path, or a whole machine (above)
//   plan         how the job is spread (read/study/plan_yaml.h)
//   compute      "roofline" or "systolic:rows=128", or {model: systolic, rows: 128}, or a SCALE-Sim .cfg
//   network      likewise
//   collectives  algorithms (a name, or a list with one per dimension), the same per kind under the kind's
//                name, decomposition, chunks, active_chunks, order, charge_reductions
//   profile      a file of measured times (read/profile.h), or a database of them (study/profile.h)
//   what_if      slow ranks and links, jitter, failures (read/study/what_if_yaml.h)
//   training     tokens or samples that the whole training reads, such as 15T
//
// Relative paths are relative to the file's folder, those of overrides to the working directory. Only `model`
// and `machine` must be there; the other defaults are those of ir/plan.h and ir/collective.h. Component names
// and their parameters are checked where the components are made, and how everything fits together where the
// study is prepared (study/run.h).

// Whether `path` is a study rather than a model, by its content; YAML and JSON of no known kind count, so
// that their errors are those of a study. Throws Error for a file that is known to be neither.
bool holds_study(const std::string& path);
// Throws Error for a list, a single value or an empty file.
void require_study(const Config& config);

// `warnings`, here and below: as of read_machine.
Study read_study(const Config& config, std::vector<std::string>* warnings = nullptr);

// Of one without a model: machine, components, what_if, and of the plan only `ranks`.
Study read_machine_study(const Config& config, std::vector<std::string>* warnings = nullptr);

// Of a study with `jobs` instead of `model` and `plan`: a list of {name, model, plan, devices: "0-63",
// start}; the other sections are shared by all.
JobsStudy read_jobs(const Config& config, std::vector<std::string>* warnings = nullptr);

}  // namespace armilla
