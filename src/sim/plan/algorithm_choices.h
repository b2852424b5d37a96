// Which algorithms the dimensions of a machine may take for each kind of collective: the options', the
// natural one, and what may be faster for some sizes and groups. Each performs its kind and has the switch it
// runs in; which of them a call takes is chosen elsewhere (sim/collective_plan.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collective/algorithm.h"
#include "collective/decompose.h"
#include "ir/collective.h"
#include "ir/machine.h"
#include "network/network.h"
#include "sim/collective_plan.h"

namespace armilla {

// What a Ring among so many members of a Switch may be slower than: in a logarithmic number of steps a power
// of two moves as few bytes; other numbers move no fewer in trees, which are for small messages, or take up
// to two steps more where all members do the same (and so are folded).
inline constexpr std::string_view kForPowersOfTwo = "halving-doubling",
                                  kForOtherNumbers = "double-binary-tree", kForManyOthers = "circulant";
// Of the algorithms in switches the one whose all-reduce is a reduce-scatter and an all-gather, which
// NVSwitches do, each alone: not in trees of several.
inline constexpr std::string_view kNvls = "nvls";

// Whether calls go as the library would have them.
inline bool has_no_wish(const CollectiveOptions& options) {
  return options.algorithms.empty() && options.algorithms_by_kind.empty() &&
         options.decomposition == Decomposition::multi_axis;
}

// Whether a network lets calls take the dimension's switches that reduce, where nobody names an algorithm. Of
// trees only those of SHARP: where NVSwitches reduce on them, ranks do not fold.
inline bool reduces_in(const Dimension& dimension, const NetworkPromises& network) {
  return dimension.in_switch &&
         (network.over_dimensions || (network.grows_trees && dimension.in_switch->name == "sharp"));
}

class AlgorithmChoices {
 public:
  // Of a broadcast or a reduction: over all lines (collective/decompose.h).
  static constexpr AlgorithmPicks kOverAllLines = AlgorithmPicks{1} << 63;

  // Throws Error when the algorithms named by the options do not exist or do not fit the machine's dimensions
  // and the network.
  explicit AlgorithmChoices(const PlannedFor& given);

  // That `picks` take for a phase; of all dimensions together the one for flat groups.
  const Algorithm& taken(CollectiveKind kind, std::uint32_t dimension, AlgorithmPicks picks) const;
  // All that a call's phases may take, each dimension's choice with each other's; the usual ones first.
  std::vector<AlgorithmPicks> possible(std::span<const CollectivePhase> phases,
                                       const GroupShape& shape) const;
  // A general wish that cannot perform the kind in the dimension, in whose place the usual algorithm stands.
  std::optional<std::string_view> replaced(CollectiveKind kind, std::uint32_t dimension) const;

  // Whether any dimension has more than one choice.
  bool are_several() const { return are_several_; }
  // Whether some algorithm goes over trees of switches.
  bool climb() const { return climb_; }
  // By bit, whose switches reduce, as the machine says; nothing where an algorithm named for calls of the
  // kind, or for phases that they may have, runs in switches of which the machine says nothing.
  std::optional<std::uint32_t> reducing_dimensions(CollectiveKind kind) const;

 private:
  struct Choice {
    Algorithm usual;
    std::vector<Algorithm> others{};  // at most kMostOthers
  };
  // Which of a Choice every dimension takes, a few bits each: 0 is the usual one, and that of dimensions
  // beyond kMostPicked.
  static constexpr std::uint32_t kPickBits = 3;
  static constexpr std::size_t kMostOthers = (1 << kPickBits) - 1;
  static constexpr std::uint32_t kMostPicked = 63 / kPickBits;

  PlannedFor given_;
  // Per kind, one per dimension, and last the one for flat groups.
  std::map<CollectiveKind, std::vector<Choice>> choices_;
  std::map<std::pair<CollectiveKind, std::uint32_t>, std::string_view>
      replaced_;  // the wish, by kind and dimension
  bool are_several_ = false, climb_ = false;
};

}  // namespace armilla
