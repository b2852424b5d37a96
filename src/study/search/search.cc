#include "study/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "base/units_text.h"
#include "ir/derived/expense.h"
#include "lower/memory.h"
#include "lower/pipeline_schedule.h"
#include "lower/plan.h"
#include "network/network.h"
#include "study/search/check_figures.h"
#include "study/search/evaluate.h"
#include "study/search/explain.h"
#include "study/search/foresee.h"
#include "study/search/limits.h"
#include "study/search/plan_room.h"
#include "study/search/saved_search.h"
#include "study/search/space.h"
#include "study/search/why_none.h"
#include "study/spread.h"

namespace armilla {
namespace {

// A legal plan that may be among the best. There are many of these: what they say again is worked out again.
struct Candidate {
  std::size_t base = 0;
  std::int64_t point = 0;
  Time bound{};
  Bytes memory{};        // where the search goes by it
  double computing = 0;  // likewise: what all ranks compute at least, in picoseconds
  std::int64_t ranks = 0, samples = 0;
  double least_score = 0;
  double about = 0;  // score, once the bound is refined
  PlanSize size() const { return {base, ranks, samples}; }
};

// One that was simulated.
struct Simulated {
  Candidate candidate;
  Time iteration, compute, exposed_communication;
  std::optional<Energy> energy;
  MemoryUse memory;
};

// In each of the objectives, the least of what a plan can be, or what it is.
using Scores = std::vector<double>;

// Whether no plan with scores of at least `least` can be on the front beside one with these.
bool dominates(const Scores& scores, const Scores& least) {
  bool better = false;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > least[i]) return false;
    better |= scores[i] < least[i];
  }
  return better;
}

class Search {
 public:
  Search(const SearchRequest& request, PlanRoom& plans, Crew& crew)
      : request_(request), plans_(plans), space_(plans.space()), limits_(request, space_), crew_(crew) {
    result_.objective = request.objective;
    if (request.objective == SearchObjective::throughput) result_.front_of.front() = request.objective;
    if (!request.front.empty()) result_.front_of = request.front;
    result_.whole_front = !request.front.empty();
    result_.budget = request.budget;
    result_.tokens_per_sample = space_.bases().front().model.sequence;
    result_.axes = space_.axes();
    result_.space.points = space_.points();
  }

  SearchResult run() {
    const auto begin = std::chrono::steady_clock::now();
    // Before anything that takes long.
    if (!request_.save.empty()) saved_.emplace(request_, space_);
    check_patience(foresee(), request_.patience);
    simulate_candidates();
    finish();
    result_.elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(result_);
  }

  ForeseenRuns foresee() {
    list_candidates();
    return result_.complete ? foreseen_plans() : ForeseenRuns{};
  }

 private:
  void refuse(const std::string& reason, std::int64_t plans, const std::string& example,
              const std::string& hint = "") {
    Refusal& refusal = result_.space.refusals[reason];
    refusal.plans += plans;
    if (refusal.example.empty()) {
      refusal.example = example;
      refusal.hint = hint;
    }
    refusal.are_alike = refusal.are_alike && refusal.example == example;
    result_.space.refused += plans;
  }

