#include "study/validate/row_recipe.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "study/validate/row_model.h"

namespace armilla {
namespace {

// What a row says of a setting that the notes name in these words, in lower case: nothing, that it was on, or
// that it was not ("no a2a overlap", "without DeepEP or HybridEP"). A denial reaches a few words far, not
// beyond a clause.
std::optional<bool> says(const MeasuredPlan& row, std::string_view setting) {
  constexpr std::size_t kReach = 3;
  constexpr std::array<std::string_view, 3> kDenials = {"no", "not", "without"};
  constexpr std::array<std::string_view, 4> kJoints = {"and", "but", "with", "plus"};
  const std::string text = lower_case(row.schedule + "; " + row.source + "; " + row.notes);
  std::optional<bool> said;
  for (std::size_t at = text.find(setting); at != std::string::npos; at = text.find(setting, at + 1)) {
    bool denied = false;
    std::size_t end = at;
    for (std::size_t word = 0; word < kReach && !denied; ++word) {
      while (end > 0 && kBlank.find(text[end - 1]) != std::string_view::npos) --end;
      std::size_t begin = end;
      while (begin > 0 && std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
      const std::string_view before = std::string_view(text).substr(begin, end - begin);
      if (before.empty() || std::ranges::find(kJoints, before) != kJoints.end()) break;
      denied = std::ranges::find(kDenials, before) != kDenials.end();
      end = begin;
    }
    if (!denied) return true;
    said = false;
  }
  return said;
}

// Of a NeMo container, 2606 for "26.06"; 0: the row names none.
int release_of(const MeasuredPlan& row) {
  constexpr std::string_view kContainer = " nemo container";
  constexpr std::size_t kLength = 5;  // of "26.06"
  const std::string notes = lower_case(row.notes);
  const std::size_t end = notes.find(kContainer);
  if (end == std::string::npos) return 0;
  const std::size_t before = end == 0 ? std::string::npos : notes.find_last_of(' ', end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string_view text = std::string_view(notes).substr(begin, std::min(kLength, end - begin));
  int release = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (i == 2 ? text[i] != '.' : !is_digit) return 0;
    if (is_digit) release = release * 10 + (text[i] - '0');
  }
  return text.size() == kLength ? release : 0;
}

constexpr int kLast = 9999;

// What the recipes of a model on a device turn on, in these releases. Names are in lower case; what is left
// empty is any. Several rows may be of one measurement.
struct Recipe {
  std::string_view model = {};   // that the row's begins with
  std::string_view device = {};  // that the row's name of it has
  int first = 0, last = kLast;
  std::string_view precision = {};
  bool over_chunks = false;   // with several model chunks per rank alone
  bool overlaps = false;      // moe_a2a_overlap
  bool is_one_graph = false;  // cuda_graph_impl full_iteration, with fused experts
  // moe_flex_dispatcher_backend, DeepEP or HybridEP, which send a token once to every rank with
  // experts of it.
  bool once_per_rank = false;
};
constexpr int kWholeGraphs = 2606;
constexpr std::array kRecipes = {
    Recipe{.model = "qwen3",
           .device = "gb",
           .first = kWholeGraphs,
           .precision = "mxfp8",
           .overlaps = true,
           .is_one_graph = true},
    Recipe{.model = "deepseekv3",
           .device = "gb",
           .first = kWholeGraphs,
           .precision = "mxfp8",
           .overlaps = true,
           .is_one_graph = true},
    Recipe{.model = "gpt oss",
           .device = "gb",
           .first = kWholeGraphs,
           .precision = "mxfp8",
           .overlaps = true,
           .is_one_graph = true},
    Recipe{.model = "gpt oss", .device = "gb200", .first = 2604, .precision = "bf16", .overlaps = true},
    Recipe{.model = "qwen3", .device = "h100", .over_chunks = true, .overlaps = true},
    Recipe{.model = "qwen3", .device = "b200", .last = 2511, .over_chunks = true, .overlaps = true},
    Recipe{.model = "deepseekv3", .device = "h100", .last = 2511, .overlaps = true},
    Recipe{.model = "qwen3", .device = "gb", .first = 2511, .once_per_rank = true},
    Recipe{.model = "qwen3 30b", .device = "b300", .first = 2602, .once_per_rank = true},
    Recipe{.model = "qwen3 30b", .device = "h100", .first = 2602, .once_per_rank = true},
    Recipe{.model = "gpt oss", .device = "gb200", .first = 2604, .once_per_rank = true},
    Recipe{.model = "gpt oss",
           .device = "gb300",
           .first = kWholeGraphs,
           .precision = "mxfp8",
           .once_per_rank = true},
    Recipe{.model = "gpt oss", .device = "b200", .first = 2604, .once_per_rank = true},
    Recipe{.model = "gpt oss", .device = "b300", .first = 2604, .once_per_rank = true},
    Recipe{.model = "nemotron 3", .first = 2602, .once_per_rank = true},
};

bool is_recipe(const MeasuredPlan& row) {
  return names(row, "megatron-bridge") && release_of(row) > 0;
}

bool is_of(const MeasuredPlan& row, const Recipe& recipe) {
  const std::string device = lower_case(row.device);
  const int release = release_of(row);
  // "gb200" is no b200.
  const std::size_t at = device.find(recipe.device);
  const bool same_device =
      at != std::string::npos && (recipe.device.empty() || at == 0 || device[at - 1] != 'g');
  return same_device && begins_with_name(row.model, recipe.model) && release >= recipe.first &&
         release <= recipe.last &&
         (recipe.precision.empty() || lower_case(row.precision) == recipe.precision) &&
         (!recipe.over_chunks || row.virtual_stages > 1);
}

// Whether a recipe of the row turns it on.
bool is_on(bool Recipe::*setting, const MeasuredPlan& row) {
  return is_recipe(row) && std::ranges::any_of(kRecipes, [&](const Recipe& recipe) {
           return recipe.*setting && is_of(row, recipe);
         });
}

}  // namespace

void follow_recipe(const MeasuredPlan& row, Plan& plan) {
  if (plan.expert <= 1) return;
  // Others say it in words.
  const auto either = [&](std::string_view one, std::string_view other) {
    const std::optional<bool> first = says(row, one), second = says(row, other);
    return first && second ? *first || *second : first ? first : second;
  };
  const std::optional<bool> says_overlap = either("a2a overlap", "all-to-all overlap");
  const std::optional<bool> says_backend = either("deepep", "hybridep");
  if (says_overlap.value_or(is_on(&Recipe::overlaps, row))) plan.schedule = "combined-1f1b";
  if (says_backend.value_or(is_on(&Recipe::once_per_rank, row)))
    plan.expert_dispatch = ExpertDispatch::deduplicated;
  if (is_on(&Recipe::is_one_graph, row)) {
    plan.host = Host::compiled;
    plan.issue_time.reset();
  }
}

bool recomputes_little(const MeasuredPlan& row) {
  constexpr std::array<std::string_view, 3> kModels = {"qwen3", "deepseekv3", "gpt oss"};
  return row.recompute.empty() && is_recipe(row) && std::ranges::any_of(kModels, [&](std::string_view model) {
           return begins_with_name(row.model, model);
         });
}

}  // namespace armilla
