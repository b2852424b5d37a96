#include "read/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/units_text.h"

namespace armilla {
namespace {

constexpr std::string_view kGap = " \t\r\v\f";
constexpr std::size_t kColumns = 12;
constexpr std::string_view kColumnsHint =
    "name, dependence, then cycles, collective and bytes of forward, input gradient and weight gradient, "
    "then the update's cycles";

struct TextWord {
  std::string_view text;
  std::size_t line = 1, column = 1;  // from 1
};

// ASTRA-sim reads words; lines matter to us for messages, and because a row is a line in all known files.
std::vector<TextWord> located_words(std::string_view line, std::size_t number) {
  std::vector<TextWord> words;
  for (std::size_t begin = line.find_first_not_of(kGap); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kGap, begin), line.size());
    words.push_back({line.substr(begin, end - begin), number, begin + 1});
    begin = line.find_first_not_of(kGap, end);
  }
  return words;
}

std::string_view shown(std::string_view text) {
  return text.substr(0, 60);
}

struct Collective {
  std::string word;
  std::optional<CollectiveKind> kind;
  TextGroup group = TextGroup::by_policy;
};

std::vector<Collective> known_collectives() {
  std::vector<Collective> known = {{"NONE", std::nullopt, TextGroup::by_policy}};
  for (const TextGroup group : {TextGroup::by_policy, TextGroup::expert, TextGroup::data_expert}) {
    for (const CollectiveKind kind : kCollectiveKinds) {
      if (!text_word(kind).empty())
        known.push_back({fmt::format("{}{}", text_word(kind), text_suffix(group)), kind, group});
    }
  }
  return known;
}

enum class TextPart : std::uint8_t { forward, input_gradient, weight_gradient };
constexpr std::string_view kPartNames[] = {"forward", "input-gradient", "weight-gradient"};

// The collectives that a policy issues over at least one dimension, for layers without their own policy.
bool uses(TextPolicy policy, TextPart part) {
  switch (policy) {
    case TextPolicy::micro:
    case TextPolicy::data:
    case TextPolicy::hybrid_dlrm:  // but for the embedding
    case TextPolicy::hybrid_dlrm_enhanced:
      return part == TextPart::weight_gradient;
    case TextPolicy::model:
      return part != TextPart::weight_gradient;
    case TextPolicy::distributed_inference:
      return part == TextPart::forward;
    default:
      return true;
  }
}

