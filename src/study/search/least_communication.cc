#include "study/search/least_communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lower/rank_grid.h"
#include "network/network.h"
#include "network/topology.h"

namespace armilla {
namespace {

// Sums of rounded times of messages may be less than the rounded time of their sum: by half a picosecond
// each, of which a rank of a group sends a few to every other.
Time rounded_down(Time time, std::size_t ranks) {
  const std::int64_t rounding = time.value / 100'000 + 4 * static_cast<std::int64_t>(ranks);
  return Time(std::max<std::int64_t>(0, time.value - rounding));
}

// Where the ranks are, seen from the first: links of groups that lie alike are loaded alike.
std::vector<std::int64_t> seen_from_first(const std::vector<std::int32_t>& ranks, const Machine& machine) {
  std::vector<std::int64_t> offsets;
  std::int64_t stride = 1;
  for (const Dimension& dimension : machine.dimensions) {
    const std::int64_t first = ranks.front() / stride % dimension.size;
    for (const std::int32_t rank : ranks)
      offsets.push_back((rank / stride % dimension.size - first + dimension.size) % dimension.size);
    stride *= dimension.size;
  }
  return offsets;
}

}  // namespace

std::string place_of_ranks(const Plan& plan) {
  std::string order;
  for (const Axis axis : plan.order) order += name_of(axis).substr(0, 1);
  return fmt::format("{} {} {} {} {} {} {}", order, plan.tensor, plan.context, plan.pipeline, plan.data(),
                     plan.expert, plan.experts_tensor());
}

LeastCommunication::LeastCommunication(const Study& study)
    : machine_(study.machine),
      options_(study.collectives),
      // Networks that let messages pass each other could carry any number of bytes at once.
      shares_links_(study.network.name == "analytical"),
      knows_messages_(study.network.name.starts_with("analytical")),
      planner_(machine_, options_, promises_of(study.network)),
      loads_(planner_) {}

LeastCommunication::Place& LeastCommunication::place(const Plan& plan) {
  const auto [found, fresh] = places_.try_emplace(place_of_ranks(plan));
  if (fresh) found->second.plan = plan;
  return found->second;
}

const std::vector<const GroupLayout*>& LeastCommunication::layouts_of(Place& place, GroupAxis axis) {
  const auto [found, fresh] = place.layouts.try_emplace(axis);
  if (!fresh) return found->second;
  for (const std::vector<std::int32_t>& ranks : axis_family(place.plan, axis).groups) {
    if (ranks.size() < 2) continue;
    const auto [known, unknown] =
        layouts_.try_emplace(has_cables(machine_) ? std::vector<std::int64_t>(ranks.begin(), ranks.end())
                                                  : seen_from_first(ranks, machine_));
    GroupLayout& layout = known->second;
    if (unknown) {
      layout = lay_out(ranks, machine_);
      layout.shape = planner_.shape(shape_of(layout, machine_));
    }
    if (std::ranges::find(found->second, &layout) == found->second.end()) found->second.push_back(&layout);
  }
  return found->second;
}

Time LeastCommunication::on_links(const CollectiveCall& call, const GroupLayout& layout) {
  if (!shares_links_) return {};
  if (layout.ranks.size() <= kFew) return rounded_down(loads_.busiest(call, layout), layout.ranks.size());
  const Time limit = rounded_down(loads_.limit(call, layout), layout.ranks.size());
  // Tokens: what any algorithm would send of them is not known, but what this one does, and of a grid soon.
  if (limit > Time(0) || call.routing == ExpertRouting{} || !layout.is_grid()) return limit;
  const double messages = traffic_per_member(planner_, call, layout.shape).messages;
  return rounded_down(loads_.busiest(call, layout), layout.ranks.size() + static_cast<std::size_t>(messages));
}

Time LeastCommunication::on_links(Place& place, GroupAxis axis, CollectiveKind kind, Bytes bytes) {
  const std::vector<const GroupLayout*>& layouts = layouts_of(place, axis);
  if (layouts.empty() || bytes == Bytes(0)) return {};
  Time least = kEndOfTime;
  for (const GroupLayout* const layout : layouts) {
    const auto [found, fresh] = known_on_links_.try_emplace({layout, kind, bytes.value});
    if (fresh) found->second = on_links({.kind = kind, .bytes = bytes}, *layout);
    least = std::min(least, found->second);
  }
  return least;
}

Time LeastCommunication::of_collective(Place& place, const PassStep& step, Known known) {
  if (step.kind != NodeKind::collective || step.custom >= 0) return {};
  const std::vector<const GroupLayout*>& layouts = layouts_of(place, step.axis);
  if (layouts.empty()) return {};
  const CollectiveCall call{.kind = step.collective, .bytes = step.bytes, .routing = step.routing};
  Time least = kEndOfTime;
  for (const GroupLayout* const layout : layouts) {
    const auto [found, fresh] =
        known_.try_emplace({layout, call.kind, call.bytes.value, call.routing, known});
    if (fresh) found->second = later(on_links(call, *layout), planner_.overhead(call, layout->shape));
    if (fresh && known == Known::about) {
      CollectiveRecord record;
      found->second = std::max(found->second, planner_.describe_chunks(call, layout->shape, record));
    }
    least = std::min(least, found->second);
  }
  return least;
}

void LeastCommunication::find_ways(Place& place) const {
  std::vector<std::pair<Time, double>>& ways = place.ways.emplace();
  const Topology topology(machine_);
  // Of switches and direct links, messages cross the same where their ends differ in the same dimensions.
  std::set<std::uint32_t> crossed;
  bool any_passes = topology.dimensions() > 32;
  for (const Dimension& dimension : machine_.dimensions) any_passes = any_passes || passes_others(dimension);
  const auto add = [&](std::int32_t source, std::int32_t destination) {
    const Message message{source, destination, {}, kAllDimensions};
    std::pair way{Time(0), 0.0};
    topology.for_each_link(message, [&](const LinkId& link, const Position& /*beyond*/) {
      const Dimension& dimension = machine_.dimensions[link.dimension];
      way.first += dimension.latency;
      const double bandwidth = dimension.bandwidth.value;
      way.second = way.second == 0 ? bandwidth : std::min(way.second, bandwidth);
    });
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  };
  for (const std::vector<std::int32_t>& ranks : axis_family(place.plan, GroupAxis::pipeline).groups) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::int32_t next = ranks[(i + 1) % ranks.size()];
      if (next == ranks[i]) continue;
      if (!any_passes && !crossed.insert(topology.differing(ranks[i], next)).second) continue;
      add(ranks[i], next);
      add(next, ranks[i]);
    }
  }
}

Time LeastCommunication::of_message(Place& place, Bytes bytes) {
  if (!knows_messages_ || place.plan.pipeline < 2) return {};
  if (!place.ways) find_ways(place);
  Time least = kEndOfTime;
  for (const auto& [latency, bandwidth] : *place.ways)
    least = std::min(least, later(latency, time_to_move(bytes, Bandwidth(bandwidth))));
  return least == kEndOfTime ? Time(0) : least;
}

}  // namespace armilla
