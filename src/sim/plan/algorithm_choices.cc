#include "sim/plan/algorithm_choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/units_text.h"
#include "network/topology.h"

namespace armilla {
namespace {

// What a dimension does best when the user has no wish.
std::string_view natural_algorithm(CollectiveKind kind, const Dimension& dimension) {
  if (links_every_pair(dimension)) return "direct";
  if (passes_others(dimension)) return "bidirectional-ring";
  if (kind == CollectiveKind::all_to_all) return "direct";
  if (!dimension.cables.empty()) return "ring";
  return is_power_of_two(dimension.size) ? "halving-doubling" : "ring";
}

// From a root, trees of a power of two move the bytes as often as they have levels, the two trees once. Of
// other numbers, whose members beyond a power of two hand over what they have and get it back, an all-reduce
// has the two trees instead; a library whose protocols are known has rings alone. Members differ then, and
// are not folded: of few. `alike`: what all members of a group of many do in the same way may be taken.
// `is_played_for`: it is the library's in any case, whose latencies stand in the place of all steps.
bool suits(const Algorithm& algorithm, CollectiveKind kind, std::int64_t members, bool library_known,
           bool alike, bool is_played_for) {
  constexpr std::int64_t kMostUnlike = 64;
  const bool all_do_alike = alike && (members > kMostUnlike || is_played_for);
  const bool power = is_power_of_two(members);
  if (algorithm.name() == kForPowersOfTwo)
    return power || (kind != CollectiveKind::all_reduce && !library_known && members <= kMostUnlike);
  if (algorithm.name() == kForOtherNumbers) return has_root(kind) || (!power && !all_do_alike);
  if (algorithm.name() == kForManyOthers) {
    const bool climbs = kind == CollectiveKind::all_reduce || kind == CollectiveKind::barrier;
    return !power && all_do_alike && (climbs || !library_known || is_played_for);
  }
  return true;
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
                                 algorithm.name() == kNvls ? "the one switch" : "the switch")
                   : fmt::format("algorithm '{}' runs in switches, and the network has none that reduce",
                                 algorithm.name()),
              legs ? "name another algorithm for dimensions of other kinds and for flat collectives"
                   : "choose an analytical network or flow, or another algorithm");
}

// Whether members of a dimension have a switch that the algorithm runs in. NVSwitches do not reduce together:
// what joins the members is to be one switch for each group of them, and no tree.
bool has_switch_for(std::string_view algorithm, const Machine& machine, std::uint32_t number) {
  if (!has_one_switch(machine.dimensions[number])) return false;
  const auto is_device = [&](std::uint32_t node) {
    return machine.graph.nodes[node].kind == NetworkNodeKind::device;
  };
  return algorithm != kNvls || std::ranges::none_of(machine.graph.cables, [&](const Cable& cable) {
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
    const std::string where = dimension.in_switch->where.empty()
                                  ? fmt::format("{}: dimension {}: in_switch", machine.name, dimension.name)
                                  : dimension.in_switch->where;
    if (std::ranges::find(known, name) == known.end())
      throw Error(where, fmt::format("'{:.60}' is not an algorithm that runs in switches", name),
                  fmt::format("known: {}", fmt::join(known, ", ")));
    if (!has_switch_for(name, machine, d))
      throw Error(where, fmt::format("algorithm '{}' runs in one switch, and links join several", name),
                  "sharp adds up over several switches");
  }
}

}  // namespace

AlgorithmChoices::AlgorithmChoices(const PlannedFor& given) : given_(given) {
  const auto& [machine, options, network] = given_;
  const bool grows_trees = network.grows_trees;
  const bool reduces = network.reduces_in_switches();
  check_switches(machine);
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
    std::vector<Choice>& chosen = choices_[kind];
    // A general wish cannot suit every kind and dimension; where it does not apply, it is replaced,
    // and said to be.
    const auto choose = [&](const std::string& text, std::uint32_t number, std::string_view natural) {
      Algorithm wished(text, where);
      // Over all dimensions, trees.
      const bool has_switch = number == kAllDimensions
                                  ? grows_trees && !machine.graph.empty() && wished.name() != kNvls
                                  : has_switch_for(wished.name(), machine, number);
      const bool misses_switch = wished.in_switch() && !(has_switch && reduces);
      // Nor has anybody asked for it over all dimensions, where it was named for the first of them.
      const bool unasked = number == kAllDimensions && options.decomposition != Decomposition::flat &&
                           wished.performs(kind) && reduces;
      if ((!specific && (!wished.performs(kind) || misses_switch)) || (unasked && misses_switch)) {
        replaced_[{kind, number}] = wished.name();
        wished = Algorithm(natural, where);
      }
      require(wished, kind, where);
      require_switch(wished, has_switch, reduces, where);
      climb_ = climb_ || (wished.in_switch() && grows_trees);
      chosen.push_back({std::move(wished)});
    };
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      const Dimension& dimension = machine.dimensions[d];
      const std::string_view natural = natural_algorithm(kind, dimension);
      const auto add = [&](Algorithm other) {
        chosen.back().others.push_back(std::move(other));
        are_several_ = true;
      };
      choose(wish.empty() ? std::string(natural) : wish[wish.size() == 1 ? 0 : d], d, natural);
      if (!wish.empty()) continue;
      const bool halves = natural == kForPowersOfTwo;
      if ((natural == "ring" && dimension.cables.empty()) || (halves && has_root(kind))) {
        // Instead of the natural one.
        for (const std::string_view name :
             {halves ? std::string_view("ring") : kForPowersOfTwo, kForOtherNumbers, kForManyOthers}) {
          Algorithm other{std::string(name), where};
          // Within a node, whose protocols are known, the library's trees are chains.
          const bool climbs = name == kForOtherNumbers || name == kForManyOthers;
          const bool chains = climbs && d == 0 && given_.options.measured && !dimension.protocols.empty();
          if (other.performs(kind) && !chains) add(std::move(other));
        }
      }
      // Round half of a ring each way, where bytes matter less than hops.
      if (natural == "bidirectional-ring" && has_root(kind)) add(Algorithm("direct", where));
      // One message to each takes but one of each member's links.
      if (natural == "direct" && has_root(kind) && dimension.size > 2 &&
          dimension.size <= kMaxScatterGatherRanks)
        add(Algorithm("scatter-gather", where));
      if (!reduces_in(dimension, network)) continue;
      Algorithm in_switch(dimension.in_switch->name, machine.name);
      if (!in_switch.performs(kind)) continue;
      climb_ = climb_ || grows_trees;
      add(std::move(in_switch));
    }
    // Each member sends to every other, as NCCL does; rings would pass on what is for others.
    const std::string_view flat = kind == CollectiveKind::all_to_all ? "direct" : "ring";
    choose(wish.empty() ? std::string(flat) : wish.front(), kAllDimensions, flat);
  }
}

