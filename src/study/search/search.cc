#include "study/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "base/units_text.h"
#include "study/search/evaluate.h"
#include "study/search/saved_search.h"
#include "study/search/space.h"

namespace armilla {
namespace {

// A legal plan that may be among the best.
struct Candidate {
  std::size_t base = 0;
  std::int64_t point = 0;
  Time bound{};
  Bytes memory{};  // where the search goes by it
  double least_score = 0;
};

double score_of(SearchObjective objective, Time iteration, Bytes memory, const Plan& plan) {
  const double seconds = in_seconds(iteration);
  switch (objective) {
    case SearchObjective::time:
      return static_cast<double>(iteration.value);
    case SearchObjective::throughput:
      return seconds / static_cast<double>(plan.global_batch());
    case SearchObjective::cost:
      return seconds * static_cast<double>(plan.ranks) / static_cast<double>(plan.global_batch());
    case SearchObjective::memory:
      return static_cast<double>(memory.value);
  }
  return 0;
}

class Search {
 public:
  explicit Search(const SearchRequest& request) : request_(request), space_(request) {
    for (const SearchBase& base : space_.bases())
      evaluators_.push_back(std::make_unique<PlanEvaluator>(base.study));
    result_.objective = request.objective;
    result_.axes = space_.axes();
    result_.space.points = space_.points();
  }

  SearchResult run() {
    const auto begin = std::chrono::steady_clock::now();
    // Before anything that takes long.
    if (!request_.save.empty()) saved_.emplace(request_, space_);
    list_candidates();
    simulate_candidates();
    finish();
    result_.elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(result_);
  }

 private:
  void refuse(const std::string& reason, std::int64_t plans, const std::string& example) {
    Refusal& refusal = result_.space.refusals[reason];
    refusal.plans += plans;
    if (refusal.example.empty()) refusal.example = example;
    result_.space.refused += plans;
  }

  // What the message of an Error is about, short enough to count by.
  static std::string reason_of(const Error& error) {
    if (error.keys.empty()) return "not legal";
    return error.keys.front();
  }

