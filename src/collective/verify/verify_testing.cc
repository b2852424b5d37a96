#include "collective/verify/verify_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "collective/algorithms/schedule_builder.h"
#include "collective/verify/chunk_tokens.h"
#include "collective/verify/members.h"
#include "collective/verify/violation.h"

namespace armilla {
namespace {

// Block -> whose contributions it holds, in the pool.
using HeldBlocks = std::unordered_map<std::int32_t, ValueId>;

struct Delivery {
  std::int32_t source = 0;
  Bytes bytes;
  bool reduce = false;
  std::vector<std::pair<std::int32_t, ValueId>> blocks;
  Members heard_of;          // in a barrier: whom the sender had heard of, directly or not
  std::int32_t sent_up = 0;  // how often the sender had given the switch something
};

// What a switch holds of a block: a value, and which of whose contributions, by their number.
struct Held {
  ValueId value = kNothing;
  std::vector<std::pair<std::int32_t, std::int32_t>> given;
  std::int32_t replaced_by = -1;                              // who gave it to be copied; -1: it is a sum
  std::vector<std::pair<std::int32_t, std::size_t>> readers;  // of the sum: members, each in one step
};

class ScheduleVerifier {
 public:
  ScheduleVerifier(const ScheduleRequest& request, const Schedule& schedule)
      : request_(request), schedule_(schedule), n_(request.ranks) {}

  void run() {
    check_form();
    check_counts();
    place_contributions();
    execute();
    check_meaning();
  }

 private:
  struct Member {
    std::size_t step = 0;
    bool entered = false;
    HeldBlocks buffer;
    Members heard_of;
    std::int32_t sent_up = 0, is_up = 0;  // how often it gave the switch something; that it knows arrived
    std::map<std::int32_t, std::int32_t> others_up;  // of others, that it was told of
    std::vector<std::vector<Delivery>> inbox;        // per step
    std::vector<std::vector<std::int32_t>> senders;  // per step, of all messages that will ever come
  };

  std::int32_t pieces() const { return schedule_.pieces == 0 ? n_ : schedule_.pieces; }
  // Pieces of one member, of what is scattered.
  std::int32_t share() const { return std::max(1, pieces() / n_); }
  bool is_all_to_all() const { return request_.kind == CollectiveKind::all_to_all; }
  bool is_barrier() const { return request_.kind == CollectiveKind::barrier; }
  std::int64_t block_count() const { return is_all_to_all() ? std::int64_t{n_} * n_ : pieces(); }
  Bytes block_bytes() const {
    return is_barrier() ? Bytes(0) : block_size(request_.bytes, is_all_to_all() ? n_ : pieces());
  }

  void check_form() const;
  void check_role(std::int32_t member, const RankSchedule& role) const;
  void check_send(std::int32_t member, const Transfer& transfer, const Payload& payload) const;
  void check_counts();
  void place_contributions();
  void execute();
  void enter_step(std::int32_t member);
  void give(std::int32_t member, const Delivery& delivery);
  ValueId ask(std::int32_t member, std::int32_t block);
  void complete_step(std::int32_t member);
  void merge(Member& state, std::int32_t member, const Delivery& delivery);
  [[noreturn]] void report_circle() const;
  void check_meaning() const;
  void demand(std::int32_t member, std::int32_t block, const Members& contributions) const;

