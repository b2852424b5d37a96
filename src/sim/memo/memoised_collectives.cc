#include "sim/memo/memoised_collectives.h"

#include <algorithm>

#include "sim/engine/native_run.h"

namespace armilla {

MemoisedCollectives::MemoisedCollectives(const NativePlay& play, KnownPlays& known, const RunContext& context,
                                         GroupTable& groups, CollectiveRunner& runner, RankWalker& walker)
    : context_(context),
      ways_(message_ways(play)),
      lone_(ways_->tells_who_meets() ? find_lone_groups({play.graph, play.issued, play.study, play.peers},
                                                        play.classes, play.planner)
                                     : LoneGroups()),
      plays_(play, known, *ways_),
      groups_(groups),
      runner_(runner),
      walker_(walker),
      target_(context.queue.add_handler(*this)),
      over_(context.classes.real.size()) {
  for (const FoldedFamily& family : context.classes.families) states_.emplace_back(family.groups.size());
  // Links matter only to groups that are alone at some times and not at others.
  if (!lone_.any_sometimes()) return;
  uses_.emplace(*ways_, play.planner);
  context.observers.push_back(this);
  played_.resize(context.classes.real.size());
}

// What the first member of a collective finds decides for all of them: later ones of what is played are
// passed on, too, and a member issues the group's next only when this one is over.
void MemoisedCollectives::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call,
                                std::uint64_t sequence) {
  const std::uint32_t f = context_.graph.collectives[call].family;
  const FoldedFamily& family = context_.classes.families[f];
  const std::int32_t g = family.group_of[static_cast<std::size_t>(rank)];
  const bool is_lone = lone_.contains(f, g);
  if (!is_lone && !lone_.is_sometimes(f)) {
    pass_on(rank, node, call, sequence);
    return;
  }
  const auto group_id = static_cast<std::uint32_t>(g);
  const auto member = static_cast<std::size_t>(family.member_of[static_cast<std::size_t>(rank)]);
  Group& group = states_[f][group_id];
  group.issued.resize(family.groups[group_id].size());
  const std::uint32_t number = group.issued[member]++;
  // A member that issues the group's next without waiting for this one.
  // Its collectives may be under way together, and are played as such.
  if (group.gathers && number > group.decided) pass_on_gathered(group.performance);
  if (number == group.decided && !group.gathers) {
    const LonePlay* const play = play_of(group, call, group_id);
    const LinkUses::Links* const links = is_lone ? nullptr : &links_of(group, call, group_id);
    if (links != nullptr && group.patience == 0) take_heart(group, f, group_id, *links);
    // What is met more often than not costs more than it saves.
    const bool hopes = is_lone || group.patience > 0;
    if (play == nullptr || !hopes || (links != nullptr && !is_alone(f, group_id, *links))) {
      ++group.decided;
    } else {
      group.gathers = true;
      group.performance = open(call, f, group_id, *play);
      performances_[group.performance].links = links;
      if (links != nullptr) uses_->hold(*links, group.performance);
      gathering_.push_back(group.performance);
    }
  }
  if (number < group.decided) {
    pass_on(rank, node, call, sequence);
    return;
  }
  Performance& performance = performances_[group.performance];
  performance.members[member] = {node, sequence, true};
  if (++performance.gathered == performance.members.size()) perform(group.performance);
}

const LonePlay* MemoisedCollectives::play_of(Group& group, std::uint32_t call, std::uint32_t g) {
  const LonePlay*& play = group.calls[call].play;
  const std::uint32_t family = context_.graph.collectives[call].family;
  if (play == nullptr) play = plays_.find(call, g, groups_.of(family, g), lone_.passes_others(family));
  return play;
}

const LinkUses::Links& MemoisedCollectives::links_of(Group& group, std::uint32_t call, std::uint32_t g) {
  const LinkUses::Links*& links = group.calls[call].links;
  const CollectiveCall& what = context_.graph.collectives[call];
  if (links == nullptr) links = &uses_->of_call(what, g, groups_.of(what.family, g));
  return *links;
}

// Where a member issues a collective when it is through with the one before, others may still be about to
// finish that in this round.
bool MemoisedCollectives::is_alone(std::uint32_t f, std::uint32_t g, const LinkUses::Links& links) {
  if (!lone_.is_in_turn(f, g)) return uses_->are_free(links);
  const Group& group = states_[f][g];
  // Its own last collective is nobody else: its links are taken out of the books for the question.
  for (const LinkUses::Links* const own : group.links) uses_->end(*own);
  const bool is_alone = uses_->are_free(links);
  for (const LinkUses::Links* const own : group.links) uses_->begin(*own);
  return is_alone;
}

void MemoisedCollectives::take_heart(Group& group, std::uint32_t family, std::uint32_t number,
                                     const LinkUses::Links& links) {
  if (group.hopes == 0) return;
  // Without patience, plays are tried again only after the group has been found alone often enough.
  group.calm = is_alone(family, number, links) ? group.calm + 1 : 0;
  if (group.calm < kMostPatience) return;
  group.calm = 0;
  --group.hopes;
  group.patience = 1;
}

