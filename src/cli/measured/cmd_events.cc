#include <CLI/CLI.hpp>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/flags/study_flags.h"
#include "cost/cost.h"
#include "read/study.h"
#include "study/run.h"
#include "study/search.h"
#include "write/report.h"
#include "write/text_table.h"

namespace armilla {
namespace {

class EventsCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    study_.declare(app);
    app.add_flag("--missing", missing_, "only events that have no measured time (--profile) yet")
        ->group("Output");
    outputs_.add(app, "--json", json_, "write the events to FILE (docs/formats/events.md)")->group("Output");
    outputs_.add(app, "--csv", csv_, "write the events to FILE")->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    const Run run = study_.speaking_of_flags([&] {
      const Config config = study_.configuration("armilla events");
      require_one_plan(config, "a list of events");
      return run_study(prepare_study(read_study(config)));
    });
    const Study& study = run.study;
    const EventTable all = list_events(run, *make_cost_model(study.compute, study.machine.device));
    const EventTable table = missing_ ? missing_events(all) : all;
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_events_json(table)});
    if (!csv_.empty()) files.push_back({csv_, write_events_csv(table)});
    write_files(files);
    const Session people = for_people(session, {json_, csv_});
    if (quiet_) return;
    const bool is_empty = table.computations.empty() && table.communications.empty();
    people.out << (missing_ && is_empty ? "nothing is missing: every event has a measured time\n"
                                        : write_events_text(table, people.style()));
    if (const std::string note = links_note(study_.configuration("armilla events")); !note.empty())
      people.out << wrap(note, "note: ", people.style().width);
  }

 private:
  StudyFlags study_;
  std::string json_, csv_;
  bool missing_ = false, quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_events_command() {
  return std::make_unique<EventsCommand>();
}

}  // namespace armilla