bool uses(const TextWorkload& workload, std::size_t index, TextPart part) {
  const TextLayer& layer = workload.layers[index];
  if (workload.policy == TextPolicy::hybrid_customized) {
    const TextPolicy own = layer.policy.value_or(TextPolicy::hybrid_data_model);
    // Of its own policy a layer has the dimensions alone, and inference has a model's.
    return uses(own == TextPolicy::distributed_inference ? TextPolicy::model : own, part);
  }
  if (is_dlrm(workload.policy) && index == 0) {
    if (part == TextPart::forward) return layer.forward.collective == CollectiveKind::all_to_all;
    if (part == TextPart::input_gradient)
      return workload.last_bottom_layer + 1 < static_cast<std::int64_t>(workload.layers.size());
  }
  return uses(workload.policy, part);
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // The first line has the policy and its keys, the second the number of layers, every further line a layer.
  TextWorkload read() {
    std::vector<TextWord> line = next_line();
    if (line.empty()) throw Error(name_ + ":1:1", "is empty", "the first line names the policy");
    read_first_line(line);
    read_layers();
    check_indices();
    note_unused();
    return std::move(workload_);
  }

  void append_warnings(std::vector<std::string>& warnings) const {
    for (const auto& [text, tally] : tallies_) {
      const bool one = tally.count == 1;
      const std::string said =
          fmt::format(fmt::runtime(text), fmt::arg("n", tally.count), fmt::arg("s", one ? "" : "s"),
                      fmt::arg("es", one ? "" : "es"), fmt::arg("are", one ? "is" : "are"));
      warnings.push_back(fmt::format("{}: {}", tally.where, said));
    }
  }

 private:
  struct Tally {
    std::string where;  // the first
    std::int64_t count = 0;
  };
  struct Index {
    TextWord word;
    std::int64_t layer = 0;
  };

  std::string at(const TextWord& word) const {
    return fmt::format("{}:{}:{}", name_, word.line, word.column);
  }

  // The same mistake in many layers is one warning with a count.
  // `text` says {n} for how often, and {s}, {es} and {are} as English has it for so many.
  void warn(const std::string& text, const TextWord& word) {
    const auto found = std::find_if(tallies_.begin(), tallies_.end(),
                                    [&](const auto& entry) { return entry.first == text; });
    if (found != tallies_.end()) {
      ++found->second.count;
      return;
    }
    tallies_.push_back({text, {at(word), 1}});
  }

  // The next line with a word in it; empty at the end.
  std::vector<TextWord> next_line() {
    while (position_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', position_), text_.size());
      std::vector<TextWord> words = located_words(text_.substr(position_, end - position_), ++line_);
      position_ = end + 1;
      if (!words.empty()) return words;
    }
    return {};
  }

  std::int64_t integer(const TextWord& word, std::string_view what, std::int64_t least,
                       std::int64_t most = INT64_MAX) const {
    std::int64_t value = 0;
    const char* const end = word.text.data() + word.text.size();
    const auto [stop, status] = std::from_chars(word.text.data(), end, value);
    if (stop != end || status == std::errc::invalid_argument)
      throw Error(at(word), fmt::format("{}: '{}' is not a whole number", what, shown(word.text)));
    if (status == std::errc::result_out_of_range || value < least || value > most) {
      throw Error(at(word), fmt::format("{}: {} is out of range", what, shown(word.text)),
                  fmt::format("{} to {}", least, most));
    }
    return value;
  }

  void read_first_line(const std::vector<TextWord>& words);
  void read_key(std::string_view key, const TextWord& value, const std::vector<TextWord>& words,
                std::size_t& next);
  void read_indices(std::string_view key, const TextWord& count, const std::vector<TextWord>& words,
                    std::size_t& next, std::vector<Index>& indices) const;
  void check_keys(const TextWord& policy);
  void read_layers();
  void read_layer(const std::vector<TextWord>& words);
  void read_layer_policy(TextLayer& layer, const std::vector<TextWord>& words);
  TextPass read_pass(const std::vector<TextWord>& words, std::size_t first, std::string_view part);
  void check_indices() const;
  void note_unused();

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0, line_ = 0;
  TextWorkload workload_;
  std::map<std::string, TextWord, std::less<>> keys_;  // those read, and where
  std::vector<Index> checkpoints_, initiates_;
  std::vector<std::vector<TextWord>>
      collective_words_;  // per layer: forward, input gradient, weight gradient
  const std::vector<Collective> collectives_ = known_collectives();
  std::vector<std::pair<std::string, Tally>> tallies_;
};

constexpr std::string_view kGroupKey = "model_parallel_NPU_group";
constexpr std::string_view kBottomKey = "DLRM_LAST_BOTTOM_LAYER";
constexpr std::string_view kKeys[] = {
    kGroupKey, "ep", "pp", "vpp", "ga", "all_gpus", "pp_comm", "checkpoints", "checkpoint_initiates",
    kBottomKey};

// ASTRA-sim reads the words in a fixed order; keys are taken in any order here, with or without a blank
// behind the colon.
void Reader::read_first_line(const std::vector<TextWord>& words) {
  workload_.policy = text_policy(words[0].text, at(words[0]));
  std::size_t next = 1;
  if (is_dlrm(workload_.policy) && words.size() > 1 && words[1].text.find(':') == std::string_view::npos) {
    workload_.last_bottom_layer = integer(words[1], "last bottom layer", 0, INT32_MAX);
    keys_.emplace(kBottomKey, words[1]);
    next = 2;
  }
  while (next < words.size()) {
    const TextWord& word = words[next++];
    const std::size_t colon = word.text.find(':');
    const std::string_view key = word.text.substr(0, colon);
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
      throw Error(at(word), fmt::format("'{}' is not a key of text workloads", shown(key)),
                  suggest(shown(key), std::span<const std::string_view>(kKeys)));
    }
    if (!keys_.emplace(key, word).second) throw Error(at(word), fmt::format("'{}' is here twice", key));
    if (colon != std::string_view::npos && colon + 1 < word.text.size()) {
      read_key(key, {word.text.substr(colon + 1), word.line, word.column + colon + 1}, words, next);
      continue;
    }
    if (next == words.size()) throw Error(at(word), fmt::format("'{}' has no value", key));
    const TextWord& value = words[next++];
    read_key(key, value, words, next);
  }
  check_keys(words[0]);
}

