#include "study/search/time_bound.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "ir/tensor.h"
#include "lower/expert_exchange.h"
#include "lower/pipeline_schedule.h"

namespace armilla {
namespace {

Bytes least_size(std::int64_t elements, DType type) {
  return type == DType::unknown ? Bytes(0) : size_of(elements, type, "weights");
}

// What the proof needs of all ranks: that a computation lasts what the cost model says, wherever it is.
bool ranks_are_alike(const Study& setting, const Plan& plan) {
  return setting.machine.others.empty() && !setting.what_if.changes_simulation() &&
         setting.profile.file.empty() && !is_uneven(plan);
}

}  // namespace

StagePaths::StagePaths(const Plan& plan, const ShardedModel& model, const CostModel& cost,
                       LeastCommunication& communication, LeastCommunication::Known known)
    : model_(model),
      communication_(communication),
      known_of_calls_(known),
      place_(communication.place(plan)),
      // Passes that run beside each other share the device: of paths through one of them nothing is certain
      // then but the sum of what they compute.
      sums_only_(schedule_of(plan).overlaps_passes),
      weights_apart_(schedule_of(plan).passes > 2) {
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
      for (const PassStep& step : pass->steps) {
        if (step.kind != NodeKind::compute) continue;
        times.computations += step.along ? 0 : 1;
        times.computing += work_times_[step.work];
      }
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
      // Computations of a rank follow one another; communications wait for what they name, and no longer.
      Time begin = computes ? chain : start;
      if (!sums_only_) {
        if (step.after.empty()) begin = std::max(begin, entry);
        for (const std::uint32_t before : step.after) {
          begin = std::max(begin, ends_[before]);
          waited_for_[before] = true;
        }
      }
      ends_[i] = begin + (computes ? work_times_[step.work]
                                   : communication_.of_collective(place_, step, known_of_calls_));
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

StageExchanges::StageExchanges(const Plan& plan, StagePaths& paths, Bandwidth host_bandwidth)
    : plan_(plan),
      paths_(paths),
      host_bandwidth_(host_bandwidth.value > 0 ? host_bandwidth : kHostBandwidth) {}

const StageExchanges::Sizes& StageExchanges::of(const std::vector<std::uint32_t>& shapes) {
  const auto [found, fresh] = known_.try_emplace(shapes);
  if (fresh) add_weights(shapes, found->second);
  return found->second;
}

void StageExchanges::add_weights(const std::vector<std::uint32_t>& shapes, Sizes& sizes) {
  const ShardedModel& model = paths_.model();
  if (plan_.offload_activations) {
    for (const std::uint32_t shape : shapes)
      sizes.copies += time_to_move(model.shapes[shape].saved, host_bandwidth_);
  }
  // Of ZeRO 2 and 3, and of shards within groups of replicas, nothing is claimed of exchanges.
  if (plan_.zero_stage > 1 || plan_.hybrid_shard > 0) return;
  const DType parameter =
      plan_.parameter_dtype == DType::unknown ? plan_.weight_dtype : plan_.parameter_dtype;
  Bytes expert_parameters;
  for (const std::uint32_t shape : shapes) {
    for (const WeightGroup& group : model.shapes[shape].weights) {
      // Tied weights are exchanged with other ranks' as well: left out, which keeps the bound a bound.
      if (group.tied >= 0) continue;
      const bool expert = group.axis == GroupAxis::expert_data;
      (expert ? sizes.experts : sizes.dense) += least_size(updated_of(group), plan_.gradient_dtype);
      const bool own = group.dtype != DType::unknown;
      (expert ? expert_parameters : sizes.parameters) +=
          least_size(group.elements, own ? group.dtype : parameter);
      if (!plan_.offload_optimizer) continue;
      const std::int64_t replicas = expert ? plan_.expert_data() : plan_.data() * plan_.context;
      const std::int64_t elements = updated_of(group) / (plan_.zero_stage > 0 ? replicas : 1);
      sizes.down += time_to_move(least_size(elements, plan_.gradient_dtype), host_bandwidth_);
      sizes.up += time_to_move(least_size(elements, own ? group.dtype : plan_.weight_dtype), host_bandwidth_);
    }
  }
  if (plan_.zero_stage == 0 || !plan_.overlap_parameters) return;
  constexpr CollectiveKind kGather = CollectiveKind::all_gather;
  sizes.gather = std::max(paths_.on_links(GroupAxis::data, kGather, sizes.parameters),
                          paths_.on_links(GroupAxis::expert_data, kGather, expert_parameters));
}

namespace {

// What the stage sends to the next one, where it has to.
Time message_behind(StagePaths& paths, const Plan& plan, const StageCut& stages, const PipelineOrder& order,
                    std::int32_t stage) {
  if (stage + 1 == order.stages) return {};
  for (std::int32_t chain = 0; chain < order.chains; ++chain) {
    // Of chains of both directions the least counts, for one of them may stay on its rank.
    if (order.place(chain, stage).rank == order.place(chain, stage + 1).rank) return {};
  }
  const ShardedModel& model = paths.model();
  const auto last = static_cast<std::size_t>(stages.end[static_cast<std::size_t>(stage)] - 1);
  return paths.of_message(sent_between_stages(model.shapes[model.blocks[last].shape].output, plan));
}

// The slots of a plan, each as early as can be.
class SlotPlay {
 public:
  SlotPlay(const Plan& plan, StageExchanges& exchanges, const StageCut& stages, const PipelineOrder& order)
      : plan_(plan),
        paths_(exchanges.paths()),
        order_(order),
        micro_batches_(static_cast<std::size_t>(plan.micro_batches)) {
    for (std::int32_t stage = 0; stage < order.stages; ++stage) {
      const std::vector<std::uint32_t> shapes = stage_shapes(paths_.model(), plan, stages, stage);
      times_.push_back(&paths_.of(shapes));
      sizes_.push_back(&exchanges.of(shapes));
      messages_.push_back(message_behind(paths_, plan, stages, order, stage));
    }
    forward_.assign(times_.size() * micro_batches_, kNever);
    backward_ = forward_;
  }

  Time last_end() {
    std::vector<std::size_t> next(order_.slots.size());
    now_.resize(order_.slots.size());
    for (const std::vector<PipelineSlot>& slots : order_.slots) starts_.emplace_back(slots.size());
    Time end;
    // Ranks take turns for as long as any of them can go on: orders that schedules make never wait in a
    // circle, so that this ends with all slots played, each once.
    for (bool any = true; any;) {
      any = false;
      for (std::size_t rank = 0; rank < next.size(); ++rank) {
        for (; next[rank] < order_.slots[rank].size() && play(rank, next[rank], now_[rank]); ++next[rank]) {
          any = true;
          played_.emplace_back(rank, next[rank]);
        }
        end = std::max(end, now_[rank]);
      }
    }
    for (std::size_t rank = 0; rank < next.size(); ++rank)
      end = std::max({end, end_of_exchanges(rank), end_of_copies(rank)});
    return end;
  }

  // After `last_end`.
  std::vector<std::vector<Time>> least_after() {
    // From the begin of each slot on, and from the end of what its rank computes in it.
    std::vector<std::vector<Time>> from_begin(starts_.size()), after(starts_.size());
    for (std::size_t rank = 0; rank < starts_.size(); ++rank) {
      from_begin[rank].resize(starts_[rank].size());
      after[rank].resize(starts_[rank].size());
      for (const Exchange& exchange : exchanges_of(rank)) {
        Time& least = plan_.overlap ? from_begin[rank][exchange.slot] : after[rank].back();
        least = std::max(least, exchange.least);
      }
    }
    std::vector<Time> forward(forward_.size()), backward(backward_.size());
    // Backwards in the order of playing: what a slot's end is waited for by has been looked at before it.
    for (std::size_t i = played_.size(); i-- > 0;) {
      const auto [rank, number] = played_[i];
      const PipelineSlot& slot = order_.slots[rank][number];
      const std::size_t stage = stage_of(rank, slot);
      const StagePaths::Times& time = *times_[stage];
      Time& least = after[rank][number];
      if (number + 1 < after[rank].size()) least = std::max(least, from_begin[rank][number + 1]);
      Time length = time.backward;
      switch (slot.action) {
        case PipelineAction::forward:
          if (stage + 1 < times_.size())
            least = std::max(least, messages_[stage] + end_of(forward, stage + 1, slot));
          length = time.forward;
          break;
        case PipelineAction::backward:
          length += time.weights;
          if (time.weights > Time(0)) break;  // the stage before does not wait for these
          [[fallthrough]];
        case PipelineAction::input_gradient:
          if (stage > 0) least = std::max(least, messages_[stage - 1] + end_of(backward, stage - 1, slot));
          break;
        case PipelineAction::weight_gradient:
          length = time.weights;
          break;
      }
      Time& whole = from_begin[rank][number];
      whole = std::max(whole, length + least);
      if (slot.action == PipelineAction::weight_gradient) continue;
      end_of(slot.action == PipelineAction::forward ? forward : backward, stage, slot) = whole;
    }
    return after;
  }

  // Likewise.
  Time first_exchange() {
    Time first = kEndOfTime;
    for (std::size_t rank = 0; rank < starts_.size(); ++rank) {
      const std::vector<Exchange> exchanges = exchanges_of(rank);
      if (exchanges.empty()) return {};
      first = std::min(first, starts_[rank][exchanges.back().slot]);
    }
    return first;
  }

 private:
  static constexpr Time kNever{-1};

  // From the begin of a slot on, or from the end of the rank's last, if there is no overlap.
  struct Exchange {
    std::size_t slot = 0;
    Time least;
  };

  std::size_t stage_of(std::size_t rank, const PipelineSlot& slot) const {
    return static_cast<std::size_t>(order_.chunks[rank][static_cast<std::size_t>(slot.chunk)].stage);
  }
  Time& end_of(std::vector<Time>& ends, std::size_t stage, const PipelineSlot& slot) const {
    return ends[stage * micro_batches_ + static_cast<std::size_t>(slot.micro_batch)];
  }

  // Whether what the slot continues is done; then `now`, the end of the slot before it, becomes its own.
  bool play(std::size_t rank, std::size_t number, Time& now) {
    const PipelineSlot& slot = order_.slots[rank][number];
    const std::size_t stage = stage_of(rank, slot);
    const StagePaths::Times& time = *times_[stage];
    const bool forward = slot.action == PipelineAction::forward;
    Time begin = now;
    if (slot.action != PipelineAction::weight_gradient) {
      if (forward ? stage > 0 : stage + 1 < times_.size()) {
        const std::size_t other = forward ? stage - 1 : stage + 1;
        const Time before = end_of(forward ? forward_ : backward_, other, slot);
        if (before == kNever) return false;
        begin = std::max(begin, before + messages_[std::min(stage, other)]);
      }
    }
    starts_[rank][number] = begin;
    switch (slot.action) {
      case PipelineAction::forward:
        now = begin + time.forward;
        if (slot.micro_batch == 0) now = std::max(now, sizes_[stage]->gather);
        end_of(forward_, stage, slot) = now;
        return true;
      // Whole, too, where weight gradients may have slots of their own.
      case PipelineAction::backward:
        now = begin + time.backward + time.weights;
        end_of(backward_, stage, slot) = begin + time.backward;
        return true;
      case PipelineAction::input_gradient:
        now = end_of(backward_, stage, slot) = begin + time.backward;
        return true;
      case PipelineAction::weight_gradient:
        now = begin + time.weights;
        return true;
    }
    return true;
  }

  Time end_of_copies(std::size_t rank) const {
    Time end = starts_[rank].front();
    for (const PipelineSlot& slot : order_.slots[rank]) {
      if (slot.action != PipelineAction::weight_gradient) end += sizes_[stage_of(rank, slot)]->copies;
    }
    return end;
  }

  Time end_of_exchanges(std::size_t rank) {
    Time end;
    for (const Exchange& exchange : exchanges_of(rank))
      end = std::max(end, (plan_.overlap ? starts_[rank][exchange.slot] : now_[rank]) + exchange.least);
    return end;
  }

  // Of gradients between replicas, and what follows, from the last backward pass of each chunk of
  // the rank on, the latest slot first.
  std::vector<Exchange> exchanges_of(std::size_t rank) {
    const PipelineScheduleInfo& schedule = schedule_of(plan_);
    if (schedule.passes != 2 || plan_.zero_stage > 1 || plan_.hybrid_shard > 0) return {};
    const std::vector<PipelineChunk>& chunks = order_.chunks[rank];
    const auto sizes_of = [&](std::size_t chunk) -> const StageExchanges::Sizes& {
      return *sizes_[static_cast<std::size_t>(chunks[chunk].stage)];
    };
    const CollectiveKind kind =
        plan_.zero_stage == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
    Time after;  // what follows when all gradients are there
    Bytes parameters;
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      after += sizes_of(chunk).up;
      parameters += sizes_of(chunk).parameters;
    }
    if (plan_.zero_stage == 1 && !plan_.overlap_parameters)
      after += paths_.on_links(GroupAxis::data, CollectiveKind::all_gather, parameters);
    const std::vector<PipelineSlot>& slots = order_.slots[rank];
    std::vector<bool> seen(chunks.size());
    std::size_t left = chunks.size();
    Bytes dense, experts;
    Time down;
    std::vector<Exchange> exchanges;
    for (std::size_t s = slots.size(); s-- > 0 && left > 0;) {
      const auto chunk = static_cast<std::size_t>(slots[s].chunk);
      if (slots[s].action != PipelineAction::backward || seen[chunk]) continue;
      seen[chunk] = true;
      --left;
      dense += sizes_of(chunk).dense;
      experts += sizes_of(chunk).experts;
      down += sizes_of(chunk).down;
      const Time exchange = std::max({paths_.on_links(GroupAxis::data, kind, dense),
                                      paths_.on_links(GroupAxis::expert_data, kind, experts), down});
      exchanges.push_back({s, exchange + after});
    }
    return exchanges;
  }

  const Plan& plan_;
  StagePaths& paths_;
  const PipelineOrder& order_;
  std::size_t micro_batches_;
  std::vector<const StagePaths::Times*> times_;              // by stage
  std::vector<const StageExchanges::Sizes*> sizes_;          // likewise
  std::vector<Time> messages_;                               // behind it
  std::vector<Time> forward_, backward_;                     // ends, by stage and micro-batch
  std::vector<std::vector<Time>> starts_;                    // of slots, by rank
  std::vector<Time> now_;                                    // ends of the ranks' last slots
  std::vector<std::pair<std::size_t, std::size_t>> played_;  // ranks and slots, as they were played
};

bool knows_slots(const Study& setting, const Plan& plan, const PipelineOrder& order) {
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  return ranks_are_alike(setting, plan) && schedule.flushes && !schedule.overlaps_passes && order.chains == 1;
}

}  // namespace

Time least_iteration(const Study& setting, const Plan& plan, StagePaths& paths, const StageCut& stages,
                     const PipelineOrder& order) {
  if (!ranks_are_alike(setting, plan) || !schedule_of(plan).flushes) return {};
  std::vector<const StagePaths::Times*> times;
  std::vector<Time> before_forward = {Time(0)}, before_backward = {Time(0)};
  for (std::int32_t stage = 0; stage < order.stages; ++stage) {
    times.push_back(&paths.of(stage_shapes(paths.model(), plan, stages, stage)));
    const Time message = message_behind(paths, plan, stages, order, stage);
    before_forward.push_back(before_forward.back() + times.back()->forward + message);
    before_backward.push_back(before_backward.back() + times.back()->backward + message);
  }
  const std::int64_t passes = plan.micro_batches / order.chains;
  // Pairs of one direction: what a rank can do before gradients arrive is not looked at; its sum is certain.
  const bool pairs = schedule_of(plan).overlaps_passes && order.chains == 1;
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
    if (pairs) first = last = weights = Time(0);
    least = std::max(least, std::max(first + work + last, first + work + weights));
    least = std::max(least, saturating_multiply(issue_time_of(plan), computations));
  }
  return least + plan.step_overhead;
}

