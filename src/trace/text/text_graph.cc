#include "trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/units_text.h"
#include "trace/text/text_dimensions.h"
#include "trace/text/text_groups.h"

namespace armilla {
namespace {

constexpr std::uint32_t kMostGraphNodes = std::uint32_t{1} << 24;
// SimAI raises forward collectives to this size.
constexpr std::int64_t kSimAiLeast = 4096;  // bytes of a forward collective
constexpr std::string_view kPartNames[] = {"forward", "input gradient", "weight gradient"};

std::size_t index_of(TextPart part) {
  return static_cast<std::size_t>(part);
}

std::string location(const TextWorkload& workload, std::int32_t layer, TextPart part) {
  return fmt::format("layer {} '{}', {}", layer, workload.layers[static_cast<std::size_t>(layer)].name,
                     kPartNames[index_of(part)]);
}

// As ASTRA-sim does: a product of doubles, truncated. Its tutorials' release multiplies in single precision,
// which even a factor of 1 does not leave alone above 2^24.
std::int64_t scaled(std::int64_t value, double scale, bool single, const std::string& where) {
  const double product = single ? static_cast<double>(static_cast<float>(value) * static_cast<float>(scale))
                                : static_cast<double>(value) * scale;
  if (!(product < 0x1p62)) throw Error(where, fmt::format("{} times {} is too much", value, scale));
  return static_cast<std::int64_t>(product);
}

// Plays ASTRA-sim's state machine once and notes what it does.
class Player {
 public:
  Player(const TextWorkload& workload, const TextGraphOptions& options, const TextDimensions& dimensions,
         TextGraph& text)
      : workload_(workload),
        options_(options),
        text_(text),
        program_(text.graph.programs.emplace_back()),
        groups_(workload, options, dimensions, text.graph),
        layers_(static_cast<std::int32_t>(workload.layers.size())),
        calls_(workload.layers.size()),
        names_(workload.layers.size()),
        open_(workload.layers.size()) {
    program_.role = fmt::format("{} rank", name_of(workload.policy));
    text.compute.resize(workload.layers.size());
    for (const TextLayer& layer : workload.layers) text.graph.layers.push_back(layer.name);
    checkpoints_ = workload.checkpoints;
    std::sort(checkpoints_.begin(), checkpoints_.end());
    initiates_.resize(workload.layers.size());
    if (workload.policy == TextPolicy::hybrid_transformer_fwd_in_bckwd) {
      for (const std::int64_t layer : workload.checkpoint_initiates)
        initiates_[static_cast<std::size_t>(layer)] = true;
    }
    step_name_ = text.graph.names.add("step");
    join_name_ = text.graph.names.add("join");
  }

  // Nodes are counted after one pass: all are equally long, so too many passes are refused before they are
  // written.
  void play() {
    play_pass();
    // Every pass is alike.
    if (program_.size() > kMostGraphNodes / options_.passes) refuse_size();
    for (std::int64_t pass = 1; pass < options_.passes; ++pass) play_pass();
    // ASTRA-sim looks at the first layer alone when it has run out of passes.
    if (!open_[0][index_of(TextPart::weight_gradient)].empty()) ask(0, TextPart::weight_gradient, true);
  }

 private:
  enum Name : std::uint8_t { kCompute, kCollective, kUpdate };

  [[noreturn]] void refuse_size() const {
    throw Error("passes",
                fmt::format("the graph of {} has more than {} nodes", typed_count(options_.passes, "pass"),
                            kMostGraphNodes),
                "simulate fewer passes");
  }
  void play_pass();
  void data_pass();
  void model_pass();
  void dlrm_pass();
  void forward(std::int32_t layer);
  std::int32_t recompute(std::int32_t initiator);

  void compute(std::int32_t layer, TextPart part);
  void step(std::int32_t layer);
  void issue(std::int32_t layer, TextPart part, ChunkPreference preference);
  void wait(std::int32_t layer, TextPart part);
  void ask(std::int32_t layer, TextPart part, bool at_end);
  void end_pass() { text_.pass_ends.push_back(front_); }

