#include "cli/flags/output_flags.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/file_status.h"
#include "base/sorted.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "ir/derived/rank_ranges.h"
#include "write/write.h"

namespace armilla {
namespace {

// The folders that had to be made, so that they can go again when the run's files cannot be written.
class FreshFolders {
 public:
  // Throws Error.
  void make(const std::string& path) {
    if (path == "-") throw Error(path, "is standard output, not a folder", "a folder of that name is ./-");
    std::filesystem::path part;
    for (const std::filesystem::path& step : std::filesystem::path(path)) {
      part /= step;
      std::error_code error;
      if (std::filesystem::create_directory(part, error)) made_.push_back(part);
      if (error) throw Error(path, fmt::format("cannot make the folder: {}", error.message()));
    }
    if (!is_folder(path)) throw Error(path, "is not a folder");
  }

  void remove() const {
    std::error_code ignored;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
      std::filesystem::remove(*folder, ignored);  // only when it is empty
  }

 private:
  std::vector<std::filesystem::path> made_;
};

}  // namespace

void OutputFlags::declare(CLI::App& app, OutputOptions& outputs) {
  app.add_option("--max-messages", max_messages, "refuse runs that would simulate more")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--no-fold", no_fold, "simulate every rank even where one can stand for all");
  app.add_flag("--every-message", every_message,
               "simulate every message even of collectives that one can stand for");
  outputs
      .add(app, "--json", json,
           "write every figure to FILE, - for standard output (docs/formats/run_json.md)")
      ->group("Output");
  outputs
      .add(app, "--csv", csv, "write tables to folder DIR, which is made if missing",
           OutputKind::folder_of_tables)
      ->group("Output");
  outputs
      .add(app, "--trace", trace,
           "write the timeline: .pftrace for ui.perfetto.dev (also -, standard output), .json for "
           "chrome://tracing")
      ->group("Output");
}

void OutputFlags::declare_timeline(CLI::App& app) {
  app.add_option("--timeline-ranks", timeline_ranks,
                 "ranks in the timeline, such as 0-7,128 (default: the first of every role)")
      ->type_name("RANKS")
      ->group("Output");
  app.add_option("--timeline-window", timeline_window,
                 "part of the run in the timeline, such as 10ms..20ms (default: all of it)")
      ->type_name("FROM..UNTIL")
      ->group("Output");
}

TimelineSelection OutputFlags::selection() const {
  TimelineSelection selection;
  if (!timeline_ranks.empty()) {
    selection.ranks =
        parse_rank_ranges(timeline_ranks, fmt::format("--timeline-ranks {:.60}", timeline_ranks));
  }
  if (!timeline_window.empty()) {
    const std::string where = fmt::format("--timeline-window {:.60}", timeline_window);
    const std::size_t dots = timeline_window.find("..");
    if (dots == std::string::npos) throw Error(where, "expected FROM..UNTIL", "for example 10ms..20ms");
    const std::string from = timeline_window.substr(0, dots), until = timeline_window.substr(dots + 2);
    if (!from.empty()) selection.from = parse_time(from, where);
    if (!until.empty()) selection.until = parse_time(until, where);
    if (selection.until < selection.from) throw Error(where, "the window ends before it begins");
    if (selection.until == selection.from) throw Error(where, "the window is empty");
  }
  return selection;
}

// What the flags alone show to be wrong is refused before anything is simulated.
SimulationOptions OutputFlags::options() const {
  if (!trace.empty()) trace_format(trace);
  if (csv == "-")
    throw Error("--csv -", "several tables need a folder, and standard output is one file",
                "name a folder, or use --json - for every figure");
  selection();
  for (const auto& [flag, text] :
       {std::pair("--timeline-ranks", timeline_ranks), std::pair("--timeline-window", timeline_window)}) {
    if (!text.empty() && trace.empty() && csv.empty())
      throw Error(fmt::format("{} {:.60}", flag, text), "there is no timeline to choose from",
                  "--trace FILE writes one");
  }
  SimulationOptions options;
  options.fold = options.fold_time = !no_fold;
  options.every_message = every_message;
  options.max_messages = parse_scale(max_messages, "--max-messages");
  options.chunks = !(trace.empty() && csv.empty());
  return options;
}

std::vector<std::int32_t> OutputFlags::recorded_ranks(std::int64_t ranks) const {
  const std::vector<RankRange> ranges = selection().ranks;
  check_rank_ranges(ranges, ranks, fmt::format("--timeline-ranks {:.60}", timeline_ranks));
  std::vector<std::int32_t> chosen;
  for (const RankRange& range : ranges) {
    for (std::int64_t rank = range.first; rank <= range.last; ++rank)
      chosen.push_back(static_cast<std::int32_t>(rank));
  }
  sort_unique(chosen);
  return chosen;
}

void write_into_folders(const Session& session, const std::vector<NamedContents>& files,
                        const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  for (const NamedContents& file : files) paths.push_back(file.path);
  refuse_inputs(paths, session.inputs);
  FreshFolders fresh;
  try {
    for (const std::string& folder : folders) fresh.make(folder);
    write_files(files);
  } catch (...) {
    fresh.remove();
    throw;
  }
}

void OutputFlags::write(const Session& session, const Run& run, std::vector<NamedContents> more,
                        std::vector<std::string> folders) const {
  // The end is known only after the run.
  const TimelineSelection selected = selection();
  if (selected.from > run.result.iteration) {
    throw Error(fmt::format("--timeline-window {:.60}", timeline_window), "the window begins after the end",
                fmt::format("the run takes {}", to_text(run.result.iteration)));
  }
  const auto add = [&](const RunFormat& format, const std::string& path) {
    std::vector<NamedContents> written = format.write(run, path, selected);
    more.insert(more.end(), std::make_move_iterator(written.begin()), std::make_move_iterator(written.end()));
  };
  for (const RunFormat& format : run_formats()) {
    if (format.option == "--json" && !json.empty()) add(format, json);
    if (format.option == "--csv" && !csv.empty()) add(format, csv);
  }
  if (!trace.empty()) add(trace_format(trace), trace);
  if (!csv.empty()) folders.push_back(csv);
  write_into_folders(session, more, folders);
}

std::size_t parse_choice(const std::string& text, std::span<const std::string_view> known,
                         std::string_view flag) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] == text) return i;
  }
  throw Error(fmt::format("{} {:.60}", flag, text), "unknown value", suggest(text, known));
}

bool parse_switch(const std::string& text, std::string_view flag) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw Error(fmt::format("{} {:.60}", flag, text), "expected true or false");
}

double parse_scale(const std::string& text, std::string_view flag) {
  const std::string where = fmt::format("{} {:.60}", flag, text);
  const double scale = parse_real(text, where);
  if (scale < 0) throw Error(where, "is negative");
  return scale;
}

}  // namespace armilla
