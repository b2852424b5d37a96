#include "study/trace_formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/program.h"
#include "base/registry.h"
#include "base/text.h"
#include "base/units_text.h"
#include "write/trace.h"

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

// What every rank's file begins with.
std::string prefix_of(const std::string& path, const TraceFormat& format) {
  const bool has_suffix = path.size() > format.suffix.size() && path.ends_with(format.suffix);
  return has_suffix ? path.substr(0, path.size() - format.suffix.size()) : path;
}

bool is_one_file(const TraceSet& job, const TraceFormat& format, const std::string& path) {
  return job.ranks.size() == 1 && prefix_of(path, format) != path;
}

// Leading zeros name no rank: "job.007.et" is not rank 7's file. The rank of the file NAME.<rank>SUFFIX, when
// `file` is one.
std::optional<std::uint64_t> rank_of(std::string_view file, std::string_view name, std::string_view suffix) {
  if (!file.starts_with(name) || !file.ends_with(suffix) || file.size() < name.size() + 2 + suffix.size() ||
      file[name.size()] != '.')
    return std::nullopt;
  const std::string_view digits = file.substr(name.size() + 1, file.size() - name.size() - 1 - suffix.size());
  if (digits.front() == '0' && digits != "0") return std::nullopt;
  return number_from<std::uint64_t>(digits);
}

constexpr TraceFormat kFormats[] = {
    {"chakra", ".et", "Chakra execution traces", write_chakra, true, true},
    {"chakra-json", ".json", "the same as chakra_jsonizer writes them", write_chakra_json, true},
    {"dot", ".dot", "a drawing for Graphviz", write_dot},
    {"graphml", ".graphml", "a drawing for yEd, Gephi and networkx", write_graphml},
    {"svg", ".svg", "a picture, laid out by Graphviz' dot", write_svg}};

std::string contents_of(const ChakraTrace& trace, const TraceFormat& format, bool packed) {
  std::string contents = format.write(trace);
  return packed && format.packs ? gzipped(contents) : contents;
}

// A shorter job must not be continued by files of a longer one that had the same prefix. Of the files that
// would be read as further ranks of the same job.
std::vector<std::string> suffixes_beside(const TraceFormat& format) {
  std::vector<std::string> suffixes = {std::string(format.suffix)};
  if (!format.read_back) return suffixes;
  suffixes.clear();
  for (const TraceFormat& other : kFormats) {
    if (other.read_back) suffixes.emplace_back(other.suffix);
    if (other.read_back && other.packs) suffixes.push_back(fmt::format("{}.gz", other.suffix));
  }
  return suffixes;
}

std::string known_suffixes() {
  std::vector<std::string_view> suffixes;
  for (const TraceFormat& format : kFormats) suffixes.push_back(format.suffix);
  return fmt::format("known suffixes: {}; any other name is the prefix of {} files",
                     fmt::join(suffixes, ", "), kFormats[0].suffix);
}

// One rank can go to standard output; several files or a file of groups cannot.
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
      throw Error(path, "traces cannot be turned back into a workload", known_suffixes());
  }
  return kFormats[0];
}

std::vector<NamedContents> trace_files(const TraceSet& job, const TraceFormat& format,
                                       const std::string& path, bool packed) {
  if (path == "-") return {standard_output(job, format, packed)};
  const std::string prefix = prefix_of(path, format);
  std::vector<NamedContents> files;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    files.push_back(
        {is_one_file(job, format, path) ? path : fmt::format("{}.{}{}", prefix, rank, format.suffix),
         contents_of(job.ranks[rank], format, packed)});
  }
  if (!job.communicators.empty())
    files.push_back({prefix + ".communicators.json", write_communicators(job.communicators)});
  return files;
}

// Looked for before writing, so that nothing is replaced when the answer is no.
void refuse_further_ranks(const TraceSet& job, const TraceFormat& format, const std::string& path) {
  if (path == "-" || is_one_file(job, format, path)) return;
  namespace fs = std::filesystem;
  const fs::path prefix(prefix_of(path, format));
  const std::string name = prefix.filename().string();
  const std::vector<std::string> suffixes = suffixes_beside(format);
  std::map<std::uint64_t, std::string> further;
  std::error_code ignored;  // a folder that cannot be read is reported when the files are written
  const fs::path folder = prefix.has_parent_path() ? prefix.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string file = entry->path().filename().string();
    for (const std::string_view suffix : suffixes) {
      const auto rank = rank_of(file, name, suffix);
      if (rank && *rank >= job.ranks.size()) further.emplace(*rank, file);
    }
  }
  if (further.empty()) return;
  const std::string first = (prefix.parent_path() / further.begin()->second).string();
  const std::size_t ranks = job.ranks.size();
  throw Error(first,
              fmt::format("belongs to an older job of more than {}{}: with it the two would be read as one",
                          counted(ranks, "rank"),
                          further.size() == 1 ? "" : fmt::format(", like {} more", further.size() - 1)),
              fmt::format("remove the files of the ranks from {} on, or choose another prefix", ranks));
}

}  // namespace armilla