  Time cycles(std::int64_t count) const;
  std::optional<std::uint32_t> call(std::int32_t layer, TextPart part, ChunkPreference preference);
  void warn_once(const std::string& text) {
    if (std::find(text_.warnings.begin(), text_.warnings.end(), text) == text_.warnings.end())
      text_.warnings.push_back(text);
  }
  std::uint32_t name(std::int32_t layer, TextPart part, Name of);
  std::uint32_t add(NodeKind kind, Lane lane, Phase phase, std::uint32_t name, std::int32_t layer,
                    std::uint64_t payload, std::span<const std::uint32_t> after);

  // A collective that a layer issues in a pass; made when it is issued first.
  struct Call {
    bool known = false;
    std::optional<std::uint32_t> index;  // into Graph::collectives, none: dropped
  };

  const TextWorkload& workload_;
  const TextGraphOptions& options_;
  TextGraph& text_;
  Program& program_;
  TextGroups groups_;
  std::int32_t layers_;
  std::vector<std::array<Call, 3>> calls_;
  std::vector<std::array<std::array<std::uint32_t, 3>, 3>> names_;  // 0: not named yet
  std::vector<std::array<std::vector<std::uint32_t>, 3>> open_;     // issued and not waited for
  std::vector<std::uint32_t> front_;                                // what the next thing to do follows
  std::uint32_t step_name_ = 0, join_name_ = 0;
  std::vector<std::int64_t> checkpoints_;  // sorted
  std::vector<bool> initiates_;            // per layer
  bool skips_layers_ = false;
};

// Exact where a cycle is a whole number of picoseconds (1 GHz, 2 GHz ...); else rounded once per duration,
// not once per cycle.
Time Player::cycles(std::int64_t count) const {
  const double period = 1e12 / options_.frequency;
  const auto whole = static_cast<std::int64_t>(period);
  if (static_cast<double>(whole) == period) return Time(checked_multiply(count, whole, "frequency"));
  const double time = static_cast<double>(count) * period;
  if (!(time < static_cast<double>(kEndOfTime.value)))
    throw Error("frequency", fmt::format("{} cycles at {} Hz take absurdly long", count, options_.frequency));
  return Time(std::llround(time));
}

std::uint32_t Player::add(NodeKind kind, Lane lane, Phase phase, std::uint32_t name, std::int32_t layer,
                          std::uint64_t payload, std::span<const std::uint32_t> after) {
  if (program_.size() >= kMostGraphNodes) refuse_size();
  const std::uint32_t node = program_.add(kind, phase, name, layer, payload, after);
  program_.lane.back() = lane;
  return node;
}

std::uint32_t Player::name(std::int32_t layer, TextPart part, Name of) {
  std::uint32_t& known = names_[static_cast<std::size_t>(layer)][index_of(part)][of];
  if (known == 0) {
    const TextLayer& row = workload_.layers[static_cast<std::size_t>(layer)];
    const std::string_view kind = of == kCompute ? "" : of == kUpdate ? " update" : " ";
    known = text_.graph.names.add(
        fmt::format("{} {}{}{}", row.name, kPartNames[index_of(part)], kind,
                    of == kCollective ? name_of(*pass_of(row, part).collective) : std::string_view()));
  }
  return known;
}

void Player::compute(std::int32_t layer, TextPart part) {
  constexpr Phase kPhases[] = {Phase::forward, Phase::input_gradient, Phase::weight_gradient};
  const std::string where = location(workload_, layer, part);
  const TextPass& pass = pass_of(workload_.layers[static_cast<std::size_t>(layer)], part);
  const Time time = cycles(scaled(pass.cycles, options_.compute_scale, options_.single_precision, where));
  if (time >= kEndOfTime) throw Error(where, "takes absurdly long");
  Time& sum = text_.compute[static_cast<std::size_t>(layer)][index_of(part)];
  sum = Time(checked_add(sum.value, time.value, where));
  // A computation of no cycles is none: ASTRA-sim goes on at once.
  if (time.value == 0) return;
  front_ = {add(NodeKind::delay, Lane::device, kPhases[index_of(part)], name(layer, part, kCompute), layer,
                static_cast<std::uint64_t>(time.value), front_)};
}

// ASTRA-sim's workload layer is called again one cycle after each step.
void Player::step(std::int32_t layer) {
  if (!options_.astra1_steps) return;
  front_ = {add(NodeKind::delay, Lane::none, Phase::other, step_name_, layer,
                static_cast<std::uint64_t>(cycles(1).value), front_)};
}

std::optional<std::uint32_t> Player::call(std::int32_t layer, TextPart part, ChunkPreference preference) {
  const TextPass& pass = pass_of(workload_.layers[static_cast<std::size_t>(layer)], part);
  if (!pass.collective) return std::nullopt;
  // ASTRA-sim 1.0's layers know no broadcast and no suffixes: such words count as NONE, with a warning.
  if (*pass.collective == CollectiveKind::broadcast ||
      (!options_.simai && pass.group != TextGroup::by_policy)) {
    warn_once(fmt::format("{}{} is NONE to {}", text_word(pass.collective), text_suffix(pass.group),
                          options_.simai ? "SimAI" : "ASTRA-sim 1.0"));
    return std::nullopt;
  }
  const std::optional<std::uint32_t> family = groups_.family(layer, part);
  if (!family) return std::nullopt;
  const std::string where = location(workload_, layer, part);
  std::int64_t bytes = scaled(pass.bytes.value, options_.comm_scale, options_.single_precision, where);
  if (options_.simai && part == TextPart::forward) bytes = std::max(bytes, kSimAiLeast);
  if (bytes == 0) {
    throw Error(where,
                fmt::format("{} of {} bytes times {} is nothing", text_word(pass.collective),
                            pass.bytes.value, options_.comm_scale),
                "a collective of no bytes never ends in ASTRA-sim 1.0");
  }
  // The file gives the shard of an all-gather, as ASTRA-sim has it; the graph counts the whole.
  if (*pass.collective == CollectiveKind::all_gather)
    bytes = checked_multiply(bytes, groups_.size(*family), where);
  CollectiveCall made;
  made.kind = *pass.collective;
  made.bytes = Bytes(bytes);
  made.family = *family;
  made.preference = preference;
  text_.graph.collectives.push_back(made);
  return static_cast<std::uint32_t>(text_.graph.collectives.size() - 1);
}

// One call serves every pass. The layer's update follows the collective and occupies nothing.
void Player::issue(std::int32_t layer, TextPart part, ChunkPreference preference) {
  Call& known = calls_[static_cast<std::size_t>(layer)][index_of(part)];
  if (!known.known) known = {true, call(layer, part, preference)};
  if (!known.index) return;
  const Phase phase = part == TextPart::forward          ? Phase::forward
                      : part == TextPart::input_gradient ? Phase::input_gradient
                                                         : Phase::gradient_exchange;
  const std::uint32_t node = add(NodeKind::collective, Lane::communication, phase,
                                 name(layer, part, kCollective), layer, *known.index, front_);
  std::uint32_t done = node;
  const std::int64_t update = workload_.layers[static_cast<std::size_t>(layer)].update_cycles;
  if (update > 0) {
    done = add(NodeKind::delay, Lane::none, Phase::other, name(layer, part, kUpdate), layer,
               static_cast<std::uint64_t>(cycles(update).value), std::span(&node, 1));
  }
  open_[static_cast<std::size_t>(layer)][index_of(part)].push_back(
      static_cast<std::uint32_t>(text_.collectives.size()));
  text_.collectives.push_back({layer, part, node, done});
}

void Player::ask(std::int32_t layer, TextPart part, bool at_end) {
  std::vector<std::uint32_t>& open = open_[static_cast<std::size_t>(layer)][index_of(part)];
  text_.waits.push_back({layer, part, front_, std::exchange(open, {}), at_end});
}

// Nothing is open when an earlier wait has waited for it, or it was dropped.
void Player::wait(std::int32_t layer, TextPart part) {
  if (open_[static_cast<std::size_t>(layer)][index_of(part)].empty()) return;
  ask(layer, part, false);
  const std::vector<std::uint32_t>& collectives = text_.waits.back().collectives;
  // What was issued just now follows all of the front.
  // If the collective depends on all of the front, waiting for it implies the front: it replaces it.
  const auto after = program_.dependences(text_.collectives[collectives.back()].node);
  if (std::equal(after.begin(), after.end(), front_.begin(), front_.end())) front_.clear();
  for (const std::uint32_t collective : collectives) front_.push_back(text_.collectives[collective].done);
  // Without steps and computations the front would grow with every wait.
  constexpr std::size_t kWide = 8;
  if (front_.size() > kWide)
    front_ = {add(NodeKind::delay, Lane::none, Phase::other, join_name_, layer, 0, front_)};
}

// The order is the state machine's own: last iteration's weights, computation, collective, wait.
void Player::forward(std::int32_t layer) {
  wait(layer, TextPart::weight_gradient);
  compute(layer, TextPart::forward);
  issue(layer, TextPart::forward, ChunkPreference::policy);
  wait(layer, TextPart::forward);
  step(layer);
}

// Weights first, then the input gradient: the all-reduce is under way while the backward pass goes on. The
// first layer has no input gradient.
void Player::data_pass() {
  for (std::int32_t i = 0; i < layers_; ++i) {
    wait(i, TextPart::weight_gradient);
    compute(i, TextPart::forward);
    step(i);
  }
  for (std::int32_t i = layers_ - 1; i >= 0; --i) {
    compute(i, TextPart::weight_gradient);
    issue(i, TextPart::weight_gradient, ChunkPreference::policy);
    if (i == 0) end_pass();
    step(i);
    if (i == 0) break;
    compute(i, TextPart::input_gradient);
    step(i);
  }
}

// Runs forward passes again and returns the layer at which the backward pass goes on: like ASTRA-sim, the
// first initiator after the checkpoint, whether or not that is the one that asked.
std::int32_t Player::recompute(std::int32_t initiator) {
  step(initiator);
  const auto start = static_cast<std::int32_t>(recompute_start(checkpoints_, initiator));
  // The next initiator behind the checkpoint; the one that asked is one, so the search ends.
  std::int32_t end = start + 1;
  while (!initiates_[static_cast<std::size_t>(end)]) ++end;
  if (end < initiator && !skips_layers_) {
    skips_layers_ = true;
    text_.warnings.push_back(
        fmt::format("layer {} initiates a recompute from checkpoint {}, but layer {} between them initiates "
                    "one too: as in ASTRA-sim 1.0, layers {} to {} have no backward pass",
                    initiator, start, end, end + 1, initiator));
  }
  for (std::int32_t i = start; i < end; ++i) forward(i);
  return end;
}

// MODEL, the hybrid policies and the transformers.
void Player::model_pass() {
  const bool transformer = is_transformer(workload_.policy);
  const bool blocking = transformer && (options_.blocking_input_gradient || options_.simai);
  for (std::int32_t i = 0; i < layers_; ++i) forward(i);
  for (std::int32_t i = layers_ - 1; i >= 0; --i) {
    if (initiates_[static_cast<std::size_t>(i)]) i = recompute(i);
    compute(i, TextPart::input_gradient);
    // ASTRA-sim issues none for the first layer except in transformers.
    if (i > 0 || transformer) issue(i, TextPart::input_gradient, ChunkPreference::lifo);
    if (blocking) wait(i, TextPart::input_gradient);
    step(i);
    compute(i, TextPart::weight_gradient);
    // Under MODEL nobody else holds the weights.
    if (workload_.policy != TextPolicy::model) issue(i, TextPart::weight_gradient, ChunkPreference::fifo);
    // After the weight gradient, so that the exchange hides behind it, unless it blocked before.
    wait(i, TextPart::input_gradient);
    if (i == 0) end_pass();
    step(i);
  }
}

// The embedding (layer 0) exchanges its rows for the bottom MLP's layers; the results meet behind the last
// bottom layer, where the wait is. The gradients go back in the same way, with the highest priority.
void Player::dlrm_pass() {
  const std::int64_t bottom = workload_.last_bottom_layer;
  for (std::int32_t i = 0; i < layers_; ++i) {
    wait(i, TextPart::weight_gradient);
    compute(i, TextPart::forward);
    const TextLayer& layer = workload_.layers[static_cast<std::size_t>(i)];
    if (layer.forward.collective == CollectiveKind::all_to_all) {
      issue(i, TextPart::forward, ChunkPreference::highest);
    } else if (i == bottom) {
      wait(0, TextPart::forward);
    }
    step(i);
  }
  for (std::int32_t i = layers_ - 1; i >= 0; --i) {
    compute(i, TextPart::weight_gradient);
    issue(i, TextPart::weight_gradient, ChunkPreference::policy);
    if (workload_.policy == TextPolicy::hybrid_dlrm) wait(i, TextPart::input_gradient);
    if (i == 0) end_pass();
    step(i);
    if (i == 0) break;
    compute(i, TextPart::input_gradient);
    if (i == bottom + 1) issue(0, TextPart::input_gradient, ChunkPreference::highest);
    step(i);
  }
}

void Player::play_pass() {
  switch (workload_.policy) {
    case TextPolicy::micro:
      return issue(0, TextPart::weight_gradient, ChunkPreference::policy);
    case TextPolicy::data:
      return data_pass();
    case TextPolicy::hybrid_dlrm:
    case TextPolicy::hybrid_dlrm_enhanced:
      return dlrm_pass();
    case TextPolicy::distributed_inference:
      for (std::int32_t i = 0; i < layers_; ++i) forward(i);
      return;
    case TextPolicy::model:
    case TextPolicy::hybrid_data_model:
    case TextPolicy::hybrid_model_data:
    case TextPolicy::hybrid_customized:
    case TextPolicy::hybrid_transformer:
    case TextPolicy::hybrid_transformer_fwd_in_bckwd:
      return model_pass();
  }
}

void check_options(const TextWorkload& workload, const TextGraphOptions& options) {
  if (options.passes < 1) throw Error("passes", fmt::format("{} passes", options.passes), "at least 1");
  for (const auto& [name, value] :
       {std::pair("compute scale", options.compute_scale), std::pair("comm scale", options.comm_scale)}) {
    if (!(value >= 0 && std::isfinite(value)))
      throw Error(name, fmt::format("{}", value), "a number of at least 0");
  }
  if (!(options.frequency > 0 && options.frequency <= 1e12))
    throw Error("frequency", fmt::format("{} Hz", options.frequency), "above 0 and at most 1 THz");
  // Without it ASTRA-sim would run something else silently.
  if (is_transformer(workload.policy) && model_parallel_group(workload, options) < 1) {
    throw Error("model_parallel_NPU_group",
                fmt::format("{} needs the size of its model-parallel groups", name_of(workload.policy)),
                "write 'model_parallel_NPU_group: N' behind the policy; 1 is pure data parallelism");
  }
}

}  // namespace

TextGraph text_graph(const TextWorkload& workload, const TextGraphOptions& options) {
  validate_text_workload(workload);
  check_options(workload, options);
  const TextDimensions dimensions = text_dimensions(
      options.dimensions, is_transformer(workload.policy) ? model_parallel_group(workload, options) : 0);
  TextGraph text;
  text.split_dimension = dimensions.split_dimension;
  text.split_first = dimensions.split_first;
  text.graph.ranks = dimensions.ranks;
  text.graph.program_of.assign(static_cast<std::size_t>(dimensions.ranks), 0);
  Player(workload, options, dimensions, text).play();
  return text;
}

// The split dimension counts as two, the model-parallel part first.
std::vector<std::int64_t> logical_dimensions(const std::vector<std::int64_t>& dimensions,
                                             const TextGraph& text) {
  std::vector<std::int64_t> logical = dimensions;
  if (text.split_dimension < 0) return logical;
  const auto at = logical.begin() + text.split_dimension;
  *at /= text.split_first;
  logical.insert(at, text.split_first);
  return logical;
}

}  // namespace armilla
