#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file_status.h"
#include "base/output_file.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "read/study.h"
#include "study/calibrate.h"
#include "study/run.h"
#include "study/search.h"
#include "write/text_table.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

class CalibrateCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("studies", studies_, "study files, all of one machine")->type_name("STUDY")->required();
    app.add_option("--measured", measured_,
                   "what a step of the study took, such as 1.23s: one for each study")
        ->type_name("TIME")
        ->allow_extra_args(false)
        ->required();
    outputs_
        .add(app, "--output,-o", output_, "write the machine with the factors to FILE",
             OutputKind::by_command)
        ->required();
    app.add_flag("--quiet", quiet_, "print nothing but errors");
  }

  void execute(const Session& session) override {
    move_times();
    if (measured_.size() != studies_.size())
      throw Error("--measured",
                  fmt::format("{} for {}", counted(measured_.size(), "time"),
                              studies_.size() == 1 ? "1 study" : fmt::format("{} studies", studies_.size())),
                  "give one for each study, in the same order");
    check_targets({output_});
    refuse_inputs({output_}, session.inputs);
    constexpr std::string_view kWrite =
        "write model, machine and plan into a file (docs/formats/study.md) and give its name";
    std::vector<MeasuredStudy> steps;
    for (std::size_t i = 0; i < studies_.size(); ++i) {
      const std::string where = "--measured " + measured_[i];
      // Kept beside the study: it is read again with other factors, and they go into the machine's own keys.
      if (!is_there(studies_[i]) && !is_path(studies_[i]))
        throw Error(studies_[i], "is not a study file", std::string(kWrite));
      if (!holds_study(studies_[i])) throw Error(studies_[i], "is a model, not a study", std::string(kWrite));
      Config config = Config::read(studies_[i]);
      require_one_plan(config, "calibration");
      Study study = prepare_study(read_study(config));
      steps.push_back(
          {studies_[i], std::move(config), std::move(study), parse_time(measured_[i], where), where});
    }
    const Calibration found = calibrate(steps, *session.meter);
    write_file(output_, found.machine);
    const Session people = for_people(session, {output_});
    if (!quiet_) people.out << text(found, people.style());
  }

 private:
  // "--measured 1s 2s": the second stands where studies do.
  void move_times() {
    const auto is_time = [](const std::string& text) {
      try {
        parse_time(text, "");
      } catch (const Error&) {
        return false;
      }
      return !is_there(text);
    };
    const auto times = std::ranges::stable_partition(studies_, std::not_fn(is_time));
    measured_.insert(measured_.end(), times.begin(), times.end());
    studies_.erase(times.begin(), times.end());
  }

  static std::string change(Time predicted, Time measured) {
    return signed_percent_digits(in_seconds(predicted) / in_seconds(measured) - 1);
  }

  std::string text(const Calibration& found, const TextStyle& style) const {
    TextTable table{{{"step", false}, {"measured"}, {"before"}, {"%"}, {"after"}, {"%"}}, {}};
    for (const CalibratedStep& step : found.steps)
      table.rows.push_back({step.name, to_text(step.measured), to_text(step.before),
                            change(step.before, step.measured), to_text(step.after),
                            change(step.after, step.measured)});
    std::string text = to_text(table, 0, style) + '\n';
    for (const CalibratedFactor& factor : found.factors)
      text += wrap(fmt::format("{}: {:.4g} instead of {:.4g} (x {:.3f})", factor.key, factor.after,
                               factor.before, factor.after / factor.before),
                   "", style.width);
    for (const std::string& note : found.notes) text += wrap(note, "", style.width);
    return text + fmt::format("{}: the machine with these factors\n", output_);
  }

  std::vector<std::string> studies_, measured_;
  std::string output_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_calibrate_command() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace armilla
