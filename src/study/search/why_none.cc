#include "study/search/why_none.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "study/run.h"
#include "study/search/axes.h"
#include "study/search/evaluate.h"
#include "study/search/plan_room.h"

namespace armilla {
namespace {

class WhyNone {
 public:
  WhyNone(const SearchRequest& request, const SearchSpace& space, const SearchResult& result)
      : request_(request), result_(result), given_(space.bases().front().study.request.places) {}

  Refusal tell() const {
    const std::vector<LegalValues> others = of_fixed_keys();
    std::optional<Refusal> reason = of_given();
    if (!reason) reason = of_all_that_is_right();
    if (reason) {
      // What a run would hint at need not lead to a plan: these do.
      if (!others.empty()) reason->hint = listed(others, "", " could be ", "");
      return *std::move(reason);
    }
    if (!others.empty()) return {0, "the value of " + listed(others, "that of ", " (", " would do)")};
    return of_most();
  }

 private:
  static constexpr std::string_view kPrefix = "plan.";

  // Of a key that the user has fixed: what it could be.
  struct LegalValues {
    std::string key, values;
  };

  static const SearchAxis* find(const std::vector<SearchAxis>& axes, std::string_view key) {
    const auto found = std::ranges::find(axes, key, &SearchAxis::key);
    return found == axes.end() ? nullptr : &*found;
  }
  // By itself: nobody named it.
  bool varies(std::string_view key) const {
    const SearchAxis* const found = find(result_.axes, key);
    return found != nullptr && !found->given && found->values.size() > 1;
  }

  // Whether other values of what varies could make another error of it, or none.
  bool depends_on_what_varies(const Error& error) const {
    const auto is_about = [&](std::string_view key) {
      return std::ranges::find(error.keys, key) != error.keys.end();
    };
    for (const SearchAxis& other : result_.axes) {
      if (varies(other.key) && is_about(other.key)) return true;
    }
    // How many replicas share a batch, or weights, follows from the degrees.
    constexpr std::string_view kShares[] = {"plan.data",        "plan.global_batch",  "plan.batch",
                                            "plan.micro_batch", "plan.micro_batches", "plan.hybrid_shard"};
    constexpr std::string_view kDegrees[] = {"plan.tensor", "plan.context", "plan.pipeline"};
    return !is_fixed("data") && std::ranges::any_of(kShares, is_about) &&
           std::ranges::any_of(kDegrees, [&](std::string_view key) { return varies(key); });
  }

  // What all combinations of what was given are refused for; nothing where one is not, or for something else,
  // or where there are very many.
  std::optional<Refusal> of_given() const {
    constexpr std::int64_t kMost = 1000;
    std::int64_t combinations = 1;
    for (const SearchAxis& axis : result_.axes) {
      if (axis.given) combinations *= std::min(kMost + 1, static_cast<std::int64_t>(axis.values.size()));
      if (combinations > kMost) return {};
    }
    std::optional<Refusal> first;
    for (std::int64_t number = 0; number < combinations; ++number) {
      std::vector<Override> settings;
      std::int64_t rest = number;
      for (const SearchAxis& axis : result_.axes) {
        if (!axis.given) continue;
        const auto count = static_cast<std::int64_t>(axis.values.size());
        const std::string& value = axis.values[static_cast<std::size_t>(rest % count)];
        settings.emplace_back(fmt::format("{}={}", axis.key, value), axis.where);
        rest /= count;
      }
      try {
        const Study study = request_.read(settings);
        prepare_study(study);
        PlanEvaluator evaluator(study);
        evaluator.bound(evaluator.prepare(study.request));
        return {};
      } catch (const Error& error) {
        if (depends_on_what_varies(error) || (first && first->example != error.message)) return {};
        first = Refusal{combinations, error.message, error.hint};
      }
    }
    return first;
  }

  // Degrees that do not make up the ranks are no reason where others do, nor is what the search varies by
  // itself: what all others are refused for, if that is one thing.
  std::optional<Refusal> of_all_that_is_right() const {
    const Refusal* only = nullptr;
    for (const auto& [reason, refusal] : result_.space.refusals) {
      if (refusal.example.empty() || reason == "degrees" || varies(reason)) continue;
      if (only != nullptr || !refusal.are_alike) return {};
      only = &refusal;
    }
    return only == nullptr ? std::nullopt : std::optional(*only);
  }

  std::vector<LegalValues> of_fixed_keys() const {
    std::vector<LegalValues> found;
    for (const PlanAxis& row : plan_axes()) {
      if (!is_fixed(row.key)) continue;
      std::string key = fmt::format("{}{}", kPrefix, row.key);
      if (std::string legal = legal_values_of(key); !legal.empty())
        found.push_back({std::move(key), std::move(legal)});
    }
    return found;
  }
  // "plan.virtual_stages could be 2 or 4, or plan.schedule could be gpipe".
  static std::string listed(const std::vector<LegalValues>& keys, std::string_view again,
                            std::string_view before, std::string_view behind) {
    std::string text;
    for (const auto& [key, values] : keys)
      text += fmt::format("{}{}{}{}{}", text.empty() ? "" : fmt::format(", or {}", again), key, before,
                          values, behind);
    return text;
  }
  // To some of its values.
  bool is_fixed(std::string_view key) const {
    const SearchAxis* const named = find(request_.axes, fmt::format("{}{}", kPrefix, key));
    return named != nullptr ? named->values != std::vector<std::string>{"any"} : given_.contains(key);
  }

