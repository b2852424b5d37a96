#include "study/validate/row_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <regex>
#include <tuple>
#include <vector>

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

// The longest of the zoo's names of models by description that the row's name begins with. Llama 3.1 and 3.3
// have the shapes of Llama 3.
const ZooModel* find_namesake(std::string name) {
  static const std::regex kRelease(R"(^(llama[ _-]?3)\.[13](?!\d))", std::regex::icase);
  name = std::regex_replace(name, kRelease, "$1");
  const ZooModel* best = nullptr;
  for (const ZooModel& model : zoo_models()) {
    if (!model.file.ends_with(".yaml") || !begins_with_name(name, model.name)) continue;
    if (best == nullptr || model.name.size() > best->name.size()) best = &model;
  }
  return best;
}

bool is_of_zoo(const std::string& name) {
  return std::ranges::find(zoo_models(), lower_case(name), &ZooModel::name) != zoo_models().end();
}

// What the columns of a row cannot say.
bool has_experts(const ZooModel& model) {
  const auto file = find_embedded(model.file);
  return file && std::string_view(file->bytes.data(), file->bytes.size()).find("\nexperts:") !=
                     std::string_view::npos;
}

std::int64_t count_or_zero(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::stoll(text) : 0;
}

// What the notes say of it: "head_dim 256"; 0: hidden / heads.
std::int64_t head_size_of(const MeasuredPlan& row) {
  const std::string notes = lower_case(row.notes);
  for (const std::string_view word : {"head_dim ", "head_dim=", "head_dim: ", "head dim ", "head size "}) {
    if (const std::int64_t size = number_after(notes, word); size > 0) return size;
  }
  return count_or_zero(argument(row, "kv-channels"));
}

// The first ones: "([0]*3+[1]*12)" has three.
std::int64_t layers_without_experts(const std::string& pattern) {
  static const std::regex kFirst(R"(\(?\[0\]\*(\d{1,4})\+.*)");
  std::smatch first;
  return std::regex_match(pattern, first, kFirst) ? std::stoll(first[1]) : 0;
}

struct ToldExperts {
  std::int64_t count = 0, active = 1;
};

// As Megatron-LM's arguments, or in words: "16 experts top-2".
ToldExperts told_experts(const MeasuredPlan& row) {
  if (const std::int64_t count = count_or_zero(argument(row, "num-experts")); count > 0)
    return {count, std::max<std::int64_t>(1, count_or_zero(argument(row, "moe-router-topk")))};
  static const std::regex kWords(R"((\d{1,4}) experts,? top-(\d{1,3}))", std::regex::icase);
  std::smatch told;
  if (!std::regex_search(row.notes, told, kWords)) return {};
  return {std::stoll(told[1]), std::max<std::int64_t>(1, std::stoll(told[2]))};
}

// What the arguments say about the model, beyond the columns.
std::string described_by_arguments(const MeasuredPlan& row) {
  std::string text;
  if (const auto [experts, active] = told_experts(row); experts > 0) {
    const std::int64_t own = count_or_zero(argument(row, "moe-ffn-hidden-size"));
    text += fmt::format(
        "experts: {{count: {}, active: {}, feed_forward: {}, shared_feed_forward: {}, "
        "dense_first: {}}}\n",
        experts, active, own > 0 ? own : row.feed_forward,
        count_or_zero(argument(row, "moe-shared-expert-intermediate-size")),
        layers_without_experts(argument(row, "moe-layer-freq")));
  }
  const auto is = [&](std::string_view name, std::string_view value) {
    return lower_case(argument(row, name)) == value;
  };
  const auto count = [&](std::string_view name, std::int64_t usual) {
    const std::int64_t told = count_or_zero(argument(row, name));
    return told > 0 ? told : usual;
  };
  // Defaults are those of Megatron's MLATransformerConfig. Models with it have no dropout.
  if (is("multi-latent-attention", "true")) {
    text += fmt::format(
        "latent_attention: {{query_rank: {}, key_value_rank: {}, nope_head_dim: {}, rope_head_dim: {}, "
        "value_head_dim: {}}}\ndropout: false\n",
        count("q-lora-rank", 512), count("kv-lora-rank", 512), count("qk-head-dim", 128),
        count("qk-pos-emb-head-dim", 64), count("v-head-dim", 128));
  } else {
    text += fmt::format("kv_heads: {}\n", row.kv_heads);
    if (const std::int64_t size = head_size_of(row); size > 0) text += fmt::format("head_dim: {}\n", size);
  }
  if (is("position-embedding-type", "rope")) text += "positions: rotary\n";
  if (const std::int64_t extra = count("mtp-num-layers", 0); extra > 0)
    text += fmt::format("multi_token_prediction: {}\n", extra);
  if (is("disable-bias-linear", "true")) text += "bias: false\n";
  if (is("normalization", "rmsnorm")) text += "norm: rmsnorm\n";
  if (is("swiglu", "true")) text += "activation: swiglu\n";
  // The layers that are not Transformer Engine's have no other (DotProductAttention).
  if (is("attention-backend", "unfused") || (is("attention-backend", "") && is("transformer-impl", "local")))
    text += "attention: unfused\n";
  return text;
}