void MemoisedCollectives::pass_on(std::int32_t rank, std::uint32_t node, std::uint32_t call,
                                  std::uint64_t sequence) {
  if (uses_) {
    const CollectiveCall& what = context_.graph.collectives[call];
    const FoldedFamily& family = context_.classes.families[what.family];
    const auto g = static_cast<std::uint32_t>(family.group_of[static_cast<std::size_t>(rank)]);
    Group& group = states_[what.family][g];
    const std::size_t members = family.groups[g].size();
    played_[static_cast<std::size_t>(rank)].emplace_back(node, what.family);
    group.passed_on.resize(members);
    const std::uint32_t number =
        group.passed_on[static_cast<std::size_t>(family.member_of[static_cast<std::size_t>(rank)])]++;
    // The first member of a collective begins the use of links, the last one to end it gives them back.
    if (number == group.begun) {
      ++group.begun;
      group.ends_left += static_cast<std::uint32_t>(members);
      group.links.push_back(&links_of(group, call, g));
      begin_use(*group.links.back());
    }
  }
  runner_.issue(rank, node, call, sequence);
}

// The links of a group's collectives are in use until none of them is under way.
void MemoisedCollectives::ends(std::int32_t rank, std::uint32_t node) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>>& played = played_[static_cast<std::size_t>(rank)];
  const auto entry = std::ranges::find(played, node, &std::pair<std::uint32_t, std::uint32_t>::first);
  if (entry == played.end()) return;  // performed: it has let go of its links
  const std::uint32_t f = entry->second;
  played.erase(entry);
  Group& group = states_[f][static_cast<std::size_t>(
      context_.classes.families[f].group_of[static_cast<std::size_t>(rank)])];
  // All of the group's at once, when the last one is over. A link that is given back late makes others be
  // played that might have been remembered, which is slower, but the same.
  if (--group.ends_left == 0) {
    for (const LinkUses::Links* const links : group.links) uses_->end(*links);
    group.links.clear();
  }
}

void MemoisedCollectives::leaves(const Channel& channel) {
  begin_use(uses_->of_message(channel.source, channel.destination));
}

void MemoisedCollectives::arrives(const Channel& channel) {
  uses_->end(uses_->of_message(channel.source, channel.destination));
}

void MemoisedCollectives::begin_use(const LinkUses::Links& links) {
  uses_->begin(links);
  std::vector<std::uint32_t> disturbed;
  for (const std::uint32_t link : links) {
    const std::uint32_t holder = uses_->holder(link);
    if (holder == LinkUses::kNobody) continue;
    disturbed.push_back(holder);
    // Released before anyone is disturbed: what is then played must find all links as they will be.
    let_go(holder);
  }
  for (const std::uint32_t id : disturbed) disturb(id);
}

void MemoisedCollectives::let_go(std::uint32_t id) {
  uses_->release(*performances_[id].links);
  std::erase_if(holding_, [&](const Holder& holder) { return holder.id == id; });
}

// Whose links nobody may have used until now, and somebody is about to.
void MemoisedCollectives::disturb(std::uint32_t id) {
  const Performance& performance = performances_[id];
  if (performance.gathered < performance.members.size()) {
    pass_on_gathered(id);
  } else {
    catch_up(id, context_.queue.now());
  }
}

std::uint32_t MemoisedCollectives::open(std::uint32_t call, std::uint32_t family, std::uint32_t group,
                                        const LonePlay& play) {
  const std::uint32_t id = performances_.take();
  Performance& performance = performances_[id];
  performance.play = &play;
  performance.call = call;
  performance.family = family;
  performance.group = group;
  performance.links = nullptr;
  performance.gathered = 0;
  performance.members.assign(play.members.size(), {});
  performance.members_left = static_cast<std::uint32_t>(play.members.size());
  return id;
}

void MemoisedCollectives::perform(std::uint32_t id) {
  Performance& performance = performances_[id];
  performance.start = context_.queue.now();
  std::erase(gathering_, id);
  if (performance.links != nullptr) holding_.push_back({performance.start, &performance.play->moments, id});
  Group& group = states_[performance.family][performance.group];
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group];
  for (std::size_t m = 0; m < ranks.size(); ++m)
    walker_.collective_started(ranks[m], performance.members[m].node);
  ++group.decided;
  group.gathers = false;
  // Messages are counted at the end, by how often each play was used.
  ++group.performed[performance.play];
  context_.queue.schedule(later(context_.queue.now(), performance.play->duration), target_, id);
}

// Those who are there, in a round in which it is not to be performed.
void MemoisedCollectives::pass_on_gathered(std::uint32_t id) {
  if (performances_[id].links != nullptr) let_go(id);
  std::erase(gathering_, id);
  const Performance performance = performances_[id];
  performances_.release(id);
  Group& group = states_[performance.family][performance.group];
  ++group.decided;
  if (performance.links != nullptr) lose_patience(group);
  group.gathers = false;
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group];
  for (std::size_t m = 0; m < ranks.size(); ++m) {
    const Performance::Member& member = performance.members[m];
    if (member.is_there) pass_on(ranks[m], member.node, performance.call, member.sequence);
  }
}

