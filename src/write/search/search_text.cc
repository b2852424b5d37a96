#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "base/units_text.h"
#include "write/search.h"
#include "write/search/search_words.h"

namespace armilla {
namespace {

double share_of(Time part, Time whole) {
  return whole > Time(0) ? in_seconds(part) / in_seconds(whole) : 0;
}

std::string space_text(const SearchResult& result, const TextStyle& style) {
  std::string text;
  for (const SearchAxis& axis : result.axes) {
    if (axis.values.size() < 2 && !axis.given) continue;
    std::string values;
    for (const std::string& value : axis.values) values += (values.empty() ? "" : ", ") + value;
    text += wrap(values, fmt::format("  {}: ", short_key(axis.key)), style.width);
  }
  return text;
}

std::string use_text(const SearchResult& result, const TextStyle& style) {
  const SearchSpaceUse& use = result.space;
  const bool by_time = result.objective != SearchObjective::cost &&
                       result.objective != SearchObjective::energy &&
                       result.objective != SearchObjective::memory;
  std::string text = wrap(
      fmt::format("{}: {} refused, {} proven {} without a whole simulation, {} simulated",
                  counted(use.points, "plan"), with_separators(use.refused), with_separators(use.bounded),
                  by_time ? "slower" : "not among the best", with_separators(use.simulated)) +
          (use.resumed > 0 ? fmt::format(", {} of them before", with_separators(use.resumed)) : "") +
          (use.not_looked_at > 0 ? fmt::format(", {} not looked at", with_separators(use.not_looked_at))
                                 : ""),
      "", style.width);
  std::vector<std::pair<std::string, Refusal>> refusals(use.refusals.begin(), use.refusals.end());
  std::stable_sort(refusals.begin(), refusals.end(),
                   [](const auto& a, const auto& b) { return a.second.plans > b.second.plans; });
  for (const auto& [reason, refusal] : refusals) {
    std::string plans = with_separators(refusal.plans);
    if (!refusal.example.empty()) plans += ", such as: " + refusal.example;
    text += wrap(fmt::format("{} ({})", reason_text(reason), plans), "  refused: ", style.width);
  }
  return text;
}

// In what the ranking goes by.
std::string over_best(const SearchResult& result, const PlanOutcome& plan) {
  const double best = score_of(result.objective, result.ranking.front().figures());
  return best > 0 ? signed_percent(score_of(result.objective, plan.figures()) / best - 1) : "";
}

// A line for each; `numbered`: they are the ranking.
std::string plans_table(const SearchResult& result, const std::vector<PlanOutcome>& plans, bool numbered,
                        const TextStyle& style) {
  std::vector<std::size_t> shown;  // axes in which these plans differ, and those that the user named
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
    const bool differs = std::any_of(plans.begin(), plans.end(), [&](const PlanOutcome& plan) {
      return plan.values[axis] != plans.front().values[axis];
    });
    // Every table has a column for replicas.
    if (result.axes[axis].key == "plan.data") continue;
    if (differs || result.axes[axis].given || axis_degree(result.axes[axis].key)) shown.push_back(axis);
  }
  // Degrees that are all listed may make up jobs of several sizes.
  const bool sizes_differ =
      std::ranges::find(result.axes, "plan.ranks", &SearchAxis::key) == result.axes.end() &&
      std::ranges::any_of(
          plans, [&](const PlanOutcome& plan) { return plan.plan.ranks != plans.front().plan.ranks; });
  // What every table has anyway is not among these.
  std::vector<SearchObjective> expenses;
  for (const SearchObjective objective : {SearchObjective::cost, SearchObjective::energy}) {
    if (result.objective == objective ||
        std::ranges::find(result.front_of, objective) != result.front_of.end())
      expenses.push_back(objective);
  }
  const bool trains = plans.front().training_cost().has_value();
  TextTable table;
  if (numbered) table.columns.push_back({""});
  if (sizes_differ) table.columns.push_back({"ranks"});
  for (const std::size_t axis : shown) table.columns.push_back({short_key(result.axes[axis].key)});
  for (const char* const name : {"dp", "iteration", "samples/s"}) table.columns.push_back({name});
  for (const SearchObjective objective : expenses)
    table.columns.push_back({objective_words(result, objective, plans.front()).heading});
  if (trains) table.columns.push_back({"training"});
  for (const char* const name : {"memory", "computing", "exposed", "over best"})
    table.columns.push_back({name});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const PlanOutcome& plan = plans[i];
    std::vector<std::string> row;
    if (numbered) row.push_back(std::to_string(i + 1));
    if (sizes_differ) row.push_back(with_separators(plan.plan.ranks));
    for (const std::size_t axis : shown) row.push_back(plan.values[axis].empty() ? "-" : plan.values[axis]);
    row.push_back(std::to_string(plan.plan.data()));
    row.push_back(to_text(plan.iteration));
    row.push_back(samples_text(plan.samples_per_second()));
    for (const SearchObjective objective : expenses)
      row.push_back(objective_words(result, objective, plan).text);
    if (trains) row.push_back(plan.training_cost() ? to_text(*plan.training_cost()) : "unknown");
    row.push_back(to_text(plan.memory.needed()));
    row.push_back(percent(share_of(plan.compute, plan.iteration)));
    row.push_back(percent(share_of(plan.exposed_communication, plan.iteration)));
    row.push_back(plan.values == result.ranking.front().values ? "" : over_best(result, plan));
    table.rows.push_back(std::move(row));
  }
  return to_text(table, 0, style);
}

