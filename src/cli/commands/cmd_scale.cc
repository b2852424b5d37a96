#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/fast_forward.h"
#include "cli/flags/model_flags.h"
#include "cli/flags/patience.h"
#include "cli/flags/study_flags.h"
#include "cli/interrupt.h"
#include "read/study.h"
#include "study/scale.h"
#include "study/spread.h"
#include "write/scale.h"
#include "write/text_table.h"

namespace armilla {
namespace {

class ScaleCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    study_.declare(app, StudyDefaults::tried);
    app.add_flag("--weak", weak_, "a global batch in proportion to the ranks (default: the same)")
        ->group("Scaling");
    app.add_option("--threads", threads_,
                   "simulations at once (default: one per core; under mpirun, one per rank)")
        ->type_name("N")
        ->group("Scaling");
    add_patience_flag(app, patience_, "Scaling");
    outputs_.add(app, "--json", json_, "write what was found to FILE (docs/formats/scale_json.md)")
        ->group("Output");
    outputs_.add(app, "--csv", csv_, "write a line for every size to FILE")->group("Output");
    outputs_.add(app, "--svg", svg_, "plot samples per second over the ranks to FILE")->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    ScaleRequest request;
    request.weak = weak_;
    if (!threads_.empty()) request.search.threads = parse_flag(threads_, "--threads", 1, kMostAtOnce);
    Crew crew = Crew::of_job(request.search.threads);
    // Under mpirun the other ranks simulate what they are told, and nothing else.
    if (crew.follows()) return crew.follow();
    request.search.progress = session.meter;
    request.search.patience = patience_of(patience_, session, quiet_);
    const CatchInterrupt interrupt;
    request.search.stopped = CatchInterrupt::happened;
    // What is refused in here is said of the flag that was typed, not of the study's key that it stands for.
    ScaleResult result = study_.speaking_of_flags([&] {
      const Config config = study_.configuration("armilla scale");
      request.search.axes = search_axes(config);
      const auto plan = config.find("plan");
      const auto batch = plan ? plan->find("global_batch") : std::nullopt;
      if (!batch)
        throw Error("armilla scale", "--global-batch is missing",
                    "sizes are compared at a batch of all ranks together");
      request.global_batch = batch->count();
      // A study per plan: what is left out of it depends on the ranks and degrees that are set.
      request.search.read = [with = study_.configurations("armilla scale")](
                                const std::vector<Override>& settings) { return read_study(with(settings)); };
      return scale_plans(request, crew);
    });
    if (!result.complete && !result.has_plan())
      throw Interrupted("armilla scale", "was interrupted before any size had its best plan");
    for (ScalePoint& point : result.points) {
      for (SearchEdge& edge : point.edges) edge.widen = study_.as_typed(edge.widen);
      point.refusal = study_.as_typed(point.refusal);
    }
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_scale_json(result)});
    if (!csv_.empty()) files.push_back({csv_, write_scale_csv(result)});
    if (!svg_.empty()) files.push_back({svg_, write_scale_svg(result)});
    write_files(files);
    const Session people = for_people(session, {json_, csv_, svg_});
    if (!quiet_) {
      people.out << write_scale_text(result, people.style());
      const Config config = study_.configuration("armilla scale");
      for (const std::string& note : {links_note(config), fast_forward_note(config)}) {
        if (!note.empty()) people.out << wrap(note, "note: ", people.style().width);
      }
    }
    if (!result.complete) throw Interrupted("armilla scale", "was interrupted: not every size was searched");
  }

 private:
  StudyFlags study_;
  std::string threads_, patience_, json_, csv_, svg_;
  bool weak_ = false, quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_scale_command() {
  return std::make_unique<ScaleCommand>();
}

}  // namespace armilla
