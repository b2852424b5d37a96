#include "ir/scale.h"

#include <algorithm>

namespace armilla {

namespace {

bool has_best(const ScalePoint& point) {
  return point.best.has_value();
}

}  // namespace

bool ScaleResult::has_plan() const {
  return std::ranges::any_of(points, has_best);
}

const ScalePoint& ScaleResult::base() const {
  return *std::ranges::find_if(points, has_best);
}

double ScaleResult::speedup(const ScalePoint& point) const {
  return point.best->samples_per_second() / base().best->samples_per_second();
}

double ScaleResult::efficiency(const ScalePoint& point) const {
  return speedup(point) * static_cast<double>(base().ranks) / static_cast<double>(point.ranks);
}

}  // namespace armilla
