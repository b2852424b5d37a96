// Which activations and gradients a pipeline rank holds, slot by slot in the order of its schedule.
//
// A forward pass adds what each block saves, a backward pass frees it block by block. Input gradients of
// zero-bubble schedules free nothing: the weight gradients still need all of it, and little else. Slots that
// run beside each other may each be where they need most. Offloaded activations come and go block by block
// (Transformer Engine, cpu_offload.py): there are those of the block at work and of its neighbour on the way
// to the embedding, which has just left for the host or is coming back; between passes, of the last block of
// a forward pass that leaves, or of that of a backward pass that comes; of passes whose weight gradients come
// later all from B to W. A link that cannot keep up makes the device wait, not its memory grow. Gradients of
// a chunk are there from the start, or made by its first backward pass block by block, each when the block is
// done (autograd, after zero_grad(set_to_none=True)), or by every backward pass so, and gone after it.
// Cost: O(1) per slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lower/pipeline_schedule.h"

namespace armilla {

// Which backward passes of a chunk make the gradients that are not there from the start.
enum class GradientsMade : std::uint8_t {
  once,       // the first, and they stay
  every_pass  // each, and what they are added to is there from the start
};

// In bytes.
struct HeldByPasses {
  std::int64_t activations = 0, temporary = 0, gradients = 0;
  std::int64_t sum() const { return activations + temporary + gradients; }
};

// Of one micro-batch in a model chunk, in bytes.
struct ChunkActivations {
  struct Block {
    std::int64_t saved = 0;      // by the blocks of the chunk up to this one
    std::int64_t present = 0;    // of these, with offload: by this one and the one before
    std::int64_t working = 0;    // its working set
    std::int64_t gradients = 0;  // that a backward pass makes, of the blocks up to this one
  };
  std::vector<Block> blocks;
  std::int64_t saved = 0;      // by all of them
  std::int64_t gradients = 0;  // likewise
  HeldByPasses most;           // where a pass that saves or frees block by block needs most
  HeldByPasses most_present;   // where it does with offload
  // Where a backward pass needs most that makes gradients, with offload, too, and one that makes nothing
  // else; their gradients are those that are not made yet, negative.
  HeldByPasses most_making, most_present_making, most_weights_making;
  std::int64_t largest_block = 0;
  std::int64_t most_working = 0;
  std::int64_t boundary = 0;  // what crosses its ends

  std::int64_t last_block() const;  // what it saved

  // The next block.
  void add(std::int64_t saved_by_block, std::int64_t working, std::int64_t gradients_of_block);
};

// With offload, beside a pass's own blocks: of the forward pass before, a block that leaves while it begins,
// unless that is its own; of the backward pass behind, a block that comes while its last is, unless that has
// just made it.
struct OffloadedEnds {
  std::int64_t leaving = 0, arriving = 0;
  std::int64_t live = 0;  // of all passes not yet done, this one with them: no more can be there
};

// The slots from `first` on that run beside each other; one, mostly.
std::span<const PipelineSlot> slots_beside(std::span<const PipelineSlot> slots, std::size_t first);

// nullptr behind the last.
inline const PipelineSlot* slot_at(std::span<const PipelineSlot> slots, std::size_t number) {
  return number < slots.size() ? &slots[number] : nullptr;
}

class ActivationWalk {
 public:
  // `gradients`: bytes that are there before any pass.
  ActivationWalk(std::span<const ChunkActivations> chunks, bool offload, std::int64_t gradients,
                 GradientsMade made = GradientsMade::once);

  // What is held at most while these slots, which are beside each other, run; they are next in order, before
  // `next`, if any.
  HeldByPasses enter(std::span<const PipelineSlot> group, const PipelineSlot* next);
  void leave(std::span<const PipelineSlot> group);
  // Rounds that change nothing.
  void pass_over(std::span<const PipelineSlot> slots) { last_ = &slots.back(); }

  // Between slots.
  HeldByPasses held() const {
    return {offload_ ? std::min(live_, waiting_ + between_) : live_, 0, gradients_};
  }
  // With offload: of a slot, before it is entered, and what is on the device of all others meanwhile.
  OffloadedEnds ends_of(const PipelineSlot& slot, const PipelineSlot* next) const;
  std::int64_t waiting() const { return waiting_; }
  // Whether the slot, which is next, makes its chunk's gradients.
  bool makes_gradients(const PipelineSlot& slot) const;
  // Of the passes not yet done, wherever their activations are: now, and at most.
  std::int64_t live() const { return live_; }
  std::int64_t in_flight() const { return in_flight_; }
  std::int64_t most_live() const { return most_live_; }
  std::int64_t most_in_flight() const { return most_in_flight_; }

 private:
  void consider(const OffloadedEnds& ends, const PipelineSlot& slot, bool makes, HeldByPasses& own) const;
  const ChunkActivations& chunk_of(const PipelineSlot& slot) const {
    return chunks_[static_cast<std::size_t>(slot.chunk)];
  }

  std::span<const ChunkActivations> chunks_;
  bool offload_;
  // With offload, on the device between slots: of a block, at most; of passes that wait for weight gradients.
  std::int64_t between_ = 0, waiting_ = 0;
  const PipelineSlot* last_ = nullptr;  // that was entered
  std::int64_t live_ = 0, most_live_ = 0;
  std::int64_t in_flight_ = 0, most_in_flight_ = 0;
  std::int64_t gradients_ = 0;
  GradientsMade when_made_;
  std::vector<bool> made_;  // gradients of each chunk, for good
};

// Whether the pass frees what its forward pass saved.
inline bool frees_activations(PipelineAction action) {
  return action == PipelineAction::backward || action == PipelineAction::weight_gradient;
}

// What a pass that runs alone holds at each of its blocks.
struct BlockHold {
  HeldByPasses during, after;
};
// `before`: what is held before the slot; `makes`: whether it makes the chunk's gradients; `offloaded`:
// nullptr where activations stay, else `before` has none of passes that are on the host.
BlockHold held_at(const ChunkActivations& chunk, PipelineAction action, std::size_t block,
                  const HeldByPasses& before, bool makes, const OffloadedEnds* offloaded);

}  // namespace armilla
