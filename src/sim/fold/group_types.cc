#include "sim/fold/group_types.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "network/topology.h"

namespace armilla {
namespace {

// Calls of one kind, root and class of sizes have the same peers.
using CallSort = std::tuple<CollectiveKind, std::int32_t, bool, std::int64_t, bool>;
using CallSet = std::map<CallSort, std::uint32_t>;  // with one such call

class TypeTable {
 public:
  TypeTable(const StudyJob& input, CollectivePlanner& planner)
      : graph_(input.graph), machine_(input.study.machine), planner_(planner) {
    for (const Issued& by_program : input.issued) {
      std::map<std::uint32_t, CallSet> by_family;
      for (const IssuedItem& item : by_program.items) {
        if (item.kind != NodeKind::collective) continue;
        const auto id = static_cast<std::uint32_t>(item.payload);
        const CollectiveCall& call = graph_.collectives[id];
        // Sizes are told apart by their class alone (from where on another algorithm is taken), since the
        // peers of a call do not depend on how much it moves.
        const CallSort sort{call.kind, call.root, call.takes_turns, planner.size_class(call),
                            call.custom >= 0};
        by_family[call.family].try_emplace(sort, id);
      }
      std::vector<std::int64_t>& sets = set_of_.emplace_back(graph_.families.size(), -1);
      for (const auto& [family, calls] : by_family) sets[family] = number_of(calls);
    }
  }

  // Of calls that a program makes in a family; -1: none.
  std::int64_t call_set(std::uint32_t program, std::uint32_t family) const {
    return set_of_[program][family];
  }

  std::uint32_t type(std::uint32_t family, const GroupShape& shape, std::int64_t call_set) {
    const auto [found, fresh] = numbers_.try_emplace({family, planner_.shape(shape), call_set},
                                                     static_cast<std::uint32_t>(types.size()));
    if (fresh) types.push_back(make_type(shape, sets_[static_cast<std::size_t>(call_set)]));
    return found->second;
  }

  std::vector<GroupType> types;

 private:
  std::int64_t number_of(const CallSet& calls) {
    std::vector<CallSort> sorts;
    for (const auto& [sort, id] : calls) sorts.push_back(sort);
    const auto [found, fresh] =
        set_numbers_.try_emplace(std::move(sorts), static_cast<std::int64_t>(sets_.size()));
    if (fresh) sets_.push_back(calls);
    return found->second;
  }

  GroupType make_type(const GroupShape& shape, const CallSet& calls) {
    GroupType type{shape, false, false, false, {}};
    for (const auto& [sort, id] : calls) {
      const CollectiveCall& call = graph_.collectives[id];
      if (call.custom >= 0) {
        type.is_custom = true;
        continue;
      }
      for (const CollectivePlan* const plan : planner_.possible_plans(call, planner_.shape(shape))) {
        for (const PlannedPhase& phase : plan->phases) add_phase(type, phase);
      }
    }
    for (const GroupWay& way : type.ways) type.is_routed = type.is_routed || is_routed(way, shape);
    return type;
  }

  static void add_phase(GroupType& type, const PlannedPhase& phase) {
    const Schedule& schedule = *phase.schedule;
    const bool symmetric =
        schedule.is_symmetric() && phase.members == PhaseMembers::all && phase.order == nullptr;
    // An order of members, or a phase of some of them, makes positions differ although the schedule does not.
    const Addressing addressing = symmetric ? schedule.addressing : Addressing::absolute;
    auto way = std::find_if(type.ways.begin(), type.ways.end(), [&](const GroupWay& known) {
      return known.dimension == phase.dimension && known.addressing == addressing;
    });
    if (way == type.ways.end()) way = type.ways.insert(way, GroupWay{phase.dimension, addressing, {}, {}});
    if (symmetric) {
      for (const Transfer& transfer : schedule.roles.front().sends) way->offsets.insert(transfer.peer);
      return;
    }
    type.is_ordered = true;
    // By member, not by position: the order in which a phase lines them up is one of its plan, and a type may
    // have several plans.
    way->peers.resize(static_cast<std::size_t>(schedule.ranks));
    const auto member = [&](std::int32_t position) {
      return phase.order == nullptr ? position : phase.order->member_at[static_cast<std::size_t>(position)];
    };
    for (std::int32_t position = 0; position < schedule.ranks; ++position) {
      std::set<std::int32_t>& peers = way->peers[static_cast<std::size_t>(member(position))];
      for (const Transfer& transfer : schedule.of(position).sends)
        peers.insert(member(schedule.peer(position, transfer)));
    }
  }

  bool is_routed(const GroupWay& way, const GroupShape& shape) const {
    const bool flat = way.dimension == kAllDimensions;
    // Messages of a flat algorithm go over several dimensions, one after the other, whose links in between
    // are those of ranks that need not be of the group.
    if (flat && machine_.dimensions.size() > 1) return true;
    const Dimension& dimension = machine_.dimensions[flat ? 0 : way.dimension];
    // A link is its source's own, or leads to the destination alone: the way says nothing more than the ends.
    if (!passes_others(dimension)) return false;
    const auto size = static_cast<std::int32_t>(dimension.size);
    const bool whole = !flat && shape.sizes[way.dimension] == dimension.size;
    // To a neighbour on a ring that the group spans whole, a message takes its source's own link alone.
    return !whole || way.addressing != Addressing::shift ||
           !std::all_of(way.offsets.begin(), way.offsets.end(),
                        [&](std::int32_t offset) { return offset == 1 || offset == size - 1; });
  }