void Reader::read_key(std::string_view key, const TextWord& value, const std::vector<TextWord>& words,
                      std::size_t& next) {
  if (key == "checkpoints") return read_indices(key, value, words, next, checkpoints_);
  if (key == "checkpoint_initiates") return read_indices(key, value, words, next, initiates_);
  if (key == "pp_comm") {
    // SimAI's generator writes it as a Python float at times.
    TextWord whole = value;
    const std::size_t point = whole.text.find('.');
    if (point != std::string_view::npos && point > 0 &&
        whole.text.find_first_not_of('0', point + 1) == std::string_view::npos)
      whole.text = whole.text.substr(0, point);
    workload_.plan.pp_comm = integer(whole, key, 0);
    return;
  }
  const bool may_be_zero = key == "vpp" || key == "ga" || key == kBottomKey;
  const std::int64_t number = integer(value, key, may_be_zero ? 0 : 1, INT32_MAX);
  if (key == kGroupKey) workload_.model_parallel_group = number;
  if (key == kBottomKey) workload_.last_bottom_layer = number;
  if (key == "ep") workload_.plan.ep = number;
  if (key == "pp") workload_.plan.pp = number;
  if (key == "vpp") workload_.plan.vpp = number;
  if (key == "ga") workload_.plan.ga = number;
  if (key == "all_gpus") workload_.plan.all_gpus = number;
}

// A count, then as many indices.
void Reader::read_indices(std::string_view key, const TextWord& count, const std::vector<TextWord>& words,
                          std::size_t& next, std::vector<Index>& indices) const {
  const std::int64_t wanted = integer(count, key, 0, INT32_MAX);
  for (std::int64_t i = 0; i < wanted; ++i) {
    if (next == words.size()) {
      throw Error(at(count),
                  fmt::format("'{}' announces {}, but {}", key, typed_count(wanted, "layer"),
                              i == 0   ? "none follows"
                              : i == 1 ? "1 follows"
                                       : fmt::format("{} follow", i)),
                  "the number of layers comes first, then their indices");
    }
    indices.push_back({words[next], integer(words[next], key, 0, INT32_MAX)});
    ++next;
  }
}

void Reader::check_keys(const TextWord& policy) {
  if (is_dlrm(workload_.policy)) {
    if (keys_.find(kBottomKey) == keys_.end()) {
      throw Error(at(policy), fmt::format("{} needs the index of the last bottom layer", policy.text),
                  fmt::format("write it behind the policy: '{} 4'", policy.text));
    }
  }
  const bool transformer = is_transformer(workload_.policy);
  if (transformer && workload_.model_parallel_group == 0)
    warn(fmt::format("has no '{}:', which a simulation needs", kGroupKey), policy);
  for (const auto& [key, word] : keys_) {
    const bool recompute = key == "checkpoints" || key == "checkpoint_initiates";
    const bool used = key == kBottomKey ? is_dlrm(workload_.policy)
                      : recompute       ? workload_.policy == TextPolicy::hybrid_transformer_fwd_in_bckwd
                                        : transformer || workload_.policy == TextPolicy::micro;
    // An empty list is no demand.
    if (used || (recompute && (key == "checkpoints" ? checkpoints_ : initiates_).empty())) continue;
    warn(fmt::format("'{}' means nothing under {}", key, policy.text), word);
    if (key == kGroupKey) workload_.model_parallel_group = 0;
    if (key == kBottomKey) workload_.last_bottom_layer = 0;
    if (key == "checkpoints") checkpoints_.clear();
    if (key == "checkpoint_initiates") initiates_.clear();
  }
  if (!transformer && workload_.policy != TextPolicy::micro) workload_.plan = {};
}

