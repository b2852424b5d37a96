#include "lower/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {
namespace {

void check_chunks(const Plan& plan, const std::string& where) {
  const std::int64_t v = plan.virtual_stages;
  switch (plan.schedule) {
    case PipelineSchedule::interleaved:
      if (v > 1) return;
      throw Error(where, fmt::format("plan.schedule interleaved with plan.virtual_stages {}", v),
                  "it needs several model chunks per rank: plan.virtual_stages 2, or plan.schedule 1f1b",
                  {"plan.virtual_stages", "plan.schedule"});
    case PipelineSchedule::zb_v:
      if (v == 2) return;
      throw Error(where, fmt::format("plan.schedule zb-v with plan.virtual_stages {}", v),
                  "it has two model chunks per rank: plan.virtual_stages 2",
                  {"plan.virtual_stages", "plan.schedule"});
    default:
      if (v == 1) return;
      throw Error(where,
                  fmt::format("plan.schedule {} with plan.virtual_stages {}", name_of(plan.schedule), v),
                  "it has one model chunk per rank: plan.virtual_stages 1, or plan.schedule interleaved",
                  {"plan.virtual_stages", "plan.schedule"});
  }
}

// "a and b" or "b", for multiples of `unit` around `value`, from `least` on.
std::string nearest_multiples(std::int64_t unit, std::int64_t value, std::int64_t least) {
  const std::int64_t below = value / unit * unit;
  if (below < least) return fmt::format("{}", (least + unit - 1) / unit * unit);
  return fmt::format("{} or {}", below, below + unit);
}

void check_micro_batches(const Plan& plan, const std::string& where) {
  const std::int64_t p = plan.pipeline, m = plan.micro_batches;
  if (plan.schedule == PipelineSchedule::interleaved && m % p != 0) {
    throw Error(
        where,
        fmt::format("plan.schedule interleaved takes micro-batches in groups of plan.pipeline {}, and {} "
                    "is no multiple of it",
                    p, m),
        fmt::format("plan.micro_batches could be {}", nearest_multiples(p, m, p)),
        micro_batch_keys({"plan.schedule", "plan.pipeline"}));
  }
  if (plan.schedule == PipelineSchedule::dualpipe && p % 2 != 0) {
    throw Error(where, fmt::format("plan.schedule dualpipe with plan.pipeline {}", p),
                fmt::format("it runs from both ends: plan.pipeline could be {}", nearest_multiples(2, p, 2)),
                {"plan.pipeline", "plan.schedule"});
  }
  if (plan.schedule == PipelineSchedule::dualpipe && (m % 2 != 0 || m < 2 * p)) {
    throw Error(where,
                fmt::format("plan.schedule dualpipe with plan.micro_batches {} and plan.pipeline {}", m, p),
                fmt::format("it needs an even number, at least {}: plan.micro_batches could be {}", 2 * p,
                            nearest_multiples(2, m, 2 * p)),
                micro_batch_keys({"plan.schedule", "plan.pipeline"}));
  }
  if (plan.schedule == PipelineSchedule::pipedream_2bw && m < p) {
    throw Error(
        where,
        fmt::format("plan.schedule pipedream-2bw with plan.micro_batches {} and plan.pipeline {}", m, p),
        fmt::format("two versions of the weights need at least as many micro-batches as stages: "
                    "plan.micro_batches could be {}",
                    p),
        micro_batch_keys({"plan.schedule", "plan.pipeline"}));
  }
}

void check_size(const Plan& plan, std::int64_t iterations, const std::string& where) {
  constexpr std::int64_t kMostSlots = std::int64_t{1} << 24;
  // What a micro-batch takes: forward and one or two backward passes per chunk. The V is laid out for 2p.
  const bool split = plan.schedule == PipelineSchedule::zb_h1 || plan.schedule == PipelineSchedule::zb_v ||
                     plan.schedule == PipelineSchedule::dualpipe;
  const std::int64_t micro_batches = plan.schedule == PipelineSchedule::zb_v
                                         ? std::max(plan.micro_batches, 2 * plan.pipeline)
                                         : plan.micro_batches;
  std::int64_t slots = split ? 3 : 2;
  for (const std::int64_t factor : {plan.pipeline, plan.virtual_stages, iterations, micro_batches}) {
    if (slots > kMostSlots / factor) {
      throw Error(
          where,
          fmt::format("plan.micro_batches {} x plan.pipeline {} x plan.virtual_stages {} x {} iteration{} "
                      "are too many to schedule",
                      plan.micro_batches, plan.pipeline, plan.virtual_stages, iterations,
                      iterations == 1 ? "" : "s"),
          fmt::format("a schedule is limited to {} passes", kMostSlots),
          micro_batch_keys({"plan.pipeline", "plan.virtual_stages"}));
    }
    slots *= factor;
  }
}

// Which stage a rank's chunks are.
std::vector<PipelineChunk> chunks_of(const Plan& plan, std::int32_t rank) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
  switch (plan.schedule) {
    case PipelineSchedule::zb_v:
      return {{0, rank}, {0, 2 * ranks - 1 - rank}};
    case PipelineSchedule::dualpipe:
      return {{0, rank}, {1, ranks - 1 - rank}};
    default: {
      std::vector<PipelineChunk> chunks;
      for (std::int32_t chunk = 0; chunk < plan.virtual_stages; ++chunk)
        chunks.push_back({0, chunk * ranks + rank});
      return chunks;
    }
  }
}

