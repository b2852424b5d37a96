#include "lower/jobs/job_loops.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace armilla {
namespace {

// Rounds that are looked at from their last slot back to this many rounds before.
constexpr std::size_t kMostTries = 64;

// What a round of slots has of every chunk: forward passes, and backward ones.
struct Passes {
  std::int64_t forward = 0, backward = 0;
};

bool is_round(std::span<const PipelineSlot> slots, std::size_t chunks, const Passes& each) {
  std::vector<std::int64_t> forward(chunks), input(chunks), weight(chunks);
  for (const PipelineSlot& slot : slots) {
    const auto chunk = static_cast<std::size_t>(slot.chunk);
    switch (slot.action) {
      case PipelineAction::forward:
        ++forward[chunk];
        break;
      case PipelineAction::backward:
        ++input[chunk];
        ++weight[chunk];
        break;
      case PipelineAction::input_gradient:
        ++input[chunk];
        break;
      case PipelineAction::weight_gradient:
        ++weight[chunk];
        break;
    }
  }
  const auto all_are = [](const std::vector<std::int64_t>& passes, std::int64_t n) {
    return std::ranges::all_of(passes, [=](std::int64_t count) { return count == n; });
  };
  return all_are(forward, each.forward) && all_are(input, each.backward) && all_are(weight, each.backward);
}

bool are_alike(const PipelineSlot& a, const PipelineSlot& b) {
  return a.action == b.action && a.chunk == b.chunk && a.beside_previous == b.beside_previous;
}

// Slots [end - length, end) are a round like the one before.
struct Round {
  std::size_t end = 0, length = 0;
};

// Of slots [first, end), the last ones first.
std::vector<Round> rounds_in(std::span<const PipelineSlot> slots, std::size_t first, std::size_t end,
                             std::size_t chunks, const Passes& each) {
  std::vector<Round> rounds;
  if (end > first) rounds.reserve(end - first);
  // Backward passes are one slot or two.
  for (const std::int64_t slots_of_backward : {1, 2}) {
    const std::size_t length =
        static_cast<std::size_t>(each.forward + slots_of_backward * each.backward) * chunks;
    if (slots_of_backward == 2 && each.backward == 0) break;
    std::size_t alike = 0;  // slots before this one that are each like the one a round before
    bool all_passes = false;
    for (std::size_t at = first + length; at <= end; ++at) {
      alike = at > first + length && are_alike(slots[at - 1], slots[at - 1 - length]) ? alike + 1 : 0;
      // One slot further on, the one that comes is like the one that goes: the round has the same passes.
      if (alike == length) all_passes = is_round(slots.subspan(at - length, length), chunks, each);
      if (alike < length || !all_passes || (at < slots.size() && slots[at].beside_previous)) continue;
      rounds.push_back({at, length});
    }
  }
  std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) { return a.end > b.end; });
  return rounds;
}

// Slots [first, end), in which every rank goes round as often.
struct SlotSpan {
  std::size_t first = 0, end = 0;
  Passes each;
};

// Where iterations follow each other without a flush, what lies behind the first forward pass of an iteration
// and the last backward pass of the one before, up to those of the next.
std::vector<SlotSpan> iterations_in(std::span<const PipelineSlot> slots, std::int64_t micro_batches,
                                    std::int64_t each) {
  std::vector<SlotSpan> spans;
  std::vector<bool> begun;        // iterations
  std::vector<std::size_t> last;  // backward passes, of each of them
  const auto iteration_of = [&](const PipelineSlot& slot) {
    const auto iteration = static_cast<std::size_t>(slot.micro_batch / micro_batches);
    begun.resize(std::max(begun.size(), iteration + 1));
    last.resize(begun.size());
    return iteration;
  };
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].action != PipelineAction::forward) last[iteration_of(slots[s])] = s;
  }
  std::vector<std::size_t> bounds;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const std::size_t iteration = iteration_of(slots[s]);
    const bool is_first = slots[s].action == PipelineAction::forward && !begun[iteration];
    if (is_first) begun[iteration] = true;
    if (is_first || last[iteration] == s) bounds.push_back(s);
  }
  // The first forward pass; of every iteration but the last, the next one's first and its own last, in either
  // order; the last backward pass.
  for (std::size_t i = 0; i + 1 < bounds.size(); i += 2)
    spans.push_back({bounds[i] + 1, bounds[i + 1], {each, each}});
  return spans;
}

