#include "study/run/like_measured.h"

#include <fmt/format.h>

#include "base/units_text.h"
#include "study/run/measured_accuracy.h"

namespace armilla {
namespace {

// Types whose products take the same way through the device.
std::string_view width_of(DType precision) {
  switch (precision) {
    case DType::bf16:
    case DType::fp16:
      return "16 bits";
    case DType::fp8:
      return "fp8";
    case DType::fp4:
      return "fp4";
    default:
      return "32 bits";
  }
}

}  // namespace

std::optional<LikeMeasured> like_measured(const Plan& plan, const ModelFacts& facts, const Device& device) {
  const bool experts = facts.experts > 0 && !has_tables_for_experts(facts);
  const std::string_view width = width_of(plan.precision);
  const MeasuredAccuracy* nearest = nullptr;
  int best = -1;
  for (const MeasuredAccuracy& set : kMeasuredAccuracy) {
    if (set.device != device.name) continue;
    const bool both_alone = (set.most == 1) == (plan.ranks == 1);
    const int likeness = 4 * static_cast<int>(set.experts == experts) +
                         2 * static_cast<int>(set.width == width) + static_cast<int>(both_alone);
    if (likeness > best || (likeness == best && set.rows > nearest->rows)) {
      best = likeness;
      nearest = &set;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  LikeMeasured like;
  like.set = fmt::format("{} on {} in {}", nearest->experts ? "mixtures of experts" : "dense models",
                         nearest->device, nearest->width);
  like.rows = nearest->rows;
  like.mape = nearest->mape;
  like.bias = nearest->bias;
  like.p90 = nearest->p90;
  if (nearest->experts != experts)
    like.differences.emplace_back(experts ? "a mixture of experts" : "a dense model");
  if (nearest->width != width) like.differences.push_back(fmt::format("in {}", width));
  if (plan.ranks < nearest->fewest || plan.ranks > nearest->most) {
    const std::string measured = nearest->fewest == nearest->most
                                     ? fmt::format("{}", nearest->most)
                                     : fmt::format("{} to {}", nearest->fewest, nearest->most);
    like.differences.push_back(fmt::format("on {} instead of {}", counted(plan.ranks, "device"), measured));
  }
  return like;
}

}  // namespace armilla
