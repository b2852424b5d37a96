#include "sim/memo/lone_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "network/network.h"
#include "network/topology.h"
#include "sim/plan/senders.h"

namespace armilla {
namespace {

// Bit d: the machine's dimension d.
using Dimensions = std::uint32_t;
constexpr Dimensions kAll = UINT32_MAX;
constexpr Dimensions bit(std::uint32_t d) {
  return Dimensions{1} << d;
}

bool is_of_a_pass(Phase phase) {
  return phase == Phase::forward || phase == Phase::input_gradient || phase == Phase::weight_gradient;
}

// Which calls of a group are over: the first so many, and of those behind them the ones whose bits are set.
struct CallsOver {
  static constexpr std::uint32_t kBits = 64;
  std::uint32_t first = 0;
  std::uint64_t behind = 0;  // the lowest bit is never set

  void add(std::uint32_t call) {
    // What is too far ahead is forgotten.
    if (call >= first && call - first < kBits) behind |= std::uint64_t{1} << (call - first);
    count();
  }
  void add(CallsOver other) {
    // Mostly one of the two knows all.
    if (other.behind == 0 && other.first <= first) return;
    if (behind == 0 && first <= other.first) {
      *this = other;
      return;
    }
    if (other.first > first) std::swap(*this, other);
    if (first - other.first < kBits) behind |= other.behind >> (first - other.first);
    count();
  }

 private:
  void count() {
    for (; (behind & 1) != 0; behind >>= 1) ++first;
  }
};

class LoneFinder {
 public:
  LoneFinder(const StudyJob& input, const RankClasses& classes, CollectivePlanner& planner)
      : graph_(input.graph),
        issued_(input.issued),
        study_(input.study),
        machine_(study_.machine),
        topology_(machine_),
        classes_(classes),
        planner_(planner),
        peers_(input.peers),
        own_sends_(graph_.programs.size()) {
    // Families differ by name and purpose. If their groups are the same, so are their members' links.
    for (std::size_t f = 0; f < graph_.families.size(); ++f) {
      std::size_t first = 0;
      while (graph_.families[first].groups != graph_.families[f].groups) ++first;
      same_as_.push_back(static_cast<std::uint32_t>(first));
    }
  }
  // Of passes.
  LoneFinder(const StudyJob& input, const RankClasses& classes, CollectivePlanner& planner,
             const std::set<std::string>& families)
      : LoneFinder(input, classes, planner) {
    // One more than there are families stands for all of them.
    passes_ = static_cast<std::uint32_t>(graph_.families.size());
    std::set<std::uint32_t> asked;
    for (std::size_t f = 0; f < graph_.families.size(); ++f) {
      if (families.contains(graph_.families[f].name)) asked.insert(same_as_[f]);
    }
    for (std::uint32_t& same : same_as_) same = asked.contains(same) ? passes_ : same;
  }

  // None is, where the network has links of its own.
  std::vector<std::vector<bool>> find() {
    std::vector<std::vector<bool>> lone;
    for (const FoldedFamily& family : classes_.families) lone.emplace_back(family.groups.size(), false);
    is_unfit_.assign(graph_.families.size() + 1, false);
    passes_others_.assign(graph_.families.size() + 1, false);
    find_own_sends();
    if (!promises_of(study_.network).over_dimensions) return lone;
    // They are bits of a word, of which all set says something else.
    if (machine_.dimensions.size() >= 32) return {};
    for (const SlowLinks& slow : study_.what_if.links) uneven_ |= bit(slow.dimension);
    // What is known of one group on a link of another speed says nothing of the next.
    shared_ = uneven_;
    used_.resize(static_cast<std::size_t>(classes_.simulated()));
    for (std::int32_t rank = 0; rank < classes_.simulated(); ++rank) {
      mark_messages(rank);
      mark_collectives(rank);
    }
    for (std::uint32_t f = 0; f < classes_.families.size(); ++f) {
      const std::vector<std::vector<std::int32_t>>& groups = classes_.families[f].groups;
      for (std::size_t g = 0; g < groups.size(); ++g) lone[f][g] = is_lone(f, groups[g]);
    }
    return lone;
  }

