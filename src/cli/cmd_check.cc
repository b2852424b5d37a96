#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "collective/algorithm.h"
#include "collective/msccl_verify.h"
#include "cost/cost.h"
#include "network/network.h"
#include "read/chakra.h"
#include "read/communicators_json.h"
#include "read/machine_yaml.h"
#include "read/msccl.h"
#include "read/study_yaml.h"
#include "sim/collective_plan.h"
#include "study/prepare.h"
#include "study/run_jobs.h"
#include "study/run_study.h"
#include "study/trace_input.h"

namespace armilla {
namespace {

void check_components(const Study& study) {
  make_cost_model(study.compute, study.machine.device);
  const NetworkInfo& network = find_component("network", networks(), study.network.name, study.network.where);
  ParameterValues(network.name, network.parameters, study.network.parameters);
  const auto check = [](const std::vector<std::string>& algorithms, const std::string& where) {
    for (const std::string& algorithm : algorithms) Algorithm(algorithm, where);
  };
  check(study.collectives.algorithms, study.collectives.algorithms_where);
  for (const auto& [kind, algorithms] : study.collectives.algorithms_by_kind)
    check(algorithms, where_of(study.collectives, kind));
  CollectivePlanner(study.machine, study.collectives);
}

std::string check_jobs(const JobsStudy& study) {
  check_components(study.shared);
  const LoweredJobs lowered =
      lower_jobs(study, *make_cost_model(study.shared.compute, study.shared.machine.device));
  return fmt::format("study of {} on {} devices of {}", lowered.run.workload, lowered.run.graph.ranks,
                     study.shared.machine.name);
}

// Everything of a study that can be wrong without simulating it.
std::string check_study(const Config& config) {
  if (config.has("jobs")) return check_jobs(read_jobs(config));
  const Study study = prepare_study(read_study(config));
  check_components(study);
  const Run run = lower_study(study, *make_cost_model(study.compute, study.machine.device));
  return fmt::format("study of {} on {} ranks of {}", run.model.name, study.plan.ranks, study.machine.name);
}

std::string describe(const Machine& machine) {
  validate_machine(machine);
  return fmt::format("machine '{}' of {} devices", machine.name, rank_count(machine));
}

std::string check_yaml(const std::string& path) {
  const Config config = Config::read(path);
  if (!config.is_map()) throw Error(path, "holds no mapping", "expected a study, a machine or a device");
  if (config.has("jobs") || config.has("model")) return check_study(config);
  if (config.has("dimensions")) {
    return describe(read_machine(config));
  }
  if (config.has("memory_bandwidth")) return fmt::format("device '{}'", read_device(config).name);
  throw Error(path,
              "is no study (no key 'model'), no machine (no key 'dimensions') and no device (no key "
              "'memory_bandwidth')");
}

std::string check_model(const std::string& name, const ModelOptions& options) {
  const Model model = read_model(name, options);
  std::string text = fmt::format("model of {} operators, {} parameters", model.operators.size(),
                                 with_separators(totals(model).parameters));
  for (const UnknownOperator& unknown : model.unknown)
    text += fmt::format("\n  note: operator '{}' is unknown ({} nodes)", unknown.type, unknown.nodes);
  for (const std::string& note : model.notes) text += fmt::format("\n  note: {}", note);
  return text;
}

// What is needed to check the traces of a job.
struct TraceFlags {
  std::string groups;      // a file of communicator groups
  std::int64_t ranks = 0;  // 0: as many as there are files
};

// PREFIX.0.et, PREFIX.1.et ...
std::string check_traces_of(const std::string& prefix, const TraceFlags& flags) {
  const std::int64_t ranks = flags.ranks > 0 ? flags.ranks : count_trace_files(prefix);
  TraceCheckOptions options;
  options.dimension_sizes = {ranks};
  if (!flags.groups.empty()) options.communicators = read_communicators(flags.groups, ranks);
  const std::vector<TraceProblem> problems = check_trace_files(prefix, options);
  refuse_problems(problems, problems.size());
  std::string text = fmt::format("traces of {} ranks", ranks);
  for (const TraceProblem& problem : problems)
    text +=
        fmt::format("\n  warning: {}{}{}", problem.where, problem.where.empty() ? "" : ": ", problem.message);
  return text;
}

std::string check_trace(const std::string& path) {
  const ChakraTrace trace = read_chakra_file(path);
  return fmt::format("trace of {} nodes, schema {}", with_separators(static_cast<std::int64_t>(trace.size())),
                     trace.schema);
}

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string check_schedule(const std::string& path) {
  const MscclAlgorithm algorithm = read_msccl(path);
  if (!algorithm.kind)
    return fmt::format("MSCCL algorithm; its collective '{:.60}' is not known, so nothing was verified",
                       algorithm.collective);
  const std::string wrong = verify_msccl(algorithm, *algorithm.kind);
  if (!wrong.empty()) throw Error(path, fmt::format("performs no {}: {}", name_of(*algorithm.kind), wrong));
  return fmt::format("MSCCL algorithm, verified: performs {}", name_of(*algorithm.kind));
}

std::string check(const std::string& input, const ModelOptions& options, const TraceFlags& flags) {
  if (holds_study(input)) return check_yaml(input);
  if (input.ends_with(".xml")) return check_schedule(input);
  if (input.ends_with(".et") || input.ends_with(".et.gz")) return check_trace(input);
  if (!std::filesystem::exists(input) && trace_file(input, 0)) return check_traces_of(input, flags);
  if (is_one_of(machine_names(), input)) return describe(load_machine(input, input));
  if (is_one_of(device_names(), input)) return fmt::format("device '{}'", load_device(input, input).name);
  return check_model(input, options);
}

class CheckCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option(
           "inputs", inputs_,
           "models, machines and devices by name or file, study files, traces by file or prefix, MSCCL-XML")
        ->type_name("NAME|FILE|PREFIX")
        ->required();
    app.add_option("--dim", dimensions_, "size of a symbolic dimension of a model")
        ->type_name("NAME=SIZE")
        ->allow_extra_args(false);
    app.add_option("--comm-group", traces_.groups, "communicator groups of traces, as in ASTRA-sim 2")
        ->type_name("FILE");
    app.add_option("--npus", traces_.ranks, "ranks of a job of traces; default: as many as there are files")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{INT32_MAX}));
  }

  void execute(const Session& session) override {
    const ModelOptions options{parse_dimensions(dimensions_), {}};
    std::size_t refused = 0;
    for (const std::string& input : inputs_) {
      try {
        session.out << fmt::format("{}: {}\n", input, check(input, options, traces_));
      } catch (const Error& error) {
        if (inputs_.size() == 1) throw;
        ++refused;
        session.err << fmt::format("armilla: error: {}\n", error.what());
      }
    }
    if (refused > 0)
      throw Error("armilla check", fmt::format("{} of {} inputs are not valid", refused, inputs_.size()));
  }

 private:
  std::vector<std::string> inputs_, dimensions_;
  TraceFlags traces_;
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace armilla