std::vector<SlotSpan> spans_of(const PipelineOrder& order, const Plan& plan, std::size_t rank) {
  const std::vector<PipelineSlot>& slots = order.slots[rank];
  const std::int64_t each = round_of(plan) / order.chains;
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  if (!schedule.flushes) return iterations_in(slots, plan.micro_batches, each);
  if (!schedule.goes_back_last) return {{0, slots.size(), {each, each}}};
  const auto backward = static_cast<std::size_t>(
      std::ranges::find_if(slots, [](auto& slot) { return slot.action != PipelineAction::forward; }) -
      slots.begin());
  return {{0, backward, {each, 0}}, {backward, slots.size(), {0, each}}};
}

std::vector<Round> rounds_in(const PipelineOrder& order, std::size_t rank, const SlotSpan& span) {
  return rounds_in(order.slots[rank], span.first, span.end, order.chunks[rank].size(), span.each);
}

// The loop of a program whose nodes [end - period, end) are a round, and which begins at `least` or later;
// none where they are not the round before again, or reach back further than rounds are alike.
std::optional<Loop> loop_at(const Program& program, std::uint32_t least, std::uint32_t end,
                            std::uint32_t period) {
  if (period == 0 || end < least + 2 * period) return std::nullopt;
  std::uint32_t first = end;  // nodes from here on repeat
  while (first > least + period && repeats(program, first - 1, period)) --first;
  const std::uint32_t rounds = (end - first) / period;
  if (rounds == 0) return std::nullopt;
  Loop loop{end - (rounds + 1) * period, end, period, 0};
  for (std::uint32_t node = end - period; node < end; ++node) {
    for (const std::uint32_t dependence : program.dependences(node)) {
      if (dependence < loop.first || dependence >= node) return std::nullopt;
    }
  }
  return loop;
}

// What waits for nothing is ready from the start, wherever it stands.
bool has_roots_behind(const Program& program, std::uint32_t node) {
  for (; node < program.size(); ++node) {
    if (program.dependences(node).empty()) return true;
  }
  return false;
}

// One for each part of the order; none where there is not one for each.
std::vector<Loop> find_loops(const LoweredJob& job, const Plan& plan, std::size_t number) {
  const auto rank = static_cast<std::size_t>(job.roles[number].pipeline_rank);
  const std::vector<NodeRange>& nodes = job.slot_nodes[number];
  const Program& program = job.graph.programs[number];
  std::vector<Loop> loops;
  for (const SlotSpan& span : spans_of(job.order, plan, rank)) {
    std::vector<Round> rounds = rounds_in(job.order, rank, span);
    rounds.resize(std::min(rounds.size(), kMostTries));
    const std::uint32_t least =
        std::max(loops.empty() ? 0U : loops.back().end, span.first == 0 ? 0U : nodes[span.first].first);
    std::optional<Loop> loop;
    for (const Round& round : rounds) {
      const std::uint32_t end = nodes[round.end - 1].end, first = nodes[round.end - round.length].first;
      loop = loop_at(program, least, end, end - first);
      if (loop && loops.empty() && has_roots_behind(program, loop->first)) loop.reset();
      if (loop) break;
    }
    if (!loop) return {};
    loops.push_back(*loop);
  }
  return loops;
}

}  // namespace

std::int64_t round_of(const Plan& plan) {
  return micro_batch_rule(plan).unit;
}

bool has_rounds(const PipelineOrder& order, const Plan& plan) {
  for (std::size_t rank = 0; rank < order.slots.size(); ++rank) {
    for (const SlotSpan& span : spans_of(order, plan, rank)) {
      if (rounds_in(order, rank, span).empty()) return false;
    }
  }
  return true;
}

bool close_loops(LoweredJob& job, const Plan& plan, std::int64_t more) {
  std::vector<std::vector<Loop>> loops;
  for (std::size_t program = 0; program < job.roles.size(); ++program) {
    std::vector<Loop>& own = loops.emplace_back(find_loops(job, plan, program));
    if (own.empty()) return false;
    std::int64_t nodes = job.graph.programs[program].size();
    for (Loop& loop : own) {
      if (more > INT32_MAX / std::int64_t{loop.period}) return false;
      nodes += more * loop.period;
      loop.more = static_cast<std::uint32_t>(more);
    }
    if (nodes > INT32_MAX / 2) return false;
  }
  for (std::size_t program = 0; program < loops.size(); ++program)
    job.graph.programs[program].loops = std::move(loops[program]);
  return true;
}

}  // namespace armilla
