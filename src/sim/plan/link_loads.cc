#include "sim/link_loads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "network/topology.h"
#include "sim/plan/algorithm_choices.h"
#include "sim/plan/chunk_count.h"
#include "sim/plan/link_limit.h"

namespace armilla {
namespace {

// Whether every one of so many members loads its links as every other does, and no others. Exchanges that
// pass others do not: on a Ring half of the members go up, half down; and where the members are but some of a
// Ring, their messages pass links of the rest.
bool looks_alike_from_everywhere(const Schedule& schedule, std::size_t members, const Dimension& dimension) {
  if (!schedule.is_symmetric() || !passes_others(dimension)) return schedule.is_symmetric();
  return schedule.addressing == Addressing::shift && static_cast<std::int64_t>(members) == dimension.size;
}

// Every transfer is routed; beyond this the limit is not worth the wait and stays unknown.
constexpr double kMostTransfers = 2e7;

class CarriedByLinks {
 public:
  explicit CarriedByLinks(const Machine& machine) : machine_(machine), topology_(machine) {}

  // On every link of its way; those of `owner` stand for it where one is named.
  void add(const Message& message, std::optional<std::int32_t> owner = std::nullopt) {
    topology_.for_each_link(message, [&](const LinkId& link, const Position& /*beyond*/) {
      add({link.dimension, owner.value_or(link.owner), link.number}, message.bytes,
          bandwidth_of(message, link.dimension));
    });
  }
  void add(const LinkId& link, Bytes bytes, Bandwidth bandwidth) {
    Load& load = loads_[{link.dimension, link.owner, link.number}];
    load.bytes = saturating_add(load.bytes, bytes);
    load.bandwidth = std::max(load.bandwidth, bandwidth);
  }
  Time longest() const {
    Time most;
    for (const auto& [link, load] : loads_) most = std::max(most, time_to_move(load.bytes, load.bandwidth));
    return most;
  }

 private:
  struct Load {
    Bytes bytes;
    Bandwidth bandwidth;
  };

  Bandwidth bandwidth_of(const Message& message, std::uint32_t d) const {
    const Dimension& dimension = machine_.dimensions[d];
    if (dimension.cables.empty()) return dimension.bandwidth;
    if (message.share > 0) return Bandwidth(dimension.bandwidth.value * static_cast<double>(message.share));
    return pair_bandwidth(dimension, topology_.coordinate(message.source, d),
                          topology_.coordinate(message.destination, d), machine_.device.host_bandwidth);
  }

  const Machine& machine_;
  Topology topology_;
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, Load> loads_;  // by link
};

}  // namespace

MemberTraffic traffic_per_member(CollectivePlanner& planner, const CollectiveCall& call,
                                 std::uint32_t shape) {
  MemberTraffic total;
  for (const auto& [plan, times] : planner.plans(call, shape)) {
    for (const PlannedPhase& phase : plan->phases) {
      const Schedule& schedule = *phase.schedule;
      const std::int32_t members = schedule.is_symmetric() ? 1 : schedule.ranks;
      MemberTraffic sent;
      for (std::int32_t m = 0; m < members; ++m) {
        sent.messages += static_cast<double>(schedule.of(m).sends.size());
        for (const Transfer& transfer : schedule.of(m).sends)
          sent.bytes += static_cast<double>(transfer.bytes.value);
      }
      total.messages += sent.messages / members * static_cast<double>(times);
      total.bytes += sent.bytes / members * static_cast<double>(times);
    }
  }
  return total;
}

Time LinkLoads::limit(const CollectiveCall& call, const GroupLayout& layout) const {
  const std::optional<std::uint32_t> reducing = planner_.choices().reducing_dimensions(call.kind);
  return reducing ? least_time_on_links(call, layout, planner_.machine(), *reducing,
                                        has_no_wish(planner_.options()))
                  : Time(0);
}

Time LinkLoads::busiest(const CollectiveCall& call, const GroupLayout& layout) {
  const auto [found, fresh] = busiest_.try_emplace({&layout, CallKey(call)});
  if (fresh) found->second = measure_busiest(call, layout);
  return found->second;
}

Time LinkLoads::busiest(const CustomCollective& custom, Bytes call, const GroupLayout& layout) const {
  double transfers = 0;
  for (const CustomProgram& member : custom.members) transfers += static_cast<double>(member.nodes.size());
  if (transfers > kMostTransfers) return Time(0);
  CarriedByLinks carried(planner_.machine());
  for (std::size_t position = 0; position < custom.members.size(); ++position) {
    for (const CustomNode& node : custom.members[position].nodes) {
      if (node.kind != CustomNode::Kind::send) continue;
      carried.add({layout.ranks[position], layout.ranks[static_cast<std::size_t>(node.peer)],
                   bytes_of(node, call), kAllDimensions});
    }
  }
  return carried.longest();
}

Time LinkLoads::measure_busiest(const CollectiveCall& call, const GroupLayout& layout) {
  double transfers = 0;
  const auto all = planner_.plans(call, layout.shape);
  for (const auto& [plan, times] : all) {
    for (const PlannedPhase& phase : plan->phases)
      transfers += static_cast<double>(phase.schedule->ranks) *
                   static_cast<double>(phase.schedule->of(0).sends.size());
    if (transfers > kMostTransfers) return Time(0);
  }
  const Machine& machine = planner_.machine();
  CarriedByLinks carried(machine);
  for (const auto& [plan, times] : all) {
    for (const PlannedPhase& phase : plan->phases) {
      // Whose line of ranks stands for all.
      const auto one = std::ranges::find_if(
          layout.ranks, [&](std::int32_t rank) { return takes_part(*plan, phase, layout, rank); });
      if (one == layout.ranks.end()) continue;
      const std::int32_t first = *one;
      const bool flat = phase.dimension == kAllDimensions;
      const bool symmetric =
          !flat && (phase.share > 0 || machine.dimensions[phase.dimension].cables.empty()) &&
          looks_alike_from_everywhere(*phase.schedule, layout.coordinates[phase.dimension].size(),
                                      machine.dimensions[phase.dimension]);
      const std::int32_t members = symmetric ? 1 : phase.schedule->ranks;
      const std::int32_t here = position_in(phase, layout, first);
      for (std::int32_t position = 0; position < members; ++position) {
        const auto at_position = [&](std::int32_t p) { return rank_at(phase, layout, first, here, p); };
        const RankSchedule& role = phase.schedule->of(position);
        for (const Step& step : role.steps) {
          for (const Transfer& transfer : role.sends_of(step)) {
            Message message{at_position(position), at_position(phase.schedule->peer(position, transfer)),
                            saturating_multiply(transfer.bytes, times), phase.dimension};
            message.leg = step.leg;
            message.share = phase.share;
            if (phase.in_trees && flat) {
              // Of a tree, each member's own link.
              const bool up = step.leg == Leg::to_switch;
              const std::uint32_t d = crossed_by(phase, machine);
              carried.add({d, up ? message.source : message.destination, up ? 0 : 1}, message.bytes,
                          machine.dimensions[d].bandwidth);
            } else if (symmetric) {
              // The links a message crosses carry as much of the others as this one's own do of it.
              carried.add(message, first);
            } else {
              carried.add(message);
            }
          }
        }
      }
    }
  }
  return carried.longest();
}

}  // namespace armilla
