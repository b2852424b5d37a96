#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/output_file.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "read/study_yaml.h"
#include "study/run_study.h"
#include "write/run_text.h"
#include "write/write.h"

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
    app.add_option("--max-messages", max_messages_, "refuse runs that would simulate more")
        ->type_name("N")
        ->capture_default_str();
    app.add_flag("--no-fold", no_fold_, "simulate every rank even where one can stand for all");
    app.add_option("--json", json_, "write every figure to FILE (docs/formats/run_json.md)")
        ->type_name("FILE")
        ->group("Output");
    app.add_option("--csv", csv_, "write tables to folder DIR, which is made if missing")
        ->type_name("DIR")
        ->group("Output");
    app.add_option("--trace", trace_,
                   "write the timeline: .pftrace for ui.perfetto.dev, .json for chrome://tracing")
        ->type_name("FILE")
        ->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    const RunFormat* const trace = trace_.empty() ? nullptr : &trace_format(trace_);
    const SimulationOptions options{!no_fold_, parse_real(max_messages_, "--max-messages")};
    const Run run = run_study(read_study(configuration()), options);
    std::vector<NamedContents> files;
    const auto add = [&](const RunFormat& format, const std::string& path) {
      std::vector<NamedContents> written = format.write(run, path);
      files.insert(files.end(), std::make_move_iterator(written.begin()),
                   std::make_move_iterator(written.end()));
    };
    for (const RunFormat& format : run_formats()) {
      if (format.option == "--json" && !json_.empty()) add(format, json_);
      if (format.option == "--csv" && !csv_.empty()) add(format, csv_);
    }
    if (trace != nullptr) add(*trace, trace_);
    const bool fresh_folder = !csv_.empty() && make_folder(csv_);
    try {
      write_files(files);
    } catch (...) {
      std::error_code ignored;
      if (fresh_folder) std::filesystem::remove(csv_, ignored);
      throw;
    }
    if (!quiet_) session.out << write_run_text(run, session.colour);
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

  // Returns whether it had to be made.
  static bool make_folder(const std::string& path) {
    std::error_code error;
    const bool made = std::filesystem::create_directories(path, error);
    if (error) throw Error(path, fmt::format("cannot make the folder: {}", error.message()));
    return made;
  }

  std::string input_, machine_, json_, csv_, trace_;
  std::string max_messages_ = "2e9";
  std::vector<std::string> values_;  // parallel to kStudyFlags
  std::vector<std::string> algorithms_, dimensions_, settings_;
  bool no_overlap_ = false, no_fold_ = false, quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace armilla
