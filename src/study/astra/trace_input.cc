#include "study/astra/trace_input.h"

#include <fmt/format.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "base/error.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "read/file_format.h"
#include "read/trace.h"

namespace armilla {
namespace {

constexpr std::int64_t kMaxRanks = INT32_MAX;

struct SharedFile {
  std::string path;  // of the first rank
  std::vector<std::int32_t> ranks;
};

// Ranks are 32-bit numbers everywhere.
std::int64_t ranks_of_sizes(const std::vector<std::int64_t>& sizes) {
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

// Equal traces are the rule in large jobs: they are found without reading all of them, parsed once and share
// a program. Of a file's size, its ends and samples in between: tells most files apart without reading them.
std::size_t fingerprint(std::span<const char> bytes) {
  constexpr std::size_t kEnd = 4096, kSample = 64, kSamples = 16;
  if (bytes.size() <= 2 * kEnd) return std::hash<std::string_view>()({bytes.data(), bytes.size()});
  std::string seen = fmt::format("{} ", bytes.size());
  seen.append(bytes.data(), kEnd);
  for (std::size_t i = 1; i < kSamples; ++i) seen.append(bytes.data() + bytes.size() / kSamples * i, kSample);
  seen.append(bytes.data() + bytes.size() - kEnd, kEnd);
  return std::hash<std::string_view>()(seen);
}

std::size_t whole_hash(const std::string& path) {
  const MappedFile file(path);
  return std::hash<std::string_view>()({file.bytes().data(), file.bytes().size()});
}

// For somebody who gave a file in place of the prefix of a job's traces.
void refuse_file(const std::string& prefix, std::int64_t ranks) {
  if (trace_file(prefix, 0) || !is_file(prefix)) return;
  const FileKind kind = sniff_file(prefix);
  if (kind != FileKind::chakra && kind != FileKind::chakra_json)
    throw wrong_kind(prefix, kind, "the prefix of Chakra traces");
  throw Error(prefix, "is the trace of one rank, not the prefix of a job's traces",
              fmt::format("{} ranks have traces PREFIX.0.et to PREFIX.{}.et: give PREFIX", ranks, ranks - 1));
}

// Files with one fingerprint.
// Whole files are hashed only once a second file has the same fingerprint.
struct Alike {
  std::optional<std::size_t> first;                           // by number
  std::unordered_multimap<std::size_t, std::size_t> by_hash;  // of all that they hold; from the second on
};

// The file among `alike` with the same bytes; if there is none, `path` becomes one of them as `number`.
std::optional<std::size_t> same_file(const std::vector<SharedFile>& files, Alike& alike,
                                     const std::string& path, std::size_t number) {
  if (!alike.first) {
    alike.first = number;
    return std::nullopt;
  }
  if (alike.by_hash.empty()) alike.by_hash.emplace(whole_hash(files[*alike.first].path), *alike.first);
  const std::size_t hash = whole_hash(path);
  // Hashes may collide: the bytes decide.
  const auto [first, last] = alike.by_hash.equal_range(hash);
  for (auto like = first; like != last; ++like) {
    if (same_bytes(files[like->second].path, path)) return like->second;
  }
  alike.by_hash.emplace(hash, number);
  return std::nullopt;
}

// The ranks' files, those with equal bytes together, in the order of their first ranks.
// One pass over the names of files: what is missing is said before anything is parsed.
std::vector<SharedFile> shared_files(const std::string& prefix, std::int64_t ranks) {
  refuse_file(prefix, ranks);
  std::vector<SharedFile> files;
  std::unordered_map<std::size_t, Alike> by_fingerprint;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const std::optional<std::string> path = trace_file(prefix, rank);
    if (!path)
      throw Error(fmt::format("{}.{}.et", prefix, rank), "there is no such file",
                  ranks == 1 ? fmt::format("a job of 1 rank needs {}.0.et", prefix)
                             : fmt::format("a job of {} ranks needs {}.0.et to {}.{}.et", ranks, prefix,
                                           prefix, ranks - 1));
    Alike& alike = by_fingerprint[fingerprint(MappedFile(*path).bytes())];
    if (const std::optional<std::size_t> like = same_file(files, alike, *path, files.size())) {
      files[*like].ranks.push_back(rank);
    } else {
      files.push_back({*path, {rank}});
    }
  }
  return files;
}

// Reads files in the background, into traces that are used again and again: a large trace costs less to parse
// than to be given its memory.
class Readers {
 public:
  explicit Readers(std::size_t most) : most_(most) {}