struct MlpShape {
  bool gated = false, tied = false;
};

double parameters_of(const MeasuredPlan& row, MlpShape shape) {
  const auto hidden = static_cast<double>(row.hidden), heads = static_cast<double>(row.heads);
  const std::int64_t told = head_size_of(row);
  const double head = told > 0 ? static_cast<double>(told) : hidden / heads;
  const double attention = 2 * hidden * head * (heads + static_cast<double>(row.kv_heads));
  const double mlp = (shape.gated ? 3 : 2) * hidden * static_cast<double>(row.feed_forward);
  const double tables = (shape.tied ? 1 : 2) * hidden * static_cast<double>(row.vocabulary);
  return static_cast<double>(row.layers) * (attention + mlp) + tables;
}

MlpShape nearest_shape(const MeasuredPlan& row) {
  if (row.parameters == 0 || told_experts(row).count > 0) {
    const bool gated = row.feed_forward != 4 * row.hidden;
    return {gated, !gated};
  }
  // The usual two first; figures are rounded. Of the others the gated one: small models of today tie.
  constexpr double kRounding = 0.01;
  MlpShape nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const MlpShape shape : {MlpShape{false, true}, {true, false}, {true, true}, {false, false}}) {
    const double apart = std::abs(parameters_of(row, shape) / row.parameters - 1);
    const bool is_usual = shape.gated != shape.tied;
    if (apart + (is_usual ? 0 : kRounding) < least) {
      least = apart;
      nearest = shape;
    }
  }
  return nearest;
}

// Columns that make another model than the one whose parameters were counted: experts, most of all,
// have none.
void check_parameters(const MeasuredPlan& row, const std::string& where) {
  constexpr double kMostApart = 0.5, kBillion = 1e9;
  if (row.parameters == 0 || told_experts(row).count > 0) return;
  const double made = parameters_of(row, nearest_shape(row));
  if (std::abs(made / row.parameters - 1) <= kMostApart) return;
  throw Error(where,
              fmt::format("layers, hidden and the like make {:.3g} billion parameters, params_B is {:.3g}",
                          made / kBillion, row.parameters / kBillion),
              "models with experts must be in the zoo (armilla list models)");
}

std::string description_of(const MeasuredPlan& row) {
  constexpr std::int64_t kPadding = 128;
  MlpShape shape = nearest_shape(row);
  if (lower_case(argument(row, "untie-embeddings-and-output-weights")) == "true") shape.tied = false;
  const std::int64_t told = count_or_zero(argument(row, "make-vocab-size-divisible-by"));
  const std::int64_t unit = (told > 0 ? told : kPadding) * row.tensor;
  const std::int64_t padded = (row.vocabulary + unit - 1) / unit * unit;
  return fmt::format(
             "name: {}\nfamily: {}\nlayers: {}\nhidden: {}\nheads: {}\nfeed_forward: {}\n"
             "vocabulary: {}\npadded_vocabulary: {}\nsequence: {}\ntied_embeddings: {}\n",
             squashed(row.model).empty() ? "model" : squashed(row.model), shape.gated ? "llama" : "gpt",
             row.layers, row.hidden, row.heads, row.feed_forward, row.vocabulary, padded, row.sequence,
             shape.tied) +
         described_by_arguments(row);
}

}  // namespace

std::string argument(const MeasuredPlan& row, std::string_view name) {
  const std::string key = fmt::format("{}=", name);
  const std::string_view notes = row.notes;
  for (std::size_t at = notes.find(key); at != std::string::npos; at = notes.find(key, at + 1)) {
    const char before = at == 0 ? ' ' : notes[at - 1];
    // Written as on a command line, too: "--num-experts=8".
    const bool is_flag = at >= 2 && notes.substr(at - 2, 2) == "--";
    if (before != ' ' && before != ';' && !is_flag) continue;
    const std::size_t first = at + key.size();
    return std::string(trimmed(notes.substr(first, notes.find(';', first) - first)));
  }
  return {};
}

