#include "write/write.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "base/registry.h"
#include "write/astra/astra_text.h"
#include "write/report.h"
#include "write/report/run_csv.h"
#include "write/report/run_json.h"
#include "write/timeline/chrome.h"
#include "write/timeline/perfetto.h"

namespace armilla {
namespace {

constexpr std::array<std::string_view, 1> kText = {".txt"}, kJson = {".json"}, kCsv = {".csv"};
constexpr std::array<std::string_view, 2> kPerfetto = {".pftrace", ".perfetto-trace"};

template <std::string (*write)(const Run&)>
std::vector<NamedContents> one_file(const Run& run, const std::string& path, const TimelineSelection&) {
  return {{path, write(run)}};
}
template <std::string (*write)(const Run&, const TimelineSelection&)>
std::vector<NamedContents> one_trace(const Run& run, const std::string& path,
                                     const TimelineSelection& selection) {
  return {{path, write(run, selection)}};
}
std::string plain_text(const Run& run) {
  return write_run_text(run, false);
}
std::string plain_layers(const LayerTable& table) {
  return write_layers_text(table, false);
}

constexpr std::string_view kTraceOption = "--trace";

constexpr RunFormat kRunFormats[] = {
    {"text", "", kText, "the report that the terminal shows", one_file<plain_text>},
    {"json", "--json", kJson, "every figure of the run, schema armilla.run/1", one_file<write_run_json>},
    {"csv",
     "--csv",
     {},
     "a folder with tables of roles, collectives, layers, links and the timeline",
     write_run_csv},
    {"perfetto", kTraceOption, kPerfetto, "timeline for ui.perfetto.dev, native protobuf",
     one_trace<write_perfetto>},
    {"chrome", kTraceOption, kJson, "timeline for chrome://tracing and other viewers, JSON",
     one_trace<write_chrome>}};

constexpr LayerFormat kLayerFormats[] = {{"text", kText, "a table for people", plain_layers},
                                         {"csv", kCsv, "a table for spreadsheets", write_layers_csv},
                                         {"json", kJson, "schema armilla.layers/1", write_layers_json}};

constexpr TextWorkloadFormat kTextWorkloadFormats[] = {
    {"astra-text", kText, "ASTRA-sim 1.0 text workload", write_astra_text},
    {"json", kJson, "the same as JSON, schema armilla.text_workload/1", write_text_workload_json},
    {"csv", kCsv, "the same as a table", write_text_workload_csv}};

// Standard output, "-", has no suffix: it gets the first of the formats.
template <class Format>
bool matches(const Format& format, const std::string& path) {
  if (path == "-") return true;
  for (const std::string_view suffix : format.suffixes) {
    if (path.ends_with(suffix)) return true;
  }
  return false;
}

[[noreturn]] void no_format(const std::string& path, const std::vector<std::string_view>& suffixes,
                            std::string_view hint) {
  throw Error(path, "no format is known for the suffix of this file",
              fmt::format("known suffixes: {}{}", fmt::join(suffixes, ", "), hint));
}

}  // namespace

std::span<const RunFormat> run_formats() {
  return kRunFormats;
}
std::span<const LayerFormat> layer_formats() {
  return kLayerFormats;
}
std::span<const TextWorkloadFormat> text_workload_formats() {
  return kTextWorkloadFormats;
}

const RunFormat& trace_format(const std::string& path) {
  std::vector<std::string_view> suffixes;
  for (const RunFormat& format : kRunFormats) {
    // By option first: .json is the suffix of the figures, too.
    if (format.option != kTraceOption) continue;
    if (matches(format, path)) return format;
    suffixes.insert(suffixes.end(), format.suffixes.begin(), format.suffixes.end());
  }
  no_format(path, suffixes, "");
}

const TextWorkloadFormat& text_workload_format(const std::string& name, const std::string& path) {
  if (!name.empty()) return find_component("format", text_workload_formats(), name, "--to");
  std::vector<std::string_view> suffixes;
  for (const TextWorkloadFormat& format : kTextWorkloadFormats) {
    if (matches(format, path)) return format;
    suffixes.insert(suffixes.end(), format.suffixes.begin(), format.suffixes.end());
  }
  no_format(path, suffixes, "; or name the format with --to");
}

}  // namespace armilla
