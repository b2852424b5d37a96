#include "study/search/time_bound.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "lower/pipeline_schedule.h"

namespace armilla {
namespace {

// What a rank can send with, over all dimensions at once.
double send_rate(const Machine& machine) {
  double bytes_per_second = 0;
  for (const Dimension& dimension : machine.dimensions) {
    double links = 1;
    if (dimension.kind == DimensionKind::ring) links = 2;
    if (dimension.kind == DimensionKind::fully_connected) links = static_cast<double>(dimension.size - 1);
    bytes_per_second += links * dimension.bandwidth.value;
  }
  return bytes_per_second;
}

// Whether an all-reduce is surely a reduce-scatter followed by an all-gather.
bool reduces_in_two_halves(const CollectiveOptions& options, const Machine& machine) {
  constexpr std::array<std::string_view, 4> kHalves = {"ring", "bidirectional-ring", "direct",
                                                       "halving-doubling"};
  const auto found = options.algorithms_by_kind.find(CollectiveKind::all_reduce);
  const std::vector<std::string>& names =
      found == options.algorithms_by_kind.end() ? options.algorithms : found->second;
  if (names.empty()) {
    return std::none_of(machine.dimensions.begin(), machine.dimensions.end(),
                        [](const Dimension& dimension) { return dimension.in_switch.has_value(); });
  }
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(kHalves.begin(), kHalves.end(),
                       [&](std::string_view half) { return name.substr(0, name.find(':')) == half; });
  });
}

bool ranks_are_alike(const Study& study) {
  return study.machine.others.empty() && !study.what_if.changes_simulation() && study.profile.file.empty() &&
         study.plan.expert_load == ExpertLoad::uniform;
}

}  // namespace

StagePaths::StagePaths(const Study& study, const ShardedModel& model, const CostModel& cost)
    : model_(model),
      plan_(study.plan),
      // Networks that let messages pass each other could carry any number of bytes at once.
      rate_(study.network.name == "analytical" ? send_rate(study.machine) : 0),
      two_halves_(reduces_in_two_halves(study.collectives, study.machine)),
      sums_only_(schedule_of(study.plan).overlaps_passes),
      weights_apart_(schedule_of(study.plan).passes > 2) {
  work_times_.reserve(model.works.size());
  for (const Work& work : model.works) work_times_.push_back(cost.time(work));
}

const StagePaths::Times& StagePaths::of(const std::vector<std::uint32_t>& shapes) {
  const auto [found, fresh] = known_.try_emplace(shapes);
  Times& times = found->second;
  if (!fresh) return times;
  std::vector<const Pass*> forward, backward;
  for (const std::uint32_t shape : shapes) forward.push_back(&model_.shapes[shape].forward);
  for (std::size_t b = shapes.size(); b-- > 0;) {
    backward.push_back(&model_.shapes[shapes[b]].recompute);
    backward.push_back(&model_.shapes[shapes[b]].backward);
  }
  for (const std::vector<const Pass*>& passes : {forward, backward}) {
    for (const Pass* const pass : passes) {
      times.computations += std::count_if(pass->steps.begin(), pass->steps.end(), [](const PassStep& step) {
        return step.kind == NodeKind::compute;
      });
    }
  }
  times.forward = path(forward, true);
  times.backward = path(backward, !weights_apart_);
  if (!weights_apart_) return times;
  // Together they compute everything once, whatever the communication between.
  for (const Pass* const pass : backward) {
    for (const PassStep& step : pass->steps) {
      if (step.kind == NodeKind::compute && step.phase == Phase::weight_gradient)
        times.weights += work_times_[step.work];
    }
  }
  return times;
}

