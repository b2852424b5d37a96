// The limits of a search: its deadline and the budget of the whole training. (What a plan may take of its
// device's memory PlanRoom knows.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "ir/search.h"
#include "study/search.h"
#include "study/search/space.h"

namespace armilla {

// What the cost of a plan depends on besides its time.
struct PlanSize {
  std::size_t base = 0;  // of the space
  std::int64_t ranks = 0, samples = 0;
};

class SearchLimits {
 public:
  SearchLimits(const SearchRequest& request, const SearchSpace& space) : request_(request), space_(space) {}

  // Of an iteration that long; 0: no price is known.
  double dollars(const PlanSize& plan, Time iteration) const;
  // Of the whole training; 0 where nobody said how long it is. What nodes that fail compute again is not
  // counted: then there is no number.
  double training_iterations(const PlanSize& plan) const;
  Money training_cost(const PlanSize& plan, Time iteration) const {
    return Money(dollars(plan, iteration) * training_iterations(plan));
  }

  // How far it is from deadline and budget, with iterations that long: at most 1 is within both.
  double strain(const PlanSize& plan, Time iteration) const;
  // The limit that it breaks with iterations that long, which are the `least` ("at least ") or what there is,
  // and how.
  std::optional<BrokenLimit> broken(const PlanSize& plan, Time iteration, std::string_view least) const;

 private:
  const SearchRequest& request_;
  const SearchSpace& space_;
};

}  // namespace armilla
