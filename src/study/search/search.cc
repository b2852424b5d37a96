#include "study/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "base/units_text.h"
#include "lower/memory.h"
#include "study/search/evaluate.h"
#include "study/search/saved_search.h"
#include "study/search/space.h"
#include "study/spread.h"

namespace armilla {
namespace {

using Outcome = nlohmann::json;

// A legal plan that may be among the best. There are many of these: what they say again is worked out again.
struct Candidate {
  std::size_t base = 0;
  std::int64_t point = 0;
  Time bound{};
  Bytes memory{};  // where the search goes by it
  std::int64_t ranks = 0, samples = 0;
  double least_score = 0;
};

// One that was simulated.
struct Simulated {
  Candidate candidate;
  Time iteration, compute, exposed_communication;
  MemoryUse memory;
};

double score_of(SearchObjective objective, Time iteration, Bytes memory, const Candidate& plan) {
  const double seconds = in_seconds(iteration);
  switch (objective) {
    case SearchObjective::time:
      return static_cast<double>(iteration.value);
    case SearchObjective::throughput:
      return seconds / static_cast<double>(plan.samples);
    case SearchObjective::cost:
      return seconds * static_cast<double>(plan.ranks) / static_cast<double>(plan.samples);
    case SearchObjective::memory:
      return static_cast<double>(memory.value);
  }
  return 0;
}

// What the message of an Error is about, short enough to count by.
std::string reason_of(const Error& error) {
  if (error.keys.empty()) return "not legal";
  return error.keys.front();
}

Outcome memory_json(const MemoryUse& use) {
  Outcome json = Outcome::array();
  for (const Bytes bytes :
       {use.weights, use.gradients, use.optimizer, use.activations, use.communication_buffers, use.temporary,
        use.fragmentation, use.capacity, use.framework})
    json.push_back(bytes.value);
  return json;
}
MemoryUse memory_in(const Outcome& json) {
  const auto part = [&](std::size_t i) { return Bytes(json.at(i).get<std::int64_t>()); };
  return {part(0), part(1), part(2), part(3), part(4), part(5), part(6), part(7), part(8)};
}

// The plans of a space, one by one: what runners need to know of it.
class PlanRoom {
 public:
  explicit PlanRoom(const SearchRequest& request) : space_(request), memory_share_(request.memory_share) {
    for (const SearchBase& base : space_.bases())
      evaluators_.push_back(std::make_unique<PlanEvaluator>(base.study));
    if (space_.bases().size() > kMostBases)
      throw Error("machine", "too many combinations of machines and ranks", "list fewer");
  }

  const SearchSpace& space() const { return space_; }
  PlanEvaluator& evaluator(std::size_t base) { return *evaluators_[base]; }
  PlanPrepared prepare(std::size_t base, std::int64_t point) {
    return evaluators_[base]->prepare(space_.request_of(base, point));
  }

  // That a plan may take.
  Bytes room(const MemoryUse& memory) const {
    return Bytes(static_cast<std::int64_t>(memory_share_ * static_cast<double>(memory.capacity.value)));
  }
  bool fits(const MemoryUse& memory) const { return memory.needed() <= room(memory); }

  // The number of a plan as a piece of work; of one whose time is known, for its memory alone.
  static std::int64_t piece_of(std::size_t base, std::int64_t point, bool memory_alone) {
    return (static_cast<std::int64_t>(base) << (kPointBits + 1)) |
           (memory_alone ? std::int64_t{1} << kPointBits : 0) | point;
  }
  // What comes of it: its memory; its times, where it fits and they were asked for; or why it is refused.
  std::string perform(std::int64_t piece) {
    const auto base = static_cast<std::size_t>(piece >> (kPointBits + 1));
    const bool memory_alone = (piece >> kPointBits & 1) != 0;
    const std::int64_t point = piece & ((std::int64_t{1} << kPointBits) - 1);
    Outcome outcome = Outcome::object();
    try {
      const PlanPrepared plan = prepare(base, point);
      const MemoryUse memory = evaluators_[base]->memory(plan);
      outcome["memory"] = memory_json(memory);
      if (fits(memory) && !memory_alone) {
        const PlanOutcome times = evaluators_[base]->simulate(plan);
        outcome["iteration"] = times.iteration.value;
        outcome["compute"] = times.compute.value;
        outcome["exposed"] = times.exposed_communication.value;
      }
    } catch (const Error& error) {
      outcome["reason"] = reason_of(error);
      outcome["message"] = error.message;
    }
    return outcome.dump(-1, ' ', false, Outcome::error_handler_t::replace);
  }

