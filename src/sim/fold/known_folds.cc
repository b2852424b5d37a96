#include "sim/fold/known_folds.h"

#include <algorithm>
#include <utility>

#include "sim/fold/rank_colours.h"

namespace armilla {

std::vector<std::vector<KnownFolds::Item>> KnownFolds::items_of(const StudyJob& input) {
  std::vector<std::vector<Item>> items;
  for (const Issued& program : input.issued) {
    std::vector<Item>& own = items.emplace_back();
    own.reserve(program.items.size());
    for (const IssuedItem& issued : program.items) {
      Item item{.kind = issued.kind, .bytes = issued.payload};
      if (issued.kind == NodeKind::collective) {
        const CollectiveCall& call = input.graph.collectives[issued.payload];
        item.bytes = static_cast<std::uint64_t>(call.bytes.value);
        item.family = call.family;
        item.end = call.takes_turns ? -1 : call.root;
        item.collective = call.kind;
        item.routing = call.routing;
      } else if (issued.kind == NodeKind::send || issued.kind == NodeKind::receive) {
        const PointToPoint& transfer = input.graph.transfers[issued.payload];
        item.bytes = static_cast<std::uint64_t>(transfer.bytes.value);
        item.family = transfer.family;
        item.tag = transfer.tag;
        item.end = transfer.peer;
        item.peer_kind = transfer.peer_kind;
      }
      own.push_back(item);
    }
  }
  return items;
}

bool KnownFolds::is_of(const Structure& known, const StudyJob& input,
                       const std::vector<std::vector<Item>>& items) {
  const Graph& graph = input.graph;
  return known.shares_memory == input.shares_memory && known.groups.size() == graph.families.size() &&
         known.items == items && known.program_of == graph.program_of &&
         std::ranges::equal(known.groups, graph.families, {}, {}, &GroupFamily::groups);
}

const RankClasses& KnownFolds::classes_of(const StudyJob& input, CollectivePlanner& planner) {
  const Graph& graph = input.graph;
  // What custom collectives send is not in the items.
  if (most_ == 0 || !may_fold(input.study) || !graph.custom.empty())
    return other_ = fold_ranks(input, planner);
  std::vector<std::vector<Item>> items = items_of(input);
  for (auto known = known_.begin(); known != known_.end(); ++known) {
    if (!is_of(*known, input, items)) continue;
    known_.splice(known_.begin(), known_, known);
    return known_.front().classes;
  }
  RankClasses classes = fold_ranks(input, planner);  // before anything is kept: it may throw
  Structure& made = known_.emplace_front();
  made.program_of = graph.program_of;
  made.items = std::move(items);
  for (const GroupFamily& family : graph.families) made.groups.push_back(family.groups);
  made.shares_memory = input.shares_memory;
  made.classes = std::move(classes);
  std::size_t numbers = 0, kept = 0;
  std::erase_if(known_, [&](const Structure& structure) {
    numbers += structure.size();
    return kept++ > 0 && (kept > most_ || numbers > most_ranks_);
  });
  return known_.front().classes;
}

}  // namespace armilla
