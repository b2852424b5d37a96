#include "cli/flags/translate_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"
#include "cli/flags/model_flags.h"

namespace armilla {
namespace {

// "A:B".
std::pair<std::int64_t, std::int64_t> two_counts(const std::string& text, const std::string& flag,
                                                 const char* form) {
  const std::size_t colon = text.find(':');
  const std::string where = fmt::format("{} {:.60}", flag, text);
  if (colon == text.npos) throw Error(where, fmt::format("expected {}", form));
  return {parse_count(text.substr(0, colon), where), parse_count(text.substr(colon + 1), where)};
}

void scale(ConvertInput& input, const std::string& scale, const std::string& replica_size) {
  const auto [from, to] =
      two_counts(scale, "--scale-ranks", "OLD:NEW, the numbers of ranks before and after");
  const std::string where = "--scale-ranks " + scale;
  const auto ranks = static_cast<std::int64_t>(input.job.ranks.size());
  if (from != ranks)
    throw Error(where,
                fmt::format("the traces are those of {}, not of {}", typed_count(ranks, "rank"), from));
  if (from < 1 || to < from || to % from != 0 || to > INT32_MAX)
    throw Error(where, fmt::format("{} cannot be copied to make {}", typed_count(from, "rank"), to),
                "NEW is a multiple of OLD");
  const std::int64_t replica =
      replica_size.empty() ? 0 : parse_flag(replica_size, "--replica-size", 1, INT32_MAX);
  input.job =
      scale_ranks(input.job, static_cast<std::int32_t>(to / from), static_cast<std::int32_t>(replica));
}

void merge(ConvertInput& input, const std::vector<std::string>& others, const ConvertOptions& options) {
  std::vector<ConvertInput> parts;
  for (const std::string& path : others) {
    parts.push_back(read_convert_input(path, options));
    if (parts.back().job.ranks.size() != input.job.ranks.size())
      throw Error("--merge " + path,
                  fmt::format("has traces of {}, not of {}",
                              typed_count(parts.back().job.ranks.size(), "rank"), input.job.ranks.size()));
  }
  for (std::size_t rank = 0; rank < input.job.ranks.size(); ++rank) {
    std::vector<const ChakraTrace*> traces = {&input.job.ranks[rank]};
    for (const ConvertInput& part : parts) traces.push_back(&part.job.ranks[rank]);
    input.job.ranks[rank] = merge_traces(traces);
  }
}

}  // namespace

void TranslateFlags::declare(CLI::App& app) {
  const char* const group = "Traces";
  app.add_option("--dimensions", dimensions,
                 "sizes of the network that a text workload runs on, innermost first (default: --npus)")
      ->type_name("4x2")
      ->group(group);
  app.add_option("--passes", passes, "iterations of a text workload")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--frequency", frequency, "clock of the cycles or ticks of the input")
      ->type_name("FREQUENCY")
      ->capture_default_str()
      ->group(group);
  app.add_option("--bytes", bytes, "size of the call of an MSCCL algorithm (default: messages are shares)")
      ->type_name("BYTES")
      ->group(group);
  app.add_option("--communicators", communicators, "file of the groups that Chakra traces refer to")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--process-groups", process_groups, "name groups of ranks instead of dimensions")
      ->group(group);
  app.add_option("--keep-iterations", keep, "only the iterations A to B, counted from 1")
      ->type_name("A:B")
      ->group(group);
  app.add_option("--iteration-marker", marker,
                 "name of the node that begins each iteration (default: names repeat)")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--merge", merge, "further traces, run one after another")->type_name("INPUT")->group(group);
  app.add_option("--scale-ranks", scale, "copy a job of OLD ranks data-parallel until it has NEW")
      ->type_name("OLD:NEW")
      ->group(group);
  app.add_option("--replica-size", replica_size,
                 "ranks of one data-parallel replica of the job (default: all)")
      ->type_name("N")
      ->group(group);
  app.add_option("--rank", rank, "only the trace of one rank")->type_name("N")->group(group);
  app.add_flag("--gzip", gzip, "pack Chakra traces")->group(group);
  app.add_flag("--as-chakra", as_chakra, "as Chakra's own converters and visualizers, units and all")
      ->group(group);
}

ConvertOptions TranslateFlags::options(std::int64_t npus) const {
  ConvertOptions options;
  options.dimensions = {npus};
  if (!dimensions.empty()) {
    options.dimensions.clear();
    std::int64_t ranks = 1;
    for (std::size_t begin = 0; begin <= dimensions.size();) {
      const std::size_t end = std::min(dimensions.find('x', begin), dimensions.size());
      options.dimensions.push_back(
          parse_flag(dimensions.substr(begin, end - begin), "--dimensions", 1, 1 << 24));
      ranks *= options.dimensions.back();
      if (ranks > 1 << 24) throw Error("--dimensions " + dimensions, "more than 16777216 ranks");
      begin = end + 1;
    }
    // 1 is the flag's default and says nothing.
    if (npus > 1 && npus != ranks)
      throw Error("--dimensions " + dimensions,
                  fmt::format("makes {}, and --npus is {}", typed_count(ranks, "rank"), npus),
                  "leave out --npus");
  }
  options.passes = parse_flag(passes, "--passes", 1, INT32_MAX);
  options.frequency = parse_frequency(frequency, "--frequency").value;
  options.process_groups = process_groups;
  options.as_chakra = as_chakra;
  options.communicators = communicators;
  if (!bytes.empty()) options.bytes = parse_bytes(bytes, "--bytes");
  return options;
}

// In the order of the work, whatever that of the flags: iterations are found by names, which merged traces
// have several times; and a rank is picked from the job that is written.
void TranslateFlags::change(ConvertInput& input, const ConvertOptions& options) const {
  if (!marker.empty() && keep.empty())
    throw Error("--iteration-marker " + marker, "marks iterations, and all are kept",
                "--keep-iterations A:B");
  if (!replica_size.empty() && scale.empty())
    throw Error("--replica-size " + replica_size, "is for jobs that are copied", "--scale-ranks OLD:NEW");
  if (!keep.empty()) {
    const auto [first, last] = two_counts(keep, "--keep-iterations", "A:B, the first and the last to keep");
    input.job.ranks = keep_iterations(input.job.ranks, first, last, marker);
  }
  if (!merge.empty()) armilla::merge(input, merge, options);
  if (!scale.empty()) armilla::scale(input, scale, replica_size);
  if (!rank.empty()) {
    const auto ranks = static_cast<std::int64_t>(input.job.ranks.size());
    const auto chosen = static_cast<std::size_t>(parse_flag(rank, "--rank", 0, ranks - 1));
    ChakraTrace trace = std::move(input.job.ranks[chosen]);
    input.job.ranks.clear();
    input.job.ranks.push_back(std::move(trace));
  }
}

}  // namespace armilla