double least_computing(const Study& setting, const Plan& plan, StagePaths& paths, const StageCut& stages,
                       const PipelineOrder& order) {
  if (!ranks_are_alike(setting, plan) || !schedule_of(plan).flushes) return 0;
  WideProduct of_chunks = 0;
  for (const std::vector<PipelineChunk>& chunks : order.chunks) {
    for (const PipelineChunk& chunk : chunks) {
      of_chunks += paths.of(stage_shapes(paths.model(), plan, stages, chunk.stage)).computing.value;
    }
  }
  return static_cast<double>(of_chunks * (plan.micro_batches / order.chains) * (plan.ranks / plan.pipeline));
}

Time least_iteration_of_slots(const Study& setting, const Plan& plan, StageExchanges& exchanges,
                              const StageCut& stages, const PipelineOrder& order) {
  if (!knows_slots(setting, plan, order)) return {};
  return SlotPlay(plan, exchanges, stages, order).last_end() + plan.step_overhead;
}

LeastAhead least_ahead(const Study& setting, const Plan& plan, StageExchanges& exchanges,
                       const StageCut& stages, const PipelineOrder& order) {
  if (!knows_slots(setting, plan, order)) return {};
  SlotPlay play(plan, exchanges, stages, order);
  play.last_end();
  return {play.least_after(), play.first_exchange()};
}

}  // namespace armilla