  const Graph& graph_;
  const Machine& machine_;
  CollectivePlanner& planner_;
  std::vector<std::vector<std::int64_t>> set_of_;  // [program][family]
  std::map<std::vector<CallSort>, std::int64_t> set_numbers_;
  std::vector<CallSet> sets_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> numbers_;
};

// As lay_out (sim/group_layout.h), for a whole family of groups.
class ShapeFinder {
 public:
  ShapeFinder(const Machine& machine, const Coordinates& coordinates)
      : machine_(machine), coordinates_(coordinates) {
    for (const Dimension& dimension : machine.dimensions) {
      seen_in_.emplace_back(static_cast<std::size_t>(dimension.size), 0);
      has_cables_.push_back(!dimension.cables.empty());
    }
    if (has_cables(machine)) shape_.places.resize(machine.dimensions.size());
    shape_.sizes.resize(machine.dimensions.size());
  }

  // Valid until the next call.
  const GroupShape& of(const std::vector<std::int32_t>& ranks) {
    ++group_;
    shape_.ranks = static_cast<std::int64_t>(ranks.size());
    std::int64_t product = std::is_sorted(ranks.begin(), ranks.end()) ? 1 : INT64_MAX;
    // A grid has as many members as the product of its coordinates' numbers, in rank order; a product beyond
    // that settles it, and no more dimensions need to be looked at.
    for (std::size_t d = 0; d < seen_in_.size() && product <= shape_.ranks; ++d) {
      std::int64_t distinct = 0;
      for (const std::int32_t rank : ranks) {
        std::uint32_t& seen =
            seen_in_[d][static_cast<std::size_t>(coordinates_[d][static_cast<std::size_t>(rank)])];
        distinct += seen != group_ ? 1 : 0;
        seen = group_;
      }
      shape_.sizes[d] = distinct;
      product *= distinct;
    }
    if (product == shape_.ranks) {
      find_places();
      return shape_;
    }
    no_grid_.ranks = shape_.ranks;
    place_in_nodes(ranks, machine_, no_grid_.in_nodes);
    return no_grid_;
  }

 private:
  void find_places() {
    for (std::size_t d = 0; d < shape_.places.size(); ++d) {
      shape_.places[d].clear();
      for (std::size_t here = 0; has_cables_[d] && here < seen_in_[d].size(); ++here) {
        if (seen_in_[d][here] == group_) shape_.places[d].push_back(static_cast<std::int32_t>(here));
      }
    }
  }

  const Machine& machine_;
  const Coordinates& coordinates_;
  std::vector<std::vector<std::uint32_t>> seen_in_;  // [dimension][coordinate], the last group
  std::vector<bool> has_cables_;                     // by dimension
  std::uint32_t group_ = 0;
  GroupShape shape_, no_grid_;
};

}  // namespace

Coordinates coordinates_of(const Machine& machine, std::int64_t ranks) {
  Coordinates coordinates;
  std::int64_t stride = 1;
  for (const Dimension& dimension : machine.dimensions) {
    std::vector<std::int32_t>& here = coordinates.emplace_back();
    here.reserve(static_cast<std::size_t>(ranks));
    std::int64_t value = 0;
    while (static_cast<std::int64_t>(here.size()) < ranks) {
      here.insert(here.end(), static_cast<std::size_t>(stride), static_cast<std::int32_t>(value));
      value = value + 1 == dimension.size ? 0 : value + 1;
    }
    stride *= dimension.size;
  }
  return coordinates;
}

GroupTypes type_groups(const StudyJob& input, const Coordinates& coordinates, CollectivePlanner& planner) {
  const Graph& graph = input.graph;
  TypeTable table(input, planner);
  ShapeFinder shapes(input.study.machine, coordinates);
  GroupTypes found;
  for (std::uint32_t f = 0; f < graph.families.size(); ++f) {
    const std::size_t first = found.groups.size();
    GroupShape last;
    std::int64_t last_set = -1;
    std::uint32_t type = 0;
    bool single = true;
    for (std::uint32_t g = 0; g < graph.families[f].groups.size(); ++g) {
      const std::vector<std::int32_t>& ranks = graph.families[f].groups[g];
      if (ranks.size() < 2) continue;
      const std::int64_t set = table.call_set(graph.program_of[static_cast<std::size_t>(ranks.front())], f);
      if (set < 0) continue;
      const GroupShape& shape = shapes.of(ranks);
      // Shapes are compared before they are looked up, since finding one in the table costs far more.
      // Neighbouring groups are mostly alike.
      if (set != last_set || shape != last) {
        last = shape;
        last_set = set;
        type = table.type(f, shape, set);
      }
      single = single && (found.groups.size() == first || found.groups[first].type == type);
      found.groups.push_back({f, g, type});
    }
    found.single_type.push_back(single);
    // Labels of messages do not tell types apart (CollectiveRunner::label): where one is routed, all are.
    bool routed = false;
    for (std::size_t i = first; i < found.groups.size(); ++i)
      routed = routed || table.types[found.groups[i].type].is_routed;
    for (std::size_t i = first; i < found.groups.size() && routed; ++i)
      table.types[found.groups[i].type].is_routed = true;
  }
  found.types = std::move(table.types);
  return found;
}

}  // namespace armilla
