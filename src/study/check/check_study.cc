#include "study/check/check_study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "network/network.h"
#include "read/study.h"
#include "read/topology.h"
#include "sim/collective_plan.h"
#include "study/run.h"
#include "study/run/prepare.h"
#include "study/search.h"
#include "study/search/space.h"

namespace armilla {

namespace {

// What a run would make of components and their parameters is made and thrown away: their constructors hold
// the checks.
void check_components(const Study& study) {
  make_cost_model(study.compute, study.machine.device);
  check_names(study);
  CollectivePlanner(study.machine, study.collectives, promises_of(study.network));
}

// A study with lists is one of a search: every value is read, and no plan looked at.
std::string check_search(const std::string& path, std::vector<SearchAxis> axes) {
  SearchRequest request;
  request.axes = std::move(axes);
  request.read = [&path](const std::vector<Override>& settings) {
    return read_study(Config::read(path, settings, expand_name));
  };
  const SearchSpace space(request);
  std::vector<std::string> machines;
  for (const SearchBase& base : space.bases()) {
    if (std::ranges::find(machines, base.study.machine.name) == machines.end())
      machines.push_back(base.study.machine.name);
  }
  return fmt::format("study for armilla search: {} of {} on {}", counted(space.points(), "plan"),
                     space.bases().front().study.model.name, fmt::join(machines, " and "));
}

std::string check_jobs(const JobsStudy& study) {
  check_components(study.shared);
  const LoweredJobs lowered =
      lower_jobs(study, *make_cost_model(study.shared.compute, study.shared.machine.device));
  return fmt::format("study of {} on {} of {}", lowered.run.workload,
                     counted(lowered.run.graph.ranks, "device"), study.shared.machine.name);
}

}  // namespace

std::string check_study_file(const std::string& path) {
  const Config config = Config::read(path);
  require_study(config);
  if (!config.has("jobs") && !config.has("model") && !config.has("machine") && !config.has("plan"))
    throw Error(
        path,
        "is neither a study (no key 'model') nor a machine (no key 'dimensions') nor a device (no key "
        "'memory_bandwidth')");
  if (std::vector<SearchAxis> axes = search_axes(Config::read(path, {}, expand_name));
      !config.has("jobs") && !axes.empty() && !names_topology(axes.front().values.front()))
    return check_search(path, std::move(axes));
  return check_study(config);
}

std::string check_study(const Config& config) {
  require_study(config);
  // First: a key that was asked for is a known one.
  std::vector<std::string> notes;
  const auto with_notes = [&](std::string text) {
    for (const std::string& note : notes) text += "\n  note: " + note;
    return text;
  };
  if (config.has("jobs")) {
    const JobsStudy jobs = read_jobs(config, &notes);
    return with_notes(check_jobs(jobs));
  }
  const Study study = prepare_study(read_study(config, &notes));
  check_components(study);
  // Lowering finds what the plan cannot do with the model; only the simulation itself is left out.
  const Run run = lower_study(study, *make_cost_model(study.compute, study.machine.device));
  return with_notes(fmt::format("study of {} on {} of {}", run.model.name, counted(study.plan.ranks, "rank"),
                                study.machine.name));
}

}  // namespace armilla