  // Those of the key that legal plans have where it is free, as a list; empty where none is found.
  std::string legal_values_of(const std::string& key) const {
    SearchRequest freed = request_;
    std::erase_if(freed.axes, [&](const SearchAxis& axis) { return axis.key == key; });
    freed.axes.push_back({key, {"any"}, true});
    std::set<std::size_t> legal;  // by place among the values
    bool may_be_more = false;
    try {
      PlanRoom plans(freed);
      const std::vector<std::string>& values = find(plans.space().axes(), key)->values;
      may_be_more = !look_for(legal, plans, key, values);
      constexpr std::size_t kMostNamed = 8;
      std::vector<std::string> named;
      for (const std::size_t value : legal) {
        if (named.size() < kMostNamed) named.push_back(values[value]);
      }
      return listed(std::move(named), may_be_more || legal.size() > kMostNamed);
    } catch (const Error&) {
      return {};  // it cannot be free here, or leaves too large a space
    }
  }
  // False: there are more plans than anybody waits for.
  bool look_for(std::set<std::size_t>& legal, PlanRoom& plans, const std::string& key,
                const std::vector<std::string>& values) const {
    constexpr std::int64_t kMostPrepared = 5'000, kMostVisited = 500'000;
    std::int64_t prepared = 0, visited = 0;
    const auto is_over = [&] {
      return ++visited > kMostVisited || prepared >= kMostPrepared ||
             (request_.stopped && request_.stopped());
    };
    const bool cuts = is_about_cutting({key});
    const SearchSpace& space = plans.space();
    for (std::size_t base = 0; base < space.bases().size(); ++base) {
      const std::vector<SearchAxis>& axes = space.bases()[base].axes;
      const SearchAxis* const freed = find(axes, key);
      if (freed == nullptr) continue;
      const auto visit = [&](std::int64_t point, const PlanRequest& plan, std::int64_t /*cut_alike*/) {
        if (legal.size() == values.size() || is_over()) return Onward::stop;
        const std::size_t own = space.value_index(base, point, static_cast<std::size_t>(freed - axes.data()));
        const auto value =
            static_cast<std::size_t>(std::ranges::find(values, freed->values[own]) - values.begin());
        if (legal.contains(value)) return cuts ? Onward::past_cut_alike : Onward::next;
        ++prepared;
        try {
          PlanEvaluator& evaluator = plans.evaluator(base);
          evaluator.bound(evaluator.prepare(plan));
          legal.insert(value);
          return cuts ? Onward::past_cut_alike : Onward::next;
        } catch (const Error& error) {
          return is_about_cutting(error.keys) ? Onward::past_cut_alike : Onward::next;
        }
      };
      space.for_each(base, visit, [](std::int64_t, const std::string&) {});
    }
    return visited <= kMostVisited && prepared < kMostPrepared;
  }

  static std::string listed(std::vector<std::string> values, bool are_more) {
    if (values.empty()) return {};
    if (are_more) return fmt::format("{} and others", fmt::join(values, ", "));
    const std::string last = std::move(values.back());
    values.pop_back();
    return values.empty() ? last : fmt::format("{} or {}", fmt::join(values, ", "), last);
  }

  // What is about no key of a plan, such as how many ranks a machine can have, stands in the way of plans
  // whose degrees are right, and other values of the search do not help. So do keys that are not about
  // degrees. Nor is what the search varies by itself the reason where something else stands in the way.
  Refusal of_most() const {
    const Refusal* most = nullptr;
    std::tuple<bool, bool, bool, std::int64_t> weight;  // of its reason
    for (const auto& [reason, refusal] : result_.space.refusals) {
      if (refusal.example.empty()) continue;
      const bool otherwise = reason == "not legal" || (reason != "degrees" && !is_about_cutting({reason}));
      const std::tuple here(otherwise, reason != "degrees", !varies(reason), refusal.plans);
      if (most != nullptr && here <= weight) continue;
      most = &refusal;
      weight = here;
    }
    if (most == nullptr) return {};
    // Of the first of many, a hint says nothing of the others.
    return {most->plans, most->example, most->are_alike ? most->hint : ""};
  }

  const SearchRequest& request_;
  const SearchResult& result_;
  const std::map<std::string, std::string, std::less<>>& given_;  // PlanRequest::places
};

}  // namespace

Refusal why_none(const SearchRequest& request, const SearchSpace& space, const SearchResult& result) {
  return WhyNone(request, space, result).tell();
}

std::string main_refusal(const SearchResult& result) {
  const Refusal& why = result.why_none;
  return why.hint.empty() ? why.example : fmt::format("{}; {}", why.example, why.hint);
}

std::string untried_room(const SearchResult& result) {
  // Of what the search varied, all values; of what the user fixed, that of the nearest plan.
  const auto has_tried = [&](std::string_view key, std::string_view value, bool is_nearest) {
    const auto axis = std::ranges::find(result.axes, key, &SearchAxis::key);
    if (axis == result.axes.end()) return is_nearest;
    return std::ranges::find(axis->values, value) != axis->values.end();
  };
  const Plan& plan = result.nearest.value().plan;
  const auto offload = std::ranges::find(result.axes, "plan.offload", &SearchAxis::key);
  std::vector<std::string> untried;
  if (!has_tried("plan.zero", "3", plan.zero_stage == 3)) untried.push_back("plan.zero any");
  if (!has_tried("plan.recompute", "full", plan.recompute == Recompute::full))
    untried.push_back("plan.recompute any");
  const bool is_offloaded = offload == result.axes.end() ? plan.offload_optimizer && plan.offload_activations
                                                         : offload->values.size() > 1;
  if (!is_offloaded) untried.push_back("plan.offload any");
  if (!has_tried("plan.micro_batch", "1", plan.micro_batch() == 1))
    untried.push_back("smaller micro-batches");
  return untried.empty() ? "try more ranks" : fmt::format("try {} or more ranks", fmt::join(untried, ", "));
}

}  // namespace armilla
