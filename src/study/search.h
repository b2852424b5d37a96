// Which plan is best: every plan of a space is refused, proven not to be among the best, or simulated.
//
// A plan is first made legal or refused (lower/plan.h), then a lower bound on its time is proven
// (study/search/time_bound.h). In the order of their bounds, plans that fit the memory (lower/memory.h,
// exact) are simulated by all cores, until the bound of the next is above what is asked for. The ranking is
// exact and does not depend on the number of threads: plans that are equally good rank by memory, then by
// the order of the axes. Cost: O(points) for what is refused by its degrees alone, one division of the
// model per set of plans that divide it alike, some microseconds per legal plan, and a simulation per plan
// that is left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/progress.h"
#include "ir/search.h"
#include "ir/study.h"
#include "study/patience.h"

namespace armilla {

class Crew;  // study/spread.h

struct SearchRequest {
  // The study with these settings over it. Throws Error.
  std::function<Study(const std::vector<Override>&)> read;
  std::vector<SearchAxis> axes;  // as the user gave them; values may be "any" and ranges, see search_axes
  SearchObjective objective = SearchObjective::time;
  std::int64_t top = 10;          // plans in the ranking
  double memory_share = 1;        // of the device's memory that a plan may take
  std::optional<Time> deadline;   // longer iterations do not count
  std::optional<Money> budget{};  // nor does what costs more for the whole training
  bool brute_force = false;       // simulate whatever is legal and fits
  // Find the whole Pareto front of these, too; empty: that of time and memory among what is simulated anyway.
  std::vector<SearchObjective> front{};
  bool explain = false;      // simulate the neighbours of the best
  std::int64_t threads = 0;  // 0: as many as the machine has
  // Where the outcome of every simulation is kept; empty: nowhere. A file that is there is gone on
  // with, or refused.
  std::string save{};
  bool resume = false;
  // What tells this study from others in the file: settings_text of it, and the version of the program.
  std::string asked{}, version{};
  Patience patience{};
  std::int64_t part = 0;          // of a work of several searches: what pieces of this one say (Piece::part)
  std::function<bool()> stopped;  // asked before every plan; empty: never
  Progress* progress = &no_progress();
};

// What of a study file (or of flags) is to be searched: keys of the plan, `machine` and `plan.ranks` with a
// list, "a,b", a range "1..64" (doubled from the first on, and the last) or "any" in place of a value. Throws
// Error for a range without both ends.
std::vector<SearchAxis> search_axes(const Config& config);
// Throws Error where there is any: `taker`, such as "a run", takes one plan.
void require_one_plan(const Config& config, std::string_view taker);

// Every setting of a study, a line each, sorted.
std::string settings_text(const Config& config);

// Throws Error where the study itself is wrong or the space is empty. That nothing fits is an answer
// (SearchResult::nearest).
SearchResult search_plans(const SearchRequest& request);
// The same with a crew of one's own (SearchRequest::threads has no say): its leader calls this, and
// its runners.
SearchResult search_plans(const SearchRequest& request, Crew& crew);

// What a search in which nothing fits (result.nearest) has left untried that takes less memory, as a hint in
// words of a study file: "try plan.zero any, plan.offload any or more ranks".
std::string untried_room(const SearchResult& result);
// Why a search has no legal plan, likewise (study/search/why_none.h). Empty: nothing is known.
std::string main_refusal(const SearchResult& result);

// What a search would simulate, on networks that play bytes; on others nothing. Its patience and what it has
// saved have no say.
ForeseenRuns foresee_search(const SearchRequest& request, Crew& crew);

// The settings that make a plan of the result out of the study: what `armilla run` takes with --set.
std::vector<Override> settings_of(const SearchResult& result, const PlanOutcome& plan);

}  // namespace armilla
