#include "read/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/amount.h"
#include "base/error.h"
#include "base/file_status.h"
#include "ir/derived/rank_ranges.h"
#include "read/file_format.h"
#include "read/profile.h"
#include "read/read.h"
#include "read/scalesim.h"
#include "read/study/choice_yaml.h"
#include "read/study/mapping_yaml.h"
#include "read/study/plan_yaml.h"
#include "read/study/what_if_yaml.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

// Beyond any sense, so that nothing downstream is asked to allocate by a typing mistake.
constexpr std::int64_t kMostChunks = 65536;

ModelSource read_model_source(const Config& config) {
  ModelSource model;
  if (config.is_scalar()) {
    model.name = name_or_path(config);
    return model;
  }
  const Config name = config.at("name");
  // What is described here needs no file.
  if (const auto description = config.find("description")) model.text = description->text();
  model.name = model.text.empty() ? name_or_path(name) : name.text();
  if (const auto dimensions = config.find("dimensions")) {
    for (const auto& [symbol, size] : dimensions->entries()) model.dimensions[symbol] = size.count();
  }
  if (const auto sequence = config.find("sequence")) model.sequence = sequence->count(1, INT32_MAX);
  if (const auto layers = config.find("layers")) model.layers = layers->count(1, INT32_MAX);
  if (const auto rank = config.find("lora_rank")) model.lora_rank = rank->count(1, INT32_MAX);
  config.reject_unknown_keys();
  return model;
}

ComponentChoice read_component(const Config& config) {
  if (config.is_scalar()) return parse_component(config.text(), config.where());
  ComponentChoice choice;
  choice.where = config.at("model").where();
  choice.name = config.at("model").text();
  // In a mapping `model` names the component, and all other keys are its parameters.
  for (const auto& [name, value] : config.entries()) {
    if (name != "model") choice.parameters[name] = {value.text(), value.where()};
  }
  return choice;
}

ComponentChoice read_compute(const Config& config) {
  return config.is_scalar() ? read_compute_choice(config.text(), config.where(), config.folder())
                            : read_component(config);
}

std::vector<std::string> read_algorithm_names(const Config& config) {
  std::vector<std::string> algorithms;
  if (config.is_scalar()) {
    algorithms.push_back(config.text());
  } else {
    for (const Config& item : config.items()) algorithms.push_back(item.text());
  }
  if (algorithms.empty())
    throw Error(config.where(), "the list is empty", "leave the key out for the default");
  for (const std::string& algorithm : algorithms) {
    if (algorithm.empty()) throw Error(config.where(), "the name is empty");
  }
  return algorithms;
}

CollectiveOptions read_collectives(const Config& config) {
  CollectiveOptions options;
  if (const auto algorithms = config.find("algorithms")) {
    options.algorithms = read_algorithm_names(*algorithms);
    options.algorithms_where = algorithms->where();
  }
  for (const CollectiveKind kind : kCollectiveKinds) {
    const auto algorithms = config.find(name_of(kind));
    if (!algorithms) continue;
    options.algorithms_by_kind[kind] = read_algorithm_names(*algorithms);
    options.where_by_kind[kind] = algorithms->where();
  }
  if (const auto decomposition = config.find("decomposition")) {
    options.decomposition =
        read_choice(*decomposition, {Decomposition::multi_axis, Decomposition::bandwidth_aware,
                                     Decomposition::baseline, Decomposition::flat});
  }
  if (const auto chunks = config.find("chunks")) options.chunks = chunks->count(1, kMostChunks);
  if (const auto chunks = config.find("active_chunks")) options.active_chunks = chunks->count(1, kMostChunks);
  if (const auto order = config.find("order"))
    options.order = read_choice(*order, {ChunkOrder::lifo, ChunkOrder::fifo, ChunkOrder::priority});
  if (const auto charge = config.find("charge_reductions")) options.charge_reductions = charge->boolean();
  if (const auto measured = config.find("measured")) options.measured = measured->boolean();
  config.reject_unknown_keys();
  return options;
}

TrainingGoal read_training(const Config& config) {
  TrainingGoal goal;
  goal.where = config.where();
  const auto read = [&](std::string_view key, double& amount) {
    const auto given = config.find(key);
    if (!given) return;
    goal.where = given->where();
    amount = parse_amount(given->text(), given->where());
    // Of 16.4M the product is 16399999.999999998.
    if (std::abs(amount - std::round(amount)) > 1e-9 * amount)
      throw Error(given->where(), fmt::format("{} {}", given->text(), key), "expected a whole number");
  };
  read("tokens", goal.tokens);
  read("samples", goal.samples);
  config.reject_unknown_keys();
  if (goal.tokens > 0 && goal.samples > 0)
    throw Error(goal.where, "cannot be combined with training.tokens", "give one of them");
  return goal;
}

