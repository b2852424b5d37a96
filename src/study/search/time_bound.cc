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
bool reduces_in_two_halves(const CollectiveOptions& options) {
  constexpr std::array<std::string_view, 3> kHalves = {"ring", "direct", "halving-doubling"};
  const auto found = options.algorithms_by_kind.find(CollectiveKind::all_reduce);
  const std::vector<std::string>& names =
      found == options.algorithms_by_kind.end() ? options.algorithms : found->second;
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(kHalves.begin(), kHalves.end(),
                       [&](std::string_view half) { return name.substr(0, name.find(':')) == half; });
  });
}

class PathTimes {
 public:
  PathTimes(const Study& study, const ShardedModel& model, const CostModel& cost)
      : plan_(study.plan),
        model_(model),
        // Networks that let messages pass each other could carry any number of bytes at once.
        rate_(study.network.name == "analytical" ? send_rate(study.machine) : 0),
        two_halves_(reduces_in_two_halves(study.collectives)),
        sums_only_(schedule_of(study.plan).overlaps_passes) {
    for (const Work& work : model.works) times_.push_back(cost.time(work));
  }

  // Of the passes one after the other, in a slot; computations of `skipped` phases are left out.
  Time of(const std::vector<const Pass*>& passes, bool with_weight_gradients) {
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
        ends_[i] = begin + (computes ? times_[step.work] : least(step));
        if (computes) chain = ends_[i];
      }
      entry = start;
      for (std::size_t i = 0; i < pass->steps.size(); ++i) {
        const PassStep& step = pass->steps[i];
        if (step.kind == NodeKind::compute || waited_for_[i] || sums_only_) continue;
        if (step.kind == NodeKind::collective) entry = std::max(entry, ends_[i]);
      }
    }
    return chain;
  }

 private:
  std::int64_t members(GroupAxis axis) const {
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

  Time least(const PassStep& step) const {
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

  const Plan& plan_;
  const ShardedModel& model_;
  double rate_;
  bool two_halves_, sums_only_;
  std::vector<Time> times_;  // per work
  std::vector<Time> ends_;
  std::vector<bool> waited_for_;
};

struct StageTimes {
  Time forward, backward, weights;  // `backward` without `weights` where these have slots of their own
};

bool ranks_are_alike(const Study& study) {
  return study.machine.others.empty() && !study.what_if.changes_simulation() && study.profile.file.empty() &&
         study.plan.expert_load == ExpertLoad::uniform;
}

}  // namespace

Time least_iteration(const Study& study, const ShardedModel& model, const StageCut& stages,
                     const PipelineOrder& order, const CostModel& cost) {
  const PipelineScheduleInfo& schedule = schedule_of(study.plan);
  if (!ranks_are_alike(study) || !schedule.flushes) return {};
  const bool weights_apart = schedule.passes > 2;
  PathTimes paths(study, model, cost);
  std::vector<StageTimes> times;
  for (std::int32_t stage = 0; stage < order.stages; ++stage) {
    const std::vector<std::uint32_t> shapes = stage_shapes(model, study.plan, stages, stage);
    std::vector<const Pass*> forward, backward;
    for (const std::uint32_t shape : shapes) forward.push_back(&model.shapes[shape].forward);
    for (std::size_t b = shapes.size(); b-- > 0;) {
      backward.push_back(&model.shapes[shapes[b]].recompute);
      backward.push_back(&model.shapes[shapes[b]].backward);
    }
    StageTimes& of = times.emplace_back();
    of.forward = paths.of(forward, true);
    of.backward = paths.of(backward, !weights_apart);
    if (weights_apart) {
      // Together they compute everything once, whatever the communication between.
      for (const Pass* const pass : backward) {
        for (const PassStep& step : pass->steps) {
          if (step.kind == NodeKind::compute && step.phase == Phase::weight_gradient)
            of.weights = of.weights + cost.time(model.works[step.work]);
        }
      }
    }
  }
  std::vector<Time> before_forward(times.size() + 1), before_backward(times.size() + 1);
  for (std::size_t s = 0; s < times.size(); ++s) {
    before_forward[s + 1] = before_forward[s] + times[s].forward;
    before_backward[s + 1] = before_backward[s] + times[s].backward;
  }
  Time least;
  for (const std::vector<PipelineChunk>& chunks : order.chunks) {
    Time first = kEndOfTime, last = kEndOfTime, work, weights;
    for (const PipelineChunk& chunk : chunks) {
      const auto stage = static_cast<std::size_t>(chunk.stage);
      first = std::min(first, before_forward[stage]);
      last = std::min(last, before_backward[stage]);
      const std::int64_t passes = study.plan.micro_batches / order.chains;
      work = work + saturating_multiply(times[stage].forward + times[stage].backward, passes);
      weights = weights + saturating_multiply(times[stage].weights, passes);
    }
    if (chunks.empty()) continue;
    least = std::max(least, std::max(first + work + last, first + work + weights));
  }
  return least;
}

}  // namespace armilla