  bool has_room() const { return reading_.size() < most_; }
  void begin(const std::string& path) {
    std::shared_ptr<ChakraTrace> trace;
    if (free_.empty()) {
      trace = std::make_shared<ChakraTrace>();
    } else {
      // A trace that has been used lends its memory to the next.
      trace = std::move(free_.back());
      free_.pop_back();
    }
    const auto read = [&path, trace = std::move(trace)] {
      read_chakra_file(path, *trace);
      return trace;
    };
    try {
      reading_.push_back(std::async(std::launch::async, read));
    } catch (const std::system_error&) {
      // Where no thread can be had it is read when its turn comes.
      reading_.push_back(std::async(std::launch::deferred, read));
    }
  }
  // Calls `use` with the trace of the file that was begun first. Throws what its reader threw. `keeps`: there
  // are files yet to be begun, which can use its memory.
  template <class Use>
  void use_next(bool keeps, Use&& use) {
    std::shared_ptr<ChakraTrace> trace = reading_.front().get();
    reading_.pop_front();
    use(*trace);
    if (keeps) free_.push_back(std::move(trace));
  }

 private:
  std::size_t most_;
  std::deque<std::future<std::shared_ptr<ChakraTrace>>> reading_;
  std::vector<std::shared_ptr<ChakraTrace>> free_;
};

// Calls `use` with each file's trace, in order, while others are being read.
template <class Use>
void for_each_trace(const std::vector<SharedFile>& files, Use&& use) {
  {
    // As many files are read ahead as there are cores; they are used in order, so results do not depend on
    // timing.
    Readers readers(std::max(1U, std::thread::hardware_concurrency()));
    std::size_t begun = 0;
    for (const SharedFile& file : files) {
      for (; begun < files.size() && readers.has_room(); ++begun) readers.begin(files[begun].path);
      readers.use_next(begun < files.size(), [&](const ChakraTrace& trace) { use(file, trace); });
    }
  }
#ifdef __GLIBC__
  ::malloc_trim(0);  // what the traces were is needed for the run, and the heaps of threads would keep it
#endif
}

constexpr std::string_view kNoNodes = "has no nodes";

// A further rank's file that the run does not read: the prefix or the network is most likely wrong.
std::optional<std::string> ignored_file(const std::string& prefix, std::int64_t ranks) {
  return trace_file(prefix, ranks);
}

std::string problem_text(const TraceProblem& problem) {
  std::string text = problem.where.empty() ? problem.message : problem.where + ": " + problem.message;
  if (!problem.hint.empty()) text += "\n  hint: " + problem.hint;
  return text;
}

}  // namespace

std::optional<std::string> trace_file(const std::string& prefix, std::int64_t rank) {
  for (const char* suffix : {"et", "et.gz", "json"}) {
    std::string path = fmt::format("{}.{}.{}", prefix, rank, suffix);
    if (is_there(path)) return path;
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
  const std::int64_t ranks = ranks_of_sizes(lowering.dimension_sizes);
  TraceJob job;
  TraceGraphBuilder builder(lowering);
  TraceChecker checker(
      {lowering.dimension_sizes, lowering.communicators, lowering.as_astra, lowering.replay_only});
  // What the builder refuses first is among the problems that the checker finds.
  std::exception_ptr refused;
  for_each_trace(shared_files(prefix, ranks), [&](const SharedFile& file, const ChakraTrace& trace) {
    // The checker sees all traces even if the builder has refused one: its messages tell more and concern
    // more than one rank.
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
    job.warnings.push_back(fmt::format("{}: is not part of the run, which has {}", *ignored,
                                       ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks)));
  if (options.check) {
    const std::vector<TraceProblem> problems = checker.finish();
    refuse_problems(problems);
    if (refused) std::rethrow_exception(refused);
    for (const TraceProblem& problem : problems) job.warnings.push_back(problem_text(problem));
  }
  job.graph = builder.finish();  // only now all warnings are known
  job.warnings.insert(job.warnings.end(), builder.warnings().begin(), builder.warnings().end());
  job.roofline_use = builder.roofline_use();
  return job;
}

std::vector<TraceProblem> check_trace_files(const std::string& prefix, const TraceCheckOptions& check,
                                            const TraceInputOptions&) {
  const std::int64_t ranks = ranks_of_sizes(check.dimension_sizes);
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
                     fmt::format("is not part of the run, which has {}",
                                 ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks)),
                     {}});
  std::vector<TraceProblem> problems = checker.finish();
  problems.insert(problems.end(), extra.begin(), extra.end());
  return problems;
}

}  // namespace armilla
