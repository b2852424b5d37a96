#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/size_list.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/fast_forward.h"
#include "cli/flags/output_flags.h"
#include "cli/flags/study_flags.h"
#include "ir/derived/metrics.h"
#include "read/study.h"
#include "study/run.h"
#include "write/report.h"
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
    app.add_option("--bytes", sizes_, "sizes as NCCL counts them, or ranges such as 1MiB..1GiB (default 1GB)")
        ->type_name("SIZE,...");
    app.add_option("--ranks", ranks_, "devices that take part (default: the whole machine)")->type_name("N");
    app.add_option("--algorithm", algorithms_,
                   "algorithms to compare; each for all dimensions, or 'A;B', innermost first")
        ->type_name("NAME,...");
    app.add_option("--network", network_, "network model (default analytical, of graphs of links flow)")
        ->type_name("MODEL");
    app.add_option("--fail-link", failed_,
                   "links of the machine's graph that fail, or carry a share: leaf0-spine1,leaf0-spine2=0.5")
        ->type_name("A-B[=SHARE],...")
        ->delimiter(',');
    declare_fast_forward(app, fast_forward_);
    app.add_option("--set", settings_, "any other key of a study file, such as collectives.chunks=8")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    output_.declare(app, outputs_);
    app.add_flag("--quiet", output_.quiet, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    const std::optional<CollectiveKind> kind = collective_from_name(kind_);
    if (!kind) throw unknown_kind();
    SimulationOptions options = output_.options();
    options.progress = session.meter;
    if (*kind == CollectiveKind::barrier && !sizes_.empty())
      throw Error("--bytes " + sizes_.front(), "a barrier moves no bytes", "leave it out");
    if (sizes_.empty()) sizes_ = {"1GB"};
    std::vector<ListedSize> sizes;
    for (const std::string& list : sizes_) {
      for (std::string_view rest = list;;) {
        const std::string size(rest.substr(0, rest.find(',')));
        if (size.empty()) throw Error("--bytes " + list, "a size is missing between the commas");
        const std::vector<ListedSize> more = parse_sizes(size, "--bytes " + size);
        sizes.insert(sizes.end(), more.begin(), more.end());
        if (size.size() == rest.size()) break;
        rest.remove_prefix(size.size() + 1);
      }
    }
    const std::vector<std::string> algorithms = listed_algorithms();
    const bool several = sizes.size() * std::max<std::size_t>(algorithms.size(), 1) > 1;
    if (several && !(output_.json.empty() && output_.csv.empty() && output_.trace.empty())) {
      throw Error(sizes.size() > 1 ? "--bytes" : "--algorithm", "files are written for one call at a time",
                  "give one size and one algorithm, or leave the file out");
    }
    std::vector<Row> rows;
    for (const std::string& algorithm : algorithms.empty() ? std::vector<std::string>{""} : algorithms) {
      std::vector<std::string> warnings;
      const Study study = read_machine_study(configuration(algorithm), &warnings);
      for (const ListedSize& size : sizes) {
        rows.push_back({size.text, algorithm, run_collective(study, *kind, size.bytes, options)});
        std::vector<std::string>& all = rows.back().run.warnings;
        all.insert(all.begin(), warnings.begin(), warnings.end());
      }
    }
    if (const std::string note = hidden_by_machine(configuration("")); !note.empty())
      rows.front().run.warnings.push_back(note);
    if (rows.size() == 1) output_.write(session, rows.front().run);
    const Session people = for_people(session, {output_.json, output_.trace});
    if (!output_.quiet) people.out << report(rows, people.style());
  }

 private:
  struct Row {
    std::string size, algorithm;  // as typed
    Run run;
  };

  Error unknown_kind() const {
    std::vector<std::string_view> names;
    for (const CollectiveKind kind : kCollectiveKinds) names.push_back(name_of(kind));
    return Error("armilla collective", fmt::format("unknown collective '{:.60}'", kind_),
                 suggest(kind_, std::span<const std::string_view>(names)));
  }

  // "ring,direct:window=4" are two: what follows a comma and is no parameter begins another.
  std::vector<std::string> listed_algorithms() const {
    std::vector<std::string> listed;
    for (std::string_view text : algorithms_) {
      bool another = true;
      while (true) {
        const std::string_view piece = text.substr(0, text.find(','));
        if (piece.empty())
          throw Error(fmt::format("--algorithm {}", algorithms_.front()),
                      "an algorithm is missing beside a comma", "list them, such as ring,direct");
        const bool parameter = piece.find('=') != std::string_view::npos &&
                               piece.substr(0, piece.find('=')).find(':') == std::string_view::npos;
        if (parameter && !another) {
          listed.back() += fmt::format(",{}", piece);
        } else {
          listed.emplace_back(piece);
        }
        another = false;
        if (piece.size() == text.size()) break;
        text.remove_prefix(piece.size() + 1);
      }
    }
    return listed;
  }

  Config configuration(std::string_view algorithm) const {
    std::vector<Override> overrides;
    overrides.emplace_back("machine=" + yaml_scalar(machine_), "--machine " + machine_);
    if (!ranks_.empty()) overrides.emplace_back("plan.ranks=" + yaml_scalar(ranks_), "--ranks " + ranks_);
    if (!algorithm.empty()) {
      std::vector<std::string> by_dimension;
      for (std::string_view rest = algorithm;;) {
        const std::string_view one = rest.substr(0, rest.find(';'));
        by_dimension.emplace_back(one);
        if (one.size() == rest.size()) break;
        rest.remove_prefix(one.size() + 1);
      }
      overrides.emplace_back("collectives.algorithms=" + yaml_list(by_dimension),
                             fmt::format("--algorithm {}", algorithm));
    }
    if (!network_.empty())
      overrides.emplace_back("network=" + yaml_scalar(network_), "--network " + network_);
    if (!failed_.empty())
      overrides.emplace_back("what_if.failed_links=" + yaml_list(failed_),
                             fmt::format("--fail-link {}", fmt::join(failed_, ",")));
    overrides.insert(overrides.end(), settings_.begin(), settings_.end());
    refuse_two_values(overrides);
    sort_upper_first(overrides);
    const auto read = [&] { return Config::parse("", "command line", overrides, expand_name); };
    if (fast_forward_) {
      const std::optional<Config> network = read().find("network");
      overrides.emplace_back(
          "network=" + yaml_scalar(with_fast_forward(network ? network->text() : "analytical")),
          "--fast-forward");
    }
    return read();
  }

  // Bandwidths as nccl-tests defines them, over the time until the last rank is done.
  static std::vector<std::string> cells(const Row& row) {
    const CollectiveRecord& record = row.run.result.collectives.front();
    const CollectiveCall& call = row.run.graph.collectives[record.call];
    const Time time = row.run.result.iteration;
    const double seconds = in_seconds(time);
    const bool moves = seconds > 0 && call.bytes > Bytes(0);
    const double rate = moves ? static_cast<double>(call.bytes.value) / seconds : 0;
    const auto share = [&](Time limit) {
      return !moves            ? std::string()
             : limit > Time(0) ? fmt::format("{:.1f} %", 100 * in_seconds(limit) / seconds)
                               : std::string("unknown");
    };
    return {call.kind == CollectiveKind::barrier ? "" : row.size,
            row.algorithm,
            to_text(time),
            moves ? to_text(Bandwidth(rate)) : "",
            moves ? to_text(Bandwidth(rate * bus_factor(call.kind, record.group_size))) : "",
            share(record.link_limit),
            share(record.busiest_link),
            fmt::format("{}", record.chunks),
            moves && record.busiest_link > Time(0) ? std::string(name_of(record.limit)) : ""};
  }

  std::string report(const std::vector<Row>& rows, const TextStyle& style) const {
    const Run& first = rows.front().run;
    const bool deviates = !what_if_settings(first).empty();
    std::string text =
        paint(printable(fmt::format("{} among {} of {}{}", kind_, counted(first.study.plan.ranks, "rank"),
                                    first.study.machine.name, deviates ? ", what if" : "")),
              Ink::bold, style.colour);
    text += '\n';
    TextTable table;
    table.columns = {{"bytes"},
                     {"algorithm", false},
                     {"time"},
                     {"bandwidth", true, SIZE_MAX, 2},
                     {"bus bandwidth", true, SIZE_MAX, 1},
                     {"of limit", true, SIZE_MAX, 4},
                     {"busiest link", true, SIZE_MAX, 3},
                     {"chunks", true, SIZE_MAX, 5},
                     {"limited by", false, SIZE_MAX, 4}};
    for (const Row& row : rows) {
      if (!row.run.result.collectives.empty()) table.rows.push_back(cells(row));
    }
    const auto leave_out = [&](std::ptrdiff_t column) {
      table.columns.erase(table.columns.begin() + column);
      for (std::vector<std::string>& row : table.rows) row.erase(row.begin() + column);
    };
    if (rows.front().algorithm.empty() || rows.back().algorithm == rows.front().algorithm) leave_out(1);
    // Nor what no row has: a barrier and a lone rank move nothing.
    for (std::size_t c = table.columns.size(); c-- > 0;) {
      const bool none = std::all_of(table.rows.begin(), table.rows.end(),
                                    [&](const std::vector<std::string>& row) { return row[c].empty(); });
      if (none) leave_out(static_cast<std::ptrdiff_t>(c));
    }
    text += to_text(table, 2, style);
    return text + explanations(rows, style.width);
  }

  static std::string algorithm_of(const Row& row) {
    const std::vector<CollectiveRecord>& records = row.run.result.collectives;
    return records.empty() ? std::string() : records.front().algorithm;
  }

  // The sizes that go as `like` does where others of its choice do not: "1MiB to 8MiB, 1GiB".
  static std::string sizes_alike(const std::vector<Row>& rows, const Row& like) {
    std::vector<const Row*> choice;
    for (const Row& row : rows)
      if (row.algorithm == like.algorithm) choice.push_back(&row);
    std::string text;
    std::size_t alike = 0;
    for (std::size_t i = 0; i < choice.size();) {
      std::size_t end = i;
      while (end < choice.size() && algorithm_of(*choice[end]) == algorithm_of(like)) ++end;
      alike += end - i;
      if (end > i) text += (text.empty() ? "" : ", ") + choice[i]->size;
      if (end > i + 1) text += " to " + choice[end - 1]->size;
      i = std::max(end, i + 1);
    }
    return alike < choice.size() ? text : std::string();
  }

  // What the algorithms do on the machine's dimensions, and the warnings, each once.
  static std::string explanations(const std::vector<Row>& rows, std::size_t width) {
    std::string text;
    std::vector<std::string> said;
    const auto say = [&](const std::string& what, const std::string& title) {
      if (std::find(said.begin(), said.end(), title + what) != said.end()) return;
      said.push_back(title + what);
      text += wrap(what, title, width);
    };
    for (const std::string& setting : what_if_settings(rows.front().run)) say(setting, "  what if  ");
    for (const Row& row : rows) {
      if (algorithm_of(row).empty()) continue;
      const std::string sizes = sizes_alike(rows, row);
      say(algorithm_of(row) + (sizes.empty() ? "" : fmt::format(" ({})", sizes)),
          fmt::format("  {}  ", row.algorithm.empty() ? "algorithm" : row.algorithm));
    }
    for (const Row& row : rows) {
      for (const std::string& note : row.run.notes) say(note, "  note  ");
      for (const std::string& warning : row.run.warnings) say(warning, "  warning  ");
    }
    return text;
  }

  std::string kind_, machine_, ranks_, network_;
  std::vector<std::string> sizes_, algorithms_, failed_, settings_;
  bool fast_forward_ = false;
  OutputFlags output_;
};

}  // namespace

std::unique_ptr<Command> make_collective_command() {
  return std::make_unique<CollectiveCommand>();
}

}  // namespace armilla