std::vector<PipelineSlot> slots_of(const Plan& plan, std::int32_t rank, std::int32_t micro_batches) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
  switch (plan.schedule) {
    case PipelineSchedule::gpipe:
      return gpipe_slots(micro_batches);
    case PipelineSchedule::one_f_one_b:
    case PipelineSchedule::pipedream_2bw:
      return one_f_one_b_slots(ranks, rank, micro_batches);
    case PipelineSchedule::interleaved:
      return interleaved_slots(ranks, rank, static_cast<std::int32_t>(plan.virtual_stages), micro_batches);
    case PipelineSchedule::zb_h1:
      return zb_h1_slots(ranks, rank, micro_batches);
    case PipelineSchedule::zb_v:
      return zb_v_slots(ranks, rank, micro_batches);
    case PipelineSchedule::dualpipe:
      return dualpipe_slots(ranks, rank, micro_batches);
  }
  return {};
}

// Calls visit(rank, counts per chunk) after every slot that changes a count.
template <class Visit>
void count_in_flight(const PipelineOrder& order, Visit visit) {
  for (std::size_t rank = 0; rank < order.slots.size(); ++rank) {
    std::vector<std::int64_t> now(order.chunks[rank].size());
    for (const PipelineSlot& slot : order.slots[rank]) {
      if (slot.action == PipelineAction::weight_gradient) continue;
      now[static_cast<std::size_t>(slot.chunk)] += slot.action == PipelineAction::forward ? 1 : -1;
      visit(rank, now);
    }
  }
}

}  // namespace

PipelineOrder::Place PipelineOrder::place(std::int32_t chain, std::int32_t stage) const {
  const auto ranks = static_cast<std::int32_t>(chunks.size());
  const auto holds = [&](std::int32_t rank, std::int32_t chunk) {
    if (rank < 0 || rank >= ranks) return false;
    const std::vector<PipelineChunk>& own = chunks[static_cast<std::size_t>(rank)];
    if (chunk >= static_cast<std::int32_t>(own.size())) return false;
    const PipelineChunk& it = own[static_cast<std::size_t>(chunk)];
    return it.chain == chain && it.stage == stage;
  };
  // Around and around, up the V, or against the stream.
  const Place guesses[] = {
      {stage % ranks, stage / ranks}, {2 * ranks - 1 - stage, 1}, {ranks - 1 - stage, 1}};
  for (const Place& guess : guesses) {
    if (holds(guess.rank, guess.chunk)) return guess;
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto own = static_cast<std::int32_t>(chunks[static_cast<std::size_t>(rank)].size());
    for (std::int32_t chunk = 0; chunk < own; ++chunk) {
      if (holds(rank, chunk)) return {rank, chunk};
    }
  }
  return {-1, -1};
}

void check_schedule(const Plan& plan, std::int64_t iterations, const std::string& where) {
  if (iterations < 1)
    throw Error(where, fmt::format("{} iterations", iterations), "there must be at least 1");
  check_chunks(plan, where);
  check_micro_batches(plan, where);
  check_size(plan, iterations, where);
}

PipelineOrder pipeline_order(const Plan& plan, std::int64_t iterations, const std::string& where) {
  validate_plan(plan, where);
  check_schedule(plan, iterations, where);
  PipelineOrder order;
  order.stages = static_cast<std::int32_t>(plan.pipeline * plan.virtual_stages);
  order.chains = plan.schedule == PipelineSchedule::dualpipe ? 2 : 1;
  const bool flushes = plan.schedule != PipelineSchedule::pipedream_2bw;
  const std::int64_t repeats = flushes ? iterations : 1;
  const auto micro_batches = static_cast<std::int32_t>(plan.micro_batches * (flushes ? 1 : iterations));
  for (std::int32_t rank = 0; rank < plan.pipeline; ++rank) {
    order.chunks.push_back(chunks_of(plan, rank));
    const std::vector<PipelineSlot> once = slots_of(plan, rank, micro_batches);
    std::vector<PipelineSlot>& all = order.slots.emplace_back();
    all.reserve(once.size() * static_cast<std::size_t>(repeats));
    for (std::int32_t i = 0; i < repeats; ++i) {
      for (PipelineSlot slot : once) {
        slot.micro_batch += i * micro_batches;
        all.push_back(slot);
      }
    }
  }
  return order;
}

std::vector<std::vector<std::int64_t>> in_flight(const PipelineOrder& order) {
  std::vector<std::vector<std::int64_t>> most;
  for (const std::vector<PipelineChunk>& chunks : order.chunks) most.emplace_back(chunks.size());
  count_in_flight(order, [&](std::size_t rank, const std::vector<std::int64_t>& now) {
    for (std::size_t chunk = 0; chunk < now.size(); ++chunk)
      most[rank][chunk] = std::max(most[rank][chunk], now[chunk]);
  });
  return most;
}

std::vector<std::int64_t> most_in_flight(const PipelineOrder& order) {
  std::vector<std::int64_t> most(order.chunks.size());
  count_in_flight(order, [&](std::size_t rank, const std::vector<std::int64_t>& now) {
    std::int64_t sum = 0;
    for (const std::int64_t count : now) sum += count;
    most[rank] = std::max(most[rank], sum);
  });
  return most;
}

}  // namespace armilla
