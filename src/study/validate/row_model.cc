#include "study/validate/row_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "read/read.h"
#include "zoo/embedded.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

std::string squashed(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

// The longest of the zoo's names of models by description that the row's name begins with.
const ZooModel* find_namesake(std::string_view name) {
  const ZooModel* best = nullptr;
  for (const ZooModel& model : zoo_models()) {
    if (!model.file.ends_with(".yaml") || !begins_with_name(name, model.name)) continue;
    if (best == nullptr || model.name.size() > best->name.size()) best = &model;
  }
  return best;
}

// What the columns of a row cannot say.
bool has_experts(const ZooModel& model) {
  const auto file = find_embedded(model.file);
  return file && std::string_view(file->bytes.data(), file->bytes.size()).find("\nexperts:") !=
                     std::string_view::npos;
}

struct MlpShape {
  bool gated = false, tied = false;
};

double parameters_of(const MeasuredPlan& row, MlpShape shape) {
  const auto hidden = static_cast<double>(row.hidden);
  const double kv = hidden * static_cast<double>(row.kv_heads) / static_cast<double>(row.heads);
  const double attention = 2 * hidden * hidden + 2 * hidden * kv;
  const double mlp = (shape.gated ? 3 : 2) * hidden * static_cast<double>(row.feed_forward);
  const double tables = (shape.tied ? 1 : 2) * hidden * static_cast<double>(row.vocabulary);
  return static_cast<double>(row.layers) * (attention + mlp) + tables;
}

MlpShape nearest_shape(const MeasuredPlan& row) {
  if (row.parameters == 0) {
    const bool gated = row.feed_forward != 4 * row.hidden;
    return {gated, !gated};
  }
  // The usual two first; figures are rounded.
  constexpr double kRounding = 0.01;
  MlpShape nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const MlpShape shape : {MlpShape{false, true}, {true, false}, {false, false}, {true, true}}) {
    const double apart = std::abs(parameters_of(row, shape) / row.parameters - 1);
    const bool is_usual = shape.gated != shape.tied;
    if (apart + (is_usual ? 0 : kRounding) < least) {
      least = apart;
      nearest = shape;
    }
  }
  return nearest;
}

std::string description_of(const MeasuredPlan& row) {
  constexpr std::int64_t kPadding = 128;
  const MlpShape shape = nearest_shape(row);
  const std::int64_t unit = kPadding * row.tensor;
  const std::int64_t padded = (row.vocabulary + unit - 1) / unit * unit;
  return fmt::format(
      "name: {}\nfamily: {}\nlayers: {}\nhidden: {}\nheads: {}\nkv_heads: {}\nfeed_forward: {}\n"
      "vocabulary: {}\npadded_vocabulary: {}\nsequence: {}\ntied_embeddings: {}\n",
      squashed(row.model).empty() ? "model" : squashed(row.model), shape.gated ? "llama" : "gpt", row.layers,
      row.hidden, row.heads, row.kv_heads, row.feed_forward, row.vocabulary, padded, row.sequence,
      shape.tied);
}

}  // namespace

bool names(const MeasuredPlan& row, std::string_view framework) {
  return lower_case(row.schedule + ' ' + row.source + ' ' + row.notes).find(framework) != std::string::npos;
}

bool is_early_megatron(const MeasuredPlan& row) {
  return row.precision == "fp16" || names(row, "deepspeed");
}

bool is_megatron(const MeasuredPlan& row) {
  return names(row, "megatron") || names(row, "nemo/");
}

bool is_plain_pytorch(const MeasuredPlan& row) {
  constexpr std::array<std::string_view, 5> kNames = {"pytorch fsdp", "nanotron", "torchtitan", "llm-foundry",
                                                      "kempnerforge"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) { return names(row, name); });
}

std::int64_t number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  std::int64_t number = 0;
  if (at == std::string_view::npos) return 0;
  for (const char c : text.substr(at + word.size())) {
    if (!std::isdigit(static_cast<unsigned char>(c))) break;
    number = number * 10 + (c - '0');
  }
  return number;
}

bool begins_with_name(std::string_view name, std::string_view known) {
  return squashed(name).starts_with(squashed(known));
}

ModelSource model_of(const MeasuredPlan& given, const std::string& where) {
  MeasuredPlan row = given;
  const ZooModel* namesake = find_namesake(row.model);
  ModelSource source;
  source.sequence = row.sequence;
  if (namesake != nullptr && (has_experts(*namesake) || row.hidden == 0)) {
    source.name = namesake->name;
    source.layers = row.layers;
    return source;
  }
  if (row.layers == 0 || row.hidden == 0 || row.heads == 0 || row.sequence == 0)
    throw Error(where, fmt::format("model '{:.60}' is neither described nor known", row.model),
                "give layers, hidden, heads and seq_len, or a name of the zoo (armilla list models)");
  if (row.expert > 1)
    throw Error(where, fmt::format("experts of model '{:.60}' are not known", row.model),
                "models with experts must be in the zoo (armilla list models)");
  if (row.hidden % row.heads != 0)
    throw Error(where, fmt::format("{} heads do not divide hidden {}", row.heads, row.hidden));
  constexpr std::int64_t kUsualVocabulary = 50257;
  if (row.kv_heads == 0) row.kv_heads = row.heads;
  if (row.feed_forward == 0) row.feed_forward = 4 * row.hidden;
  if (row.vocabulary == 0) row.vocabulary = kUsualVocabulary;
  source.name = row.model.empty() ? "model" : row.model;
  source.text = description_of(row);
  if (is_early_megatron(row)) {
    source.text += "attention: unfused\n";
  } else if (is_plain_pytorch(row)) {
    source.text += "attention: flash-2\n";
  }
  return source;
}

}  // namespace armilla
