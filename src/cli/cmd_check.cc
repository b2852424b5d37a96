#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "collective/algorithm.h"
#include "cost/cost.h"
#include "network/network.h"
#include "read/machine_yaml.h"
#include "read/study_yaml.h"

namespace armilla {
namespace {

// Everything of a study that can be wrong without simulating it.
std::string check_study(const Config& config) {
  const Study study = read_study(config);
  validate_plan(study.plan, config.where());
  validate_machine(study.machine);
  make_cost_model(study.compute, study.machine.device);
  const NetworkInfo& network = find_component("network", networks(), study.network.name, study.network.where);
  ParameterValues(network.name, network.parameters, study.network.parameters);
  const auto check = [](const std::vector<std::string>& algorithms, const std::string& where) {
    for (const std::string& algorithm : algorithms) Algorithm(algorithm, where);
  };
  check(study.collectives.algorithms, "collectives.algorithms");
  for (const auto& [kind, algorithms] : study.collectives.algorithms_by_kind)
    check(algorithms, fmt::format("collectives.{}", name_of(kind)));
  const Model model =
      read_model(study.model.name, {study.model.dimensions, study.plan.batch / study.plan.micro_batches});
  return fmt::format("study of {} on {} ranks of {}", model.name, study.plan.ranks, study.machine.name);
}

std::string describe(const Machine& machine) {
  validate_machine(machine);
  return fmt::format("machine '{}' of {} devices", machine.name, rank_count(machine));
}

std::string check_yaml(const std::string& path) {
  const Config config = Config::read(path);
  if (!config.is_map()) throw Error(path, "holds no mapping", "expected a study, a machine or a device");
  if (config.has("model")) return check_study(config);
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

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string check(const std::string& input, const ModelOptions& options) {
  if (input.ends_with(".yaml") || input.ends_with(".yml")) return check_yaml(input);
  if (is_one_of(machine_names(), input)) return describe(load_machine(input, input));
  if (is_one_of(device_names(), input)) return fmt::format("device '{}'", load_device(input, input).name);
  return check_model(input, options);
}

class CheckCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("inputs", inputs_, "models, machines and devices by name or file, and study files")
        ->type_name("NAME|FILE")
        ->required();
    app.add_option("--dim", dimensions_, "size of a symbolic dimension of a model")
        ->type_name("NAME=SIZE")
        ->allow_extra_args(false);
  }

  void execute(const Session& session) override {
    const ModelOptions options{parse_dimensions(dimensions_), {}};
    std::size_t refused = 0;
    for (const std::string& input : inputs_) {
      try {
        session.out << fmt::format("{}: {}\n", input, check(input, options));
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
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace armilla
