#include "read/described/described_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "base/units_text.h"
#include "read/described/described_blocks.h"

namespace armilla {
namespace {

// Tokens per sample, as asked for or as described.
std::int64_t chosen_sequence(const ModelDescription& d, std::int64_t asked) {
  // 0 stands for "not asked for". A sequence can be changed where nothing but the amount of work depends on
  // it: relative and rotary positions have no table that ends.
  const std::string where = fmt::format("a sequence of {}", asked);
  if (asked == 0) return d.sequence;
  if (asked < 0 || asked > INT32_MAX) throw Error(where, "a sequence has 1 to 2147483647 tokens");
  if (d.family == Family::dlrm)
    throw Error(where, fmt::format("the model {} has no sequence", d.name), "leave model.sequence out");
  if (d.family == Family::vit && asked != d.sequence)
    throw Error(where,
                fmt::format("the sequence of {} follows from image {} and patch {}: {}", d.name, d.image,
                            d.patch, d.sequence),
                "leave model.sequence out");
  if (d.positions == Positions::learned && asked > d.max_positions)
    throw Error(
        where,
        fmt::format("is longer than the {} of {}", typed_count(d.max_positions, "learned position"), d.name),
        fmt::format("use at most {}, or a description with more max_positions", d.max_positions));
  return asked;
}

std::int64_t chosen_batch(const ModelOptions& options) {
  const std::int64_t batch = options.batch.value_or(1);
  if (batch < 1) throw Error(fmt::format("--batch {}", batch), "a batch must be at least 1");
  return batch;
}

void refuse_dimensions(const ModelOptions& options) {
  if (options.dimensions.empty()) return;
  const auto& [name, value] = *options.dimensions.begin();
  throw Error(fmt::format("--dim {}={}", name, value), "a model by description has no symbolic dimensions",
              "leave --dim out; batch and sequence have options of their own");
}

ModelFacts facts_of(const ModelDescription& d, std::int64_t sequence) {
  ModelFacts facts;
  facts.family = name_of(d.family);
  // T5's encoder and decoder have layers of their own; facts add them up.
  facts.layers = d.layers + d.decoder_layers;
  facts.hidden = d.hidden;
  facts.heads = d.heads;
  facts.kv_heads = d.kv_heads;
  bool dense = d.decoder_layers > 0;
  for (std::int64_t i = 0; i < d.layers && !dense; ++i) dense = !has_experts(d, i);
  facts.feed_forward = dense ? d.feed_forward : 0;
  facts.expert_feed_forward = d.experts.feed_forward;
  facts.shared_feed_forward = d.experts.shared_feed_forward;
  facts.vocabulary = d.vocabulary;
  facts.sequence = sequence;
  facts.experts = d.experts.count;
  facts.active_experts = d.experts.active;
  facts.expert_groups = d.experts.groups;
  facts.active_expert_groups = d.experts.active_groups;
  facts.dispatch_dtype = d.experts.dispatch;
  if (d.family == Family::dlrm) {
    // Its tables are what expert parallelism divides, and a sample looks into each.
    facts.experts = facts.active_experts = static_cast<std::int64_t>(d.recommendation.tables.size());
  }
  return facts;
}

// The decoder's part keeps its share of the sequence.
std::int64_t decoder_sequence(const ModelDescription& d, std::int64_t sequence) {
  if (sequence == d.sequence) return d.decoder_sequence;
  const std::int64_t scaled = checked_multiply(sequence, d.decoder_sequence, d.place("decoder_sequence"));
  return std::max<std::int64_t>(1, ceil_divide(scaled, d.sequence));
}

std::string_view text_of(std::span<const char> bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace

namespace {

// The last parts of the names of projections that have an adapter.
std::set<std::string> adapted(const Model& model) {
  constexpr std::string_view kAdapter = ".lora_a";
  std::set<std::string> names;
  for (const Operator& op : model.operators) {
    if (!op.name.ends_with(kAdapter)) continue;
    const std::string projection = op.name.substr(0, op.name.size() - kAdapter.size());
    names.insert(projection.substr(projection.rfind('.') + 1));
  }
  return names;
}

Model build_model(const ModelDescription& d, std::int64_t batch, std::int64_t sequence) {
  DescribedBuilder builder(d, batch, sequence);
  switch (d.family) {
    case Family::gpt:
    case Family::llama:
    case Family::mixtral:
    case Family::deepseek:
    case Family::hybrid:
      build_decoder(builder, d);
      break;
    case Family::bert:
      build_bert(builder, d);
      break;
    case Family::t5:
      build_t5(builder, d, decoder_sequence(d, sequence));
      break;
    case Family::vit:
      build_vit(builder, d);
      break;
    case Family::dlrm:
      build_dlrm(builder, d);
      break;
  }
  Model model = builder.take();
  model.name = d.name;
  model.source = d.name;
  model.facts = facts_of(d, sequence);
  model.notes = d.notes;
  if (d.window > sequence)
    model.notes.push_back(fmt::format(
        "window {} is longer than the sequence of {}: no layer is the cheaper for it", d.window, sequence));
  // The layers of reports and plans follow from operators and blocks; validation catches mistakes of the
  // builders before anything is computed with them.
  derive_layers(model);
  validate_model(model);
  return model;
}

void check_targets(const Model& model, const ModelDescription& d) {
  const std::set<std::string> found = adapted(model);
  for (const std::string& target : d.adapters.targets) {
    if (found.contains(target)) continue;
    ModelDescription every = d;
    every.adapters.targets.clear();
    throw Error(d.place("adapters.targets"),
                fmt::format("the model {} has no projection called '{:.60}'", d.name, target),
                fmt::format("it has {}", fmt::join(adapted(build_model(every, 1, d.sequence)), ", ")));
  }
}

}  // namespace

Model build_described_model(const ModelDescription& description, const ModelOptions& options) {
  refuse_dimensions(options);
  ModelDescription d = description;
  if (options.layers > 0) {
    if (d.family == Family::dlrm)
      throw Error(fmt::format("{} layers", options.layers), fmt::format("the model {} has none", d.name),
                  "leave the number out");
    d.layers = options.layers;
  }
  if (options.lora_rank > 0) d.adapters.rank = options.lora_rank;
  if (d.adapters.rank > 0 && d.family == Family::dlrm)
    throw Error(d.place("adapters"), fmt::format("the model {} has no projections to adapt", d.name),
                "leave the adapters out");
  const std::int64_t sequence = chosen_sequence(d, options.sequence), batch = chosen_batch(options);
  Model model;
  try {
    // Sizes that overflow are found operator by operator, under names the user never gave. A second build
    // with the description's own batch and sequence tells whose fault it is: if that fails as well, its error
    // stands.
    model = build_model(d, batch, sequence);
  } catch (const Error& error) {
    build_model(d, 1, d.sequence);  // throws when it is not for batch and sequence
    throw Error(
        d.name,
        fmt::format("a micro-batch of {}{} is too much to be computed with ({})", counted(batch, "sample"),
                    sequence > 0 ? " of " + counted(sequence, "token") : "", error.message),
        batch == 1      ? "give a shorter sequence"
        : sequence == 0 ? "give smaller micro-batches"
                        : "give smaller micro-batches or a shorter sequence");
  }
  if (options.sequence == 0 && d.sequence < d.longest_sequence)
    model.notes.insert(model.notes.begin(),
                       fmt::format("samples of {}; the configuration allows {}",
                                   typed_count(d.sequence, "token"), d.longest_sequence));
  check_targets(model, d);
  return model;
}

Model read_described_yaml(std::span<const char> bytes, const std::string& name, const ModelOptions& options) {
  Model model = build_described_model(read_model_description(Config::parse(text_of(bytes), name)), options);
  model.source = name;
  return model;
}

}  // namespace armilla