// The whole front where it was asked for: the best in the first objective first.
std::string front_text(const SearchResult& result, const TextStyle& style) {
  if (!result.whole_front) return {};
  std::string names;
  for (const SearchObjective objective : result.front_of)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(objective));
  std::vector<PlanOutcome> front = result.front;
  std::ranges::stable_sort(
      front, {}, [&](const PlanOutcome& plan) { return score_of(result.front_of.front(), plan.figures()); });
  return fmt::format("\nFront of {}: {} that no other beats in all of these\n", names,
                     counted(front.size(), "plan")) +
         plans_table(result, front, false, style);
}

// Where the best plan lies at the end of what was tried by default, and going on is worth it.
std::string edges_text(const SearchResult& result, const TextStyle& style) {
  std::string text;
  for (const SearchEdge& edge : result.edges) {
    text += wrap(edge_text(result.tokens_per_sample, result.objective, edge, result.ranking.front()), "  ",
                 style.width);
  }
  return text;
}

// Times of unlike batches, which say little.
std::string batches_text(const SearchResult& result, const TextStyle& style) {
  if (result.objective != SearchObjective::time || result.fewest_samples == result.most_samples) return {};
  return wrap(fmt::format("plans compute {} to {} samples in an iteration: name a global batch, or go by "
                          "throughput, to compare like with like",
                          with_separators(result.fewest_samples), with_separators(result.most_samples)),
              "  ", style.width);
}

// Of the whole training, where it is known how long that is.
std::string training_cost_text(const SearchResult& result) {
  const std::optional<Money> cost = result.ranking.front().training_cost();
  if (!cost) return {};
  return fmt::format("  {} for the whole training{}\n", to_text(*cost),
                     result.budget ? fmt::format(", within the budget of {}", to_text(*result.budget)) : "");
}

// What each knob is worth, and what the best gains over the next: the nearest that another of its values
// comes to the best.
// "2", "2 with tp 2".
std::string changed_to(const Neighbour& neighbour) {
  if (neighbour.needs.empty()) return neighbour.value;
  return fmt::format("{} with {} {}", neighbour.value, short_key(neighbour.needs), neighbour.needed_value);
}

std::string neighbours_text(const SearchResult& result, const TextStyle& style) {
  if (result.neighbours.empty()) return {};
  const PlanOutcome& best = result.ranking.front();
  const auto idle = [](const PlanOutcome& plan) {
    return plan.iteration - plan.compute - plan.exposed_communication;
  };
  const auto exposed_of = [](const PlanOutcome& plan, const std::string& kind) {
    const auto found = std::ranges::find(plan.exposed_by_kind, kind, &std::pair<std::string, Time>::first);
    return found == plan.exposed_by_kind.end() ? Time() : found->second;
  };
  const auto signed_time = [](Time a, Time b) {
    return (a < b ? "-" : "+") + to_text(a < b ? b - a : a - b);
  };
  std::set<std::string> kinds;
  const auto add_kinds = [&](const PlanOutcome& plan) {
    for (const auto& [kind, time] : plan.exposed_by_kind) kinds.insert(kind);
  };
  for (std::size_t i = 0; i < std::min<std::size_t>(2, result.ranking.size()); ++i)
    add_kinds(result.ranking[i]);
  for (const Neighbour& neighbour : result.neighbours) {
    if (neighbour.outcome) add_kinds(*neighbour.outcome);
  }
  TextTable table{{{"instead", false, 44},
                   {"iteration"},
                   {"over best"},
                   {"computing"},
                   {"exposed"},
                   {"idle"},
                   {"memory"}},
                  {}};
  TextTable by_kind{{{"instead", false, 44}}, {}};
  for (const std::string& kind : kinds) by_kind.columns.push_back({kind});
  const auto add_row = [&](const std::string& name, const PlanOutcome& other,
                           const std::optional<BrokenLimit>& broken) {
    const auto beyond = [&](const char* limit) {
      return broken && broken->limit == limit ? ", " + reason_text(limit) : std::string();
    };
    table.rows.push_back({name, to_text(other.iteration) + beyond("deadline") + beyond("budget"),
                          over_best(result, other), signed_time(other.compute, best.compute),
                          signed_time(other.exposed_communication, best.exposed_communication),
                          signed_time(idle(other), idle(best)),
                          to_text(other.memory.needed()) + beyond("memory")});
    std::vector<std::string>& row = by_kind.rows.emplace_back(1, name);
    for (const std::string& kind : kinds)
      row.push_back(signed_time(exposed_of(other, kind), exposed_of(best, kind)));
  };
  if (result.ranking.size() > 1) add_row("the next best", result.ranking[1], {});
  std::int64_t fewest = best.plan.global_batch(), most_samples = fewest;
  std::string refusals;
  for (const Neighbour& neighbour : result.neighbours) {
    const std::string name = fmt::format("{} {}", short_key(neighbour.key), changed_to(neighbour));
    if (neighbour.outcome) {
      add_row(name, *neighbour.outcome, neighbour.broken);
      fewest = std::min(fewest, neighbour.outcome->plan.global_batch());
      most_samples = std::max(most_samples, neighbour.outcome->plan.global_batch());
      continue;
    }
    refusals += wrap(neighbour.refusal, fmt::format("  {} is refused: ", name), style.width);
    table.rows.push_back({name, "refused", "", "", "", "", ""});
  }
  std::string most;
  if (const Neighbour* const neighbour = what_matters_most(result))
    most = wrap(fmt::format("{} matters most: its best other value, {}, comes to {} over the best plan",
                            short_key(neighbour->key), changed_to(*neighbour),
                            over_best(result, *neighbour->outcome)),
                "  ", style.width);
  std::string text = "\nThe best plan with one thing changed, and the next of the ranking:\n" +
                     to_text(table, 0, style) + refusals + most;
  if (fewest < most_samples)
    text += wrap(fmt::format("times are of whole iterations, of {} to {} samples", with_separators(fewest),
                             with_separators(most_samples)),
                 "  ", style.width);
  // One kind is all that is exposed.
  if (kinds.size() > 1) text += "\nOf the exposed communication, by kind:\n" + to_text(by_kind, 0, style);
  return text;
}