void Reader::read_layers() {
  const std::vector<TextWord> count = next_line();
  if (count.empty()) {
    throw Error(fmt::format("{}:{}:1", name_, line_ + 1), "the number of layers is missing",
                "it stands in the second line");
  }
  const std::int64_t wanted = integer(count[0], "number of layers", 1, INT32_MAX);
  if (count.size() > 1) {
    throw Error(at(count[1]), fmt::format("'{}' follows the number of layers", shown(count[1].text)),
                "the second line holds that number alone");
  }
  for (std::vector<TextWord> line = next_line(); !line.empty(); line = next_line()) read_layer(line);
  const auto rows = static_cast<std::int64_t>(workload_.layers.size());
  if (rows != wanted) {
    throw Error(at(count[0]),
                fmt::format("{} declared, but {} follow{}",
                            wanted == 1 ? "1 layer is" : fmt::format("{} layers are", wanted), rows,
                            rows == 1 ? "s" : ""),
                rows < wanted ? fmt::format("the file is cut off, or this number should be {}", rows)
                              : fmt::format("ASTRA-sim would read the first {} alone", wanted));
  }
}

void Reader::read_layer(const std::vector<TextWord>& words) {
  TextLayer layer;
  layer.name = words[0].text;
  if (std::any_of(layer.name.begin(), layer.name.end(), is_text_separator))
    throw Error(at(words[0]), "a layer's name holds a control character");
  if (words.size() < kColumns) {
    throw Error(at(words[0]),
                fmt::format("layer '{}' has {} of {} columns", shown(layer.name), words.size(), kColumns),
                std::string(kColumnsHint));
  }
  if (words.size() > kColumns + 1) {
    throw Error(at(words[kColumns + 1]),
                fmt::format("layer '{}' has {} columns", shown(layer.name), words.size()),
                std::string(kColumnsHint));
  }
  constexpr std::int64_t kMostCycles = kEndOfTime.value / 1000 - 1;
  layer.dependence = integer(words[1], "dependence", INT64_MIN);
  layer.forward = read_pass(words, 2, "forward");
  layer.input_gradient = read_pass(words, 5, "input-gradient");
  layer.weight_gradient = read_pass(words, 8, "weight-gradient");
  layer.update_cycles = integer(words[11], "update cycles", 0, kMostCycles);
  read_layer_policy(layer, words);
  // Words are kept for warnings that need the whole file.
  collective_words_.push_back({words[3], words[6], words[9]});
  workload_.layers.push_back(std::move(layer));
}

void Reader::read_layer_policy(TextLayer& layer, const std::vector<TextWord>& words) {
  const bool customized = workload_.policy == TextPolicy::hybrid_customized;
  if (words.size() == kColumns) {
    if (!customized) return;
    throw Error(at(words[0]), fmt::format("layer '{}' has no policy", shown(layer.name)),
                "under HYBRID_CUSTOMIZED the 13th column is one, DATA for instance");
  }
  const TextWord& word = words[kColumns];
  const TextPolicy policy = text_policy(word.text, at(word));
  if (!customized) {
    warn(fmt::format("the policy column of {{n}} layer{{s}} is ignored; under {} ASTRA-sim 1.0 misreads it",
                     name_of(workload_.policy)),
         word);
    return;
  }
  if (!is_layer_policy(policy)) {
    throw Error(at(word), fmt::format("{} is not a policy of a single layer", word.text),
                "DATA, MODEL, HYBRID_DATA_MODEL or HYBRID_MODEL_DATA");
  }
  layer.policy = policy;
}

