#include "sim/memo/memoised_collectives.h"

namespace armilla {

MemoisedCollectives::MemoisedCollectives(const RunContext& context, LoneGroups lone, LonePlays plays,
                                         GroupTable& groups, CollectiveExecutor& runner,
                                         CollectiveClient& client)
    : context_(context),
      lone_(std::move(lone)),
      plays_(std::move(plays)),
      groups_(groups),
      runner_(runner),
      client_(client),
      target_(context.queue.add_handler(*this)),
      over_(context.classes.real.size()) {
  for (const FoldedFamily& family : context.classes.families) states_.emplace_back(family.groups.size());
}

// What the first member of a collective finds decides for all of them: later ones of what is played are passed
// on, too, and a member issues the group's next only when this one is over.
void MemoisedCollectives::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call,
                                std::uint64_t sequence) {
  const std::uint32_t f = context_.graph.collectives[call].family;
  const FoldedFamily& family = context_.classes.families[f];
  const std::int32_t g = family.group_of[static_cast<std::size_t>(rank)];
  if (!lone_.contains(f, g)) {
    runner_.issue(rank, node, call, sequence);
    return;
  }
  const auto group_id = static_cast<std::uint32_t>(g);
  const auto member = static_cast<std::size_t>(family.member_of[static_cast<std::size_t>(rank)]);
  Group& group = states_[f][group_id];
  group.issued.resize(family.groups[group_id].members.size());
  const std::uint32_t number = group.issued[member]++;
  if (number == group.decided && !group.gathers) {
    const LonePlay* const play = plays_.find(call, group_id, groups_.of(f, group_id));
    if (play == nullptr) {
      ++group.decided;
    } else {
      group.gathers = true;
      group.performance = open(call, f, group_id, *play);
      gathering_.push_back(group.performance);
    }
  }
  if (number < group.decided) {
    runner_.issue(rank, node, call, sequence);
    return;
  }
  Performance& performance = performances_[group.performance];
  performance.members[member] = {node, sequence, true};
  if (++performance.gathered == performance.members.size()) perform(group.performance);
}

std::uint32_t MemoisedCollectives::open(std::uint32_t call, std::uint32_t family, std::uint32_t group,
                                        const LonePlay& play) {
  const std::uint32_t id = performances_.take();
  Performance& performance = performances_[id];
  performance.play = &play;
  performance.call = call;
  performance.family = family;
  performance.group = group;
  performance.gathered = 0;
  performance.members.assign(play.members.size(), {});
  performance.members_left = static_cast<std::uint32_t>(play.members.size());
  return id;
}

void MemoisedCollectives::perform(std::uint32_t id) {
  const Performance& performance = performances_[id];
  Group& group = states_[performance.family][performance.group];
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group].members;
  for (std::size_t m = 0; m < ranks.size(); ++m)
    client_.collective_started(ranks[m], performance.members[m].node);
  ++group.decided;
  group.gathers = false;
  ++group.performed[performance.play];
  context_.queue.schedule(later(context_.queue.now(), performance.play->duration), target_, id);
}

void MemoisedCollectives::round_over() {
  for (const std::uint32_t id : gathering_) {
    if (performances_[id].gathered == performances_[id].members.size()) continue;
    Group& group = states_[performances_[id].family][performances_[id].group];
    ++group.decided;
    group.gathers = false;
    const std::vector<std::int32_t>& ranks =
        context_.classes.families[performances_[id].family].groups[performances_[id].group].members;
    for (std::size_t m = 0; m < ranks.size(); ++m) {
      const Performance::Member& member = performances_[id].members[m];
      if (member.is_there) runner_.issue(ranks[m], member.node, performances_[id].call, member.sequence);
    }
    performances_.release(id);
  }
  gathering_.clear();
}

void MemoisedCollectives::handle(std::uint64_t id) {
  const Performance& performance = performances_[id];
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group].members;
  for (std::uint32_t m = 0; m < ranks.size(); ++m) {
    over_[static_cast<std::size_t>(ranks[m])].emplace_back(static_cast<std::uint32_t>(id), m);
    context_.order.mark(ranks[m], TurnPart::memoised);
  }
}

void MemoisedCollectives::take_turn(std::int32_t rank) {
  auto& over = over_[static_cast<std::size_t>(rank)];
  for (const auto& [id, member] : over) finish(id, member, rank);
  over.clear();
}

void MemoisedCollectives::finish(std::uint32_t id, std::uint32_t member, std::int32_t rank) {
  Performance& performance = performances_[id];
  const std::uint32_t node = performance.members[member].node;
  const Time start = context_.queue.now() - performance.play->duration;
  for (ChunkInterval phase : performance.play->members[member].phases) {
    phase.node = node;
    phase.ready += start;
    phase.start += start;
    phase.end += start;
    client_.chunk_finished(rank, phase);
  }
  if (--performance.members_left == 0) performances_.release(id);
  client_.collective_finished(rank, node);
}

// Between rounds nobody gathers: what a group performs is an event.
void MemoisedCollectives::add_state(StateDigest& state) const {
  state.add('o', plays_.known(), plays_.played());
  for (std::size_t f = 0; f < states_.size(); ++f) {
    for (std::size_t g = 0; g < states_[f].size(); ++g) {
      const Group& group = states_[f][g];
      for (std::size_t member = 0; member < group.issued.size(); ++member)
        state.add('t', f, g, member, std::int64_t{group.decided} - std::int64_t{group.issued[member]});
    }
  }
}

Digest MemoisedCollectives::describe(std::uint64_t id, const Viewpoint& view) const {
  const Performance& performance = performances_[id];
  Digest all = digest_of(performance.call, performance.family, performance.group, performance.members_left,
                         performance.play->duration.value);
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group].members;
  for (std::size_t m = 0; m < performance.members.size(); ++m) {
    const Performance::Member& member = performance.members[m];
    all =
        digest_of(all.low, all.high, view.place(ranks[m], member.node), view.age(ranks[m], member.sequence));
  }
  return all;
}

MemoisedCollectives::Sums MemoisedCollectives::sums() const {
  Sums sums;
  for (std::size_t f = 0; f < states_.size(); ++f) {
    for (std::size_t g = 0; g < states_[f].size(); ++g) {
      for (const auto& [play, times] : states_[f][g].performed) sums[{f, g, play}] = times;
    }
  }
  return sums;
}

void MemoisedCollectives::repeat(const Sums& from, const Sums& until, std::int64_t times) {
  for (const auto& [which, count] : until) {
    const auto& [f, g, play] = which;
    const auto before = from.find(which);
    states_[f][g].performed[play] += (count - (before == from.end() ? 0 : before->second)) * times;
  }
}

void MemoisedCollectives::count_messages() const {
  for (std::uint32_t f = 0; f < states_.size(); ++f) {
    for (std::uint32_t g = 0; g < states_[f].size(); ++g) {
      for (const auto& [play, times] : states_[f][g].performed) {
        const GroupMembers& group = groups_.of(f, g);
        for (std::size_t m = 0; m < group.real.size(); ++m) {
          const GroupLayout& layout = *group.layouts[m];
          for (const LonePlay::Sent& sent : play->members[m].sent) {
            const std::int32_t to = layout.ranks[static_cast<std::size_t>(sent.to)];
            context_.network.count({.source = group.real[m],
                                    .destination = to,
                                    .bytes = sent.bytes,
                                    .dimension = sent.dimension,
                                    .leg = sent.leg},
                                   times * sent.times);
          }
        }
      }
    }
  }
}

}  // namespace armilla