 private:
  static constexpr int kPointBits = 41;  // of space.h's kMostPoints, and one more
  static constexpr std::size_t kMostBases = 1 << 20;

  SearchSpace space_;
  double memory_share_;
  std::vector<std::unique_ptr<PlanEvaluator>> evaluators_;  // per base
};

class Search {
 public:
  Search(const SearchRequest& request, PlanRoom& plans, Crew& crew)
      : request_(request), plans_(plans), space_(plans.space()), crew_(crew) {
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

  void list_candidates() {
    request_.progress->begin("looking at plans");
    std::int64_t seen = 0;
    std::unordered_set<std::string> known;
    for (std::size_t b = 0; b < space_.bases().size(); ++b) {
      const auto visit = [&](std::int64_t point, const PlanRequest& plan, std::int64_t cut_alike) {
        const bool goes_on = consider(b, point, plan, cut_alike, known);
        seen += goes_on ? 1 : 1 + cut_alike;
        request_.progress->update(static_cast<double>(seen) / static_cast<double>(result_.space.points));
        return goes_on;
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

  // Whether the others that are cut alike can be any better.
  bool consider(std::size_t base, std::int64_t point, const PlanRequest& request, std::int64_t cut_alike,
                std::unordered_set<std::string>& known) {
    try {
      PlanEvaluator& evaluator = plans_.evaluator(base);
      const PlanPrepared plan = evaluator.prepare(request);
      if (!known.insert(fmt::format("{} {}", base, text_of(plan.study.plan))).second) {
        refuse("equal", 1, "");
        return true;
      }
      Candidate candidate{base, point, evaluator.bound(plan)};
      candidate.ranks = plan.study.plan.ranks;
      candidate.samples = plan.study.plan.global_batch();
      if (is_late(candidate)) return true;
      // Else memory is looked at when it is the plan's turn: most never come to that.
      if (request_.front || request_.objective == SearchObjective::memory) {
        const MemoryUse memory = evaluator.memory(plan);
        if (!fits(candidate, memory)) return true;
        candidate.memory = memory.needed();
      }
      candidate.least_score = score_of(request_.objective, candidate.bound, candidate.memory, candidate);
      candidates_.push_back(candidate);
    } catch (const Error& error) {
      const bool all = is_about_cutting(error.keys);
      refuse(reason_of(error), all ? 1 + cut_alike : 1, error.message);
      return !all;
    }
    return true;
  }

  bool fits(const Candidate& candidate, const MemoryUse& memory) {
    if (plans_.fits(memory)) return true;
    refuse("memory", 1,
           fmt::format("needs {}, of {}", to_text(memory.needed()), to_text(plans_.room(memory))));
    note_unfit(candidate, memory);
    return false;
  }

  void note_unfit(const Candidate& candidate, const MemoryUse& memory) {
    const auto place = [](const Simulated& plan) {
      return std::tuple(plan.memory.needed(), plan.candidate.base, plan.candidate.point);
    };
    const Simulated plan{candidate, {}, {}, {}, memory};
    if (!nearest_ || place(plan) < place(*nearest_)) nearest_ = plan;
  }

  bool is_stopped() {
    if (request_.stopped && request_.stopped()) result_.complete = false;
    return !result_.complete;
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

  void note(const Simulated& plan) {
    best_.insert(score_of(request_.objective, plan.iteration, plan.memory.needed(), plan.candidate));
    if (best_.size() > static_cast<std::size_t>(request_.top)) best_.erase(std::prev(best_.end()));
    // The front: least time by memory, falling.
    const Bytes memory = plan.memory.needed();
    const auto after = front_.upper_bound(memory);
    if (after != front_.begin() && std::prev(after)->second <= plan.iteration) return;
    auto at = front_.insert_or_assign(memory, plan.iteration).first;
    for (++at; at != front_.end() && at->second >= plan.iteration;) at = front_.erase(at);
  }

  // Refuses it where it is.
  bool is_late(const Candidate& candidate) {
    if (!request_.deadline || candidate.bound <= *request_.deadline) return false;
    refuse("deadline", 1,
           fmt::format("takes at least {}, of {}", to_text(candidate.bound), to_text(*request_.deadline)));
    late_.push_back(candidate);
    return true;
  }

  // With the bound that takes longer; false: it is refused by it.
  bool refine(Candidate& candidate) {
    try {
      PlanEvaluator& evaluator = plans_.evaluator(candidate.base);
      const Time bound = evaluator.slot_bound(plans_.prepare(candidate.base, candidate.point));
      candidate.bound = std::max(candidate.bound, bound);
    } catch (const Error& error) {
      refuse(reason_of(error), 1, error.message);
      return false;
    }
    candidate.least_score = score_of(request_.objective, candidate.bound, candidate.memory, candidate);
    return !is_late(candidate);
  }

  // Of all that are left, the one whose bound is least once it is refined; or nothing.
  std::optional<std::size_t> next_candidate() {
    const auto is_later = [&](std::size_t a, std::size_t b) {
      return std::tuple(candidates_[a].least_score, a) > std::tuple(candidates_[b].least_score, b);
    };
    for (std::size_t refined_in_a_row = 0;;) {
      const bool refined_first =
          !refined_.empty() && (coarse_ == candidates_.size() || !is_later(refined_.front(), coarse_));
      if (refined_first) {
        std::ranges::pop_heap(refined_, is_later);
        const std::size_t candidate = refined_.back();
        refined_.pop_back();
        return candidate;
      }
      constexpr std::size_t kAskAfter = 64;  // refined in a row
      if (coarse_ == candidates_.size() || (++refined_in_a_row % kAskAfter == 0 && is_stopped()))
        return std::nullopt;
      const std::size_t candidate = coarse_++;
      if (is_beaten(candidates_[candidate])) {
        ++result_.space.bounded;
      } else if (refine(candidates_[candidate])) {
        refined_.push_back(candidate);
        std::ranges::push_heap(refined_, is_later);
      }
    }
  }

  void simulate_candidates() {
    request_.progress->begin("simulating plans");
    std::size_t looked_at = 0;
    std::map<std::int64_t, std::size_t> under_way;  // pieces, and the candidates that they are
    Piecework work;
    work.next = [&]() -> std::optional<std::int64_t> {
      for (;;) {
        if (is_stopped()) return std::nullopt;
        const std::optional<std::size_t> next = next_candidate();
        if (!next) return std::nullopt;
        const Candidate& candidate = candidates_[*next];
        if (is_beaten(candidate)) {
          ++result_.space.bounded;
          continue;
        }
        const SavedOutcome* const saved = saved_ ? saved_->find(candidate.base, candidate.point) : nullptr;
        if (saved && saved->is_refused()) {
          refuse(saved->reason, 1, saved->message);
          continue;
        }
        request_.progress->update(static_cast<double>(++looked_at + result_.space.bounded) /
                                  static_cast<double>(candidates_.size()));
        const std::int64_t piece = PlanRoom::piece_of(candidate.base, candidate.point, saved != nullptr);
        under_way.emplace(piece, *next);
        return piece;
      }
    };
    work.perform = [&](std::int64_t piece) { return plans_.perform(piece); };
    work.finish = [&](std::int64_t piece, const std::string& text) {
      const auto at = under_way.find(piece);
      const Candidate candidate = candidates_[at->second];
      under_way.erase(at);
      take(candidate, Outcome::parse(text));
    };
    work.give_up = [&](std::int64_t piece, const std::string& how) {
      under_way.erase(piece);
      refuse("died", 1, fmt::format("{} processes died of it: {}", kMostDeaths, how));
    };
    crew_.share_out(work);
    if (!result_.complete) {
      const std::int64_t left =
          result_.space.points - result_.space.refused - result_.space.bounded - result_.space.simulated;
      refuse("not looked at", left, "");
    }
  }

  // What came of a candidate.
  void take(const Candidate& candidate, const Outcome& outcome) {
    if (outcome.contains("reason")) {
      const SavedOutcome refused{{}, {}, {}, outcome.at("reason"), outcome.at("message")};
      save(candidate, refused);
      return refuse(refused.reason, 1, refused.message);
    }
    const MemoryUse memory = memory_in(outcome.at("memory"));
    if (!fits(candidate, memory)) return;
    Simulated plan{candidate, {}, {}, {}, memory};
    if (outcome.contains("iteration")) {
      plan.iteration = Time(outcome.at("iteration"));
      plan.compute = Time(outcome.at("compute"));
      plan.exposed_communication = Time(outcome.at("exposed"));
      save(candidate, {plan.iteration, plan.compute, plan.exposed_communication, {}, {}});
    } else {
      const SavedOutcome& saved = *saved_->find(candidate.base, candidate.point);
      plan.iteration = saved.iteration;
      plan.compute = saved.compute;
      plan.exposed_communication = saved.exposed_communication;
      ++result_.space.resumed;
    }
    if (request_.deadline && plan.iteration > *request_.deadline) {
      if (!fastest_late_ || plan.iteration < fastest_late_->iteration) fastest_late_ = plan;
      return refuse("deadline", 1,
                    fmt::format("takes {}, of {}", to_text(plan.iteration), to_text(*request_.deadline)));
    }
    ++result_.space.simulated;
    note(plan);
    simulated_.push_back(plan);
  }

  void save(const Candidate& candidate, const SavedOutcome& outcome) {
    if (!saved_) return;
    std::string settings;
    const std::vector<std::string> values = space_.values_of(candidate.base, candidate.point);
    for (std::size_t axis = 0; axis < values.size(); ++axis)
      settings += fmt::format("{}{}={}", axis > 0 ? " " : "", space_.axes()[axis].key, values[axis]);
    saved_->add(candidate.base, candidate.point, outcome, settings);
  }

  // With everything that there is to say of it.
  PlanOutcome outcome_of(const Simulated& plan) {
    const PlanPrepared prepared = plans_.prepare(plan.candidate.base, plan.candidate.point);
    PlanOutcome outcome;
    outcome.values = space_.values_of(plan.candidate.base, plan.candidate.point);
    outcome.plan = prepared.study.plan;
    outcome.machine = prepared.study.machine.name;
    outcome.iteration = plan.iteration;
    outcome.bound = plan.candidate.bound;
    outcome.memory = plan.memory;
    outcome.compute = plan.compute;
    outcome.exposed_communication = plan.exposed_communication;
    return outcome;
  }

  // Equally good plans go by memory, then by the order of the space.
  void finish() {
    const auto key = [&](const Simulated& plan) {
      return std::tuple(score_of(request_.objective, plan.iteration, plan.memory.needed(), plan.candidate),
                        plan.iteration, plan.memory.needed(), plan.candidate.base, plan.candidate.point);
    };
    std::sort(simulated_.begin(), simulated_.end(),
              [&](const Simulated& a, const Simulated& b) { return key(a) < key(b); });
    for (const Simulated& plan : simulated_) result_.simulated.push_back(outcome_of(plan));
    const auto top = std::min<std::size_t>(result_.simulated.size(), static_cast<std::size_t>(request_.top));
    result_.ranking.assign(result_.simulated.begin(),
                           result_.simulated.begin() + static_cast<std::ptrdiff_t>(top));
    list_front();
    if (simulated_.empty()) return find_what_comes_near();
    const Candidate& best = simulated_.front().candidate;
    if (request_.explain) list_neighbours({best.base, best.point});
  }

  // Where no plan is left.
  void find_what_comes_near() {
    if (!result_.complete) return;
    find_fastest_late();
    if (!result_.complete) return;
    if (fastest_late_) {
      result_.late = outcome_of(*fastest_late_);
    } else if (nearest_) {
      result_.nearest = outcome_of(*nearest_);
      result_.nearest_room = plans_.room(nearest_->memory);
      const PlanPrepared plan = plans_.prepare(nearest_->candidate.base, nearest_->candidate.point);
      Device device = plan.study.machine.device;
      device.memory = result_.nearest_room;
      result_.nearest_changes = memory_advice(*plan.model, plan.study.plan, device);
    }
  }

  // Of those that their bounds have refused, one after the other.
  void find_fastest_late() {
    std::ranges::sort(late_, {},
                      [](const Candidate& late) { return std::tuple(late.bound, late.base, late.point); });
    for (const Candidate& candidate : late_) {
      if (fastest_late_ && fastest_late_->iteration <= candidate.bound) return;
      if (is_stopped()) return;
      const Outcome outcome =
          Outcome::parse(plans_.perform(PlanRoom::piece_of(candidate.base, candidate.point, false)));
      if (!outcome.contains("iteration")) {
        if (outcome.contains("memory")) note_unfit(candidate, memory_in(outcome.at("memory")));
        continue;
      }
      const Simulated plan{candidate, Time(outcome.at("iteration")), Time(outcome.at("compute")),
                           Time(outcome.at("exposed")), memory_in(outcome.at("memory"))};
      if (!fastest_late_ || plan.iteration < fastest_late_->iteration) fastest_late_ = plan;
    }
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
          PlanEvaluator& evaluator = plans_.evaluator(best.first);
          const std::int64_t point = space_.changed(best.first, best.second, axis, value);
          const PlanPrepared plan = plans_.prepare(best.first, point);
          PlanOutcome outcome = evaluator.simulate(plan);
          outcome.values = space_.values_of(best.first, point);
          outcome.memory = evaluator.memory(plan);
          outcome.bound = evaluator.bound(plan);
          neighbour.outcome = std::move(outcome);
        } catch (const Error& error) {
          neighbour.refusal = error.message;
        }
        result_.neighbours.push_back(std::move(neighbour));
      }
    }
  }

  const SearchRequest& request_;
  PlanRoom& plans_;
  const SearchSpace& space_;
  Crew& crew_;
  std::optional<SavedSearch> saved_;
  std::vector<Candidate> candidates_;  // by their first bounds
  std::size_t coarse_ = 0;             // the first whose bound is not refined
  std::vector<std::size_t> refined_;   // a heap of those whose bound is and that are not looked at, by it
  SearchResult result_;
  std::multiset<double> best_;        // scores of the best so far, at most `top`
  std::map<Bytes, Time> front_;       // of memory and time so far
  std::optional<Simulated> nearest_;  // of what does not fit: what needs least
  std::vector<Candidate> late_;       // beyond the deadline by their bounds
  std::optional<Simulated> fastest_late_;
  std::vector<Simulated> simulated_;  // as they came
};

}  // namespace

SearchResult search_plans(const SearchRequest& request) {
  Crew crew(request.threads);
  return search_plans(request, crew);
}

SearchResult search_plans(const SearchRequest& request, Crew& crew) {
  if (request.top < 1) throw Error("--top", "must be at least 1");
  if (!(request.memory_share > 0))
    throw Error("--memory-share", "leaves no memory", "give a share above 0, such as 0.9");
  if (request.deadline && *request.deadline <= Time(0))
    throw Error("--deadline", "leaves no time", "give a time above 0, such as 2s");
  PlanRoom plans(request);
  if (crew.serves()) crew.serve([&](std::int64_t piece) { return plans.perform(piece); });
  return Search(request, plans, crew).run();
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
