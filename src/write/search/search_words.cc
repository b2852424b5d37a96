#include "write/search/search_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace armilla {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kShort = {{
    {"plan.tensor", "tp"},
    {"plan.pipeline", "pp"},
    {"plan.data", "dp"},
    {"plan.context", "cp"},
    {"plan.expert", "ep"},
    {"plan.expert_tensor", "etp"},
    {"plan.virtual_stages", "vpp"},
    {"plan.micro_batch", "micro-batch"},
    {"plan.sequence_parallel", "sp"},
}};

}  // namespace

std::string short_key(std::string_view key) {
  for (const auto& [whole, name] : kShort) {
    if (key == whole) return std::string(name);
  }
  std::string name(key.starts_with("plan.") ? key.substr(5) : key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool axis_degree(std::string_view key) {
  return key == "plan.tensor" || key == "plan.pipeline";
}

std::string plan_text(const SearchResult& result, const PlanOutcome& plan) {
  std::string text;
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
    const SearchAxis& of = result.axes[axis];
    if (plan.values[axis].empty() || (of.values.size() < 2 && !of.given)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", short_key(of.key), plan.values[axis]);
    if (of.key == "plan.pipeline") text += fmt::format(", dp {}", plan.plan.data());
  }
  return text.empty() ? "the only one" : text;
}

std::string reason_text(const std::string& reason) {
  if (reason == "degrees") return "the degrees do not make up the ranks";
  if (reason == "equal") return "the same as another plan";
  if (reason == "memory") return "does not fit";
  if (reason == "deadline") return "beyond the deadline";
  if (reason == "died") return "killed the process that simulated it";
  if (reason == "not looked at") return "not looked at: the search was interrupted";
  if (reason == "not legal") return reason;
  return fmt::format("{} does not go with the rest", short_key(reason));
}

}  // namespace armilla
