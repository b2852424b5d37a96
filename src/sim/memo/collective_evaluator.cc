#include "sim/memo/collective_evaluator.h"

namespace armilla {

CollectiveEvaluator::CollectiveEvaluator(LoneGroups lone, Rehearser& rehearser,
                                         CollectiveInstances& instances, const RankClasses& classes,
                                         EventQueue& queue, RankTurns& turns, CollectiveClient& client)
    : lone_(std::move(lone)),
      rehearser_(rehearser),
      instances_(instances),
      classes_(classes),
      queue_(queue),
      turns_(turns),
      client_(client),
      target_(queue.add_handler(*this)),
      over_(static_cast<std::size_t>(classes.simulated())) {}

bool CollectiveEvaluator::take(std::uint32_t id, bool fresh, std::int32_t rank) {
  CollectiveInstance& instance = instances_[id];
  const FoldedFamily& family = classes_.families[instance.family];
  if (fresh && lone_.contains(instance.family, family.group_of[static_cast<std::size_t>(rank)]))
    instance.rehearsal = rehearser_.rehearse(instance.call, *instance.group);
  if (instance.rehearsal == nullptr) return false;
  if (++instance.gathered == instance.issues.size()) {
    perform(id);
  } else if (fresh) {
    gathering_.push_back(id);
  }
  return true;
}

void CollectiveEvaluator::perform(std::uint32_t id) {
  CollectiveInstance& instance = instances_[id];
  for (std::uint32_t m = 0; m < instance.issues.size(); ++m)
    client_.collective_started(instance.group->ranks->members[m], instance.issues[m].node);
  ++instance.group->evaluated[instance.rehearsal];
  queue_.schedule(later(queue_.now(), instance.rehearsal->duration), target_, id);
}

void CollectiveEvaluator::handle(std::uint64_t id) {
  const auto instance = static_cast<std::uint32_t>(id);
  const std::vector<std::int32_t>& members = instances_[instance].group->ranks->members;
  for (std::uint32_t m = 0; m < members.size(); ++m) {
    over_[static_cast<std::size_t>(members[m])].emplace_back(instance, m);
    turns_.mark(members[m]);
  }
}

void CollectiveEvaluator::take_turn(std::int32_t rank) {
  auto& over = over_[static_cast<std::size_t>(rank)];
  for (const auto& [id, member] : over) finish(id, member, rank);
  over.clear();
}

void CollectiveEvaluator::finish(std::uint32_t id, std::uint32_t member_id, std::int32_t rank) {
  const CollectiveInstance& instance = instances_[id];
  const std::uint32_t node = instance.issues[member_id].node;
  const Time start = queue_.now() - instance.rehearsal->duration;
  for (ChunkPhase phase : instance.rehearsal->members[member_id].phases) {
    phase.ready += start;
    phase.start += start;
    phase.end += start;
    client_.chunk_finished(rank, node, phase);
  }
  instances_.leave(id);
  client_.collective_finished(rank, node);
}

void CollectiveEvaluator::count_messages(Network& network) const {
  for (const std::vector<CollectiveGroup>& family : instances_.groups()) {
    for (const CollectiveGroup& group : family) {
      for (const auto& [rehearsal, times] : group.evaluated) {
        for (std::size_t m = 0; m < group.real.size(); ++m) {
          const GroupLayout& layout = *group.layouts[m];
          for (const Rehearsal::Sent& sent : rehearsal->members[m].sent) {
            const std::int32_t to = layout.ranks[static_cast<std::size_t>(sent.to)];
            network.count({group.real[m], to, sent.bytes, sent.dimension, 0, 0}, times * sent.times);
          }
        }
      }
    }
  }
}

}  // namespace armilla