bool cites(const MeasuredPlan& row, std::initializer_list<std::string_view> words) {
  const std::string source = lower_case(row.source);
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return source.find(word) != std::string::npos; });
}

std::optional<DType> precision_named(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, DType>, 16> kWords = {{{"fp4", DType::fp4},
                                                                          {"fp8", DType::fp8},
                                                                          {"float8", DType::fp8},
                                                                          {"bf16", DType::bf16},
                                                                          {"bfloat", DType::bf16},
                                                                          {"fp16", DType::fp16},
                                                                          {"float16", DType::fp16},
                                                                          {"half", DType::fp16},
                                                                          {"f16", DType::fp16},
                                                                          {"tf32", DType::tf32},
                                                                          {"fp32", DType::fp32},
                                                                          {"float32", DType::fp32},
                                                                          {"f32", DType::fp32},
                                                                          {"fp64", DType::fp64},
                                                                          {"float64", DType::fp64},
                                                                          {"f64", DType::fp64}}};
  const std::string lower = lower_case(trimmed(text));
  for (const auto& [word, dtype] : kWords) {
    if (lower.find(word) != std::string::npos) return dtype;
  }
  // As PyTorch Lightning says it: "16-mixed".
  constexpr std::array<std::pair<std::string_view, DType>, 2> kBits = {
      {{"16", DType::fp16}, {"32", DType::fp32}}};
  const std::string_view bits = std::string_view(lower).substr(0, lower.find_first_of("- "));
  for (const auto& [word, dtype] : kBits) {
    if (bits == word) return dtype;
  }
  return std::nullopt;
}

std::optional<bool> says(const MeasuredPlan& row, std::string_view words) {
  constexpr std::size_t kReach = 3;
  constexpr std::array<std::string_view, 4> kDenials = {"no", "not", "non", "without"};
  constexpr std::array<std::string_view, 4> kDenialsBehind = {"not", "off", "disabled", "unused"};
  constexpr std::array<std::string_view, 4> kJoints = {"and", "but", "with", "plus"};
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto is_in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '-'; };
  const auto in_words = [](std::string told) {
    std::ranges::replace_if(
        told, [](char c) { return c == '-' || c == '_'; }, ' ');
    return told;
  };
  const std::string text = in_words(lower_case(row.schedule + "; " + row.source + "; " + row.notes));
  const std::string setting = in_words(std::string(words));
  std::optional<bool> said;
  for (std::size_t at = text.find(setting); at != std::string::npos; at = text.find(setting, at + 1)) {
    // "compile" is not in "uncompiled".
    if (is_letter(setting.front()) && at > 0 && is_letter(text[at - 1])) continue;
    bool denied = false;
    std::size_t end = at;
    for (std::size_t word = 0; word < kReach && !denied; ++word) {
      while (end > 0 && is_blank(text[end - 1])) --end;
      std::size_t begin = end;
      // "torch.compile" is one.
      while (begin > 0 && (is_in_word(text[begin - 1]) || (word == 0 && end == at && text[begin - 1] == '.')))
        --begin;
      const std::string_view before = std::string_view(text).substr(begin, end - begin);
      if (before.empty() || std::ranges::find(kJoints, before) != kJoints.end()) break;
      denied = std::ranges::find(kDenials, before) != kDenials.end();
      end = begin;
    }
    std::size_t behind = at + setting.size();
    while (behind < text.size() && is_letter(text[behind])) ++behind;
    if (behind < text.size() && text[behind] == ' ') {
      std::size_t last = ++behind;
      while (last < text.size() && is_letter(text[last])) ++last;
      const std::string_view next = std::string_view(text).substr(behind, last - behind);
      denied |= std::ranges::find(kDenialsBehind, next) != kDenialsBehind.end();
    }
    if (!denied) return true;
    said = false;
  }
  return said;
}

bool names(const MeasuredPlan& row, std::string_view framework) {
  return says(row, framework).value_or(false);
}

bool is_early_megatron(const MeasuredPlan& row) {
  return precision_named(row.precision) == DType::fp16 || names(row, "deepspeed");
}

bool is_megatron(const MeasuredPlan& row) {
  return names(row, "megatron") || names(row, "nemo/");
}

bool is_plain_pytorch(const MeasuredPlan& row) {
  constexpr std::array<std::string_view, 6> kNames = {"pytorch fsdp", "plain pytorch", "nanotron",
                                                      "torchtitan",   "llm-foundry",   "kempnerforge"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) { return names(row, name); });
}

