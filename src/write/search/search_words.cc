#include "write/search/search_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/units_text.h"
#include "write/text_table.h"

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
    // Which stands behind the pipeline, named or not.
    if (of.key == "plan.data") continue;
    if (plan.values[axis].empty() || (of.values.size() < 2 && !of.given)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", short_key(of.key), plan.values[axis]);
    if (of.key == "plan.pipeline") text += fmt::format(", dp {}", plan.plan.data());
  }
  return text.empty() ? "the only one" : text;
}

ObjectiveWords objective_words(std::int64_t tokens_per_sample, SearchObjective objective,
                               const PlanOutcome& plan) {
  const bool tokens = tokens_per_sample > 0;
  const double samples = static_cast<double>(plan.plan.global_batch());
  // Of a million tokens, or a thousand samples.
  const double amount = tokens ? samples * static_cast<double>(tokens_per_sample) / 1e6 : samples / 1e3;
  const char* const of = tokens ? "million tokens" : "thousand samples";
  const char* const of_short = tokens ? "M tokens" : "k samples";
  const double nothing = std::nan("");
  ObjectiveWords words;
  switch (objective) {
    case SearchObjective::time:
      return {"iteration, ms", "iteration", 1e3 * in_seconds(plan.iteration), to_text(plan.iteration)};
    case SearchObjective::throughput: {
      const double rate = plan.samples_per_second() * (tokens ? static_cast<double>(tokens_per_sample) : 1);
      words = {tokens ? "tokens per second" : "samples per second", tokens ? "tokens/s" : "samples/s", rate,
               rate >= 1000 ? with_separators(std::llround(rate)) : fmt::format("{:.4g}", rate)};
      return words;
    }
    case SearchObjective::cost:
      words = {fmt::format("cost, USD per {}", of), fmt::format("USD/{}", of_short),
               plan.cost ? plan.cost->value / amount : nothing, "unknown"};
      break;
    case SearchObjective::energy:
      words = {fmt::format("energy, Wh per {}", of), fmt::format("Wh/{}", of_short),
               plan.energy ? plan.energy->value / 3600 / amount : nothing, "unknown"};
      break;
    case SearchObjective::memory:
      return {"memory of the fullest rank, GiB", "memory",
              static_cast<double>(plan.memory.needed().value) / (1 << 30), to_text(plan.memory.needed())};
  }
  if (!std::isnan(words.value)) words.text = fmt::format("{:.4g}", words.value);
  return words;
}

std::string point_text(const ObjectiveWords& words) {
  const bool has_unit = words.heading == "iteration" || words.heading == "memory";
  return has_unit ? words.text : fmt::format("{} {}", words.text, words.heading);
}

std::string samples_text(double rate) {
  constexpr double kManyDigits = 9999.5;  // what four digits do not tell
  return rate < kManyDigits ? fmt::format("{:.4g}", rate) : with_separators(std::llround(rate));
}

std::string edge_text(std::int64_t tokens_per_sample, SearchObjective objective, const SearchEdge& edge,
                      const PlanOutcome& best) {
  // Scores are times per sample: what is told of throughput is its inverse.
  const double score = score_of(objective, edge.outcome.figures()) / score_of(objective, best.figures());
  const double change = (objective == SearchObjective::throughput ? 1 / score : score) - 1;
  return fmt::format("{} {} is the largest that was tried, and {} would be better ({}, {}): {} tries more",
                     short_key(edge.key), edge.value, edge.next,
                     point_text(objective_words(tokens_per_sample, objective, edge.outcome)),
                     signed_percent(change), edge.widen);
}

std::string reason_text(const std::string& reason) {
  if (reason == "degrees") return "the degrees do not make up the ranks";
  if (reason == "equal") return "the same as another plan";
  if (reason == "memory") return "does not fit";
  if (reason == "deadline") return "beyond the deadline";
  if (reason == "budget") return "beyond the budget";
  if (reason == "died") return "killed the process that simulated it";
  if (reason == "not legal") return reason;
  const std::string key = short_key(reason);
  const bool plural = key.ends_with("s") && !key.starts_with("plan.");
  return fmt::format("{} {} with the rest of the plan", key, plural ? "conflict" : "conflicts");
}

}  // namespace armilla