  // After `find`: whether what passes of the ranks send is, their messages included.
  bool are_messages_lone() {
    for (std::int32_t rank = 0; rank < classes_.simulated(); ++rank) {
      if (!own_sends_[program_of(rank)].empty() && (used_.empty() || !is_lone(passes_, rank))) return false;
    }
    return true;
  }

  // After `find`, of what it found. Custom collectives are not told of.
  std::vector<std::vector<bool>> find_sometimes(const std::vector<std::vector<bool>>& lone) {
    if (lone.empty() || !graph_.custom.empty()) return {};
    std::vector<std::vector<bool>> in_turn;
    bool any = false;
    for (std::uint32_t f = 0; f < classes_.families.size(); ++f) {
      const std::vector<std::vector<std::int32_t>>& groups = classes_.families[f].groups;
      const bool any_disturbed = std::find(lone[f].begin(), lone[f].end(), false) != lone[f].end();
      in_turn.emplace_back();
      if (!any_disturbed || is_unfit_[same_as_[f]] ||
          !std::all_of(groups.begin(), groups.end(),
                       [&](const auto& group) { return is_of_one_program(group); }))
        continue;
      any = any || !groups.empty();
      for (const std::vector<std::int32_t>& group : groups)
        in_turn.back().push_back(is_chain(program_of(group.front()), same_as_[f]));
    }
    if (!any) in_turn.clear();
    return in_turn;
  }

  // By family, whether its messages pass ranks of other groups.
  std::vector<bool> passes_others() const {
    std::vector<bool> passes;
    for (const std::uint32_t same : same_as_) passes.push_back(passes_others_[same]);
    return passes;
  }

 private:
  std::uint32_t program_of(std::int32_t rank) const {
    return graph_.program_of[static_cast<std::size_t>(classes_.real_rank(rank))];
  }

  // Dimensions that its messages are planned over; kAll when they take a way of their own.
  Dimensions dimensions_of(std::uint32_t call_id, std::uint32_t shape) {
    const auto [found, fresh] = dimensions_.try_emplace({call_id, shape});
    if (!fresh) return found->second;
    const CollectiveCall& call = graph_.collectives[call_id];
    Dimensions& dimensions = found->second;
    if (call.custom >= 0) return dimensions = kAll;
    // Chunks differ in size and in their order only.
    for (const PlannedPhase& phase : planner_.plan(call, shape, 0).phases)
      dimensions |= phase.dimension == kAllDimensions ? kAll : bit(phase.dimension);
    return dimensions;
  }

  const GroupLayout& layout_of(std::uint32_t family, std::int32_t rank) {
    const auto real = static_cast<std::size_t>(classes_.real_rank(rank));
    return planner_.layout(graph_, family, graph_.families[family].group_of[real]);
  }

  // Messages that passes send between ranks of one program.
  void find_own_sends() {
    if (passes_ == kNone) return;
    for (std::int32_t rank = 0; rank < classes_.simulated(); ++rank) {
      const std::uint32_t program = program_of(rank);
      for (const IssuedItem& item : issued_[program].items) {
        if (item.kind != NodeKind::send) continue;
        const std::int32_t peer = peers_.of(classes_.real_rank(rank), graph_.transfers[item.payload]);
        if (graph_.program_of[static_cast<std::size_t>(peer)] == program)
          own_sends_[program].insert(item.payload);
      }
    }
  }

