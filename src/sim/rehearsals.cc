#include "sim/rehearsals.h"

#include <algorithm>
#include <numeric>

#include "sim/compute_times.h"

namespace armilla {

Rehearsals::Rehearsals(const Graph& graph, const Study& study, CollectivePlanner& planner)
    : graph_(graph), study_(study), planner_(planner) {
  const Device& device = study.machine.device;
  for (const OtherDevices& other : study.machine.others) {
    if (study.collectives.charge_reductions && other.device.memory_bandwidth != device.memory_bandwidth)
      possible_ = false;
  }
}

const Rehearsal* Rehearsals::rehearse(std::uint32_t call_id, const GroupLayout& layout) {
  if (!possible_) return nullptr;
  const CollectiveCall& call = graph_.collectives[call_id];
  const auto [found, fresh] = known_.try_emplace({call.kind, call.bytes.value, call.root, layout.shape});
  if (fresh) found->second = play(call_id, layout);
  return found->second ? &*found->second : nullptr;
}

std::optional<Rehearsal> Rehearsals::play(std::uint32_t call_id, const GroupLayout& layout) {
  if (!network_) {
    network_ = make_network(study_.network, {study_.machine, queue_, *this, {}, {}});
    queue_.add_observer(*this);  // after the network, which also looks for ends of rounds
    classes_.simulated_of.assign(static_cast<std::size_t>(graph_.ranks), -1);
  }
  const CollectiveCall& call = graph_.collectives[call_id];
  const auto members = static_cast<std::int32_t>(layout.ranks.size());
  classes_.real = layout.ranks;
  classes_.sizes.assign(layout.ranks.size(), 1);
  for (std::int32_t m = 0; m < members; ++m)
    classes_.simulated_of[static_cast<std::size_t>(layout.ranks[static_cast<std::size_t>(m)])] = m;
  classes_.families.assign(graph_.families.size(), {});
  FoldedFamily& family = classes_.families[call.family];
  family.groups.resize(1);
  family.groups.front().members.resize(layout.ranks.size());
  std::iota(family.groups.front().members.begin(), family.groups.front().members.end(), 0);
  family.group_of.assign(layout.ranks.size(), 0);
  family.member_of = family.groups.front().members;

  RankTurns turns(members, false);
  CollectiveRunner runner(graph_, study_.machine, study_.collectives,
                          std::vector(layout.ranks.size(), study_.machine.device.memory_bandwidth), planner_,
                          classes_, queue_, turns, *this);
  runner.use(*network_);
  runner_ = &runner;
  turns_ = &turns;
  begin_ = queue_.now();
  started_ = 0;
  ends_.assign(layout.ranks.size(), std::nullopt);
  members_.assign(layout.ranks.size(), {});
  sent_.assign(layout.ranks.size(), {});
  for (std::int32_t m = 0; m < members; ++m) runner.issue(m, 0, call_id);
  possible_ = queue_.run();  // or time itself is at an end
  if (!is_uniform()) return std::nullopt;
  Rehearsal rehearsal;
  rehearsal.duration = ends_.front()->time - begin_;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    for (const auto& [message, times] : sent_[m])
      members_[m].sent.push_back(
          {std::get<0>(message), std::get<1>(message), Bytes(std::get<2>(message)), times});
  }
  rehearsal.members = std::move(members_);
  return rehearsal;
}

bool Rehearsals::is_uniform() const {
  return started_ == static_cast<std::int32_t>(ends_.size()) && ends_.front() && ends_.front()->round == 1 &&
         ends_.front()->time > begin_ &&
         std::all_of(ends_.begin(), ends_.end(), [&](const auto& end) { return end == ends_.front(); });
}

void Rehearsals::delivered(const Message& message) {
  const auto member = [&](std::int32_t rank) { return classes_.simulated_rank(rank); };
  ++sent_[static_cast<std::size_t>(member(message.source))]
         [{member(message.destination), message.dimension, message.bytes.value}];
  runner_->delivered(message);
}

void Rehearsals::collective_started(std::int32_t, std::uint32_t) {
  if (queue_.now() == begin_) ++started_;
}

void Rehearsals::collective_finished(std::int32_t rank, std::uint32_t) {
  ends_[static_cast<std::size_t>(rank)] = End{queue_.now(), round_};
}

void Rehearsals::chunk_finished(std::int32_t rank, std::uint32_t, const ChunkPhase& phase) {
  ChunkPhase relative = phase;
  relative.ready = phase.ready - begin_;
  relative.start = phase.start - begin_;
  relative.end = phase.end - begin_;
  members_[static_cast<std::size_t>(rank)].phases.push_back(relative);
}

void Rehearsals::round_over() {
  if (round_time_ != queue_.now()) round_ = 0;
  round_time_ = queue_.now();
  ++round_;
  turns_->take([&](std::int32_t rank) { runner_->take_turn(rank); });
}

}  // namespace armilla
