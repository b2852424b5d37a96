#include "cost/systolic/write_buffer.h"

#include <algorithm>

#include "base/checked.h"

namespace armilla {

WriteBuffer::WriteBuffer(const OperandStream& results, std::int64_t words, std::int64_t bandwidth)
    : results_(results), words_(words), half_(words / 2), bandwidth_(bandwidth), free_(words) {}

void WriteBuffer::store(std::int64_t words) {
  pending_ += words;
  free_ -= words;
}

void WriteBuffer::flush() {
  if (pending_ >= bandwidth_) lines_.push_back({pending_ / bandwidth_, bandwidth_});
  if (pending_ % bandwidth_ != 0) lines_.push_back({1, pending_ % bandwidth_});
  pending_ = 0;
}

void WriteBuffer::drain(std::int64_t cycle) {
  // As many lines as half of the buffer fills, one per cycle.
  const std::int64_t most = ceil_divide(half_, bandwidth_);
  std::int64_t left = most, words = 0;
  while (left > 0 && !lines_.empty()) {
    Lines& front = lines_.front();
    const std::int64_t taken = std::min(left, front.count);
    words += taken * bandwidth_;
    left -= taken;
    front.count -= taken;
    // Of the last line of the group only what it holds; a short one before it counts as full, as in
    // SCALE-Sim.
    if (left == 0 || lines_.size() == 1) words -= bandwidth_ - front.words;
    if (front.count == 0) lines_.pop_front();
  }
  traffic_.words += words;
  free_ += words;
  drain_end_ = cycle + (most - left) - 1;
  if (!drained_) traffic_.first = cycle;
  drained_ = true;
  traffic_.last = drain_end_;
  latest_ = std::max(latest_, drain_end_);
}

std::int64_t WriteBuffer::words_to_full() const {
  return std::max<std::int64_t>(1, free_);
}

std::int64_t WriteBuffer::words_to_drain() const {
  return std::max<std::int64_t>(1, free_ - (words_ - half_) + 1);
}

std::int64_t WriteBuffer::write_line(std::int64_t line, std::int64_t cycle) {
  std::int64_t words = results_.words_until(line + 1) - results_.words_until(line);
  std::int64_t now = cycle;
  while (words > 0) {
    const bool draining = now < drain_end_;
    const std::int64_t stored = std::min(words, draining ? words_to_full() : words_to_drain());
    const bool event = stored == (draining ? words_to_full() : words_to_drain());
    store(stored);
    words -= stored;
    if (!event) continue;
    if (draining) {
      now = drain_end_;
    } else {
      flush();
      drain(now);
    }
  }
  return now - cycle;
}

std::int64_t WriteBuffer::advance(std::int64_t from, std::int64_t to, std::int64_t stall) {
  while (from < to) {
    const bool draining = from + stall < drain_end_;
    const std::int64_t until = draining ? std::min(to, drain_end_ - stall) : to;
    const std::int64_t before = results_.words_until(from);
    const std::int64_t words = results_.words_until(until) - before;
    const std::int64_t needed = draining ? words_to_full() : words_to_drain();
    if (words < needed) {
      store(words);
      from = until;
      continue;
    }
    // Up to the line in which something happens all is stored at once; only that line is looked at word by
    // word.
    const std::int64_t line = results_.line_of(before + needed);
    store(results_.words_until(line) - before);
    stall += write_line(line, line + stall);
    from = line + 1;
  }
  return stall;
}

void WriteBuffer::finish(std::int64_t cycle) {
  flush();
  while (!lines_.empty()) {
    drain(cycle);
    cycle = drain_end_ + 1;
  }
}

}  // namespace armilla
