// Search: the plans that a user asked to compare, and what came of them.
//
// A space is the product of its axes: each is a key of a study file with the values that it may take. Every
// point of it is refused (it is no legal plan, or does not fit), left out because it is proven not to be
// among the best, or simulated. What is simulated is exact, and so is the ranking.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/memory.h"
#include "ir/plan.h"

namespace armilla {

struct SearchAxis {
  std::string key;                  // "plan.tensor"
  std::vector<std::string> values;  // as they would stand in a study file, in order
  bool given = false;               // by the user; else what most people would try
  std::string where{};              // where the user gave it
  std::string file{};               // that it stands in, for paths among the values; empty: in none
};

// What the best plan is best at.
enum class SearchObjective : std::uint8_t {
  time,        // least time of an iteration
  throughput,  // most samples per second
  cost,        // least money per sample
  energy,      // least energy per sample
  memory,      // least memory at the peak
};
std::string_view name_of(SearchObjective objective);

// What the best is least in: seconds, and seconds, dollars or joules per sample, and bytes. Of an iteration.
struct PlanFigures {
  Time iteration;
  Bytes memory;
  double dollars = 0, joules = 0;  // where they are asked for
  std::int64_t samples = 1;
};
double score_of(SearchObjective objective, const PlanFigures& plan);

struct PlanOutcome {
  std::vector<std::string> values;  // one for each axis
  Plan plan;                        // resolved
  std::string machine;
  Time iteration;
  Time bound;  // that was proven before the plan was simulated: never above `iteration`
  MemoryUse memory;
  // Of the rank class that computes longest: how its iteration divides.
  Time compute, exposed_communication;
  // Of the best plan, the next and its neighbours, where they are explained: which communication is exposed,
  // by the kind of its groups ("tensor").
  std::vector<std::pair<std::string, Time>> exposed_by_kind{};
  std::optional<Energy> energy;    // of an iteration, where the machine's power is known
  std::optional<Money> cost;       // likewise, where its price is
  double training_iterations = 0;  // of the whole training; 0: nobody said how long it is, or nodes fail
  std::optional<Money> training_cost() const {
    if (!cost || training_iterations <= 0) return std::nullopt;
    return *cost * training_iterations;
  }
  PlanFigures figures() const {
    return {iteration, memory.needed(), cost ? cost->value : 0, energy ? energy->value : 0,
            plan.global_batch()};
  }
  double samples_per_second() const {
    return static_cast<double>(plan.global_batch()) / in_seconds(iteration);
  }
};

// Plans that were not simulated, by what stands in their way.
struct Refusal {
  std::int64_t plans = 0;
  std::string example;    // the message of one of them; empty where the reason says it all
  std::string hint{};     // of that message
  bool are_alike = true;  // all have this message
};

struct SearchSpaceUse {
  std::int64_t points = 0;   // of the whole product; the sum of those below
  std::int64_t refused = 0;  // illegal, equal to another, or too large for the device
  std::int64_t bounded = 0;  // cannot be among the best
  std::int64_t simulated = 0;
  std::int64_t not_looked_at = 0;           // since the search was interrupted
  std::int64_t resumed = 0;                 // of those simulated, by a search before this one
  std::map<std::string, Refusal> refusals;  // by reason
};

// Of memory, deadline and budget, the one that a plan is refused for.
struct BrokenLimit {
  std::string limit;  // "memory": as in SearchSpaceUse::refusals
  std::string how;    // "needs 56.89 GiB of the 47.79 GiB that it may take"
};

// The best plan with one axis changed, and another where the first alone is not legal.
struct Neighbour {
  std::string key, value;                // what is changed
  std::optional<PlanOutcome> outcome{};  // nothing: refused
  std::string refusal{};                 // of what is changed alone
  std::string needs{}, needed_value{};   // the other axis, if any
  std::optional<BrokenLimit> broken{};   // by the outcome, which is then no alternative to the best
};

// What plans take at least that were refused for it without being simulated.
struct LateBound {
  Time iteration;
  std::optional<Money> training_cost{};  // where there is a budget
};

// The best plan has the last number of an axis that the user did not name, and would be better with
// a larger one.
struct SearchEdge {
  std::string key, value, next;
  PlanOutcome outcome;  // with the next number, all else being equal
  std::string widen;    // what tries more, in words of a study file: "plan.micro_batch any"
};

struct SearchResult {
  SearchObjective objective = SearchObjective::time;
  std::int64_t tokens_per_sample = 0;  // 0: the model does not tell what a token is
  std::vector<SearchAxis> axes;
  SearchSpaceUse space;
  std::int64_t fewest_samples = 0, most_samples = 0;  // of an iteration, of all legal plans
  std::vector<PlanOutcome> ranking;                   // the best first; as many as were asked for
  // What nothing simulated is better in, by the last of these, and which plans that are.
  std::vector<SearchObjective> front_of = {SearchObjective::time, SearchObjective::memory};
  std::vector<PlanOutcome> front;
  bool whole_front = false;            // else that of what the ranking needed
  std::vector<PlanOutcome> simulated;  // all of them, in the order of the ranking
  std::vector<Neighbour> neighbours;   // of the best, where asked for
  std::vector<SearchEdge> edges;       // where more is worth trying
  std::vector<std::string> notes;      // what else to know of the ranking
  // Where nothing is left, of what does not fit: what needs least, not simulated. Beside `late` it may be
  // within deadline and budget.
  std::optional<PlanOutcome> nearest;
  Bytes nearest_room;                        // that it may take of its device's memory
  std::vector<std::string> nearest_changes;  // that would make it fit, in words of a study file
  Refusal why_none;                          // where no plan is legal: what stands in the way
  // Where nothing that fits is within deadline and budget: what comes nearest to them.
  std::optional<PlanOutcome> late;
  bool late_beside_unfit = false;  // and others that may come nearer do not fit
  // Where nothing fits and everything is beyond deadline or budget: of the plan nearest to these.
  std::optional<LateBound> late_bound;
  std::optional<Money> budget;  // of the whole training
  bool complete = true;         // false: interrupted
  double elapsed_seconds = 0;
};

// Of all knobs, by the best of its other values that is legal and within all limits, the one that is worth
// most: that neighbour. Null: none is.
const Neighbour* what_matters_most(const SearchResult& result);

}  // namespace armilla
