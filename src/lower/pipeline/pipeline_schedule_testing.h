// For tests: runs a pipeline schedule with given times per action and free communication. A rank does its
// slots in order; a slot waits for what its pass needs. O(slots x ranks).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "lower/pipeline_schedule.h"

namespace armilla {

struct SlotTimes {
  std::int64_t forward = 1, input_gradient = 1, weight_gradient = 1;
  std::int64_t pair = 3;  // a forward beside a whole backward pass
};

struct PlayedSchedule {
  std::string fault;                           // empty: every pass was done once, in a possible order
  std::vector<std::int64_t> start, end, idle;  // per rank; idle between start and end of the whole
  std::int64_t makespan = 0;
};

class SchedulePlayer {
 public:
  SchedulePlayer(const PipelineOrder& order, SlotTimes times) : order_(order), times_(times) {}

  PlayedSchedule play() {
    const std::size_t ranks = order_.slots.size();
    std::vector<std::size_t> next(ranks);
    std::vector<std::int64_t> busy(ranks);
    result_.start.assign(ranks, -1);
    result_.end.assign(ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        while (next[rank] < order_.slots[rank].size() && advance(rank, next[rank], busy[rank])) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (next[rank] < order_.slots[rank].size())
        return {"rank " + std::to_string(rank) + " is stuck", {}, {}, {}, 0};
      result_.makespan = std::max(result_.makespan, result_.end[rank]);
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) result_.idle.push_back(result_.makespan - busy[rank]);
    return result_;
  }

  // Passes done: forward, input gradient, weight gradient.
  std::size_t passes(int kind) const {
    std::size_t count = 0;
    for (const auto& [key, time] : done_) count += static_cast<std::size_t>(std::get<0>(key) == kind);
    return count;
  }

 private:
  using Key = std::tuple<int, std::int32_t, std::int32_t, std::int32_t>;  // kind, chain, stage, micro-batch

  bool ready(const Key& key, std::int64_t& from) const {
    const auto found = done_.find(key);
    if (found == done_.end()) return false;
    from = std::max(from, found->second);
    return true;
  }

  bool can_start(std::size_t rank, const PipelineSlot& slot, std::int64_t& from) const {
    const PipelineChunk chunk = order_.chunks[rank][static_cast<std::size_t>(slot.chunk)];
    const std::int32_t i = slot.micro_batch;
    switch (slot.action) {
      case PipelineAction::forward:
        return chunk.stage == 0 || ready({0, chunk.chain, chunk.stage - 1, i}, from);
      case PipelineAction::backward:
      case PipelineAction::input_gradient:
        return ready({0, chunk.chain, chunk.stage, i}, from) &&
               (chunk.stage == order_.stages - 1 || ready({1, chunk.chain, chunk.stage + 1, i}, from));
      case PipelineAction::weight_gradient:
        return ready({1, chunk.chain, chunk.stage, i}, from);
    }
    return false;
  }

  std::int64_t time_of(PipelineAction action) const {
    switch (action) {
      case PipelineAction::forward:
        return times_.forward;
      case PipelineAction::backward:
        return times_.input_gradient + times_.weight_gradient;
      case PipelineAction::input_gradient:
        return times_.input_gradient;
      case PipelineAction::weight_gradient:
        return times_.weight_gradient;
    }
    return 0;
  }

  void finish(std::size_t rank, const PipelineSlot& slot, std::int64_t at) {
    const PipelineChunk chunk = order_.chunks[rank][static_cast<std::size_t>(slot.chunk)];
    const auto note = [&](int kind) {
      if (!done_.try_emplace({kind, chunk.chain, chunk.stage, slot.micro_batch}, at).second) repeated_ = true;
    };
    if (slot.action == PipelineAction::forward) note(0);
    if (slot.action == PipelineAction::backward || slot.action == PipelineAction::input_gradient) note(1);
    if (slot.action == PipelineAction::backward || slot.action == PipelineAction::weight_gradient) note(2);
    if (repeated_) result_.fault = "a pass is done twice";
  }

  // Does the next slot of a rank, with the one beside it, if it can start.
  bool advance(std::size_t rank, std::size_t& next, std::int64_t& busy) {
    const std::vector<PipelineSlot>& slots = order_.slots[rank];
    const bool pair = next + 1 < slots.size() && slots[next + 1].beside_previous;
    std::int64_t from = result_.end[rank];
    if (!can_start(rank, slots[next], from) || (pair && !can_start(rank, slots[next + 1], from)))
      return false;
    const std::int64_t time = pair ? times_.pair : time_of(slots[next].action);
    if (result_.start[rank] < 0) result_.start[rank] = from;
    finish(rank, slots[next], from + time);
    if (pair) finish(rank, slots[next + 1], from + time);
    result_.end[rank] = from + time;
    busy += time;
    next += pair ? 2 : 1;
    return true;
  }

  const PipelineOrder& order_;
  SlotTimes times_;
  std::map<Key, std::int64_t> done_;
  bool repeated_ = false;
  PlayedSchedule result_;
};

}  // namespace armilla
