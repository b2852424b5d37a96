// The slots of one pipeline rank in the making: counts the micro-batches of every chunk, so that a schedule
// is written as the sequence of its actions alone.
//
// Micro-batches of a chunk go forward and backward in order, `count` of them from `first` on; what a schedule
// asks for beyond the last is dropped (the V schedule is laid out for enough micro-batches to fill the
// pipeline). Weight gradients that were put off wait in a queue. Cost: O(1) per slot, O(queue) to take a
// chunk's weight gradient past another chunk's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lower/pipeline_schedule.h"

namespace armilla {

class SlotBuilder {
 public:
  SlotBuilder(std::vector<std::int32_t> first, std::int32_t count)
      : first_(std::move(first)), count_(count), forwards_(first_.size()), backwards_(first_.size()) {
    slots_.reserve(2 * first_.size() * static_cast<std::size_t>(std::max(count, 0)));
  }

  void forward(std::int32_t chunk) { add(PipelineAction::forward, chunk, next(forwards_, chunk), false); }
  void backward(std::int32_t chunk) { add(PipelineAction::backward, chunk, next(backwards_, chunk), false); }
  // Both at once.
  void forward_and_backward(std::int32_t forward_chunk, std::int32_t backward_chunk) {
    forward(forward_chunk);
    add(PipelineAction::backward, backward_chunk, next(backwards_, backward_chunk), true);
  }
  void input_gradient(std::int32_t chunk) {
    const std::int32_t i = next(backwards_, chunk);
    add(PipelineAction::input_gradient, chunk, i, false);
    if (i < count_) put_off_.emplace_back(chunk, i);
  }
  // The one that waits longest.
  void weight_gradient() { take(put_off_.begin()); }
  void weight_gradient(std::int32_t chunk) {
    take(std::find_if(put_off_.begin(), put_off_.end(), [=](const auto& w) { return w.first == chunk; }));
  }

  std::int32_t forwards(std::int32_t chunk) const { return forwards_[static_cast<std::size_t>(chunk)]; }
  std::int32_t waiting() const { return static_cast<std::int32_t>(put_off_.size()); }
  std::vector<PipelineSlot> take_slots() { return std::move(slots_); }

 private:
  using PutOff = std::deque<std::pair<std::int32_t, std::int32_t>>;  // chunk and micro-batch

  static std::int32_t next(std::vector<std::int32_t>& counts, std::int32_t chunk) {
    return counts[static_cast<std::size_t>(chunk)]++;
  }
  void add(PipelineAction action, std::int32_t chunk, std::int32_t i, bool beside) {
    if (i < count_) slots_.push_back({action, first_[static_cast<std::size_t>(chunk)] + i, chunk, beside});
  }
  void take(PutOff::iterator which) {
    if (which == put_off_.end()) return;
    add(PipelineAction::weight_gradient, which->first, which->second, false);
    put_off_.erase(which);
  }

  std::vector<std::int32_t> first_;  // per chunk
  std::int32_t count_;
  std::vector<std::int32_t> forwards_, backwards_;  // per chunk
  PutOff put_off_;
  std::vector<PipelineSlot> slots_;
};

// What several schedules share: stages dealt to the ranks in turn, and the check that a rank has one.
std::vector<PipelineChunk> round_robin_chunks(const Plan& plan, std::int32_t rank);
void require_one_chunk(const Plan& plan, const std::string& where);
// For checks: "a and b" or "b", multiples of `unit` around `value`, from `least` on.
std::string nearest_multiples(std::int64_t unit, std::int64_t value, std::int64_t least);

}  // namespace armilla
