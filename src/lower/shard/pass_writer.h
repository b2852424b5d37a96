// Writes the steps of a pass with what each waits for.
//
// Strictly, every step waits for the one before it. With overlapped communication, activations and input
// gradients form one chain; weight gradients and what they alone need hang off it, and collectives run beside
// them. Computations keep their order in either case. The steps of a CUDA graph go along with its first,
// which launches it: all that are written one after the other while it is captured.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "lower/sharded_model.h"

namespace armilla {

inline constexpr std::uint32_t kNoStep = UINT32_MAX;

class PassWriter {
 public:
  explicit PassWriter(bool overlap) : overlap_(overlap) {}

  bool overlap() const { return overlap_; }
  std::uint32_t chain() const { return chain_; }
  bool empty() const { return pass_.steps.empty(); }

  // After the chain (and strictly after the step before); part of the chain itself. Returns its index.
  std::uint32_t link(PassStep step) {
    const bool strict = !overlap_;
    chain_ = free(std::move(step), {chain_, strict ? last_ : kNoStep});
    return chain_;
  }
  // The chain goes on from the step before, whatever it hangs off.
  void catch_up() { chain_ = last_; }
  // Beside the chain: waits for `after` (and strictly for the step before).
  std::uint32_t hang(PassStep step, std::initializer_list<std::uint32_t> after) {
    const std::uint32_t before = overlap_ ? kNoStep : last_;
    const std::uint32_t index = free(std::move(step), after);
    wait(index, before);
    return index;
  }
  // Waits for `after` alone.
  std::uint32_t free(PassStep step, std::initializer_list<std::uint32_t> after) {
    step.along = step.along || (captures_ && in_graph_);
    in_graph_ = captures_ || (step.along && in_graph_);
    last_ = static_cast<std::uint32_t>(pass_.steps.size());
    pass_.steps.push_back(std::move(step));
    for (const std::uint32_t other : after) wait(last_, other);
    return last_;
  }
  void wait(std::uint32_t step, std::uint32_t other) {
    std::vector<std::uint32_t>& after = pass_.steps[step].after;
    if (other == kNoStep || other == step) return;
    for (const std::uint32_t known : after) {
      if (known == other) return;
    }
    after.push_back(other);
  }
  // What follows waits for this step.
  void set_chain(std::uint32_t step) { chain_ = step; }
  std::uint32_t new_tag() { return tag_++; }
  // Whether what is written from now on is in a CUDA graph; returns whether it was before.
  bool capture(bool captures) { return std::exchange(captures_, captures); }

  Pass take() { return std::move(pass_); }

 private:
  bool overlap_;
  bool captures_ = false, in_graph_ = false;
  Pass pass_;
  std::uint32_t last_ = kNoStep, chain_ = kNoStep, tag_ = 0;
};

}  // namespace armilla
