#include "study/convert_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "collective/verify.h"
#include "read/astra.h"
#include "read/trace.h"
#include "study/astra/trace_input.h"
#include "trace/text.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

bool has_trace_suffix(const std::string& path) {
  return path.ends_with(".et") || path.ends_with(".et.gz") || path.ends_with(".eg");
}

std::string text_in(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

// A file is one rank; anything else is the prefix of a job's files.
ConvertInput read_chakra_job(const std::string& path, const ConvertOptions& options) {
  ConvertInput input;
  if (is_file(path)) {
    input.job.ranks.push_back(read_chakra_file(path));
  } else {
    for (std::int64_t rank = 0; const auto file = trace_file(path, rank); ++rank)
      input.job.ranks.push_back(read_chakra_file(*file));
    if (input.job.ranks.empty())
      throw Error(path, fmt::format("neither a file nor the prefix of '{}.0.et'", path));
  }
  if (!options.communicators.empty())
    input.job.communicators =
        read_communicators(options.communicators, static_cast<std::int64_t>(input.job.ranks.size()));
  return input;
}

std::int64_t ranks_of_dimensions(const ConvertOptions& options) {
  std::int64_t ranks = 1;
  for (const std::int64_t size : options.dimensions) ranks *= size;
  return ranks;
}

ConvertInput read_text_job(const std::string& path, const ConvertOptions& options) {
  const std::string text = text_in(path);
  if (options.as_chakra) {
    ConvertInput input;
    input.job.ranks = text_chakra_as_converter(text, path, ranks_of_dimensions(options), options.passes);
    return input;
  }
  std::vector<std::string> warnings;
  ConvertInput input = traces_of(read_astra_text(text, path, &warnings), options);
  input.notes.insert(input.notes.begin(), warnings.begin(), warnings.end());
  return input;
}

ConvertInput read_flexflow_job(const std::string& path, const ConvertOptions& options) {
  const double megahertz = options.frequency / 1e6;
  // The converter multiplies by an integer.
  if (options.as_chakra && megahertz != std::floor(megahertz))
    throw Error("--frequency", "Chakra's converter takes whole megahertz");
  FlexflowTraces traces =
      parse_flexflow(text_in(path), path, {options.as_chakra, static_cast<std::int64_t>(megahertz)});
  ConvertInput input;
  input.job.ranks = std::move(traces.ranks);
  if (traces.told > 0)
    input.notes.push_back(fmt::format(
        "{} of one byte", traces.told == 1
                              ? "1 dependence between devices became a message"
                              : fmt::format("{} dependences between devices became messages", traces.told)));
  return input;
}

// An algorithm that does not perform its collective is not worth converting.
ConvertInput read_msccl_job(const std::string& path, const ConvertOptions& options) {
  const MscclAlgorithm algorithm = read_msccl(path);
  ConvertInput input;
  input.job.ranks = custom_chakra(custom_collective(algorithm), options.bytes);
  if (!algorithm.kind) {
    input.notes.push_back(
        fmt::format("collective '{:.60}' is not known, so nothing was verified", algorithm.collective));
    return input;
  }
  const std::string wrong = verify_msccl(algorithm, *algorithm.kind);
  if (!wrong.empty()) throw Error(path, fmt::format("performs no {}: {}", name_of(*algorithm.kind), wrong));
  input.notes.push_back(fmt::format("verified: performs {}", name_of(*algorithm.kind)));
  return input;
}

constexpr TraceReader kReaders[] = {
    {FileKind::chakra, read_chakra_job},   {FileKind::chakra_json, read_chakra_job},
    {FileKind::astra_text, read_text_job}, {FileKind::flexflow, read_flexflow_job},
    {FileKind::msccl, read_msccl_job},
};

const TraceReader& reader_of_chakra() {
  return kReaders[0];
}

}  // namespace

const TraceReader* find_trace_reader(const std::string& path) {
  if (names_model(path)) return nullptr;
  if (!is_file(path)) return trace_file(path, 0) ? &reader_of_chakra() : nullptr;
  const FileKind kind = sniff_file(path);
  for (const TraceReader& reader : kReaders) {
    if (reader.kind == kind) return &reader;
  }
  // What is damaged from its first byte on has only its name.
  const bool nameless = kind >= FileKind::json || kind == FileKind::gzip;
  return nameless && has_trace_suffix(path) ? &reader_of_chakra() : nullptr;
}

bool is_issue_log(const std::string& path) {
  return !names_model(path) && is_file(path) && sniff_file(path) == FileKind::issue_log;
}

ConvertInput traces_of(const TextWorkload& workload, const ConvertOptions& options) {
  TextChakraOptions text;
  text.graph.dimensions = options.dimensions;
  text.graph.passes = options.passes;
  text.graph.frequency = options.frequency;
  text.process_groups = options.process_groups;
  TextChakra made = text_chakra(workload, text);
  return {{std::move(made.ranks), std::move(made.communicators)}, std::move(made.warnings)};
}

ConvertInput read_convert_input(const std::string& path, const ConvertOptions& options) {
  const TraceReader* const reader = find_trace_reader(path);
  return (reader == nullptr ? reader_of_chakra() : *reader).read(path, options);
}

}  // namespace armilla
