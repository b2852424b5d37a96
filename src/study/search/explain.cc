#include "study/search/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "ir/derived/stage_table.h"
#include "network/network.h"
#include "study/run.h"

namespace armilla {
namespace {

class Neighbours {
 public:
  Neighbours(PlanRoom& plans, std::size_t base, std::int64_t point, SearchObjective objective,
             const BesideBest& beside)
      : plans_(plans),
        space_(plans.space()),
        number_(base),
        point_(point),
        own_text_(text_of(plans.prepare(base, point))),
        objective_(objective),
        beside_(beside) {}

  std::vector<Neighbour> list() {
    for (std::size_t other = 0; other < space_.bases().size(); ++other) {
      const std::optional<std::size_t> axis = only_difference(other);
      if (axis && !beside_.stopped()) add_of_base(other, *axis);
    }
    const SearchBase& base = space_.bases()[number_];
    for (std::size_t axis = 0; axis < base.axes.size(); ++axis) {
      const std::size_t own = space_.value_index(number_, point_, axis);
      values_of_.clear();
      for (std::size_t value = 0; value < base.axes[axis].values.size(); ++value) {
        if (value != own && !beside_.stopped()) add(axis, value);
      }
    }
    return std::move(found_);
  }

 private:
  // The one outer axis whose value is another one there.
  std::optional<std::size_t> only_difference(std::size_t other) const {
    const std::vector<std::string>&own = space_.bases()[number_].values,
          &values = space_.bases()[other].values;
    std::optional<std::size_t> axis;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] == values[i]) continue;
      if (axis) return std::nullopt;
      axis = i;
    }
    return axis;
  }

  // All else being equal on another machine, or other ranks.
  void add_of_base(std::size_t other, std::size_t axis) {
    const SearchBase &base = space_.bases()[other], &own = space_.bases()[number_];
    Neighbour neighbour{space_.axes()[axis].key, base.values[axis]};
    std::int64_t point = 0;
    for (std::size_t i = 0; i < base.axes.size(); ++i) {
      const SearchAxis& inner = base.axes[i];
      const std::string& value = own.axes[i].values[space_.value_index(number_, point_, i)];
      const auto place = std::ranges::find(inner.values, value);
      if (place == inner.values.end()) {
        neighbour.refusal = fmt::format("{} {} is not tried there", inner.key, value);
        found_.push_back(std::move(neighbour));
        return;
      }
      point = space_.changed(other, point, i, static_cast<std::size_t>(place - inner.values.begin()));
    }
    try {
      simulate(neighbour, other, point, plans_.prepare(other, point));
    } catch (const Error& error) {
      neighbour.refusal = error.message;
      make_legal(neighbour, other, point, std::nullopt);
    }
    found_.push_back(std::move(neighbour));
  }

  void add(std::size_t axis, std::size_t value) {
    const SearchAxis& changed = space_.bases()[number_].axes[axis];
    Neighbour neighbour{changed.key, changed.values[value]};
    const std::int64_t point = space_.changed(number_, point_, axis, value);
    try {
      const PlanPrepared plan = plans_.prepare(number_, point);
      const std::string text = text_of(plan);
      if (text == own_text_) return;  // it changes nothing
      const auto [known, is_new] = values_of_.try_emplace(text, neighbour.value);
      if (!is_new) {
        neighbour.refusal = fmt::format("the same plan as with {}", known->second);
        found_.push_back(std::move(neighbour));
        return;
      }
      simulate(neighbour, number_, point, plan);
    } catch (const Error& error) {
      neighbour.refusal = error.message;
      make_legal(neighbour, number_, point, axis);
    }
    found_.push_back(std::move(neighbour));
  }

  // One of the other axes changed, too.
  struct Change {
    bool is_unfit = false;
    double least_score = 0;
    std::size_t axis = 0, value = 0;
    std::int64_t point = 0;
    std::optional<PlanPrepared> plan{};
    auto place() const { return std::tuple(is_unfit, least_score, axis, value); }
  };

  // (Which axes stand in the way the error says only of the first that does.)
  void make_legal(Neighbour& neighbour, std::size_t number, std::int64_t point,
                  std::optional<std::size_t> changed) {
    const SearchBase& base = space_.bases()[number];
    std::vector<Change> changes;
    for (std::size_t axis = 0; axis < base.axes.size(); ++axis) {
      for (std::size_t value = 0; axis != changed && value < base.axes[axis].values.size(); ++value) {
        Change change{.axis = axis, .value = value, .point = space_.changed(number, point, axis, value)};
        if (change.point == point) continue;
        try {
          const PlanPrepared& plan = change.plan.emplace(plans_.prepare(number, change.point));
          if (number == number_ && text_of(plan) == own_text_) continue;
          change.is_unfit = !plans_.fits(plans_.evaluator(number).memory(plan));
          change.least_score = beside_.least_score(number, plan);
          changes.push_back(std::move(change));
        } catch (const Error&) {
          // This does not help.
        }
      }
    }
    std::ranges::sort(changes, {}, &Change::place);
    const Change* const best = best_of(changes, neighbour, number);
    if (best == nullptr) return;
    neighbour.needs = base.axes[best->axis].key;
    neighbour.needed_value = base.axes[best->axis].values[best->value];
    tell_all(neighbour, number, best->point, *best->plan);
  }

  // Of what keeps to all limits, where anything does; of equals as in the ranking.
  const Change* best_of(const std::vector<Change>& changes, Neighbour& neighbour, std::size_t number) const {
    using Place = std::tuple<bool, double, Time, Bytes>;
    constexpr std::size_t kMostSimulated = 32;
    const bool takes_long = promises_of(space_.bases()[number].study.network).plays_bytes;
    const Change* best = nullptr;
    std::optional<Place> place;
    std::size_t simulated = 0;
    for (const Change& change : changes) {
      // No other can be better than the best that is known.
      const bool is_over = place && std::pair(change.is_unfit, change.least_score) >
                                        std::pair(std::get<bool>(*place), std::get<double>(*place));
      if (is_over || simulated == (takes_long ? 1 : kMostSimulated) || beside_.stopped()) break;
      try {
        const bool only_better = place && !std::get<bool>(*place);
        std::optional<PlanOutcome> outcome =
            beside_.simulate(number, *change.plan, only_better ? std::get<double>(*place) : kInfinity);
        ++simulated;
        if (!outcome) continue;
        const Place own(beside_.broken(number, *outcome).has_value(),
                        score_of(objective_, outcome->figures()), outcome->iteration,
                        outcome->memory.needed());
        if (place && *place <= own) continue;
        place = own;
        best = &change;
        neighbour.outcome = std::move(outcome);
      } catch (const Error&) {
        // Nor does this.
      }
    }
    return best;
  }

  void simulate(Neighbour& neighbour, std::size_t base, std::int64_t point, const PlanPrepared& plan) {
    neighbour.outcome = beside_.simulate(base, plan, kInfinity);
    if (neighbour.outcome) tell_all(neighbour, base, point, plan);
  }
  void tell_all(Neighbour& neighbour, std::size_t base, std::int64_t point, const PlanPrepared& plan) {
    neighbour.outcome->values = space_.values_of(base, point);
    tell_exposed(plan, *neighbour.outcome);
    neighbour.broken = beside_.broken(base, *neighbour.outcome);
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  PlanRoom& plans_;
  const SearchSpace& space_;
  std::size_t number_;
  std::int64_t point_;
  std::string own_text_;
  SearchObjective objective_;
  const BesideBest& beside_;
  std::map<std::string, std::string> values_of_;  // of the axis that is looked at, by the plans they make
  std::vector<Neighbour> found_;
};

}  // namespace