// Where nothing is left, though plans are legal.
std::string what_comes_near_text(const SearchResult& result, const TextStyle& style) {
  std::string text;
  if (result.late) {
    const PlanOutcome& plan = *result.late;
    // What does not fit may be within them.
    const std::string_view which = result.nearest ? "No plan that fits" : "No plan";
    const std::string_view of_those = result.late_beside_unfit && !result.nearest ? " that fits" : "";
    text =
        wrap(result.budget
                 ? fmt::format("{} is within the limits. The nearest{} takes {} for an iteration and costs "
                               "{} for the whole training: {}",
                               which, of_those, to_text(plan.iteration), to_text(*plan.training_cost()),
                               plan_text(result, plan))
                 : fmt::format("{} is within the deadline. The fastest{} takes {}: {}", which, of_those,
                               to_text(plan.iteration), plan_text(result, plan)),
             "", style.width);
  }
  if (!result.nearest) return text;
  const PlanOutcome& plan = *result.nearest;
  const bool whole = result.nearest_room == plan.memory.capacity;
  const std::string needs =
      fmt::format("needs {} of the {}: {}", to_text(plan.memory.needed()),
                  whole ? fmt::format("device's {}", to_text(plan.memory.capacity))
                        : fmt::format("{} that it may take of the device's {}", to_text(result.nearest_room),
                                      to_text(plan.memory.capacity)),
                  plan_text(result, plan));
  if (result.late) return text + wrap("Of what does not fit, the smallest " + needs, "", style.width);
  if (!result.late_bound) return wrap("No plan fits. The nearest " + needs, "", style.width);
  const LateBound& late = *result.late_bound;
  return wrap(fmt::format("No plan fits, nor is one within the {}. The smallest {}",
                          result.budget ? "limits" : "deadline", needs),
              "", style.width) +
         wrap(fmt::format("The fastest takes at least {}{}", to_text(late.iteration),
                          late.training_cost
                              ? fmt::format(" and costs at least {}", to_text(*late.training_cost))
                              : ""),
              "", style.width);
}

}  // namespace

std::string write_search_text(const SearchResult& result, const TextStyle& style) {
  std::string text;
  const std::string use = space_text(result, style) + use_text(result, style);
  if (result.ranking.empty()) {
    text =
        result.complete ? "No plan can be run.\n" : "No plan was found before the search was interrupted.\n";
    if (result.late || result.nearest) text = what_comes_near_text(result, style);
    return text + use;
  }
  const PlanOutcome& best = result.ranking.front();
  text = paint(fmt::format("{}{}",
                           result.complete ? "Best plan: " : "Best plan so far: ", plan_text(result, best)),
               Ink::bold, style.colour) +
         "\n";
  text += fmt::format("  {} for an iteration of {}, {} of memory\n", to_text(best.iteration),
                      counted(best.plan.global_batch(), "sample"), to_text(best.memory.needed()));
  text += training_cost_text(result) + batches_text(result, style) + edges_text(result, style) + "\n";
  text += plans_table(result, result.ranking, true, style) + front_text(result, style) +
          neighbours_text(result, style) + "\n" + use;
  for (const std::string& note : result.notes) text += wrap(note, "note: ", style.width);
  return text;
}

}  // namespace armilla