  // The dimensions that a rank's messages cross: those of passes, or with whom no group may be.
  void mark_messages(std::int32_t rank) {
    const std::int32_t real = classes_.real_rank(rank);
    const std::uint32_t program = program_of(rank);
    for (const IssuedItem& item : issued_[program].items) {
      if (item.kind != NodeKind::send) continue;
      const Dimensions crossed = topology_.differing(real, peers_.of(real, graph_.transfers[item.payload]));
      const bool is_own = own_sends_[program].contains(item.payload);
      if (is_own) used_[static_cast<std::size_t>(rank)][passes_] |= crossed;
      for (std::uint32_t d = 0; d < machine_.dimensions.size(); ++d) {
        // On rings they pass the links of others.
        if (!is_own || armilla::passes_others(machine_.dimensions[d])) shared_ |= crossed & bit(d);
      }
    }
  }

  // The dimensions of a rank's collectives, by family; what makes their links another's, too, is marked.
  void mark_collectives(std::int32_t rank) {
    std::map<std::uint32_t, Dimensions>& families = used_[static_cast<std::size_t>(rank)];
    for (const IssuedItem& item : issued_[program_of(rank)].items) {
      if (item.kind != NodeKind::collective) continue;
      const auto call = static_cast<std::uint32_t>(item.payload);
      const std::uint32_t family = graph_.collectives[call].family;
      const GroupLayout& layout = layout_of(family, rank);
      Dimensions dimensions = dimensions_of(call, layout.shape);
      if (dimensions == kAll) {
        // Of a way that is not planned by dimensions, all are used in which the members differ.
        dimensions = 0;
        for (const std::int32_t member : layout.ranks)
          dimensions |= topology_.differing(layout.ranks.front(), member);
        shared_ |= dimensions;
        is_unfit_[same_as_[family]] = true;
      }
      if ((dimensions & uneven_) != 0) is_unfit_[same_as_[family]] = true;
      families[same_as_[family]] |= dimensions;
      for (std::uint32_t d = 0; d < machine_.dimensions.size() && layout.is_grid(); ++d) {
        const Dimension& dimension = machine_.dimensions[d];
        const bool whole = static_cast<std::int64_t>(layout.coordinates[d].size()) == dimension.size;
        // On a ring that is spanned in part, messages between members pass the ranks between them, who may be
        // sending.
        if ((dimensions & bit(d)) == 0 || !armilla::passes_others(dimension) || whole) continue;
        shared_ |= bit(d);
        passes_others_[same_as_[family]] = true;
      }
    }
  }

  bool is_lone(std::uint32_t family, const std::vector<std::int32_t>& group) {
    return is_of_one_program(group) &&
           std::ranges::all_of(group, [&](std::int32_t rank) { return is_lone(same_as_[family], rank); });
  }
  // Of what the rank sends so.
  bool is_lone(std::uint32_t same, std::int32_t rank) {
    const std::map<std::uint32_t, Dimensions>& used = used_[static_cast<std::size_t>(rank)];
    const auto own = used.find(same);
    if (own == used.end() || own->second == 0 || (own->second & shared_) != 0) return false;
    return std::ranges::all_of(
               used,
               [&](const auto& other) { return other.first == same || (other.second & own->second) == 0; }) &&
           is_chain(program_of(rank), same);
  }

  bool is_of_one_program(const std::vector<std::int32_t>& group) const {
    return std::all_of(group.begin(), group.end(),
                       [&](std::int32_t rank) { return program_of(rank) == program_of(group.front()); });
  }

