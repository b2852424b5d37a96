#include "trace/text/text_dimensions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "ir/plan.h"

namespace armilla {
namespace {

constexpr std::size_t kMostDimensions = 10;
constexpr std::string_view kGroup = "model_parallel_NPU_group";

// Inner dimensions belong to the group as long as they fit into it whole; the first that does not is split in
// two, its inner part with the group.
void split_for(TextDimensions& dimensions, const std::vector<std::int64_t>& physical, std::int64_t group) {
  if (group > dimensions.ranks) {
    throw Error(std::string(kGroup), fmt::format("{} NPUs in a group of {}", group, dimensions.ranks),
                "ASTRA-sim 1.0 would silently run pure data parallelism; so does a group of 1");
  }
  if (group == 1) return;
  std::int64_t inside = 1;
  for (std::size_t d = 0; inside < group; ++d) {
    const std::int64_t first = group / inside;
    const bool whole = first >= physical[d];
    const std::int64_t divisor = whole ? physical[d] : first;
    if (group % inside != 0 || (whole ? first % divisor : physical[d] % divisor) != 0) {
      throw Error(
          std::string(kGroup),
          fmt::format("a group of {} does not divide the dimensions {}", group, fmt::join(physical, "x")),
          "it is a product of the first sizes and of a divisor of the next");
    }
    dimensions.model_dimensions = static_cast<std::int32_t>(d) + 1;
    if (!whole) {
      dimensions.split_dimension = static_cast<std::int32_t>(d);
      dimensions.split_first = first;
      const auto at = dimensions.logical.begin() + static_cast<std::ptrdiff_t>(d);
      *at = physical[d] / first;
      dimensions.logical.insert(at, first);
      return;
    }
    inside *= physical[d];
  }
}

}  // namespace

TextDimensions text_dimensions(const std::vector<std::int64_t>& physical, std::int64_t group) {
  TextDimensions dimensions;
  dimensions.logical = physical;
  for (const std::int64_t size : physical) {
    if (size < 1 || size > kMostRanks / dimensions.ranks) {
      throw Error("dimensions", fmt::format("sizes {}", fmt::join(physical, "x")),
                  fmt::format("each at least 1, all together at most {} ranks", kMostRanks));
    }
    dimensions.ranks *= size;
  }
  if (group > 0) split_for(dimensions, physical, group);
  if (physical.empty() || dimensions.logical.size() > kMostDimensions) {
    throw Error("dimensions", fmt::format("{} of them", dimensions.logical.size()),
                fmt::format("text workloads run on 1 to {}, counting a split one twice", kMostDimensions));
  }
  return dimensions;
}

// By forward, input gradient, weight gradient; bit d stands for dimension d. As ASTRA-sim's
// Workload::decode_involved_dimensions, where a DLRM's first layer, the embedding, involves all.
std::array<std::uint32_t, 3> text_masks(TextPolicy policy, bool first_layer,
                                        const TextDimensions& dimensions) {
  const std::uint32_t all = (std::uint32_t{1} << dimensions.logical.size()) - 1;
  switch (policy) {
    case TextPolicy::hybrid_dlrm:
    case TextPolicy::hybrid_dlrm_enhanced:
      if (first_layer) return {all, all, all};
      [[fallthrough]];
    case TextPolicy::micro:
    case TextPolicy::data:
      return {0, 0, all};
    case TextPolicy::model:
    case TextPolicy::distributed_inference:
      return {all, all, 0};
    case TextPolicy::hybrid_data_model:
      return {1, 1, all & ~1U};
    case TextPolicy::hybrid_model_data:
      return {all & ~1U, all & ~1U, 1};
    case TextPolicy::hybrid_transformer:
    case TextPolicy::hybrid_transformer_fwd_in_bckwd: {
      const std::uint32_t model = (std::uint32_t{1} << dimensions.model_dimensions) - 1;
      return {model, model, all & ~model};
    }
    case TextPolicy::hybrid_customized:
      break;
  }
  return {0, 0, 0};
}

}  // namespace armilla
