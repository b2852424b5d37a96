#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/flags/output_flags.h"
#include "cli/flags/study_flags.h"
#include "lower/pipeline_schedule.h"
#include "read/study.h"
#include "study/run.h"
#include "study/search.h"
#include "write/report.h"

namespace armilla {
namespace {

class RunCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    study_.declare(app);
    output_.declare(app, outputs_);
    output_.declare_timeline(app);
    app.add_flag("--quiet", output_.quiet, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    SimulationOptions options = output_.options();
    options.progress = session.meter;
    // What people read is made of sums, and the JSON of those and of what is repeated; without anything to be
    // read, not even of those of intervals.
    options.every_interval = !(output_.csv.empty() && output_.trace.empty());
    options.intervals = options.every_interval || !output_.json.empty() || !output_.quiet;
    Run run = study_.speaking_of_flags([&] {
      const Config config = study_.configuration("armilla run");
      require_one_plan(config, "a run");
      std::vector<std::string> warnings;
      Run done = config.has("jobs") ? run_several(read_jobs(config, &warnings), options)
                                    : run_one(prepare_study(read_study(config, &warnings)), options);
      done.warnings.insert(done.warnings.begin(), warnings.begin(), warnings.end());
      if (std::string note = hidden_by_machine(config); !note.empty()) done.notes.push_back(std::move(note));
      return done;
    });
    // Notes name keys of studies, as the modules below know no flags.
    for (std::vector<std::string>* const texts : {&run.notes, &run.warnings}) {
      for (std::string& text : *texts) text = study_.as_typed(text);
    }
    output_.write(session, run);
    const Session people = for_people(session, {output_.json, output_.trace});
    if (!output_.quiet) people.out << write_run_text(run, people.style());
  }

 private:
  Run run_one(const Study& study, SimulationOptions options) const {
    options.record_ranks = output_.recorded_ranks(study.plan.ranks);
    // What is held when is not known of the iterations between which nothing is flushed, unless all
    // are played.
    if (!output_.json.empty() && !schedule_of(study.plan).flushes) options.every_interval = true;
    return run_study(study, options);
  }

  Run run_several(const JobsStudy& study, SimulationOptions options) const {
    options.record_ranks = output_.recorded_ranks(rank_count(study.shared.machine));
    return run_jobs(study, options);
  }

  StudyFlags study_;
  OutputFlags output_;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace armilla