std::vector<Neighbour> neighbours_of(PlanRoom& plans, std::size_t base, std::int64_t point,
                                     SearchObjective objective, const BesideBest& beside) {
  return Neighbours(plans, base, point, objective, beside).list();
}

void tell_exposed(const PlanPrepared& plan, PlanOutcome& outcome) {
  if (promises_of(plan.setting->network).plays_bytes || outcome.exposed_communication == Time(0)) return;
  // Of the class that the outcome is of.
  const auto is_meant = [&](const RankClass& ranks) {
    return ranks.compute == outcome.compute && ranks.exposed_communication == outcome.exposed_communication;
  };
  const auto tell = [&](const SimulationOptions& options) -> std::optional<std::int32_t> {
    Run run;
    try {
      run = run_study(plan.study(), options);
    } catch (const Error&) {
      return std::nullopt;
    }
    const auto ranks = std::ranges::find_if(run.result.classes, is_meant);
    if (ranks == run.result.classes.end()) return std::nullopt;
    for (const auto& [kind, time] : exposed_by_kind(run, *ranks))
      outcome.exposed_by_kind.emplace_back(kind, time);
    return ranks->representative;
  };
  // Where nobody asks for it, only the first class of every program is recorded.
  const std::optional<std::int32_t> rank = tell({});
  if (!rank || !outcome.exposed_by_kind.empty()) return;
  SimulationOptions options;
  options.record_ranks = {*rank};
  tell(options);
}

}  // namespace armilla
