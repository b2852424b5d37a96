// Which algorithm each dimension takes: the options', the natural one, or what is faster for a call's size.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/units_text.h"
#include "network/topology.h"
#include "sim/collective_plan.h"
#include "sim/plan/choice.h"

namespace armilla {
namespace {

bool is_power_of_two(std::int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

// What a dimension does best when the user has no wish.
std::string_view natural_algorithm(CollectiveKind kind, const Dimension& dimension) {
  if (links_every_pair(dimension)) return "direct";
  if (passes_others(dimension)) return "bidirectional-ring";
  if (kind == CollectiveKind::all_to_all) return "direct";
  if (!dimension.cables.empty()) return "ring";
  return is_power_of_two(dimension.size) ? "halving-doubling" : "ring";
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

// From a root, trees of a power of two move the bytes as often as they have levels, the two trees once.
bool suits(const Algorithm& algorithm, CollectiveKind kind, std::int64_t members) {
  if (algorithm.name() == kForPowersOfTwo) return is_power_of_two(members);
  return algorithm.name() != kForOtherNumbers || has_root(kind) || !is_power_of_two(members);
}

// Throws unless the algorithm performs the kind; asked here so that a wrong choice fails before anything is
// simulated.
void require(const Algorithm& algorithm, CollectiveKind kind, const std::string& where) {
  if (algorithm.performs(kind)) return;
  throw Error(where, fmt::format("algorithm '{}' cannot perform {}", algorithm.name(), name_of(kind)),
              fmt::format("algorithms that can: {}", fmt::join(algorithms_that_perform(kind), ", ")));
}

// Likewise unless there is a switch for an algorithm that needs one.
void require_switch(const Algorithm& algorithm, bool has_switch, bool legs, const std::string& where) {
  if (!algorithm.in_switch() || (has_switch && legs)) return;
  throw Error(where,
              legs ? fmt::format("algorithm '{}' runs in {} of a Switch, and there is none", algorithm.name(),
                                 algorithm.name() == kInOneSwitch ? "the one switch" : "the switch")
                   : fmt::format("algorithm '{}' runs in switches, and the network has none that reduce",
                                 algorithm.name()),
              legs ? "name another algorithm for dimensions of other kinds and for flat collectives"
                   : "choose an analytical network or flow, or another algorithm");
}

// Whether members of a dimension have a switch that the algorithm runs in. NVSwitches do not reduce together:
// what joins the members is to be one switch for each group of them, and no tree.
bool has_switch_for(std::string_view algorithm, const Machine& machine, std::uint32_t number) {
  const Dimension& dimension = machine.dimensions[number];
  if (dimension.kind != DimensionKind::switched || !dimension.cables.empty()) return false;
  const auto is_device = [&](std::uint32_t node) {
    return machine.graph.nodes[node].kind == NetworkNodeKind::device;
  };
  return algorithm != kInOneSwitch || std::ranges::none_of(machine.graph.cables, [&](const Cable& cable) {
           return cable.dimension == number && !is_device(cable.a) && !is_device(cable.b);
         });
}

// Of what a machine says its switches do, whatever the network.
void check_switches(const Machine& machine) {
  for (std::uint32_t d = 0; d < machine.dimensions.size(); ++d) {
    const Dimension& dimension = machine.dimensions[d];
    if (!dimension.in_switch) continue;
    const std::string& name = dimension.in_switch->name;
    std::vector<std::string_view> known;
    for (const AlgorithmInfo& info : collective_algorithms()) {
      if (info.in_switch) known.push_back(info.name);
    }
    const std::string where = fmt::format("{}: dimension {}: in_switch", machine.name, dimension.name);
    if (std::ranges::find(known, name) == known.end())
      throw Error(where, fmt::format("'{:.60}' is no algorithm that runs in switches", name),
                  fmt::format("known: {}", fmt::join(known, ", ")));
    if (!has_switch_for(name, machine, d))
      throw Error(where, fmt::format("algorithm '{}' runs in one switch, and links join several", name),
                  "sharp adds up over several switches");
  }
}

}  // namespace

CollectivePlanner::CollectivePlanner(const Machine& machine, const CollectiveOptions& options,
                                     const NetworkPromises& network)
    : machine_(machine),
      options_(options),
      knows_dimensions_(network.knows_dimensions),
      grows_trees_(network.grows_trees) {
  const bool reduces = network.reduces_in_switches();
  check_switches(machine);
  constexpr std::int64_t kMostChunks = 1 << 16;
  if (options.chunks && (*options.chunks < 1 || *options.chunks > kMostChunks)) {
    throw Error("collectives.chunks", fmt::format("{} chunks", *options.chunks),
                fmt::format("between 1 and {}", kMostChunks));
  }
  if (options.active_chunks < 1) {
    throw Error("collectives.active_chunks", fmt::format("{} active chunks", options.active_chunks),
                "at least 1");
  }
  const std::size_t dimensions = machine.dimensions.size();
  for (const CollectiveKind kind : kCollectiveKinds) {
    const auto own = options.algorithms_by_kind.find(kind);
    const bool specific = own != options.algorithms_by_kind.end();
    const std::vector<std::string>& wish = specific ? own->second : options.algorithms;
    const std::string where = where_of(options, kind);
    const bool flat_list = options.decomposition == Decomposition::flat && wish.size() > 1;
    if (flat_list || (wish.size() > 1 && wish.size() != dimensions && dimensions > 0)) {
      throw Error(where,
                  fmt::format("names {} for {}{}", counted(wish.size(), "algorithm"),
                              counted(dimensions, "dimension"), flat_list ? " taken as one" : ""),
                  flat_list ? "name one" : "name one for all dimensions, or one for each");
    }
    std::vector<Choice>& chosen = algorithms_[kind];
    // A general wish cannot suit every kind and dimension; where it does not apply, it is replaced,
    // and said to be.
    const auto choose = [&](const std::string& text, std::uint32_t number, std::string_view natural) {
      Algorithm wished(text, where);
      // Over all dimensions, trees.
      const bool has_switch = number == kAllDimensions
                                  ? grows_trees_ && !machine.graph.empty() && wished.name() != kInOneSwitch
                                  : has_switch_for(wished.name(), machine, number);
      if (!specific && (!wished.performs(kind) || (wished.in_switch() && !(has_switch && reduces)))) {
        replaced_[{kind, number}] = wished.name();
        wished = Algorithm(natural, where);
      }
      require(wished, kind, where);
      require_switch(wished, has_switch, reduces, where);
      climbs_ = climbs_ || (wished.in_switch() && grows_trees_);
      chosen.push_back({std::move(wished)});
    };
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      const Dimension& dimension = machine.dimensions[d];
      const std::string_view natural = natural_algorithm(kind, dimension);
      const auto add = [&](Algorithm other) {
        chosen.back().others.push_back(std::move(other));
        chooses_by_size_ = true;
      };
      choose(wish.empty() ? std::string(natural) : wish[wish.size() == 1 ? 0 : d], d, natural);
      if (!wish.empty()) continue;
      const bool halves = natural == kForPowersOfTwo;
      if ((natural == "ring" && dimension.cables.empty()) || (halves && has_root(kind))) {
        // Instead of the natural one.
        for (const std::string_view name :
             {halves ? std::string_view("ring") : kForPowersOfTwo, kForOtherNumbers}) {
          Algorithm other{std::string(name), where};
          // Within a node, whose protocols are known, the library's trees are chains.
          const bool chains = name == kForOtherNumbers && d == 0 && !dimension.protocols.empty();
          if (other.performs(kind) && !chains) add(std::move(other));
        }
      }
      // One message to each takes but one of each member's links.
      if (natural == "direct" && has_root(kind) && dimension.size > 2 &&
          dimension.size <= kMaxScatterGatherRanks)
        add(Algorithm("scatter-gather", where));
      if (!reduces_in(dimension, network)) continue;
      Algorithm in_switch(dimension.in_switch->name, machine.name);
      if (!in_switch.performs(kind)) continue;
      climbs_ = climbs_ || grows_trees_;
      add(std::move(in_switch));
    }
    // Each member sends to every other, as NCCL does; rings would pass on what is for others.
    const std::string_view flat = kind == CollectiveKind::all_to_all ? "direct" : "ring";
    choose(wish.empty() ? std::string(flat) : wish.front(), kAllDimensions, flat);
  }
  chooses_by_size_ = chooses_by_size_ || (dimensions > 1 && has_no_wish(options));
}

const Algorithm& CollectivePlanner::algorithm(CollectiveKind kind, std::uint32_t dimension,
                                              Picks picks) const {
  const std::vector<Choice>& chosen = algorithms_.at(kind);
  if (dimension == kAllDimensions) return chosen.back().usual;
  const std::size_t pick = picks >> (kPickBits * dimension) & kMostOthers;
  // In turn: a dimension may have phases of other kinds, which have a choice less.
  return pick == 0 || pick > chosen[dimension].others.size() ? chosen[dimension].usual
                                                             : chosen[dimension].others[pick - 1];
}

bool CollectivePlanner::may_go_over_all_lines(CollectiveKind kind, const GroupShape& shape) const {
  if (!has_root(kind)) return false;
  if (!has_no_wish(options_)) return false;
  std::int64_t larger = 0;
  for (std::size_t d = 0; d < shape.sizes.size(); ++d) {
    if (shape.sizes[d] < 2) continue;
    if (passes_others(machine_.dimensions[d])) return false;
    ++larger;
  }
  return larger == 2;
}

// Of the whole call, so that all chunks of it go alike.
CollectivePlanner::Picks CollectivePlanner::picks(const CollectiveCall& call, std::uint32_t shape_number) {
  if (const CollectiveCall made = as_made(call); made.kind != call.kind) return picks(made, shape_number);
  const GroupShape& shape = shapes_[shape_number];
  if (!chooses_by_size_ || options_.decomposition == Decomposition::flat || shape.sizes.empty()) return 0;
  const auto [found, fresh] = picks_.try_emplace(key_of(call, shape_number));
  if (fresh) found->second = fastest(call, shape_number);
  return found->second;
}

std::vector<CollectivePlanner::Picks> CollectivePlanner::possible_picks(const CollectiveCall& call,
                                                                        const GroupShape& shape) const {
  // Of machines of very many dimensions, not all.
  constexpr std::size_t kMostPossible = 256;
  std::vector<Picks> possible = {0};
  std::uint32_t seen = 0;
  for (const CollectivePhase& phase : phases_of(call, call.bytes, shape, {}, 0)) {
    if (possible.size() > kMostPossible) break;
    // Both ways of a dimension, in and out, go alike.
    if ((seen >> phase.dimension & 1) != 0) continue;
    seen |= std::uint32_t{1} << phase.dimension;
    const Choice& choice = algorithms_.at(phase.kind)[phase.dimension];
    const std::size_t usual = possible.size();
    for (Picks pick = 1; pick <= choice.others.size(); ++pick) {
      if (!suits(choice.others[pick - 1], phase.kind, shape.sizes[phase.dimension])) continue;
      for (std::size_t i = 0; i < usual; ++i)
        possible.push_back(possible[i] | pick << kPickBits * phase.dimension);
    }
  }
  const std::size_t in_root_lines = may_go_over_all_lines(call.kind, shape) ? possible.size() : 0;
  for (std::size_t i = 0; i < in_root_lines; ++i) possible.push_back(possible[i] | kOverAllLines);
  return possible;
}

// As NCCL chooses: by the time that each is expected to take, here of all bytes in as many chunks as are
// best. In the switch only what the busiest link carries less of, as of an all-reduce; but a barrier carries
// nothing. A reduce-scatter or an all-gather alone gains no bytes there, only steps, where rings are long:
// NCCL's model has them move all of the buffer by NVLS, (n - 1) / n of it round the ring, and leaves them to
// rings among several nodes without CollNet (src/graph/tuning.cc).
CollectivePlanner::Picks CollectivePlanner::fastest(const CollectiveCall& call, std::uint32_t shape_number) {
  const GroupShape shape = shapes_[shape_number];
  const std::vector<Picks> possible = possible_picks(call, shape);
  if (possible.size() == 1) return 0;
  double least = std::numeric_limits<double>::infinity();
  Picks found = 0;
  const auto busy_on = [](const ChunkLoads& loads, std::uint32_t dimension) {
    double busy = 0, free_out = 0, free_in = 0;
    for (const PhaseLoad& load : loads) {
      if (load.dimension != dimension) continue;
      busy += load.busy;
      free_out += load.free_out;
      free_in += load.free_in;
    }
    return busy - std::min(free_out, free_in);
  };
  ChunkLoads usual;
  for (const Picks taken : possible) {
    const CollectivePlan plan = make_plan(call, shape_number, call.bytes, {}, taken);
    const ChunkLoads loads = loads_of(plan);
    if (taken == 0) usual = loads;
    double alike = 0;  // seconds that NCCL counts for bytes where both carry as much
    const bool gains = std::ranges::all_of(plan.phases, [&](const PlannedPhase& phase) {
      const std::optional<CollectiveProtocol>& in_switch = machine_.dimensions[phase.dimension].in_switch;
      if (taken == 0 || !in_switch || phase.algorithm != in_switch->name) return true;
      const double busy = busy_on(loads, phase.dimension);
      if (call.kind == CollectiveKind::barrier || busy < busy_on(usual, phase.dimension)) return true;
      const bool scatters_or_gathers =
          phase.kind == CollectiveKind::reduce_scatter || phase.kind == CollectiveKind::all_gather;
      alike = busy / static_cast<double>(phase.schedule->ranks - 1);
      return scatters_or_gathers && plan.phases.size() == 1;
    });
    if (!gains) continue;
    const std::span<const ChunkLoads> ways(&loads, 1);
    const std::int64_t count = options_.chunks.value_or(choose_chunks(ways, options_.active_chunks));
    const double seconds = estimate_chunks(ways, count, options_.active_chunks).total +
                           (options_.measured ? beyond(plan, shape).total() : 0) + alike;
    if (seconds >= least) continue;
    least = seconds;
    found = taken;
  }
  return found;
}

}  // namespace armilla