std::int64_t number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  constexpr std::int64_t kMost = 1'000'000'000;
  std::int64_t number = 0;
  if (at == std::string_view::npos) return 0;
  for (const char c : text.substr(at + word.size())) {
    if (!std::isdigit(static_cast<unsigned char>(c))) break;
    number = number * 10 + (c - '0');
    if (number > kMost) return 0;
  }
  return number;
}

// Whatever stands between letters and digits; but "1.3" is not "13", nor "75" "7.5".
bool begins_with_name(std::string_view name, std::string_view known) {
  const auto is_kept = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t n = 0, k = 0;
  char before = ' ';
  for (;;) {
    const std::size_t name_from = n, known_from = k;
    while (k < known.size() && !is_kept(known[k])) ++k;
    if (k == known.size()) return true;
    while (n < name.size() && !is_kept(name[n])) ++n;
    if (n == name.size() || std::tolower(static_cast<unsigned char>(name[n])) !=
                                std::tolower(static_cast<unsigned char>(known[k])))
      return false;
    if (is_digit(before) && is_digit(name[n])) {
      const std::string_view between = name.substr(name_from, n - name_from),
                             between_known = known.substr(known_from, k - known_from);
      if ((between == "." && between_known != ".") || (between.empty() && between_known == ".")) return false;
    }
    before = name[n];
    ++n;
    ++k;
  }
}

