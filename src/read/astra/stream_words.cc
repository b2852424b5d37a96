#include "read/astra/stream_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/single_precision.h"
#include "base/suggest.h"
#include "base/units_text.h"

namespace armilla {
namespace {

// ASTRA-sim reads word by word: "key: value" pairs may be spread over lines.
std::vector<Located> split_words(std::string_view text, const std::string& name) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  std::vector<Located> words;
  int line = 1;
  std::size_t line_begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (kBlank.find(text[at]) != std::string_view::npos) {
      if (text[at] == '\n') {
        ++line;
        line_begin = at + 1;
      }
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    words.push_back(
        {std::string(text.substr(at, end - at)), fmt::format("{}:{}:{}", name, line, at - line_begin + 1)});
    at = end;
  }
  return words;
}

// Beyond these no time fits the simulator's clock, and no machine is meant.
constexpr double kLeastBandwidth = 1e-6, kMostBandwidth = 1e9;  // GB/s
constexpr double kLongestLatency = 1e12;                        // ns

template <class Value>
struct Word {
  std::string_view name;
  Value value;
};

template <class Value, std::size_t kCount>
Value look_up(const std::array<Word<Value>, kCount>& words, std::string_view word, std::string_view noun,
              const std::string& where) {
  std::vector<std::string_view> names;
  for (const Word<Value>& known : words) {
    if (known.name == word) return known.value;
    names.push_back(known.name);
  }
  throw Error(where, fmt::format("unknown {} '{:.60}'", noun, word),
              suggest(word, std::span<const std::string_view>(names)));
}

constexpr std::array kAlgorithms = {
    Word<StreamAlgorithm>{"ring", {StreamAlgorithmKind::ring, false, -1}},
    Word<StreamAlgorithm>{"direct", {StreamAlgorithmKind::direct, false, -1}},
    Word<StreamAlgorithm>{"halvingDoubling", {StreamAlgorithmKind::halving_doubling, false, -1}},
    Word<StreamAlgorithm>{"doubleBinaryTree", {StreamAlgorithmKind::double_binary_tree, false, -1}},
    Word<StreamAlgorithm>{"oneRing", {StreamAlgorithmKind::ring, true, -1}},
    Word<StreamAlgorithm>{"oneDirect", {StreamAlgorithmKind::direct, true, -1}},
    Word<StreamAlgorithm>{"oneHalvingDoubling", {StreamAlgorithmKind::halving_doubling, true, -1}},
};

}  // namespace

// "direct8" has a window of 8 messages; the number belongs to the two direct algorithms only.
StreamAlgorithm stream_algorithm(std::string_view word, const std::string& where) {
  const auto last_letter = word.find_last_not_of("0123456789");
  const std::string_view name = word.substr(0, last_letter + 1);
  const std::string_view window = word.substr(name.size());
  if (window.empty() || (name != "direct" && name != "oneDirect"))
    return look_up(kAlgorithms, word, "collective algorithm", where);
  StreamAlgorithm algorithm = look_up(kAlgorithms, name, "collective algorithm", where);
  const std::int64_t messages = parse_count(window, where);
  if (messages < 1 || messages > INT32_MAX) {
    throw Error(where, fmt::format("'{:.60}' has {} messages in flight", word, messages),
                "the lowest window is 1; without a number all are in flight");
  }
  algorithm.window = static_cast<std::int32_t>(messages);
  return algorithm;
}

void check_algorithms(const std::vector<StreamAlgorithm>& algorithms, std::size_t dimensions,
                      const std::string& where) {
  if (algorithms.size() > dimensions) {
    throw Error(where, fmt::format("lists {} for {}", counted(algorithms.size(), "algorithm"),
                                   counted(dimensions, "dimension")));
  }
  for (const StreamAlgorithm& algorithm : algorithms) {
    if (algorithm.flat && algorithms.size() > 1)
      throw Error(where, "an algorithm over all ranks ('one...') stands beside others",
                  "it must be the only entry");
  }
}

void warn_about_short_lists(const SystemLayer& system, const std::string& where,
                            std::vector<std::string>& warnings) {
  std::vector<std::string_view> kinds;
  for (const auto& [kind, algorithms] : system.algorithms) {
    if (!algorithms.front().flat && algorithms.size() < system.dimensions.size())
      kinds.push_back(name_of(kind));
  }
  if (kinds.empty()) return;
  warnings.push_back(
      fmt::format("{}: fewer algorithms than the network's {} dimensions for {}: the dimensions without one "
                  "take no part, as in ASTRA-sim",
                  where, system.dimensions.size(), fmt::join(kinds, ", ")));
}

IntraDimensionOrder intra_dimension_order(std::string_view word, const std::string& where) {
  using Order = IntraDimensionOrder;
  constexpr std::array kWords = {Word<Order>{"FIFO", Order::fifo}, Word<Order>{"RG", Order::rg},
                                 Word<Order>{"smallestFirst", Order::smallest_first},
                                 Word<Order>{"SCF", Order::smallest_first},
                                 Word<Order>{"lessRemainingPhaseFirst", Order::less_remaining_phase_first}};
  return look_up(kWords, word, "order within a dimension", where);
}

