#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "read/machine_yaml.h"
#include "study/translate.h"
#include "write/write.h"

namespace armilla {
namespace {

class TranslateCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    model_.declare(app);
    app.add_option("-o,--output", output_, "the file to write; its suffix chooses the format")
        ->type_name("FILE")
        ->required();
    app.add_option("--to", format_, "format, whatever the suffix: astra-text, json or csv")
        ->type_name("FORMAT");
    app.add_option("--policy", policy_, "DATA, MODEL, HYBRID_DATA_MODEL or HYBRID_MODEL_DATA")
        ->type_name("POLICY")
        ->capture_default_str();
    app.add_option("--npus", npus_, "devices the job runs on; --batch is for all of them")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--packages", packages_, "packages of npus/packages devices, for the hybrid policies")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--dtype", dtype_, "element type of everything communicated (default: the model's own)")
        ->type_name("TYPE");
    app.add_option("--gradients", gradients_,
                   "weights: of the weight matrices alone, as ModTrans and ASTRA-sim's own files; all: of "
                   "biases and norms too")
        ->type_name("weights|all")
        ->check(CLI::IsMember({"weights", "all"}))
        ->capture_default_str();
    app.add_option("--update-cycles", update_cycles_, "delay after every finished collective")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--compute", compute_,
                   "compute model for the cycles; without its own cycles, 1 cycle is 1 ns")
        ->type_name("MODEL")
        ->capture_default_str();
    app.add_option("--device", device_, "the device the compute model runs on")
        ->type_name("NAME|FILE")
        ->capture_default_str();
    app.add_flag("--quiet", quiet_, "print nothing but errors");
  }

  void execute(const Session& session) override {
    const TextWorkloadFormat& format = text_workload_format(format_, output_);
    options_.policy = text_policy(policy_, "--policy");
    options_.npus = parse_flag(npus_, "--npus", 1, INT32_MAX);
    options_.packages = parse_flag(packages_, "--packages", 1, INT32_MAX);
    options_.update_cycles = parse_flag(update_cycles_, "--update-cycles", 0, INT64_MAX);
    options_.all_parameters = gradients_ == "all";
    if (!dtype_.empty()) {
      const auto dtype = dtype_from_name(dtype_);
      if (!dtype)
        throw Error("--dtype", fmt::format("unknown type '{:.60}'", dtype_),
                    suggest(dtype_, std::span<const std::string_view>(dtype_names())));
      options_.dtype = *dtype;
    }
    const std::unique_ptr<CostModel> cost =
        make_cost_model(parse_component(compute_, "--compute"), load_device(device_, "--device"));
    const Model model = model_.read();
    const TextWorkload workload = translate(model, options_, *cost);
    write_file(output_, format.write(workload));
    if (quiet_) return;
    session.out << fmt::format("wrote {}: {} layers, policy {}, batch {} on {} NPUs, cycles of {}\n", output_,
                               workload.layers.size(), name_of(options_.policy), model.batch, options_.npus,
                               compute_);
    for (const std::string& note : model.notes) session.out << fmt::format("note: {}\n", note);
    if (model.batch % data_parts() != 0) {
      session.out << fmt::format(
          "note: a batch of {} does not divide by {} data-parallel parts: shares are rounded down, as "
          "ASTRA-sim's generator does\n",
          model.batch, data_parts());
    }
    report_left_out(session, model);
  }

 private:
  std::int64_t data_parts() const {
    switch (options_.policy) {
      case TextPolicy::data:
        return options_.npus;
      case TextPolicy::model:
        return 1;
      case TextPolicy::hybrid_data_model:
        return options_.packages;
      case TextPolicy::hybrid_model_data:
        return options_.npus / options_.packages;
    }
    return 1;
  }

  void report_left_out(const Session& session, const Model& model) const {
    if (options_.all_parameters) return;
    std::int64_t weights = 0;
    for (const Layer& layer : model.layers) {
      for (const std::uint32_t p : layer.weights) weights += model.parameters[p].elements;
    }
    const std::int64_t left_out = totals(model).parameters - weights;
    if (left_out > 0) {
      session.out << fmt::format(
          "note: gradients of {} bias and norm parameters are left out; --gradients all includes them\n",
          left_out);
    }
  }

  ModelFlags model_;
  TextWorkloadOptions options_;
  std::string output_, format_, dtype_;
  std::string policy_ = "DATA", gradients_ = "weights", compute_ = "systolic", device_ = "a100-80gb-sxm";
  std::string npus_ = "1", packages_ = "1", update_cycles_ = "100";
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_translate_command() {
  return std::make_unique<TranslateCommand>();
}

}  // namespace armilla
