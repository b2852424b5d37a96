#include "lower/jobs/job_loops.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace armilla {
namespace {

// Rounds that are looked at from their last slot back to this many rounds before.
constexpr std::size_t kMostTries = 64;

// Whether these slots are a round: `each` forward passes, and as many backward ones, of every chunk.
bool is_round(std::span<const PipelineSlot> slots, std::size_t chunks, std::int64_t each) {
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
  for (const std::vector<std::int64_t>* const passes : {&forward, &input, &weight}) {
    if (std::any_of(passes->begin(), passes->end(), [&](std::int64_t n) { return n != each; })) return false;
  }
  return true;
}

bool are_alike(const PipelineSlot& a, const PipelineSlot& b) {
  return a.action == b.action && a.chunk == b.chunk && a.beside_previous == b.beside_previous;
}

// Slots [end - length, end) are a round like the one before.
struct Round {
  std::size_t end = 0, length = 0;
};

// The last ones first.
std::vector<Round> rounds_in(const std::vector<PipelineSlot>& slots, std::size_t chunks, std::int64_t each) {
  std::vector<Round> rounds;
  // Backward passes are one slot or two.
  for (const std::size_t passes : {2, 3}) {
    const std::size_t length = passes * chunks * static_cast<std::size_t>(each);
    std::size_t alike = 0;  // slots before this one that are each like the one a round before
    bool all_passes = false;
    for (std::size_t end = length; end <= slots.size(); ++end) {
      alike = end > length && are_alike(slots[end - 1], slots[end - 1 - length]) ? alike + 1 : 0;
      // One slot further on, the one that comes is like the one that goes: the round has the same passes.
      if (alike == length)
        all_passes = is_round(std::span(slots).subspan(end - length, length), chunks, each);
      if (alike < length || !all_passes || (end < slots.size() && slots[end].beside_previous)) continue;
      rounds.push_back({end, length});
    }
  }
  std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) { return a.end > b.end; });
  return rounds;
}

std::vector<Round> rounds_of(const PipelineOrder& order, const Plan& plan, std::size_t rank) {
  return rounds_in(order.slots[rank], order.chunks[rank].size(), round_of(plan) / order.chains);
}

// The loop of a program whose nodes [end - period, end) are a round; none where they are not the round before
// again, or reach back further than rounds are alike.
std::optional<Loop> loop_at(const Program& program, std::uint32_t end, std::uint32_t period) {
  if (period == 0 || end < 2 * period) return std::nullopt;
  std::uint32_t first = end;  // nodes from here on repeat
  while (first > period && repeats(program, first - 1, period)) --first;
  const std::uint32_t rounds = (end - first) / period;
  if (rounds == 0) return std::nullopt;
  Loop loop{end - (rounds + 1) * period, end, period, 0};
  for (std::uint32_t node = end - period; node < end; ++node) {
    for (const std::uint32_t dependence : program.dependences(node)) {
      if (dependence < loop.first || dependence >= node) return std::nullopt;
    }
  }
  // What waits for nothing is ready from the start, wherever it stands.
  for (std::uint32_t node = loop.first; node < program.size(); ++node) {
    if (program.dependences(node).empty()) return std::nullopt;
  }
  return loop;
}

std::optional<Loop> find_loop(const LoweredJob& job, const Plan& plan, std::size_t program) {
  const auto rank = static_cast<std::size_t>(job.roles[program].pipeline_rank);
  const std::vector<NodeRange>& nodes = job.slot_nodes[program];
  std::vector<Round> rounds = rounds_of(job.order, plan, rank);
  rounds.resize(std::min(rounds.size(), kMostTries));
  for (const Round& round : rounds) {
    const std::uint32_t end = nodes[round.end - 1].end, first = nodes[round.end - round.length].first;
    if (const std::optional<Loop> loop = loop_at(job.graph.programs[program], end, end - first)) return loop;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t round_of(const Plan& plan) {
  return micro_batch_rule(plan).unit;
}

bool has_rounds(const PipelineOrder& order, const Plan& plan) {
  for (std::size_t rank = 0; rank < order.slots.size(); ++rank) {
    if (rounds_of(order, plan, rank).empty()) return false;
  }
  return true;
}

bool close_loops(LoweredJob& job, const Plan& plan, std::int64_t more) {
  std::vector<Loop> loops;
  for (std::size_t program = 0; program < job.roles.size(); ++program) {
    const std::optional<Loop> loop = find_loop(job, plan, program);
    if (!loop || more > INT32_MAX / std::int64_t{loop->period} / 2) return false;
    loops.push_back(*loop);
    loops.back().more = static_cast<std::uint32_t>(more);
  }
  for (std::size_t program = 0; program < loops.size(); ++program)
    job.graph.programs[program].loop = loops[program];
  return true;
}

}  // namespace armilla