  const ScheduleRequest& request_;
  const Schedule& schedule_;
  std::int32_t n_;
  std::vector<Member> members_;
  std::deque<std::int32_t> ready_;
  TokenPool values_;
  std::unordered_map<std::int32_t, Held> switch_;  // by block
  // Which completion of a step (their number, from 1) last did so to a block.
  struct Touched {
    std::int64_t replaced = 0, reduced = 0;
  };
  std::vector<Touched> touched_;
  std::int64_t completion_ = 0;
};

void ScheduleVerifier::check_form() const {
  if (n_ < 1 || schedule_.ranks != n_)
    violation("the schedule is for {} ranks, not for {}", schedule_.ranks, n_);
  if (n_ > kMaxPayloadRanks)
    violation("{} ranks are more than the {} that are verified", n_, kMaxPayloadRanks);
  const bool rooted = request_.kind == CollectiveKind::broadcast || request_.kind == CollectiveKind::reduce;
  if (rooted && (request_.root < 0 || request_.root >= n_))
    violation("the root {} is not a member of {}", request_.root, n_);
  if (schedule_.pieces < 0) violation("the buffer is cut into {} pieces", schedule_.pieces);
  const bool scattered =
      request_.kind == CollectiveKind::reduce_scatter || request_.kind == CollectiveKind::all_gather;
  if (scattered && n_ > 1 && pieces() % n_ != 0)
    violation("{} pieces cannot be scattered over {} ranks", pieces(), n_);
  if (schedule_.role_of.empty() ? schedule_.roles.empty()
                                : schedule_.role_of.size() != static_cast<std::size_t>(n_))
    violation("not every member has a role");
  for (const std::uint32_t role : schedule_.role_of)
    if (role >= schedule_.roles.size()) violation("there is no role {}", role);
  for (std::int32_t member = 0; member < n_; ++member) check_role(member, schedule_.of(member));
}

void ScheduleVerifier::check_role(std::int32_t member, const RankSchedule& role) const {
  if (role.payloads.size() != role.sends.size())
    violation("member {} has {} messages but {} payloads", member, role.sends.size(), role.payloads.size());
  std::uint32_t next = 0;
  for (std::size_t s = 0; s < role.steps.size(); ++s) {
    const Step& step = role.steps[s];
    if (step.first_send != next || step.end_send < next || step.end_send > role.sends.size())
      violation("member {}, step {}: its messages do not follow those of the step before", member, s);
    if (step.receives < 0 || step.window < 0) violation("member {}, step {}: a negative count", member, s);
    next = step.end_send;
  }
  if (next != role.sends.size()) violation("member {} has messages that belong to no step", member);
  for (std::size_t i = 0; i < role.sends.size(); ++i) check_send(member, role.sends[i], role.payloads[i]);
}

void ScheduleVerifier::check_send(std::int32_t member, const Transfer& transfer,
                                  const Payload& payload) const {
  // Before Schedule::peer computes with it.
  if (transfer.peer < 0 || transfer.peer >= n_)
    violation("member {} addresses peer {} of {} ranks", member, transfer.peer, n_);
  const std::int32_t peer = schedule_.peer(member, transfer);
  if (peer < 0 || peer >= n_) violation("member {} sends to member {} of {}", member, peer, n_);
  if (peer == member) violation("member {} sends to itself", member);
  const std::size_t steps = schedule_.of(peer).steps.size();
  if (transfer.step < 0 || static_cast<std::size_t>(transfer.step) >= steps)
    violation("member {} sends to step {} of member {}, which has {} steps", member, transfer.step, peer,
              steps);
  const Bytes bytes = block_bytes() * static_cast<std::int64_t>(payload.blocks.size());
  if (transfer.bytes != bytes)
    violation("member {} sends {} bytes to member {}, but their payload is {} bytes", member,
              transfer.bytes.value, peer, bytes.value);
  for (const std::int32_t block : payload.blocks) {
    if (block < 0 || block >= block_count())
      violation("member {} sends block {} of {} blocks", member, block, block_count());
  }
  std::vector<std::int32_t> sorted = payload.blocks;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    violation("member {} sends block {} twice in one message", member, *twice);
}

// What arrives in each step, against what the step waits for.
void ScheduleVerifier::check_counts() {
  members_.resize(static_cast<std::size_t>(n_));
  for (std::int32_t member = 0; member < n_; ++member) {
    Member& state = members_[static_cast<std::size_t>(member)];
    state.inbox.resize(schedule_.of(member).steps.size());
    state.senders.resize(state.inbox.size());
  }
  for (std::int32_t member = 0; member < n_; ++member) {
    for (const Transfer& transfer : schedule_.of(member).sends) {
      Member& receiver = members_[static_cast<std::size_t>(schedule_.peer(member, transfer))];
      receiver.senders[static_cast<std::size_t>(transfer.step)].push_back(member);
    }
  }
  for (std::int32_t member = 0; member < n_; ++member) {
    const std::vector<Step>& steps = schedule_.of(member).steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      // Fewer would stop the member for good, and of more the last would come when it has gone on.
      const std::size_t sent = members_[static_cast<std::size_t>(member)].senders[s].size();
      if (static_cast<std::size_t>(steps[s].receives) != sent)
        violation("member {}, step {}: waits for {} messages, but {} are sent to it", member, s,
                  steps[s].receives, sent);
    }
  }
}

void ScheduleVerifier::place_contributions() {
  touched_.resize(static_cast<std::size_t>(block_count()));
  for (std::int32_t member = 0; member < n_; ++member) {
    Member& state = members_[static_cast<std::size_t>(member)];
    state.heard_of = Members::only(n_, member);
    const ValueId own = values_.add(-1, Members::only(n_, member));
    const auto put = [&](std::int32_t block) { state.buffer[block] = own; };
    switch (request_.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::reduce:
        for (std::int32_t block = 0; block < pieces(); ++block) put(block);
        break;
      case CollectiveKind::broadcast:
        for (std::int32_t block = 0; block < pieces() && member == request_.root; ++block) put(block);
        break;
      case CollectiveKind::all_gather:
        for (std::int32_t i = 0; i < share(); ++i) put(member * share() + i);
        break;
      case CollectiveKind::all_to_all:
        for (std::int32_t to = 0; to < n_; ++to) put(member * n_ + to);
        break;
      case CollectiveKind::barrier:
        break;
    }
  }
}

// What a message carries depends only on what its sender had received in earlier steps, so any order of
// execution gives the same result.
void ScheduleVerifier::execute() {
  for (std::int32_t member = 0; member < n_; ++member) ready_.push_back(member);
  while (!ready_.empty()) {
    const std::int32_t member = ready_.front();
    ready_.pop_front();
    Member& state = members_[static_cast<std::size_t>(member)];
    const std::vector<Step>& steps = schedule_.of(member).steps;
    while (state.step < steps.size()) {
      if (!state.entered) enter_step(member);
      if (state.inbox[state.step].size() < static_cast<std::size_t>(steps[state.step].receives)) break;
      complete_step(member);
    }
  }
  // Nothing is left to arrive: whoever cannot go on now never will.
  for (std::int32_t member = 0; member < n_; ++member) {
    if (members_[static_cast<std::size_t>(member)].step < schedule_.of(member).steps.size()) report_circle();
  }
}

void ScheduleVerifier::enter_step(std::int32_t member) {
  Member& state = members_[static_cast<std::size_t>(member)];
  const RankSchedule& role = schedule_.of(member);
  const Step& step = role.steps[state.step];
  state.entered = true;
  for (std::uint32_t i = step.first_send; i < step.end_send; ++i) {
    const std::int32_t peer = schedule_.peer(member, role.sends[i]);
    Delivery delivery{member, role.sends[i].bytes, role.payloads[i].reduce, {}, Members()};
    if (is_barrier()) delivery.heard_of = state.heard_of;
    delivery.blocks.reserve(role.payloads[i].blocks.size());
    for (const std::int32_t block : role.payloads[i].blocks) {
      if (step.leg == Leg::from_switch) {
        delivery.blocks.emplace_back(block, ask(member, block));
        continue;
      }
      const auto held = state.buffer.find(block);
      if (held == state.buffer.end())
        violation("member {}, step {}: sends block {} to member {} without holding it", member, state.step,
                  block, peer);
      delivery.blocks.emplace_back(block, held->second);
    }
    if (step.leg == Leg::to_switch) {
      if (!delivery.blocks.empty()) ++state.sent_up;
      give(member, delivery);
      // To its peer such a message brings no blocks, only the news of how much its sender has up there.
      delivery = {member, Bytes(0), false, {}, std::move(delivery.heard_of), state.sent_up};
    }
    Member& receiver = members_[static_cast<std::size_t>(peer)];
    receiver.inbox[static_cast<std::size_t>(role.sends[i].step)].push_back(std::move(delivery));
    ready_.push_back(peer);
  }
}

// The switch adds what is sent to it, or lets it stand for what it held.
void ScheduleVerifier::give(std::int32_t member, const Delivery& delivery) {
  for (const auto& [block, value] : delivery.blocks) {
    Held& held = switch_[block];
    if (delivery.reduce && !held.given.empty()) {
      Members both = values_[held.value].contributions;
      if (const std::int32_t twice = both.first_in_both(values_[value].contributions); twice >= 0)
        violation("member {} adds the contribution of member {} to block {} of the switch twice", member,
                  twice, block);
      both.add(values_[value].contributions);
      held.value = values_.add(-1, std::move(both));
    } else {
      if (!delivery.reduce && held.replaced_by >= 0 && held.replaced_by != member)
        violation("members {} and {} both give the switch block {}", held.replaced_by, member, block);
      held = {value, {}, delivery.reduce ? -1 : member, {}};
    }
    held.given.emplace_back(member, members_[static_cast<std::size_t>(member)].sent_up);
  }
}

// Who asks has to know that all of it has reached the switch. A sum is not kept there to be copied, but a
// tree copies it to all that a step of one member sends it to.
ValueId ScheduleVerifier::ask(std::int32_t member, std::int32_t block) {
  const Member& state = members_[static_cast<std::size_t>(member)];
  const auto found = switch_.find(block);
  if (found == switch_.end())
    violation("member {} asks the switch for block {}, which it lacks", member, block);
  for (const auto& [giver, number] : found->second.given) {
    const auto told = state.others_up.find(giver);
    const std::int32_t known = giver == member                 ? state.is_up
                               : told == state.others_up.end() ? 0
                                                               : told->second;
    if (known < number)
      violation("member {} asks the switch for block {} without knowing that member {}'s has arrived", member,
                block, giver);
  }
  Held& held = found->second;
  if (held.replaced_by >= 0) return held.value;
  const auto before = std::ranges::find(held.readers, member, &std::pair<std::int32_t, std::size_t>::first);
  if (before == held.readers.end()) {
    held.readers.emplace_back(member, state.step);
  } else if (before->second != state.step || !request_.tree) {
    violation("member {} asks the switch for the sum of block {} twice", member, block);
  }
  return held.value;
}

void ScheduleVerifier::complete_step(std::int32_t member) {
  Member& state = members_[static_cast<std::size_t>(member)];
  // A step with a window ends when its messages have arrived, so its member knows that they have.
  if (schedule_.of(member).steps[state.step].window > 0) state.is_up = state.sent_up;
  Bytes combined;
  ++completion_;
  for (const Delivery& delivery : state.inbox[state.step]) {
    merge(state, member, delivery);
    if (delivery.sent_up > 0) {
      std::int32_t& known = state.others_up[delivery.source];
      known = std::max(known, delivery.sent_up);
    }
    if (delivery.reduce) combined += delivery.bytes;
  }
  const Bytes stated = schedule_.of(member).steps[state.step].reduced;
  if (stated != combined)
    violation("member {}, step {}: combines {} bytes, but states {}", member, state.step, combined.value,
              stated.value);
  state.inbox[state.step].clear();
  ++state.step;
  state.entered = false;
}

// Messages of one step arrive in any order, so a block that one of them replaces may not be touched by
// another.
void ScheduleVerifier::merge(Member& state, std::int32_t member, const Delivery& delivery) {
  if (is_barrier()) state.heard_of.add(delivery.heard_of);
  for (const auto& [block, value] : delivery.blocks) {
    Touched& touched = touched_[static_cast<std::size_t>(block)];
    if (touched.replaced == completion_ || (!delivery.reduce && touched.reduced == completion_))
      violation("member {}, step {}: block {} is replaced while another message changes it", member,
                state.step, block);
    (delivery.reduce ? touched.reduced : touched.replaced) = completion_;
    if (!delivery.reduce) {
      state.buffer[block] = value;
      continue;
    }
    const auto held = state.buffer.find(block);
    if (held == state.buffer.end())
      violation("member {}, step {}: member {} adds to block {}, which is not held", member, state.step,
                delivery.source, block);
    Members both = values_[held->second].contributions;
    const Members& added = values_[value].contributions;
    if (const std::int32_t twice = both.first_in_both(added); twice >= 0)
      violation("member {}, step {}: member {} adds the contribution of member {} to block {} twice", member,
                state.step, delivery.source, twice, block);
    both.add(added);
    held->second = values_.add(-1, std::move(both));
  }
}

void ScheduleVerifier::report_circle() const {
  const auto is_stuck = [&](std::int32_t member) {
    return members_[static_cast<std::size_t>(member)].step < schedule_.of(member).steps.size();
  };
  // Whoever `member` waits for is itself stuck, since all messages of finished members have been sent.
  const auto waits_for = [&](std::int32_t member) {
    const Member& state = members_[static_cast<std::size_t>(member)];
    std::vector<std::int32_t> missing = state.senders[state.step];
    for (const Delivery& delivery : state.inbox[state.step])
      missing.erase(std::find(missing.begin(), missing.end(), delivery.source));
    return missing.front();
  };
  std::int32_t member = 0;
  while (!is_stuck(member)) ++member;
  std::vector<bool> seen(static_cast<std::size_t>(n_));
  for (; !seen[static_cast<std::size_t>(member)]; member = waits_for(member))
    seen[static_cast<std::size_t>(member)] = true;
  std::string text;
  const std::int32_t first = member;
  do {
    const std::int32_t other = waits_for(member);
    text += fmt::format("{}member {} in step {} waits for member {}", text.empty() ? "" : ", ", member,
                        members_[static_cast<std::size_t>(member)].step, other);
    member = other;
  } while (member != first);
  violation("never ends: {}", text);
}

void ScheduleVerifier::demand(std::int32_t member, std::int32_t block, const Members& contributions) const {
  const HeldBlocks& buffer = members_[static_cast<std::size_t>(member)].buffer;
  const auto held = buffer.find(block);
  if (held == buffer.end()) violation("member {} ends without block {}", member, block);
  const Members& found = values_[held->second].contributions;
  if (found == contributions) return;
  for (std::int32_t contributor = 0; contributor < n_; ++contributor) {
    if (found.has(contributor) == contributions.has(contributor)) continue;
    violation("member {} ends with block {} {} the contribution of member {}", member, block,
              contributions.has(contributor) ? "lacking" : "holding", contributor);
  }
}

void ScheduleVerifier::check_meaning() const {
  const Members everyone = Members::all(n_);
  for (std::int32_t member = 0; member < n_; ++member) {
    const auto demand_all = [&](const Members& contributions) {
      for (std::int32_t block = 0; block < pieces(); ++block) demand(member, block, contributions);
    };
    switch (request_.kind) {
      case CollectiveKind::all_reduce:
        demand_all(everyone);
        break;
      case CollectiveKind::reduce:
        if (member == request_.root) demand_all(everyone);
        break;
      case CollectiveKind::reduce_scatter:
        for (std::int32_t i = 0; i < share(); ++i) demand(member, member * share() + i, everyone);
        break;
      case CollectiveKind::broadcast:
        demand_all(Members::only(n_, request_.root));
        break;
      case CollectiveKind::all_gather:
        for (std::int32_t block = 0; block < n_ * share(); ++block)
          demand(member, block, Members::only(n_, block / share()));
        break;
      case CollectiveKind::all_to_all:
        for (std::int32_t source = 0; source < n_; ++source)
          demand(member, source * n_ + member, Members::only(n_, source));
        break;
      case CollectiveKind::barrier:
        for (std::int32_t other = 0; other < n_; ++other) {
          if (!members_[static_cast<std::size_t>(member)].heard_of.has(other))
            violation("member {} leaves the barrier without having heard of member {}", member, other);
        }
        break;
    }
  }
}

}  // namespace

std::string verify_schedule(const ScheduleRequest& request, const Schedule& schedule) {
  return violation_of(ScheduleVerifier(request, schedule));
}

}  // namespace armilla