const Algorithm& AlgorithmChoices::taken(CollectiveKind kind, std::uint32_t dimension,
                                         AlgorithmPicks picks) const {
  const std::vector<Choice>& chosen = choices_.at(kind);
  if (dimension == kAllDimensions) return chosen.back().usual;
  if (dimension >= kMostPicked) return chosen[dimension].usual;
  const std::size_t pick = picks >> (kPickBits * dimension) & kMostOthers;
  // In turn: a dimension may have phases of other kinds, which have a choice less.
  return pick == 0 || pick > chosen[dimension].others.size() ? chosen[dimension].usual
                                                             : chosen[dimension].others[pick - 1];
}

std::vector<AlgorithmPicks> AlgorithmChoices::possible(std::span<const CollectivePhase> phases,
                                                       const GroupShape& shape) const {
  // Of machines of very many dimensions, not all.
  constexpr std::size_t kMostPossible = 256;
  std::vector<AlgorithmPicks> possible = {0};
  std::uint32_t seen = 0;
  for (const CollectivePhase& phase : phases) {
    if (possible.size() > kMostPossible) break;
    // Both ways of a dimension, in and out, go alike.
    if (phase.dimension >= kMostPicked || (seen >> phase.dimension & 1) != 0) continue;
    seen |= std::uint32_t{1} << phase.dimension;
    const Choice& choice = choices_.at(phase.kind)[phase.dimension];
    const std::size_t usual = possible.size();
    const Dimension& dimension = given_.machine.dimensions[phase.dimension];
    const bool library_known =
        given_.options.measured && (dimension.in_switch || !dimension.protocols.empty());
    for (AlgorithmPicks pick = 1; pick <= choice.others.size(); ++pick) {
      // Distances are of no account where nothing but dimensions is known.
      if (!suits(choice.others[pick - 1], phase.kind, shape.sizes[phase.dimension], library_known,
                 given_.network.over_dimensions,
                 given_.options.measured && phase.dimension > 0 && !dimension.protocols.empty()))
        continue;
      for (std::size_t i = 0; i < usual; ++i)
        possible.push_back(possible[i] | pick << kPickBits * phase.dimension);
    }
  }
  return possible;
}

std::optional<std::string_view> AlgorithmChoices::replaced(CollectiveKind kind,
                                                           std::uint32_t dimension) const {
  const auto wished = replaced_.find({kind, dimension});
  return wished == replaced_.end() ? std::nullopt : std::optional(wished->second);
}

std::optional<std::uint32_t> AlgorithmChoices::reducing_dimensions(CollectiveKind kind) const {
  std::uint32_t reducing = 0;
  bool everywhere = true;
  const std::vector<CollectiveKind> kinds = kinds_of_phases(kind);
  const auto any_in_switch = [&](std::size_t number) {
    return std::ranges::any_of(
        kinds, [&](CollectiveKind phase) { return choices_.at(phase)[number].usual.in_switch(); });
  };
  for (std::uint32_t d = 0; d < given_.machine.dimensions.size(); ++d) {
    if (given_.machine.dimensions[d].in_switch) {
      reducing |= std::uint32_t{1} << d;
    } else if (any_in_switch(d)) {
      return std::nullopt;
    } else {
      everywhere = false;
    }
  }
  // Flat groups go over all dimensions.
  if (!everywhere && any_in_switch(given_.machine.dimensions.size())) return std::nullopt;
  return reducing;
}

}  // namespace armilla
