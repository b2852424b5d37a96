#include "lower/memory/activation_walk.h"

#include <algorithm>

#include "base/checked.h"

namespace armilla {
namespace {

std::int64_t add_up(std::int64_t a, std::int64_t b) {
  return checked_add(a, b, "plan");
}

}  // namespace

void ChunkActivations::add(std::int64_t saved_by_block, std::int64_t working,
                           std::int64_t gradients_of_block) {
  // `most` is at the block where what is saved so far and the block's working set are largest together;
  // `most_alone` is the same if only the block at work is on the device, as with offload.
  saved = add_up(saved, saved_by_block);
  gradients = add_up(gradients, gradients_of_block);
  blocks.push_back({saved, working, gradients});
  most_working = std::max(most_working, working);
  if (add_up(saved, working) > most.sum()) most = {saved, working};
  if (add_up(saved_by_block, working) > most_alone.sum()) most_alone = {saved_by_block, working};
  const bool first = blocks.size() == 1;
  if (first || saved + working - gradients > most_making.sum()) most_making = {saved, working, -gradients};
  if (first || saved - gradients > most_weights_making.sum()) most_weights_making = {saved, 0, -gradients};
  largest_block = std::max(largest_block, saved_by_block);
}

std::span<const PipelineSlot> slots_beside(std::span<const PipelineSlot> slots, std::size_t first) {
  std::size_t end = first + 1;
  while (end < slots.size() && slots[end].beside_previous) ++end;
  return slots.subspan(first, end - first);
}

ActivationWalk::ActivationWalk(std::span<const ChunkActivations> chunks, bool offload, std::int64_t gradients,
                               GradientsMade made)
    : chunks_(chunks), offload_(offload), gradients_(gradients), when_made_(made), made_(chunks.size()) {
  for (const ChunkActivations& chunk : chunks) largest_block_ = std::max(largest_block_, chunk.largest_block);
  between_ = largest_block_;
}

bool ActivationWalk::makes_gradients(const PipelineSlot& slot) const {
  return frees_activations(slot.action) && !made_[static_cast<std::size_t>(slot.chunk)];
}

HeldByPasses ActivationWalk::enter(std::span<const PipelineSlot> group) {
  // `held` begins with what earlier slots left. Each slot of the group adds its own maximum, as if all
  // reached it at the same moment.
  HeldByPasses held{live_, 0, gradients_};
  std::int64_t running = 0;  // activations of these slots alone
  for (const PipelineSlot& slot : group) {
    const ChunkActivations& chunk = chunk_of(slot);
    HeldByPasses own = offload_ ? chunk.most_alone : chunk.most;
    const bool makes = makes_gradients(slot);
    if (makes) held.gradients = add_up(held.gradients, chunk.gradients);
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
        if (makes && !offload_) own = chunk.most_making;
        break;
      case PipelineAction::input_gradient:
        held.activations -= chunk.saved;
        // Nothing is freed: separate weight gradients need the activations again.
        own = {chunk.saved, chunk.most_working};
        between_ = std::max(between_, chunk.saved);
        break;
      case PipelineAction::weight_gradient:
        held.activations -= chunk.saved;
        own = makes && !offload_ ? chunk.most_weights_making : HeldByPasses{chunk.saved, 0};
        break;
    }
    held = {add_up(held.activations, offload_ ? std::max(own.activations, chunk.saved) : own.activations),
            add_up(held.temporary, own.temporary), held.gradients + own.gradients};
    running = add_up(running, own.activations);
  }
  // With offload the device never holds more than what is at work and one block on its way.
  if (offload_) held.activations = std::min(held.activations, add_up(running, largest_block_));
  // Only to be told of an overflow.
  add_up(add_up(held.activations, held.temporary), held.gradients);
  return held;
}

void ActivationWalk::leave(std::span<const PipelineSlot> group) {
  for (const PipelineSlot& slot : group) {
    if (!frees_activations(slot.action)) continue;
    if (makes_gradients(slot) && when_made_ == GradientsMade::once) {
      gradients_ += chunk_of(slot).gradients;
      made_[static_cast<std::size_t>(slot.chunk)] = true;
    }
    live_ -= chunk_of(slot).saved;
    --in_flight_;
  }
}

BlockHold held_at(const ChunkActivations& chunk, PipelineAction action, std::size_t block,
                  const HeldByPasses& before, bool makes) {
  const ChunkActivations::Block& at = chunk.blocks[block];
  const ChunkActivations::Block earlier = block > 0 ? chunk.blocks[block - 1] : ChunkActivations::Block{};
  // In a forward pass what is saved grows with every block; in a backward pass and in separate weight
  // gradients it shrinks from all of the chunk's, last block first, while gradients grow.
  const std::int64_t others = before.activations - chunk.saved;
  const std::int64_t during = before.gradients + (makes ? chunk.gradients - at.gradients : 0);
  const std::int64_t after = before.gradients + (makes ? chunk.gradients - earlier.gradients : 0);
  switch (action) {
    case PipelineAction::forward:
      return {{before.activations + at.saved, at.working, before.gradients},
              {before.activations + at.saved, 0, before.gradients}};
    case PipelineAction::backward:
      return {{others + at.saved, at.working, during}, {others + earlier.saved, 0, after}};
    case PipelineAction::input_gradient:
      return {{before.activations, at.working, before.gradients}, {before.activations, 0, before.gradients}};
    case PipelineAction::weight_gradient:
      return {{others + at.saved, 0, during}, {others + earlier.saved, 0, after}};
  }
  return {};
}

}  // namespace armilla
