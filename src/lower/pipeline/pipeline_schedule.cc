#include "lower/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/units_text.h"
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {
namespace {

// Slots of 16 bytes each, made for all ranks before anything else can be refused.
constexpr std::int64_t kMostSlots = std::int64_t{1} << 24;

void check_size(const Plan& plan, std::int64_t iterations, const std::string& where) {
  if (is_schedulable(plan, iterations)) return;
  double passes = static_cast<double>(schedule_of(plan).passes * iterations);
  for (const std::int64_t factor : {plan.pipeline, plan.virtual_stages})
    passes *= static_cast<double>(factor);
  // 0 where a schedule is laid out for more than there are: fewer of them help nobody.
  const auto most = static_cast<std::int64_t>(static_cast<double>(kMostSlots) / passes);
  const std::string advice =
      most > 0 && most < plan.micro_batches ? fmt::format(", {} micro-batches here", most) : "";
  throw Error(
      where,
      fmt::format("plan.micro_batches {} x plan.pipeline {} x plan.virtual_stages {} x {} "
                  "are too many to schedule",
                  plan.micro_batches, plan.pipeline, plan.virtual_stages, counted(iterations, "iteration")),
      fmt::format("a schedule is limited to {} passes{}", kMostSlots, advice),
      micro_batch_keys({"plan.pipeline", "plan.virtual_stages"}));
}

// Calls visit(rank, counts per chunk) after every slot that changes a count.
template <class Visit>
void count_in_flight(const PipelineOrder& order, Visit visit) {
  for (std::size_t rank = 0; rank < order.slots.size(); ++rank) {
    std::vector<std::int64_t> now(order.chunks[rank].size());
    for (const PipelineSlot& slot : order.slots[rank]) {
      // Input gradients end a micro-batch's flight: separate weight gradients send nothing on, and the next
      // stage does not wait for them.
      if (slot.action == PipelineAction::weight_gradient) continue;
      now[static_cast<std::size_t>(slot.chunk)] += slot.action == PipelineAction::forward ? 1 : -1;
      visit(rank, now);
    }
  }
}

}  // namespace

std::string nearest_multiples(std::int64_t unit, std::int64_t value, std::int64_t least) {
  const std::int64_t below = value / unit * unit;
  if (below < least) return fmt::format("{}", ceil_divide(least, unit) * unit);
  return fmt::format("{} or {}", below, below + unit);
}

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

MicroBatchRule micro_batch_rule(const Plan& plan) {
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  const std::int64_t unit =
      schedule.chains * (schedule.in_groups && plan.virtual_stages > 1 ? plan.pipeline : 1);
  return {unit, std::max(unit, schedule.filled_by * plan.pipeline)};
}

bool is_schedulable(const Plan& plan, std::int64_t iterations) {
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  // Some schedules are laid out for more micro-batches than there are, and what is too much is left out: the
  // work to bound is that of the layout.
  const std::int64_t micro_batches = std::max(plan.micro_batches, schedule.laid_out * plan.pipeline);
  std::int64_t slots = schedule.passes;
  for (const std::int64_t factor : {plan.pipeline, plan.virtual_stages, iterations, micro_batches}) {
    // Divided instead of multiplied, so that the check itself cannot overflow.
    if (slots > kMostSlots / factor) return false;
    slots *= factor;
  }
  return true;
}

void check_schedule(const Plan& plan, std::int64_t iterations, const std::string& where) {
  if (iterations < 1)
    throw Error(where, fmt::format("{} iterations", iterations), "there must be at least 1");
  schedule_of(plan).check(plan, where);
  check_size(plan, iterations, where);
}

PipelineOrder pipeline_order(const Plan& plan, std::int64_t iterations, const std::string& where) {
  validate_plan(plan, where);
  check_schedule(plan, iterations, where);
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  PipelineOrder order;
  order.stages = static_cast<std::int32_t>(plan.pipeline * plan.virtual_stages);
  order.chains = schedule.chains;
  // With a flush an iteration repeats the one before it; without, all iterations are one long run of
  // micro-batches.
  const std::int64_t repeats = schedule.flushes ? iterations : 1;
  const auto micro_batches =
      static_cast<std::int32_t>(plan.micro_batches * (schedule.flushes ? 1 : iterations));
  for (std::int32_t rank = 0; rank < plan.pipeline; ++rank) {
    order.chunks.push_back(schedule.chunks(plan, rank));
    const std::vector<PipelineSlot> once = schedule.slots(plan, rank, micro_batches);
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

bool orders_like_1f1b(const Plan& plan) {
  Plan usual = plan;
  usual.schedule = "1f1b";
  usual.virtual_stages = 1;
  if (plan.schedule == usual.schedule && plan.virtual_stages == 1) return true;
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  if (!schedule.flushes || schedule.overlaps_passes || plan.virtual_stages > 1) return false;
  const auto is_same_pass = [](const PipelineSlot& a, const PipelineSlot& b) {
    return a.action == b.action && a.micro_batch == b.micro_batch;
  };
  return std::ranges::equal(pipeline_order(plan, 1, "plan").slots[0],
                            pipeline_order(usual, 1, "plan").slots[0], is_same_pass);
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