  // Whether each call of the family depends on the one before in a program, or on all but those that may be
  // under way with it. Dependences on nodes with larger ids are not looked at, so that the answer may be no
  // where it is yes.
  bool is_chain(std::uint32_t program_id, std::uint32_t same) {
    const auto [known, fresh] = chains_.try_emplace({program_id, same}, true);
    if (!fresh) return known->second;
    const Program& program = graph_.programs[program_id];
    const auto is_asked_for = [&](NodeKind kind, std::uint64_t payload) {
      if (kind == NodeKind::send) return same == passes_ && own_sends_[program_id].contains(payload);
      return kind == NodeKind::collective && same_as_[graph_.collectives[payload].family] == same;
    };
    // None is over before the first; where there is none, no dependences need to be followed.
    std::uint32_t first = program.size();
    for (const IssuedItem& item : issued_[program_id].items) {
      if (is_asked_for(item.kind, item.payload)) first = std::min(first, item.first_node);
    }
    std::vector<CallsOver> over(program.size() - first);  // when a node from `first` on is
    std::vector<bool> of_a_pass;                          // by call
    for (std::uint32_t node = first; node < program.size(); ++node) {
      CallsOver& before = over[node - first];
      for (const std::uint32_t dependence : program.dependences(node)) {
        if (dependence >= first && dependence < node) before.add(over[dependence - first]);
      }
      if (!is_asked_for(program.kind[node], program.payload[node])) continue;
      const bool may_meet = same == passes_ && is_of_a_pass(program.phase[node]);
      // `before` is what must have ended before the node starts: all its dependences and what those waited
      // for.
      if (!are_over(before, of_a_pass, may_meet)) return known->second = false;
      before.add(static_cast<std::uint32_t>(of_a_pass.size()));
      of_a_pass.push_back(is_of_a_pass(program.phase[node]));
    }
    return true;
  }

  // Whether all calls are; or, but for those of passes.
  static bool are_over(const CallsOver& over, const std::vector<bool>& of_a_pass, bool but_of_passes) {
    const std::size_t left = of_a_pass.size() - over.first;
    if (left == 0) return true;
    if (!but_of_passes || left > CallsOver::kBits) return false;
    for (std::size_t call = 0; call < left; ++call) {
      if ((over.behind >> call & 1) == 0 && !of_a_pass[over.first + call]) return false;
    }
    return true;
  }

  static constexpr std::uint32_t kNone = UINT32_MAX;

  const Graph& graph_;
  std::span<const Issued> issued_;  // by program
  const Study& study_;
  const Machine& machine_;
  Topology topology_;
  const RankClasses& classes_;
  CollectivePlanner& planner_;
  const Peers& peers_;
  std::vector<std::uint32_t> same_as_;              // the first family of equal groups, by family
  std::uint32_t passes_ = kNone;                    // what stands there for all that passes send
  std::vector<std::set<std::uint64_t>> own_sends_;  // of it, the transfers, by program
  Dimensions shared_ = 0;                           // with whom or what no group may be
  Dimensions uneven_ = 0;                           // of these, those whose links differ in speed
  std::vector<bool>
      is_unfit_;  // per first family of equal groups: calls that are never alone, or not known to be
  std::vector<bool> passes_others_;  // likewise: messages that pass ranks of other groups on a Ring
  std::vector<std::map<std::uint32_t, Dimensions>> used_;                     // by simulated rank and family
  std::map<std::pair<std::uint32_t, std::uint32_t>, Dimensions> dimensions_;  // by call and shape
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> chains_;            // by program and family
};

}  // namespace

bool LoneGroups::any() const {
  return any_sometimes() || std::ranges::any_of(lone_, [](const std::vector<bool>& groups) {
           return std::ranges::find(groups, true) != groups.end();
         });
}

LoneGroups find_lone_groups(const StudyJob& input, const RankClasses& classes, CollectivePlanner& planner) {
  LoneFinder finder(input, classes, planner);
  LoneGroups found;
  found.lone_ = finder.find();
  found.in_turn_ = finder.find_sometimes(found.lone_);
  found.passes_others_ = finder.passes_others();
  return found;
}

LoneGroups find_lone_passes(const StudyJob& input, const RankClasses& classes, CollectivePlanner& planner,
                            const std::set<std::string>& families) {
  LoneFinder finder(input, classes, planner, families);
  LoneGroups found;
  found.lone_ = finder.find();
  found.passes_others_ = finder.passes_others();
  found.has_lone_messages_ = finder.are_messages_lone();
  return found;
}

}  // namespace armilla
