#include "study/convert_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/mapped_file.h"
#include "collective/msccl_verify.h"
#include "lower/custom_chakra.h"
#include "lower/text_chakra.h"
#include "lower/text_chakra_peer.h"
#include "read/astra_text.h"
#include "read/chakra.h"
#include "read/chakra_json.h"
#include "read/communicators_json.h"
#include "read/custom_collective.h"
#include "read/flexflow.h"
#include "read/issue_log.h"
#include "read/msccl.h"

namespace armilla {
namespace {

constexpr std::size_t kBeginning = 1 << 16;

std::string file_of(const std::string& prefix, std::size_t rank) {
  return fmt::format("{}.{}.et", prefix, rank);
}

std::string text_of(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

std::string_view without_space(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin);
}

bool is_msccl(std::string_view text) {
  return text.starts_with("<algo") || (text.starts_with("<?xml") && text.find("<algo") != text.npos);
}

bool is_digraph(std::string_view text) {
  return text.starts_with("digraph") || text.starts_with("strict digraph");
}

ConvertInput read_chakra_job(const std::string& path, const ConvertOptions& options) {
  ConvertInput input;
  if (std::filesystem::is_regular_file(path)) {
    input.job.ranks.push_back(read_chakra_file(path));
  } else {
    for (std::size_t rank = 0; std::filesystem::exists(file_of(path, rank)); ++rank)
      input.job.ranks.push_back(read_chakra_file(file_of(path, rank)));
    if (input.job.ranks.empty())
      throw Error(path, fmt::format("neither a file nor the prefix of '{}'", file_of(path, 0)));
  }
  if (!options.communicators.empty())
    input.job.communicators =
        read_communicators(options.communicators, static_cast<std::int64_t>(input.job.ranks.size()));
  return input;
}

std::int64_t rank_count(const ConvertOptions& options) {
  std::int64_t ranks = 1;
  for (const std::int64_t size : options.dimensions) ranks *= size;
  return ranks;
}

ConvertInput read_text_job(const std::string& path, const ConvertOptions& options) {
  const std::string text = text_of(path);
  if (options.as_peer) {
    ConvertInput input;
    input.job.ranks = text_chakra_as_peer(text, path, rank_count(options), options.passes);
    return input;
  }
  std::vector<std::string> warnings;
  ConvertInput input = traces_of(read_astra_text(text, path, &warnings), options);
  input.notes.insert(input.notes.begin(), warnings.begin(), warnings.end());
  return input;
}

ConvertInput read_flexflow_job(const std::string& path, const ConvertOptions& options) {
  const double megahertz = options.frequency / 1e6;
  if (options.as_peer && megahertz != std::floor(megahertz))
    throw Error("--frequency", "Chakra's converter takes whole megahertz");
  FlexflowTraces traces =
      parse_flexflow(text_of(path), path, {options.as_peer, static_cast<std::int64_t>(megahertz)});
  ConvertInput input;
  input.job.ranks = std::move(traces.ranks);
  if (traces.told > 0)
    input.notes.push_back(
        fmt::format("{} dependences between devices became messages of one byte", traces.told));
  return input;
}

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

}  // namespace

InputKind input_kind(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    return std::filesystem::exists(file_of(path, 0)) ? InputKind::chakra : InputKind::model;
  const MappedFile file(path);
  const std::span<const char> bytes = file.bytes().first(std::min(file.bytes().size(), kBeginning));
  const std::string_view text(bytes.data(), bytes.size());
  if (is_msccl(without_space(text))) return InputKind::msccl;
  if (is_digraph(without_space(text))) return InputKind::flexflow;
  if (path.ends_with(".et") || is_chakra_json(bytes)) return InputKind::chakra;
  if (looks_like_astra_text(bytes)) return InputKind::astra_text;
  return is_issue_log(text) ? InputKind::issue_log : InputKind::model;
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

ConvertInput read_convert_input(const std::string& path, InputKind kind, const ConvertOptions& options) {
  switch (kind) {
    case InputKind::astra_text:
      return read_text_job(path, options);
    case InputKind::flexflow:
      return read_flexflow_job(path, options);
    case InputKind::msccl:
      return read_msccl_job(path, options);
    default:
      return read_chakra_job(path, options);
  }
}

}  // namespace armilla
