#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/units_text.h"
#include "write/astra.h"
#include "write/format/json_text.h"

namespace armilla {
namespace {

// What the viewer shows as processes: the accesses, lifetimes, the sum, and lifetimes by length.
constexpr std::int64_t kLifetimes = 1'000'000, kUsage = 2'000'000, kByLength = 3'000'000;
// A tensor that nobody wrote is there from the beginning; its write is shown as this long.
constexpr Time kUnwritten = nanoseconds(10);

struct Access {
  Time start, end;
  std::string node_name;
  std::uint64_t node_id = 0;
};

struct AccessedTensor {
  std::string name;
  std::uint64_t bytes = 0;
  std::vector<Access> reads, writes;

  Time born() const { return writes.front().start; }
  // Of the last read; only when there is one.
  Time last_read() const {
    Time last{};
    for (const Access& read : reads) last = std::max(last, read.end);
    return last;
  }
};

// As the peer computes it, in two divisions: the last digit depends on them.
double trace_micros(Time time) {
  return 1e-3 * (static_cast<double>(time.value) / 1000);
}

double mebibytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024.0);
}

class Tracker {
 public:
  Tracker(const ChakraTrace& trace, std::int32_t rank) : trace_(trace), rank_(rank) {}

  void record(std::size_t node, Time start, Time end) {
    // A tensor that is read before anybody wrote it was there from the beginning.
    const Access access{start, end, std::string(trace_.name_of_node(node)), trace_.id[node]};
    for_each_tensor(node, "inputs", [&](AccessedTensor& tensor) {
      if (tensor.writes.empty()) tensor.writes.push_back({Time(0), kUnwritten, "UNDEFINED", UINT64_MAX});
      tensor.reads.push_back(access);
    });
    for_each_tensor(node, "outputs", [&](AccessedTensor& tensor) { tensor.writes.push_back(access); });
  }

  LocalMemory finish() {
    add_accesses();
    add_lifetimes();
    const Time end = add_usage();
    add_by_length(end);
    Json document;
    document["traceEvents"] = std::move(events_);
    return {to_text(document), peak_, tensors_.size()};
  }

 private:
  // Chakra's attribute lists names and sizes in turn, all as text.
  template <class Use>
  void for_each_tensor(std::size_t node, std::string_view attribute, Use use) {
    const ChakraAttribute* const found = trace_.find(node, attribute);
    if (found == nullptr || found->kind() != ChakraValueKind::string || !found->is_list()) return;
    const std::string where = fmt::format("{}, attribute '{}'", location(trace_, node), attribute);
    if (found->count % 2 != 0)
      throw Error(where, "lists " + typed_count(found->count, "text"),
                  "tensors are listed as name, bytes, name, bytes");
    for (std::uint32_t i = 0; i < found->count; i += 2) {
      const std::string name(text_of(*found, i));
      const std::uint64_t bytes = parse_size(text_of(*found, i + 1), where);
      if (bytes == 0) continue;
      const auto [place, fresh] = index_.emplace(name, tensors_.size());
      if (fresh) tensors_.push_back({name, bytes, {}, {}});
      use(tensors_[place->second]);
    }
  }

  std::string_view text_of(const ChakraAttribute& list, std::uint32_t item) const {
    return trace_.strings.at(static_cast<std::uint32_t>(trace_.list_values[list.value + item]));
  }

