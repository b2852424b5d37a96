#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/output_flags.h"
#include "read/study_yaml.h"
#include "study/run_study.h"
#include "write/run_text.h"

namespace armilla {
namespace {

// A flag of `run` is a key of the study file by another name.
struct StudyFlag {
  std::string_view flag;
  std::string_view key;
  std::string_view type;
  std::string_view help;
};

constexpr std::array kStudyFlags = {
    StudyFlag{"--ranks", "plan.ranks", "N", "devices that take part (default: the whole machine)"},
    StudyFlag{"--batch", "plan.batch", "N", "samples per rank and iteration (default 32)"},
    StudyFlag{"--global-batch", "plan.global_batch", "N",
              "samples of all ranks together, instead of --batch"},
    StudyFlag{"--micro-batches", "plan.micro_batches", "N", "gradient accumulation steps (default 1)"},
    StudyFlag{"--precision", "plan.precision", "TYPE",
              "of compute and activations: fp32, tf32, bf16, fp16 ... (default fp32)"},
    StudyFlag{"--optimizer", "plan.optimizer", "NAME", "sgd, momentum or adam (default momentum)"},
    StudyFlag{"--bucket", "plan.bucket", "SIZE", "gradient bucket (default 25MiB)"},
    StudyFlag{"--first-bucket", "plan.first_bucket", "SIZE", "the first gradient bucket (default 1MiB)"},
    StudyFlag{"--compute", "compute", "MODEL",
              "compute model, such as roofline or systolic:rows=128,dataflow=os"},
    StudyFlag{"--network", "network", "MODEL", "network model (default analytical)"},
    StudyFlag{"--decomposition", "collectives.decomposition", "NAME", "bandwidth-aware, baseline or flat"},
    StudyFlag{"--chunks", "collectives.chunks", "N", "pieces of a collective (default 4)"},
    StudyFlag{"--active-chunks", "collectives.active_chunks", "N",
              "chunks at once per rank and dimension (default 4)"},
    StudyFlag{"--chunk-order", "collectives.order", "NAME", "lifo, fifo or priority (default lifo)"},
};

bool is_study_file(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

// As a YAML scalar that means exactly this text.
std::string yaml_scalar(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

class RunCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("input", input_, "a model (zoo name or ONNX file) or a study file (.yaml)")
        ->type_name("MODEL|STUDY")
        ->required();
    app.add_option("--machine", machine_, "a machine by name or file (armilla list machines)")
        ->type_name("NAME|FILE");
    values_.resize(kStudyFlags.size());
    for (std::size_t i = 0; i < kStudyFlags.size(); ++i) {
      app.add_option(std::string(kStudyFlags[i].flag), values_[i], std::string(kStudyFlags[i].help))
          ->type_name(std::string(kStudyFlags[i].type))
          ->group("Study");
    }
    app.add_option("--algorithm", algorithms_,
                   "collective algorithm: one for all dimensions, or one each, innermost first")
        ->type_name("NAME")
        ->delimiter(';')
        ->group("Study");
    app.add_flag("--no-overlap", no_overlap_, "exchange gradients only after the backward pass")
        ->group("Study");
    app.add_option("--dim", dimensions_, "size of a symbolic dimension of the model")
        ->type_name("NAME=SIZE")
        ->allow_extra_args(false)
        ->group("Study");
    app.add_option("--set", settings_, "any key of the study file, over file and flags")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)
        ->group("Study");
    output_.declare(app);
    app.add_flag("--quiet", output_.quiet, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    const SimulationOptions options = output_.options();
    const Run run = run_study(read_study(configuration()), options);
    output_.write(run);
    if (!output_.quiet) session.out << write_run_text(run, session.colour);
  }

 private:
  Config configuration() const {
    std::vector<Override> overrides;
    const auto set = [&](std::string_view key, const std::string& value, const std::string& flag) {
      overrides.emplace_back(fmt::format("{}={}", key, value), flag);
    };
    const bool study = is_study_file(input_);
    if (!study) set("model.name", yaml_scalar(input_), "armilla run");
    if (!machine_.empty()) set("machine", yaml_scalar(machine_), "--machine " + machine_);
    if (!study && machine_.empty() && !sets("machine")) {
      throw Error("armilla run", "--machine is missing",
                  "name one, such as dgx-a100 ('armilla list machines'), or give a study file");
    }
    for (std::size_t i = 0; i < kStudyFlags.size(); ++i) {
      if (!values_[i].empty())
        set(kStudyFlags[i].key, yaml_scalar(values_[i]),
            fmt::format("{} {}", kStudyFlags[i].flag, values_[i]));
    }
    if (!algorithms_.empty()) {
      std::string list;
      for (const std::string& algorithm : algorithms_)
        list += (list.empty() ? "" : ", ") + yaml_scalar(algorithm);
      set("collectives.algorithms", "[" + list + "]", "--algorithm");
    }
    if (no_overlap_) set("plan.overlap", "false", "--no-overlap");
    for (const auto& [name, size] : parse_dimensions(dimensions_)) {
      const std::string flag = fmt::format("--dim {}={}", name, size);
      if (name.find('.') != std::string::npos)
        throw Error(flag, "the name contains a dot", "put it under model.dimensions in a study file");
      set("model.dimensions." + name, fmt::format("{}", size), flag);
    }
    overrides.insert(overrides.end(), settings_.begin(), settings_.end());
    return study ? Config::read(input_, overrides) : Config::parse("", "command line", overrides);
  }

  bool sets(std::string_view key) const {
    return std::any_of(settings_.begin(), settings_.end(),
                       [&](const std::string& setting) { return setting.starts_with(key); });
  }

  std::string input_, machine_;
  OutputFlags output_;
  std::vector<std::string> values_;  // parallel to kStudyFlags
  std::vector<std::string> algorithms_, dimensions_, settings_;
  bool no_overlap_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace armilla
