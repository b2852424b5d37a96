#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/output_file.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/model_flags.h"
#include "cli/flags/patience.h"
#include "cli/flags/study_flags.h"
#include "cli/interrupt.h"
#include "study/named_files.h"
#include "study/sweep.h"
#include "write/sweep.h"
#include "write/text_table.h"

namespace armilla {
namespace {

class SweepCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("sweep", file_, "what to vary in which study (docs/formats/sweep.md)")
        ->type_name("SWEEP")
        ->required();
    app.add_option("--set", settings_, "any key of the study, in all runs")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)
        ->group("Sweep");
    app.add_option("--jobs", jobs_, "runs at once (default: one per core; under mpirun, one per rank)")
        ->type_name("N")
        ->group("Sweep");
    add_patience_flag(app, patience_, "Sweep");
    app.add_flag("--retry", retry_, "run again what failed before")->group("Sweep");
    outputs_
        .add(app, "--save", save_,
             "database of all runs (docs/formats/sweep_database.md; default: the sweep's name with .db)",
             OutputKind::database)
        ->group("Output");
    outputs_.add(app, "--json", json_, "write every run to FILE (docs/formats/sweep_json.md)")
        ->group("Output");
    outputs_.add(app, "--csv", csv_, "write a line for every run to FILE")->group("Output");
    outputs_.add(app, "--svg", svg_, "plot a column over one key, or over two, to FILE")->group("Output");
    app.add_option("--plot", plot_.column, "that column (default iteration_time_s)")
        ->type_name("COLUMN")
        ->group("Output");
    app.add_option("--over", plot_.over, "that key, or those two (default: the first that vary)")
        ->type_name("KEY[,KEY]")
        ->delimiter(',')
        ->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    const std::int64_t jobs = jobs_.empty() ? 0 : parse_flag(jobs_, "--jobs", 1, kMostAtOnce);
    Crew crew = Crew::of_job(jobs);
    // Under mpirun the other ranks run what they are told: they open no database, write no file and print
    // nothing.
    if (crew.follows()) return crew.follow();
    SweepRequest request;
    request.file = file_;
    request.settings.assign(settings_.begin(), settings_.end());
    refuse_two_values(request.settings);
    request.database = save_.empty() ? std::filesystem::path(file_).stem().string() + ".db" : save_;
    if (save_.empty()) {
      std::vector<std::string> outputs = {request.database};
      for (const std::string& file : {json_, csv_, svg_}) {
        if (!file.empty()) outputs.push_back(file);
      }
      check_targets(outputs);
      refuse_inputs({request.database}, files_named_by({file_}));
    }
    if (svg_.empty() && (plot_.column != SweepPlot().column || !plot_.over.empty()))
      throw Error(plot_.over.empty() ? "--plot" : "--over", "there is no plot", "--svg FILE makes one");
    request.retry = retry_;
    request.version = build_version();
    request.patience = patience_of(patience_, session, quiet_);
    request.progress = session.meter;
    // From here on Ctrl-C ends the runs, not the program; what is done is in the database, and the report
    // says so.
    const CatchInterrupt interrupt;
    request.stopped = CatchInterrupt::happened;
    // A plot that cannot be drawn is refused before hours of runs, not behind them.
    if (!svg_.empty()) check_sweep_plot(sweep_outline(request), plot_);
    const SweepResult result = run_sweep(request, crew);
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_sweep_json(result)});
    if (!csv_.empty()) files.push_back({csv_, write_sweep_csv(result)});
    std::optional<Error> without_plot;
    try {
      if (!svg_.empty() && result.count(SweepState::done) > 0)
        files.push_back({svg_, write_sweep_svg(result, plot_)});
    } catch (const Error& error) {
      without_plot.emplace(error);  // all else is written all the same
    }
    write_files(files);
    const Session people = for_people(session, {json_, csv_, svg_});
    if (!quiet_) people.out << write_sweep_text(result, people.style());
    // Only now, when everything is written: scripts see by the exit code that something is missing.
    if (!result.complete()) {
      throw Interrupted(
          "armilla sweep",
          fmt::format("was interrupted: {} of {} {} there", result.runs.size() - open_of(result),
                      typed_count(result.runs.size(), "run"),
                      result.runs.size() - open_of(result) == 1 ? "is" : "are"),
          "the same command goes on");
    }
    if (result.count(SweepState::done) == 0)
      throw Error("armilla sweep", "every run failed",
                  quiet_ ? first_message(result) : "the messages above say why");
    if (without_plot) throw Error(*without_plot);
  }

 private:
  // Where nothing was printed.
  static std::string first_message(const SweepResult& result) {
    const auto first =
        std::ranges::find_if(result.runs, [](const SweepRun& run) { return !run.message.empty(); });
    return first == result.runs.end() ? std::string() : "the first says: " + first->message;
  }
  static std::size_t open_of(const SweepResult& result) {
    return static_cast<std::size_t>(result.count(SweepState::open));
  }

  std::string file_, jobs_, patience_, save_, json_, csv_, svg_;
  std::vector<std::string> settings_;
  SweepPlot plot_;
  bool retry_ = false, quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sweep_command() {
  return std::make_unique<SweepCommand>();
}

}  // namespace armilla
