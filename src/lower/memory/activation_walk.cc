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
  const std::size_t before = blocks.size();
  const std::int64_t two_before = before > 1 ? blocks[before - 2].saved : 0;
  saved = add_up(saved, saved_by_block);
  gradients = add_up(gradients, gradients_of_block);
  const std::int64_t present = saved - two_before;
  blocks.push_back({saved, present, working, gradients});
  most_working = std::max(most_working, working);
  add_up(saved, working);  // to be told of an overflow
  // At the block where what is saved so far, or is there of it, and the block's working set are largest
  // together. A pass that makes gradients may need most when it has made all and freed everything else.
  const auto keep = [](HeldByPasses& known, const HeldByPasses& here) {
    if (here.sum() > known.sum()) known = here;
  };
  keep(most, {saved, working});
  keep(most_present, {present, working});
  keep(most_making, {saved, working, -gradients});
  keep(most_present_making, {present, working, -gradients});
  keep(most_weights_making, {saved, 0, -gradients});
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
  for (const ChunkActivations& chunk : chunks) between_ = std::max(between_, chunk.largest_block);
}

bool ActivationWalk::makes_gradients(const PipelineSlot& slot) const {
  return frees_activations(slot.action) && !made_[static_cast<std::size_t>(slot.chunk)];
}

std::int64_t ChunkActivations::last_block() const {
  const std::size_t count = blocks.size();
  return saved - (count > 1 ? blocks[count - 2].saved : 0);
}

OffloadedEnds ActivationWalk::ends_of(const PipelineSlot& slot, const PipelineSlot* next) const {
  OffloadedEnds ends;
  ends.live = live_;
  if (slot.action == PipelineAction::forward) ends.live = add_up(ends.live, chunk_of(slot).saved);
  const auto goes_back = [](const PipelineSlot& of) {
    return of.action == PipelineAction::backward || of.action == PipelineAction::input_gradient;
  };
  // A backward pass begins with what its own forward pass has just made.
  const auto follows_its_own = [&](const PipelineSlot& before, const PipelineSlot& behind) {
    return before.action == PipelineAction::forward && goes_back(behind) && before.chunk == behind.chunk &&
           before.micro_batch == behind.micro_batch;
  };
  if (last_ != nullptr && last_->action == PipelineAction::forward && !follows_its_own(*last_, slot))
    ends.leaving = chunk_of(*last_).last_block();
  if (next != nullptr && goes_back(*next) && !follows_its_own(slot, *next))
    ends.arriving = chunk_of(*next).last_block();
  return ends;
}

// Where its pass begins and ends, if more is there than anywhere else.
void ActivationWalk::consider(const OffloadedEnds& ends, const PipelineSlot& slot, bool makes,
                              HeldByPasses& own) const {
  const ChunkActivations& chunk = chunk_of(slot);
  if (chunk.blocks.empty()) return;
  const HeldByPasses before;
  const bool forward = slot.action == PipelineAction::forward;
  for (const std::size_t block : {std::size_t{0}, chunk.blocks.size() - 1}) {
    const BlockHold at = held_at(chunk, slot.action, block, before, makes, &ends);
    for (HeldByPasses there : {at.during, at.after}) {
      // What it makes is in the sum that this is added to.
      if (!forward && makes) there.gradients -= chunk.gradients;
      if (there.sum() > own.sum()) own = there;
    }
  }
}

HeldByPasses ActivationWalk::enter(std::span<const PipelineSlot> group, const PipelineSlot* next) {
  // `held` begins with what earlier slots left. Each slot of the group adds its own maximum, as if all
  // reached it at the same moment.
  HeldByPasses held{live_, 0, gradients_};
  std::int64_t running = 0;  // activations of these slots alone
  for (const PipelineSlot& slot : group) {
    const ChunkActivations& chunk = chunk_of(slot);
    HeldByPasses own = offload_ ? chunk.most_present : chunk.most;
    const bool makes = makes_gradients(slot);
    const OffloadedEnds ends = ends_of(slot, next);
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
        if (makes) own = offload_ ? chunk.most_present_making : chunk.most_making;
        break;
      case PipelineAction::input_gradient:
        held.activations -= chunk.saved;
        // Nothing is freed: separate weight gradients need the activations again.
        own = {chunk.saved, chunk.most_working};
        break;
      case PipelineAction::weight_gradient:
        held.activations -= chunk.saved;
        waiting_ -= chunk.saved;
        own = makes ? chunk.most_weights_making : HeldByPasses{chunk.saved, 0};
        break;
    }
    if (offload_) consider(ends, slot, makes, own);
    held = {add_up(held.activations, own.activations), add_up(held.temporary, own.temporary),
            held.gradients + own.gradients};
    running = add_up(running, own.activations);
  }
  // What other passes saved is on the host, but where only their weight gradients are to be made.
  if (offload_) held.activations = std::min(live_, add_up(waiting_, running));
  last_ = &group.back();
  // Only to be told of an overflow.
  add_up(add_up(held.activations, held.temporary), held.gradients);
  return held;
}

void ActivationWalk::leave(std::span<const PipelineSlot> group) {
  for (const PipelineSlot& slot : group) {
    if (slot.action == PipelineAction::input_gradient) waiting_ += chunk_of(slot).saved;
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
                  const HeldByPasses& before, bool makes, const OffloadedEnds* offloaded) {
  const ChunkActivations::Block& at = chunk.blocks[block];
  const ChunkActivations::Block earlier = block > 0 ? chunk.blocks[block - 1] : ChunkActivations::Block{};
  // In a forward pass what is saved grows with every block; in a backward pass and in separate weight
  // gradients it shrinks from all of the chunk's, last block first, while gradients grow.
  const std::int64_t others = before.activations - chunk.saved;
  const std::int64_t during = before.gradients + (makes ? chunk.gradients - at.gradients : 0);
  const std::int64_t after = before.gradients + (makes ? chunk.gradients - earlier.gradients : 0);
  if (offloaded != nullptr) {
    const bool frees = frees_activations(action), forward = action == PipelineAction::forward;
    const std::size_t last = chunk.blocks.size() - 1;
    const bool begins = block == (forward ? 0 : last), ends = block == (forward ? last : 0);
    // Of the block at work; of the chunk where weight gradients are separate.
    std::int64_t own = at.saved - earlier.saved, present = at.present, left = forward ? own : earlier.saved;
    if (action == PipelineAction::input_gradient) own = present = left = chunk.saved;
    if (action == PipelineAction::weight_gradient) own = present = at.saved;
    if (action == PipelineAction::backward) left = ends ? 0 : at.present - own;
    if (begins) present = std::max(present, own + offloaded->leaving);
    if (ends) present = std::max(present, own + offloaded->arriving);
    if (ends) left = std::max(left, offloaded->arriving);
    const auto there = [&](std::int64_t of_pass) {
      return std::min(before.activations + of_pass, offloaded->live);
    };
    return {{there(present), action == PipelineAction::weight_gradient ? 0 : at.working,
             frees ? during : before.gradients},
            {there(left), 0, frees ? after : before.gradients}};
  }
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
