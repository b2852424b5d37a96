#include "ir/scale.h"

#include <algorithm>

namespace armilla {

const ScalePoint& ScaleResult::base() const {
  return *std::find_if(points.begin(), points.end(),
                       [](const ScalePoint& point) { return point.best.has_value(); });
}

double ScaleResult::speedup(const ScalePoint& point) const {
  return point.best->samples_per_second() / base().best->samples_per_second();
}

double ScaleResult::efficiency(const ScalePoint& point) const {
  return speedup(point) * static_cast<double>(base().ranks) / static_cast<double>(point.ranks);
}

}  // namespace armilla
