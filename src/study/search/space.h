// The space of a search: which plans there are, one after the other.
//
// Axes of the plan are typed once per value and then copied from plan to plan; `machine` and `plan.ranks`
// change the study itself, so every combination of theirs is a study of its own. Points are numbered; a
// number is a plan again without the others. Whole blocks of points whose degrees do not divide the ranks are
// passed over at once, and so are those that are cut like one which cannot be cut so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/model.h"
#include "ir/search.h"
#include "study/search.h"
#include "study/search/axes.h"

namespace armilla {

// A combination of what changes the study itself.
struct SearchBase {
  Study study;  // its request has the first value of every axis
  ModelFacts model;
  std::vector<std::string> values;  // of the outer axes
  // Per inner axis and value: a request that holds it.
  std::vector<std::vector<PlanRequest>> choices;
  std::vector<const PlanAxis*> inner;
  std::vector<SearchAxis> axes;  // inner ones, with the values tried here
  // Per inner axis of numbers that nobody named: the larger ones that "any" would try.
  std::vector<std::vector<std::string>> beyond;
  std::int64_t points = 1;
};

enum class Onward : std::uint8_t { next, past_cut_alike, stop };

class SearchSpace {
 public:
  // Throws Error for unknown values and an empty space.
  explicit SearchSpace(const SearchRequest& request);

  const std::vector<SearchBase>& bases() const { return bases_; }
  // Outer axes first; values of all bases.
  const std::vector<SearchAxis>& axes() const { return axes_; }
  std::int64_t points() const;

  // Calls `visit(point, request)` for the points of a base whose degrees divide its ranks, in order, and
  // `skip(count, why)` for the others. Where `visit` asks to go past them, the points behind this one that
  // differ from it only in axes beyond kCuttingAxes are not visited: they belong to its last argument,
  // their number.
  void for_each(std::size_t base,
                const std::function<Onward(std::int64_t point, const PlanRequest& request,
                                           std::int64_t cut_alike)>& visit,
                const std::function<void(std::int64_t, const std::string&)>& skip) const;
  PlanRequest request_of(std::size_t base, std::int64_t point) const;
  // One value for each axis.
  std::vector<std::string> values_of(std::size_t base, std::int64_t point) const;
  // The point with one inner axis changed.
  std::int64_t changed(std::size_t base, std::int64_t point, std::size_t axis, std::size_t value) const;
  std::size_t value_index(std::size_t base, std::int64_t point, std::size_t axis) const;

 private:
  std::vector<SearchBase> bases_;
  std::vector<SearchAxis> axes_;
  std::size_t outer_ = 0;
};

// Throws `error` of a plan, put to where the user gave what it is about, if it is one of all plans: about
// values that do not vary (Error::keys), where machines and ranks do not either.
void refuse_all_plans(const SearchSpace& space, const PlanRequest& request, const Error& error);

}  // namespace armilla
