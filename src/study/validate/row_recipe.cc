#include "study/validate/row_recipe.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "study/validate/row_model.h"

namespace armilla {
namespace {

// Of a NeMo container, 2606 for "26.06"; 0: the row names none.
int release_of(const MeasuredPlan& row) {
  constexpr std::string_view kContainer = " NeMo Container";
  constexpr std::size_t kLength = 5;  // of "26.06"
  const std::size_t end = row.notes.find(kContainer);
  if (end == std::string::npos) return 0;
  const std::size_t before = end == 0 ? std::string::npos : row.notes.find_last_of(' ', end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string_view text = std::string_view(row.notes).substr(begin, std::min(kLength, end - begin));
  int release = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (i == 2 ? text[i] != '.' : !is_digit) return 0;
    if (is_digit) release = release * 10 + (text[i] - '0');
  }
  return text.size() == kLength ? release : 0;
}

constexpr int kLast = 9999;

// Rows that a setting was on for. What is left empty is any.
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
    Setting{"qwen3", "GB", kWholeGraphs, kLast, "MXFP8"},
    Setting{"deepseekv3", "GB", kWholeGraphs, kLast, "MXFP8"},
    Setting{"gpt oss", "GB", kWholeGraphs, kLast, "MXFP8"},
    Setting{"gpt oss", "GB200", 2604, kLast, "BF16"},
    Setting{"qwen3", "H100", 0, kLast, {}, true},
    Setting{"qwen3", "B200", 0, 2511, {}, true},
    Setting{"deepseekv3", "H100", 0, 2511},
};
constexpr std::array kGraphs = {kOverlaps[0], kOverlaps[1], kOverlaps[2]};

// moe_flex_dispatcher_backend, DeepEP or HybridEP, which send a token once to every rank with experts of it.
constexpr std::array kOncePerRank = {
    Setting{"qwen3", "GB", 2511},
    Setting{"qwen3 30b", "B300", 2602},
    Setting{"qwen3 30b", "H100", 2602},
    Setting{"gpt oss", "GB200", 2604},
    Setting{"gpt oss", "GB300", kWholeGraphs, kLast, "MXFP8"},
    Setting{"gpt oss", "B200", 2604},
    Setting{"gpt oss", "B300", 2604},
    Setting{"nemotron 3", {}, 2602},
};

bool is_recipe(const MeasuredPlan& row) {
  return names(row, "megatron-bridge") && release_of(row) > 0;
}

template <std::size_t N>
bool is_on(const std::array<Setting, N>& settings, const MeasuredPlan& row) {
  const int release = release_of(row);
  return std::ranges::any_of(settings, [&](const Setting& setting) {
    // "GB200" is no B200.
    const std::size_t at = row.device.find(setting.device);
    const bool same_device =
        at != std::string::npos && (setting.device.empty() || at == 0 || row.device[at - 1] != 'G');
    return same_device && begins_with_name(row.model, setting.model) && release >= setting.first &&
           release <= setting.last && (setting.precision.empty() || row.precision == setting.precision) &&
           (!setting.over_chunks || row.virtual_stages > 1);
  });
}

}  // namespace

void follow_recipe(const MeasuredPlan& row, Plan& plan) {
  if (plan.expert <= 1) return;
  // Others say it in words.
  const bool says_overlap = names(row, "a2a overlap") || names(row, "all-to-all overlap");
  const bool says_backend = names(row, "deepep") || names(row, "hybridep");
  const bool is_known = is_recipe(row);
  if (says_overlap || (is_known && is_on(kOverlaps, row))) plan.schedule = "combined-1f1b";
  if (says_backend || (is_known && is_on(kOncePerRank, row)))
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