InterDimensionOrder inter_dimension_order(std::string_view word, const std::string& where) {
  using Order = InterDimensionOrder;
  constexpr std::array kWords = {
      Word<Order>{"baseline", Order::ascending},     Word<Order>{"ascending", Order::ascending},
      Word<Order>{"themis", Order::themis},          Word<Order>{"offlineGreedy", Order::themis},
      Word<Order>{"themisFlex", Order::themis_flex}, Word<Order>{"offlineGreedyFlex", Order::themis_flex},
      Word<Order>{"roundRobin", Order::round_robin}};
  return look_up(kWords, word, "order of dimensions", where);
}

Decomposition stream_decomposition(std::string_view word, const std::string& where) {
  constexpr std::array kWords = {Word<Decomposition>{"baseline", Decomposition::baseline},
                                 Word<Decomposition>{"localBWAware", Decomposition::bandwidth_aware}};
  return look_up(kWords, word, "collective optimization", where);
}

DimensionKind stream_dimension_kind(std::string_view word, const std::string& where) {
  constexpr std::array kWords = {Word<DimensionKind>{"Ring", DimensionKind::ring},
                                 Word<DimensionKind>{"FullyConnected", DimensionKind::fully_connected},
                                 Word<DimensionKind>{"Switch", DimensionKind::switched}};
  return look_up(kWords, word, "topology", where);
}

// ASTRA-sim reads a float and converts it to an integer.
std::int64_t truncated_count(std::string_view text, const std::string& where, std::int64_t lowest,
                             std::vector<std::string>& warnings) {
  const double value = real_between(text, where, static_cast<double>(lowest), INT32_MAX);
  const double whole = std::trunc(value);
  if (whole != value)
    warnings.push_back(fmt::format("{}: {:.60} is taken as {}, as in ASTRA-sim", where, text, whole));
  return static_cast<std::int64_t>(whole);
}

double real_between(std::string_view text, const std::string& where, double lowest, double highest) {
  const double value = parse_real(text, where);
  if (value < lowest)
    throw Error(where, fmt::format("{:.60} is too small", text),
                fmt::format("the lowest value is {:.10g}", lowest));
  if (value > highest)
    throw Error(where, fmt::format("{:.60} is too large", text),
                fmt::format("the highest value is {:.10g}", highest));
  return value;
}

double link_bandwidth(std::string_view text, const std::string& where) {
  return real_between(text, where, kLeastBandwidth, kMostBandwidth);
}

double link_latency(std::string_view text, const std::string& where) {
  return real_between(text, where, 0, kLongestLatency);
}

// As ASTRA-sim does: L, o and g are whole nanoseconds, the gap per byte has single precision.
void set_bus(SystemLayer& system, const BusNumbers& numbers) {
  system.bus_l_ns = static_cast<std::int64_t>(numbers.l);
  system.bus_o_ns = static_cast<std::int64_t>(numbers.o);
  system.bus_g_ns = static_cast<std::int64_t>(numbers.g);
  system.bus_gap_per_byte_ns = single_precision(numbers.gap_per_byte);
}

Words read_key_words(const std::string& path, FileKind kind, std::string_view what,
                     std::span<const std::string_view> keys) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), kind, what);
  const std::string_view text(file.bytes().data(), file.bytes().size());
  constexpr std::size_t kLongest = 1 << 20;
  if (text.size() > kLongest)
    throw Error(path, fmt::format("is too large to be {}", what), "the limit is 1 MiB");
  const std::vector<Located> words = split_words(text, path);
  Words values;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    std::string key = words[i].text;
    if (key.ends_with(':')) key.pop_back();
    const auto known = std::find(keys.begin(), keys.end(), key);
    if (known == keys.end() || !words[i].text.ends_with(':')) {
      throw Error(words[i].where,
                  known == keys.end() ? fmt::format("unknown key '{:.60}'", key)
                                      : fmt::format("no ':' after the key '{}'", key),
                  known == keys.end() ? suggest(key, keys) : "lines are 'key: value'");
    }
    if (i + 1 == words.size()) throw Error(words[i].where, fmt::format("the key '{}' has no value", key));
    const Located value{words[i + 1].text, fmt::format("{}: {}", words[i + 1].where, key)};
    if (!values.emplace(key, value).second)
      throw Error(words[i].where, fmt::format("key '{}' is given twice", key));
  }
  return values;
}

const Located* find_word(const Words& words, std::string_view key) {
  const auto found = words.find(key);
  return found == words.end() ? nullptr : &found->second;
}

const Located& word_at(const Words& words, std::string_view key, const std::string& path) {
  const Located* const found = find_word(words, key);
  if (found == nullptr) throw Error(path, fmt::format("the key '{}' is missing", key));
  return *found;
}

}  // namespace armilla