  static std::uint64_t parse_size(std::string_view text, const std::string& where) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
    // Saturates instead of overflowing: a size beyond 2^60 is refused.
    std::uint64_t bytes = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || bytes > kMost) bytes = UINT64_MAX;
      if (bytes == UINT64_MAX) break;
      bytes = bytes * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (text.empty() || bytes > kMost)
      throw Error(where, fmt::format("'{:.60}' is not a size in bytes", text));
    return bytes;
  }

  Json event(const AccessedTensor& tensor, std::string_view category, std::string_view phase, Time at,
             std::int64_t process, std::size_t thread, Json arguments) const {
    return {{"args", std::move(arguments)}, {"cat", category}, {"name", tensor.name},   {"ph", phase},
            {"pid", process + rank_},       {"tid", thread},   {"ts", trace_micros(at)}};
  }

  void add_access(const AccessedTensor& tensor, std::size_t thread, std::string_view category,
                  const Access& access) {
    const Json arguments = {
        {"node_id", access.node_id}, {"node_name", access.node_name}, {"size", tensor.bytes}};
    events_.push_back(event(tensor, category, "B", access.start, 0, thread, arguments));
    events_.push_back(event(tensor, category, "E", access.end, 0, thread, arguments));
  }

  void add_accesses() {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      for (const Access& read : tensors_[t].reads) add_access(tensors_[t], t, "tensorRead", read);
    }
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      for (const Access& write : tensors_[t].writes) add_access(tensors_[t], t, "tensorWrite", write);
    }
  }

  void add_lifetimes() {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const Json size = {{"size", tensors_[t].bytes}};
      events_.push_back(event(tensors_[t], "tensorLifetime", "B", tensors_[t].born(), kLifetimes, t, size));
      if (!tensors_[t].reads.empty())
        events_.push_back(
            event(tensors_[t], "tensorLifetime", "E", tensors_[t].last_read(), kLifetimes, t, size));
    }
  }

  // Returns the last moment at which the memory in use changed.
  // A tensor is held from its first write to its last read; without a reader, to the end.
  Time add_usage() {
    std::map<Time, std::pair<std::uint64_t, std::uint64_t>> changes;  // born and released bytes
    for (const AccessedTensor& tensor : tensors_) {
      changes[tensor.born()].first += tensor.bytes;
      if (!tensor.reads.empty()) changes[tensor.last_read()].second += tensor.bytes;
    }
    std::uint64_t used = 0;
    // Additions first: the unsigned sum must not fall below zero in between.
    for (const auto& [at, change] : changes) {
      used += change.first;
      used -= change.second;
      peak_ = std::max(peak_, used);
      events_.push_back({{"args", {{"Memory_MB", mebibytes(used)}}},
                         {"cat", "GPU Memory"},
                         {"name", "GPU Memory Usage (MB)"},
                         {"ph", "C"},
                         {"pid", kUsage + rank_},
                         {"ts", trace_micros(at)}});
    }
    return changes.empty() ? Time(0) : changes.rbegin()->first;
  }

  void add_by_length(Time end) {
    struct Life {
      std::size_t tensor;
      Time start, length;
    };
    std::vector<Life> lives;
    std::uint64_t largest = 1;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const Time until =
          tensors_[t].reads.empty() ? std::max(end, tensors_[t].born()) : tensors_[t].last_read();
      lives.push_back({t, tensors_[t].born(), until - tensors_[t].born()});
      largest = std::max(largest, tensors_[t].bytes);
    }
    std::stable_sort(lives.begin(), lives.end(),
                     [](const Life& a, const Life& b) { return a.length > b.length; });
    const std::int64_t process = kByLength + rank_;
    events_.push_back({{"args", {{"name", "Tensor Lifetime Heap"}}},
                       {"name", "process_name"},
                       {"ph", "M"},
                       {"pid", process}});
    events_.push_back({{"args", {{"name", "Longest Lifetime → Shortest Lifetime"}}},
                       {"name", "thread_name"},
                       {"ph", "M"},
                       {"pid", process},
                       {"tid", 0}});
    for (const Life& life : lives) {
      const AccessedTensor& tensor = tensors_[life.tensor];
      const Time spread = lives.front().length - lives.back().length;
      // Sorted by length and spread over the rows in proportion to it, as the peer's heat map does.
      const auto position =
          spread == Time(0) ? 0
                            : static_cast<std::int64_t>(
                                  static_cast<double>((life.length - lives.back().length).value) /
                                  static_cast<double>(spread.value) * static_cast<double>(lives.size() - 1));
      // Large tensors are red, small ones blue.
      const int heat =
          static_cast<int>(static_cast<double>(tensor.bytes) / static_cast<double>(largest) * 255);
      std::string shown = tensor.name.size() > 20 ? tensor.name.substr(0, 17) + "..." : tensor.name;
      shown += fmt::format(" ({:.5} MB)", fmt::format("{:.6f}", mebibytes(tensor.bytes)));
      events_.push_back({{"args",
                          {{"lifetime_ns", life.length.value / 1000},
                           {"position", position},
                           {"size_bytes", tensor.bytes},
                           {"size_mb", mebibytes(tensor.bytes)},
                           {"tensor_name", tensor.name}}},
                         {"cat", "tensorHeatmap"},
                         {"cname", fmt::format("#{:02X}64{:02X}", heat, 255 - heat)},
                         {"dur", trace_micros(life.length)},
                         {"name", shown},
                         {"ph", "X"},
                         {"pid", process},
                         {"tid", position},
                         {"ts", trace_micros(life.start)}});
    }
    events_.push_back({{"args",
                        {{"description", "Tensors arranged by lifetime duration (longest at bottom)"},
                         {"displayed_tensors", lives.size()},
                         {"total_tensors", lives.size()}}},
                       {"cat", "tensorHeatmap"},
                       {"name", "Tensor Lifetime Heatmap"},
                       {"ph", "i"},
                       {"pid", process},
                       {"s", "p"},
                       {"ts", 0}});
  }

  const ChakraTrace& trace_;
  std::int32_t rank_;
  std::vector<AccessedTensor> tensors_;  // in order of appearance
  std::unordered_map<std::string, std::size_t> index_;
  Json events_ = Json::array();
  std::uint64_t peak_ = 0;
};

}  // namespace

LocalMemory local_memory(const ChakraTrace& trace, std::int32_t rank, const Program& program,
                         std::span<const NodeSpan> spans) {
  std::unordered_map<std::uint64_t, std::size_t> place_of;
  for (std::size_t node = 0; node < trace.size(); ++node) place_of[trace.id[node]] = node;
  // In the order in which they finish, as a write that follows a read in time is a new value.
  std::vector<NodeSpan> ordered(spans.begin(), spans.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const NodeSpan& a, const NodeSpan& b) { return a.end < b.end; });
  Tracker tracker(trace, rank);
  for (const NodeSpan& span : ordered) {
    const auto found = place_of.find(program.shown_id(span.node));
    if (found != place_of.end()) tracker.record(found->second, span.start, span.end);
  }
  return tracker.finish();
}

}  // namespace armilla
