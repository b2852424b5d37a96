#include "lower/memory/activation_walk.h"

#include <algorithm>

#include "base/checked.h"

namespace armilla {
namespace {

std::int64_t add_up(std::int64_t a, std::int64_t b) {
  return checked_add(a, b, "plan");
}

}  // namespace

void ChunkActivations::add(std::int64_t saved_by_block, std::int64_t working) {
  // `most` is at the block where what is saved so far and the block's working set are largest together;
  // `most_alone` is the same if only the block at work is on the device, as with offload.
  saved = add_up(saved, saved_by_block);
  blocks.push_back({saved, working});
  most_working = std::max(most_working, working);
  if (add_up(saved, working) > most.sum()) most = {saved, working};
  if (add_up(saved_by_block, working) > most_alone.sum()) most_alone = {saved_by_block, working};
  largest_block = std::max(largest_block, saved_by_block);
}

std::span<const PipelineSlot> slots_beside(std::span<const PipelineSlot> slots, std::size_t first) {
  std::size_t end = first + 1;
  while (end < slots.size() && slots[end].beside_previous) ++end;
  return slots.subspan(first, end - first);
}

ActivationWalk::ActivationWalk(std::span<const ChunkActivations> chunks, bool offload)
    : chunks_(chunks), offload_(offload) {
  for (const ChunkActivations& chunk : chunks) largest_block_ = std::max(largest_block_, chunk.largest_block);
  between_ = largest_block_;
}

HeldByPasses ActivationWalk::enter(std::span<const PipelineSlot> group) {
  // `held` begins with what earlier slots left. Each slot of the group adds its own maximum, as if all
  // reached it at the same moment.
  HeldByPasses held{live_, 0};
  std::int64_t running = 0;  // activations of these slots alone
  for (const PipelineSlot& slot : group) {
    const ChunkActivations& chunk = chunk_of(slot);
    HeldByPasses own = offload_ ? chunk.most_alone : chunk.most;
    switch (slot.action) {
      case PipelineAction::forward:
        live_ = add_up(live_, chunk.saved);
        most_live_ = std::max(most_live_, live_);
        most_in_flight_ = std::max(most_in_flight_, ++in_flight_);
        break;
      case PipelineAction::backward:
        // Blocks are freed one by one as the backward pass goes back, so the pass's own maximum replaces what
        // was saved.
        held.activations -= chunk.saved;
        break;
      case PipelineAction::input_gradient:
        held.activations -= chunk.saved;
        // Nothing is freed: separate weight gradients need the activations again.
        own = {chunk.saved, chunk.most_working};
        between_ = std::max(between_, chunk.saved);
        break;
      case PipelineAction::weight_gradient:
        held.activations -= chunk.saved;
        own = {chunk.saved, 0};
        break;
    }
    held = {add_up(held.activations, offload_ ? std::max(own.activations, chunk.saved) : own.activations),
            add_up(held.temporary, own.temporary)};
    running = add_up(running, own.activations);
  }
  // With offload the device never holds more than what is at work and one block on its way.
  if (offload_) held.activations = std::min(held.activations, add_up(running, largest_block_));
  // Only to be told of an overflow.
  add_up(held.activations, held.temporary);
  return held;
}

void ActivationWalk::leave(std::span<const PipelineSlot> group) {
  for (const PipelineSlot& slot : group) {
    if (!frees_activations(slot.action)) continue;
    live_ -= chunk_of(slot).saved;
    --in_flight_;
  }
}

BlockHold held_at(const ChunkActivations& chunk, PipelineAction action, std::size_t block,
                  std::int64_t before) {
  const ChunkActivations::Block& at = chunk.blocks[block];
  const std::int64_t saved_before = block > 0 ? chunk.blocks[block - 1].saved : 0;
  // In a forward pass what is saved grows with every block; in a backward pass and in separate weight
  // gradients it shrinks from all of the chunk's, last block first.
  switch (action) {
    case PipelineAction::forward:
      return {{before + at.saved, at.working}, before + at.saved};
    case PipelineAction::backward:
      return {{before - chunk.saved + at.saved, at.working}, before - chunk.saved + saved_before};
    case PipelineAction::input_gradient:
      return {{before, at.working}, before};
    case PipelineAction::weight_gradient:
      return {{before - chunk.saved + at.saved, 0}, before - chunk.saved + saved_before};
  }
  return {};
}

}  // namespace armilla
