#include "lower/data/job_tables.h"

#include <fmt/format.h>

#include "lower/pipeline_schedule.h"
#include "lower/rank_grid.h"
#include "lower/shard/expert_load.h"

namespace armilla {
namespace {

// Plan::check_collectives. Rank 0 hears from every other rank and answers each, then two gathers go around
// the ring: four messages one after the other for every further rank, over TCP
// (docs/models/kernels.md#the-host).
constexpr Time kCheck = microseconds(160), kCheckPerRank = microseconds(240);

// As so many operators.
std::int32_t issues_of_check(const Plan& plan, const GroupFamily& family) {
  const Time issue = issue_time_of(plan);
  if (issue == Time(0)) return 0;
  const Time check = kCheck + (std::ssize(family.groups.front()) - 1) * kCheckPerRank;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>((check + issue / 2).value / issue.value, INT32_MAX / 2));
}

}  // namespace

std::size_t JobTables::WorkHash::operator()(const Work& work) const {
  std::uint64_t hash = 0;
  const auto mix = [&](std::int64_t value) {
    // Fibonacci hashing (2^64 divided by the golden ratio), and a shift that brings high bits down.
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  mix(static_cast<std::int64_t>(work.kind));
  mix(static_cast<std::int64_t>(work.dtype));
  mix(work.flops.value);
  mix(work.bytes.value);
  mix(static_cast<std::int64_t>(work.kernel));
  mix(work.issues);
  mix(work.issues_behind);
  for (const Gemm& gemm : work.gemms) {
    for (const std::int64_t size : {gemm.m, gemm.n, gemm.k, gemm.count}) mix(size);
  }
  return hash;
}

const JobTables::BucketNames& JobTables::bucket_names(std::uint32_t bucket) {
  for (std::size_t next = bucket_names_.size(); next <= bucket; ++next)
    bucket_names_.push_back({name(fmt::format("gradient bucket {}", next)),
                             name(fmt::format("parameters, bucket {}", next)),
                             name(fmt::format("optimizer, bucket {}", next))});
  return bucket_names_[bucket];
}

std::uint32_t JobTables::work(const Work& work) {
  const auto [found, fresh] = works_.try_emplace(work, static_cast<std::uint32_t>(graph_.works.size()));
  if (fresh) graph_.works.push_back(work);
  return found->second;
}

std::uint32_t JobTables::custom(const std::vector<Share>& loads, const UnevenExchange& exchange) {
  const auto [found, fresh] = customs_.try_emplace({exchange.bytes.value, exchange.to_experts},
                                                   static_cast<std::uint32_t>(graph_.custom.size()));
  if (fresh) graph_.custom.push_back(uneven_all_to_all(loads, exchange.bytes, exchange.to_experts));
  return found->second;
}

std::uint32_t JobTables::family(GroupAxis axis) {
  const auto [found, fresh] = families_.try_emplace(std::pair(axis, std::vector<std::int64_t>{}),
                                                    static_cast<std::uint32_t>(graph_.families.size()));
  if (fresh) graph_.families.push_back(axis_family(plan_, axis));
  return found->second;
}

// ZeRO-3's gathers run on a communicator of their own, as in FSDP: they must not wait behind reductions.
std::uint32_t JobTables::gather_family(GroupAxis axis) {
  const auto [found, fresh] =
      gather_families_.try_emplace(axis, static_cast<std::uint32_t>(graph_.families.size()));
  if (fresh) {
    graph_.families.push_back(axis_family(plan_, axis));
    graph_.families.back().name += " gather";
  }
  return found->second;
}

// The backward passes' communicator where passes overlap: DualPipe's two streams must not queue up behind
// each other.
std::uint32_t JobTables::backward_family(GroupAxis axis) {
  const auto [found, fresh] =
      backward_families_.try_emplace(axis, static_cast<std::uint32_t>(graph_.families.size()));
  if (fresh) graph_.families.push_back(axis_family(plan_, axis));
  return found->second;
}

std::uint32_t JobTables::embedding_family(const std::vector<std::int64_t>& pipeline_ranks) {
  const auto [found, fresh] = families_.try_emplace(std::pair(GroupAxis::embedding, pipeline_ranks),
                                                    static_cast<std::uint32_t>(graph_.families.size()));
  if (fresh) {
    // Models may tie several weights between different ranks; further groups are numbered to tell them apart.
    const auto others = std::count_if(families_.begin(), families_.end(), [](const auto& entry) {
      return entry.first.first == GroupAxis::embedding;
    });
    graph_.families.push_back(axis_family(plan_, GroupAxis::embedding, pipeline_ranks));
    if (others > 1) graph_.families.back().name += fmt::format(" {}", others);
  }
  return found->second;
}

std::uint32_t JobTables::collective(CollectiveCall call) {
  if (plan_.check_collectives) call.issues += issues_of_check(plan_, graph_.families[call.family]);
  const auto [found, fresh] = collectives_.try_emplace(
      std::tuple(call.kind, call.bytes.value, call.family, call.takes_turns, call.priority, call.custom,
                 call.routing, call.counted_on_device, call.issues, call.processors),
      static_cast<std::uint32_t>(graph_.collectives.size()));
  if (fresh) graph_.collectives.push_back(call);
  return found->second;
}

std::uint32_t JobTables::transfer(const PointToPoint& transfer) {
  const auto [found, fresh] =
      transfers_.try_emplace(std::tuple(transfer.peer_kind, transfer.peer, transfer.family, transfer.tag,
                                        transfer.bytes.value, transfer.stops_host),
                             static_cast<std::uint32_t>(graph_.transfers.size()));
  if (fresh) graph_.transfers.push_back(transfer);
  return found->second;
}

std::int64_t group_size(const Plan& plan, GroupAxis axis) {
  switch (axis) {
    case GroupAxis::tensor:
      return plan.tensor;
    case GroupAxis::context:
      return plan.context;
    case GroupAxis::data:
      return plan.data() * plan.context;
    case GroupAxis::pipeline:
      return plan.pipeline;
    case GroupAxis::expert:
      return plan.expert;
    case GroupAxis::expert_tensor:
      return plan.experts_tensor();
    case GroupAxis::expert_data:
      return plan.expert_data();
    case GroupAxis::shard:
      return plan.hybrid_shard == 0 ? plan.data() * plan.context : plan.hybrid_shard;
    case GroupAxis::replicate:
      return plan.hybrid_shard == 0 ? 1 : plan.data() * plan.context / plan.hybrid_shard;
    case GroupAxis::mirror:
      return schedule_of(plan).chains;
    // Its size differs from weight to weight.
    case GroupAxis::embedding:
      return 0;
  }
  return 0;
}

}  // namespace armilla
