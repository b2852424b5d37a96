#include "trace/text/text_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/units_text.h"

namespace armilla {

const TextPass& pass_of(const TextLayer& layer, TextPart part) {
  switch (part) {
    case TextPart::forward:
      return layer.forward;
    case TextPart::input_gradient:
      return layer.input_gradient;
    case TextPart::weight_gradient:
      break;
  }
  return layer.weight_gradient;
}

std::int64_t model_parallel_group(const TextWorkload& workload, const TextGraphOptions& options) {
  return options.model_parallel_group > 0 ? options.model_parallel_group : workload.model_parallel_group;
}

// SimAI's ranks from the inside out: tensor, expert, data, pipeline.
TextGroups::TextGroups(const TextWorkload& workload, const TextGraphOptions& options,
                       const TextDimensions& dimensions, Graph& graph)
    : workload_(workload), options_(options), dimensions_(dimensions), graph_(graph) {
  if (!options.simai) return;
  const std::int64_t tensor = std::max<std::int64_t>(model_parallel_group(workload, options), 1);
  const std::int64_t pipeline = workload.plan.pp.value_or(1), expert = workload.plan.ep.value_or(1);
  const std::int64_t inner = checked_multiply(checked_multiply(tensor, pipeline, "pp"), expert, "ep");
  if (inner < 1 || dimensions.ranks % inner != 0) {
    throw Error("dimensions",
                fmt::format("{} for groups of {} model-parallel, {} expert-parallel and {}",
                            typed_count(dimensions.ranks, "rank"), tensor, expert,
                            typed_count(pipeline, "pipeline rank")),
                "their product divides the number of ranks");
  }
  grid_ = {tensor, expert, dimensions.ranks / inner, pipeline};
}

// SimAI's groups are needed where a suffix names one, or where a pipeline leaves a part of the ranks to a
// stage.
std::optional<std::uint32_t> TextGroups::family(std::int32_t layer, TextPart part) {
  const TextPass& pass = pass_of(workload_.layers[static_cast<std::size_t>(layer)], part);
  if (options_.simai && is_transformer(workload_.policy) &&
      (pass.group != TextGroup::by_policy || workload_.plan.pp.value_or(1) > 1))
    return rank_sets(pass.group, part);
  const TextLayer& row = workload_.layers[static_cast<std::size_t>(layer)];
  const auto masks =
      text_masks(row.policy.value_or(workload_.policy), layer == 0 && is_dlrm(workload_.policy), dimensions_);
  return spanned(masks[static_cast<std::size_t>(part)], options_.flat.contains(*pass.collective));
}

std::optional<std::uint32_t> TextGroups::spanned(std::uint32_t mask, bool flat) {
  // Dimensions of one rank take no part.
  std::uint32_t active = 0;
  for (std::size_t d = 0; d < dimensions_.logical.size(); ++d) {
    if (dimensions_.logical[d] > 1) active |= std::uint32_t{1} << d;
  }
  // A flat algorithm's only dimension is the first.
  const std::uint32_t wanted = flat ? ((mask & 1) != 0 ? active : 0) : mask & active;
  if (wanted == 0) return std::nullopt;
  return cached({false, wanted}, [&] {
    return wanted == active ? world_family(dimensions_.ranks) : grid_family(dimensions_.logical, wanted);
  });
}

std::optional<std::uint32_t> TextGroups::rank_sets(TextGroup group, TextPart part) {
  // Bits of the grid: weights are averaged over experts' and data ranks, activations exchanged within tensor
  // ranks.
  std::uint32_t mask = part == TextPart::weight_gradient ? 0b0110 : 0b0001;
  if (group == TextGroup::expert) mask = 0b0010;
  if (group == TextGroup::data_expert) mask = 0b0100;
  std::int64_t ranks = 1;
  for (std::size_t d = 0; d < grid_.size(); ++d) ranks *= mask >> d & 1 ? grid_[d] : 1;
  if (ranks == 1) return std::nullopt;
  return cached({true, mask}, [&] {
    GroupFamily family = grid_family(grid_, mask);
    family.name = group == TextGroup::expert        ? "expert"
                  : group == TextGroup::data_expert ? "data of experts"
                  : mask == 0b0001                  ? "tensor"
                                                    : "data";
    // Not a mask of the machine's dimensions, and must not be taken for one.
    family.dimension_mask = 0;
    return family;
  });
}

}  // namespace armilla