  void list_candidates() {
    request_.progress->begin("looking at plans");
    std::int64_t seen = 0;
    std::unordered_set<std::string> known;
    for (std::size_t b = 0; b < space_.bases().size(); ++b) {
      const auto visit = [&](std::int64_t point, const PlanRequest& plan) {
        consider(b, point, plan, known);
        request_.progress->update(static_cast<double>(++seen) / static_cast<double>(result_.space.points));
      };
      const auto skip = [&](std::int64_t points, const std::string& why) {
        seen += points;
        refuse("degrees", points, why);
      };
      space_.for_each(b, visit, skip);
    }
    // The order in which they are simulated: whatever cannot be beaten first.
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.least_score, a.base, a.point) < std::tuple(b.least_score, b.base, b.point);
    });
  }

  void consider(std::size_t base, std::int64_t point, const PlanRequest& request,
                std::unordered_set<std::string>& known) {
    try {
      PlanEvaluator& evaluator = *evaluators_[base];
      const PlanPrepared plan = evaluator.prepare(request);
      if (!known.insert(fmt::format("{} {}", base, text_of(plan.study.plan))).second) {
        refuse("equal", 1, "");
        return;
      }
      Candidate candidate{base, point, evaluator.bound(plan)};
      if (request_.deadline && candidate.bound > *request_.deadline) {
        refuse("deadline", 1, "");
        return;
      }
      // Else memory is looked at when it is the plan's turn: most never come to that.
      if (request_.front || request_.objective == SearchObjective::memory) {
        const MemoryUse memory = evaluator.memory(plan);
        if (!fits(candidate, plan, memory)) return;
        candidate.memory = memory.needed();
      }
      candidate.least_score =
          score_of(request_.objective, candidate.bound, candidate.memory, plan.study.plan);
      candidates_.push_back(candidate);
    } catch (const Error& error) {
      refuse(reason_of(error), 1, error.message);
    }
  }

  bool fits(const Candidate& candidate, const PlanPrepared& plan, const MemoryUse& memory) {
    const double allowed = request_.memory_share * static_cast<double>(memory.capacity.value);
    if (static_cast<double>(memory.needed().value) <= allowed) return true;
    refuse("memory", 1, fmt::format("needs {}, of {}", to_text(memory.needed()), to_text(memory.capacity)));
    const auto place = std::tuple(memory.needed(), candidate.base, candidate.point);
    if (result_.nearest && place >= nearest_) return false;
    nearest_ = place;
    PlanOutcome& nearest = result_.nearest.emplace();
    nearest.plan = plan.study.plan;
    nearest.machine = plan.study.machine.name;
    nearest.memory = memory;
    nearest.bound = candidate.bound;
    nearest.values = space_.values_of(candidate.base, candidate.point);
    return false;
  }

  // Whether what is known says that this plan is not asked for.
  bool is_beaten(const Candidate& candidate) const {
    if (request_.brute_force) return false;
    if (request_.front) {
      // Where another needs no more memory and less time than this one can take.
      const auto after = front_.upper_bound(candidate.memory);
      const bool dominated = after != front_.begin() && std::prev(after)->second < candidate.bound;
      if (!dominated) return false;
    }
    if (best_.size() < static_cast<std::size_t>(request_.top)) return false;
    return candidate.least_score > *best_.rbegin();
  }

  void note(const PlanOutcome& outcome) {
    best_.insert(score_of(request_.objective, outcome.iteration, outcome.memory.needed(), outcome.plan));
    if (best_.size() > static_cast<std::size_t>(request_.top)) best_.erase(std::prev(best_.end()));
    // The front: least time by memory, falling.
    const Bytes memory = outcome.memory.needed();
    const auto after = front_.upper_bound(memory);
    if (after != front_.begin() && std::prev(after)->second <= outcome.iteration) return;
    auto at = front_.insert_or_assign(memory, outcome.iteration).first;
    for (++at; at != front_.end() && at->second >= outcome.iteration;) at = front_.erase(at);
  }

  // With everything that is known of it before, whether it fits or not.
  PlanOutcome simulate(const Candidate& candidate, const PlanPrepared& plan, const MemoryUse& memory) {
    PlanOutcome outcome = evaluators_[candidate.base]->simulate(plan);
    complete(outcome, candidate, memory);
    return outcome;
  }
  void complete(PlanOutcome& outcome, const Candidate& candidate, const MemoryUse& memory) const {
    outcome.memory = memory;
    outcome.bound = candidate.bound;
    outcome.values = space_.values_of(candidate.base, candidate.point);
  }

  // Throws Error for a plan that is refused, also when it was before.
  PlanOutcome look_up_or_simulate(const Candidate& candidate, const PlanPrepared& plan,
                                  const MemoryUse& memory) {
    if (!saved_) return simulate(candidate, plan, memory);
    {
      const std::lock_guard lock(mutex_);
      if (const SavedOutcome* const saved = saved_->find(candidate.base, candidate.point)) {
        if (saved->is_refused()) throw Error("", saved->message, {}, {saved->reason});
        ++result_.space.resumed;
        PlanOutcome outcome;
        outcome.plan = plan.study.plan;
        outcome.machine = plan.study.machine.name;
        outcome.iteration = saved->iteration;
        outcome.compute = saved->compute;
        outcome.exposed_communication = saved->exposed_communication;
        complete(outcome, candidate, memory);
        return outcome;
      }
    }
    const auto save = [&](const SavedOutcome& outcome) {
      const std::lock_guard lock(mutex_);
      std::string settings;
      const std::vector<std::string> values = space_.values_of(candidate.base, candidate.point);
      for (std::size_t axis = 0; axis < values.size(); ++axis)
        settings += fmt::format("{}{}={}", axis > 0 ? " " : "", space_.axes()[axis].key, values[axis]);
      saved_->add(candidate.base, candidate.point, outcome, settings);
    };
    try {
      PlanOutcome outcome = simulate(candidate, plan, memory);
      save({outcome.iteration, outcome.compute, outcome.exposed_communication, {}, {}});
      return outcome;
    } catch (const Error& error) {
      save({{}, {}, {}, reason_of(error), error.message});
      throw;
    }
  }

  void simulate_candidates() {
    request_.progress->begin("simulating plans");
    const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
    const std::int64_t threads = std::max<std::int64_t>(request_.threads > 0 ? request_.threads : cores, 1);
    std::size_t next = 0;
    std::exception_ptr failed;
    const auto work = [&] {
      for (;;) {
        std::size_t mine = 0;
        {
          const std::lock_guard lock(mutex_);
          if (failed || (request_.stopped && request_.stopped())) {
            if (next < candidates_.size()) result_.complete = false;
            return;
          }
          for (; next < candidates_.size() && is_beaten(candidates_[next]); ++next) ++result_.space.bounded;
          if (next == candidates_.size()) return;
          mine = next++;
          request_.progress->update(static_cast<double>(next) / static_cast<double>(candidates_.size()));
        }
        const Candidate& candidate = candidates_[mine];
        try {
          PlanEvaluator& evaluator = *evaluators_[candidate.base];
          const PlanPrepared plan = evaluator.prepare(space_.request_of(candidate.base, candidate.point));
          const MemoryUse memory = evaluator.memory(plan);
          {
            const std::lock_guard lock(mutex_);
            if (!fits(candidate, plan, memory)) continue;
          }
          PlanOutcome outcome = look_up_or_simulate(candidate, plan, memory);
          const std::lock_guard lock(mutex_);
          if (request_.deadline && outcome.iteration > *request_.deadline) {
            refuse("deadline", 1, "");
            continue;
          }
          ++result_.space.simulated;
          note(outcome);
          points_.emplace_back(candidate.base, candidate.point);
          result_.simulated.push_back(std::move(outcome));
        } catch (const Error& error) {
          const std::lock_guard lock(mutex_);
          refuse(reason_of(error), 1, error.message);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          failed = std::current_exception();
        }
      }
    };
    std::vector<std::thread> others;
    for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    if (failed) std::rethrow_exception(failed);
    if (!result_.complete) {
      const std::int64_t left =
          result_.space.points - result_.space.refused - result_.space.bounded - result_.space.simulated;
      refuse("not looked at", left, "");
    }
  }

  // Equally good plans go by memory, then by the order of the space.
  void finish() {
    std::vector<std::size_t> order(result_.simulated.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](std::size_t i) {
      const PlanOutcome& plan = result_.simulated[i];
      return std::tuple(score_of(request_.objective, plan.iteration, plan.memory.needed(), plan.plan),
                        plan.iteration, plan.memory.needed(), points_[i]);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    std::vector<PlanOutcome> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(result_.simulated[i]));
    result_.simulated = std::move(sorted);
    const auto top = std::min<std::size_t>(result_.simulated.size(), static_cast<std::size_t>(request_.top));
    result_.ranking.assign(result_.simulated.begin(),
                           result_.simulated.begin() + static_cast<std::ptrdiff_t>(top));
    list_front();
    if (result_.simulated.empty()) return;
    result_.nearest.reset();
    if (request_.explain) list_neighbours(points_[order.front()]);
  }

  void list_front() {
    std::vector<const PlanOutcome*> plans;
    for (const PlanOutcome& plan : result_.simulated) plans.push_back(&plan);
    std::stable_sort(plans.begin(), plans.end(), [](const PlanOutcome* a, const PlanOutcome* b) {
      return std::tuple(a->memory.needed(), a->iteration) < std::tuple(b->memory.needed(), b->iteration);
    });
    for (const PlanOutcome* const plan : plans) {
      if (result_.front.empty() || plan->iteration < result_.front.back().iteration)
        result_.front.push_back(*plan);
    }
  }

  void list_neighbours(const std::pair<std::size_t, std::int64_t>& best) {
    request_.progress->begin("simulating the neighbours of the best");
    const SearchBase& base = space_.bases()[best.first];
    for (std::size_t axis = 0; axis < base.axes.size(); ++axis) {
      const std::size_t own = space_.value_index(best.first, best.second, axis);
      for (std::size_t value = 0; value < base.axes[axis].values.size(); ++value) {
        if (value == own) continue;
        Neighbour neighbour{base.axes[axis].key, base.axes[axis].values[value]};
        try {
          PlanEvaluator& evaluator = *evaluators_[best.first];
          const Candidate other{best.first, space_.changed(best.first, best.second, axis, value)};
          const PlanPrepared plan = evaluator.prepare(space_.request_of(other.base, other.point));
          neighbour.outcome = simulate(other, plan, evaluator.memory(plan));
          neighbour.outcome->bound = evaluator.bound(plan);
        } catch (const Error& error) {
          neighbour.refusal = error.message;
        }
        result_.neighbours.push_back(std::move(neighbour));
      }
    }
  }

  const SearchRequest& request_;
  SearchSpace space_;
  std::optional<SavedSearch> saved_;
  std::vector<std::unique_ptr<PlanEvaluator>> evaluators_;  // per base
  std::vector<Candidate> candidates_;
  SearchResult result_;
  std::mutex mutex_;  // of what workers share: all below, result_, and `next` of simulate_candidates
  std::multiset<double> best_;                                // scores of the best so far, at most `top`
  std::map<Bytes, Time> front_;                               // of memory and time so far
  std::tuple<Bytes, std::size_t, std::int64_t> nearest_;      // where result_.nearest stands
  std::vector<std::pair<std::size_t, std::int64_t>> points_;  // of result_.simulated, as they came
};

}  // namespace

SearchResult search_plans(const SearchRequest& request) {
  if (request.top < 1) throw Error("--top", "must be at least 1");
  return Search(request).run();
}

std::vector<Override> settings_of(const SearchResult& result, const PlanOutcome& plan) {
  std::vector<Override> settings;
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
    if (!plan.values[axis].empty())
      settings.emplace_back(fmt::format("{}={}", result.axes[axis].key, plan.values[axis]));
  }
  return settings;
}

}  // namespace armilla