// Of the passes one after the other, in a slot.
Time StagePaths::path(const std::vector<const Pass*>& passes, bool with_weight_gradients) {
  Time chain, entry;
  for (const Pass* const pass : passes) {
    if (pass->steps.empty()) continue;
    const Time start = chain;
    ends_.assign(pass->steps.size(), Time(0));
    waited_for_.assign(pass->steps.size(), false);
    for (std::size_t i = 0; i < pass->steps.size(); ++i) {
      const PassStep& step = pass->steps[i];
      const bool computes = step.kind == NodeKind::compute;
      if (!with_weight_gradients && step.phase == Phase::weight_gradient) {
        ends_[i] = start;
        continue;
      }
      Time begin = computes ? chain : start;
      if (!sums_only_) {
        if (step.after.empty()) begin = std::max(begin, entry);
        for (const std::uint32_t before : step.after) {
          begin = std::max(begin, ends_[before]);
          waited_for_[before] = true;
        }
      }
      ends_[i] = begin + (computes ? work_times_[step.work] : least(step));
      if (computes) chain = ends_[i];
    }
    // What nobody in the pass waits for, the next pass does.
    entry = start;
    for (std::size_t i = 0; i < pass->steps.size(); ++i) {
      if (pass->steps[i].kind == NodeKind::collective && !waited_for_[i] && !sums_only_)
        entry = std::max(entry, ends_[i]);
    }
  }
  return chain;
}

std::int64_t StagePaths::members(GroupAxis axis) const {
  switch (axis) {
    case GroupAxis::tensor:
      return plan_.tensor;
    case GroupAxis::context:
      return plan_.context;
    case GroupAxis::expert:
      return plan_.expert;
    case GroupAxis::expert_tensor:
      return plan_.experts_tensor();
    default:
      return 1;
  }
}

Time StagePaths::least(const PassStep& step) const {
  if (step.kind != NodeKind::collective || step.custom >= 0 || rate_ <= 0) return {};
  // Tokens that are sent once for several experts are fewer than the call says.
  if (step.routing.experts > 0) return {};
  const auto n = static_cast<double>(members(step.axis));
  if (n < 2) return {};
  double sent = (n - 1) / n * static_cast<double>(step.bytes.value);
  switch (step.collective) {
    case CollectiveKind::all_reduce:
      if (two_halves_) sent *= 2;
      break;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      break;
    default:
      return {};
  }
  // Rounded down, and a picosecond for the divisions above.
  return Time(std::max<std::int64_t>(0, static_cast<std::int64_t>(sent / rate_ * 1e12) - 1));
}

Time least_iteration(const Study& study, StagePaths& paths, const StageCut& stages,
                     const PipelineOrder& order) {
  if (!ranks_are_alike(study) || !schedule_of(study.plan).flushes) return {};
  std::vector<const StagePaths::Times*> times;
  std::vector<Time> before_forward = {Time(0)}, before_backward = {Time(0)};
  for (std::int32_t stage = 0; stage < order.stages; ++stage) {
    times.push_back(&paths.of(stage_shapes(paths.model(), study.plan, stages, stage)));
    before_forward.push_back(before_forward.back() + times.back()->forward);
    before_backward.push_back(before_backward.back() + times.back()->backward);
  }
  const std::int64_t passes = study.plan.micro_batches / order.chains;
  Time least;
  for (const std::vector<PipelineChunk>& chunks : order.chunks) {
    if (chunks.empty()) continue;
    Time first = kEndOfTime, last = kEndOfTime, work, weights;
    std::int64_t computations = 0;
    for (const PipelineChunk& chunk : chunks) {
      const auto stage = static_cast<std::size_t>(chunk.stage);
      first = std::min(first, before_forward[stage]);
      last = std::min(last, before_backward[stage]);
      work += saturating_multiply(times[stage]->forward + times[stage]->backward, passes);
      weights += saturating_multiply(times[stage]->weights, passes);
      computations += times[stage]->computations * passes;
    }
    least = std::max(least, std::max(first + work + last, first + work + weights));
    least = std::max(least, saturating_multiply(issue_time_of(study.plan), computations));
  }
  return least;
}

}  // namespace armilla