// Everything but the model and the plan.
Study read_shared(const Config& config, std::vector<std::string>* warnings) {
  Study study;
  const Config machine = config.at("machine");
  study.machine = machine.is_scalar() ? load_machine(name_or_path(machine), machine.where(), warnings)
                                      : read_machine(machine, warnings);
  // Without a plan the machine says how many ranks there are, so errors about them point there.
  study.request.where = study.request.ranks_where = machine.where();
  if (const auto compute = config.find("compute")) study.compute = read_compute(*compute);
  if (const auto network = config.find("network"))
    study.network = read_component(*network);
  else if (!study.machine.graph.empty())  // whose links groups share in ways that dimensions do not tell
    study.network.name = "flow";
  if (const auto collectives = config.find("collectives")) study.collectives = read_collectives(*collectives);
  if (const auto what_if = config.find("what_if")) study.what_if = read_what_if(*what_if, study.machine);
  return study;
}

void read_job(const Config& config, Study& study) {
  study.model = read_model_source(config.at("model"));
  if (const auto profile = config.find("profile")) {
    const std::string path = name_or_path(*profile);
    // Only whole studies know databases.
    study.profile = sniff_file(path) == FileKind::sqlite ? Profile{path} : read_profile(path);
  }
  // A plan replaces the request; where the ranks were given has to survive it.
  const std::string ranks_where = study.request.ranks_where;
  if (const auto plan = config.find("plan")) study.request = read_plan(*plan);
  if (study.request.ranks_where.empty())
    study.request.ranks_where = config.has("plan") ? study.request.where : ranks_where;
}

}  // namespace

// By contents; only what is unknown is judged by its suffix.
bool holds_study(const std::string& path) {
  const bool json = path.ends_with(".json");
  const bool configuration = json || path.ends_with(".yaml") || path.ends_with(".yml");
  if (names_model(path) || is_folder(path)) return false;
  if (!is_there(path)) return configuration && !json;
  const FileKind kind = sniff_file(path);
  const auto formats = model_formats();
  if (std::any_of(formats.begin(), formats.end(), [&](const ModelFormat& f) { return f.kind == kind; }))
    return false;
  if (kind == FileKind::study) return true;
  // Nothing that is known: the suffix says what it was meant to be.
  if (kind >= FileKind::json && kind != FileKind::binary && configuration) return true;
  if (kind == FileKind::binary) return false;
  throw wrong_kind(path, kind, "a model or a study");
}

void require_study(const Config& config) {
  require_mapping(config, "a study", "a study has the keys 'model' and 'machine'");
}

Study read_study(const Config& config, std::vector<std::string>* warnings) {
  if (const auto jobs = config.is_map() ? config.find("jobs") : std::nullopt)
    throw Error(jobs->where(), "several jobs where one model is expected", "armilla run and check take them");
  require_study(config);
  config.at("model");  // of two keys that are missing, the one a user thinks of first
  Study study = read_shared(config, warnings);
  if (const auto training = config.find("training")) study.training = read_training(*training);
  read_job(config, study);
  config.reject_unknown_keys(plan_keys_outside());
  return study;
}

Study read_machine_study(const Config& config, std::vector<std::string>* warnings) {
  Study study = read_shared(config, warnings);
  if (const auto plan = config.find("plan")) {
    if (const auto ranks = plan->find("ranks")) {
      study.request.ranks = ranks->count(1, kMostRanks);
      study.request.ranks_where = ranks->where();
    }
    plan->reject_unknown_keys();
  }
  config.reject_unknown_keys();
  return study;
}

JobsStudy read_jobs(const Config& config, std::vector<std::string>* warnings) {
  require_study(config);
  JobsStudy study;
  study.shared = read_shared(config, warnings);
  if (study.shared.what_if.failures.mtbf_of_node > 0) {
    throw Error(config.at("what_if").where(), "failures of several jobs together are not modelled",
                "give them in the study of one job");
  }
  if (const auto training = config.find("training")) {
    throw Error(training->where(), "the length of the training goes with one model, not with several jobs",
                "give it in the study of one job");
  }
  for (const std::string_view key : {"model", "plan", "profile"}) {
    if (const auto own = config.find(key))
      throw Error(own->where(), fmt::format("one {} beside several jobs", key),
                  fmt::format("every job has its own: give `{}` in the list `jobs`", key));
  }
  const Config jobs = config.at("jobs");
  for (const Config& item : jobs.items()) {
    JobRequest& job = study.jobs.emplace_back();
    job.where = item.where();
    job.name = item.at("name").text();
    job.study = study.shared;
    read_job(item, job.study);
    job.devices_where = job.study.request.ranks_where;
    if (const auto devices = item.find("devices")) {
      job.devices = parse_rank_ranges(devices->text(), devices->where());
      job.devices_where = devices->where();
    }
    if (const auto start = item.find("start")) job.start = start->time();
    item.reject_unknown_keys(plan_keys_outside());
    const auto same = [&](const JobRequest& other) { return &other != &job && other.name == job.name; };
    if (std::any_of(study.jobs.begin(), study.jobs.end(), same))
      throw Error(item.at("name").where(), fmt::format("'{}' is the name of an earlier job", job.name));
  }
  if (study.jobs.empty())
    throw Error(jobs.where(), "the list is empty", "give a model and a plan for each job");
  config.reject_unknown_keys();
  return study;
}

}  // namespace armilla