namespace {

// Models with few layers are made of one with many: how many of them are without experts is what gives the
// published number of parameters.
void choose_dense_layers(const MeasuredPlan& row, const ZooModel& namesake, ModelSource& source) {
  constexpr std::string_view kKey = "dense_first: ";
  const auto file = find_embedded(namesake.file);
  if (!file || row.layers == 0 || row.parameters == 0) return;
  const std::string text(file->bytes.data(), file->bytes.size());
  const std::size_t at = text.find(kKey);
  if (at == std::string::npos) return;
  const std::size_t first = at + kKey.size(), end = text.find_first_not_of("0123456789", first);
  double least = std::numeric_limits<double>::infinity();
  const std::int64_t most = std::min(count_or_zero(text.substr(first, end - first)), row.layers - 1);
  for (std::int64_t dense = most; dense >= 0; --dense) {
    ModelSource one = source;
    one.text = text.substr(0, first) + std::to_string(dense) + text.substr(end);
    const auto parameters = static_cast<double>(totals(read_model(one, 1)).parameters);
    const double apart = std::abs(parameters / row.parameters - 1);
    if (apart >= least) continue;
    least = apart;
    source.text = one.text;
  }
}

// Whether the layers of a row make another model than its name says ("Maverick 400b" with 32 layers, in
// releases whose tables took over another model's): the namesake's own come nearer to that size.
bool layers_belie_name(const MeasuredPlan& row, const ModelSource& source, const Model& own) {
  static const std::regex kSize(R"(\b(\d{1,4})b\b)", std::regex::icase);
  std::smatch size;
  if (row.layers == 0 || row.parameters > 0 || !std::regex_search(row.model, size, kSize)) return false;
  const double said = std::stod(size[1]) * 1e9;
  const auto is_near = [&](const Model& model) {
    constexpr double kRounded = 0.1;
    return std::abs(static_cast<double>(totals(model).parameters) / said - 1) < kRounded;
  };
  // With far fewer layers it is a small stand-in for the model.
  constexpr double kSlip = 0.6;
  if (static_cast<double>(row.layers) <= kSlip * static_cast<double>(own.facts.layers) || !is_near(own))
    return false;
  ModelSource told = source;
  told.layers = row.layers;
  return !is_near(read_model(told, 1));
}

// Experts are in the zoo alone: a row whose columns are of another model than its name is of neither.
void check_namesake(const MeasuredPlan& row, const ModelSource& source, const ModelFacts& facts,
                    const std::string& where) {
  for (const auto& [column, said, has] :
       {std::tuple("hidden", row.hidden, facts.hidden), std::tuple("heads", row.heads, facts.heads)}) {
    if (said == 0 || has == 0 || said == has) continue;
    throw Error(where, fmt::format("{} {} of '{:.60}': {} has {}", column, said, row.model, source.name, has),
                "name another model of the zoo (armilla list models), or leave the column empty");
  }
}

// That all is there which makes a decoder.
void check_description(const MeasuredPlan& row, const std::string& where) {
  if (row.hidden == 0 && row.heads == 0 && is_of_zoo(row.model))
    throw Error(where, fmt::format("model '{:.60}' of the zoo is a graph of operators", row.model),
                "rows are of models by description: armilla run predicts this one");
  if (row.hidden == 0 && row.heads == 0)
    throw Error(where, fmt::format("model '{:.60}' is neither described nor known", row.model),
                "give layers, hidden, heads and seq_len, or a name of the zoo (armilla list models)");
  std::vector<std::string_view> missing, columns;
  for (const auto& [value, name, column] : {std::tuple(row.layers, "the number of layers", "layers"),
                                            std::tuple(row.hidden, "the hidden size", "hidden"),
                                            std::tuple(row.heads, "the number of heads", "heads"),
                                            std::tuple(row.sequence, "the sequence length", "seq_len")}) {
    if (value > 0) continue;
    missing.emplace_back(name);
    columns.emplace_back(column);
  }
  if (missing.empty()) return;
  throw Error(where,
              fmt::format("{} {} not known", fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"),
              fmt::format("give {}", fmt::join(columns, " and ")));
}

}  // namespace

ModelSource model_of(const MeasuredPlan& given, const std::string& where) {
  MeasuredPlan row = given;
  // Megatron-LM's tests are called "nemotron:nemotron3_5_lightning_nightly...".
  if (names(row, "megatron-lm functional test")) row.model.erase(0, row.model.find(':') + 1);
  const ZooModel* namesake = find_namesake(row.model);
  ModelSource source;
  source.sequence = row.sequence;
  // NeMo's recipes for 70 billion parameters; others are smaller, and the rank costs next to nothing.
  constexpr std::int64_t kAdapterRank = 16;
  // Not latent attention's "q_lora_rank", nor its "kv-lora-rank".
  static const std::regex kAdapters(R"((^|[^\w-]|[^qv]-)lora(?![a-z_]))", std::regex::icase);
  const bool has_adapters = names(row, "lora") && std::regex_search(row.notes, kAdapters);
  if (has_adapters) source.lora_rank = kAdapterRank;
  if (namesake != nullptr && (has_experts(*namesake) || row.hidden == 0)) {
    source.name = namesake->name;
    const Model own = read_model(source, 1);
    check_namesake(row, source, own.facts, where);
    source.layers = layers_belie_name(row, source, own) ? 0 : row.layers;
    choose_dense_layers(row, *namesake, source);
    return source;
  }
  check_description(row, where);
  if (row.expert > 1 && told_experts(row).count == 0)
    throw Error(where, fmt::format("experts of model '{:.60}' are not known", row.model),
                "models with experts must be in the zoo (armilla list models)");
  if (row.hidden % row.heads != 0)
    throw Error(where, fmt::format("{} heads do not divide hidden {}", row.heads, row.hidden));
  constexpr std::int64_t kUsualVocabulary = 50257;
  if (row.kv_heads == 0) row.kv_heads = row.heads;
  if (row.feed_forward == 0) row.feed_forward = 4 * row.hidden;
  // Megatron-LM's tests of 7B models run on mock data (--vocab-size in their model_config.yaml).
  constexpr std::int64_t kMockVocabulary = 131'072;
  if (row.vocabulary == 0) row.vocabulary = names(row, "gpt3_7b") ? kMockVocabulary : kUsualVocabulary;
  check_parameters(row, where);
  source.name = row.model.empty() ? "model" : row.model;
  source.text = description_of(row);
  // peft.target_modules of Megatron-Bridge's recipes: linear_qkv alone.
  if (has_adapters && names(row, "megatron-bridge"))
    source.text += fmt::format("adapters: {{rank: {}, targets: [{}]}}\n", kAdapterRank,
                               row.kv_heads == row.heads ? "qkv" : "q, kv");
  if (!argument(row, "transformer-impl").empty() || !argument(row, "attention-backend").empty())
    return source;
  if (is_early_megatron(row)) {
    source.text += "attention: unfused\n";
  } else if (is_plain_pytorch(row) && !names(row, "cudnn attention") && !names(row, "kempnerforge")) {
    // KempnerForge leaves the choice to PyTorch, which is cuDNN's on its H200 (13b_24gpu_profiling.md).
    // llm-foundry's benchmarks say attn_impl triton, and no dropout (resid_pdrop in configuration_mpt.py).
    source.text +=
        names(row, "llm-foundry") ? "attention: flash-triton\ndropout: false\n" : "attention: flash-2\n";
  } else if (names(row, "internevo")) {
    // Its tables are of its first release (InternLM, fa7337b of July 2023), which asks for
    // flash-attention 1.0.5.
    source.text += "attention: flash-triton\n";
  }
  return source;
}

}  // namespace armilla
