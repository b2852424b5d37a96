#include "study/trace_formats.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/program.h"
#include "base/registry.h"
#include "write/chakra.h"
#include "write/chakra_json.h"
#include "write/communicators.h"
#include "write/dot.h"
#include "write/graphml.h"

namespace armilla {
namespace {

std::string write_svg(const ChakraTrace& trace) {
  const auto output = run_program({"dot", "-Tsvg"}, write_dot(trace));
  if (!output)
    throw Error("--to svg", "Graphviz' program 'dot' is not installed",
                "install the package graphviz, or write .dot or .graphml and draw it elsewhere");
  if (output->status != 0)
    throw Error("--to svg",
                fmt::format("Graphviz' dot failed with status {}: {:.200}", output->status, output->err));
  return output->out;
}

constexpr TraceFormat kFormats[] = {
    {"chakra", ".et", "Chakra execution traces", write_chakra},
    {"chakra-json", ".json", "the same as chakra_jsonizer writes them", write_chakra_json},
    {"dot", ".dot", "a drawing for Graphviz", write_dot},
    {"graphml", ".graphml", "a drawing for yEd, Gephi and networkx", write_graphml},
    {"svg", ".svg", "a picture, laid out by Graphviz' dot", write_svg}};

std::string contents_of(const ChakraTrace& trace, const TraceFormat& format, bool packed) {
  std::string contents = format.write(trace);
  return packed && format.write == write_chakra ? gzipped(contents) : contents;
}

NamedContents standard_output(const TraceSet& job, const TraceFormat& format, bool packed) {
  if (job.ranks.size() != 1)
    throw Error(
        "-o -",
        fmt::format("traces of {} ranks are as many files, and standard output is one", job.ranks.size()),
        "name a prefix, or choose a rank with --rank");
  if (!job.communicators.empty())
    throw Error("-o -", "the trace refers to groups, which need a file of their own", "name a file");
  return {"-", contents_of(job.ranks.front(), format, packed)};
}

}  // namespace

std::span<const TraceFormat> trace_formats() {
  return kFormats;
}

const TraceFormat& find_trace_format(const std::string& name, const std::string& path) {
  if (!name.empty()) return find_component("format", trace_formats(), name, "--to");
  for (const TraceFormat& format : kFormats)
    if (path.ends_with(format.suffix)) return format;
  for (const std::string_view suffix : {".txt", ".csv"}) {
    if (path.ends_with(suffix))
      throw Error(
          path, "traces cannot be turned back into a workload",
          "known suffixes: .et, .json, .dot, .graphml, .svg; any other name is the prefix of .et files");
  }
  return kFormats[0];
}

std::vector<NamedContents> trace_files(const TraceSet& job, const TraceFormat& format,
                                       const std::string& path, bool packed) {
  const bool has_suffix = path.size() > format.suffix.size() && path.ends_with(format.suffix);
  const std::string prefix = has_suffix ? path.substr(0, path.size() - format.suffix.size()) : path;
  if (path == "-") return {standard_output(job, format, packed)};
  std::vector<NamedContents> files;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const bool alone = has_suffix && job.ranks.size() == 1;
    files.push_back({alone ? path : fmt::format("{}.{}{}", prefix, rank, format.suffix),
                     contents_of(job.ranks[rank], format, packed)});
  }
  if (!job.communicators.empty())
    files.push_back({prefix + ".communicators.json", write_communicators(job.communicators)});
  return files;
}

}  // namespace armilla
