#include "write/report.h"

#include <fmt/format.h>

#include "base/units_text.h"
#include "write/report/run_notes.h"
#include "write/report/run_parts.h"

namespace armilla {
namespace {

std::string sentence_section(const std::vector<std::string>& sentences, std::string_view title, Ink ink,
                             const TextStyle& style) {
  if (sentences.empty()) return {};
  std::string text = '\n' + paint(paint(title, ink, style.colour), Ink::bold, style.colour) + '\n';
  for (const std::string& sentence : sentences) text += wrap(sentence, "  - ", style.width);
  return text;
}

std::string jobs_section(const Run& run, const TextStyle& style) {
  if (run.jobs.empty()) return "";
  TextTable table;
  table.columns = {{"job", false},
                   {"model", false, SIZE_MAX, 2},
                   {"ranks", true, SIZE_MAX, 1},
                   {"devices", false, SIZE_MAX, 3},
                   {"start", true, SIZE_MAX, 4},
                   {"alone"},
                   {"shared"},
                   {"slowdown"}};
  for (const JobOutcome& job : run.jobs) {
    table.rows.push_back({job.name, job.model, with_separators(job.ranks), job.devices, to_text(job.start),
                          to_text(job.alone), to_text(job.shared),
                          fmt::format("{:.3f}", ratio(job.shared, job.alone))});
  }
  return heading("Iteration of each job", style) + to_text(table, 2, style);
}

}  // namespace

// Titles are one line where they fit; the remark beside them, or below.
std::string heading(std::string_view text, const TextStyle& style, std::string_view remark) {
  std::string title(text);
  if (title.find('\n') == std::string::npos && display_width(title) > style.width) {
    title = wrap(title, "", style.width);
    title.pop_back();
  }
  const std::string line = '\n' + paint(title, Ink::bold, style.colour);
  if (remark.empty()) return line + '\n';
  if (display_width(text) + 2 + display_width(remark) <= style.width)
    return line + "  " + paint(remark, Ink::dim, style.colour) + '\n';
  return line + '\n' + paint(wrap(remark, "  ", style.width), Ink::dim, style.colour);
}

std::string write_run_text(const Run& run, const TextStyle& style) {
  return title_section(run, style) + headline_section(run, style) + jobs_section(run, style) +
         time_section(run, style) + memory_section(run, style) + communication_section(run, style) +
         layer_section(run, style) + link_section(run, style) +
         sentence_section(all_notes(run), "Notes", Ink::plain, style) +
         sentence_section(all_warnings(run), "Warnings", Ink::red, style);
}

}  // namespace armilla
