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

// Rows that a setting was on for, in lower case. What is left empty is any.
struct Setting {
  std::string_view model;   // that the row's begins with
  std::string_view device;  // that the row's name of it has
  int first = 0, last = kLast;
  std::string_view precision = {};
  bool over_chunks = false;  // with several model chunks per rank alone
};

// moe_a2a_overlap. From 26.06 on with fused experts and CUDA graphs of whole steps (cuda_graph_impl
// full_iteration).
constexpr int kWholeGraphs = 2606;
constexpr std::array kOverlaps = {
    Setting{"qwen3", "gb", kWholeGraphs, kLast, "mxfp8"},
    Setting{"deepseekv3", "gb", kWholeGraphs, kLast, "mxfp8"},
    Setting{"gpt oss", "gb", kWholeGraphs, kLast, "mxfp8"},
    Setting{"gpt oss", "gb200", 2604, kLast, "bf16"},
    Setting{"qwen3", "h100", 0, kLast, {}, true},
    Setting{"qwen3", "b200", 0, 2511, {}, true},
    Setting{"deepseekv3", "h100", 0, 2511},
};
constexpr std::array kGraphs = {kOverlaps[0], kOverlaps[1], kOverlaps[2]};

// moe_flex_dispatcher_backend, DeepEP or HybridEP, which send a token once to every rank with experts of it.
constexpr std::array kOncePerRank = {
    Setting{"qwen3", "gb", 2511},
    Setting{"qwen3 30b", "b300", 2602},
    Setting{"qwen3 30b", "h100", 2602},
    Setting{"gpt oss", "gb200", 2604},
    Setting{"gpt oss", "gb300", kWholeGraphs, kLast, "mxfp8"},
    Setting{"gpt oss", "b200", 2604},
    Setting{"gpt oss", "b300", 2604},
    Setting{"nemotron 3", {}, 2602},
};

bool is_recipe(const MeasuredPlan& row) {
  return names(row, "megatron-bridge") && release_of(row) > 0;
}

template <std::size_t N>
bool is_on(const std::array<Setting, N>& settings, const MeasuredPlan& row) {
  const int release = release_of(row);
  const std::string device = lower_case(row.device), precision = lower_case(row.precision);
  return std::ranges::any_of(settings, [&](const Setting& setting) {
    // "gb200" is no b200.
    const std::size_t at = device.find(setting.device);
    const bool same_device =
        at != std::string::npos && (setting.device.empty() || at == 0 || device[at - 1] != 'g');
    return same_device && begins_with_name(row.model, setting.model) && release >= setting.first &&
           release <= setting.last && (setting.precision.empty() || precision == setting.precision) &&
           (!setting.over_chunks || row.virtual_stages > 1);
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
  const bool is_known = is_recipe(row);
  if (says_overlap.value_or(is_known && is_on(kOverlaps, row))) plan.schedule = "combined-1f1b";
  if (says_backend.value_or(is_known && is_on(kOncePerRank, row)))
    plan.expert_dispatch = ExpertDispatch::deduplicated;
  if (is_known && is_on(kGraphs, row)) {
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
