#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/output_flags.h"
#include "cli/study_flags.h"
#include "ir/communication.h"
#include "ir/metrics.h"
#include "read/study_yaml.h"
#include "study/run_collective.h"
#include "write/text_table.h"

namespace armilla {
namespace {

class CollectiveCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("kind", kind_,
                   "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce or barrier")
        ->type_name("KIND")
        ->required();
    app.add_option("--machine", machine_, "a machine by name or file (armilla list machines)")
        ->type_name("NAME|FILE")
        ->required();
    app.add_option("--bytes", sizes_, "sizes as NCCL counts them (default 1GB)")
        ->type_name("SIZE,...")
        ->delimiter(',');
    app.add_option("--ranks", ranks_, "devices that take part (default: the whole machine)")->type_name("N");
    app.add_option("--algorithm", algorithms_, "one for all dimensions, or one each, innermost first")
        ->type_name("NAME")
        ->delimiter(';');
    app.add_option("--set", settings_, "any other key of a study file, such as collectives.chunks=8")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    output_.declare(app);
    app.add_flag("--quiet", output_.quiet, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    const std::optional<CollectiveKind> kind = collective_from_name(kind_);
    if (!kind) throw unknown_kind();
    const SimulationOptions options = output_.options();
    const Study study = read_machine_study(configuration());
    std::vector<Run> runs;
    if (sizes_.empty()) sizes_ = {"1GB"};
    for (const std::string& size : sizes_)
      runs.push_back(run_collective(study, *kind, parse_bytes(size, "--bytes " + size), options));
    if (runs.size() > 1 && !(output_.json.empty() && output_.csv.empty() && output_.trace.empty()))
      throw Error("--bytes", "files are written for one size at a time",
                  "give one size, or leave the file out");
    if (runs.size() == 1) output_.write(runs.front());
    if (!output_.quiet) session.out << report(runs, session.colour);
  }

 private:
  Error unknown_kind() const {
    std::vector<std::string_view> names;
    for (const CollectiveKind kind : kCollectiveKinds) names.push_back(name_of(kind));
    return Error("armilla collective", fmt::format("unknown collective '{:.60}'", kind_),
                 suggest(kind_, std::span<const std::string_view>(names)));
  }

  Config configuration() const {
    std::vector<Override> overrides;
    overrides.emplace_back("machine=" + yaml_scalar(machine_), "--machine " + machine_);
    if (!ranks_.empty()) overrides.emplace_back("plan.ranks=" + yaml_scalar(ranks_), "--ranks " + ranks_);
    if (!algorithms_.empty())
      overrides.emplace_back("collectives.algorithms=" + yaml_list(algorithms_), "--algorithm");
    overrides.insert(overrides.end(), settings_.begin(), settings_.end());
    return Config::parse("", "command line", overrides);
  }

  // Algorithm and bus bandwidth as nccl-tests defines them.
  std::string report(const std::vector<Run>& runs, bool colour) const {
    const Run& first = runs.front();
    std::string text =
        paint(printable(fmt::format("{} among {} ranks of {}", kind_, with_separators(first.result.ranks),
                                    first.study.machine.name)),
              Ink::bold, colour);
    text += '\n';
    TextTable table;
    table.columns = {{"bytes"},         {"time"},          {"algorithm bandwidth"},
                     {"bus bandwidth"}, {"of link limit"}, {"algorithm", false}};
    for (const Run& run : runs) {
      const std::vector<CollectiveSummary> summaries = summarize_collectives(run);
      if (summaries.empty()) continue;
      const CollectiveSummary& summary = summaries.front();
      const double seconds = in_seconds(summary.time);
      const bool moves = seconds > 0 && summary.bytes > Bytes(0);
      table.rows.push_back(
          {to_text(summary.bytes), to_text(summary.time),
           moves ? to_text(Bandwidth(static_cast<double>(summary.bytes.value) / seconds)) : "",
           moves ? to_text(summary.bus_bandwidth) : "",
           !moves                   ? ""
           : summary.link_share > 0 ? fmt::format("{:.1f} %", 100 * summary.link_share)
                                    : "unknown",
           summary.algorithm});
    }
    text += to_text(table, 2, colour);
    for (const std::string& warning : first.warnings) text += wrap(warning, "  warning  ");
    return text;
  }

  std::string kind_, machine_, ranks_;
  std::vector<std::string> sizes_, algorithms_, settings_;
  OutputFlags output_;
};

}  // namespace

std::unique_ptr<Command> make_collective_command() {
  return std::make_unique<CollectiveCommand>();
}

}  // namespace armilla