// Three columns: cycles, collective, bytes.
TextPass Reader::read_pass(const std::vector<TextWord>& words, std::size_t first, std::string_view part) {
  constexpr std::int64_t kMostCycles = kEndOfTime.value / 1000 - 1;
  TextPass pass;
  pass.cycles = integer(words[first], fmt::format("{} cycles", part), 0, kMostCycles);
  const TextWord& word = words[first + 1];
  const auto found = std::find_if(collectives_.begin(), collectives_.end(),
                                  [&](const Collective& known) { return known.word == word.text; });
  if (found == collectives_.end()) {
    if (word.text == "ALLREDUCEALLTOALL") {
      throw Error(at(word), "ALLREDUCEALLTOALL is a word of ASTRA-sim 1.0 that aborts when it is issued",
                  "write ALLREDUCE or ALLTOALL");
    }
    std::vector<std::string> known;
    for (const Collective& collective : collectives_) known.push_back(collective.word);
    throw Error(at(word), fmt::format("'{}' is not a collective", shown(word.text)),
                suggest(shown(word.text), known));
  }
  const TextWord& size = words[first + 2];
  pass.bytes = Bytes(integer(size, fmt::format("{} bytes", part), 0));
  pass.collective = found->kind;
  pass.group = found->group;
  if (!pass.collective && pass.bytes.value > 0) {
    warn("the bytes of {n} pass{es} are ignored: their collective is NONE", size);
    pass.bytes = Bytes(0);
  }
  if (pass.collective && pass.bytes.value == 0) {
    // SimAI's generator writes these for models without experts, for instance.
    if (pass.group == TextGroup::by_policy && workload_.plan == TextPlan{}) {
      throw Error(at(size), fmt::format("{} of 0 bytes, which never ends in ASTRA-sim 1.0", word.text),
                  "write NONE for no collective");
    }
    warn("{n} collective{s} of 0 bytes {are} left out", size);
    pass.collective.reset();
    pass.group = TextGroup::by_policy;
  }
  return pass;
}

void Reader::check_indices() const {
  const auto layers = static_cast<std::int64_t>(workload_.layers.size());
  const auto check = [&](const TextWord& word, std::int64_t layer) {
    if (layer >= layers) {
      throw Error(at(word), fmt::format("layer {} does not exist", layer),
                  fmt::format("the layers are 0 to {}", layers - 1));
    }
  };
  if (is_dlrm(workload_.policy)) check(keys_.find(kBottomKey)->second, workload_.last_bottom_layer);
  std::vector<std::int64_t> checkpoints;
  for (const Index& index : checkpoints_) {
    check(index.word, index.layer);
    checkpoints.push_back(index.layer);
  }
  std::sort(checkpoints.begin(), checkpoints.end());
  // A layer can be recomputed only from a checkpoint in front of it.
  for (const Index& index : initiates_) {
    check(index.word, index.layer);
    const std::int64_t start = recompute_start(checkpoints, index.layer);
    if (start < 0 || start == index.layer) {
      throw Error(at(index.word),
                  start < 0 ? fmt::format("no checkpoint lies before layer {}", index.layer)
                            : fmt::format("layer {} is a checkpoint itself", index.layer),
                  "the layers from the nearest checkpoint up to this one run forward again");
    }
  }
}

// After everything is known: which collectives the policy never issues.
void Reader::note_unused() {
  for (const Index& index : checkpoints_) workload_.checkpoints.push_back(index.layer);
  for (const Index& index : initiates_) workload_.checkpoint_initiates.push_back(index.layer);
  const bool micro = workload_.policy == TextPolicy::micro;
  for (std::size_t i = 0; i < workload_.layers.size(); ++i) {
    const TextLayer& layer = workload_.layers[i];
    if (micro && i > 0) {
      warn("MICRO runs the first layer alone: {n} more {are} ignored", collective_words_[i][2]);
      continue;
    }
    const TextPass* const passes[] = {&layer.forward, &layer.input_gradient, &layer.weight_gradient};
    for (const TextPart part : {TextPart::forward, TextPart::input_gradient, TextPart::weight_gradient}) {
      const auto p = static_cast<std::size_t>(part);
      if (!passes[p]->collective || uses(workload_, i, part)) continue;
      warn(fmt::format("the {} collectives of {{n}} layer{{s}} are never issued under {}", kPartNames[p],
                       layer.policy ? "their policies" : name_of(workload_.policy)),
           collective_words_[i][p]);
    }
  }
}

}  // namespace

TextWorkload read_astra_text(std::span<const char> bytes, const std::string& name,
                             std::vector<std::string>* warnings) {
  Reader reader(std::string_view(bytes.data(), bytes.size()), name);
  TextWorkload workload = reader.read();
  if (warnings) reader.append_warnings(*warnings);
  return workload;
}

bool looks_like_astra_text(std::span<const char> beginning) {
  const std::string_view text(beginning.data(), beginning.size());
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return false;
  const std::string_view word = text.substr(begin, text.find_first_of(kBlank, begin) - begin);
  return std::any_of(kTextPolicies.begin(), kTextPolicies.end(),
                     [&](TextPolicy policy) { return name_of(policy) == word; });
}

}  // namespace armilla