  // "best 2.404 s, 91 % refused (memory 60 %), 8 % slower, 24 plans/s"
  void tell_so_far() {
    const SearchSpaceUse& use = result_.space;
    const auto share = [&](std::int64_t plans) {
      return static_cast<double>(plans) / static_cast<double>(use.points);
    };
    std::string text = best_time_ ? fmt::format("best {}, ", to_text(*best_time_)) : std::string();
    text += fmt::format("{:.0f} % refused", 100 * share(use.refused));
    const auto most =
        std::ranges::max_element(use.refusals, {}, [](const auto& refusal) { return refusal.second.plans; });
    if (most != use.refusals.end())
      text += fmt::format(" ({} {:.0f} %)", most->first, 100 * share(most->second.plans));
    text += fmt::format(", {:.0f} % slower", 100 * share(use.bounded));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - simulating_since_).count();
    if (best_time_ && seconds > 0)
      text += fmt::format(", {:.3g} plans/s", static_cast<double>(use.simulated) / seconds);
    request_.progress->remark(text);
  }

  void list_candidates() {
    request_.progress->begin("looking at plans");
    constexpr std::int64_t kTellEvery = 1024;
    std::int64_t seen = 0, visited = 0;
    std::unordered_set<std::string> known;
    for (std::size_t b = 0; b < space_.bases().size(); ++b) {
      const auto visit = [&](std::int64_t point, const PlanRequest& plan, std::int64_t cut_alike) {
        if (++visited % kTellEvery == 0) {
          tell_so_far();
          is_stopped();
        }
        if (!result_.complete) return Onward::stop;
        const bool goes_on = consider(b, point, plan, cut_alike, known);
        // Plans that are cut alike are not visited if this one's error is about cutting: they count as seen.
        seen += goes_on ? 1 : 1 + cut_alike;
        request_.progress->update(static_cast<double>(seen) / static_cast<double>(result_.space.points));
        return goes_on ? Onward::next : Onward::past_cut_alike;
      };
      const auto skip = [&](std::int64_t points, const std::string& why) {
        if (!result_.complete) return;
        seen += points;
        refuse("degrees", points, why);
      };
      space_.for_each(b, visit, skip);
    }
    // The order in which they are looked at: whatever cannot be beaten first.
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
      // Requests may differ and settle on one plan: it is looked at once.
      if (!known.insert(fmt::format("{} {}", base, text_of(plan))).second) {
        refuse("equal", 1, "");
        return true;
      }
      Candidate candidate{base, point, evaluator.bound(plan)};
      candidate.ranks = plan.plan.ranks;
      candidate.samples = plan.plan.global_batch();
      if (result_.most_samples == 0) result_.fewest_samples = candidate.samples;
      result_.fewest_samples = std::min(result_.fewest_samples, candidate.samples);
      result_.most_samples = std::max(result_.most_samples, candidate.samples);
      if (goes_by(SearchObjective::energy)) candidate.computing = evaluator.computing_bound(plan);
      if (is_beyond_limits(candidate)) return true;
      // Else memory is looked at when it is the plan's turn: most never come to that.
      if (goes_by(SearchObjective::memory)) {
        const MemoryUse memory = evaluator.memory(plan);
        if (!fits(candidate, memory)) return true;
        candidate.memory = memory.needed();
      }
      candidate.least_score = score_of(request_.objective, least_figures(candidate));
      candidates_.push_back(candidate);
    } catch (const Error& error) {
      refuse_all_plans(space_, request, error);
      const bool all = is_about_cutting(error.keys);
      refuse(reason_of(error), all ? 1 + cut_alike : 1, error.message, error.hint);
      return !all;
    }
    return true;
  }

  bool goes_by(SearchObjective objective) const { return armilla::goes_by(request_, objective); }

  const Machine& machine_of(const Candidate& plan) const { return space_.bases()[plan.base].study.machine; }
  // What the plan takes at least, and what it took.
  PlanFigures least_figures(const Candidate& plan) const {
    const double joules = goes_by(SearchObjective::energy)
                              ? least_energy(machine_of(plan), plan.ranks, plan.bound, plan.computing)
                              : 0;
    return {plan.bound, plan.memory, limits_.dollars(plan.size(), plan.bound), joules, plan.samples};
  }
  PlanFigures figures_of(const Simulated& plan) const {
    return {plan.iteration, plan.memory.needed(), limits_.dollars(plan.candidate.size(), plan.iteration),
            plan.energy ? plan.energy->value : 0, plan.candidate.samples};
  }
  Scores front_scores(const PlanFigures& figures) const {
    Scores scores;
    for (const SearchObjective objective : result_.front_of) scores.push_back(score_of(objective, figures));
    return scores;
  }

  bool fits(const Candidate& candidate, const MemoryUse& memory) {
    const auto broken = plans_.broken(memory);
    if (!broken) return true;
    refuse(broken->limit, 1, broken->how);
    note_unfit(candidate, memory, nearest_);
    return false;
  }

  static void note_unfit(const Candidate& candidate, const MemoryUse& memory,
                         std::optional<Simulated>& nearest) {
    const auto place = [](const Simulated& plan) {
      return std::tuple(plan.memory.needed(), plan.candidate.base, plan.candidate.point);
    };
    const Simulated plan{candidate, {}, {}, {}, {}, memory};
    if (!nearest || place(plan) < place(*nearest)) nearest = plan;
  }

  bool is_stopped() {
    if (request_.stopped && request_.stopped()) result_.complete = false;
    return !result_.complete;
  }

  // Whether what is known says that this plan is not asked for.
  bool is_beaten(const Candidate& candidate) const {
    if (request_.brute_force) return false;
    if (!request_.front.empty()) {
      // On a front a plan is out only if something known is better than the least that it can be, in all that
      // counts.
      const Scores least = front_scores(least_figures(candidate));
      const auto is_worse = [&](const Scores& other) { return dominates(other, least); };
      if (std::ranges::none_of(front_, is_worse)) return false;
    }
    if (best_.size() < static_cast<std::size_t>(request_.top)) return false;
    // Strictly more: a plan that may be as good as the last of the best is still asked for.
    return candidate.least_score > *best_.rbegin();
  }

  // The longest iteration with which the plan may still be asked for.
  Time longest_of_interest(Candidate candidate) const {
    return longest_without(candidate.bound, [&](Time iteration) {
      candidate.bound = iteration;
      candidate.least_score = score_of(request_.objective, least_figures(candidate));
      return is_beaten(candidate);
    });
  }
  // At least `least`, with which a plan is not out of the question; with whatever is longer than
  // another, it is.
  template <class IsOut>
  static Time longest_without(Time least, const IsOut& is_out) {
    Time longest = kEndOfTime;
    if (!is_out(longest)) return longest;
    while (longest - least > Time(1)) {
      const Time middle = least + Time((longest - least).value / 2);
      (is_out(middle) ? longest : least) = middle;
    }
    return least;
  }

  void note(const Simulated& plan) {
    const double score = score_of(request_.objective, figures_of(plan));
    if (best_.empty() || score < *best_.begin()) best_time_ = plan.iteration;
    best_.insert(score);
    if (best_.size() > static_cast<std::size_t>(request_.top)) best_.erase(std::prev(best_.end()));
    if (request_.front.empty()) return;
    Scores scores = front_scores(figures_of(plan));
    // Of equal scores one is enough for the front.
    const auto beats = [&](const Scores& other) { return other == scores || dominates(other, scores); };
    if (std::ranges::any_of(front_, beats)) return;
    std::erase_if(front_, [&](const Scores& other) { return dominates(scores, other); });
    front_.push_back(std::move(scores));
  }

  // Refuses it where it is.
  bool is_beyond_limits(const Candidate& candidate) {
    const auto broken = limits_.broken(candidate.size(), candidate.bound, "at least ");
    if (!broken) return false;
    refuse(broken->limit, 1, broken->how);
    late_.push_back(candidate);
    return true;
  }

  // With the bound that takes longer; false: it is refused by it.
  bool refine(Candidate& candidate) {
    Time more;  // than the bound, about
    try {
      PlanEvaluator& evaluator = plans_.evaluator(candidate.base);
      const PlanPrepared plan = plans_.prepare(candidate.base, candidate.point);
      more = std::max(Time(0), evaluator.about(plan) - candidate.bound);
      candidate.bound = std::max(candidate.bound, evaluator.slot_bound(plan));
    } catch (const Error& error) {
      refuse(reason_of(error), 1, error.message, error.hint);
      return false;
    }
    candidate.least_score = score_of(request_.objective, least_figures(candidate));
    Candidate expected = candidate;
    expected.bound = later(candidate.bound, more);
    candidate.about = score_of(request_.objective, least_figures(expected));
    return !is_beyond_limits(candidate);
  }

  // Of all that are left, the one that is expected to be best; or nothing. None whose bound is not refined
  // can be better than that.
  std::optional<std::size_t> next_candidate() {
    const auto is_later = [&](std::size_t a, std::size_t b) {
      return std::tuple(candidates_[a].about, a) > std::tuple(candidates_[b].about, b);
    };
    for (std::size_t refined_in_a_row = 0;;) {
      const bool refined_first =
          !refined_.empty() && (coarse_ == candidates_.size() ||
                                candidates_[refined_.front()].about < candidates_[coarse_].least_score);
      if (refined_first) {
        std::ranges::pop_heap(refined_, is_later);
        const std::size_t candidate = refined_.back();
        refined_.pop_back();
        return candidate;
      }
      constexpr std::size_t kAskAfter = 64;  // refined in a row
      if (coarse_ == candidates_.size() || (++refined_in_a_row % kAskAfter == 0 && is_stopped()))
        return std::nullopt;
      // Refined only when it is its turn: the finer bound takes longer, and most plans never need it.
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
    simulating_since_ = std::chrono::steady_clock::now();
    std::size_t looked_at = 0;
    // Of pieces, by their numbers: the candidate, and the longest iteration that was asked for.
    std::map<std::int64_t, std::pair<std::size_t, Time>> under_way;
    // Given up before, and not late enough for what is known: more may be known at the end.
    std::deque<std::size_t> put_off;
    Piecework work;
    work.next = [&]() -> std::optional<Piece> {
      for (;;) {
        if (is_stopped()) return std::nullopt;
        std::optional<std::size_t> next = next_candidate();
        const bool was_put_off = !next && result_.complete && !put_off.empty();
        if (was_put_off) {
          next = put_off.front();
          put_off.pop_front();
        }
        if (!next) return std::nullopt;
        const Candidate& candidate = candidates_[*next];
        if (is_beaten(candidate)) {
          ++result_.space.bounded;
          continue;
        }
        const SavedOutcome* saved = saved_ ? saved_->find(candidate.base, candidate.point) : nullptr;
        if (saved && saved->is_refused()) {
          refuse(saved->reason, 1, saved->message);
          continue;
        }
        // Noted with the piece: what is asked for becomes less as better plans are found.
        const Time longest = longest_of_interest(candidate);
        if (saved && saved->is_given_up() && saved->longer_than < longest) {
          if (!was_put_off) {
            put_off.push_back(*next);
            continue;
          }
          // It has to be simulated after all, further than it was before.
          saved = nullptr;
        }
        request_.progress->update(static_cast<double>(++looked_at + result_.space.bounded) /
                                  static_cast<double>(candidates_.size()));
        const std::int64_t number = PlanRoom::piece_of(candidate.base, candidate.point, saved != nullptr);
        under_way.emplace(number, std::pair(*next, longest));
        return Piece{number, longest.value, request_.part};
      }
    };
    work.perform = [&](const Piece& piece) { return plans_.perform(piece); };
    work.finish = [&](std::int64_t piece, const std::string& text) {
      const auto at = under_way.find(piece);
      const auto [number, longest] = at->second;
      under_way.erase(at);
      take(candidates_[number], Outcome::parse(text), longest);
      tell_so_far();
    };
    work.give_up = [&](std::int64_t piece, const std::string& how) {
      under_way.erase(piece);
      refuse("died", 1, fmt::format("{} processes died of it: {}", kMostDeaths, how));
    };
    work.stopped = [&] { return is_stopped(); };
    crew_.share_out(work);
    SearchSpaceUse& use = result_.space;
    if (!result_.complete) use.not_looked_at = use.points - use.refused - use.bounded - use.simulated;
  }

  ForeseenRuns foreseen_plans() {
    std::vector<PlanPlace> open;
    std::int64_t known = 0;
    for (const Candidate& candidate : candidates_) {
      const SavedOutcome* saved = saved_ ? saved_->find(candidate.base, candidate.point) : nullptr;
      if (saved == nullptr || saved->is_given_up()) {
        open.push_back({candidate.base, candidate.point});
      } else if (!saved->is_refused()) {
        ++known;
      }
    }
    return foresee_plans(request_, plans_, open, known, crew_.jobs());
  }

  static Simulated simulated(const Candidate& candidate, const Outcome& outcome) {
    return {candidate,
            Time(outcome.at("iteration")),
            Time(outcome.at("compute")),
            Time(outcome.at("exposed")),
            energy_in(outcome),
            memory_in(outcome.at("memory"))};
  }

  // Of what fits and is beyond a limit.
  void note_late(const Simulated& plan) {
    const auto place = [&](const Simulated& late) {
      return std::tuple(limits_.strain(late.candidate.size(), late.iteration), late.candidate.base,
                        late.candidate.point);
    };
    if (!nearest_late_ || place(plan) < place(*nearest_late_)) nearest_late_ = plan;
  }

  // What came of a candidate, asked for unless it takes longer.
  void take(const Candidate& candidate, const Outcome& outcome, Time longest) {
    if (outcome.contains("reason")) {
      const SavedOutcome refused{.reason = outcome.at("reason"), .message = outcome.at("message")};
      save(candidate, refused);
      return refuse(refused.reason, 1, refused.message);
    }
    const MemoryUse memory = memory_in(outcome.at("memory"));
    if (!fits(candidate, memory)) return;
    if (outcome.contains("longer")) {
      save(candidate, {.longer_than = longest});
      ++result_.space.bounded;
      return;
    }
    Simulated plan{candidate, {}, {}, {}, {}, memory};
    const bool is_new = outcome.contains("iteration");
    if (is_new) {
      plan = simulated(candidate, outcome);
      save(candidate, {.iteration = plan.iteration,
                       .compute = plan.compute,
                       .exposed_communication = plan.exposed_communication,
                       .energy = plan.energy});
    } else {
      const SavedOutcome& saved = *saved_->find(candidate.base, candidate.point);
      if (saved.is_given_up()) {
        ++result_.space.bounded;
        return;
      }
      plan.iteration = saved.iteration;
      plan.compute = saved.compute;
      plan.exposed_communication = saved.exposed_communication;
      plan.energy = saved.energy;
    }
    if (const auto broken = limits_.broken(candidate.size(), plan.iteration, "")) {
      note_late(plan);
      return refuse(broken->limit, 1, broken->how);
    }
    ++result_.space.simulated;
    if (!is_new) ++result_.space.resumed;
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
    outcome.plan = prepared.plan;
    outcome.machine = prepared.setting->machine.name;
    outcome.iteration = plan.iteration;
    outcome.bound = plan.candidate.bound;
    outcome.memory = plan.memory;
    outcome.compute = plan.compute;
    outcome.exposed_communication = plan.exposed_communication;
    outcome.energy = plan.energy;
    outcome.cost = cost_of(machine_of(plan.candidate), plan.candidate.ranks, plan.iteration);
    outcome.training_iterations = limits_.training_iterations(plan.candidate.size());
    return outcome;
  }

  // Equally good plans go by memory, then by the order of the space.
  void finish() {
    const auto key = [&](const Simulated& plan) {
      return std::tuple(score_of(request_.objective, figures_of(plan)), plan.iteration, plan.memory.needed(),
                        plan.candidate.base, plan.candidate.point);
    };
    std::sort(simulated_.begin(), simulated_.end(),
              [&](const Simulated& a, const Simulated& b) { return key(a) < key(b); });
    for (const Simulated& plan : simulated_) result_.simulated.push_back(outcome_of(plan));
    const auto top = std::min<std::size_t>(result_.simulated.size(), static_cast<std::size_t>(request_.top));
    result_.ranking.assign(result_.simulated.begin(),
                           result_.simulated.begin() + static_cast<std::ptrdiff_t>(top));
    list_front();
    if (simulated_.empty()) return find_what_comes_near();
    note_asynchronous();
    note_parts_of_nodes();
    note_what_has_no_effect();
    const Candidate& best = simulated_.front().candidate;
    if (request_.explain) explain(best);
    list_edges(simulated_.front());
  }

  void note_asynchronous() {
    const auto never_flushes = [](const PlanOutcome& plan) { return !schedule_of(plan.plan).flushes; };
    const auto plan = std::ranges::find_if(result_.ranking, never_flushes);
    if (plan == result_.ranking.end()) return;
    result_.notes.push_back(fmt::format(
        "the schedule {} never flushes: its gradients are of the weights of an iteration before, so that it "
        "does not train as other schedules do",
        plan->plan.schedule));
  }

  void note_parts_of_nodes() {
    std::vector<std::pair<const Plan*, const Machine*>> plans;
    for (std::size_t i = 0; i < result_.simulated.size(); ++i)
      plans.emplace_back(&result_.simulated[i].plan,
                         &space_.bases()[simulated_[i].candidate.base].study.machine);
    if (std::string note = note_on_nodes(plans); !note.empty()) result_.notes.push_back(std::move(note));
  }

  // Of what does not vary, under the best plan.
  void note_what_has_no_effect() {
    const Candidate& best = simulated_.front().candidate;
    PlanRequest request = space_.request_of(best.base, best.point);
    for (const SearchAxis& axis : space_.bases()[best.base].axes) {
      if (axis.key.starts_with("plan.")) request.places.erase(axis.key.substr(5));
    }
    const PlanPrepared plan = plans_.prepare(best.base, best.point);
    for (std::string& note : settings_without_effect(request, plan.plan, *plan.model))
      result_.notes.push_back(std::move(note));
  }

  void explain(const Candidate& best) {
    request_.progress->begin("simulating the neighbours of the best");
    // The best, and what comes next.
    for (std::size_t i = 0; i < std::min<std::size_t>(2, result_.ranking.size()); ++i) {
      const Candidate& plan = simulated_[i].candidate;
      tell_exposed(plans_.prepare(plan.base, plan.point), result_.ranking[i]);
    }
    BesideBest beside;
    beside.stopped = [&] { return is_stopped(); };
    beside.least_score = [&](std::size_t base, const PlanPrepared& plan) {
      return candidate_beside(base, plan).least_score;
    };
    beside.simulate = [&](std::size_t base, const PlanPrepared& plan, double most) {
      return outcome_beside(base, plan, most, false);
    };
    beside.broken = [&](std::size_t base, const PlanOutcome& plan) { return broken_by(base, plan); };
    result_.neighbours = neighbours_of(plans_, best.base, best.point, request_.objective, beside);
  }

  // The limit of the search that a plan beside the best breaks.
  std::optional<BrokenLimit> broken_by(std::size_t base, const PlanOutcome& plan) const {
    if (auto broken = plans_.broken(plan.memory)) return broken;
    return limits_.broken({base, plan.plan.ranks, plan.plan.global_batch()}, plan.iteration, "");
  }

  // A plan that need not be one of the space, with the bound that takes longer.
  Candidate candidate_beside(std::size_t base, const PlanPrepared& plan) {
    PlanEvaluator& evaluator = plans_.evaluator(base);
    Candidate candidate{base, 0, std::max(evaluator.bound(plan), evaluator.slot_bound(plan))};
    candidate.memory = evaluator.memory(plan).needed();
    if (goes_by(SearchObjective::energy)) candidate.computing = evaluator.computing_bound(plan);
    candidate.ranks = plan.plan.ranks;
    candidate.samples = plan.plan.global_batch();
    candidate.least_score = score_of(request_.objective, least_figures(candidate));
    return candidate;
  }
  // What comes of it, whatever its memory; nothing where it scores more than `most`, or breaks another limit
  // that it is to keep to.
  std::optional<PlanOutcome> outcome_beside(std::size_t base, const PlanPrepared& plan, double most,
                                            bool within_limits) {
    Candidate candidate = candidate_beside(base, plan);
    const Time least = candidate.bound;
    const auto is_out = [&](Time iteration) {
      candidate.bound = iteration;
      return score_of(request_.objective, least_figures(candidate)) > most ||
             (within_limits && limits_.broken(candidate.size(), iteration, ""));
    };
    if (is_out(least)) return std::nullopt;
    PlanEvaluator& evaluator = plans_.evaluator(base);
    std::optional<PlanOutcome> outcome = evaluator.simulate_within(plan, longest_without(least, is_out));
    if (!outcome) return outcome;
    outcome->memory = evaluator.memory(plan);
    outcome->bound = evaluator.bound(plan);
    outcome->training_iterations =
        limits_.training_iterations({base, outcome->plan.ranks, outcome->plan.global_batch()});
    if (score_of(request_.objective, outcome->figures()) > most) outcome.reset();
    return outcome;
  }

  // Of every axis that nobody named and whose largest number is the best plan's, the next larger one where
  // it is better.
  void list_edges(const Simulated& best) {
    const std::size_t number = best.candidate.base;
    const SearchBase& base = space_.bases()[number];
    for (std::size_t axis = 0; axis < base.axes.size() && !is_stopped(); ++axis) {
      const SearchAxis& tried = base.axes[axis];
      const std::string& value = tried.values[space_.value_index(number, best.candidate.point, axis)];
      if (value != tried.values.back()) continue;
      for (const std::string& next : base.beyond[axis]) {
        try {
          std::vector<Override> settings = settings_of(result_, result_.simulated.front());
          settings.emplace_back(fmt::format("{}={}", tried.key, next));
          const PlanPrepared plan = plans_.evaluator(number).prepare(request_.read(settings).request);
          if (auto outcome = better_beside(number, plan)) {
            outcome->values = result_.simulated.front().values;
            const auto column = std::ranges::find(result_.axes, tried.key, &SearchAxis::key);
            if (column != result_.axes.end())
              outcome->values[static_cast<std::size_t>(column - result_.axes.begin())] = next;
            result_.edges.push_back({tried.key, value, next, *outcome, tried.key + " any"});
          }
          break;
        } catch (const Error&) {
          // Not legal: the one after it may be.
        }
      }
    }
  }
  // What comes of a plan that is better than the best of the ranking, and within all limits.
  std::optional<PlanOutcome> better_beside(std::size_t base, const PlanPrepared& plan) {
    const PlanOutcome& best = result_.simulated.front();
    // The time of fewer samples says nothing.
    if (request_.objective == SearchObjective::time && plan.plan.global_batch() != best.plan.global_batch())
      return std::nullopt;
    if (!plans_.fits(plans_.evaluator(base).memory(plan))) return std::nullopt;
    // What a table would show as 0.0 % is no reason to try more.
    constexpr double kLeastGain = 0.0005;
    const double score = score_of(request_.objective, best.figures());
    std::optional<PlanOutcome> outcome =
        outcome_beside(base, plan, score - kLeastGain * std::abs(score), true);
    if (outcome && broken_by(base, *outcome)) outcome.reset();
    return outcome;
  }

  // Where no plan is left.
  void find_what_comes_near() {
    if (!result_.complete) return;
    find_nearest_late();
    if (!result_.complete) return;
    if (nearest_late_) {
      result_.late = outcome_of(*nearest_late_);
      result_.late_beside_unfit = nearest_ || nearest_of_late_;
    } else if (!nearest_ && nearest_of_late_) {
      nearest_ = nearest_of_late_;
      const Candidate& late = late_.front();
      result_.late_bound = LateBound{late.bound};
      if (request_.budget) result_.late_bound->training_cost = limits_.training_cost(late.size(), late.bound);
    }
    if (nearest_) {
      result_.nearest = outcome_of(*nearest_);
      result_.nearest_room = plans_.room(nearest_->memory);
      const PlanPrepared plan = plans_.prepare(nearest_->candidate.base, nearest_->candidate.point);
      Device device = plan.setting->machine.device;
      device.memory = result_.nearest_room;
      result_.nearest_changes = memory_advice(*plan.model, plan.plan, device);
    } else if (!result_.late) {
      result_.why_none = why_none(request_, space_, result_);
    }
  }

  // Of those that their bounds have refused, one after the other.
  void find_nearest_late() {
    std::ranges::sort(late_, {}, [&](const Candidate& late) {
      return std::tuple(limits_.strain(late.size(), late.bound), late.base, late.point);
    });
    for (const Candidate& candidate : late_) {
      if (nearest_late_ && limits_.strain(nearest_late_->candidate.size(), nearest_late_->iteration) <
                               limits_.strain(candidate.size(), candidate.bound))
        return;
      if (is_stopped()) return;
      const Outcome outcome = Outcome::parse(plans_.perform(
          {.number = PlanRoom::piece_of(candidate.base, candidate.point, false), .limit = kEndOfTime.value}));
      if (!outcome.contains("iteration")) {
        if (outcome.contains("memory"))
          note_unfit(candidate, memory_in(outcome.at("memory")), nearest_of_late_);
        continue;
      }
      note_late(simulated(candidate, outcome));
    }
  }

  // Of equals the first in the ranking.
  void list_front() {
    std::vector<std::pair<Scores, std::size_t>> plans;
    for (std::size_t i = 0; i < simulated_.size(); ++i)
      plans.emplace_back(front_scores(figures_of(simulated_[i])), i);
    // Whatever beats a plan stands before it.
    std::ranges::sort(plans, {}, [](const auto& plan) {
      return std::pair(Scores(plan.first.rbegin(), plan.first.rend()), plan.second);
    });
    std::vector<Scores> kept;
    for (const auto& [scores, plan] : plans) {
      const auto beats = [&](const Scores& other) { return other == scores || dominates(other, scores); };
      if (std::ranges::any_of(kept, beats)) continue;
      kept.push_back(scores);
      result_.front.push_back(result_.simulated[plan]);
    }
  }

  const SearchRequest& request_;
  PlanRoom& plans_;
  const SearchSpace& space_;
  SearchLimits limits_;
  Crew& crew_;
  std::optional<SavedSearch> saved_;
  std::vector<Candidate> candidates_;  // by their first bounds
  std::size_t coarse_ = 0;             // the first whose bound is not refined
  std::vector<std::size_t> refined_;  // a heap of those whose bound is and that are not simulated, by `about`
  SearchResult result_;
  std::multiset<double> best_;     // scores of the best so far, at most `top`
  std::optional<Time> best_time_;  // of the first of them
  std::chrono::steady_clock::time_point simulating_since_;
  std::vector<Scores> front_;                                // of what was simulated so far
  std::optional<Simulated> nearest_;                         // of what does not fit: what needs least
  std::vector<Candidate> late_;                              // beyond a limit by their bounds
  std::optional<Simulated> nearest_late_, nearest_of_late_;  // of them: what fits, and what does not
  std::vector<Simulated> simulated_;                         // as they came
};

}  // namespace

SearchResult search_plans(const SearchRequest& request) {
  Crew crew(request.threads);
  return search_plans(request, crew);
}

ForeseenRuns foresee_search(const SearchRequest& request, Crew& crew) {
  check_request(request);
  PlanRoom plans(request);
  const auto plays_bytes = [](const SearchBase& base) { return promises_of(base.study.network).plays_bytes; };
  if (std::ranges::none_of(plans.space().bases(), plays_bytes)) return {};
  check_figures(request, plans.space());
  return Search(request, plans, crew).foresee();
}

SearchResult search_plans(const SearchRequest& request, Crew& crew) {
  check_request(request);
  PlanRoom plans(request);
  check_figures(request, plans.space());
  if (crew.serves()) crew.serve([&](const Piece& piece) { return plans.perform(piece); });
  return Search(request, plans, crew).run();
}

std::vector<Override> settings_of(const SearchResult& result, const PlanOutcome& plan) {
  std::vector<Override> settings;
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
    if (!plan.values[axis].empty())
      settings.emplace_back(fmt::format("{}={}", result.axes[axis].key, plan.values[axis]), "",
                            result.axes[axis].file);
  }
  return settings;
}

}  // namespace armilla
