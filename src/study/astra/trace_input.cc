#include "study/astra/trace_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <filesystem>
#include <future>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "base/error.h"
#include "base/mapped_file.h"
#include "read/chakra.h"
#include "read/file_format.h"

namespace armilla {
namespace {

constexpr std::int64_t kMaxRanks = INT32_MAX;

struct SharedFile {
  std::string path;  // of the first rank
  std::vector<std::int32_t> ranks;
};

std::int64_t rank_count(const std::vector<std::int64_t>& sizes) {
  std::int64_t ranks = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1 || __builtin_mul_overflow(ranks, size, &ranks) || ranks > kMaxRanks)
      throw Error("", "the network's dimensions make no possible number of ranks");
  }
  return ranks;
}

bool same_bytes(const std::string& a, const std::string& b) {
  const MappedFile first(a), second(b);
  return std::ranges::equal(first.bytes(), second.bytes());
}

// For somebody who gave a file in place of the prefix of a job's traces.
void refuse_file(const std::string& prefix, std::int64_t ranks) {
  std::error_code ignored;
  if (trace_file(prefix, 0) || !std::filesystem::is_regular_file(prefix, ignored)) return;
  const FileKind kind = sniff_file(prefix);
  if (kind != FileKind::chakra && kind != FileKind::chakra_json)
    throw wrong_kind(prefix, kind, "the prefix of Chakra traces");
  throw Error(prefix, "is the trace of one rank, not the prefix of a job's traces",
              fmt::format("{} ranks have traces PREFIX.0.et to PREFIX.{}.et: give PREFIX", ranks, ranks - 1));
}

// The ranks' files, those with equal bytes together, in the order of their first ranks.
std::vector<SharedFile> shared_files(const std::string& prefix, std::int64_t ranks) {
  refuse_file(prefix, ranks);
  std::vector<SharedFile> files;
  std::unordered_map<std::size_t, std::vector<std::size_t>> by_hash;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const std::optional<std::string> path = trace_file(prefix, rank);
    if (!path)
      throw Error(
          fmt::format("{}.{}.et", prefix, rank), "there is no such file",
          fmt::format("a job of {} ranks needs {}.0.et to {}.{}.et", ranks, prefix, prefix, ranks - 1));
    std::size_t hash = 0;
    {
      const MappedFile file(*path);
      hash = std::hash<std::string_view>()({file.bytes().data(), file.bytes().size()});
    }
    std::vector<std::size_t>& alike = by_hash[hash];
    const auto like = std::find_if(alike.begin(), alike.end(),
                                   [&](std::size_t other) { return same_bytes(files[other].path, *path); });
    if (like != alike.end()) {
      files[*like].ranks.push_back(rank);
      continue;
    }
    alike.push_back(files.size());
    files.push_back({*path, {rank}});
  }
  return files;
}

// Calls `use` with each file's trace, in order, while others are being read.
template <class Use>
void for_each_trace(const std::vector<SharedFile>& files, Use&& use) {
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::deque<std::future<ChakraTrace>> reading;
  std::size_t begun = 0;
  for (const SharedFile& file : files) {
    for (; begun < files.size() && reading.size() < threads; ++begun)
      reading.push_back(std::async(std::launch::async, read_chakra_file, files[begun].path));
    const ChakraTrace trace = reading.front().get();
    reading.pop_front();
    use(file, trace);
  }
}

constexpr std::string_view kNoNodes = "has no nodes";

std::optional<std::string> ignored_file(const std::string& prefix, std::int64_t ranks) {
  return trace_file(prefix, ranks);
}

std::string text_of(const TraceProblem& problem) {
  std::string text = problem.where.empty() ? problem.message : problem.where + ": " + problem.message;
  if (!problem.hint.empty()) text += "\n  hint: " + problem.hint;
  return text;
}

}  // namespace

std::optional<std::string> trace_file(const std::string& prefix, std::int64_t rank) {
  for (const char* suffix : {"et", "et.gz", "json"}) {
    std::string path = fmt::format("{}.{}.{}", prefix, rank, suffix);
    if (std::filesystem::exists(path)) return path;
  }
  return std::nullopt;
}

std::int64_t count_trace_files(const std::string& prefix) {
  std::int64_t ranks = 0;
  while (trace_file(prefix, ranks)) ++ranks;
  return ranks;
}

TraceJob read_trace_job(const std::string& prefix, const TraceGraphOptions& lowering,
                        const TraceInputOptions& options) {
  const std::int64_t ranks = rank_count(lowering.dimension_sizes);
  TraceJob job;
  TraceGraphBuilder builder(lowering);
  TraceChecker checker(
      {lowering.dimension_sizes, lowering.communicators, lowering.as_peer, lowering.replay_only});
  // What the builder refuses first is among the problems that the checker finds.
  std::exception_ptr refused;
  for_each_trace(shared_files(prefix, ranks), [&](const SharedFile& file, const ChakraTrace& trace) {
    if (trace.size() == 0) job.warnings.push_back(fmt::format("{}: {}", file.path, kNoNodes));
    if (!options.check) return builder.add_ranks(file.ranks, trace);
    checker.add_ranks(file.ranks, trace);
    try {
      if (!refused) builder.add_ranks(file.ranks, trace);
    } catch (const Error&) {
      refused = std::current_exception();
    }
  });
  if (const auto ignored = ignored_file(prefix, ranks))
    job.warnings.push_back(fmt::format("{}: is not part of the run, which has {} ranks", *ignored, ranks));
  if (options.check) {
    const std::vector<TraceProblem> problems = checker.finish();
    refuse_problems(problems);
    if (refused) std::rethrow_exception(refused);
    for (const TraceProblem& problem : problems) job.warnings.push_back(text_of(problem));
  }
  job.graph = builder.finish();  // only now all warnings are known
  job.warnings.insert(job.warnings.end(), builder.warnings().begin(), builder.warnings().end());
  job.roofline_use = builder.roofline_use();
  return job;
}

std::vector<TraceProblem> check_trace_files(const std::string& prefix, const TraceCheckOptions& check,
                                            const TraceInputOptions&) {
  const std::int64_t ranks = rank_count(check.dimension_sizes);
  TraceChecker checker(check);
  std::vector<TraceProblem> extra;
  for_each_trace(shared_files(prefix, ranks), [&](const SharedFile& file, const ChakraTrace& trace) {
    if (trace.size() == 0)
      extra.push_back({TraceProblem::Severity::warning, file.path, std::string(kNoNodes), {}});
    checker.add_ranks(file.ranks, trace);
  });
  if (const auto ignored = ignored_file(prefix, ranks))
    extra.push_back({TraceProblem::Severity::warning,
                     *ignored,
                     fmt::format("is not part of the run, which has {} ranks", ranks),
                     {}});
  std::vector<TraceProblem> problems = checker.finish();
  problems.insert(problems.end(), extra.begin(), extra.end());
  return problems;
}

}  // namespace armilla
