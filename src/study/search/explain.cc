#include "study/search/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "ir/derived/stage_table.h"
#include "network/network.h"
#include "study/run.h"

namespace armilla {
namespace {

class Neighbours {
 public:
  Neighbours(PlanRoom& plans, std::size_t base, std::int64_t point, const SimulateNeighbour& simulate)
      : plans_(plans),
        space_(plans.space()),
        number_(base),
        point_(point),
        own_text_(text_of(plans.prepare(base, point))),
        simulate_(simulate) {}

  std::vector<Neighbour> list() {
    for (std::size_t other = 0; other < space_.bases().size(); ++other) {
      if (const std::optional<std::size_t> axis = only_difference(other)) add_of_base(other, *axis);
    }
    const SearchBase& base = space_.bases()[number_];
    for (std::size_t axis = 0; axis < base.axes.size(); ++axis) {
      const std::size_t own = space_.value_index(number_, point_, axis);
      values_of_.clear();
      for (std::size_t value = 0; value < base.axes[axis].values.size(); ++value) {
        if (value != own) add(axis, value);
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
      simulate_(neighbour, other, plans_.prepare(other, point), space_.values_of(other, point));
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
      simulate_(neighbour, number_, plan, space_.values_of(number_, point));
    } catch (const Error& error) {
      neighbour.refusal = error.message;
      make_legal(neighbour, number_, point, axis);
    }
    found_.push_back(std::move(neighbour));
  }

  // With one of the other axes changed, too: of plans that fit, where there are any, the one with the least
  // of the tighter bounds. (Which axes stand in the way the error says only of the first that does.)
  void make_legal(Neighbour& neighbour, std::size_t number, std::int64_t point,
                  std::optional<std::size_t> changed) {
    const SearchBase& base = space_.bases()[number];
    PlanEvaluator& evaluator = plans_.evaluator(number);
    std::optional<std::pair<bool, Time>> least;
    std::optional<PlanPrepared> nearest;
    std::int64_t nearest_point = 0;
    for (std::size_t axis = 0; axis < base.axes.size(); ++axis) {
      const SearchAxis& other = base.axes[axis];
      if (axis == changed) continue;
      for (std::size_t value = 0; value < other.values.size(); ++value) {
        const std::int64_t beside = space_.changed(number, point, axis, value);
        if (beside == point) continue;
        try {
          const PlanPrepared plan = plans_.prepare(number, beside);
          if (number == number_ && text_of(plan) == own_text_) continue;
          const std::pair place(!plans_.fits(evaluator.memory(plan)),
                                std::max(evaluator.bound(plan), evaluator.slot_bound(plan)));
          if (least && *least <= place) continue;
          least = place;
          nearest = plan;
          nearest_point = beside;
          neighbour.needs = other.key;
          neighbour.needed_value = other.values[value];
        } catch (const Error&) {
          // This does not help.
        }
      }
    }
    if (!nearest) return;
    try {
      simulate_(neighbour, number, *nearest, space_.values_of(number, nearest_point));
    } catch (const Error&) {
      neighbour.needs.clear();
    }
  }

  PlanRoom& plans_;
  const SearchSpace& space_;
  std::size_t number_;
  std::int64_t point_;
  std::string own_text_;
  const SimulateNeighbour& simulate_;
  std::map<std::string, std::string> values_of_;  // of the axis that is looked at, by the plans they make
  std::vector<Neighbour> found_;
};

}  // namespace

std::vector<Neighbour> neighbours_of(PlanRoom& plans, std::size_t base, std::int64_t point,
                                     const SimulateNeighbour& simulate) {
  return Neighbours(plans, base, point, simulate).list();
}

void tell_exposed(const PlanPrepared& plan, PlanOutcome& outcome) {
  if (promises_of(plan.setting->network).plays_bytes || outcome.exposed_communication == Time(0)) return;
  // Of the class that the outcome is of.
  const auto is_meant = [&](const RankClass& ranks) {
    return ranks.compute == outcome.compute && ranks.exposed_communication == outcome.exposed_communication;
  };
  const auto tell = [&](const SimulationOptions& options) {
    const Run run = run_study(plan.study(), options);
    const auto ranks = std::ranges::find_if(run.result.classes, is_meant);
    if (ranks == run.result.classes.end()) return std::optional<std::int32_t>();
    for (const auto& [kind, time] : exposed_by_kind(run, *ranks))
      outcome.exposed_by_kind.emplace_back(kind, time);
    return std::optional(ranks->representative);
  };
  // Where nobody asks for it, only the first class of every program is recorded.
  const std::optional<std::int32_t> rank = tell({});
  if (!rank || !outcome.exposed_by_kind.empty()) return;
  SimulationOptions options;
  options.record_ranks = {*rank};
  tell(options);
}

Refusal refusal_of_given(const SearchRequest& request, const std::vector<SearchAxis>& axes) {
  constexpr std::int64_t kMost = 1000;
  std::int64_t combinations = 1;
  for (const SearchAxis& axis : axes) {
    if (axis.given) combinations *= std::min(kMost + 1, static_cast<std::int64_t>(axis.values.size()));
    if (combinations > kMost) return {};
  }
  const auto varies = [&](const std::string& key) {
    return (key == "plan.tensor" || key == "plan.pipeline") &&
           std::ranges::any_of(axes, [&](const SearchAxis& axis) { return !axis.given && axis.key == key; });
  };
  std::optional<Error> first;
  for (std::int64_t number = 0; number < combinations; ++number) {
    std::vector<Override> settings;
    std::int64_t rest = number;
    for (const SearchAxis& axis : axes) {
      if (!axis.given) continue;
      const auto count = static_cast<std::int64_t>(axis.values.size());
      const std::string& value = axis.values[static_cast<std::size_t>(rest % count)];
      settings.emplace_back(fmt::format("{}={}", axis.key, value), axis.where);
      rest /= count;
    }
    try {
      const Study study = request.read(settings);
      PlanEvaluator(study).prepare(study.request);
      return {};
    } catch (const Error& error) {
      // Of degrees that the search varies by itself, another may be legal.
      if (std::ranges::any_of(error.keys, varies)) return {};
      if (!first) first.emplace(error);
    }
  }
  return first ? Refusal{combinations, first->message, first->hint} : Refusal{};
}

}  // namespace armilla