// Plays, by itself, what a performance was until this moment, as it has been alone: from its start on with
// the clock set back, while everything else stands still. What is left of it then is played among others.
void MemoisedCollectives::catch_up(std::uint32_t id, Time until) {
  EventQueue& queue = context_.queue;
  const Performance performance = performances_[id];
  performances_.release(id);
  Group& group = states_[performance.family][performance.group];
  // It was not performed after all: the runner counts its messages as it plays them.
  --group.performed[performance.play];
  lose_patience(group);
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group];
  const Time now = queue.now();
  // The queue is empty then, and its clock where the collective began.
  const std::vector<Event> others = queue.set_aside(performance.start);
  // Turns and notes belong to moments that are over: only what the collective itself does may happen now.
  is_catching_up_ = true;
  context_.order.apart_from_turns([&] {
    runner_.apart_from_notes([&] {
      for (std::size_t m = 0; m < ranks.size(); ++m) {
        const Performance::Member& member = performance.members[m];
        pass_on(ranks[m], member.node, performance.call, member.sequence);
      }
      // What its members begin with in this very moment belongs to the rounds that are still to come.
      if (performance.start < until) queue.run(until);
    });
  });
  is_catching_up_ = false;
  const std::vector<Event> own = queue.set_aside(now);
  for (const Event& event : others) {
    // The end that it would have had as a performance.
    if (event.target != target_ || event.argument != id)
      queue.schedule(event.time, event.target, event.argument);
  }
  for (const Event& event : own) queue.schedule(event.time, event.target, event.argument);
}

// What happens to a performance in a moment and what disturbs it there would have to be told apart, so that
// it is played from here on if anything else happens then.
void MemoisedCollectives::play_what_has_ties() {
  if (holding_.empty()) return;
  const Time next = context_.queue.next_time();
  if (next == kEndOfTime) return;
  for (std::size_t i = holding_.size(); i-- > 0;) {
    const Holder& holder = holding_[i];
    const std::uint32_t id = holder.id;
    if (!holder.moments->contains(next - holder.start)) continue;
    let_go(id);
    catch_up(id, next);
  }
}

void MemoisedCollectives::pass_on_what_cannot_wait() {
  while (!gathering_.empty()) pass_on_gathered(gathering_.back());
  play_what_has_ties();
}

void MemoisedCollectives::handle(std::uint64_t id) {
  const Performance& performance = performances_[id];
  if (performance.links != nullptr) {
    let_go(static_cast<std::uint32_t>(id));
    Group& group = states_[performance.family][performance.group];
    std::uint32_t& patience = group.patience;
    patience = std::min(patience + 1, kMostPatience);
    if (patience == kMostPatience) group.hopes = kMostHopes;
  }
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group];
  for (std::uint32_t m = 0; m < ranks.size(); ++m) {
    over_[static_cast<std::size_t>(ranks[m])].emplace_back(static_cast<std::uint32_t>(id), m);
    context_.order.mark(ranks[m], TurnPart::pass);
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
  if (walker_.keeps_chunks(rank)) {
    for (ChunkInterval phase : performance.play->members[member].phases) {
      phase.node = node;
      phase.ready += start;
      phase.start += start;
      phase.end += start;
      walker_.chunk_finished(rank, phase);
    }
  }
  if (--performance.members_left == 0) performances_.release(id);
  walker_.collective_finished(rank, node);
}

// Between rounds nobody gathers: what a group performs is an event. What is known of plays and how patient
// groups are decides what is looked up, but not when anything happens: it is no part of the state.
void MemoisedCollectives::add_state(StateDigest& state) const {
  for (std::size_t f = 0; f < states_.size(); ++f) {
    for (std::size_t g = 0; g < states_[f].size(); ++g) {
      const Group& group = states_[f][g];
      for (std::size_t member = 0; member < group.issued.size(); ++member)
        state.add('t', f, g, member, std::int64_t{group.decided} - std::int64_t{group.issued[member]});
      for (std::size_t member = 0; member < group.passed_on.size(); ++member)
        state.add('u', f, g, member, group.begun - group.passed_on[member]);
    }
  }
}

Digest MemoisedCollectives::describe(std::uint64_t id) const {
  const Performance& performance = performances_[id];
  Digest all = digest_of(performance.call, performance.family, performance.group, performance.members_left,
                         performance.play->duration.value);
  const std::vector<std::int32_t>& ranks =
      context_.classes.families[performance.family].groups[performance.group];
  for (std::size_t m = 0; m < performance.members.size(); ++m) {
    const Performance::Member& member = performance.members[m];
    all = digest_of(all.low, all.high, walker_.states().place(ranks[m], member.node),
                    walker_.states().age(ranks[m], member.sequence));
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
                                    .leg = sent.leg,
                                    .share = sent.share},
                                   times * sent.times);
          }
        }
      }
    }
  }
}

}  // namespace armilla
